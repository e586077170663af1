"""What a running llama-server answers: endpoints that only read, and what their answers mean.

Only GET, and never ``?model=``: without it a router answers for itself and loads nothing (tools/server/
server-models.cpp, b7376 to b11549). ``/props`` and ``/v1/models`` let a sleeping model sleep; ``/slots`` wakes it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from engdiff.engines.answers import answered, cards_in, labelled, object_in
from engdiff.engines.layers import MISSING, lookup, settle
from engdiff.engines.llamacpp import admission
from engdiff.engines.llamacpp.stated import NATIVE
from engdiff.jsontext import parse_json
from engdiff.metrics_text import samples
from engdiff.schema.capture import Capture, Identity, Launch, Setting
from engdiff.schema.values import Known, Unknown, Value

IDENTIFY: tuple[str, ...] = ("/v1/models", "/props")
ENDPOINTS: Mapping[str, str] = {"props": "/props", "models": "/v1/models", "health": "/health"}
DRAINING: Mapping[str, str] = {"metrics": "/metrics", "slots": "/slots"}
"""Reading ``/metrics`` begins the window anew over which the server averages its speeds, so whoever collects them loses
what was in it (``metrics_reset_bucket``, tools/server/server-context.cpp); ``/slots`` wakes a model that sleeps."""

OWNER = "llamacpp"
PREFIX = "llamacpp:"
MOST_SAMPLES = 500

ONLY_EFFECTIVE = Unknown(because="the server states what runs, not what its configuration was resolved to")
NOT_ANSWERED = "no answer of the server states it"

SAMPLING = {
    "sampling.temperature": ("temperature", "sampling.temp"),
    "sampling.top_k": ("top_k", "sampling.top_k"),
    "sampling.top_p": ("top_p", "sampling.top_p"),
    "sampling.min_p": ("min_p", "sampling.min_p"),
    "sampling.repeat_penalty": ("repeat_penalty", "sampling.penalty_repeat"),
}
"""Name in ``default_generation_settings`` and the engine's own name."""

FLOAT_DIGITS = 6
"""The server writes its 32-bit floats with all the digits of 64-bit ones."""

LONG = ("chat_template", "chat_template_tool_use", "chat_template_caps", "ui_settings", "webui_settings")
"""Texts of the model, and settings of the web page: they decide nothing about serving."""

_BUILD = re.compile(r"b(?P<build>\d{1,9})-(?P<commit>\S{1,64})")
_COMMIT = re.compile(r"[0-9a-f]{7,40}")

Tree = Mapping[str, JsonValue]


def recognises(answers: Mapping[str, str]) -> bool:
    """Whether these answers are of llama-server: its name as owner of the models, or what only its ``/props`` holds."""
    if any(card.get("owned_by") == OWNER for card in cards_in(answers.get("/v1/models"))):
        return True
    props = object_in(answers.get("/props"))
    return isinstance(props.get("default_generation_settings"), dict) and ("total_slots" in props or _is_router(props))


def capture(answers: Mapping[str, str], base: Capture) -> Capture:
    """``base`` with everything that the endpoints say."""
    props = object_in(answers.get("props"))
    cards = cards_in(answers.get("models"))
    return base.model_copy(
        update={
            "identity": _identity(props, base.identity),
            "launch": _launch(props, cards, base.launch),
            "native": _native(answers, props, cards),
            "settings": _settings(props, cards),
            "admission": admission.rule(),
            "run_summary": {**base.run_summary, **_run_summary(answers)},
            "notes": (*base.notes, *_notes(props, cards)),
        }
    )


# --- answers ----------------------------------------------------------------------------------------------------


def _slots(body: str | None) -> Sequence[Tree]:
    """The slots of ``/slots``."""
    found = parse_json(body) if body else None
    return [slot for slot in found if isinstance(slot, dict)] if isinstance(found, list) else []


def _is_router(props: Tree) -> bool:
    return props.get("role") == "router"


def _served(props: Tree, cards: Sequence[Tree]) -> Tree:
    """What the card of the one model says about it; a router's cards are of many."""
    meta = cards[0].get("meta") if len(cards) == 1 and not _is_router(props) else None
    return meta if isinstance(meta, dict) else {}


# --- identity ---------------------------------------------------------------------------------------------------


def _identity(props: Tree, identity: Identity) -> Identity:
    version: Value = Unknown(because=NOT_ANSWERED)
    commit: Value = Unknown(because=NOT_ANSWERED)
    text = props.get("build_info")
    match = _BUILD.fullmatch(text) if isinstance(text, str) else None
    if match:
        number, rest = int(match["build"]), match["commit"]
        evidence = answered("/props build_info")
        version = (
            Known(value=f"b{number}", evidence=evidence)
            if number
            else Unknown(because="the build does not know its own number (/props build_info)")
        )
        if _COMMIT.fullmatch(rest):
            commit = Known(value=rest, evidence=evidence)
    return identity.model_copy(update={"version": version, "commit": commit})


