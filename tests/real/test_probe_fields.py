"""What the tables of the probes say of each release, against its source: from the real wheel, by AST."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engdiff import engines
from tests.engines.probe_table import ENGINES, UNCHECKED, table
from tests.engines.wheels import sources


def releases() -> Iterator[object]:
    """Every supported release of every distribution: the newest and the oldest always, the rest for the matrix."""
    for engine in ENGINES:
        for distribution in table(engine).distributions:
            known = engines.get(engine).known_versions(distribution)
            for version in known:
                mark = pytest.mark.real if version in (known[0], known[-1]) else pytest.mark.matrix
                yield pytest.param(engine, distribution, version, marks=mark, id=f"{distribution}-{version}")


@pytest.mark.parametrize(("engine", "distribution", "version"), list(releases()))
def test_the_table_says_what_this_release_defines(engine: str, distribution: str, version: str) -> None:
    said = table(engine)
    with sources(distribution, version) as release:
        wrong = list(said.wrong(release, version))
    assert not wrong, f"{distribution} {version}: " + "\n".join(wrong)


@pytest.mark.real
@pytest.mark.parametrize("engine", UNCHECKED)
def test_what_cannot_be_checked(engine: str) -> None:
    assert engine not in ENGINES
    pytest.skip(UNCHECKED[engine])
