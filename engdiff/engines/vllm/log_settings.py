"""Settings from a log of vLLM: what the user gave, what the configuration line says, and what single lines state."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from pydantic import JsonValue

from engdiff.engines.layers import MISSING, lookup, settle
from engdiff.knowledge.tables import Knowledge, Names
from engdiff.logs.reprs import Parsed, parse, parse_fragment
from engdiff.logs.starts import Start
from engdiff.logs.statements import Statement
from engdiff.logs.values import amount, decimal, evidence, word
from engdiff.schema.capture import Setting
from engdiff.schema.values import Evidence, Known, Unknown, number

KNOWLEDGE = Knowledge("engdiff.engines.vllm")

NEWEST = "0.32.0"
"""Whose names of arguments are used when the log does not state its version; names of older ones are tried as well."""

LONGEST_CITED = 160
LONGEST_LIST_CITED = 800
"""Of a configuration line, which is thousands of characters long: as much as holds the value (83 graph sizes)."""

NOT_STATED = "the log does not state it"


@dataclass(frozen=True)
class Trees:
    """The printed reprs: what the user gave, every argument with its default, the resolved configuration."""

    given: Parsed | None
    given_at: Statement | None
    every: Parsed | None
    every_at: Statement | None
    config: Parsed | None
    config_at: Statement | None

    def native(self) -> dict[str, JsonValue]:
        """As in ``Capture.native``."""
        found = {"non_default_args": self.given, "args": self.every, "config": self.config}
        return {name: parsed.tree for name, parsed in found.items() if parsed and parsed.tree}

    def notes(self) -> list[str]:
        """What is missing of each, in words."""
        rows = (
            ("arguments", self.given, self.given_at),
            ("arguments", self.every, self.every_at),
            ("configuration", self.config, self.config_at),
        )
        return [
            f"the {what} of line {at.line.number}: {'; '.join(parsed.missing)}"
            for what, parsed, at in rows
            if parsed and at and parsed.missing
        ]


def trees(start: Start) -> Trees:
    """Every repr of the start: the last of each kind, and of the configuration its fullest."""
    given, every = start.last_of("user args"), start.last_of("all args")
    config_at = max(start.all("engine config"), key=lambda s: len(s["config"]), default=None)
    config = _parsed(config_at, "config", _configuration)
    if config is None or not config.tree:
        fragment = start.last_of("config fragment")
        if fragment:
            config_at, config = fragment, _parsed(fragment, "fragment", parse_fragment)
    return Trees(
        _parsed(given, "args", parse),
        given,
        _parsed(every, "args", parse),
        every,
        config,
        config_at if config else None,
    )


def _parsed(statement: Statement | None, group: str, read: Callable[[str], Parsed]) -> Parsed | None:
    text = statement.get(group) if statement else None
    return read(text) if text else None


_WHOLE = re.compile(r"(?:[)}]|use_cached_outputs=(?:True|False))[ ,]*\Z")
"""How a configuration line ends in every version (vllm/config ``VllmConfig.__str__``, vllm/engine/llm_engine.py)."""


def _configuration(text: str) -> Parsed:
    """The configuration line; one that ends as none does was cut."""
    whole = _WHOLE.search(text[-80:]) is not None
    return parse(text.rstrip(" ,") if whole else text, cut=not whole)


def version(start: Start) -> Known | None:
    """What the log states; ``dev`` alone, as of a build without a version, is none."""
    for name, group in (
        ("api version", "version"),
        ("engine config", "version"),
        ("banner version", "version"),
        ("banner version", "plain_version"),
    ):
        for statement in start.all(name):
            found = word(statement, group)
            if found and re.match(r"\d+\.\d+", str(found.value)):
                return found
    return None


def settings(start: Start, from_trees: Trees) -> dict[str, Setting]:
    """Canonical settings in the layers that the log shows; the origin only where it follows from them."""
    said = version(start)
    names = {**KNOWLEDGE.names("0.12.0"), **KNOWLEDGE.names(str(said.value) if said else NEWEST)}
    stated = _stated(start)
    found: dict[str, Setting] = {}
    for key in dict.fromkeys((*names, *config_places(), *stated)):
        configured = _configured(names.get(key), from_trees)
        resolved = _resolved(key, names.get(key), from_trees)
        effective = stated.get(key)
        if configured is None and resolved is None and effective is None:
            continue
        found[key] = _setting(configured, resolved, effective, names.get(key))
    return found


def _setting(configured: Known | None, resolved: Known | None, line: Known | None, names: Names | None) -> Setting:
    """The line of a log that states a decision is the resolved value, unless the configuration is there as well."""
    if resolved is None:
        resolved, line = line, None
    setting = settle(
        configured=configured,
        declared=MISSING,
        resolved=resolved or Unknown(because=NOT_STATED),
        effective=line or Unknown(because=NOT_STATED),
        native=names.native if names else None,
    )
    rounded = setting.origin == "forced" and configured is not None and _within(configured, setting.final)
    return setting.model_copy(update={"origin": "user"}) if rounded else setting


def _within(written: Known, final: Known | Unknown) -> bool:
    """Whether the written number is what was printed rounded, or the written type is what was printed."""
    if not isinstance(final, Known):
        return False
    given = number(written)
    if given is None or final.low is None or final.high is None:
        return False
    return final.low <= given <= final.high


# --- from the reprs ---------------------------------------------------------------------------------------------


@cache
def config_places() -> Mapping[str, list[str]]:
    """Canonical key to places in the configuration line: ``[config]`` of ``knowledge/log.toml``."""
    resource = files("engdiff.engines.vllm") / "knowledge" / "log.toml"
    table: Mapping[str, list[str]] = tomllib.loads(resource.read_text(encoding="utf-8"))["config"]
    return table


ALIASES = {
    "model": "model_tag",
    "disable_hybrid_kv_cache_manager": "no_hybrid_kv_cache_manager",
    "scheduler_cls": "scheduler_class",
}
"""Other names under which the arguments hold a value."""

NOT_SETTLED = (None, "auto", "")
"""Values of arguments that mean: vLLM decides."""


def _configured(names: Names | None, from_trees: Trees) -> Known | None:
    """What the user gave."""
    if names is None or from_trees.given is None or from_trees.given_at is None:
        return None
    name, value = _argument(names, from_trees.given.tree)
    return None if value is MISSING else _cited(value, name, from_trees.given_at)


_NESTED: Mapping[str, tuple[str, str]] = {
    "speculative.method": ("speculative_config", "method"),
    "speculative.num_tokens": ("speculative_config", "num_speculative_tokens"),
    "speculative.model": ("speculative_config", "model"),
    "graphs.capture_sizes": ("compilation_config", "cudagraph_capture_sizes"),
    "graphs.max_capture_size": ("compilation_config", "max_cudagraph_capture_size"),
    "kernels.attention_backend": ("attention_config", "backend"),
}
"""Settings that have an argument of their own and a place in one that takes a whole sub-configuration."""


def _argument(names: Names, tree: Mapping[str, JsonValue]) -> tuple[str, object]:
    """The name and the value of an argument; of one that takes a sub-configuration, those of the setting in it."""
    if names.arg is None:
        return "", MISSING
    for name in filter(None, (names.arg, ALIASES.get(names.arg))):
        if name in tree:
            value = tree[name]
            if isinstance(value, dict) and name.endswith("_config"):
                leaf = (names.native or "").rsplit(".", 1)[-1]
                return leaf, value.get(leaf, MISSING)
            return name, value
    if names.key not in _NESTED:
        return "", MISSING
    outer, leaf = _NESTED[names.key]
    nested = lookup(tree, f"{outer}.{leaf}")
    return leaf, MISSING if nested is None else nested


def _resolved(key: str, names: Names | None, from_trees: Trees) -> Known | None:
    """From the configuration line, else from a list of every argument, where it is no wish that vLLM settles."""
    if from_trees.config and from_trees.config_at:
        for place in config_places().get(key, ()):
            value = lookup(from_trees.config.tree, place)
            if value is not MISSING:
                return _cited(worded(key, value), place.rsplit(".", 1)[-1], from_trees.config_at)
    if names is None or from_trees.every is None or from_trees.every_at is None:
        return None
    name, value = _argument(names, from_trees.every.tree)
    settled = value is not MISSING and not any(value is one or value == one for one in NOT_SETTLED)
    return _cited(value, name, from_trees.every_at) if settled else None


GRAPH_MODES: Mapping[str, str] = {
    "0": "NONE",
    "1": "PIECEWISE",
    "2": "FULL",
    "[2, 0]": "FULL_DECODE_ONLY",
    "[2, 1]": "FULL_AND_PIECEWISE",
}
COMPILE_MODES: Mapping[str, str] = {
    "0": "NONE",
    "1": "STOCK_TORCH_COMPILE",
    "2": "DYNAMO_TRACE_ONCE",
    "3": "VLLM_COMPILE",
}
"""Numbers that the enums are printed as (vllm/config/compilation.py, 0.10 to 0.32)."""


def worded(key: str, value: object) -> object:
    """Enums by name, whichever way this version prints them."""
    words = {"graphs.mode": GRAPH_MODES, "compile.mode": COMPILE_MODES}.get(key, {})
    return words.get(str(value), value)


def _cited(value: object, name: str, statement: Statement) -> Known:
    """A value of a repr, with the piece of its line in which it stands."""
    if isinstance(value, str):
        value = value.removeprefix("torch.")
        value = value.partition(".")[2].lower() if value.startswith("LoadFormat.") else value
    return Known(value=value, evidence=_piece(name, value, statement))  # type: ignore[arg-type]


def _piece(name: str, value: object, statement: Statement) -> Evidence:
    """The line from the name on, or from the value on where an alias says it; the whole line is too long to cite."""
    text, longest = statement.text, LONGEST_LIST_CITED if isinstance(value, list | dict) else LONGEST_CITED
    match = re.search(rf"""\b{re.escape(name)}["']?\s{{0,2}}[:=]""", text)
    at = match.start() if match else -1
    if isinstance(value, str) and value in text and (at < 0 or value not in text[at : at + longest]):
        at = text.find(value)
    if at < 0:
        return evidence(statement.line.text, statement.line)
    line = statement.line
    for offset, piece in statement.pieces:
        if offset <= at:
            line = piece
    return evidence(text[at : at + longest], line)


