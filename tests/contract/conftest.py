"""Engines of other distributions are found by their entry points, as an installed fork's are."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from engdiff import engines
from tests.contract.subjects import TOYS, Subject


@pytest.fixture(autouse=True, scope="module")
def installed_fork() -> Iterator[None]:
    """The toy's distribution on the path."""
    patch = pytest.MonkeyPatch()
    patch.syspath_prepend(str(TOYS))
    patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(TOYS), os.environ.get("PYTHONPATH", "")))))
    engines.names.cache_clear()
    yield
    patch.undo()
    engines.names.cache_clear()
    engines.get.cache_clear()


@pytest.fixture(scope="session")
def made_subjects() -> dict[str, Subject]:
    """Subjects by name: making one can mean making an interpreter."""
    return {}


@pytest.fixture
def subject(
    request: pytest.FixtureRequest, made_subjects: dict[str, Subject], tmp_path_factory: pytest.TempPathFactory
) -> Subject:
    """The engine that is asked."""
    name = request.param.__name__
    if name not in made_subjects:
        made_subjects[name] = request.param(tmp_path_factory.mktemp(name))
    return made_subjects[name]
