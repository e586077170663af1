"""llama.cpp, through the ``xllamacpp`` wheels: its server, compiled into a Python extension."""
