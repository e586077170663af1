"""SGLang's tables against what was read of all its releases: fields, flags and variables by AST, rules by their text.

``data/history.json``: ``fields`` and ``variables`` map a name to its runs (first release, last release, declared
default), ``flags`` to runs without a default; ``behaviours`` are texts of a file of ``sglang/srt`` that appeared, or
went, in a release. A default in angle brackets is an expression.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from engdiff.diff.compare import compare
from engdiff.engines.sglang.engine import ENGINE
from engdiff.engines.sglang.normalize import KNOWLEDGE
from engdiff.knowledge.settings import AREAS, registry
from engdiff.knowledge.tables import Change
from engdiff.schema.capture import Capture
from engdiff.schema.diff import Diff, Finding
from tests import factories as make
from tests.diff import other_engines as other
from tests.factories import GIB
from tests.factories import Change as Edit

HISTORY: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "history.json").read_text(encoding="utf-8"))
RELEASES: list[str] = HISTORY["releases"]
CHANGES = KNOWLEDGE.changes
MISSING = "(not there)"

OWN_NAMES = {
    "command_line.old_flags",
    "graphs.configuration",
    "kernels.flashinfer_decode",
    "memory.multimodal_reserve",
    "memory.no_room_for_kv",
    "memory.sliding_window_cell",
    "scheduler.admission",
    "scheduler.retraction",
}
"""Changes of what no setting says."""

HANDED_OUT = {"kv.pool_bytes"}
"""Keys of findings that are no settings."""


def name_of(change: Change) -> str:
    return f"{change.key}-{change.since}-{change.kind}"


def before(release: str) -> str:
    return RELEASES[RELEASES.index(release) - 1]


def at(kind: str, name: str, release: str) -> Any:
    """The declared default at a release, or that it is not there."""
    for first, last, *default in HISTORY[kind].get(name, ()):
        if RELEASES.index(first) <= RELEASES.index(release) <= RELEASES.index(last):
            return default[0] if default else None
    return MISSING


def field_of(key: str, release: str) -> str:
    """The field of ServerArgs behind a key."""
    names = KNOWLEDGE.names(release).get(key)
    return (names.native if names and names.native else key).split(".")[0]


def word(value: Any) -> str:
    return "none" if value is None else str(value).lower()


# --- every entry names what is there -----------------------------------------------------------------------------


@pytest.mark.parametrize("change", CHANGES, ids=name_of)
def test_a_change_names_a_release_a_key_and_a_way_back(change: Change) -> None:
    assert change.since in RELEASES[1:]
    known = change.key in registry() or change.key in HISTORY["fields"] or change.key.startswith("cuda_graph_config.")
    assert known or "env" in change.extra or change.key in OWN_NAMES | HANDED_OUT
    assert (change.pin is None) != (change.no_pin is None) or change.kind == "added"
    assert re.fullmatch(r"(?s).*\d+\.\d+\.\d+.*", change.source)
    for text in (change.summary, change.matters):
        assert text.endswith(".")
        assert "  " not in text


@pytest.mark.parametrize("change", CHANGES, ids=name_of)
def test_a_pin_is_heard_by_the_release_that_needs_it(change: Change) -> None:
    for flag in re.findall(r"(?<!\S)--[\w-]+", change.pin or ""):
        assert at("flags", flag, change.since) is None, flag
    for variable in re.findall(r"SGLANG_\w+(?==)", change.pin or ""):
        assert at("variables", variable, change.since) != MISSING, variable


@pytest.mark.parametrize("change", CHANGES, ids=name_of)
def test_conditions_name_settings(change: Change) -> None:
    for key in change.when:
        assert key in KNOWLEDGE.names(change.since) or at("fields", key, change.since) != MISSING or key in registry()


# --- every `since` is true ---------------------------------------------------------------------------------------

RESOLVED = {
    ("enable_tf32_matmul", "0.5.23"): "the new value is what models make of an unset one",
    ("mm_enable_dp_encoder", "0.5.23"): "the new value is what models make of an unset one",
    ("hicache_io_backend", "0.4.10.post1"): "the old value is empty",
    ("pre_warm_nccl", "0.5.14"): "the old value is an expression",
}


@pytest.mark.parametrize("change", [c for c in CHANGES if c.kind == "default"], ids=name_of)
def test_a_default_moved_in_that_release(change: Change) -> None:
    if change.key == "cuda_graph_config.prefill.backend":
        return  # made by a factory: told among the behaviours
    variable = change.extra.get("env")
    kind, name = ("variables", variable) if variable else ("fields", field_of(change.key, change.since))
    old, new = at(kind, name, before(change.since)), at(kind, name, change.since)
    assert MISSING not in (old, new)
    assert repr(old) != repr(new)
    if (change.key, change.since) not in RESOLVED:
        stated = change.extra["old"], change.extra["new"]
        assert (word(evaluated(old)), word(evaluated(new))) == tuple(map(word, stated))


def evaluated(default: Any) -> Any:
    """Products are written out in SGLang's source."""
    found = re.fullmatch(r"<(\d+) \* (\d+)>", str(default))
    return int(found[1]) * int(found[2]) if found else default


