"""An engine's knowledge: the files of both engines are sound, and the rules by which they are read."""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from string import Formatter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from engdiff import engines
from engdiff.knowledge.settings import AREAS, registry
from engdiff.knowledge.tables import Change, Knowledge
from engdiff.knowledge.versions import release

VERSIONS = {
    "vllm": ("0.10.0", "0.10.2", "0.11.0", "0.11.2", "0.12.0", "0.12.0.post2", "0.17.0", "0.20.2", "0.28.0", "0.33.0"),
    "sglang": ("0.4.6", "0.4.10.post2", "0.5.4", "0.5.12", "0.5.23"),
    "trtllm": ("0.18.2", "0.21.0", "1.0.0", "1.1.0rc3", "1.2.1", "1.3.0rc5", "1.3.0rc22", "1.4.0rc4"),
    "llamacpp": ("0.2.7", "0.2.14", "2026.4.8672.1", "2026.8.10229", "2026.9.11063", "2026.10.11549"),
}
ENGINES = tuple(VERSIONS)
FILES = [
    path for engine in ENGINES for path in sorted(Path(str(files(f"engdiff.engines.{engine}"))).glob("knowledge/*"))
]
PART = re.compile(r"\w+_config\.")
"""A leaf of a part of vLLM's configuration; fields of SGLang's flat arguments have no dot."""

OWN_FACTS = {"memory.formula", "runner.fallback", "structured_outputs.mask"}
"""Keys of facts that are about no canonical setting and no change."""

KINDS = {"default", "behaviour", "renamed", "removed", "added"}


def knowledge(engine: str) -> Knowledge:
    return engines.get(engine).knowledge


