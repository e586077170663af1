"""Questions as users ask them: what is guessed, what starts, and what would make it start."""

from __future__ import annotations

from typing import Any

import pytest

from engdiff.budget.answer import answer
from engdiff.budget.asking import Said, question
from engdiff.budget.axes import axes, axis
from engdiff.errors import UsageError
from engdiff.schema.budget import Budget
from engdiff.schema.values import number


def said(**changed: Any) -> Said:
    plain: dict[str, Any] = {
        "model": "70b",
        "engine": "vllm@0.25.1",
        "gpu": "",
        "tensor": 2,
        "pipeline": 1,
        "experts": False,
        "settings": {"model.max_model_len": 8192},
    }
    return Said(**{**plain, **changed})


def made(**changed: Any) -> Budget:
    asked = question(said(**changed))
    return answer(asked, axes(asked, ()))


def test_the_reference_question() -> None:
    """70B over two H100 with 8,192 tokens: ../shared/reference has these figures from first principles."""
    found = made()
    ledger = {term.name: number(term.bytes) for term in found.capture.instances[0].ranks[0].ledger}
    assert found.kept_of_token == {"full": 163_840}
    assert ledger["device memory"] == round(79.18 * 2**30)
    assert (ledger["weights"] or 0) / 2**30 == pytest.approx(65.74, abs=0.01)
    assert [(cell.settings["kv.gpu_memory_utilization"], cell.settings["graphs.charged"]) for cell in found.table] == [
        (share, charged) for share in (0.88, 0.90, 0.92) for charged in (True, False)
    ]
    assert found.verdict == "within the bounds"
    assert found.capture.identity.source == "budget"


def test_every_guess_is_named_and_nothing_that_was_said_is_one() -> None:
    guessed = {guess.name for guess in made().guesses}
    assert {"--gpu", "device memory", "kv.gpu_memory_utilization", "scheduler.max_num_seqs"} <= guessed
    assert not {"--engine", "model.max_model_len"} & guessed


def test_each_change_makes_it_start() -> None:
    settings = {"model.max_model_len": 8192, "kv.gpu_memory_utilization": 0.88}
    found = made(settings=settings)
    assert [change.setting for change in found.changes] == ["kv.gpu_memory_utilization", "parallel.tp"]
    for change in found.changes:
        if change.setting != "parallel.tp":
            again = made(settings={**settings, change.setting: change.value})
            assert all((number(check.margin_bytes) or 0) > 0 for check in again.checks), change.setting


def test_a_model_that_fits_needs_no_change() -> None:
    found = made(model="8b", tensor=1)
    assert (found.verdict, found.changes) == ("starts", ())


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"model": ""}, "no model is named"),
        ({"model": "no-such"}, "no shipped model"),
        ({"engine": "sglang@0.5.23"}, "no budget is made for SGLang yet"),
        ({"engine": "vllm@0.1.0"}, "no profile of vllm 0.1.0"),
        ({"gpu": "h100-80gb:4"}, "has 4 devices"),
        ({"gpu": "abacus"}, "no GPU of this name"),
    ],
)
def test_what_cannot_be_answered_is_refused_in_one_sentence(changed: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        question(said(**changed))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("util=0.85:0.87:0.01", [0.85, 0.86, 0.87]),
        ("max-num-seqs=64,128", [64, 128]),
        ("graphs=charged,beside", [True, False]),
        ("kv-dtype=auto,fp8", ["auto", "fp8"]),
    ],
)
def test_an_axis(text: str, values: list[Any]) -> None:
    assert list(axis(text).values) == values


@pytest.mark.parametrize("text", ["util", "depth=1", "util=1:0:0.1", "util=0:1:0", "util=a:b:c", "util="])
def test_an_axis_that_is_none(text: str) -> None:
    with pytest.raises(UsageError, match="--vary"):
        axis(text)
