"""Probe: what an exported probe wrote inside somebody else's container becomes a Capture."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import JsonValue

from engdiff import engines, errors
from engdiff.engines.contract import ExportedProbe
from engdiff.schema.capture import Capture
from engdiff.sources.base import read_capture, redacted

NOT_IN_A_PROBE = "the probe alone does not see it"


def read_probe(folder: Path, engine: str | None) -> Capture:
    """The capture that the files of a probe make. Raises an error that names the folder or the file."""
    files = _files(folder)
    for one in [engines.get(engine)] if engine else [engines.get(name) for name in engines.names()]:
        if one.exported_probe and one.exported_probe.wrote(files):
            made = one.exported_probe.capture(files, read_capture(one.name, "attach", NOT_IN_A_PROBE))
            return redacted(made)
    raise errors.UsageError(
        f"{folder}: no probe of engdiff wrote these files ({', '.join(files) or 'there is no .json file'})",
        "give the folder that ENGDIFF_PROBE_OUT named; the probe writes when the server is up",
    )


def probe_of(name: str) -> ExportedProbe:
    """The probe of this engine. Raises :class:`~engdiff.errors.UsageError` when nothing can be mounted into it."""
    engine = engines.get(name)
    if engine.exported_probe is None:
        raise errors.UsageError(
            f"{engine.title} takes no probe from outside in this version",
            f"read the running server (engdiff capture {name} --attach URL) or its log (--log FILE)",
        )
    return engine.exported_probe


def _files(folder: Path) -> dict[str, JsonValue]:
    if not folder.is_dir():
        raise errors.UsageError(f"{folder}: no such folder", "give the folder that ENGDIFF_PROBE_OUT named")
    found: dict[str, JsonValue] = {}
    for path in sorted(folder.glob("*.json")):
        try:
            found[path.stem] = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise errors.DocumentInvalid(path, path.name, f"not what a probe writes: {error}") from None
        except OSError as error:
            raise errors.DocumentUnreadable(path, error.strerror or str(error)) from None
    return found
