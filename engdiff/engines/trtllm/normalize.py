"""From the names of TensorRT-LLM to canonical settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from engdiff.engines.layers import MISSING, lookup, same, settle
from engdiff.engines.trtllm import defaults
from engdiff.knowledge.tables import Knowledge
from engdiff.schema.capture import Setting
from engdiff.schema.values import Evidence, Known, Unknown

KNOWLEDGE = Knowledge("engdiff.engines.trtllm")

NEWEST = "1.4.0"
NAMINGS = (NEWEST, "1.1.0")
"""Versions with other names for a field, newest first: a log does not always say which version wrote it."""

PYTORCH_CONFIG = {
    "kernels.attention_backend": "attn_backend",
    "kernels.moe_backend": "moe_backend",
    "graphs.mode": "use_cuda_graph",
    "graphs.capture_sizes": "cuda_graph_batch_sizes",
    "graphs.max_capture_size": "cuda_graph_max_batch_size",
    "kv.dtype": "kv_cache_dtype",
    "kv.ssm_dtype": "mamba_ssm_cache_dtype",
    "scheduler.async_scheduling": "disable_overlap_scheduler",
    "scheduler.stream_interval": "stream_interval",
    "load.format": "load_format",
}
"""Fields of PyTorchConfig (tensorrt_llm/_torch/pyexecutor/config.py 0.17 to 1.1)."""

OVERLAP_BEFORE = "enable_overlap_scheduler"
"""The name of 0.17 to 0.19, when the scheduler was off unless it was asked for."""

PRINTED_IS_RESOLVED = "TensorRT-LLM logs its arguments with their defaults, so what the user wrote is not known"
NOT_PRINTED = Unknown(because="the log does not print the configuration that holds it")

DECODE = "decode"
"""Graphs of steps that only generate; prompts run without one."""


@dataclass(frozen=True)
class Source:
    """A printed configuration, and how to cite a dotted field of it."""

    tree: Mapping[str, JsonValue]
    cite: Callable[[str], Evidence]


@dataclass(frozen=True)
class Deeper:
    """What lines below the configuration say, by key.

    ``given``: what a line says the engine was given and does not do. ``because``: why it does something else.
    """

    effective: Mapping[str, Known]
    given: Mapping[str, Known] = field(default_factory=dict)
    because: Mapping[str, str] = field(default_factory=dict)


def settings(
    args: Source | None, pytorch: Source | None, deeper: Deeper, version: str | None = None
) -> dict[str, Setting]:
    """Settings for every key that the arguments or a deeper line state; ``version`` tells who set them."""
    resolved: dict[str, tuple[Known, str]] = {}
    if pytorch:
        resolved |= _from_pytorch(pytorch)
    if args:
        resolved |= from_args(args)
    keys = sorted(resolved.keys() | deeper.effective.keys())
    return {key: _settled(key, resolved.get(key), deeper, version) for key in keys}


def _settled(key: str, resolved: tuple[Known, str] | None, deeper: Deeper, version: str | None) -> Setting:
    native = (
        resolved[1] if resolved else KNOWLEDGE.names(NEWEST)[key].native if key in KNOWLEDGE.names(NEWEST) else None
    )
    value, effective = resolved[0] if resolved else None, deeper.effective.get(key)
    wrote, declared = who(key, value, version) if value else (None, at_default(key, effective, version))
    setting = settle(
        configured=deeper.given.get(key, wrote),
        declared=declared,
        resolved=value or NOT_PRINTED,
        effective=effective,
        native=native,
        because=deeper.because.get(key),
    )
    if setting.because or setting.origin or not resolved:
        return setting
    return setting.model_copy(update={"because": PRINTED_IS_RESOLVED})


def who(key: str, resolved: Known, version: str | None) -> tuple[Known | None, object]:
    """What somebody wrote, and the declared default, as far as the static default of this version tells them.

    A field at its default was left alone. One that is not, and that no code of the engine writes, was given at the
    start. Of all others it is not known who wrote them: nothing is written and :data:`MISSING` declared.
    """
    path, default = _default(key, version)
    if default is None:
        return None, MISSING
    declared = _meant(key, default.value)
    if same(declared, resolved.value):
        return None, declared
    if not default.starter or resolved.value is None:
        return None, MISSING
    cited = resolved.evidence
    where = f"{defaults.LABEL}: {path} is {default.value} in {version} unless it is given ({default.source})"
    rule = Evidence(source="rule", where=where, line=cited.line if cited else None, file=cited.file if cited else None)
    return resolved.model_copy(update={"basis": "engine rule", "evidence": rule}), declared


def at_default(key: str, effective: Known | None, version: str | None) -> object:
    """The declared default where what the worker did is just that; else :data:`MISSING`: it tells nothing."""
    _, default = _default(key, version)
    if default is None or effective is None:
        return MISSING
    declared = _meant(key, default.value)
    return declared if same(declared, effective.value) else MISSING


def static_default(key: str, version: str | None) -> object:
    """The declared default of this version in the registry's words; :data:`MISSING` where nobody read it."""
    _, default = _default(key, version)
    return MISSING if default is None else _meant(key, default.value)


