"""Write docs/startup-facts.md: what start-up logs from public threads state, beside what a simulation makes of it.

``startup_facts_page.py TARGET [FOLDER]``: captures are kept in FOLDER, and read from there the next time.
"""

from __future__ import annotations

import json
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

from engdiff.errors import EngdiffError
from engdiff.references import EngineReference
from engdiff.schema.capture import Capture, Group, Rank
from engdiff.schema.values import Known, Value
from engdiff.sources.acquire import Wishes, acquire
from engdiff.units import GIB

DATA = Path(__file__).parent.parent / "docs" / "startup-facts.toml"

HEAD = """# Facts of start-up logs, simulated

Made by `scripts/startup_facts_page.py` from `docs/startup-facts.toml`, which holds what the logs state; every figure
under "simulated" is computed from a capture when this page is made. The logs are fragments from public threads.

The rule: every fact about a GPU that a log of vLLM or SGLang states and that the configuration decides is in the table:
graph sizes, batched tokens, backend, model runner, block size, bytes of weights and of a token's KV, length, overlap.
Left out are facts that the user set by a flag, and those that only a device can tell (free memory, activation peak,
measured pools). **right**: equal, to the digits that the log prints. **explained**: it differs, or has no answer, for
the reason given. **unexplained**: it differs, and no reason was found.

Where a log names no release, the one given is the nearest to its date or to the line numbers that it prints; where a
GPU has no facts shipped, one of the same capability stands in. The second table says so."""


def main(target: str, kept: str | None = None) -> None:
    """Write the page."""
    data = tomllib.loads(DATA.read_text(encoding="utf-8"))
    records = data["record"]
    with tempfile.TemporaryDirectory(prefix="engdiff-facts-") as scratch:
        models = write_shapes(data["shape"], Path(scratch))
        judged = [judge(one, models, Path(kept) if kept else None) for one in records if one["reproducible"]]
    others = [one for one in records if not one["reproducible"]]
    Path(target).write_text("\n".join(page(judged, others, data["shape"])), encoding="utf-8")


def write_shapes(shapes: Mapping[str, Any], folder: Path) -> dict[str, str]:
    """A configuration file for each shape that is not shipped, by name."""
    places = {}
    for name, shape in shapes.items():
        place = folder / name
        place.mkdir()
        config = {**shape["config"], **dict.fromkeys(shape.get("null", ()))}
        (place / "config.json").write_text(json.dumps(config), encoding="utf-8")
        places[name] = str(place / "config.json")
    return places


# --- what a simulation answers --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One fact, with its simulated value and what became of it: right, explained or unexplained."""

    what: str
    logged: Any
    simulated: Any
    verdict: str
    explained: str = ""


@dataclass(frozen=True)
class Judged:
    """A record with its facts."""

    record: Mapping[str, Any]
    rows: tuple[Row, ...]


def judge(record: Mapping[str, Any], models: Mapping[str, str], kept: Path | None) -> Judged:
    """Simulate one record, and compare."""
    capture = captured(record, models, kept)
    return Judged(record, tuple(compare(fact, answer(capture, fact["key"])) for fact in record["fact"]))


def captured(record: Mapping[str, Any], models: Mapping[str, str], kept: Path | None) -> Capture:
    """The capture of a record's command line: kept from before, else made."""
    file = kept / f"{record['id']}.json" if kept else None
    if file and file.exists():
        return Capture.model_validate_json(file.read_text(encoding="utf-8"))
    reference = EngineReference(record["engine"], record["version"], record["gpu"])
    wishes = Wishes(model=models.get(record["model"], record["model"]), arguments=tuple(record.get("words", ())))
    try:
        made = acquire(reference, wishes, say).capture
    except EngdiffError as error:
        raise SystemExit(f"{record['id']}: {error}") from error
    if file:
        file.write_text(made.model_dump_json(), encoding="utf-8")
    return made


def say(line: str) -> None:
    """Progress."""
    sys.stderr.write(f"{line}\n")


def compare(fact: Mapping[str, Any], simulated: Any) -> Row:
    """One fact against its simulated value."""
    logged = fact["logged"]
    if same(logged, simulated, fact.get("comparison", "equal")):
        return Row(fact["what"], logged, simulated, "right")
    reason = fact.get("explained", "")
    return Row(fact["what"], logged, simulated, "explained" if reason else "unexplained", reason)


def same(logged: Any, simulated: Any, comparison: str) -> bool:
    """Whether the two agree: exactly, to the digits of the log, within 0.5 %, as whole blocks, or as one of several."""
    if simulated is None:
        return False
    if comparison == "rounded":
        return bool(round(simulated, decimals(logged)) == logged)
    if comparison == "near":
        return bool(abs(simulated / logged - 1) < NEAR)
    if comparison == "whole blocks":
        return bool(logged % simulated == 0)
    if comparison == "among":
        return logged in str(simulated).split(", ")
    return bool(logged == simulated)