@pytest.mark.parametrize("change", [c for c in CHANGES if c.kind == "renamed"], ids=name_of)
def test_a_field_was_renamed_in_that_release(change: Change) -> None:
    assert change.old_native is not None
    assert change.new_native is not None
    assert at("fields", change.old_native, before(change.since)) != MISSING
    assert at("fields", change.old_native, change.since) == MISSING
    assert at("fields", change.new_native.split(".")[0], change.since) != MISSING


@pytest.mark.parametrize("change", [c for c in CHANGES if c.kind == "removed" and c.old_native], ids=name_of)
def test_a_field_went_in_that_release(change: Change) -> None:
    assert change.old_native is not None
    assert at("fields", change.old_native, before(change.since)) != MISSING
    assert at("fields", change.old_native, change.since) == MISSING


@pytest.mark.parametrize("change", [c for c in CHANGES if c.kind == "added"], ids=name_of)
def test_a_field_came_in_that_release(change: Change) -> None:
    assert change.new_native is not None
    assert at("fields", change.new_native, before(change.since)) == MISSING
    assert at("fields", change.new_native, change.since) != MISSING


@pytest.mark.parametrize("change", [c for c in CHANGES if c.kind == "behaviour"], ids=name_of)
def test_a_rule_moved_in_that_release(change: Change) -> None:
    read = [b for b in HISTORY["behaviours"] if (b["key"], b["since"]) == (change.key, change.since)]
    assert read
    assert all(b["before"] == before(change.since) for b in read)


GONE_AT_ONCE = (
    "--cuda-graph-max-bs",
    "--cuda-graph-bs",
    "--disable-piecewise-cuda-graph",
    "--mamba-scheduler-strategy",
    "--nsa-prefill-backend",
)


def test_old_flags_went_together() -> None:
    for flag in GONE_AT_ONCE:
        assert at("flags", flag, "0.5.19") is None
        assert at("flags", flag, "0.5.20") == MISSING


# --- nothing that moved is left out ------------------------------------------------------------------------------

SAME = {
    "kt_method": "its flag had the default before, as shipped profiles show",
    "kt_threadpool_count": "likewise",
    "hicache_ratio": "unset becomes 2.0, as before",
    "swa_full_tokens_ratio": "unset becomes 0.8, as before",
    "mamba_full_memory_ratio": "unset becomes 0.9, as before",
    "dcp_comm_backend": "unset becomes ag_rs, as before",
    "prefill_decode_interval": "unset becomes 0, as before",
    "uvicorn_access_log_exclude_prefixes": "both are empty",
    "encoder_transfer_backend": "auto becomes zmq_to_scheduler, as before",
    "SGLANG_CUDA_COREDUMP_DIR": "where things lie",
    "SGLANG_DG_CACHE_DIR": "where things lie",
    "SGLANG_DISAGGREGATION_SAMPLING_MASK_MAX_TOKENS": "a flag has the default",
}
"""Declared defaults that moved and led to the same."""


