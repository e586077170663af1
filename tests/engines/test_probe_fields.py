"""Each probe reads what its table declares, no less and no more; and the docs say what the tables say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.engines.probe_reads import reads
from tests.engines.probe_table import ENGINES, Table, parsed, table

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_probe_reads_what_its_table_declares(engine: str) -> None:
    said = table(engine)
    probe = ROOT / "engdiff/engines" / engine / "probe.py"
    found, complaints = reads(probe.read_text(encoding="utf-8"), said)
    declared = {(field.object, field.name) for field in said.fields if field.by is None}
    assert not complaints
    assert sorted(found - declared) == [], "read, and not in probe.toml"
    assert sorted(declared - found) == [], "in probe.toml, and not read"


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_read_of_whole_objects_is_named_where_the_table_says(engine: str) -> None:
    folder = ROOT / "engdiff/engines" / engine
    for field in table(engine).fields:
        if field.by:
            assert f'"{field.name}"' in (folder / field.by).read_text(encoding="utf-8"), f"{field.by}: {field.name}"


def test_the_page_is_up_to_date(tmp_path: Path) -> None:
    made = tmp_path / "probe-fields.md"
    subprocess.run([sys.executable, "scripts/probe_fields_page.py", str(made)], cwd=ROOT, check=True)
    kept = (ROOT / "docs/probe-fields.md").read_text(encoding="utf-8")
    assert made.read_text(encoding="utf-8") == kept, "run scripts/probe_fields_page.py docs/probe-fields.md"


# --- what the reader sees ---------------------------------------------------------------------------------------


def small() -> Table:
    """A table of an engine called `en`."""
    return parsed(
        {
            "package": "en",
            "distributions": ["en"],
            "ignored": ["word", "f", "here:it"],
            "variables": {"core": "Core", "there:it": "Pool", "all_of_it": "Whole"},
            "gives": {"Core.pool": "Pool", "en.platform.current": "Platform", "en.cpu.nodes": "Node"},
            "tables": {"NAMES": "Core", "PATHS": "Core", "LABELS": ""},
            "readers": ["first"],
            "whole": ["Whole"],
            "object": [],
        }
    )


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("core.size", {("Core", "size")}),
        ("core.pool.size", {("Core", "pool"), ("Pool", "size")}),
        ("getattr(core, 'pool', None).size", {("Core", "pool"), ("Pool", "size")}),
        ("hasattr(core, 'size')", {("Core", "size")}),
        ("core.pool.take()[0]", {("Core", "pool"), ("Pool", "take")}),
        ("vars(core)['loop']", {("Core", "loop")}),
        ("'loop' in vars(core)", {("Core", "loop")}),
        ("import sys\nsys.modules['en.platform'].current.kind", {("en.platform", "current"), ("Platform", "kind")}),
        ("import sys\nsys.modules.get('en.cpu').nodes()[0].node", {("en.cpu", "nodes"), ("Node", "node")}),
        ("__import__('en.triton').HAS", {("en.triton", "HAS")}),
        ("import en.envs as envs\nenvs.known", {("en.envs", "known")}),
        ("import en\nen.__version__", {("en", "__version__")}),
        ("from en.config import Config", {("en.config", "Config")}),
        ("NAMES = ('size', 'pool.size')", {("Core", "size"), ("Core", "pool"), ("Pool", "size")}),
        ("PATHS = {'label': ('size',)}", {("Core", "size")}),
        ("first(core, 'pool.size')", {("Core", "pool"), ("Pool", "size")}),
        ("def there():\n    it.size", {("Pool", "size")}),
        ("def here():\n    it.size", set()),
        ("lambda: core.size", {("Core", "size")}),
        ("core.size = 1", set()),
        ("type(core).__name__.upper()", set()),
        ("LABELS = ('size',)", set()),
        ("import os\nos.environ.get('X')", set()),
        ("word.partition('=')", set()),
        ("NAMES = ()\n[getattr(core, n) for n in NAMES]", set()),
        (
            "def f():\n    for n in ('a', 'b'):\n        getattr(core.pool, n)",
            {("Core", "pool"), ("Pool", "a"), ("Pool", "b")},
        ),
        ("[getattr(all_of_it, f.name) for f in word]", set()),
    ],
)
def test_reads(source: str, expected: set[tuple[str, str]]) -> None:
    assert reads(source, small()) == (expected, [])


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("stranger.size", "line 1: .size of something that the table does not know"),
        ("core.friend.size", "line 1: .size of something that the table does not know"),
        ("def find():\n    pass\nfind().size", "line 3: .size of something that the table does not know"),
        ("OTHERS = ('size',)", "line 1: [tables] does not say what OTHERS is read of"),
        ("getattr(core.pool, n)", "line 1: getattr(core.pool, n) reads a name that no table holds"),
    ],
)
def test_nothing_is_read_unseen(source: str, complaint: str) -> None:
    assert complaint in reads(source, small())[1]