def _launch(props: Tree, cards: Sequence[Tree], launch: Launch) -> Launch:
    path = props.get("model_path")
    named = path if isinstance(path, str) and path and not _is_router(props) else None
    if named is None and len(cards) == 1:
        name = cards[0].get("id")
        named = name if isinstance(name, str) else None
    return launch.model_copy(update={"model": named, "model_given": named})


# --- native and settings ----------------------------------------------------------------------------------------


def _native(answers: Mapping[str, str], props: Tree, cards: Sequence[Tree]) -> dict[str, JsonValue]:
    """Everything as the server names it, without the model's own texts."""
    parts: dict[str, JsonValue] = {
        "props": {name: value for name, value in props.items() if name not in LONG},
        "models": [dict(card) for card in cards],
        "slots": [_slot(slot) for slot in _slots(answers.get("slots"))],
    }
    return {name: part for name, part in parts.items() if part}


def _slot(slot: Tree) -> JsonValue:
    """A slot without what its request said."""
    return {name: slot[name] for name in ("id", "n_ctx", "speculative", "is_processing") if name in slot}


def _settings(props: Tree, cards: Sequence[Tree]) -> dict[str, Setting]:
    """What the server states; a router states nothing about its models (its zero is a placeholder)."""
    if _is_router(props):
        return {}
    stated = {
        "model.path": _text(props, "model_path"),
        "model.max_model_len": _whole(props, "default_generation_settings.n_ctx")
        or _whole(_served(props, cards), "n_ctx", "/v1/models data[0].meta."),
        "scheduler.max_num_seqs": _whole(props, "total_slots"),
        "model.quantization": _text(props, "model_ftype")
        or _text(_served(props, cards), "ftype", "/v1/models data[0].meta."),
        **{key: _sampling(props, name) for key, (name, _) in SAMPLING.items()},
    }
    native = {**NATIVE, **{key: name for key, (_, name) in SAMPLING.items()}}
    return {
        key: settle(
            configured=None,
            declared=MISSING,
            resolved=ONLY_EFFECTIVE,
            effective=known,
            native=native.get(key),
        )
        for key, known in stated.items()
        if known is not None
    }


def _known(value: JsonValue, where: str) -> Known:
    return Known(value=value, evidence=answered(where))


def _text(tree: Tree, path: str, where: str = "/props ") -> Known | None:
    value = lookup(tree, path)
    return _known(value, where + path) if isinstance(value, str) and value else None


def _whole(tree: Tree, path: str, where: str = "/props ") -> Known | None:
    """A positive whole number; older servers answer 0 for what they do not know."""
    value = lookup(tree, path)
    good = isinstance(value, int) and not isinstance(value, bool) and value > 0
    return _known(value, where + path) if good and isinstance(value, int) else None


def _sampling(props: Tree, name: str) -> Known | None:
    """Below ``params`` from b4400 on, beside ``n_ctx`` before."""
    for path in (f"default_generation_settings.params.{name}", f"default_generation_settings.{name}"):
        value = lookup(props, path)
        if isinstance(value, int | float | str) and not isinstance(value, bool):
            return _known(round(value, FLOAT_DIGITS) if isinstance(value, float) else value, f"/props {path}")
    return None


# --- counters and notes -----------------------------------------------------------------------------------------


def _run_summary(answers: Mapping[str, str]) -> dict[str, Value]:
    """The counters of ``/metrics`` under their own names, and how many slots are busy."""
    found: dict[str, Value] = {}
    for sample in samples(answers.get("metrics") or ""):
        if len(found) >= MOST_SAMPLES or not sample.name.startswith(PREFIX):
            continue
        name = labelled(sample)
        found[name] = (
            Known(value=sample.value, basis="measured", evidence=answered(f"/metrics {name}"))
            if abs(sample.value) < float("inf")
            else Unknown(because=f"the server answers {sample.value}")
        )
    if slots := _slots(answers.get("slots")):
        busy = sum(slot.get("is_processing") is True for slot in slots)
        found["slots processing"] = Known(value=busy, basis="measured", evidence=answered("/slots is_processing"))
    return found


def _notes(props: Tree, cards: Sequence[Tree]) -> tuple[str, ...]:
    notes = []
    if _is_router(props):
        loaded = [str(card.get("id")) for card in cards if lookup(card, "status.value") == "loaded"]
        notes.append(
            f"a router of {len(cards)} models: its answers are about none of them"
            + (f"; loaded are {', '.join(loaded)}: give the address of one of their servers" if loaded else "")
        )
    if props.get("is_sleeping") is True:
        notes.append("the model sleeps: it was unloaded for want of requests, and the next one loads it again")
    return tuple(notes)
