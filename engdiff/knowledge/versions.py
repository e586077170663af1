"""Version ranges in knowledge: ``since`` is the first release that has it, ``until`` the last."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from packaging.version import InvalidVersion, Version


@cache
def release(text: str) -> Version:
    """A PEP 440 version without its post and local parts, which repackage the same engine. Raises ``ValueError``."""
    try:
        return Version(Version(text).base_version)
    except InvalidVersion as error:
        raise ValueError(f"`{text}` is not a version") from error


def holds(version: str, since: str | None = None, until: str | None = None) -> bool:
    """Whether ``version`` lies in the range; both ends belong to it. What is no version lies in no bounded range."""
    if not is_version(version):
        return since is None and until is None
    at = release(version)
    return (since is None or release(since) <= at) and (until is None or at <= release(until))


def came_between(older: str, since: str, newer: str) -> bool:
    """Whether a release came after ``older`` and is in ``newer``.

    Post-releases and candidates (``1.3.0rc21``) are told apart only where ``since`` is one: a release stands for all.
    """
    if not (is_version(older) and is_version(newer)):
        return False
    named = Version(since)
    read = Version if named.is_postrelease or named.is_prerelease else release
    return read(older) < read(since) <= read(newer)


def older(version: str, other: str) -> bool:
    """Whether ``version`` came before ``other``, candidates of one release told apart."""
    return Version(version) < Version(other)


def at_version(entry: Any, version: str, field: str) -> str | None:
    """The value of ``entry`` that holds at ``version``: a plain text, or a list of ``{field, since, until}``."""
    if entry is None or isinstance(entry, str):
        return entry if field in ("path", "name") else None
    rows: Sequence[Mapping[str, str]] = entry
    for row in rows:
        if holds(version, row.get("since"), row.get("until")):
            return row.get(field)
    return None


def nearest(wanted: str, known: Iterable[str], count: int = 3) -> tuple[str, ...]:
    """The ``count`` known versions closest to ``wanted``, oldest first; the newest ones if it is no version."""
    ordered = sorted({v for v in known if is_version(v)}, key=Version)
    if not is_version(wanted):
        return tuple(ordered[-count:])
    below = [v for v in ordered if Version(v) < Version(wanted)]
    above = [v for v in ordered if Version(v) > Version(wanted)]
    take_above = min(len(above), max(1, count - len(below)))
    take_below = min(len(below), count - take_above)
    return tuple(below[len(below) - take_below :] + above[:take_above])


def is_version(text: str) -> bool:
    """Whether the text is a PEP 440 version."""
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True
