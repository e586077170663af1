"""``$(NAME)`` in Kubernetes commands and variables."""

from __future__ import annotations

import re
from collections.abc import Mapping

REFERENCE = re.compile(r"\$\$|\$\((?P<name>[A-Za-z_.\-][A-Za-z0-9_.\-]*)\)")
MAX_LENGTH = 131_072
"""Linux takes no longer word in a command or an environment."""


def expand(text: str, variables: Mapping[str, str]) -> tuple[str | None, tuple[str, ...]]:
    """The text with values in place of names, and the names that have none and stay as they are.

    ``None`` where the text would grow beyond measure.
    """
    out: list[str] = []
    missing: list[str] = []
    at = length = 0
    for match in REFERENCE.finditer(text):
        name = match["name"]
        if name is None:
            new = "$"
        elif name in variables:
            new = variables[name]
        else:
            missing.append(name)
            new = match[0]
        out += (text[at : match.start()], new)
        at = match.end()
        length += len(new)
        if length > MAX_LENGTH:
            return None, ()
    out.append(text[at:])
    return "".join(out), tuple(missing)
