"""Ledgers and rules of two engines, side by side; what only one has; how two starts ended."""

from __future__ import annotations

import pytest

from engdiff.diff.compare import compare
from engdiff.schema.capture import Capture
from engdiff.schema.diff import Across, Beside, Diff
from engdiff.schema.values import Known, Unknown, plain
from tests import factories as make
from tests.diff import other_engines as other
from tests.diff.parts_of_sides import died_serving, ended, from_log
from tests.factories import GIB


def diff(old: Capture, new: Capture) -> Diff:
    return compare(old, new, old_label="old.json", new_label="new.json")


def across(old: Capture, new: Capture) -> Across:
    found = diff(old, new).across
    assert found is not None
    return found


def ledger(old: Capture, new: Capture) -> dict[str, Beside]:
    return {line.name: line for line in across(old, new).ledger}


# --- ledgers ------------------------------------------------------------------------------------------------------


def test_lines_stand_beside_each_other_in_shared_words() -> None:
    lines = ledger(other.sglang(), make.vllm())
    assert [(name, plain(line.old), plain(line.new)) for name, line in lines.items()] == [
        ("device memory", 78 * GIB, 80 * GIB),
        ("limit", 64 * GIB, 72 * GIB),
        ("weights", 16 * GIB, 16 * GIB),
        ("KV cache", 48 * GIB, 52 * GIB),
        ("graphs", 3 * GIB, None),
        ("activations and workspace", None, 4 * GIB),
        ("left free", 11 * GIB, None),
    ]
    assert (lines["graphs"].old_as, lines["weights"].old_as) == ("graphs, prefill graphs", None)
    assert lines["left free"].new == Unknown(because="vLLM does not state it")


def test_a_line_that_holds_several_is_shown_once() -> None:
    lines = ledger(other.trtllm(), make.vllm())
    assert lines["libraries and communication"].old_as == "outside torch, with graphs"
    assert lines["graphs"].old == Unknown(because="counted with libraries and communication")


def test_what_has_no_shared_word_is_other_and_what_is_no_use_is_left_out() -> None:
    line = ledger(other.trtllm(), make.vllm())["other"]
    assert (plain(line.old), line.old_as) == (GIB, "sampler")
    assert "torch may use" not in {one.old_as for one in ledger(other.trtllm(), make.vllm()).values()}


def test_an_unknown_part_makes_the_sum_unknown() -> None:
    old = make.with_term("prefill graphs", Unknown(because="not printed"))(other.sglang())
    assert ledger(old, make.vllm())["graphs"].old == Unknown(because="not printed")


def test_captured_graphs_stand_in_for_a_line_of_the_ledger() -> None:
    rank = make.vllm().instances[0].ranks[0]
    graphs = rank.graphs.model_copy(update={"bytes": make.measured(GIB)})
    line = ledger(other.sglang(), make.with_rank(rank.model_copy(update={"graphs": graphs}))(make.vllm()))["graphs"]
    assert (plain(line.new), line.new_as) == (GIB, "as captured, outside its ledger")


def test_two_engines_have_no_waterfall() -> None:
    assert diff(other.sglang(), make.vllm()).waterfalls == ()


def test_which_rank_it_is() -> None:
    instance = other.sglang().instances[0]
    two = other.sglang().model_copy(update={"instances": (instance.model_copy(update={"ranks": instance.ranks * 2}),)})
    assert across(two, make.vllm()).ledger_of == "SGLang: cuda:0, the first of 2 that it states; vLLM: cuda:0"


# --- rules --------------------------------------------------------------------------------------------------------


def test_rules_and_processes_are_told_whole_and_are_no_findings() -> None:
    found = diff(other.sglang(), make.vllm())
    assert found.across is not None
    told = {one.name: (plain(one.old), plain(one.new)) for one in found.across.decisions}
    assert told["preemption"] == ("retract", "recompute")
    assert told["processes"] == (
        "detokenizer (detokenise), scheduler (schedule, execute), tokenizer (http, tokenise)",
        "engine core (schedule, execute), front end (http, tokenise, detokenise)",
    )
    assert {f.kind for f in found.findings} <= {"SettingNotCarried", "PoolDiffers", "SettingDiffers", "MeaningDiffers"}


