"""Everything but start-up, settings and pools: runner, admission, processes."""

from __future__ import annotations

from collections.abc import Iterator

from engdiff.diff.findings import (
    AdmissionChanged,
    BackendChanged,
    Found,
    ProcessesChanged,
    RunnerChanged,
)
from engdiff.diff.settings import key_moved
from engdiff.diff.sides import both_whole, resolved
from engdiff.diff.tolerance import moved
from engdiff.schema.capture import Capture
from engdiff.schema.values import Known, plain

EXECUTOR = "parallel.executor"


def parts_found(old: Capture, new: Capture) -> Iterator[Found]:
    """Only where both sides came so far; processes only where both were seen whole."""
    if not resolved(old) or not resolved(new):
        return
    yield from _runner(old, new)
    yield from _admission(old, new)
    if both_whole(old, new):
        yield from _processes(old, new)


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
    before, after = process_map(old), process_map(new)
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


def process_map(capture: Capture) -> tuple[str, ...]:
    """Processes that own a step of a request; helpers come and go."""
    return tuple(
        sorted(
            f"{p.name} ({', '.join(p.steps)})" for instance in capture.instances for p in instance.processes if p.steps
        )
    )
