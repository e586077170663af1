"""What the first capture does not know comes from the second; what it knows stays."""

from __future__ import annotations

from engdiff.schema.capture import Setting
from engdiff.schema.values import Known, Unknown
from engdiff.sources.base import read_capture
from engdiff.sources.complete import complete, known_of
from tests import factories as make


def test_the_known_one_wins() -> None:
    one, two, no = Known(value=1), Known(value=2), Unknown(because="no")
    assert known_of(one, two) == one
    assert known_of(no, two) == two
    assert known_of(no, Unknown(because="neither")) == no


def test_nothing_is_completed_by_everything() -> None:
    nothing, everything = read_capture("vllm", "attach", "no"), make.vllm()
    made = complete(nothing, everything)
    assert made.identity.source == "attach"
    assert made.identity.version == everything.identity.version
    assert (made.settings, made.instances) == (everything.settings, everything.instances)
    assert made.runner.name == everything.runner.name
    assert made.launch.model_given == everything.launch.model_given
    kept = complete(everything, nothing)
    assert (kept.settings, kept.instances, kept.launch) == (
        everything.settings,
        everything.instances,
        everything.launch,
    )


def test_layers_of_a_setting_come_from_both() -> None:
    no = Unknown(because="no")
    live = Setting(resolved=no, effective=Known(value=64), origin=None)
    logged = Setting(configured=Known(value=64), resolved=Known(value=128), effective=no, origin="user")
    first = read_capture("vllm", "attach", "no").model_copy(update={"settings": {"scheduler.max_num_seqs": live}})
    second = read_capture("vllm", "log", "no").model_copy(update={"settings": {"scheduler.max_num_seqs": logged}})
    setting = complete(first, second).settings["scheduler.max_num_seqs"]
    assert (setting.configured, setting.resolved, setting.effective) == (
        Known(value=64),
        Known(value=128),
        Known(value=64),
    )
    assert setting.origin == "user"
