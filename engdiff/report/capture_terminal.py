"""A Capture for reading: who, how, memory, pool, what was decided by whom, boot, warnings."""

from __future__ import annotations

import shlex

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from engdiff.knowledge.settings import AREAS, registry
from engdiff.report.wording import ORIGINS
from engdiff.schema.capture import Capture, Pool, Rank, Setting
from engdiff.schema.values import Known, Unknown, Value, number, plain
from engdiff.schema.wording import show
from engdiff.units import format_bytes, format_seconds

LONGEST_WARNING = 200


def print_capture(capture: Capture, console: Console, *, everything: bool = False) -> None:
    """Print the capture; ``everything`` includes settings that nobody moved from their defaults."""
    console.print(_heading(capture))
    console.print(Text(shlex.join(capture.launch.native_command), style="pin"), soft_wrap=True)
    console.print()
    if capture.failure:
        console.print(_failure(capture))
    for rank in _ranks(capture):
        console.print(_memory(rank))
    console.print(_settings(capture, everything))
    console.print(_decisions(capture))
    console.print(_rest(capture))


def _ranks(capture: Capture) -> list[Rank]:
    return [rank for instance in capture.instances for rank in instance.ranks]


def _heading(capture: Capture) -> RenderableType:
    identity, host = capture.identity, capture.identity.host
    where = f"{plain(host.cpu) or 'CPU'}, {host.cpu_count} CPUs"
    devices = ", ".join(d.name for d in identity.devices if d.kind == "gpu") or where
    lines = [
        Text.assemble(
            (f"{identity.engine} {plain(identity.version) or '?'}", "title"), f"   model {capture.launch.model_given}"
        ),
        Text(f"{identity.environment.distribution}: {identity.environment.distribution_because}", style="quiet"),
        Text(
            f"{devices} · {host.os} {host.arch} · Python {identity.environment.python}"
            f" · {identity.source} {identity.captured_at}",
            style="quiet",
        ),
    ]
    if capture.launch.variables:
        lines.append(Text(" ".join(f"{k}={v}" for k, v in sorted(capture.launch.variables.items())), style="quiet"))
    return Group(Rule(style="quiet"), *lines, Rule(style="quiet"))


def _failure(capture: Capture) -> RenderableType:
    failure = capture.failure
    assert failure is not None, "only called for a failed start"
    lines = [
        Text(f"It did not start: {failure.cause or failure.exit}", style="bad"),
        Text(failure.advice),
        *(Text(f"   {line}", style="quiet") for line in failure.last_words),
        Text(f"log: {failure.log}", style="quiet"),
    ]
    return Padding(Group(*lines), (0, 0, 1, 0))


def _memory(rank: Rank) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    for justify in ("left", "right", "left"):
        grid.add_column(justify=justify, overflow="fold")
    indent = {"capacity": "", "limit": "", "use": "  ", "remainder": "  "}
    for term in rank.ledger:
        size = number(term.bytes)
        text = format_bytes(size) if size is not None else "unknown"
        meaning = term.bytes.because if isinstance(term.bytes, Unknown) else term.meaning
        grid.add_row(f"   {indent[term.kind]}{term.name}", text, Text(meaning, style="quiet"))
    parts: list[RenderableType] = [Text(f"Memory on {rank.device}", style="title"), grid]
    parts += [_pool(p) for p in rank.pools]
    return Padding(Group(*parts), (0, 0, 1, 0))


def _pool(pool: Pool) -> Text:
    facts = [f"{show(pool.bytes, 'bytes')}"]
    if pool.factors:
        facts.append(" × ".join(f"{show(f.value)} {f.name}" for f in pool.factors))
    if isinstance(pool.blocks, Known):
        facts.append(f"{show(pool.blocks)} blocks of {show(pool.block_tokens)} tokens")
    facts.append(f"{show(pool.tokens)} tokens")
    facts.append(f"{show(pool.max_concurrency)} requests of {show(pool.concurrency_at_tokens)} tokens")
    return Text(f"   {pool.name}: " + ", ".join(facts))


def _settings(capture: Capture, everything: bool) -> RenderableType:
    by_area: dict[str, list[tuple[str, str, Setting]]] = {area: [] for area in AREAS}
    for key, info in registry().items():
        setting = capture.settings.get(key)
        if setting and (everything or setting.origin != "default"):
            by_area[info.area].append((key, info.unit, setting))
    hidden = len(capture.settings) - sum(map(len, by_area.values()))
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_column(overflow="fold")
    for area, rows in by_area.items():
        for index, (key, unit, setting) in enumerate(rows):
            label = Text(area if index == 0 else "", style=area)
            grid.add_row(
                Text("   ").append_text(label), key, show(setting.final, unit), Text(_origin(setting), style="quiet")
            )
    tail = (
        [Text(f"   {hidden} more hold their declared defaults (--all)", style="quiet")]
        if hidden and not everything
        else []
    )
    return Padding(
        Group(Text("Settings that were set or derived" if not everything else "Settings", style="title"), grid, *tail),
        (0, 0, 1, 0),
    )


def _origin(setting: Setting) -> str:
    text = ORIGINS.get(setting.origin or "", "not set by you")
    if setting.origin == "forced" and setting.configured:
        text += f" (you asked for {show(setting.configured)})"
    return text + (f": {setting.because}" if setting.because else "")


def _decisions(capture: Capture) -> RenderableType:
    rows: list[tuple[str, Value]] = [
        ("model runner", capture.runner.name),
        ("  its reason", capture.runner.because),
        ("attention", capture.runner.attention_backend),
        ("admission", capture.admission.rule),
        ("preemption", capture.admission.preemption),
    ]
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(ratio=1, overflow="fold")
    for name, value in rows:
        text = (
            Text(f"unknown: {value.because}", style="quiet") if isinstance(value, Unknown) else Text(str(value.value))
        )
        grid.add_row(f"   {name}", text)
    for process in (p for i in capture.instances for p in i.processes):
        steps = ", ".join(process.steps) or "no step of a request"
        grid.add_row("   process", f"{process.name}: {steps} ({show(process.threads)} threads)")
    return Padding(Group(Text("Decisions", style="title"), grid), (0, 0, 1, 0))


def _rest(capture: Capture) -> RenderableType:
    lines: list[Text] = []
    if capture.boot:
        lines.append(Text("Boot", style="title"))
        lines += [Text(f"   {p.name}: {_seconds(p.seconds)}") for p in capture.boot]
    if capture.warnings:
        lines.append(Text("Warnings of the engine", style="title"))
        lines += [
            Text(f"   line {w.line}{f' (×{w.times})' if w.times > 1 else ''}: {_short(w.text)}", style="quiet")
            for w in capture.warnings
        ]
    if capture.launch.added_by_engdiff:
        lines.append(Text("Set by engdiff", style="title"))
        lines += [Text(f"   {k}: {v}", style="quiet") for k, v in capture.launch.added_by_engdiff.items()]
    if capture.notes:
        lines.append(Text("Notes", style="title"))
        lines += [Text(f"   {note}", style="quiet") for note in capture.notes]
    return Group(*lines)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_WARNING else text[: LONGEST_WARNING - 1] + "…"


def _seconds(value: Value) -> str:
    seconds = number(value)
    return format_seconds(seconds) if seconds is not None else "unknown"
