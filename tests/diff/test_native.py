"""Native leaves: noise, renamed, retyped, inert; known changes and conditions, by tables made for the test."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from engdiff.diff.compare import compare
from engdiff.diff.native import flatten, same_leaf
from engdiff.schema.capture import Capture
from engdiff.schema.diff import Diff
from tests import factories as make
from tests.diff.fake_engine import change, use

RENAMED = {"changes": {"change": [change("x", kind="renamed", old_native="a.before", new_native="b.after")]}}


def diff(old: Capture, new: Capture) -> Diff:
    return compare(old, new, old_label="old.json", new_label="new.json")


def pair(old: dict[str, JsonValue], new: dict[str, JsonValue]) -> Diff:
    def side(version: str, tree: dict[str, JsonValue]) -> Capture:
        return make.vllm(version).model_copy(update={"native": {"config": tree}})

    return diff(side("0.30.0", old), side("0.32.0", new))


def test_noise_never_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, noise={"paths": [{"pattern": "*.port", "reason": "x"}, {"pattern": "id", "reason": "x"}]})
    found = pair({"a": {"port": 1}, "id": "x", "gone": {"port": 1}}, {"a": {"port": 2}, "id": "y", "b": {"port": 3}})
    assert (found.findings, found.native_only, found.native_compared) == ((), (), 0)


def test_a_renamed_leaf_is_the_same_leaf(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, **RENAMED)
    found = pair({"a": {"before": 1}}, {"b": {"after": 1}})
    assert (found.findings, found.native_only, found.native_compared) == ((), (), 1)


def test_a_renamed_leaf_that_moved_goes_by_its_new_name(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, **RENAMED)
    found = pair({"a": {"before": 1}}, {"b": {"after": 2}})
    assert [(f.key, f.headline) for f in found.findings] == [("config.b.after", "b.after: 1 → 2 (×2)")]


def test_a_renamed_leaf_of_another_type_is_listed_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, **RENAMED)
    found = pair({"a": {"before": False}}, {"b": {"after": "auto"}})
    assert found.findings == ()
    assert [(n.what, n.because) for n in found.not_compared] == [
        ("config.b.after", "it took the place of an option of another type: False became auto")
    ]


def test_new_options_that_are_off_are_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, noise={"inert": [{"path": "new.off", "value": False}, {"path": "new.none", "value": "none"}]})
    found = pair({"gone": 1}, {"new": {"off": False, "none": None, "on": True}})
    assert [(leaf.side, leaf.path, leaf.value) for leaf in found.native_only] == [
        ("old", "config.gone", 1),
        ("new", "config.new.on", True),
    ]
    assert found.findings == ()


def test_the_longest_prefix_gives_the_area(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, noise={"areas": {"a": "kernels", "a.b": "memory"}})
    found = pair({"a": {"b": {"c": 1}, "d": 1}, "ab": 1}, {"a": {"b": {"c": 2}, "d": 2}, "ab": 2})
    assert {f.key: f.area for f in found.findings} == {
        "config.a.b.c": "memory",
        "config.a.d": "kernels",
        "config.ab": "cosmetic",
    }


def test_a_known_change_explains_and_pins(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [change("a", "0.29.0", summary="too early"), change("a", summary="it grew.", pin="--a {old}", area="memory")]
    use(monkeypatch, changes={"change": rows})
    (found,) = pair({"a": 1}, {"a": 2}).findings
    assert (found.why, found.since, found.area, found.explained) == ("It grew. It costs.", "0.31.0", "memory", True)
    assert (found.pin.text, found.pin.style) == ("--a 1", "flags")


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"extra": {}, "new": 3}, "another value than the change led to"),
        ({"platform": "cpu"}, "another kind of device"),
        ({"when": {"scheduler.max_num_seqs": 1}}, "other settings"),
        ({"since": "0.30.0"}, "both sides have it"),
        ({"since": "0.33.0"}, "no side has it"),
    ],
)
def test_a_change_that_is_not_this_one_explains_nothing(
    monkeypatch: pytest.MonkeyPatch, fields: dict[str, JsonValue], why: str
) -> None:
    use(monkeypatch, changes={"change": [{**change("a"), **fields}]})
    (found,) = pair({"a": 1}, {"a": 2}).findings
    assert (found.since, found.explained) == (None, False), why


@pytest.mark.parametrize(
    ("fields", "because"),
    [
        ({"pin": "--sizes LIST"}, "fill in: --sizes LIST"),
        ({"no_pin": "nothing restores it"}, "nothing restores it"),
        ({}, "this version has no flag of that name"),
    ],
)
def test_a_change_without_a_whole_pin_says_so(
    monkeypatch: pytest.MonkeyPatch, fields: dict[str, JsonValue], because: str
) -> None:
    use(monkeypatch, changes={"change": [{**change("a"), **fields}]})
    (found,) = pair({"a": 1}, {"a": 2}).findings
    assert (found.pin.text, found.pin.because) == (None, because)


def test_a_move_without_effect_is_cosmetic_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    acts = {"acts": [{"pattern": "a", "if": "group:state", "says": "no state layers."}]}
    use(monkeypatch, acts=acts, noise={"areas": {"a": "memory"}})
    (found,) = pair({"a": 1}, {"a": 2}).findings
    assert (found.area, found.why, found.explained) == ("cosmetic", "No effect here: no state layers.", True)


def test_canonical_leaves_are_not_told_twice() -> None:
    old, new = (make.with_native("config.scheduler_config.max_num_seqs", n)(make.vllm()) for n in (1, 2))
    assert diff(old, new).findings == ()


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, "", True),
        ([], {}, True),
        ([1, 2], [2, 1], True),
        ([1, 2], [1, 3], False),
        (1, 1.0, True),
        ("128", 128, True),
        (1, True, False),
        (0, None, False),
        (False, None, False),
    ],
)
def test_same_leaf(old: JsonValue, new: JsonValue, expected: bool) -> None:
    assert same_leaf(old, new) is expected


def test_flatten() -> None:
    tree: JsonValue = {"a": {"b": 1, "c": {}}, "d": [1, {"e": 2}]}
    assert dict(flatten(tree)) == {"a.b": 1, "a.c": {}, "d": [1, {"e": 2}]}
