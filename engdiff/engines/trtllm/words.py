"""The words of ``trtllm-serve`` as fields of LlmArgs (tensorrt_llm/commands/serve.py 0.20 to newest)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from engdiff.engines.trtllm.normalize import KNOWLEDGE, NEWEST, Source
from engdiff.knowledge.versions import is_version
from engdiff.schema.values import Evidence

ALIASES: Mapping[str, str] = {
    "--tensor_parallel_size": "--tp_size",
    "--pipeline_parallel_size": "--pp_size",
    "--moe_expert_parallel_size": "--ep_size",
    "--free_gpu_memory_fraction": "--kv_cache_free_gpu_memory_fraction",
}
"""Later names of a flag (newest) and the name that native.toml has."""

SWITCHES = frozenset({"--trust_remote_code", "--enable_chunked_prefill"})
"""Flags with a canonical setting that take no value."""

YAML_FLAGS = ("--config", "--extra_llm_api_options")
"""The first name is of 1.2 and later, the second of all."""

_WHOLE = re.compile(r"[+-]?\d{1,18}")
_REAL = re.compile(r"[+-]?(?:\d{1,18}\.\d{0,18}|\.\d{1,18})(?:[eE][+-]?\d{1,3})?")


@dataclass(frozen=True)
class Written:
    """What stands on a command line: fields by path, and under which flag each was written."""

    tree: dict[str, JsonValue] = field(default_factory=dict)
    flags: dict[str, str] = field(default_factory=dict)

    def cite(self, path: str) -> Evidence:
        """The flag."""
        return Evidence(source="command", where=self.flags.get(path, path))

    @property
    def source(self) -> Source:
        """As a configuration that canonical settings are read from."""
        return Source(self.tree, self.cite)


def written(words: Sequence[str], version: str, model: str) -> Written:
    """The fields that the words set, and the model, if any; of a repetition the last counts."""
    paths = dict(_paths(version))
    found = Written({"model": model}, {"model": "MODEL"}) if model else Written()
    for flag, value in _pairs(words):
        plain = "--" + flag.removeprefix("--").replace("-", "_")
        path = paths.get(ALIASES.get(plain, plain))
        if path is not None and value is not None:
            put(found.tree, path, value if plain in SWITCHES else scalar(str(value)))
            found.flags[path] = flag
    return found


def declared(flags: Sequence[Mapping[str, JsonValue]], version: str) -> dict[str, JsonValue]:
    """The defaults that the flags themselves declare, as fields; a flag without one declares nothing."""
    paths = dict(_paths(version))
    found: dict[str, JsonValue] = {}
    for flag in flags:
        names = flag.get("names")
        for name in names if isinstance(names, list) else ():
            path = paths.get(ALIASES.get(str(name), str(name)))
            default = flag.get("default")
            if path is not None and isinstance(default, bool | int | float | str):
                put(found, path, default)
    return found


def yaml_path(words: Sequence[str]) -> tuple[str, str] | None:
    """The flag and the path of the YAML file; the last one counts."""
    named = [(flag, str(value)) for flag, value in _pairs(words) if flag in YAML_FLAGS and value not in (None, True)]
    return named[-1] if named else None


def _paths(version: str) -> Iterator[tuple[str, str]]:
    """Flags with the native path that they set."""
    at = version if is_version(version) else NEWEST
    for names in KNOWLEDGE.names(at).values():
        if names.flag and names.native:
            yield names.flag, names.native


def _pairs(words: Sequence[str]) -> Iterator[tuple[str, JsonValue]]:
    """Each flag with its value: the word after it, or after its ``=``; ``True`` for a switch, ``None`` for none."""
    for at, word in enumerate(words):
        flag, equals, value = word.partition("=")
        if not flag.startswith("--"):
            continue
        if "--" + flag.removeprefix("--").replace("-", "_") in SWITCHES:
            yield flag, True
        elif equals:
            yield flag, value
        else:
            yield flag, words[at + 1] if at + 1 < len(words) else None


def scalar(text: str) -> JsonValue:
    """A word as what it stands for."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _REAL.fullmatch(text) else text


def put(tree: dict[str, JsonValue], path: str, value: JsonValue) -> None:
    """Set a dotted path in a tree."""
    *parents, last = path.split(".")
    at = tree
    for name in parents:
        below = at.setdefault(name, {})
        if not isinstance(below, dict):
            return
        at = below
    at[last] = value
