"""Budget: composes a model's geometry, a device and an engine's accounting into a predicted Capture.

It holds no constant of an engine: rules are in ``engines/<engine>/sizing``.
"""
