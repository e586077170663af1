"""One rule for all engines: how the three layers of a setting give its origin."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from engdiff.schema.capture import Origin, Setting
from engdiff.schema.values import Evidence, Known, Unknown

MISSING = object()


def settle(
    *,
    configured: Known | None,
    declared: object,
    resolved: Known | Unknown,
    effective: Known | Unknown | None = None,
    native: str | None = None,
    because: str | None = None,
) -> Setting:
    """A setting whose origin follows from its layers.

    ``declared`` is the default as the engine declares it, or :data:`MISSING` when that is not known.
    user: written and held. forced: written, and something else holds. default: not written, and the
    declared default holds. derived: not written, and the engine made something else of it.
    """
    final = effective if isinstance(effective, Known) else resolved
    return Setting(
        configured=configured,
        resolved=resolved,
        effective=effective or Unknown(because="nothing deeper than the resolved configuration reports it"),
        origin=_origin(configured, declared, final),
        native=native,
        because=because,
    )


def _origin(configured: Known | None, declared: object, final: Known | Unknown) -> Origin | None:
    if isinstance(final, Unknown):
        return None
    if configured is not None:
        return "user" if same(configured.value, final.value) else "forced"
    if declared is MISSING:
        return None
    return "default" if same(declared, final.value) else "derived"


def same(left: object, right: object) -> bool:
    """Equality as a person sees it: ``1 == 1.0`` and ``"128" == 128``, but ``1`` is not ``True``."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right or str(left).lower() == str(right).lower()
    return left == right or (left is not None and right is not None and str(left) == str(right))


def lookup(tree: JsonValue | Mapping[str, JsonValue], path: str) -> object:
    """The value at a dotted path, or :data:`MISSING`."""
    at: object = tree
    for name in path.split("."):
        if not isinstance(at, Mapping) or name not in at:
            return MISSING
        at = at[name]
    return at


def exact(value: JsonValue, source: str, where: str, line: int | None = None) -> Known:
    """A value read as data."""
    return Known(value=value, evidence=Evidence(source=source, where=where, line=line))  # type: ignore[arg-type]