def moves(kind: str) -> Iterator[tuple[str, str]]:
    """Every declared default that moved: name and release."""
    for name, runs in HISTORY[kind].items():
        for (_, last, old), (first, _, new) in itertools.pairwise(runs):
            if RELEASES.index(first) == RELEASES.index(last) + 1 and word(old) != word(new):
                yield name, first


@pytest.mark.parametrize("kind", ["fields", "variables"])
def test_every_default_that_moved_is_told_or_led_to_the_same(kind: str) -> None:
    told = {(field_of(c.key, c.since), c.since) for c in CHANGES} | {(c.extra.get("env"), c.since) for c in CHANGES}
    assert {move for move in moves(kind) if move not in told and move[0] not in SAME} == set()


# --- names -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", RELEASES)
def test_flags_and_fields_of_canonical_settings(release: str) -> None:
    for key, names in KNOWLEDGE.names(release).items():
        if names.native is None or at("fields", names.native.split(".")[0], release) == MISSING:
            continue  # this release has no such setting
        assert names.flag is not None, key
        assert at("flags", names.flag, release) is None, key
        assert names.arg is not None, key
        assert at("fields", names.arg, release) != MISSING, key
        written = [names.pin] if isinstance(names.pin, str) else list((names.pin or {}).values())
        for text in written:
            assert at("flags", text.split()[0], release) is None, key


# --- noise, areas, conditions ------------------------------------------------------------------------------------

TOLD = {"disable_piecewise_cuda_graph", "batch_notify_size", "media_url_max_file_size_mb"}
"""New fields whose default does something: they show."""


def test_new_fields_that_do_nothing_are_hidden() -> None:
    canonical = {names.native for r in RELEASES for names in KNOWLEDGE.names(r).values()}
    everywhere = {name for name, runs in HISTORY["fields"].items() if runs[0][0] == RELEASES[0] and whole(runs)}
    for name, runs in HISTORY["fields"].items():
        if name in everywhere | canonical | {"cuda_graph_config"} or KNOWLEDGE.is_noise(name):
            continue
        shows = [default for _, _, default in runs if not expression(default) and not KNOWLEDGE.is_inert(name, default)]
        assert bool(shows) is (name in TOLD), name


def whole(runs: list[list[Any]]) -> bool:
    return runs[-1][1] == RELEASES[-1] and all(
        RELEASES.index(a[1]) + 1 == RELEASES.index(b[0]) for a, b in itertools.pairwise(runs)
    )


def expression(default: Any) -> bool:
    return isinstance(default, str) and default.startswith("<")


def test_areas_and_noise_are_of_known_leaves() -> None:
    known = {*HISTORY["fields"], *(f"variables.{name}" for name in HISTORY["variables"]), "variables"}
    areas = KNOWLEDGE._noise["areas"]
    assert set(areas.values()) <= set(AREAS)
    assert {key for key in areas if key.split(".")[0] not in known and key not in known} == set()
    canonical = {n.native for n in KNOWLEDGE.names(RELEASES[-1]).values() if n.native}
    assert {path for path in canonical if KNOWLEDGE.is_noise(path)} == set()
    assert KNOWLEDGE.area("variables.SGLANG_NEW_ONE") == "kernels"


def test_conditions_are_of_known_settings() -> None:
    leaves = {*HISTORY["fields"], *(f"variables.{name}" for name in HISTORY["variables"]), *registry()}
    leaves |= {f"cuda_graph_config.{phase}.{part}" for phase in ("decode", "prefill") for part in ("bs", "max_bs")}
    for row in KNOWLEDGE._read("acts.toml")["acts"]:
        assert any(fnmatchcase(leaf, row["pattern"]) for leaf in leaves), row
        assert row["says"].endswith(".")
        for need in [row["if"]] if isinstance(row["if"], str) else row["if"]:
            kind, colon, rest = need.partition(":")
            key = re.split("[=>.]" if colon else "[=>]", (rest if colon else need).removeprefix("!"))[0]
            assert kind in ("device", "group") or key in (HISTORY["fields"] if colon else registry()), row


