"""Canonical settings as a log of llama.cpp states them, and as the command that a wrapper prints asked for them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from engdiff.engines.layers import MISSING, settle
from engdiff.engines.llamacpp.facts import Cache, Fact, Line, LogFacts, cited, number
from engdiff.logs.statements import Statement
from engdiff.redact import redact_words
from engdiff.schema.capture import Setting
from engdiff.schema.values import Evidence, Known, Unknown
from engdiff.units import GIB, MIB

ONLY_EFFECTIVE = Unknown(because="a log states what runs, not what the configuration was resolved to")

CONTEXT = {
    "scheduler.max_num_batched_tokens": ("n_batch",),
    "scheduler.micro_batch": ("n_ubatch",),
    "kv.unified": ("kv_unified",),
}
"""Settings that the context states when it is made."""

FACTS = {
    "kernels.threads": "threads",
    "kernels.threads_batch": "threads_batch",
    "kernels.gpu_layers": "layers",
    "server.http_threads": "http_threads",
    "kv.checkpoints": "checkpoints",
    "kv.checkpoint_spacing": "checkpoint_spacing",
    "kv.unified": "kv_unified",
    "speculative.model": "draft_path",
}
"""Settings that a line of the server states; a context's own word goes first."""

NATIVE = {
    "model.path": "model.path",
    "model.context_total": "n_ctx",
    "scheduler.max_num_batched_tokens": "n_batch",
    "scheduler.micro_batch": "n_ubatch",
    "scheduler.max_num_seqs": "n_parallel",
    "kv.unified": "kv_unified",
    "kv.dtype": "cache_type_k",
    "kv.dtype_values": "cache_type_v",
    "kv.offload_bytes": "cache_ram_mib",
    "kv.checkpoints": "n_ctx_checkpoints",
    "kv.checkpoint_spacing": "checkpoint_min_step",
    "kernels.flash_attention": "flash_attn_type",
    "kernels.threads": "cpuparams.n_threads",
    "kernels.threads_batch": "cpuparams_batch.n_threads",
    "kernels.gpu_layers": "n_gpu_layers",
    "load.warmup": "warmup",
    "server.http_threads": "n_threads_http",
}
"""The engine's names, as in a launched capture."""


# --- the command ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Command:
    """A command as a wrapper printed it. ``asked``: canonical keys to what it asks for, with the line."""

    words: tuple[str, ...]
    arguments: tuple[str, ...]
    model: str | None
    asked: dict[str, Known] = field(default_factory=dict)


FLAGS = {
    "model.context_total": ("--ctx-size", "-c"),
    "scheduler.max_num_batched_tokens": ("--batch-size", "-b"),
    "scheduler.micro_batch": ("--ubatch-size", "-ub"),
    "scheduler.max_num_seqs": ("--parallel", "-np"),
    "kernels.gpu_layers": ("--n-gpu-layers", "--gpu-layers", "-ngl"),
    "kernels.threads": ("--threads", "-t"),
    "kernels.threads_batch": ("--threads-batch", "-tb"),
    "kv.dtype": ("--cache-type-k", "-ctk", "--kv-cache-type"),
    "kv.dtype_values": ("--cache-type-v", "-ctv", "--kv-cache-type"),
    "speculative.model": ("--model-draft", "-md"),
}
"""Flags of llama-server, and of ollama's runners, that take a value."""


def command(statements: Iterable[Statement]) -> Command | None:
    """The last command that a wrapper printed."""
    said = next((s for s in reversed(list(statements)) if s.name == "ollama_command"), None)
    if said is None:
        return None
    words = _words(said["command"].replace("\\\\", "\\"))
    line = cited(said, "command")
    asked = {key: known for key, flags in FLAGS.items() if (known := _asked(words, flags, line))}
    if flash := _flash(words, line):
        asked["kernels.flash_attention"] = flash
    model = _value(words, ("--model", "-m"))
    if model:
        asked["model.path"] = Known(value=model, evidence=line.evidence)
    redacted = redact_words(words)
    return Command(redacted, _after_program(redacted), model, asked)


def _words(text: str) -> tuple[str, ...]:
    """A Windows path keeps its backslashes; what tells a shell that the command goes on is no word of it."""
    lexer = shlex.shlex(text, posix=True)
    lexer.whitespace_split, lexer.escape, lexer.commenters = True, "", ""
    try:
        words = tuple(lexer)
    except ValueError:
        words = tuple(text.split())
    return tuple(word for word in words if word not in ("\\", "^", "`"))


def _after_program(words: tuple[str, ...]) -> tuple[str, ...]:
    first = next((index for index, word in enumerate(words) if index and word.startswith("-")), len(words))
    return words[first:]


def _value(words: tuple[str, ...], flags: tuple[str, ...]) -> str | None:
    found = [words[i + 1] for i, word in enumerate(words[:-1]) if word in flags]
    return found[-1] if found else None


