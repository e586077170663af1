"""The GPU facts that ship: each has a source, and the names by which they are found are clear."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engdiff.errors import UsageError
from engdiff.knowledge.gpus import MOST, Gpu, gpu, gpus, pretended
from engdiff.shipped import folder

ROOT = Path(__file__).parents[2]
FILES = sorted((folder("profiles") / "gpus").glob("*.toml"))
UNSOURCED = {"title", "aliases"}
"""What engdiff chose itself: how people write it."""

GIB = 2**30


def facts(said: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """Every key, those of tables as ``table.key``."""
    for key, value in said.items():
        if isinstance(value, dict):
            yield from facts(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_fact_has_a_source_and_every_source_a_fact(path: Path) -> None:
    said = tomllib.loads(path.read_text(encoding="utf-8"))
    sources = said.pop("sources")
    assert set(facts(said)) - UNSOURCED == set(sources)
    assert all(text.strip() for text in sources.values())


def test_every_file_is_read() -> None:
    assert list(gpus()) == [path.stem for path in FILES]


def test_no_name_means_two_gpus() -> None:
    names = Counter(name for one in gpus().values() for name in (one.key, *one.aliases))
    assert [name for name, times in names.items() if times > 1] == []
    assert all(name == name.lower() for name in names)


@pytest.mark.parametrize("one", gpus().values(), ids=lambda one: one.key)
def test_figures_agree_with_each_other(one: Gpu) -> None:
    if one.smi_mib is not None:
        assert one.memory_bytes == one.smi_mib * 2**20
    if one.usable_gib is not None:
        assert 0.95 * one.memory_bytes < one.usable_gib * GIB <= one.memory_bytes
    assert (one.compute_capability is not None) == (one.vendor == "nvidia")
    assert (one.gfx is not None) == (one.vendor == "amd")
    assert all(rate >= 1e12 for rate in one.compute.values())
    assert one.link_bytes_per_s is None or one.nvlink


@pytest.mark.parametrize(
    ("text", "key"), [("h100-80gb", "h100-80gb"), ("H100", "h100-80gb"), ("A100-SXM", "a100-80gb")]
)
def test_found_by_key_or_alias_in_any_case(text: str, key: str) -> None:
    assert gpu(text).key == key


def test_another_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(UsageError) as error:
        gpu("h100-80g")
    assert "`h100-80g`" in error.value.message
    assert "h100-80gb" in error.value.advice


@given(key=st.sampled_from(list(gpus())), count=st.integers(2, MOST))
def test_what_is_pretended_reads_back(key: str, count: int) -> None:
    device = pretended(f"{key}:{count}")
    assert (device.gpu.key, device.count) == (key, count)
    assert pretended(device.text) == device


def test_one_is_pretended_where_no_count_is_given() -> None:
    assert pretended("h100-80gb").count == 1
    assert pretended("h100-80gb:1").text == "h100-80gb"


@given(
    count=st.one_of(st.integers(max_value=0), st.integers(min_value=MOST + 1)).map(str)
    | st.text(st.characters(categories=["L", "P"]))
)
def test_a_wrong_count_is_refused(count: str) -> None:
    with pytest.raises(UsageError, match="no number of GPUs"):
        pretended(f"h100-80gb:{count}")


def test_the_page_is_current(tmp_path: Path) -> None:
    made = tmp_path / "gpus.md"
    subprocess.run([sys.executable, "scripts/gpus_page.py", str(made)], cwd=ROOT, check=True)
    kept = (ROOT / "docs/gpus.md").read_text(encoding="utf-8")
    assert made.read_text(encoding="utf-8") == kept, "run scripts/gpus_page.py docs/gpus.md"