def test_a_switch_is_not_called_idle_when_it_is_turned_off() -> None:
    """What turns a group of options on acts by being turned off."""
    switches = ("enable_lora", "lora_paths", "disaggregation_mode", "enable_hierarchical_cache", "encoder_only")
    for name in (*switches, "dllm_algorithm", "elastic_ep_backend", "kt_weight_path", "lora.enabled"):
        assert KNOWLEDGE.acts_if(name) == (), name


# --- regressions of which users reported -------------------------------------------------------------------------


def side(version: str, *edits: Edit) -> Capture:
    return make.both(*edits)(other.sglang(version))


def held(key: str, value: Any) -> Edit:
    return make.with_setting(key, make.setting(value, "derived"))


def field(name: str, value: Any) -> Edit:
    return make.with_native(f"server_args.{name}", value)


def layers(kind: Any) -> Edit:
    """A model that has layers of this kind beside its full-attention ones."""

    def apply(capture: Capture) -> Capture:
        rank = capture.instances[0].ranks[0]
        group = rank.pools[0].groups[0].model_copy(update={"kind": kind})
        pool = rank.pools[0].model_copy(update={"groups": (*rank.pools[0].groups, group)})
        return make.with_rank(rank.model_copy(update={"pools": (pool,)}))(capture)

    return apply


def pool(gib: float) -> Edit:
    return make.with_pool(bytes=make.measured(gib * GIB), tokens=make.measured(int(gib * 8192)))


def diff(old: Capture, new: Capture) -> Diff:
    return compare(old, new, old_label="old.json", new_label="new.json")


def told(old: Capture, new: Capture, key: str) -> Finding:
    return next(f for f in diff(old, new).findings if f.key == key)


EAGLE = held("speculative.method", "EAGLE")
WINDOWS, STATES = layers("sliding window"), layers("state")
FREES = "variables.SGLANG_OPT_UNIFIED_CACHE_FREE_OUT_OF_WINDOW_SLOTS"
REPLAY, STRATEGY = "enable_linear_replayssm", "mamba_radix_cache_strategy"

ANSWERED: dict[str, tuple[Capture, Capture, str, str, str | None, str | None]] = {
    "case-063: a variable's default frees slots out of the window": (
        side("0.5.17", WINDOWS, make.with_native(FREES, value=False)),
        side("0.5.18", WINDOWS, make.with_native(FREES, value=True)),
        FREES,
        "decoding on long shared prefixes became slower",
        "0.5.18",
        "SGLANG_OPT_UNIFIED_CACHE_FREE_OUT_OF_WINDOW_SLOTS=0",
    ),
    "case-066: the same share counts the draft model": (
        side("0.5.13", EAGLE, pool(48)),
        side("0.5.14", EAGLE, pool(44)),
        "kv.pool_bytes",
        "The same --mem-fraction-static gives a smaller pool of the target model",
        "0.5.14",
        None,
    ),
    "case-074: the indexer's keys count": (
        side("0.5.3", held("kernels.attention_backend", "nsa"), pool(54.5)),
        side("0.5.3.post1", held("kernels.attention_backend", "nsa"), pool(43.7)),
        "kv.pool_bytes",
        "the smaller number is the true one",
        "0.5.3.post1",
        None,
    ),
    "case-112: prefill graphs of a multimodal model": (
        side("0.5.15.post1", field("cuda_graph_config.prefill.backend", "disabled")),
        side("0.5.16", field("cuda_graph_config.prefill.backend", "tc_piecewise")),
        "server_args.cuda_graph_config.prefill.backend",
        "Kimi-K2.6 in NVFP4 on GB300 lost 3.7 % of its throughput",
        "0.5.16",
        "--cuda-graph-backend-prefill disabled",
    ),
    "case-064: one flag changed another": (
        side("0.5.23", STATES, field(REPLAY, value=False), field(STRATEGY, "extra_buffer")),
        side("0.5.23", STATES, field(REPLAY, value=True), field(STRATEGY, "no_buffer")),
        f"server_args.{STRATEGY}",
        "",
        None,
        "--mamba-radix-cache-strategy extra_buffer",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "key", "why", "since", "pin"), ANSWERED.values(), ids=ANSWERED)
