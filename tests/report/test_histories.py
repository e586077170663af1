"""A History and an Explanation as users read them."""

from __future__ import annotations

import pytest

from engdiff.report.explanation_terminal import print_explanation
from engdiff.report.history_terminal import print_history
from engdiff.schema.diff import Pin
from engdiff.schema.explanation import Explanation, InCapture, OfEngine, Spelling, Told
from engdiff.schema.history import Account, History, Left, Moved, Span
from engdiff.schema.values import Known, Unknown
from tests.report.test_faces import check, on_paper

ACCOUNT = Account(
    since="0.20.0",
    kind="default",
    summary="The default share of device memory that vLLM may use grew by two points.",
    matters="The KV pool grows by about 2 % of device memory.",
    source="vllm/config/cache.py 0.19.1, 0.20.0",
)
SPANS = (
    Span(first="0.10.0", last="0.19.1", releases=14, value=Known(value=0.9), origin="default"),
    Span(
        first="0.20.0", last="0.33.0", releases=13, value=Known(value=0.92), origin="derived", because="set by a rule"
    ),
    Span(first="0.34.0", last="0.34.0", releases=1, value=Unknown(because="it is measured on the device")),
)
HISTORY = History(
    engine="vllm",
    key="kv.gpu_memory_utilization",
    unit="fraction",
    device="h100-80gb",
    model="llama-3.1-8b",
    spans=SPANS,
    moves=(
        Moved(
            before="0.19.1",
            since="0.20.0",
            headline="kv.gpu_memory_utilization: 0.9 → 0.92",
            accounts=(ACCOUNT,),
            pin=Pin(text="--gpu-memory-utilization 0.9", style="flags"),
        ),
        Moved(
            before="0.33.0",
            since="0.34.0",
            headline="",
            pin=Pin(text=None, because="a release on one side does not hold it"),
        ),
    ),
    accounts=tuple(ACCOUNT.model_copy(update={"since": f"0.{minor}.0"}) for minor in range(21, 28)),
    without=(Left(version="0.9.0", because="the engine refused it"),),
    notes=("static defaults, never run",),
)

EXPLANATION = Explanation(
    key="kv.gpu_memory_utilization",
    area="memory",
    unit="fraction",
    meaning="The share of device memory that the engine may use.",
    why="The KV pool is what is left of it.",
    effects={"memory": "The KV pool grows.", "startup": "A start can be refused."},
    depends_on=("kv.configured_bytes",),
    here=InCapture(
        engine="vllm",
        version="0.33.0",
        value=Unknown(because="the runner was not built"),
        because=("pooling model", "prompt embeds"),
        unknown_because="the runner was not built",
    ),
    engines=(
        OfEngine(
            engine="vllm",
            title="vLLM",
            spellings=(
                Spelling(first="0.12.0", last="0.33.0", flag="--gpu-memory-utilization", native="cache_config.x"),
            ),
            means="of total memory",
            facts=tuple(Told(says=f"Fact number {n}.", source="gpu_worker.py 0.32.0") for n in range(8)),
            device="h100-80gb",
            model="llama-3.1-8b",
            defaults=SPANS,
        ),
        OfEngine(
            engine="llamacpp", title="llama.cpp", spellings=(Spelling(first="0.2.7", last="0.2.7", variable="X"),)
        ),
    ),
)


@pytest.mark.parametrize("everything", [False, True])
@pytest.mark.parametrize("newer", [(), ("0.35.0",)])
def test_a_history(everything: bool, newer: tuple[str, ...]) -> None:
    console, stream = on_paper(80)
    print_history(HISTORY, console, newer, everything=everything)
    check(f"history{'-newer' if newer else ''}{'-all' if everything else ''}.txt", stream.getvalue())


def test_an_empty_history() -> None:
    console, stream = on_paper(80)
    print_history(HISTORY.model_copy(update={"spans": (), "moves": (), "accounts": ()}), console)
    assert "no release has it" in stream.getvalue()


@pytest.mark.parametrize("everything", [False, True])
def test_an_explanation(everything: bool) -> None:
    console, stream = on_paper(80)
    print_explanation(EXPLANATION, console, everything=everything)
    check(f"explanation{'-all' if everything else ''}.txt", stream.getvalue())
