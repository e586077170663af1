"""Launch: start the real engine under a guard, let its probe write, read its endpoints, stop it, understand it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import JsonValue

from engdiff import errors
from engdiff.engines.contract import Cause, LaunchPlan, LaunchRequest, Observed
from engdiff.environments.container import ContainerRun
from engdiff.environments.container_failures import OWN_EXIT_CODES, trouble
from engdiff.fetch import Access, get
from engdiff.logs.statements import Line
from engdiff.process.ports import free_port
from engdiff.process.readiness import http_ok
from engdiff.process.supervise import (
    EngineCommand,
    ExitStatus,
    ProcessFact,
    ReadyResult,
    RunningEngine,
    StopLimits,
    running,
)
from engdiff.redact import redact_text
from engdiff.schema.capture import Capture, Failure
from engdiff.sources.base import base_capture, redacted
from engdiff.sources.container import commands, processes_in, run_of
from engdiff.sources.failure import lacking, last_words, numbers_of
from engdiff.sources.order import Order, Outcome, Progress

PROBE_PATIENCE_SECONDS = 60
"""How long after readiness the probe may take; it writes within milliseconds, on a busy machine within seconds."""

HERE, EVERYWHERE = "127.0.0.1", "0.0.0.0"  # noqa: S104 - inside the container; outside it is published on 127.0.0.1
SIGNALLED = 128
HTTP_OK = 200


Meanwhile = Callable[[LaunchPlan], None]
"""What to do while the engine serves; it is stopped when this returns or raises."""


def launch(order: Order, progress: Progress, meanwhile: Meanwhile | None = None) -> Outcome:
    """Start, look, stop. The engine and all it left are gone when this returns or raises."""
    folder = Path(tempfile.mkdtemp(prefix="engdiff-"))
    try:
        return _launch_in(folder, order, progress, meanwhile)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class Prepared:
    """A launch up to its start: what the engine was asked for, its plan, and the command that carries it out."""

    request: LaunchRequest
    plan: LaunchPlan
    command: EngineCommand
    container: ContainerRun | None = None


def prepare(order: Order, folder: Path) -> Prepared:
    """Everything but the start. The plan writes into ``folder``, which is engdiff's for this launch."""
    inside = order.container
    request = LaunchRequest(
        version=order.version,
        distribution=order.environment.distribution,
        device=order.build.device,
        interpreter=order.environment.python,
        model=order.model,
        arguments=order.arguments,
        variables=order.variables,
        folder=folder,
        port=free_port(),
        host=EVERYWHERE if inside else HERE,
        image=inside.reference if inside else None,
    )
    plan = order.engine.plan(request)
    command = EngineCommand(
        argv=plan.argv,
        env=dict(plan.environ),
        cwd=Path.cwd(),
        log=folder / "engine.log",
        scratch=folder,
        stop_limits_s=StopLimits(ask=plan.ask_limit_seconds),
    )
    if inside is None:
        return Prepared(request, plan, command)
    run = run_of(order, inside, request, plan)
    argv, removal, environ = commands(run, inside)
    return Prepared(request, plan, replace(command, argv=argv, env=environ, removal=removal), run)


def _launch_in(folder: Path, order: Order, progress: Progress, meanwhile: Meanwhile | None) -> Outcome:
    prepared = prepare(order, folder)
    plan, command = prepared.plan, prepared.command
    started_at = time.time()
    progress(f"{order.called}: starting")
    with running(command) as engine:
        result = _wait(engine, order, plan, command.log, progress)
        processes = _processes(order, prepared, engine)
        if result.state == "ready":
            _await_probe(plan, engine)
        ready_at = time.time() if result.state == "ready" else None
        endpoints = {name: _read(url) for name, url in plan.scrape.items()} if ready_at else {}
        boot_log = _text(command.log)
        if meanwhile and ready_at:
            meanwhile(plan)
        progress(f"{order.called}: stopping")
        report = engine.stop()
    if report.left:
        progress(f"warning: these processes did not end: {', '.join(map(str, report.left))}")
    if report.unremoved:
        progress(f"warning: the container may still run: {shlex.join(command.removal)}: {report.unremoved}")
    log = boot_log if ready_at else _text(command.log)
    observed = Observed(
        prepared.request, plan, _probe(plan), endpoints, log, processes, started_at, _ready(started_at, result)
    )
    capture = order.engine.capture(observed, base_capture(order, plan, command.argv))
    return _outcome(redacted(capture), order, plan, result, command.log, log)