def _default(key: str, version: str | None) -> tuple[str, defaults.Default | None]:
    names = KNOWLEDGE.names(version).get(key) if version else None
    path = names.native if names else None
    return path or "", defaults.at(version).get(path or "")


def from_args(source: Source) -> dict[str, tuple[Known, str]]:
    """Canonical key to value and native path, for every field of LlmArgs that the tree has."""
    found: dict[str, tuple[Known, str]] = {}
    for key in KNOWLEDGE.names(NEWEST):
        for naming in NAMINGS:
            path = KNOWLEDGE.names(naming)[key].native
            value = lookup(source.tree, path) if path else MISSING
            if path and value is not MISSING:
                found[key] = (_known(key, value, source.cite(path)), path)
                break
    return found


def _from_pytorch(source: Source) -> dict[str, tuple[Known, str]]:
    found: dict[str, tuple[Known, str]] = {}
    for key, name in PYTORCH_CONFIG.items():
        if name in source.tree:
            found[key] = (_known(key, source.tree[name], source.cite(name)), f"PyTorchConfig.{name}")
    if isinstance(on := source.tree.get(OVERLAP_BEFORE), bool):
        overlap = Known(value=on, evidence=source.cite(OVERLAP_BEFORE))
        found["scheduler.async_scheduling"] = (overlap, f"PyTorchConfig.{OVERLAP_BEFORE}")
    return found


def _known(key: str, value: object, cited: Evidence) -> Known:
    """The value in the registry's words; where these are not the printed ones, it is a rule that gives them."""
    meant = _meant(key, value)
    if isinstance(meant, str) and not isinstance(value, str):
        where = cited.where if cited.line is None else f"{cited.where}, line {cited.line}"
        cited = cited.model_copy(update={"source": "rule", "where": where})
        return Known(value=meant, basis="engine rule", evidence=cited)
    return Known(value=meant, evidence=cited)


def _meant(key: str, value: object) -> JsonValue:
    """The value in the registry's words."""
    if key == "scheduler.async_scheduling" and isinstance(value, bool):
        return not value
    if key == "graphs.mode":
        return "none" if value is None or value is False else DECODE
    if key in ("lora.enabled", "parallel.eplb"):
        return value is not None
    if key == "parallel.ep" and isinstance(value, int):
        return value > 1
    if key == "parallel.executor" and value is None:
        return "mpi"
    if key == "kv.configured_bytes" and value == 0:
        return None
    plain: JsonValue = value  # type: ignore[assignment]  # a JSON tree's value, whatever it is
    return plain.removeprefix("torch.") if isinstance(plain, str) else plain
