"""Known changes of behaviour that no value shows: which are told, in which order, with which pin."""

from __future__ import annotations

from typing import Any

import pytest

from engdiff.diff.compare import compare
from engdiff.schema.capture import Device
from engdiff.schema.diff import Behaviour
from engdiff.schema.values import Unknown
from tests import factories as make
from tests.diff.fake_engine import change, use

GPU = make.with_identity(devices=(Device(kind="gpu", name="H100", memory_bytes=Unknown(because="-")),))


def told(monkeypatch: pytest.MonkeyPatch, *rows: dict[str, Any]) -> list[Behaviour]:
    use(monkeypatch, changes={"change": list(rows)})
    old, new = (GPU(make.vllm(v)) for v in ("0.30.0", "0.32.0"))
    return list(compare(old, new, old_label="old", new_label="new").behaviours)


def test_a_behaviour_between_the_two_releases_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    (one,) = told(monkeypatch, change("memory.profile_formula", kind="behaviour", pin="--x 1"))
    assert (one.since, one.area, one.says, one.pin.text) == ("0.31.0", "memory", "It moved. It costs.", "--x 1")
    assert one.source == "x"


@pytest.mark.parametrize(
    "row",
    [
        change("memory.a", since="0.30.0", kind="behaviour"),
        change("memory.a", since="0.33.0", kind="behaviour"),
        change("memory.a", kind="behaviour", platform="cpu"),
        change("memory.a", kind="renamed"),
        change("memory.a", kind="behaviour", when={"speculative.method": "*"}),
        change("model.max_model_len", kind="default"),
    ],
    ids=["came before", "comes later", "another platform", "a name alone", "not used here", "a value shows it"],
)
def test_what_cannot_act_or_shows_by_itself_is_not_told(monkeypatch: pytest.MonkeyPatch, row: dict[str, Any]) -> None:
    assert told(monkeypatch, row) == []


def test_costly_areas_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [change(key, kind="behaviour") for key in ("sampling.a", "scheduler.a", "memory.a", "boot.a", "other.a")]
    areas = [one.area for one in told(monkeypatch, *rows)]
    assert areas == ["startup", "memory", "scheduling", "numerics", "cosmetic"]


@pytest.mark.parametrize(
    ("fields", "because"),
    [
        ({"pin": "--x {old}"}, "fill in: --x OLD"),
        ({"pin": "--x N"}, "fill in: --x N"),
        ({"no_pin": "the code is gone"}, "the code is gone"),
        ({}, "no flag or variable of this version restores it"),
    ],
)
def test_a_pin_that_cannot_be_typed_says_why(
    monkeypatch: pytest.MonkeyPatch, fields: dict[str, str], because: str
) -> None:
    (one,) = told(monkeypatch, change("memory.a", kind="behaviour", **fields))
    assert (one.pin.text, one.pin.because) == (None, because)


def test_devices_that_a_capture_does_not_tell_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    (one,) = told(monkeypatch, change("memory.a", kind="behaviour", applies_to="MLA models"))
    assert one.applies_to == "MLA models"


def test_where_no_device_is_stated_every_platform_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = make.with_identity(devices=())
    use(monkeypatch, changes={"change": [change("memory.a", kind="behaviour", platform="cuda")]})
    old, new = (silent(make.vllm(v)) for v in ("0.30.0", "0.32.0"))
    assert len(compare(old, new, old_label="old", new_label="new").behaviours) == 1
    assert compare(new, old, old_label="new", new_label="old").behaviours == ()
