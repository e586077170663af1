"""What the answers of a running server have in common, whichever engine gives them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from pydantic import JsonValue

from engdiff.jsontext import parse_json
from engdiff.metrics_text import Sample
from engdiff.schema.values import Basis, Evidence, Known

LARGEST = 10**18
"""No server counts as far; what claims to is no number."""


def object_in(body: str | None) -> dict[str, JsonValue]:
    """The body as an object; empty when it is none."""
    found = parse_json(body) if body is not None else None
    return found if isinstance(found, dict) else {}


def cards_in(body: str | None) -> list[dict[str, Any]]:
    """The models of ``/v1/models``, each as an object."""
    listed = object_in(body).get("data")
    return [card for card in listed if isinstance(card, dict)] if isinstance(listed, list) else []


def answered(where: str) -> Evidence:
    """The citation of an endpoint: its path, and the place in its answer."""
    return Evidence(source="endpoint", where=where)


def plain_value(value: object, where: str) -> Known | None:
    """A word, a number or a switch as data; ``None`` for what is none."""
    return Known(value=value, evidence=answered(where)) if isinstance(value, str | int | float | bool) else None


def counted(value: object, where: str, basis: Basis = "exact") -> Known | None:
    """A number; a boolean is none, and neither is what no server can count to."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not -LARGEST < value < LARGEST:
        return None
    return Known(value=value, basis=basis, evidence=answered(where))


def labelled(sample: Sample, without: Collection[str] = ()) -> str:
    """A metric's name with the labels that tell it from its like."""
    labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()) if name not in without)
    return f"{sample.name}{{{labels}}}" if labels else sample.name
