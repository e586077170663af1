"""Starts of the stand-in through the real launch, in real virtual environments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest

from engdiff.process.supervise import EngineCommand, StopLimits
from engdiff.references import EngineReference
from engdiff.sources import launch
from engdiff.sources.acquire import Wishes, acquire
from engdiff.sources.order import Outcome
from tests.engines.trtllm.standin import Scenario, interpreter

OLD, NEW = "1.2.1", "1.3.0rc22"
"""Releases whose words and YAML file meet differently in the stand-in."""

Start = Callable[..., Outcome]


@pytest.fixture(scope="session")
def environments(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The Python of each release."""
    root = tmp_path_factory.mktemp("trtllm")
    return {version: interpreter(root / version, version) for version in (OLD, NEW)}


@pytest.fixture
def start(environments: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """``start("--config", "x.yaml", version=OLD, scenario=Scenario(...), yaml="a: 1")``; nothing is left behind."""
    monkeypatch.setattr(launch, "PROBE_PATIENCE_SECONDS", 0.3)
    monkeypatch.setattr(launch, "EngineCommand", partial(EngineCommand, stop_limits_s=StopLimits(1, 1, 5)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")

    def started(
        *words: str,
        version: str = OLD,
        scenario: Scenario = Scenario(),  # noqa: B008 - frozen
        yaml: str | None = None,
        limit: float = 30,
        **variables: str,
    ) -> Outcome:
        if yaml is not None:
            (tmp_path / "extra.yaml").write_text(yaml)
            words = ("--config", "extra.yaml", *words)
        name, value = scenario.write(tmp_path).split("=", 1)
        wishes = Wishes(
            model=str(model),
            arguments=words,
            variables={name: value, **variables},
            python=environments[version],
            start_limit_seconds=limit,
            keep_log=tmp_path / "engine.log",
        )
        return acquire(EngineReference("trtllm", None), wishes, lambda text: None)

    yield started
    assert left(environments) == []


def left(environments: dict[str, Path]) -> list[str]:
    """Processes of these environments that still run."""
    folders = [str(python.parent) for python in environments.values()]
    return [
        " ".join(process.info["cmdline"] or ())
        for process in psutil.process_iter(["cmdline"])
        if any(folder in word for word in process.info["cmdline"] or () for folder in folders)
    ]