# --- from single lines ------------------------------------------------------------------------------------------


def _stated(start: Start) -> dict[str, Known]:
    """Settings that single lines state."""
    found = {key: read(start) for key, read in _LINES.items()}
    return {key: value for key, value in found.items() if value is not None}


def _last(group: str, *names: str) -> Callable[[Start], Known | None]:
    """The last statement that has the group; names that come first are asked first."""

    def read(start: Start) -> Known | None:
        said = (s for name in names for s in reversed(list(start.all(name))) if s.get(group) is not None)
        return next((found for s in said if (found := as_stated(s, group))), None)

    return read


def _first(group: str, *names: str) -> Callable[[Start], Known | None]:
    def read(start: Start) -> Known | None:
        said = (s for name in names for s in start.all(name) if s.get(group) is not None)
        return next((found for s in said if (found := as_stated(s, group))), None)

    return read


def _flag(value: bool, *names: str) -> Callable[[Start], Known | None]:
    """True or false because a line of one of these names is there."""

    def read(start: Start) -> Known | None:
        statement = start.last_of(*names)
        return Known(value=value, evidence=evidence(statement.line.text, statement.line)) if statement else None

    return read


def as_stated(statement: Statement, group: str) -> Known | None:
    """A printed number or word. A share of memory is printed as it was given, or rounded to two or four decimals."""
    printed = statement.get(group)
    if printed is None:
        return None
    if decimal(printed) is None:
        found = word(statement, group)
        return found.model_copy(update={"value": str(found.value).removeprefix("torch.")}) if found else None
    found = amount(statement, group, basis="exact")
    whole = found is not None and (group.endswith("utilization") and statement.name == "memory summary")
    return found.model_copy(update={"low": None, "high": None}) if found and whole else found