def _asked(words: tuple[str, ...], flags: tuple[str, ...], line: Line) -> Known | None:
    text = _value(words, flags)
    return None if text is None else Known(value=number(text), evidence=line.evidence)


def _flash(words: tuple[str, ...], line: Line) -> Known | None:
    """Flash attention as the command asks for it: a switch until b6300, with a word after it since."""
    at = next((i for i, word in enumerate(words) if word in ("--flash-attn", "-fa")), None)
    if at is None:
        return None
    said = words[at + 1] if at + 1 < len(words) else ""
    value = {"off": "disabled", "0": "disabled", "auto": "auto"}.get(said, "enabled")
    where = f"{words[at]} of the command, line {line.number}"
    return Known(value=value, evidence=Evidence(source="rule", where=where))


_REQUEST = re.compile(r"(\w+):(\w*)(?= |$)")
"""One ``Name:value`` of the load request that ollama prints; a value that is a list is left out."""

REQUEST = {
    "model.context_total": "KvSize",
    "scheduler.max_num_batched_tokens": "BatchSize",
    "scheduler.max_num_seqs": "Parallel",
    "kernels.flash_attention": "FlashAttention",
    "kv.dtype": "KvCacheType",
    "kv.dtype_values": "KvCacheType",
    "kernels.threads": "NumThreads",
}


SWITCH = {"true": "enabled", "enabled": "enabled", "false": "disabled", "disabled": "disabled"}
"""Flash attention in that request, as a switch or, later, as a word."""


def ollama_request(log: LogFacts) -> dict[str, Known]:
    """What ollama's own engine was told to load; zero and nothing mean that it was not told."""
    fact = log.own.get("request")
    if fact is None:
        return {}
    said = dict(_REQUEST.findall(str(fact.value)))
    found = {}
    for key, name in REQUEST.items():
        value = number(said.get(name, ""))
        if key == "kernels.flash_attention":
            value = SWITCH.get(str(value).lower())
        if value:
            found[key] = Known(value=value, evidence=_cites(key, fact))
    return found


def _cites(key: str, fact: Fact) -> Evidence:
    """A switch is put into words, which do not stand in the line."""
    if key == "kernels.flash_attention":
        return Evidence(source="rule", where=f"FlashAttention of the load request, line {fact.line.number}")
    return fact.line.evidence


# --- settings ---------------------------------------------------------------------------------------------------


def settings(log: LogFacts, words: Command | None) -> dict[str, Setting]:
    """What the log states, with what the command asked for."""
    return settled(effective_in(log), words.asked if words else {}, log)


def settled(effective: Mapping[str, Known], asked: Mapping[str, Known], log: LogFacts) -> dict[str, Setting]:
    """What runs, with what was asked for."""
    found = {}
    for key in (*effective, *(key for key in asked if key not in effective)):
        value = effective.get(key)
        found[key] = settle(
            configured=asked.get(key),
            declared=MISSING,
            resolved=ONLY_EFFECTIVE if value else Unknown(because="the log does not state what came of it"),
            effective=value,
            native=NATIVE.get(key),
            because=_because(key, log),
        )
    return _all_layers(found, log)


def effective_in(log: LogFacts) -> dict[str, Known]:
    """Canonical keys to what the running server states."""
    served, facts = log.served, log.facts
    found: dict[str, Known] = {}
    for key, names in CONTEXT.items():
        if served and (fact := next((served.values[n] for n in names if n in served.values), None)):
            found[key] = _known(fact)
    for key, name in FACTS.items():
        if key not in found and (fact := facts.get(name)):
            found[key] = _known(fact)
    others = {
        "model.path": _path(log),
        "model.max_model_len": _per_slot(log),
        "scheduler.max_num_seqs": slots(log),
        "model.context_total": context_total(log),
        "kv.dtype": _cache_type(log, "k"),
        "kv.dtype_values": _cache_type(log, "v"),
        "kv.offloaded_to_device": _offloaded(log),
        "kv.offload_bytes": _prompt_cache(log),
        "kernels.flash_attention": flash_attention(log),
        "model.quantization": _quantization(log),
    }
    return ollama_request(log) | found | {key: known for key, known in others.items() if known is not None}


def _known(fact: Fact) -> Known:
    return Known(value=fact.value, evidence=fact.line.evidence)


def _path(log: LogFacts) -> Known | None:
    fact = log.own.get("path") or (log.load.path if log.load else None)
    return _known(fact) if fact else None


def _per_slot(log: LogFacts) -> Known | None:
    """What one slot may hold: the server's word, else the context's for a sequence."""
    values = log.served.values if log.served else {}
    fact = log.own.get("slot_context") or values.get("n_ctx_seq") or values.get("n_ctx_per_seq")
    return _known(fact) if fact else None


def slots(log: LogFacts) -> Known | None:
    """How many requests run at once: the server's word, else the context's."""
    fact = log.own.get("slots") or (log.served.values.get("n_seq_max") if log.served else None)
    return _known(fact) if fact else ollama_request(log).get("scheduler.max_num_seqs")


