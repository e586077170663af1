"""What engines mean by shared words: the files of all four are sound, and the rules by which they are read."""

from __future__ import annotations

import re

import pytest

from engdiff import engines
from engdiff.knowledge.meanings import SPOKEN, TERMS, Tongue, tongue
from engdiff.knowledge.settings import registry
from engdiff.knowledge.versions import release

ENGINES = ("vllm", "sglang", "trtllm", "llamacpp")
FRACTION = "kv.gpu_memory_utilization"
NAMES = {engine: engines.get(engine).knowledge.tongue for engine in ENGINES}
ROWS = [(engine, row) for engine, spoken in NAMES.items() for rows in spoken.meanings.values() for row in rows]
REFERENCE = re.compile(r"=(?P<key>[\w.]+)(?: unless (?P<unless>[\w.]+))?")


@pytest.mark.parametrize(("engine", "row"), ROWS, ids=[f"{e} {r.key} {r.since or r.until or ''}" for e, r in ROWS])
def test_a_row_is_one_sourced_line(engine: str, row: object) -> None:
    meaning = next(r for e, r in ROWS if e == engine and r is row)
    assert meaning.key in registry() or meaning.key in SPOKEN
    assert meaning.key in SPOKEN or any(meaning.key == key for key in engines.get(engine).knowledge.names("99.0"))
    assert meaning.sense
    assert meaning.source
    assert set(meaning.when) <= set(registry())
    assert meaning.device in (None, "cpu", "gpu")
    for text in (meaning.says, meaning.no_pin or "x"):
        assert "\n" not in text
        assert "  " not in text
        assert not text.endswith(".")
        assert len(text) <= 160
    for version in filter(None, (meaning.since, meaning.until)):
        release(version)


@pytest.mark.parametrize("engine", ENGINES)
def test_words_terms_and_flags(engine: str) -> None:
    spoken = NAMES[engine]
    for key, table in spoken.words.items():
        assert registry()[key].type == "text"
        for shared in table.values():
            match = REFERENCE.fullmatch(shared)
            assert not shared.startswith("=") or (match and {match["key"], match["unless"]} <= {*registry(), None})
    assert {word for _, shared in spoken.terms for word in shared} <= set(TERMS)
    assert all(flag.startswith("-") for flag in spoken.flags)
    canonical = {n.flag for n in engines.get(engine).knowledge.names("99.0").values()}
    assert canonical & set(spoken.flags) == set()


def test_no_two_engines_mean_the_same_by_their_share_of_memory() -> None:
    senses = [row.sense for engine, row in ROWS if row.key == FRACTION]
    assert len(senses) == len(set(senses))
    assert {engine for engine, row in ROWS if row.key == FRACTION} == {"vllm", "sglang", "trtllm"}


VLLM = NAMES["vllm"]


@pytest.mark.parametrize(
    ("version", "device", "senses"),
    [
        ("0.19.1", "gpu", ["share of all device memory, without graphs"]),
        ("0.20.0", "gpu", ["share of all device memory"]),
        ("0.19.1", "cpu", ["nothing"]),
        ("0.20.0", "cpu", ["share of all memory of the node"]),
        ("0.32.0", None, ["share of all memory of the node", "share of all device memory"]),
        ("None", "gpu", ["share of all device memory, without graphs", "share of all device memory"]),
    ],
)
def test_what_is_known_decides_and_what_is_not_leaves_several(
    version: str, device: str | None, senses: list[str]
) -> None:
    assert [row.sense for row in VLLM.meaning(FRACTION, version, device, {})] == senses


@pytest.mark.parametrize(
    ("settings", "count"), [({"parallel.dp": 1}, 1), ({"parallel.dp": 2}, 1), ({}, 2), ({"parallel.tp": 1}, 2)]
)
def test_another_setting_decides(settings: dict[str, object], count: int) -> None:
    found = VLLM.meaning("scheduler.max_num_seqs", "0.32.0", "gpu", settings)
    assert len(found) == count
    assert ("each replica" in found[-1].sense) is (settings.get("parallel.dp") != 1)


def test_tokens_changed_their_meaning() -> None:
    before, after = (VLLM.meaning("pool.tokens", version, "gpu", {})[0].sense for version in ("0.19.1", "0.20.0"))
    assert before != after


def small() -> Tongue:
    return tongue(
        {
            "term": [{"name": "*graphs", "is": ["graphs"]}, {"name": "consumed", "is": ["weights", "other"]}],
            "flag": [{"flags": ["-a", "--alias"], "is": "name"}],
        }
    )


def test_names_of_terms_may_have_wildcards() -> None:
    assert (small().term("prefill graphs"), small().term("consumed"), small().term("x")) == (
        ("graphs",),
        ("weights", "other"),
        (),
    )


def test_every_name_of_a_flag_counts() -> None:
    assert small().flags == {"-a": "name", "--alias": "name"}
    assert tongue({}).meaning("model.dtype", "1.0", None, {}) == ()
