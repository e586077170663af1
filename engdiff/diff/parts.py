"""Everything but settings and pools: start-up, runner, admission, processes."""

from __future__ import annotations

from collections.abc import Iterator

from engdiff.diff.findings import (
    AdmissionChanged,
    BackendChanged,
    Found,
    ProcessesChanged,
    RunnerChanged,
    StartMended,
    StartRefused,
)
from engdiff.diff.settings import key_moved
from engdiff.diff.tolerance import moved
from engdiff.schema.capture import Capture
from engdiff.schema.values import Known, plain

EXECUTOR = "parallel.executor"


def parts_found(old: Capture, new: Capture) -> Iterator[Found]:
    """Start-up first; the rest only where both sides started."""
    yield from _start(old, new)
    if old.failure or new.failure:
        return
    yield from _runner(old, new)
    yield from _admission(old, new)
    yield from _processes(old, new)


def _start(old: Capture, new: Capture) -> Iterator[Found]:
    if bool(old.failure) == bool(new.failure):
        return
    cls = StartRefused if new.failure else StartMended
    yield cls(
        key="start",
        name=_called(new),
        old=_ending(old),
        new=_ending(new),
        area="startup",
        why="Nothing is served." if new.failure else "It serves again.",
        evidence=(new.failure or old.failure).last_words[-1:] if (new.failure or old.failure) else (),  # type: ignore[union-attr]
    )


def _called(capture: Capture) -> str:
    return f"{capture.identity.engine} {plain(capture.identity.version) or ''}".strip()


def _ending(capture: Capture) -> Known:
    if capture.failure is None:
        return Known(value="it started", basis="measured")
    return Known(value=capture.failure.cause or capture.failure.exit, basis="measured")


def _runner(old: Capture, new: Capture) -> Iterator[Found]:
    if moved(old.runner.name, new.runner.name):
        reason = plain(new.runner.because)
        yield RunnerChanged(
            key="runner.name",
            name="model runner",
            old=old.runner.name,
            new=new.runner.name,
            area="scheduling",
            why="Scheduling, graphs, memory and supported features follow from the runner.",
            evidence=(f"the engine's own reason: {reason}",) if reason else (),
        )
    canonical = "kernels.attention_backend"
    shown_as_setting = canonical in old.settings and canonical in new.settings
    if moved(old.runner.attention_backend, new.runner.attention_backend) and not shown_as_setting:
        yield BackendChanged(
            key=canonical,
            name="attention back end",
            old=old.runner.attention_backend,
            new=new.runner.attention_backend,
            area="kernels",
            why="Speed, supported features and, slightly, numerics follow from it.",
        )


def _admission(old: Capture, new: Capture) -> Iterator[Found]:
    for field, name in (("rule", "the admission rule"), ("preemption", "preemption")):
        before, after = getattr(old.admission, field), getattr(new.admission, field)
        if moved(before, after):
            yield AdmissionChanged(
                key=f"admission.{field}",
                name=name,
                old=before,
                new=after,
                area="scheduling",
                why="It decides who waits and who is thrown out under load.",
            )


def _processes(old: Capture, new: Capture) -> Iterator[Found]:
    before, after = _map(old), _map(new)
    if before and after and before != after:
        yield ProcessesChanged(
            key="processes",
            name="processes",
            old=Known(value=list(before)),
            new=Known(value=list(after)),
            area="cosmetic",
            why="Another process map costs other host memory and start-up time, and fails in other ways.",
            follows_from=(EXECUTOR,) if key_moved(EXECUTOR, old, new) else (),
        )


def _map(capture: Capture) -> tuple[str, ...]:
    """Processes that own a step of a request; helpers come and go."""
    return tuple(
        sorted(
            f"{p.name} ({', '.join(p.steps)})" for instance in capture.instances for p in instance.processes if p.steps
        )
    )
