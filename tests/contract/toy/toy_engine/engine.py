"""A fork's engine: one package, one entry point, nothing changed in engdiff."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import JsonValue

from engdiff.engines.answers import answered, object_in
from engdiff.engines.contract import (
    Build,
    Cause,
    Declared,
    ExportedProbe,
    HttpReading,
    Image,
    KnownProblem,
    LaunchPlan,
    LaunchRequest,
    LogReading,
    Observed,
    Pin,
    PinStyle,
    Simulation,
)
from engdiff.engines.layers import exact, settle
from engdiff.engines.sizing import Sizing
from engdiff.environments.recipe import Recipe
from engdiff.errors import UsageError
from engdiff.knowledge.tables import Knowledge
from engdiff.logs.patterns import LinePattern
from engdiff.logs.starts import LogFormat, Start
from engdiff.logs.statements import Said
from engdiff.logs.values import amount
from engdiff.machine import Machine
from engdiff.schema.capture import Capture, Phase, Setting
from engdiff.schema.values import Evidence, Known, Unknown

SLOTS = "scheduler.max_num_seqs"
NOT_RESOLVED = Unknown(because="a toy resolves nothing")


def slots(effective: Known | None, configured: Known | None = None) -> dict[str, Setting]:
    if effective is None:
        return {}
    return {SLOTS: settle(configured=configured, declared=2, resolved=NOT_RESOLVED, effective=effective)}


def line(name: str, anchor: str, pattern: str, role: Literal["start", "boot", "ready", "stop"]) -> LinePattern:
    return LinePattern(name=name, anchors=(anchor,), expression=pattern, role=role)


FORMAT = LogFormat(
    lines=(
        line("starts", "toy engine 1.0 starts", r"toy engine (?P<version>[\d.]+) starts", "start"),
        line("slots", "toy engine has", r"toy engine has (?P<slots>\d+) slots", "boot"),
        line("ready", "toy engine is ready", r"toy engine is ready", "ready"),
        line("stops", "toy engine stops", r"toy engine stops", "stop"),
    ),
    said=lambda text: Said(text=text),
)


def from_log(start: Start, base: Capture) -> Capture:
    said = start.last_of("slots")
    return base.model_copy(update={"settings": slots(amount(said, "slots", basis="exact") if said else None)})


def from_answers(answers: Mapping[str, str], base: Capture) -> Capture:
    value = object_in(answers.get("state")).get("slots")
    found = Known(value=value, evidence=answered("/state slots")) if isinstance(value, int) else None
    return base.model_copy(update={"settings": slots(found)})


LOG = LogReading(FORMAT, from_log, lambda start: "serve" if start.ready else "configuration")
HTTP = HttpReading(
    ("/state",), {"state": "/state"}, {}, lambda answers: "toy" in object_in(answers.get("/state")), from_answers
)
KNOWLEDGE = Knowledge("toy_engine")


@dataclass(frozen=True)
class Toy:
    name: str = "toy"
    title: str = "Toy"
    distributions: tuple[str, ...] = ("toy-engine",)
    cpu_distributions: tuple[str, ...] = ("toy-engine",)
    model_kind: Literal["gguf", "hf"] = "hf"
    knowledge: Knowledge = KNOWLEDGE
    native_root: str = ""
    log: LogReading = LOG
    http: HttpReading = HTTP
    exported_probe: ExportedProbe | None = None
    simulation: Simulation | None = None
    sizing: Sizing | None = None
    declared: Declared | None = None

    def served(
        self, image: str, words: Sequence[str], variables: Mapping[str, str] | None = None, *, appended: bool = False
    ) -> None:
        return None

    def build(self, machine: Machine, wanted: str | None) -> Build:
        return Build("toy-engine", "cpu", "there is one only")

    def known_versions(self, distribution: str) -> tuple[str, ...]:
        return ("1.0", "0.9")

    def problem(self, version: str, distribution: str, machine: Machine) -> KnownProblem | None:
        return None if version in ("1.0", "0.9") else KnownProblem("toys are young", "no such toy", "use toy@1.0")

    def recipe(self, version: str, build: Build, machine: Machine) -> Recipe:
        return Recipe("toy", version, "toy-engine", "3.11")

    def image(self, version: str, named: str | None, machine: Machine, wanted: str | None) -> Image:
        raise UsageError("toys come in no image", "leave --container out")

    def plan(self, request: LaunchRequest) -> LaunchPlan:
        out = request.folder / "probe"
        out.mkdir()
        base = f"http://127.0.0.1:{request.port}"
        server = Path(__file__).with_name("server.py")
        return LaunchPlan(
            argv=(
                str(request.interpreter),
                "-u",
                str(server),
                request.model,
                "--port",
                str(request.port),
                *request.arguments,
            ),
            environ={**request.variables, "TOY_PROBE_OUT": str(out)},
            added={"TOY_PROBE_OUT": "where the probe writes"},
            native_command=self.native_command(request.model, request.arguments),
            read_variables={},
            ready_url=f"{base}/state",
            probe_output=out,
            probe_files=("toy.json",),
            scrape={"state": f"{base}/state"},
        )

    def capture(self, observed: Observed, base: Capture) -> Capture:
        told: JsonValue = observed.probe.get("toy")
        value = told.get("slots") if isinstance(told, dict) else None
        words = dict(zip(observed.request.arguments, observed.request.arguments[1:], strict=False))
        written = exact(int(words["--slots"]), "command", "--slots") if "--slots" in words else None
        found = Known(value=value, evidence=Evidence(source="probe", where="slots")) if isinstance(value, int) else None
        seconds = None if observed.ready_at is None else observed.ready_at - observed.started_at
        boot = () if seconds is None else (Phase(name="start to healthy", seconds=Known(value=seconds)),)
        return base.model_copy(update={"settings": slots(found, written), "boot": boot})

    def cause(self, log: str, exit_status: str) -> Cause | None:
        if found := re.search(r"unrecognized arguments: (.*)", log):
            return Cause(f"a toy has no {found[1]}", "leave it out", line=found[0])
        if "Address already in use" in log:
            return Cause("another process has the port", "choose another port", line="Address already in use")
        return Cause("the model is empty", "give it a full one") if "the model is empty" in log else None

    def pin(self, key: str, old: Capture, new: Capture, style: PinStyle) -> Pin | None:
        setting = old.settings.get(key)
        final = setting.final if setting else None
        return Pin(style="flags", words=("--slots", str(final.value))) if isinstance(final, Known) else None

    def native_command(self, model: str, arguments: Sequence[str]) -> tuple[str, ...]:
        return ("toy", model, *arguments)


ENGINE = Toy()