def test_a_regression_is_answered(
    old: Capture, new: Capture, key: str, why: str, since: str | None, pin: str | None
) -> None:
    found = told(old, new, key)
    assert why in found.why
    assert (found.since, found.pin.text) == (since, pin)
    assert found.area != "cosmetic"


def test_one_flag_that_changed_another_shows_both() -> None:
    old, new, *_ = ANSWERED["case-064: one flag changed another"]
    keys = {f.key for f in diff(old, new).findings}
    assert {f"server_args.{REPLAY}", f"server_args.{STRATEGY}"} <= keys


@pytest.mark.parametrize(
    ("key", "word_", "old", "new"),
    [
        ("kv.gpu_memory_utilization", "--mem-fraction-static", 0.82, 0.9),
        ("parallel.dp", "--dp-size", 1, 8),
    ],
    ids=["case-040: a larger share", "case-046: the two commands differ"],
)
def test_what_the_user_wrote_differently_is_told_as_such(key: str, word_: str, old: Any, new: Any) -> None:
    def written(value: Any) -> Capture:
        asked = make.setting(value, "user", asked=value, word=word_)
        words = make.with_launch(arguments=(word_, str(value)))
        return side("0.4.5", make.with_setting(key, asked), words)

    found = told(written(old), written(new), key)
    assert found.asked


def test_another_flashinfer_shows_as_a_package() -> None:
    """case-050: its `auto` took other kernels; SGLang's own configuration is the same."""

    def with_flashinfer(version: str, flashinfer: str) -> Capture:
        return side(version, make.with_environment(packages={"flashinfer-python": flashinfer}))

    moved = diff(with_flashinfer("0.5.7", "0.5.3"), with_flashinfer("0.5.8", "0.6.1")).packages
    assert [(p.name, p.old, p.new) for p in moved] == [("flashinfer-python", "0.5.3", "0.6.1")]


FAILURES = {
    "case-041: weights and draft beyond the share": (
        "ValueError: Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=0.88. "
        "Raise --mem-fraction-static above 0.914 (= 1 - available/pre = 0.9113)",
        "nothing is left for the KV cache",
    ),
    "case-043: the workspace of a back end": (
        "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 51.75 GiB. GPU 0 has a total capacity of 288 GiB",
        "--mem-fraction-static",
    ),
    "case-044: memory outside the share, while serving": (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.50 GiB. GPU 0 has a total capacity of 80 GiB",
        "--mem-fraction-static",
    ),
}


@pytest.mark.parametrize(("log", "says"), FAILURES.values(), ids=FAILURES)
def test_a_failure_is_explained(log: str, says: str) -> None:
    cause = ENGINE.cause(log, "exit code 1")
    assert cause is not None
    assert says in f"{cause.sentence} {cause.advice}"


NOT_SEEN = {
    "case-042": "no setting moved: the release sizes the pools of sliding-window layers by another formula (0.5.9)",
    "case-047": "the cause was not established; the resolved attention back end is compared",
    "case-048": "a change of code between two commits; the cause was not established",
    "case-049": "a change of code between two commits (translation of page tables)",
    "case-076": "a fault of the detokenizer's code; no setting has to do with it",
    "case-080": "a change of code between two commits; the cause was not established",
}
"""Reported regressions that no decided configuration shows, and why."""


def test_every_reported_regression_has_its_place() -> None:
    seen = [*ANSWERED, *FAILURES, "case-040", "case-046", "case-050"]
    assert {name[:8] for name in seen} | set(NOT_SEEN) == {
        f"case-{n:03}" for n in (40, 41, 42, 43, 44, 46, 47, 48, 49, 50, 63, 64, 66, 74, 76, 80, 112)
    }


