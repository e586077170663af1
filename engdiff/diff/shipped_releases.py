"""The captures of one shipped scenario, release by release."""

from __future__ import annotations

from collections.abc import Iterator

from engdiff.diff.history import Release
from engdiff.errors import EngineFailed
from engdiff.schema.values import Unknown
from engdiff.sources.profiles.shipped import capture, versions


def releases(engine: str, key: str) -> Iterator[Release]:
    """Every release that has a profile, oldest first; of one that refused the scenario, why."""
    for version in versions(engine):
        try:
            made = capture(engine, version, key)
        except EngineFailed as refused:
            yield Release(version, Unknown(because=refused.message))
        else:
            yield Release(version, made or Unknown(because="its profile does not hold this scenario"))
