"""Whether a move acts here: every need that a table can state, met and not met; what is not known counts as met."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from engdiff.diff.compare import compare
from engdiff.schema.capture import Capture, Group
from engdiff.schema.diff import Finding
from engdiff.schema.values import Unknown
from tests import factories as make
from tests.diff.fake_engine import use
from tests.factories import Change

LEAF = "config.example_config.example_option"
UNKNOWN = Unknown(because="not said")


def same(capture: Capture) -> Capture:
    return capture


def groups(*kinds: str) -> Change:
    def apply(capture: Capture) -> Capture:
        group = capture.instances[0].ranks[0].pools[0].groups[0]
        made: tuple[Group, ...] = tuple(group.model_copy(update={"kind": kind}) for kind in kinds)
        rank = capture.instances[0].ranks[0]
        pool = rank.pools[0].model_copy(update={"groups": made})
        return make.with_rank(rank.model_copy(update={"pools": (pool,)}))(capture)

    return apply


def seqs(value: JsonValue) -> Change:
    return make.with_setting("scheduler.max_num_seqs", make.setting(value))


NEEDS: list[tuple[str, JsonValue, Change, bool]] = [
    ("on", "kv.prefix_caching", same, True),
    ("off", "kv.prefix_caching", make.with_setting("kv.prefix_caching", make.setting(value=False)), False),
    ("unset", "kv.prefix_caching", make.with_setting("kv.prefix_caching", make.setting(None)), False),
    ("the word none", "kv.prefix_caching", make.with_setting("kv.prefix_caching", make.setting("none")), False),
    ("not known", "kv.prefix_caching", make.unknown_setting("kv.prefix_caching"), True),
    ("not there", "kv.prefix_caching", make.without_setting("kv.prefix_caching"), True),
    ("not: off", "!kv.prefix_caching", make.with_setting("kv.prefix_caching", make.setting(value=False)), True),
    ("not: on", "!kv.prefix_caching", same, False),
    ("not: not known", "!kv.prefix_caching", make.unknown_setting("kv.prefix_caching"), True),
    ("equals", "model.dtype=bfloat16", same, True),
    ("equals, another", "model.dtype=float16", same, False),
    ("equals, as a number", "scheduler.max_num_seqs=256", same, True),
    ("more", "scheduler.max_num_seqs>255", same, True),
    ("as much is not more", "scheduler.max_num_seqs>256", same, False),
    ("more than a word", "scheduler.max_num_seqs>256", seqs("auto"), True),
    ("device", "device:gpu", same, True),
    ("another device", "device:cpu", same, False),
    ("group", "group:full", same, True),
    ("one of the groups", "group:state", groups("full", "state"), True),
    ("no such group", "group:state", same, False),
    ("groups not known", "group:state", groups(), True),
    ("runner", "runner:V2", same, True),
    ("another runner", "runner:V1", same, False),
    ("runner not known", "runner:V1", make.with_runner(name=UNKNOWN), True),
    ("leaf", "native:example_config.example_switch", same, True),
    (
        "leaf that is off",
        "native:example_config.example_switch",
        make.with_native("config.example_config.example_switch", value=False),
        False,
    ),
    ("leaf that is not there", "native:example_config.no_such", same, False),
    ("not: leaf that is on", "native:!example_config.example_switch", same, False),
    ("not: leaf that is not there", "native:!example_config.no_such", same, True),
    ("leaf that equals", "native:example_config.example_switch=true", same, True),
    ("leaf that equals, another", "native:example_config.example_switch=false", same, False),
    ("leaf that equals, not there", "native:example_config.no_such=1", same, False),
    ("one of several is enough", ["runner:V1", "device:gpu"], same, True),
    ("none of several", ["runner:V1", "device:cpu"], same, False),
]


@pytest.mark.parametrize(("need", "change", "acts"), [row[1:] for row in NEEDS], ids=[row[0] for row in NEEDS])
def test_needs(monkeypatch: pytest.MonkeyPatch, need: JsonValue, change: Change, acts: bool) -> None:
    found = moved(monkeypatch, {"if": need}, change)
    assert (found.area, found.explained) == (("memory", False) if acts else ("cosmetic", True))
    assert found.why.startswith("No effect here: ") is not acts


def moved(monkeypatch: pytest.MonkeyPatch, row: dict[str, JsonValue], change: Change) -> Finding:
    """The finding of one leaf that moved, judged by one row of ``acts.toml``."""
    acts = {"pattern": "example_config.example_option", "says": "nothing reads it.", **row}
    use(monkeypatch, acts={"acts": [acts]}, noise={"areas": {"example_config": "memory"}})
    both = change(make.vllm())
    new = make.with_native(LEAF, "new")(both)
    return next(f for f in compare(both, new, old_label="a", new_label="b").findings if f.key == LEAF)


def test_what_has_no_effect_needs_no_pin_and_stays_out_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    found = moved(monkeypatch, {"if": "device:cpu"}, same)
    assert found.why == "No effect here: nothing reads it."
    assert (found.pin.text, found.pin.because) == (None, "it has no effect here")


def test_every_condition_must_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        {"pattern": "example_config.*", "if": "device:gpu", "says": "no GPU."},
        {"pattern": "example_config.example_option", "if": "runner:V1", "says": "not on this runner."},
    ]
    use(monkeypatch, acts={"acts": rows})
    old = make.vllm()
    (found,) = compare(old, make.with_native(LEAF, "new")(old), old_label="a", new_label="b").findings
    assert found.why == "No effect here: not on this runner."


def test_a_canonical_setting_can_have_no_effect_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"pattern": "scheduler.max_num_seqs", "if": "kv.prefix_caching=off", "says": "never."}
    use(monkeypatch, acts={"acts": [row]})
    found = compare(make.vllm(), seqs(64)(make.vllm()), old_label="a", new_label="b")
    assert [(f.key, f.area) for f in found.findings] == [("scheduler.max_num_seqs", "cosmetic")]
    assert found.pinned_command is None
