"""The table of neighbouring settings: what the user varies, else the share of memory with graphs in and beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation

from pydantic import JsonValue

from engdiff.budget.question import Axis, Question
from engdiff.errors import UsageError

NAMES: Mapping[str, str] = {
    "util": "kv.gpu_memory_utilization",
    "context": "model.max_model_len",
    "max-num-batched-tokens": "scheduler.max_num_batched_tokens",
    "max-num-seqs": "scheduler.max_num_seqs",
    "kv-dtype": "kv.dtype",
    "graphs": "graphs.charged",
}
"""What ``--vary`` calls a setting."""

SHARES = (0.88, 0.90, 0.92)
NEIGHBOURS = (-0.02, 0.0, 0.02)
MOST_VALUES = 200


def axes(question: Question, wanted: Sequence[str]) -> list[Axis]:
    """The axes of the table. Raises :class:`~engdiff.errors.UsageError` for what is none."""
    if wanted:
        return [axis(text) for text in wanted]
    share = question.stated.get("kv.gpu_memory_utilization")
    shares = SHARES if not isinstance(share, int | float) else tuple(round(share + step, 4) for step in NEIGHBOURS)
    return [
        Axis("kv.gpu_memory_utilization", [one for one in shares if 0 < one <= 1]),
        Axis("graphs.charged", [True, False]),
    ]


def axis(text: str) -> Axis:
    """``util=0.85:0.95:0.01`` or ``max-num-seqs=64,128``."""
    name, equals, values = text.partition("=")
    if name not in NAMES or not equals:
        known = ", ".join(NAMES)
        raise UsageError(f"--vary {text}: `{name}` cannot be varied", f"write one of {known}: util=0.85:0.95:0.01")
    found = _range(text, values) if ":" in values else [_value(text, one) for one in values.split(",")]
    return Axis(NAMES[name], found)


def _range(text: str, values: str) -> list[JsonValue]:
    try:
        first, last, step = (Decimal(part) for part in values.split(":"))
    except (InvalidOperation, ValueError):
        raise UsageError(f"--vary {text}: not a range", "write FIRST:LAST:STEP, as in util=0.85:0.95:0.01") from None
    if step <= 0 or last < first or (last - first) / step > MOST_VALUES:
        raise UsageError(f"--vary {text}: no range of at most {MOST_VALUES} values", "write FIRST:LAST:STEP, upwards")
    count = int((last - first) / step) + 1
    return [_number(first + step * at) for at in range(count)]


def _number(value: Decimal) -> JsonValue:
    return int(value) if value == value.to_integral_value() and value.as_tuple().exponent == 0 else float(value)


def _value(text: str, word: str) -> JsonValue:
    words: dict[str, JsonValue] = {"charged": True, "beside": False}
    if word in words:
        return words[word]
    try:
        return _number(Decimal(word))
    except InvalidOperation:
        if not word:
            raise UsageError(f"--vary {text}: an empty value", "write values with commas between") from None
        return word