def context_total(log: LogFacts) -> Known | None:
    """The context's word; else the cells of the only cache, else the shares of all slots, taken together."""
    fact = log.served.values.get("n_ctx") if log.served else None
    if fact is not None and isinstance(fact.value, int):
        return _known(fact)
    if told := ollama_request(log).get("model.context_total"):
        return told
    caches = log.served.caches if log.served else []
    if len(caches) == 1 and (init := caches[0].init):
        return Known(value=int(init["kv_size"]), evidence=cited(init, "kv_size").evidence)
    many, each = log.own.get("slots"), log.own.get("slot_context")
    unified = log.own.get("kv_unified")
    if not many or not each or (many.value != 1 and (unified is None or unified.value is not False)):
        return None
    where = f"slots x context of each, lines {many.line.number} and {each.line.number}"
    value = int(many.amount) * int(each.amount)
    return Known(value=value, basis="engine rule", evidence=Evidence(source="rule", where=where))


def _caches(log: LogFacts) -> list[Cache]:
    return log.served.caches if log.served else []


def _cache_type(log: LogFacts, group: str) -> Known | None:
    """The element type of keys (``k``) or values (``v``), as the first cache that states it says."""
    said = (s for cache in _caches(log) for s in (cache.size, cache.init) if s is not None)
    first = next((s for s in said if s.get(group)), None)
    return Known(value=first[group], evidence=cited(first, group).evidence) if first else None


def _offloaded(log: LogFacts) -> Known | None:
    init = next((c.init for c in _caches(log) if c.init is not None and c.init.get("offload")), None)
    return Known(value=init["offload"] == "1", evidence=cited(init, "offload").evidence) if init else None


def _prompt_cache(log: LogFacts) -> Known | None:
    """Bytes of host memory for prompts that are kept; none when the server says that it is off."""
    size, off = log.own.get("prompt_cache_mib"), log.own.get("prompt_cache_off")
    if size is not None and (off is None or off.line.number < size.line.number):
        return Known(value=int(size.amount) * MIB, evidence=size.line.evidence)
    if off is None:
        return None
    where = f"no memory when it is disabled, line {off.line.number}"
    return Known(value=0, basis="engine rule", evidence=Evidence(source="rule", where=where))


def flash_attention(log: LogFacts) -> Known | None:
    """``enabled`` or ``disabled``: what was made of ``auto``, else the context's own word, which was 0 or 1 before."""
    if fact := log.facts.get("flash_attention"):
        return _known(fact)
    fact = log.served.values.get("flash_attn") if log.served else None
    if fact is None or fact.value == "auto":
        return None
    if isinstance(fact.value, int):
        word = "enabled" if fact.value else "disabled"
        where = f"flash_attn = {fact.value:d}, line {fact.line.number}"
        return Known(value=word, evidence=Evidence(source="rule", where=where))
    return _known(fact) if fact.value in ("enabled", "disabled") else None


def _quantization(log: LogFacts) -> Known | None:
    fact = log.model.get("file type") or log.model.get("model ftype") or log.own.get("file_type")
    return _known(fact) if fact and not str(fact.value).startswith("unknown") else None


def _because(key: str, log: LogFacts) -> str | None:
    if key == "model.context_total" and (rule := log.own.get("fit_rule")):
        return f"the engine's own words: {rule.value}"
    if key == "kernels.gpu_layers" and (total := log.facts.get("layers_total")):
        return f"of {total.value} layers"
    return None


def _all_layers(found: dict[str, Setting], log: LogFacts) -> dict[str, Setting]:
    """More layers asked for than the model has means all of them, which is what the user wanted."""
    setting, total = found.get("kernels.gpu_layers"), log.facts.get("layers_total")
    if setting is None or setting.configured is None or total is None or not isinstance(setting.effective, Known):
        return found
    wanted = setting.configured.value
    every = isinstance(wanted, int) and (wanted < 0 or wanted >= total.amount)
    if every and setting.effective.value == total.value:
        found["kernels.gpu_layers"] = setting.model_copy(update={"origin": "user"})
    return found


# --- sizes in words ---------------------------------------------------------------------------------------------

_SIZE = re.compile(r"^(?P<size>\d+\.\d+) (?P<unit>GiB|MiB|GB|MB)(?: |$)")


def printed_size(fact: Fact) -> Known | None:
    """``18.81 GiB (4.93 BPW)`` in bytes, with the bounds of its rounding."""
    match = _SIZE.match(str(fact.value))
    if match is None:
        return None
    unit = {"GiB": GIB, "MiB": MIB, "GB": 10**9, "MB": 10**6}[match["unit"]]
    size = Decimal(match["size"])
    half = Decimal(1).scaleb(int(size.as_tuple().exponent)) / 2
    return Known(
        value=int((size * unit).to_integral_value()),
        low=float((size - half) * unit),
        high=float((size + half) * unit),
        basis="measured",
        evidence=fact.line.evidence,
    )
