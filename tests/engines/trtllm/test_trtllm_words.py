"""The words of trtllm-serve and its YAML file as fields of LlmArgs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engdiff.engines.trtllm import words, yaml_config
from engdiff.engines.trtllm.yaml_config import Meeting, YamlFile
from engdiff.schema.values import Evidence, Known, Unknown


@pytest.mark.parametrize(
    ("line", "tree"),
    [
        ("", {}),
        ("--tp_size 2", {"tensor_parallel_size": 2}),
        ("--tp_size=2 --tp_size 4", {"tensor_parallel_size": 4}),
        ("--tensor_parallel_size 8 --ep-size 2", {"tensor_parallel_size": 8, "moe_expert_parallel_size": 2}),
        ("--kv_cache_free_gpu_memory_fraction 0.7", {"kv_cache_config": {"free_gpu_memory_fraction": 0.7}}),
        ("--free_gpu_memory_fraction .5", {"kv_cache_config": {"free_gpu_memory_fraction": 0.5}}),
        ("--enable_chunked_prefill --max_seq_len 9", {"enable_chunked_prefill": True, "max_seq_len": 9}),
        ("--reasoning_parser deepseek-r1", {"reasoning_parser": "deepseek-r1"}),
        ("--backend pytorch --unheard 3", {}),
        ("--max_seq_len", {}),
    ],
)
def test_fields(line: str, tree: dict[str, Any]) -> None:
    found = words.written(line.split(), "1.2.1", "")
    assert found.tree == tree
    assert all(flag in line for flag in found.flags.values())


def test_the_model_is_a_word_as_well() -> None:
    found = words.written((), "1.2.1", "org/model")
    assert found.tree == {"model": "org/model"}
    assert found.cite("model").where == "MODEL"


def test_defaults_of_flags() -> None:
    flags: list[dict[str, Any]] = [
        {"names": ["--tp_size"], "default": 1},
        {"names": ["--max_seq_len"], "default": None},
        {"names": ["--kv_cache_free_gpu_memory_fraction"], "default": 0.9},
        {"names": ["--host"], "default": "localhost"},
    ]
    assert words.declared(flags, "1.2.1") == {
        "tensor_parallel_size": 1,
        "kv_cache_config": {"free_gpu_memory_fraction": 0.9},
    }


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("--tp_size 2", None),
        ("--config a.yaml", ("--config", "a.yaml")),
        ("--extra_llm_api_options=a.yaml", ("--extra_llm_api_options", "a.yaml")),
        ("--config a.yaml --config b.yaml", ("--config", "b.yaml")),
        ("--config", None),
    ],
)
def test_which_file_is_used(line: str, found: tuple[str, str] | None) -> None:
    assert words.yaml_path(line.split()) == found


@pytest.mark.parametrize(
    ("text", "tree", "unread"),
    [
        ("a: 1\nb: {c: [1, x]}\n", {"a": 1, "b": {"c": [1, "x"]}}, None),
        ("2025-01-01: 1\n", {"2025-01-01": 1}, None),
        ("", {}, "no fields"),
        ("- a\n", {}, "no fields"),
        ("a: b: c\n", {}, "mapping values are not allowed"),
        ("a: !!python/object:os.system {}\n", {}, "could not determine a constructor"),
        ("a: " + "[" * 3000, {}, ""),
        ("x: &a [1,1,1,1,1,1,1,1,1]\ny: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
         "z: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nw: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\nv: [*d,*d,*d,*d]\n", {}, "more than"),
        ("a: " + "x" * yaml_config.LARGEST_BYTES, {}, "larger than"),
    ],
)  # fmt: skip
def test_a_file_is_read_or_says_why_not(text: str, tree: dict[str, Any], unread: str | None, tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(text)
    found = yaml_config.read(str(path), "--config")
    assert found.tree == tree
    assert (found.unread is None) == (unread is None)
    assert (unread or "") in (found.unread or "")


def test_a_file_that_is_not_there() -> None:
    assert yaml_config.read("/no/such.yaml", "--config").unread == "No such file or directory"


def test_what_the_engine_read_counts_before_the_disk() -> None:
    probed = [{"path": "x.yaml", "tree": {"a": 1}}]
    found = yaml_config.used(("--config", "x.yaml"), probed)
    assert found == YamlFile("x.yaml", "--config", {"a": 1})
    assert yaml_config.used((), probed) is None


# --- how the two meet -------------------------------------------------------------------------------------------

FRACTION = "kv_cache_config.free_gpu_memory_fraction"


def known(value: Any, where: str = "--flag") -> Known:
    return Known(value=value, evidence=Evidence(source="command", where=where))


@pytest.mark.parametrize(
    ("word", "file", "resolved", "tree", "why", "says"),
    [
        (0.7, None, 0.7, {}, None, None),
        (0.7, 0.8, 0.8, {"kv_cache_config": {}}, "the YAML of --config overrides", "0.7 does not hold, 0.8 does"),
        (0.7, 0.8, 0.7, {"kv_cache_config": {}}, None, "the command line overrides the YAML"),
        (0.7, 0.7, 0.7, {"kv_cache_config": {}}, None, None),
        (0.7, None, 0.9, {"kv_cache_config": {}}, "a shallow merge", "0.7 does not hold, 0.9 does"),
        (0.7, None, 0.9, {"other": 1}, None, None),
        (0.7, 0.8, 0.9, {"kv_cache_config": {}}, None, None),
        (None, 0.8, 0.8, {"kv_cache_config": {}}, None, None),
        (0.7, 0.8, None, {"kv_cache_config": {}}, None, "which of them holds is not known: it died"),
    ],
)
def test_words_and_file(
    word: float | None,
    file: float | None,
    resolved: float | None,
    tree: dict[str, Any],
    why: str | None,
    says: str | None,
) -> None:
    meeting = Meeting((known(word), FRACTION) if word else None, (known(file), FRACTION) if file else None)
    value = Unknown(because="it died") if resolved is None else known(resolved)
    yaml_file = YamlFile("x.yaml", "--config", tree)
    because = yaml_config.because(meeting, value, yaml_file, words.Written(flags={FRACTION: "--fraction"}))
    assert (because is None) == (why is None)
    assert (why or "") in (because or "")
    note = yaml_config.note("k", meeting, value, because, yaml_file)
    assert (note is None) == (says is None)
    assert (says or "") in (note or "")
