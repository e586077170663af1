"""Two captures of one server, made one: what the first does not know is taken from the second."""

from __future__ import annotations

from engdiff.schema.capture import (
    Admission,
    Capture,
    Graphs,
    Identity,
    Instance,
    Launch,
    Pool,
    Rank,
    Runner,
    Setting,
)
from engdiff.schema.values import Known, Unknown, Value


def complete(first: Capture, second: Capture) -> Capture:
    """``first`` with what only ``second`` knows: a running server's answers, completed by its log."""
    return first.model_copy(
        update={
            "identity": _identity(first.identity, second.identity),
            "launch": _launch(first.launch, second.launch),
            "native": {**second.native, **first.native},
            "settings": _settings(first.settings, second.settings),
            "instances": _instances(first.instances, second.instances),
            "runner": _runner(first.runner, second.runner),
            "admission": _admission(first.admission, second.admission),
            "boot": first.boot or second.boot,
            "warnings": first.warnings or second.warnings,
            "failure": first.failure or second.failure,
            "run_summary": {**second.run_summary, **first.run_summary},
            "reading": first.reading or second.reading,
            "notes": tuple(dict.fromkeys((*first.notes, *second.notes))),
        }
    )


def known_of(first: Value, second: Value) -> Value:
    """The first that is known; of two unknown ones the first."""
    return first if isinstance(first, Known) or isinstance(second, Unknown) else second


def _identity(a: Identity, b: Identity) -> Identity:
    return a.model_copy(
        update={
            "version": known_of(a.version, b.version),
            "commit": known_of(a.commit, b.commit),
            "devices": a.devices or b.devices,
            "driver": known_of(a.driver, b.driver),
            "host": b.host if isinstance(a.host, Unknown) else a.host,
            "environment": b.environment if isinstance(a.environment, Unknown) else a.environment,
        }
    )


def _launch(a: Launch, b: Launch) -> Launch:
    if a.unknown_because is None:
        return a
    base = b if b.unknown_because is None else a
    return base.model_copy(update={"model": a.model or b.model, "model_given": a.model_given or b.model_given})


def _settings(a: dict[str, Setting], b: dict[str, Setting]) -> dict[str, Setting]:
    both = {key: _setting(a[key], b[key]) for key in a.keys() & b.keys()}
    return {**b, **a, **both}


def _setting(a: Setting, b: Setting) -> Setting:
    return a.model_copy(
        update={
            "configured": a.configured or b.configured,
            "resolved": known_of(a.resolved, b.resolved),
            "effective": known_of(a.effective, b.effective),
            "origin": a.origin or b.origin,
            "native": a.native or b.native,
            "because": a.because or b.because,
        }
    )


def _instances(a: tuple[Instance, ...], b: tuple[Instance, ...]) -> tuple[Instance, ...]:
    if not a or not b:
        return a or b
    return tuple(_instance(x, y) for x, y in zip(a, b, strict=False)) + (a[len(b) :] or b[len(a) :])


def _instance(a: Instance, b: Instance) -> Instance:
    ranks = tuple(_rank(x, y) for x, y in zip(a.ranks, b.ranks, strict=False))
    rest = a.ranks[len(b.ranks) :] or b.ranks[len(a.ranks) :]
    return a.model_copy(update={"ranks": (*ranks, *rest), "processes": a.processes or b.processes})


def _rank(a: Rank, b: Rank) -> Rank:
    ledger = a.ledger if any(isinstance(t.bytes, Known) for t in a.ledger) else b.ledger
    pools = tuple(_pool(x, y) for x, y in zip(a.pools, b.pools, strict=False)) if a.pools and b.pools else ()
    rest = a.pools[len(b.pools) :] or b.pools[len(a.pools) :]
    return a.model_copy(update={"ledger": ledger, "pools": (*pools, *rest), "graphs": _graphs(a.graphs, b.graphs)})


POOL_VALUES = ("bytes", "blocks", "block_tokens", "tokens", "max_concurrency", "concurrency_at_tokens")


def _pool(a: Pool, b: Pool) -> Pool:
    values: dict[str, object] = {name: known_of(getattr(a, name), getattr(b, name)) for name in POOL_VALUES}
    return a.model_copy(update={**values, "factors": a.factors or b.factors, "groups": a.groups or b.groups})


def _graphs(a: Graphs, b: Graphs) -> Graphs:
    return Graphs(**{name: known_of(getattr(a, name), getattr(b, name)) for name in Graphs.model_fields})


def _runner(a: Runner, b: Runner) -> Runner:
    return Runner(**{name: known_of(getattr(a, name), getattr(b, name)) for name in Runner.model_fields})


def _admission(a: Admission, b: Admission) -> Admission:
    return Admission(
        rule=known_of(a.rule, b.rule),
        preemption=known_of(a.preemption, b.preemption),
        settings=a.settings or b.settings,
    )
