"""The answer: an engine's account of the question as a Capture, its checks, and the neighbouring settings."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import product

from pydantic import JsonValue

from engdiff import __version__
from engdiff.budget.accounting import account, deployment
from engdiff.budget.changes import changes
from engdiff.budget.question import Axis, Question
from engdiff.budget.verdicts import overall, verdict
from engdiff.engines.sizing import Account
from engdiff.schema.budget import Budget, Cell, StartCheck
from engdiff.schema.capture import (
    Admission,
    Capture,
    Device,
    Graphs,
    Identity,
    Instance,
    Launch,
    Rank,
    Runner,
    Setting,
)
from engdiff.schema.values import Evidence, Known, Unknown

NOT_RUN = Unknown(because="it was computed: nothing was run")


def answer(question: Question, axes: Sequence[Axis]) -> Budget:
    """The whole answer."""
    asked = deployment(question)
    made = question.sizing.account(asked)
    checks = tuple(
        StartCheck(
            name=one.name,
            verdict=verdict(one.margin_bytes),
            margin_bytes=one.margin_bytes,
            message=one.message,
            source=one.source,
        )
        for one in made.checks
    )
    return Budget(
        capture=capture(question, made),
        guesses=question.guesses,
        kept_of_token=dict(question.sizing.kept_of_token(asked)),
        checks=checks,
        verdict=overall([one.verdict for one in checks]),
        longest=made.longest,
        table=tuple(cells(question, axes)),
        changes=changes(question, made),
    )


def cells(question: Question, axes: Sequence[Axis]) -> list[Cell]:
    """The account of every combination of the axes' values."""
    found = []
    for values in product(*(axis.values for axis in axes)):
        settings: dict[str, JsonValue] = dict(zip((axis.key for axis in axes), values, strict=True))
        made = account(question.having(settings))
        found.append(
            Cell(
                settings=settings,
                pool_bytes=made.ledger[-1].bytes,
                tokens=made.pool.tokens,
                concurrency=made.pool.max_concurrency,
                verdict=overall([verdict(check.margin_bytes) for check in made.checks]),
            )
        )
    return found


def capture(question: Question, made: Account) -> Capture:
    """The prediction in the form of what a launch would show, so that both can be laid side by side."""
    gpu = question.gpu
    memory = Known(value=question.device_bytes, evidence=Evidence(source="rule", where=f"profiles/gpus/{gpu.key}.toml"))
    sizes = question.settings.get("graphs.capture_sizes")
    graphs = next((term.bytes for term in made.ledger if term.name == "graphs"), NOT_RUN)
    rank = Rank(
        device="cuda",
        ledger=made.ledger,
        pools=(made.pool,),
        graphs=Graphs(
            mode=NOT_RUN,
            sizes=Known(value=sizes) if isinstance(sizes, list) else NOT_RUN,
            prefill_sizes=NOT_RUN,
            captured=NOT_RUN,
            bytes=graphs,
            seconds=NOT_RUN,
        ),
    )
    return Capture(
        identity=Identity(
            engine=question.engine.name,
            version=Known(value=question.version, evidence=Evidence(source="command", where="--engine")),
            commit=NOT_RUN,
            source="budget",
            captured_at=datetime.now(UTC).isoformat(timespec="seconds"),
            engdiff_version=__version__,
            host=NOT_RUN,
            devices=(Device(kind="gpu", name=gpu.name, memory_bytes=memory),) * question.parallel.tensor,
            driver=NOT_RUN,
            environment=NOT_RUN,
        ),
        launch=Launch(
            model=question.model,
            model_given=question.model,
            arguments=(),
            command=(),
            native_command=(),
            variables={},
            unknown_because="it was computed: nothing was run",
        ),
        native={},
        settings={key: _setting(question, key, value) for key, value in question.settings.items()},
        instances=(Instance(processes=(), ranks=(rank,)),),
        runner=Runner(name=NOT_RUN, because=NOT_RUN, attention_backend=NOT_RUN, candidates=NOT_RUN),
        admission=Admission(rule=NOT_RUN, preemption=NOT_RUN, settings=()),
        boot=(),
        notes=made.notes,
    )


def _setting(question: Question, key: str, value: JsonValue) -> Setting:
    user = key in question.stated
    known = Known(value=value, evidence=Evidence(source="command" if user else "rule", where=key))
    return Setting(
        configured=known if user else None, resolved=known, effective=NOT_RUN, origin="user" if user else "default"
    )
