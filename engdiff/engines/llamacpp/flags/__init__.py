"""llama-server's flags and variables, translated to fields of xllamacpp's ``CommonParams`` and back.

The table is ``knowledge/flags.toml``; its first lines say what each key means. Nothing here starts an engine.
"""

from engdiff.engines.llamacpp.flags.render import render, render_env
from engdiff.engines.llamacpp.flags.table import Flag, FlagError, flag_for, load_flags, server_defaults
from engdiff.engines.llamacpp.flags.words import Translation, translate

__all__ = [
    "Flag",
    "FlagError",
    "Translation",
    "flag_for",
    "load_flags",
    "render",
    "render_env",
    "server_defaults",
    "translate",
]