NEAR = 0.005
"""For quotients of figures that a log rounds to three digits."""


def decimals(number: float) -> int:
    """How many a log printed."""
    return len(str(number).partition(".")[2])


# --- reading a capture ----------------------------------------------------------------------------------------------


def answer(capture: Capture, key: str) -> Any:
    """The value of a canonical setting, or of one of READERS; ``None`` where it is not known."""
    if key in READERS:
        return READERS[key](capture)
    setting = capture.settings.get(key)
    return of(setting.final) if setting else None


def number(value: Value) -> int:
    """A number that the simulation always knows where it knows the group."""
    found = of(value)
    if not isinstance(found, int):
        raise SystemExit(f"a group without a number: {value}")
    return found


def of(value: Value | None) -> Any:
    """The plain value."""
    return value.value if isinstance(value, Known) else None


def rank(capture: Capture) -> Rank:
    """The first one."""
    return capture.instances[0].ranks[0]


def graph_sizes(capture: Capture) -> list[int] | None:
    """Batch sizes of captured graphs, smallest first."""
    sizes = of(rank(capture).graphs.sizes)
    return sorted(sizes) if sizes else None


def graph_count(capture: Capture) -> int | None:
    """How many."""
    sizes = graph_sizes(capture)
    return len(sizes) if sizes else None


def prefill_sizes(capture: Capture) -> list[int]:
    """Token counts of graphs for prompts."""
    return of(rank(capture).graphs.prefill_sizes) or []


def weights_gib(capture: Capture) -> float | None:
    """The first rank's weights."""
    found = next((of(term.bytes) for term in rank(capture).ledger if term.name == "weights"), None)
    return found / GIB if found else None


def max_prefill_tokens(capture: Capture) -> Any:
    """SGLang's own argument, which has no canonical name."""
    arguments = capture.native.get("server_args")
    return arguments.get("max_prefill_tokens") if isinstance(arguments, dict) else None


def groups(capture: Capture) -> tuple[Group, ...]:
    """Layers of one kind."""
    return tuple(group for pool in rank(capture).pools for group in pool.groups)


def growing(capture: Capture) -> list[Group]:
    """Groups whose cache grows with each token, without those that keep a state or a window."""
    return [group for group in groups(capture) if group.kind in ("full", "mla")]


def bytes_per_token(capture: Capture) -> float | None:
    """Bytes of one token's KV, on one rank."""
    found = growing(capture)
    return sum(number(one.bytes_per_block) / number(one.block_tokens) for one in found) if found else None


def gib_at_full_length(capture: Capture) -> float | None:
    """What one request of the longest length needs, where every layer keeps every token."""
    each = bytes_per_token(capture)
    return each * int(answer(capture, "model.max_model_len")) / GIB if each else None


def page_bytes(group: Group) -> float:
    """Bytes of a block of one layer."""
    return float(number(group.bytes_per_block) / number(group.layers))


def block_tokens(capture: Capture) -> int | None:
    """Tokens of a block once all layers share one page size (kv_cache_utils.unify_kv_cache_spec_page_size)."""
    found = growing(capture)
    if not found:
        return None
    largest = max(map(page_bytes, groups(capture)))
    return int(number(found[0].block_tokens) * largest / page_bytes(found[0]))


def group_size(capture: Capture) -> int:
    """Layers that share a block (kv_cache_utils._get_kv_cache_groups_uniform_page_size)."""
    counts = [number(group.layers) for group in groups(capture)]
    return max(counts) if max(counts) < min(counts) * 1.5 else min(counts)


def padding_layers(capture: Capture) -> int | None:
    """Layers added so that every group has as many."""
    if not groups(capture):
        return None
    size = group_size(capture)
    return sum(-number(group.layers) % size for group in groups(capture))


def padding_percent(capture: Capture) -> float | None:
    """The same in percent of the layers that are padded."""
    if not groups(capture):
        return None
    size = group_size(capture)
    shares = [-number(group.layers) % size / number(group.layers) * 100 for group in groups(capture)]
    return round(max(shares), 2)


def request_blocks(capture: Capture) -> int | None:
    """Blocks that one request of the longest length holds, in all groups."""
    tokens = block_tokens(capture)
    if tokens is None:
        return None
    length, size = int(answer(capture, "model.max_model_len")), group_size(capture)
    per_state = 2 if answer(capture, "kv.mamba_cache_mode") == "align" else 1
    per_state += int(answer(capture, "speculative.num_tokens") or 0)
    return sum(
        ceil(number(group.layers) / size) * (per_state if group.kind == "state" else ceil(length / tokens))
        for group in groups(capture)
    )


def request_gib(capture: Capture) -> float | None:
    """What one request of the longest length needs, with the states of its linear layers."""
    blocks = request_blocks(capture)
    return blocks * group_size(capture) * max(map(page_bytes, groups(capture))) / GIB if blocks else None