def backends(start: Start) -> Known | None:
    """Every attention backend that a line names, as printed; of several all, in order."""
    said = list(start.all("attention backend"))
    names = sorted({s["backend"].strip() for s in said})
    if not said:
        return _last("backend", "graph mode", "block size")(start) if _named(start) else None
    one = word(said[-1], "backend")
    if len(names) == 1 or one is None:
        return one
    lines = sorted({s.line.number for s in said})
    where = f"attention backends of lines {', '.join(map(str, lines))}"
    return Known(value=", ".join(names), evidence=Evidence(source="rule", where=where), basis="engine rule")


def _named(start: Start) -> bool:
    return any(s.get("backend") for s in start.all("graph mode", "block size"))


def _async(start: Start) -> Known | None:
    said, off = start.last_of("async scheduling"), start.last_of("async scheduling off")
    if said:
        return Known(value=said["state"] == "enabled", evidence=evidence(said.line.text, said.line))
    return Known(value=False, evidence=evidence(off.line.text, off.line)) if off else None


def _runner(start: Start) -> Known | None:
    return _flag(True, "runner V2")(start) or _flag(False, "runner fallback")(start)


def _kv_bytes(start: Start) -> Known | None:
    """The size of the pool where it was set outright."""
    outright = start.last_of("KV set outright")
    cpu = next((s for s in start.all("CPU KV") if s["how"] == "Explicitly"), None)
    plan = start.last_of("startup plan")
    return next((found for s in (plan, outright, cpu) if s and (found := _first_amount(s))), None)


