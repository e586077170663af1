"""The engines that the contract is tested on, and what each needs to be started here."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.engines.trtllm import standin
from tests.real.real_helpers import SMALL_POOL

TOYS = Path(__file__).parent / "toy"


@dataclass(frozen=True)
class Subject:
    """One engine. ``python``: an interpreter that has it, where engdiff makes no environment for it.

    ``processes``: how many there are in the middle of a boot, engdiff's guard among them. ``empty_model``: the name
    of a file that is a model without content; ``dying``: variables with which it dies by itself instead.
    """

    engine: str
    version: str
    words: tuple[str, ...]
    processes: int
    unknown_flag: tuple[str, ...] = ("--no-such-flag",)
    refuses_itself: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)
    python: Path | None = None
    empty_model: str = "config.json"
    dying: Mapping[str, str] = field(default_factory=dict)

    @property
    def reference(self) -> str:
        """As on a command line."""
        return self.engine if self.python else f"{self.engine}@{self.version}"


def toy(folder: Path) -> Subject:
    """The toy engine of a fork: nothing to install."""
    return Subject("toy", "1.0", ("--slots", "3"), 2, python=Path(sys.executable))


def trtllm(folder: Path) -> Subject:
    """TensorRT-LLM by record: its stand-in, in an interpreter of its own."""
    version = "1.2.1"
    shown = {}
    for name, fault in (("well", None), ("dying", "dies")):
        (folder / name).mkdir()
        variable, _, value = standin.Scenario(log=TRTLLM_LOG, fault=fault).write(folder / name).partition("=")
        shown[name] = {variable: value}
    return Subject(
        "trtllm",
        version,
        ("--max_batch_size", "8"),
        2,
        variables=shown["well"],
        python=standin.interpreter(folder / "venv", version),
        dying=shown["dying"],
    )


TRTLLM_LOG = (
    "[TensorRT-LLM] TensorRT LLM version: 1.2.1",
    "[01/01/2026-00:00:00] [TRT-LLM] [I] Using LLM with PyTorch backend",
)


def llamacpp(folder: Path) -> Subject:
    """Its HTTP server, from the wheel."""
    words = ("-np", "2", "-c", "2048")
    return Subject("llamacpp", "2026.10.11549", words, 2, refuses_itself=True, empty_model="m.gguf")


def vllm(folder: Path) -> Subject:
    """Its newest CPU build."""
    return Subject("vllm", "0.32.0", ("--max-model-len", "2048"), 4, variables=SMALL_POOL)


def sglang(folder: Path) -> Subject:
    """Its newest release, on a CPU."""
    return Subject("sglang", "0.5.23", ("--max-total-tokens", "16384"), 4)


LIVE: tuple[Callable[[Path], Subject], ...] = (llamacpp, vllm, sglang)

SUBJECTS = [
    pytest.param(toy, id="toy"),
    pytest.param(trtllm, id="trtllm-by-record"),
    *(pytest.param(make, id=make.__name__, marks=pytest.mark.real) for make in LIVE),
]