def tokens_per_concurrency(capture: Capture) -> float | None:
    """Printed tokens for each unit of printed concurrency: up to 0.19, blocks / groups x tokens of a block."""
    blocks, tokens = request_blocks(capture), block_tokens(capture)
    if not blocks or not tokens:
        return None
    size = group_size(capture)
    return blocks * tokens / sum(ceil(number(group.layers) / size) for group in groups(capture))


READERS: dict[str, Callable[[Capture], Any]] = {
    "graphs.sizes": graph_sizes,
    "graphs.count": graph_count,
    "graphs.mode": lambda capture: of(rank(capture).graphs.mode),
    "graphs.prefill_count": lambda capture: len(prefill_sizes(capture)) or None,
    "graphs.prefill_next_to_largest": lambda capture: next(iter(sorted(prefill_sizes(capture))[-2:-1]), None),
    "graphs.prefill_largest": lambda capture: max(prefill_sizes(capture), default=None),
    "graphs.prefill_first": lambda capture: prefill_sizes(capture)[:2] or None,
    "runner.name": lambda capture: of(capture.runner.name),
    "runner.attention_backend": lambda capture: of(capture.runner.attention_backend),
    "runner.candidates": lambda capture: of(capture.runner.candidates),
    "server_args.max_prefill_tokens": max_prefill_tokens,
    "weights.gib": weights_gib,
    "kv.bytes_per_token": bytes_per_token,
    "kv.gib_at_full_length": gib_at_full_length,
    "kv.shared_block_tokens": block_tokens,
    "kv.padding_layers": padding_layers,
    "kv.padding_percent": padding_percent,
    "kv.request_gib": request_gib,
    "kv.tokens_per_concurrency": tokens_per_concurrency,
}
"""What is read from elsewhere than the settings."""


# --- the page -------------------------------------------------------------------------------------------------------


def page_rows(judged: list[Judged]) -> Iterator[str]:
    """The table of facts."""
    for one in judged:
        record = one.record
        for row in one.rows:
            verdict = f"explained: {row.explained}" if row.verdict == "explained" else row.verdict
            start = (link(record), f"{record['engine']} {record['version']}", f"`{record['gpu']}`", record["model"])
            yield line(*start, row.what, shown(row.logged), shown(row.simulated), verdict)


def link(record: Mapping[str, Any]) -> str:
    """The record with its thread."""
    return f"[{record['id']}]({record['url']})"


def line(*cells: str) -> str:
    """One line of a table."""
    return f"| {' | '.join(cells)} |"


def shown(value: Any) -> str:
    """A value as the table prints it; long lists are shortened."""
    if value is None:
        return "no answer"
    if isinstance(value, list) and len(value) > SHOWN:
        head = ", ".join(map(str, value[:4]))
        return f"{len(value)}: {head} ... {value[-1]}"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return f"{value:,.4f}".rstrip("0").rstrip(".")
    return f"{value:,}" if isinstance(value, int) else str(value)


SHOWN = 9
"""Elements of a list that are shown in full."""


def page(judged: list[Judged], others: list[Mapping[str, Any]], shapes: Mapping[str, Any]) -> Iterator[str]:
    """The lines of the page."""
    yield HEAD
    yield ""
    yield counted(judged, others)
    yield ""
    yield line("log", "release", "GPU", "model", "fact", "in the log", "simulated", "right or explained")
    yield line(*["---"] * 8)
    yield from page_rows(judged)
    yield from ("", "## What was simulated", "", line("log", "release", "how it is known", "GPU", "model", "words"))
    yield line(*["---"] * 6)
    yield from (asked(one.record, shapes) for one in judged)
    yield from ("", "## Not reproducible, or nothing to reproduce", "", line("log", "engine", "because"))
    yield line(*["---"] * 3)
    yield from (line(link(one), one["engine"], one["because"]) for one in others)
    yield ""


def counted(judged: list[Judged], others: list[Mapping[str, Any]]) -> str:
    """How the facts came out."""
    verdicts = [row.verdict for one in judged for row in one.rows]
    counts = ", ".join(f"{verdicts.count(name)} {name}" for name in ("right", "explained", "unexplained"))
    return (
        f"{len(verdicts)} facts of {len(judged)} records: {counts}. "
        f"{len(others)} more records hold no fact that can be simulated, for the reasons below the tables."
    )


def asked(record: Mapping[str, Any], shapes: Mapping[str, Any]) -> str:
    """How a record was simulated, and what is known of it."""
    model = record.get("model_said") or shapes.get(record["model"], {}).get("said") or "a shipped shape"
    gpu = f"`{record['gpu']}`, {record['gpu_said']}" if "gpu_said" in record else f"`{record['gpu']}`"
    words = f"`{' '.join(record['words'])}`" if record.get("words") else ""
    release = f"{record['engine']} {record['version']}"
    return line(link(record), release, record["version_said"], gpu, f"`{record['model']}`: {model}", words)


if __name__ == "__main__":
    main(*sys.argv[1:])
