"""Start, watch and stop an engine's processes: nothing left behind.

Nothing is imported here, so that the guard starts fast and this package loads on every system.
"""
