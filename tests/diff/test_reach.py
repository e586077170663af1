"""What lies beyond engdiff's knowledge is said."""

from __future__ import annotations

import pytest

from engdiff import engines
from engdiff.diff.compare import compare
from engdiff.knowledge.versions import older
from tests import factories as make
from tests.diff.fake_engine import change, use


def said(monkeypatch: pytest.MonkeyPatch, before: str, after: str) -> list[str]:
    use(monkeypatch, changes={"read_since": "0.20.0", "read_until": "0.32.0", "change": [change("x")]})
    found = compare(make.vllm(before), make.vllm(after), old_label="old", new_label="new").not_compared
    return [one.because for one in found if one.what.startswith("known changes")]


@pytest.mark.parametrize(
    ("before", "after", "reaches"),
    [
        ("0.30.0", "0.32.0", []),
        ("0.30.0", "0.33.0", ["ends with 0.32.0"]),
        ("0.19.0", "0.30.0", ["begins with 0.20.0"]),
        ("0.19.0", "0.33.0", ["begins with 0.20.0", "ends with 0.32.0"]),
        ("0.33.0", "0.33.0", ["ends with 0.32.0"]),
    ],
)
def test_a_release_that_nobody_read_is_said(
    monkeypatch: pytest.MonkeyPatch, before: str, after: str, reaches: list[str]
) -> None:
    told = said(monkeypatch, before, after)
    assert len(told) == len(reaches)
    assert all(part in whole for part, whole in zip(reaches, told, strict=True))


@pytest.mark.parametrize("name", engines.names())
def test_every_engine_says_how_far_its_changes_reach(name: str) -> None:
    knowledge = engines.get(name).knowledge
    assert knowledge.changes_read is not None
    since, until = knowledge.changes_read
    assert older(since, until)
    assert not [change.key for change in knowledge.changes if older(until, change.since)]