def test_words_without_a_setting() -> None:
    names = [one.name for one in across(other.sglang(), make.vllm()).other_meanings]
    assert names == [
        "tokens that the KV cache holds",
        "requests that fit at once",
        "memory for weights",
        "GB in its log",
    ]


# --- what only one has --------------------------------------------------------------------------------------------


def test_what_has_no_counterpart() -> None:
    one_sided = across(other.sglang(), make.vllm()).one_sided
    assert [(one.side, one.what, one.by_user, one.counterpart) for one in one_sided] == [
        ("old", "--watchdog-timeout 600", True, None),
        ("old", "--served-model-name prod", True, "--served-model-name"),
        ("old", "SGLANG_EXAMPLE=1", True, None),
        ("old", "load.warmup", False, None),
        ("new", "scheduler.reserve_full_prompt", False, None),
        ("new", "kernels.ir_op_priority", False, None),
    ]


@pytest.mark.parametrize(
    ("arguments", "typed"),
    [
        (("--max-running-requests", "512"), []),
        (("--max-running-requests=512",), []),
        (("--flag=a", "--other", "1", "2", "-x"), ["--flag=a", "--other 1 2", "-x"]),
        (("--bias", "-1.5"), ["--bias -1.5"]),
        (("word",), []),
        ((), []),
    ],
)
def test_flags_as_they_were_typed(arguments: tuple[str, ...], typed: list[str]) -> None:
    old = make.with_launch(arguments=arguments, variables={})(other.sglang())
    assert [one.what for one in across(old, make.vllm()).one_sided if one.by_user] == typed


def test_a_canonical_setting_that_the_other_engine_lacks_says_what_is_lost() -> None:
    cells = make.with_setting("kv.unified", make.setting(value=True, origin="user", asked=True, word="--kv-unified"))
    first = across(cells(make.llamacpp()), make.vllm()).one_sided[0]
    assert (first.what, first.by_user) == ("kv.unified", True)
    assert isinstance(first.value, Known)
    assert first.why


def test_a_flag_that_the_other_engine_has_no_word_for() -> None:
    old = make.with_launch(arguments=("--download-dir", "/m"))(make.vllm())
    (lost,) = (one for one in across(old, make.llamacpp()).one_sided if one.what == "--download-dir /m")
    assert (lost.counterpart, lost.why) == (None, "llama.cpp has no flag for the folder of downloads")


# --- starts -------------------------------------------------------------------------------------------------------

STARTS: list[tuple[str, Capture, Capture, str | None, str]] = [
    ("both serve", other.sglang(), make.vllm(), None, ""),
    (
        "the new one does not",
        other.sglang(),
        make.failed()(make.vllm()),
        "StartRefused",
        "vllm 0.32.0 does not start: out of memory: the KV cache does not fit",
    ),
    (
        "the old one did not",
        make.failed("no port")(other.sglang()),
        make.vllm(),
        "StartsAlone",
        "vLLM starts; SGLang does not: no port",
    ),
    (
        "neither",
        make.failed("no port")(other.sglang()),
        make.failed("no GPU")(make.vllm()),
        "NeitherStarts",
        "neither starts; SGLang: no port; vLLM: no GPU",
    ),
    (
        "it died",
        other.sglang(),
        died_serving()(make.vllm()),
        "DiedServing",
        "vllm 0.32.0 died while it served: out of memory: a request of 40,000 tokens",
    ),
]


@pytest.mark.parametrize(
    ("old", "new", "kind", "headline"), [case[1:] for case in STARTS], ids=[case[0] for case in STARTS]
)
def test_starts(old: Capture, new: Capture, kind: str | None, headline: str) -> None:
    found = [f for f in diff(old, new).findings if f.area == "startup"]
    assert [(f.kind, f.headline) for f in found] == ([(kind, headline)] if kind else [])
    assert all(f.pin.text is None for f in found)


def test_a_log_that_breaks_off_is_told_by_its_engine() -> None:
    old = ended("breaks off")(from_log(other.sglang()))
    first = diff(old, make.vllm()).not_compared[0]
    assert (first.what, first.because) == ("start-up", "the log of SGLang breaks off before its end")
