"""Deployment files read with every engine, as the command line does."""

from __future__ import annotations

from pathlib import Path

from engdiff.deployments.choose import Chosen, choose
from engdiff.deployments.command import Command
from engdiff.deployments.containers import containers
from engdiff.deployments.served import Served
from engdiff.engines.llamacpp import deployment as llamacpp
from engdiff.engines.sglang import deployment as sglang
from engdiff.engines.trtllm import deployment as trtllm
from engdiff.engines.vllm import deployment as vllm

DATA = Path(__file__).parent / "data"
ENGINES = {"vllm": vllm, "sglang": sglang, "trtllm": trtllm, "llamacpp": llamacpp}


def recognise_all(image: str, command: Command) -> tuple[str, Served] | None:
    for name, engine in ENGINES.items():
        if served := engine.recognise(image, command.words, command.variables, appended=command.appended):
            return name, served
    return None


def chosen(file: str | Path, wanted: str | None = None, environment: dict[str, str] | None = None) -> (
    Chosen[tuple[str, Served]]
):  # fmt: skip
    return choose(containers(DATA / file, environment or {}), recognise_all, wanted)
