"""A move from one engine to another as users read it, word by word: golden files, as in test_faces.py."""

from __future__ import annotations

import re

import pytest
from rich.cells import cell_len

from engdiff.diff.compare import compare
from engdiff.report.diff_github import diff_github
from engdiff.report.diff_markdown import diff_markdown
from engdiff.schema.capture import Capture
from engdiff.schema.diff import Diff
from engdiff.schema.files import dump, parse
from tests import factories as make
from tests.diff import other_engines as other
from tests.report.test_faces import WIDTHS, check, terminal

VLLM = make.both(
    make.with_setting("parallel.dp", make.setting(1)),
    make.with_native("flags.kv_cache_memory_bytes", {"names": ["--kv-cache-memory-bytes"], "takes": "value"}),
)(make.vllm())

PAIRS: dict[str, tuple[Capture, Capture]] = {
    "sglang-vllm": (other.sglang(), VLLM),
    "trtllm-vllm": (other.trtllm(), VLLM),
    "llamacpp-vllm": (make.llamacpp(), VLLM),
    "vllm-llamacpp": (VLLM, make.llamacpp()),
    "sglang-failed": (other.sglang(), make.failed()(make.vllm())),
}


def diff(name: str) -> Diff:
    old, new = PAIRS[name]
    return compare(old, new, old_label="old.json", new_label="new.json")


@pytest.mark.parametrize("name", PAIRS)
def test_terminal(name: str) -> None:
    check(f"across-{name}-100.txt", terminal(diff(name), 100))


def test_everything() -> None:
    check("across-sglang-vllm-all-80.txt", terminal(diff("sglang-vllm"), 80, everything=True))


@pytest.mark.parametrize("name", PAIRS)
def test_markdown(name: str) -> None:
    check(f"across-{name}.md", diff_markdown(diff(name)))


@pytest.mark.parametrize("name", ["sglang-vllm", "sglang-failed"])
def test_github(name: str) -> None:
    check(f"across-{name}.github.txt", diff_github(diff(name)))


def test_json() -> None:
    found = diff("sglang-vllm")
    check("across-sglang-vllm.json", dump(found))
    assert parse(dump(found), "x", Diff) == found


# --- what holds for every page ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("everything", [False, True])
@pytest.mark.parametrize("width", [40, *WIDTHS])
def test_pages_are_tidy(name: str, width: int, everything: bool) -> None:
    found = diff(name)
    text = terminal(found, width, everything=everything)
    copied = [c for c in (found.pinned_command, found.prove_command, *(f.pin.text for f in found.findings)) if c]
    lines = text.split("\n")
    assert [line for line in lines if cell_len(line) > width and not any(c in line for c in copied)] == []
    assert [line for line in lines if line != line.rstrip()] == []
    assert "\n\n\n" not in text


OF_ONE_ENGINE = re.compile(
    r"\b(moved|upgrade|new version|old version|new side|old side|old words|is gone|nobody asked|added)\b", re.IGNORECASE
)


@pytest.mark.parametrize("name", PAIRS)
def test_neither_engine_is_the_newer_version_of_the_other(name: str) -> None:
    found = diff(name)
    for text in (terminal(found, 100, everything=True), diff_markdown(found), diff_github(found)):
        assert OF_ONE_ENGINE.findall(text) == []


def test_what_the_user_loses_comes_first() -> None:
    text = terminal(diff("sglang-vllm"), 100)
    parts = [
        "without a known counterpart",
        "and engdiff knows no counterpart in vLLM",
        "· --watchdog-timeout 600",
        "scheduler.max_num_seqs is not carried over",
        "the KV cache of one rank",
        "Capacity",
        "Memory of one rank",
        "How each decides",
        "vLLM with what you had set on SGLang",
        "Prove it",
        "The same word",
        "--served-model-name prod → --served-model-name",
        "Settings that only one engine has",
        "Not compared",
    ]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
