"""Writing a model's folder: each file appears whole, and a folder that holds the same bytes already is left alone."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path


def write_files(home: Path, contents: Mapping[str, bytes]) -> None:
    """Write the files, bytes by path in ``home``, to a temporary folder beside it; then move each into place, in order.

    Several processes may write the same contents at once.
    """
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{home.name}-", dir=home.parent) as made:
        for name, data in contents.items():
            source, target = Path(made, name), home / name
            for path in (source, target):
                path.parent.mkdir(parents=True, exist_ok=True)
            source.write_bytes(data)
            source.replace(target)


def holds(home: Path, contents: Mapping[str, bytes]) -> bool:
    """Whether every file is in ``home`` with just these bytes."""
    try:
        return all((home / name).read_bytes() == data for name, data in contents.items())
    except OSError:
        return False
