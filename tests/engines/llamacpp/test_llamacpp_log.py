"""Start-up logs of real builds, cut to what is read; and any text at all."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from engdiff.engines.llamacpp import memory
from engdiff.engines.llamacpp.facts import number, parse
from engdiff.engines.llamacpp.log import said

DATA = Path(__file__).parent / "data"
LOGS = {path.stem: path.read_text(encoding="utf-8") for path in sorted(DATA.glob("*.log"))}


@pytest.mark.parametrize(
    ("version", "facts"),
    [
        ("0.2.7", {"http_threads": 6, "slot_context": 1024, "load_mode": "mmap = true", "graph_nodes": 139}),
        (
            "2026.4.8672.1",
            {"http_threads": 8, "slot_context": 1024, "load_mode": "mmap = true, direct_io = false"},
        ),
        (
            "2026.8.10229",
            {"slot_context": 1024, "host_total_mib": 24105, "host_projected_mib": 14, "checkpoints": 32},
        ),
        (
            "2026.9.11063",
            {
                "threads_batch": 1,
                "slot_context": 4096,
                "fit_context": 16384,
                "fit_rule": "context size unset -> using 16384 for 4 sequences",
                "fitting_seconds": 0.05,
                "graph_nodes": 138,
            },
        ),
        (
            "2026.10.11549",
            {
                "slot_context": 4096,
                "fit_rule": "context size unset and KV cache not unified -> using 16384 for 4 sequences",
                "load_mode": "load_mode = mmap",
                "graph_nodes": 141,
            },
        ),
    ],
)
def test_facts(version: str, facts: dict[str, JsonValue]) -> None:
    found = {name: fact.value for name, fact in parse(LOGS[version]).facts.items()}
    always = {"threads": 1, "slots": 4, "prompt_cache_mib": 8192, "flash_attention": "enabled"}
    assert {name: found[name] for name in (*facts, *always)} == {**always, **facts}
    assert str(found["cpu_line"]).startswith("SSE3 = 1 | SSSE3 = 1 | AVX = 1")


def test_every_log_has_a_row() -> None:
    assert len(LOGS) == 5


@pytest.mark.parametrize("version", LOGS)
def test_each_fact_stands_on_its_line(version: str) -> None:
    found = parse(LOGS[version])
    raw = LOGS[version].splitlines()
    facts = [*found.facts.values(), *found.model.values(), *(fact for _, fact in found.model_buffers)]
    assert len(facts) > 15
    for fact in facts:
        assert raw[fact.line.number - 1].endswith(fact.line.text)
        assert isinstance(fact.value, bool | float) or str(fact.value) in fact.line.text


@pytest.mark.parametrize("version", LOGS)
def test_the_context_that_serves(version: str) -> None:
    found = parse(LOGS[version])
    served = found.served
    assert served is not None
    assert not served.dry
    values = {name: fact.value for name, fact in served.values.items()}
    wide = version in ("2026.9.11063", "2026.10.11549")
    assert values["n_ctx"] == (16384 if wide else 4096)
    assert values["n_ctx_seq"] == (4096 if wide else 1024)
    assert (values["n_batch"], values["n_ubatch"], values["kv_unified"]) == (2048, 512, False)
    assert [(device, fact.value) for device, fact in found.model_buffers] == [("CPU_Mapped", 4.69)]
    assert found.model["n_layer"].value == 4


def test_a_dry_run_does_not_serve() -> None:
    """From about b8000 on the parameters are fitted first, on a model without memory."""
    found = parse(LOGS["2026.4.8672.1"])
    assert [context.dry for context in found.contexts] == [True, False]
    assert found.served is found.contexts[1]


def test_warnings_have_their_level_and_line() -> None:
    (warning,) = parse(LOGS["2026.10.11549"]).warnings
    assert warning.level == "warning"
    assert "no API key is set" in warning.text
    assert LOGS["2026.10.11549"].splitlines()[warning.line - 1].endswith(warning.text)
    assert parse(LOGS["0.2.7"]).warnings == ()


@pytest.mark.parametrize(
    ("raw", "text", "level"),
    [
        ("0.00.023.139 I load_tensors: loading", "load_tensors: loading", "I"),
        ("12.59.999.001 E srv  init: no", "srv  init: no", "E"),
        ("load_tensors: loading", "load_tensors: loading", None),
        ("0.00.023 I x", "0.00.023 I x", None),
        ("", "", None),
    ],
)
def test_prefix(raw: str, text: str, level: str | None) -> None:
    line = said(raw)
    assert (line.text, line.level) == (text, level)


@pytest.mark.parametrize(
    ("text", "value"),
    [("4", 4), (" 4.50 ", 4.5), ("true", True), ("false", False), ("auto", "auto"), ("-1", -1), ("1.2.3", "1.2.3")],
)
def test_number(text: str, value: JsonValue) -> None:
    found = number(text)
    assert found == value
    assert type(found) is type(value)


# --- any text ---------------------------------------------------------------------------------------------------


def read_all(text: str) -> None:
    """Everything that is made of a log; what matters is that it ends."""
    found = parse(text)
    for device in memory.devices(found):
        memory.ledger(device, found)
        memory.pools(device, found)


lines_of_logs = st.sampled_from(sorted({line for text in LOGS.values() for line in text.splitlines()}))
odd_lines = st.sampled_from(
    [
        "x: CPU KV buffer size = 1.2.3 MiB",
        "x: CPU model buffer size = . MiB",
        "x: CUDA0 KV buffer size = 16.00 MiB",
        "x: CUDA_Host compute buffer size = 1.00 MiB",
        "llama_kv_cache: size = 0.00 MiB ( 0 cells, 0 layers, 0/0 seqs), K (f16): 0.00 MiB, V (f16): 0.00 MiB",
        "llama_context: n_ctx = nan",
        "print_info: f_scale = inf",
        "0.00.000.000 E",
    ]
)


@given(st.text())
def test_any_text_fuzz(text: str) -> None:
    read_all(text)


@given(st.lists(lines_of_logs | odd_lines | st.text(max_size=40), max_size=30).map("\n".join))
def test_lines_in_any_order_fuzz(text: str) -> None:
    read_all(text)


@given(st.sampled_from(sorted(LOGS)), st.integers(0, 12_000), st.integers(0, 12_000))
def test_a_piece_of_a_log_fuzz(version: str, start: int, end: int) -> None:
    read_all(LOGS[version][start:end])


@given(st.sampled_from(sorted(LOGS)), st.data())
def test_a_log_with_a_piece_twice_fuzz(version: str, data: st.DataObject) -> None:
    text = LOGS[version]
    cut = data.draw(st.integers(0, len(text)))
    back = data.draw(st.integers(0, cut))
    read_all(text[:cut] + text[back:])


@pytest.mark.parametrize("version", LOGS)
def test_a_second_start_in_one_log_changes_nothing(version: str) -> None:
    once, twice = parse(LOGS[version]), parse(LOGS[version] * 2)
    assert {n: f.value for n, f in once.facts.items()} == {n: f.value for n, f in twice.facts.items()}
    assert memory.devices(once) == memory.devices(twice)
