"""Known differences that the user accepts, each with a reason, in a TOML file.

::

    [[accept]]
    key = "kv.pool_bytes"          # the key of a finding; * and ? are wildcards
    kind = "PoolGrew"              # optional
    reason = "planned: ticket 123" # required
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from engdiff.errors import UsageError
from engdiff.schema.diff import Diff, Finding
from engdiff.schema.files import read_text

FIELDS = {"key", "kind", "reason"}


@dataclass(frozen=True)
class Acceptance:
    """One accepted difference."""

    key: str
    reason: str
    kind: str | None = None

    def covers(self, finding: Finding) -> bool:
        """Whether it accepts this finding."""
        return fnmatchcase(finding.key, self.key) and self.kind in (None, finding.kind)


def unused(acceptances: Sequence[Acceptance], diff: Diff) -> tuple[Acceptance, ...]:
    """Entries that accept nothing: what they were written for has gone, and they would hide what comes next."""
    return tuple(a for a in acceptances if not any(a.covers(one.finding) for one in diff.accepted))


def load_acceptances(path: Path) -> tuple[Acceptance, ...]:
    """The acceptances in a file. Raises :class:`~engdiff.errors.UsageError` that names the entry."""
    try:
        data = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(
            f"{path}: not TOML: {error}", "an accept file holds [[accept]] entries with key and reason"
        ) from None
    if unknown := sorted(data.keys() - {"accept"}):
        raise UsageError(f"{path}: unknown key `{unknown[0]}`", "write each entry under its own [[accept]] line")
    rows = data.get("accept", [])
    if not isinstance(rows, list):
        raise UsageError(f"{path}: `accept` is not a list of tables", "write each entry under its own [[accept]] line")
    return tuple(_acceptance(path, number, row) for number, row in enumerate(rows, start=1))


def _acceptance(path: Path, number: int, row: object) -> Acceptance:
    where = f"{path}: [[accept]] entry {number}"
    if not isinstance(row, dict) or not all(isinstance(v, str) for v in row.values()):
        raise UsageError(f"{where}: every value is a text", "write key, kind and reason in quotes")
    if unknown := sorted(row.keys() - FIELDS):
        raise UsageError(f"{where}: unknown field `{unknown[0]}`", f"fields: {', '.join(sorted(FIELDS))}")
    if not row.get("key") or not row.get("reason"):
        raise UsageError(f"{where}: `key` and `reason` are required", "an accepted difference needs its reason")
    return Acceptance(key=row["key"], reason=row["reason"], kind=row.get("kind"))