# --- which change explains a move --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "versions", "platform", "new", "settings", "since"),
    [
        ("lora.backend", ("0.5.2", "0.5.6"), "cpu", "csgmv", {}, "0.5.4.post2"),
        ("lora.backend", ("0.5.3", "0.5.3.post3"), "cpu", "csgmv", {}, "0.5.3.post3"),
        ("lora.backend", ("0.5.3.post3", "0.5.4"), "cpu", "triton", {}, "0.5.4"),
        ("lora.backend", ("0.5.4.post2", "0.5.23"), "cpu", "csgmv", {}, None),
        ("kv.gpu_memory_utilization", ("0.5.18", "0.5.23"), "cuda", 0.684, {"graphs.max_capture_size": 48}, "0.5.20"),
        ("kv.gpu_memory_utilization", ("0.5.18", "0.5.23"), "cuda", 0.83, {"graphs.max_capture_size": 256}, None),
        ("kv.gpu_memory_utilization", ("0.5.2", "0.5.4"), "cuda", 0.835, {"graphs.max_capture_size": 256}, "0.5.3"),
        ("kv.gpu_memory_utilization", ("0.5.9", "0.5.12"), "cuda", 0.83, {}, "0.5.10"),
        ("kv.gpu_memory_utilization", ("0.5.12", "0.5.15"), "cuda", 0.83, {"speculative.method": "EAGLE"}, "0.5.14"),
        ("kv.gpu_memory_utilization", ("0.5.12", "0.5.15"), "cuda", 0.83, {"speculative.method": None}, None),
        ("kv.gpu_memory_utilization", ("0.4.6", "0.5.4"), "cpu", 0.8, {}, "0.5.3"),
        ("scheduler.max_num_batched_tokens", ("0.5.18", "0.5.20"), "cpu", 4096, {}, "0.5.20"),
        ("scheduler.max_num_batched_tokens", ("0.5.18", "0.5.20"), "cuda", 4096, {}, None),
        ("graphs.max_capture_size", ("0.5.21", "0.5.22"), "cuda", 64, {"scheduler.max_num_seqs": 64}, "0.5.22"),
        ("graphs.max_capture_size", ("0.5.18", "0.5.23"), "cuda", 48, {"scheduler.max_num_seqs": 256}, "0.5.20"),
        ("scheduler.async_scheduling", ("0.5.9", "0.5.15"), "cuda", True, {"speculative.method": "EAGLE"}, "0.5.11"),
        ("scheduler.async_scheduling", ("0.5.12", "0.5.15"), "cuda", True,
         {"mamba_radix_cache_strategy": "extra_buffer"}, "0.5.14"),
        ("kv.cache_class", ("0.5.12", "0.5.23"), "cpu", "UnifiedRadixCache", {"kv.prefix_caching": True}, "0.5.19"),
        ("kv.cache_class", ("0.5.12", "0.5.23"), "cpu", "UnifiedRadixCache", {"kv.prefix_caching": False}, "0.5.22"),
        ("kernels.attention_backend", ("0.5.6", "0.5.9"), "cuda", "trtllm_mha", {}, "0.5.6.post1"),
        ("kernels.attention_backend", ("0.4.6", "0.4.10"), "cuda", "flashinfer", {}, "0.4.7"),
        ("kernels.attention_backend", ("0.4.6", "0.4.10"), "cuda", "flashinfer",
         {"enable_hierarchical_cache": True}, "0.4.9.post4"),
        ("variables.SGLANG_UNIFIED_RADIX_TREE_CORE_BACKEND", ("0.5.20", "0.5.23"), "cpu", "rust", {}, "0.5.21"),
    ],
)  # fmt: skip
def test_the_change_that_explains_a_move(
    key: str, versions: tuple[str, str], platform: str, new: object, settings: dict[str, object], since: str | None
) -> None:
    change = KNOWLEDGE.change(key, versions, platform, new, settings)
    assert (change.since if change else None) == since


def test_a_change_is_no_newer_than_the_release_it_names() -> None:
    assert all(Version(RELEASES[0]) < Version(c.since) <= Version(RELEASES[-1]) for c in CHANGES)
