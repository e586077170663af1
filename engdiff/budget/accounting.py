"""An engine's own accounting of a question."""

from __future__ import annotations

from engdiff.budget.question import Question
from engdiff.engines.sizing import Account, Deployment


def account(question: Question) -> Account:
    """The engine's own accounting of the question."""
    return question.sizing.account(deployment(question))


def deployment(question: Question) -> Deployment:
    """The question as an engine's accounting takes it."""
    estimates = question.sizing.estimates(question.version, question.geometry, question.parallel, question.settings)
    return Deployment(
        version=question.version,
        geometry=question.geometry,
        parallel=question.parallel,
        device_bytes=question.device_bytes,
        settings=question.settings,
        estimates=estimates,
    )