# --- the files of both engines ----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.parent.name}-{p.name}")
def test_no_file_knows_a_machine(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    tomllib.loads(text)
    found = re.findall(
        r"(?<![\w.])/(?:work|root|home|tmp)/\S*|https?://[^\s\"']*(?:pypi|index|simple|mirror|artifact)\S*", text
    )
    assert found == []


@pytest.mark.parametrize(("engine", "version"), [(e, v) for e, versions in VERSIONS.items() for v in versions])
def test_names_load_at_every_version(engine: str, version: str) -> None:
    names = knowledge(engine).names(version)
    assert names
    for key, entry in names.items():
        assert entry.key == key
        for text in (entry.native, entry.flag, entry.arg, entry.variable):
            assert text is None or (text and text == text.strip())
        assert entry.flag is None or entry.flag.startswith("-")
        assert entry.variable is None or re.fullmatch(r"[A-Z][A-Z0-9_]*", entry.variable)
        assert entry.variable_unit in (None, "GiB")
        _check_pin(entry.pin)


def _check_pin(pin: Any) -> None:
    if isinstance(pin, str):
        assert pin.format(value="x").strip()
        assert {name for _, name, _, _ in Formatter().parse(pin) if name is not None} <= {"value"}
    elif pin is not None:
        assert set(pin) <= {"true", "false"}
        assert all(pin.values())


@pytest.mark.parametrize("engine", ENGINES)
def test_changes_are_sound(engine: str) -> None:
    for change in knowledge(engine).changes:
        where = f"{change.key} {change.since}"
        release(change.since)
        assert change.kind in KINDS, where
        assert change.platform in ("any", "cpu", "cuda"), where
        assert change.area in (None, *AREAS), where
        assert change.summary, where
        assert change.matters, where
        assert change.source, where
        if last := change.extra.get("last_without"):
            assert Version(last) < Version(change.since), where
        if change.kind == "renamed" and change.old_native and change.new_native:
            assert change.old_native != change.new_native, where
        assert re.findall(r"{\w*}", change.pin or "") in ([], ["{old}"]), where
        named = {key for key in change.when if "." in key and not PART.match(key)}
        assert named <= set(knowledge(engine).names(VERSIONS[engine][-1])), where


@pytest.mark.parametrize("engine", ENGINES)
def test_facts_are_sound(engine: str) -> None:
    own = {change.key for change in knowledge(engine).changes}
    for fact in knowledge(engine).facts:
        where = f"{fact.key} {fact.since}"
        assert fact.says[0].isupper() or fact.says[0].isdigit(), where
        assert fact.says.endswith("."), where
        assert fact.source, where
        assert fact.platform in ("any", "cpu", "cuda"), where
        assert fact.key in registry() or fact.key in own or fact.key in OWN_FACTS, where
        if fact.since and fact.until:
            assert release(fact.since) <= release(fact.until), where


@pytest.mark.parametrize("engine", ENGINES)
def test_failures_are_sound(engine: str) -> None:
    failures = knowledge(engine).failures
    assert [f.priority for f in failures] == sorted((f.priority for f in failures), reverse=True)
    for failure in failures:
        groups = dict.fromkeys(failure.pattern.groupindex, "x")
        assert failure.cause.format_map(groups), failure.pattern.pattern
        assert failure.advice.format_map(groups), failure.pattern.pattern


@pytest.mark.parametrize("engine", ENGINES)
def test_noise_areas_and_conditions_are_sound(engine: str) -> None:
    read = knowledge(engine)._read("noise.toml")
    assert set(read["areas"].values()) <= set(AREAS)
    assert all(row["pattern"] and row["reason"] for row in read["paths"])
    assert all(row["path"] and "value" in row for row in read.get("inert", ()))
    for row in knowledge(engine)._read("acts.toml")["acts"]:
        assert row["says"].endswith(".")
        for need in [row["if"]] if isinstance(row["if"], str) else row["if"]:
            kind, colon, rest = need.partition(":")
            assert rest if colon else re.fullmatch(r"!?[\w.]+(?:[=>].+)?", need), row
            assert not colon or kind in ("group", "device", "native", "runner"), row
            key = re.split("[=>]", need.removeprefix("!"))[0]
            assert colon or key in knowledge(engine).names(VERSIONS[engine][-1]), row


@pytest.mark.parametrize("engine", ENGINES)
def test_known_versions_are_newest_first(engine: str) -> None:
    for distribution in engines.get(engine).distributions:
        known = engines.get(engine).known_versions(distribution)
        assert [release(v) for v in known] == sorted(map(release, known), reverse=True)
        assert len(set(known)) == len(known)


@pytest.mark.parametrize("engine", ENGINES)
def test_every_leaf_of_a_canonical_setting_shows(engine: str) -> None:
    """A setting that is compared by its key must not be called noise where its value lies."""
    table = knowledge(engine)
    hidden = {n.native for n in table.names(VERSIONS[engine][-1]).values() if n.native and table.is_noise(n.native)}
    assert hidden <= {"model.path", "model_config.model"}


# --- how they are read, on tables made for it -------------------------------------------------------------------

CHANGES = """
[[change]]
key = "a.b"
since = "2.0"
kind = "default"
new = 0.9
summary = "two"
matters = "m"
source = "s"
old_native = "x.old"
new_native = "x.new"
pin = "--b {old}"
env = "A_B"

[[change]]
key = "a.b"
since = "3.0"
kind = "default"
new = true
platform = "cpu"
summary = "three"
matters = "m"
source = "s"

[[change]]
key = "a.b"
since = "4.0"
kind = "behaviour"
when = { "c.d" = 1 }
summary = "four"
matters = "m"
source = "s"
pin = "--b N"
area = "cosmetic"

[[change]]
key = "g.h"
since = "2.0"
kind = "default"
new = [1, 2]
summary = "exact"
matters = "m"
source = "s"

[[change]]
key = "g.h"
since = "3.0"
kind = "behaviour"
summary = "open"
matters = "m"
source = "s"

[[change]]
key = "g.h"
since = "2.5"
kind = "behaviour"
when = { "c.d" = ">1", "p.q" = "none" }
summary = "two conditions"
matters = "m"
source = "s"

[[change]]
key = "e.f"
since = "2.5"
kind = "renamed"
old_native = "p.q"
new_native = "p.r"
summary = "moved"
matters = "m"
source = "s"
"""
NOISE = """
[[paths]]
pattern = "port"
[[paths]]
pattern = "*.random_*"
[[paths]]
pattern = "list[0-9]"
[[inert]]
path = "new.switch"
value = false
[[inert]]
path = "new.text"
value = "none"
[[inert]]
path = "new.number"
value = 0.0
[[inert]]
path = "new.number"
value = 7
[areas]
"a" = "memory"
"a.b" = "numerics"
"a.b.c" = "startup"
"""
ACTS = """
[[acts]]
pattern = "a.*"
if = "device:gpu"
says = "no GPU."
[[acts]]
pattern = "a.b"
if = ["c.d", "group:mla"]
says = "it is off."
"""
NATIVE = """
["a.b"]
native = [{path = "x.old", until = "1.9"}, {path = "x.new", since = "2.0"}]
flag = "--b"
arg = "b"
env = [{name = "A_B", unit = "GiB", until = "2.0"}]
pin = [{until = "1.9", text = "--b {value}"}, {since = "2.0", true = "--b", false = "--no-b"}]
derived_from = ["c.d"]
["c.d"]
native = "c"
pin = {true = "-c"}
"""
FACTS = """
[[fact]]
key = "a.b"
since = "2.0"
until = "2.9"
says = "It does."
source = "s"
[[fact]]
key = "c.d"
says = "Always."
source = "s"
platform = "cuda"
"""
FAILURES = """
[[failure]]
pattern = "low"
cause = "c"
advice = "a"
priority = 1
[[failure]]
pattern = "usual"
cause = "c"
advice = "a"
unless = "not"
[[failure]]
pattern = "high"
cause = "c"
advice = "a"
priority = 90
multiline = true
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Knowledge]:
    """Tables in a package of their own."""
    folder = tmp_path_factory.mktemp("tables")
    package = folder / "engine_with_made_tables"
    (package / "knowledge").mkdir(parents=True)
    (package / "__init__.py").touch()
    tables = {"changes": CHANGES, "noise": NOISE, "acts": ACTS, "native": NATIVE}
    tables |= {"failures": FAILURES, "facts": FACTS}
    for name, text in tables.items():
        (package / "knowledge" / f"{name}.toml").write_text(text)
    (folder / "engine_without_tables").mkdir()
    (folder / "engine_without_tables" / "__init__.py").touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        yield Knowledge(package.name)


@pytest.mark.parametrize(
    ("key", "versions", "platform", "new", "settings", "summary"),
    [
        ("a.b", ("1.0", "2.0"), "cuda", 0.9, {}, "two"),
        ("a.b", ("1.0", "2.0.post1"), "cuda", 0.9, {}, "two"),
        ("a.b", ("2.0", "1.0"), "cuda", 0.9, {}, "two"),
        ("a.b", ("1.0", "9.0"), "cuda", 0.9, {}, "two"),
        ("a.b", ("2.0", "9.0"), "cuda", 0.9, {}, None),
        ("a.b", ("1.0", "1.9"), "cuda", 0.9, {}, None),
        ("a.b", ("1.0", "2.0"), "cuda", 0.8, {}, None),
        ("a.b", ("1.0", "3.0"), "cpu", True, {}, "three"),
        ("a.b", ("1.0", "3.0"), "cpu", "TRUE", {}, "three"),
        ("a.b", ("1.0", "3.0"), "cuda", True, {}, None),
        ("a.b", ("1.0", "3.0"), "cpu", 0.9, {}, "two"),
        ("a.b", ("3.0", "4.0"), "cpu", "anything", {"c.d": 1}, "four"),
        ("a.b", ("1.0", "4.0"), "cpu", 0.9, {"c.d": 1}, "four"),
        ("a.b", ("1.0", "4.0"), "cpu", 0.9, {"c.d": 2}, "two"),
        ("a.b", ("3.0", "4.0"), "cpu", 0.9, {}, None),
        ("g.h", ("1.0", "4.0"), "cpu", [1, 2], {}, "exact"),
        ("g.h", ("1.0", "4.0"), "cpu", [1, 2, 3], {}, "open"),
        ("g.h", ("2.0", "4.0"), "cpu", [1, 2], {}, "open"),
        ("g.h", ("1.0", "4.0"), "cpu", [1, 2], {"c.d": 2}, "two conditions"),
        ("g.h", ("1.0", "4.0"), "cpu", [1, 2], {"c.d": 1}, "exact"),
        ("g.h", ("1.0", "4.0"), "cpu", [1, 2], {"c.d": "2"}, "exact"),
        ("g.h", ("1.0", "4.0"), "cpu", [1, 2], {"c.d": 2, "p.q": "fp8"}, "exact"),
        ("x.old", ("1.0", "2.0"), "cuda", 0.9, {}, "two"),
        ("x.new", ("1.0", "2.0"), "cuda", 0.9, {}, "two"),
        ("variables.A_B", ("1.0", "2.0"), "cuda", 0.9, {}, "two"),
        ("e.f", ("1.0", "9.0"), "cuda", None, {}, "moved"),
        ("unknown", ("1.0", "9.0"), "cuda", 1, {}, None),
    ],
)
def test_change(
    made: Knowledge,
    key: str,
    versions: tuple[str, str],
    platform: str,
    new: object,
    settings: dict[str, object],
    summary: str | None,
) -> None:
    change = made.change(key, versions, platform, new, settings)
    assert (change.summary if change else None) == summary


def test_parts_of_a_change(made: Knowledge) -> None:
    two, three, four, *_, moved = made.changes
    assert (two.pin, two.pin_is_complete, two.extra) == ("--b {old}", True, {"new": 0.9, "env": "A_B"})
    assert (three.pin, three.pin_is_complete, three.platform) == (None, False, "cpu")
    assert (four.pin_is_complete, four.area, four.when) == (False, "cosmetic", {"c.d": 1})
    assert moved.kind == "renamed"


@pytest.mark.parametrize(
    ("wanted", "settings", "explains"),
    [
        ("*", {"c.d": 0.5}, True),
        ("*", {"c.d": "none"}, False),
        ("*", {"c.d": None}, False),
        ("*", {}, False),
        ("none", {"c.d": None}, True),
        ("none", {}, True),
        ("none", {"c.d": "fp8"}, False),
        (">1", {"c.d": 2}, True),
        (">1", {"c.d": 1}, False),
        (">1", {"c.d": "2"}, False),
        (">1", {}, False),
        ("=new", {"c.d": 48}, True),
        ("=new", {"c.d": 47}, False),
        ("=new", {}, False),
    ],
)
def test_a_condition_of_any_value_or_of_the_same(wanted: str, settings: dict[str, object], explains: bool) -> None:
    change = Change("k", "1.0", "default", "s", "m", "s", when={"c.d": wanted})
    assert change.explains(48, settings) is explains


@pytest.mark.parametrize(
    ("pin", "complete"),
    [
        (None, False),
        ("--flag 5", True),
        ("NAME=0", True),
        ("--kv-cache-memory-bytes BYTES", False),
        ("NAME=GIB", False),
        ("--sizes LIST", False),
        ("--dir DIR", False),
        ("--name NAME", False),
        ("-N", True),
        ("-cc.cudagraph_mode=NONE", True),
    ],
)
def test_pins_that_need_a_word_are_not_complete(pin: str | None, complete: bool) -> None:
    change = Change("k", "1.0", "default", "s", "m", "s", pin=pin)
    assert change.pin_is_complete is complete


@pytest.mark.parametrize(
    ("old", "new", "renamed"),
    [("2.4", "2.5", {"p.q": "p.r"}), ("1.0", "9.0", {"p.q": "p.r"}), ("2.5", "9.0", {}), ("1.0", "2.4", {})],
)
def test_renamed(made: Knowledge, old: str, new: str, renamed: dict[str, str]) -> None:
    assert made.renamed(old, new) == renamed


def test_conditions_of_all_changes(made: Knowledge) -> None:
    assert made.conditions == {"c.d", "p.q"}


def test_names(made: Knowledge) -> None:
    old, new, newer = (made.names(v)["a.b"] for v in ("1.5", "2.0", "2.1"))
    assert (old.native, old.flag, old.arg, old.variable, old.variable_unit) == ("x.old", "--b", "b", "A_B", "GiB")
    assert old.pin == "--b {value}"
    assert (new.native, new.pin, new.variable) == ("x.new", {"true": "--b", "false": "--no-b"}, "A_B")
    assert (newer.variable, newer.variable_unit, newer.derived_from) == (None, None, ("c.d",))
    assert made.names("1.95")["a.b"].native is None
    assert made.names("1.0")["c.d"].pin == {"true": "-c"}


@pytest.mark.parametrize(
    ("path", "noise"),
    [
        ("port", True),
        ("ports", False),
        ("a.port", False),
        ("a.random_id", True),
        ("a.b.random_id.c", True),
        ("random_id", False),
        ("list1", True),
        ("listx", False),
        ("", False),
    ],
)
def test_noise(made: Knowledge, path: str, noise: bool) -> None:
    assert made.is_noise(path) is noise


@pytest.mark.parametrize(
    ("path", "value", "inert"),
    [
        ("new.switch", False, True),
        ("new.switch", True, False),
        ("new.switch", 0, False),
        ("new.text", None, True),
        ("new.text", "None", True),
        ("new.text", "auto", False),
        ("new.number", 0.0, True),
        ("new.number", 7, True),
        ("new.number", 1, False),
        ("other", False, False),
    ],
)
def test_inert(made: Knowledge, path: str, value: object, inert: bool) -> None:
    assert made.is_inert(path, value) is inert


@pytest.mark.parametrize(
    ("path", "area"),
    [
        ("a", "memory"),
        ("a.x", "memory"),
        ("a.b", "numerics"),
        ("a.b.x.y", "numerics"),
        ("a.b.c", "startup"),
        ("a.bc", "memory"),
        ("ab", "cosmetic"),
        ("", "cosmetic"),
    ],
)
def test_area(made: Knowledge, path: str, area: str) -> None:
    assert made.area(path) == area


def test_acts_if(made: Knowledge) -> None:
    both = [(("device:gpu",), "no GPU."), (("c.d", "group:mla"), "it is off.")]
    assert [(c.needs, c.says) for c in made.acts_if("a.b")] == both
    assert [(c.needs, c.says) for c in made.acts_if("a.x")] == both[:1]
    assert made.acts_if("ab") == ()


def test_facts(made: Knowledge) -> None:
    assert [(fact.key, fact.says, fact.platform) for fact in made.facts] == [
        ("a.b", "It does.", "any"),
        ("c.d", "Always.", "cuda"),
    ]
    bounded, always = made.facts
    assert [bounded.holds_at(version) for version in ("1.9", "2.0", "2.9.post1", "3.0", "main")] == [
        False,
        True,
        True,
        False,
        False,
    ]
    assert always.holds_at("main")


def test_failures(made: Knowledge) -> None:
    assert [(f.pattern.pattern, f.priority, f.multiline) for f in made.failures] == [
        ("high", 90, True),
        ("usual", 50, False),
        ("low", 1, False),
    ]
    assert [f.unless.pattern if f.unless else None for f in made.failures] == [None, "not", None]


def test_an_engine_without_tables_knows_nothing(made: Knowledge) -> None:
    nothing = Knowledge("engine_without_tables")
    assert (nothing.names("1.0"), nothing.changes, nothing.failures, nothing.facts) == ({}, (), (), ())
    assert nothing.change("a", ("1.0", "2.0"), "cpu", 1, {}) is None
    assert nothing.acts_if("a") == ()
    assert not nothing.is_noise("a")
    assert not nothing.is_inert("a", None)
    assert nothing.area("a") == "cosmetic"


SIZES = [1, 2, 4, *range(8, 256, 8), *range(256, 513, 16)]
IS_MOE = "parallel_config.is_moe_model"
LLAMA = {"model_config.hf_config.architectures": ["LlamaForCausalLM"], IS_MOE: False}

# --- real entries, one of each kind -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("engine", "key", "versions", "platform", "new", "settings", "since"),
    [
        ("vllm", "kv.gpu_memory_utilization", ("0.19.1", "0.20.2"), "cuda", 0.92, {}, "0.20.0"),
        ("vllm", "kv.gpu_memory_utilization", ("0.20.0", "0.32.0"), "cuda", 0.92, {}, None),
        ("vllm", "memory.graph_estimate", ("0.19.1", "0.20.0"), "cpu", True, {}, None),
        ("vllm", "graphs.capture_sizes", ("0.10.2", "0.33.0"), "cuda", SIZES, {}, "0.11.1"),
        ("vllm", "graphs.capture_sizes", ("0.27.1", "0.28.0"), "cuda", [*SIZES, *range(528, 1025, 16)], {}, "0.28.0"),
        ("vllm", "graphs.mode", ("0.10.2", "0.11.0"), "cuda", "FULL_AND_PIECEWISE", {}, "0.11.0"),
        ("vllm", "kv.prefix_hash", ("0.10.0", "0.33.0"), "cuda", "sha256", {}, "0.10.2"),
        ("vllm", "runner.name", ("0.22.1", "0.32.0"), "cuda", "V2", LLAMA, "0.23.0"),
        ("vllm", "runner.name", ("0.22.1", "0.32.0"), "cuda", "V2", {**LLAMA, "model.quantization": "fp8"}, "0.24.0"),
        ("vllm", "runner.name", ("0.24.0", "0.32.0"), "cuda", "V2", {IS_MOE: False}, "0.25.0"),
        ("vllm", "runner.name", ("0.24.0", "0.32.0"), "cuda", "V2", {IS_MOE: True}, "0.29.0"),
        ("vllm", "runner.name", ("0.31.0", "0.33.0"), "cuda", "V2", {"speculative.method": "ngram"}, "0.32.0"),
        ("vllm", "scheduler.async_scheduling", ("0.13.0", "0.16.0"), "cuda", True, {"parallel.pp": 1}, "0.14.0"),
        ("vllm", "scheduler.async_scheduling", ("0.13.0", "0.16.0"), "cuda", True, {"parallel.pp": 2}, "0.15.0"),
        ("llamacpp", "model.context_total", ("0.2.7", "0.2.8"), "cpu", 0, {}, "0.2.8"),
        ("llamacpp", "model.context_total", ("2026.9.10809", "2026.9.11063"), "cpu", 16384, {"kv.unified": True},
         "2026.9.11063"),
        ("llamacpp", "model.context_total", ("2026.9.10809", "2026.9.11063"), "cpu", 16384, {"kv.unified": False},
         None),
        ("llamacpp", "model.context_total", ("2026.8.10566", "2026.9.10809"), "cpu", 16384, {"kv.unified": False},
         "2026.9.10809"),
        ("llamacpp", "params_unknown", ("0.2.7", "2026.10.11549"), "cpu", 1, {}, None),
    ],
)  # fmt: skip
def test_real_changes(
    engine: str,
    key: str,
    versions: tuple[str, str],
    platform: str,
    new: object,
    settings: dict[str, object],
    since: str | None,
) -> None:
    change = knowledge(engine).change(key, versions, platform, new, settings)
    assert (change.since if change else None) == since


@pytest.mark.parametrize(
    ("engine", "key", "version", "words"),
    [
        ("vllm", "lora.max_loras", "0.33.0", "1 by default"),
        ("vllm", "structured_outputs.mask", "0.10.0", "engine core"),
        ("vllm", "structured_outputs.mask", "0.11.0", "adds to the step"),
        ("vllm", "structured_outputs.mask", "0.11.1", "costs no time"),
        ("vllm", "runner.fallback", "0.31.0", "drafts by ngram"),
        ("vllm", "scheduler.async_scheduling", "0.33.0", "on the V1 runner alone"),
        ("vllm", "kv.size_tokens", "0.20.0", "Blocks divided by KV groups"),
        ("sglang", "structured_outputs.mask", "0.5.23", "scheduler process"),
        ("sglang", "kv.gpu_memory_utilization", "0.5.20", "0.684"),
        ("trtllm", "scheduler.capacity_policy", "1.3.0", "forces MAX_UTILIZATION"),
    ],
)
def test_real_facts(engine: str, key: str, version: str, words: str) -> None:
    said = [fact.says for fact in knowledge(engine).facts if fact.key == key and fact.holds_at(version)]
    assert any(words in text for text in said)


def test_what_a_later_release_mended_is_said_of_the_earlier_ones_alone() -> None:
    ngram = [f for f in knowledge("vllm").facts if f.key == "runner.fallback" and "drafts by ngram" in f.says]
    assert not any(fact.holds_at("0.32.0") for fact in ngram)


# --- properties -------------------------------------------------------------------------------------------------

PATHS = st.lists(st.sampled_from(["a", "b", "c", "port", "sampling", "cache_config", "x"]), max_size=4).map(".".join)


@given(st.sampled_from(ENGINES), PATHS | st.text(max_size=20), st.none() | st.booleans() | st.text(max_size=4))
def test_property_any_path_has_an_answer(engine: str, path: str, value: object) -> None:
    table = knowledge(engine)
    assert table.area(path) in AREAS
    assert table.is_noise(path) in (True, False)
    assert table.is_inert(path, value) in (True, False)
    table.acts_if(path)


@given(st.sampled_from(ENGINES), st.data())
def test_property_a_change_lies_between_its_versions(engine: str, data: st.DataObject) -> None:
    table = knowledge(engine)
    known = data.draw(st.sampled_from(table.changes))
    pairs = list(itertools.combinations(VERSIONS[engine], 2))
    low, high = data.draw(st.sampled_from(pairs))
    for versions in ((low, high), (high, low)):
        change = table.change(known.key, versions, "cpu", known.extra.get("new"), known.when)
        if change is None:
            continue
        assert Version(low) < Version(change.since)
        assert release(change.since) <= release(high)
        assert change.platform in ("any", "cpu")
        assert change.explains(known.extra.get("new"), known.when)