def _first_amount(statement: Statement) -> Known | None:
    return amount(statement, "kv_bytes") or amount(statement, "kv_gib")


_UTILIZATION = (
    "memory summary",
    "requested memory",
    "graph memory counted",
    "graph memory not counted",
    "budget",
    "memory results",
    "free memory check",
    "HPU memory",
)

_LINES: Mapping[str, Callable[[Start], Known | None]] = {
    "model.max_model_len": lambda start: (
        _last("max_model_len", "fitted context", "context", "KV check")(start)
        or _last("length_tokens", "concurrency")(start)
    ),
    "model.dtype": _last("dtype", "data type"),
    "model.enforce_eager": _flag(True, "eager"),
    "kv.dtype": _last("dtype", "KV data type", "KV scale", "KV format"),
    "kv.block_size": _last("block_tokens", "block size"),
    "kv.gpu_memory_utilization": _last("utilization", *_UTILIZATION),
    "kv.configured_bytes": _kv_bytes,
    "kv.blocks_override": _last("gpu_blocks", "blocks overridden"),
    "kv.layout": _last("layout", "KV layout"),
    "kv.hybrid_manager_disabled": _flag(True, "hybrid manager off"),
    "scheduler.max_num_batched_tokens": lambda start: (
        _last("batched_tokens", "raised batched tokens")(start)
        or _first("batched_tokens", "chunked prefill", "default batched tokens")(start)
    ),
    "scheduler.max_num_seqs": _first("sequences", "default sequences"),
    "scheduler.chunked_prefill": _flag(True, "chunked prefill", "chunked prefill default"),
    "scheduler.async_scheduling": _async,
    "scheduler.class": _last("scheduler", "custom scheduler"),
    "kernels.attention_backend": backends,
    "kernels.flash_attn_version": _last("version", "flash attention version"),
    "kernels.moe_backend": _last("backend", "MoE backend"),
    "graphs.mode": _last("mode", "graph mode"),
    "graphs.max_capture_size": _last("max_tokens", "graph capping"),
    "runner.v2": _runner,
}
