"""Where the data that engdiff ships lies: inside the installed package, or at the root of a checkout."""

from __future__ import annotations

from pathlib import Path

from engdiff.errors import EngdiffError

PACKAGE = Path(__file__).parent


def folder(name: str) -> Path:
    """The folder ``profiles`` or ``recipes``: the wheel puts it into the package (pyproject.toml, ``force-include``).

    Raises :class:`~engdiff.errors.EngdiffError` when the installation lacks it.
    """
    for place in (PACKAGE / name, PACKAGE.parent / name):
        if place.is_dir():
            return place
    raise EngdiffError(f"{PACKAGE / name}: no such folder: this installation is incomplete", "install engdiff again")