def _processes(order: Order, prepared: Prepared, engine: RunningEngine) -> tuple[ProcessFact, ...]:
    """Those of the engine: in a container they are no children of the command that started it."""
    if order.container and prepared.container:
        return processes_in(order.container, prepared.container)
    return engine.processes()


def _wait(engine: RunningEngine, order: Order, plan: LaunchPlan, log: Path, progress: Progress) -> ReadyResult:
    limit = order.start_limit_seconds or plan.start_limit_seconds
    said = 0.0

    def tick(seconds: float) -> None:
        nonlocal said
        if seconds - said >= 1:
            said = seconds
            progress(f"{order.called}: starting, {seconds:.0f} s")

    return engine.wait_until(lambda: http_ok(plan.ready_url) and plan.ready_text in _text(log), limit, tick)


def _ready(started_at: float, result: ReadyResult) -> float | None:
    return started_at + result.seconds if result.state == "ready" else None


def _await_probe(plan: LaunchPlan, engine: RunningEngine) -> None:
    """Wait for the files that the probe promises; a missing one is told by the capture, not here."""
    engine.wait_until(
        lambda: all((plan.probe_output / name).exists() for name in plan.probe_files), PROBE_PATIENCE_SECONDS
    )


def _read(url: str) -> str:
    """The body of an endpoint, or an empty text when it has none to give."""
    try:
        answer = get(url, Access(limit_seconds=20))
    except errors.FetchFailed:
        return ""
    return answer.body if answer.status == HTTP_OK else ""


def _text(path: Path) -> str:
    """The log as it is now. What a stop adds to it says nothing of the boot."""
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def _probe(plan: LaunchPlan) -> dict[str, JsonValue]:
    found: dict[str, JsonValue] = {}
    for path in sorted(plan.probe_output.glob("*.json")):
        try:
            found[path.stem] = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            found[path.stem] = {"unreadable": str(error)}
    return found


def _outcome(capture: Capture, order: Order, plan: LaunchPlan, result: ReadyResult, log: Path, text: str) -> Outcome:
    if result.state == "ready":
        _save_log(order, log)
        return Outcome(capture, None)
    kept = _save_log(order, log) or _default_log(order, log)
    status = _of_engine(order, result.exit)
    exit_text = str(status) if status else f"no answer on {plan.ready_url} in {result.seconds:.0f} s"
    cause = _container_cause(order, result, text) or order.engine.cause(text, exit_text) or Cause("", "")
    words = last_words(log)
    advice = cause.advice or f"the whole log: {kept}"
    lines = [Line(number, line) for number, line in enumerate(text.splitlines(), start=1)]
    numbers = numbers_of(cause, lines)
    failure = Failure(
        stage=cause.stage or "start",
        exit=exit_text,
        cause=cause.sentence or None,
        advice=advice,
        last_words=words,
        log=str(kept or ""),
        numbers=numbers,
        would_fit=cause.fits or lacking(numbers),
    )
    verb = "died at start" if result.state == "died" else "was not ready in time"
    fits = f" ({failure.would_fit})" if failure.would_fit else ""
    error = errors.EngineFailed(
        f"{order.called} {verb}: {cause.sentence or exit_text}{fits}",
        cause=cause.sentence or None,
        advice=advice,
        last_words=words,
        log=kept,
    )
    return Outcome(capture.model_copy(update={"failure": failure}), error)


def _of_engine(order: Order, status: ExitStatus | None) -> ExitStatus | None:
    """How the engine ended: from a container, a signal comes as 128 and its number."""
    if order.container and status and status.code and status.code > SIGNALLED:
        with suppress(ValueError):
            return ExitStatus(None, signal.Signals(status.code - SIGNALLED).name)
    return status


def _container_cause(order: Order, result: ReadyResult, text: str) -> Cause | None:
    """What docker or podman says, where it was that which failed, and not the engine."""
    if order.container is None or result.exit is None or result.exit.code not in OWN_EXIT_CODES:
        return None
    known = trouble(text, order.container.tool.kind)
    return Cause(known.problem, known.advice, stage="container") if known else None


def _save_log(order: Order, log: Path) -> Path | None:
    if order.keep_log is None or not log.exists():
        return None
    order.keep_log.write_text(redact_text(_text(log)), encoding="utf-8")
    return order.keep_log


def _default_log(order: Order, log: Path) -> Path | None:
    """A failed start's log is kept even when nobody asked: it is the evidence."""
    if not log.exists():
        return None
    target = Path(tempfile.gettempdir()) / f"engdiff-{order.engine.name}-{order.version}-{os.getpid()}.log"
    target.write_text(redact_text(_text(log)), encoding="utf-8")
    return target
