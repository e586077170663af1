"""A Capture for reading: who, how, memory, pool, what was decided by whom, boot, warnings."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping

from pydantic import JsonValue
from rich.console import Console
from rich.text import Text

from engdiff.knowledge.settings import AREAS, registry
from engdiff.report.page import GAP, INDENT, Page
from engdiff.report.wording import ORIGINS, count, shortened
from engdiff.schema.capture import Capture, Device, Environment, Group, Host, Identity, Pool, Process, Rank, Setting
from engdiff.schema.values import Known, Unknown, Value, number, plain
from engdiff.schema.wording import show
from engdiff.units import format_bytes, format_seconds

LONGEST_WARNING = 160
LONGEST_ORIGIN = len("not set by you")
MOST_LAST_WORDS = 8
MOST_WARNINGS = 12
SAID_BY = {"log": "as the log states", "attach": "as the server states"}
"""Origin of a setting where nothing tells who decided it."""

HEADINGS = {"log": "Settings that the log states", "attach": "Settings that the server states"}

WIDEST_VALUE = 16
"""Values longer than this push their origin aside instead of setting the column for all."""


def print_capture(capture: Capture, console: Console, *, everything: bool = False) -> None:
    """Print the capture; ``everything`` includes settings that nobody moved from their defaults."""
    page = Page(console)
    _heading(page, capture)
    if capture.launch.native_command:
        page.whole(Text(shlex.join(capture.launch.native_command), style="pin"))
    _failure(page, capture)
    distinct = list(_distinct(capture))
    for rank, others in distinct:
        _memory(
            page,
            _place(rank) if len({one.device for one, _ in distinct}) < len(distinct) else rank.device,
            rank,
            others,
        )
    _settings(page, capture, everything)
    _decisions(page, capture, everything)
    _boot(page, capture)
    _run(page, capture)
    _warnings(page, capture, everything)
    _pairs(page, "Set by engdiff", capture.launch.added_by_engdiff)
    if capture.notes:
        page.section("Notes")
        for note in capture.notes:
            _item(page, note)


def _heading(page: Page, capture: Capture) -> None:
    identity, launch = capture.identity, capture.launch
    page.rule()
    model = f"   model {launch.model_given}" if launch.model_given else ""
    page.line(
        Text.assemble(
            (f"{identity.engine} {plain(identity.version) or '(version unknown)'}", "title"), (model, "quiet")
        )
    )
    for line in (*_built(identity), *_where(identity), _made(capture), *_stand_ins(capture)):
        page.line(Text(line, style="quiet"))
    if launch.variables:
        page.line(Text(" ".join(f"{k}={v}" for k, v in sorted(launch.variables.items())), style="quiet"))
    page.rule()


def _built(identity: Identity) -> Iterator[str]:
    environment = identity.environment
    if isinstance(environment, Environment):
        yield f"{environment.distribution}: {environment.distribution_because}"


def _where(identity: Identity) -> Iterator[str]:
    """The devices, and the machine where it is known."""
    gpus = Counter(_device(d) for d in identity.devices if d.kind == "gpu")
    devices = ", ".join(f"{n} × {name}" if n > 1 else name for name, n in gpus.items())
    host = identity.host
    if isinstance(host, Unknown):
        if devices:
            yield devices
        return
    python = f" · Python {identity.environment.python}" if isinstance(identity.environment, Environment) else ""
    yield f"{devices or _cpu(host)} · {host.os} {host.arch}{python}"


def _device(device: Device) -> str:
    size = number(device.memory_bytes)
    return device.name if size is None else f"{device.name}, {format_bytes(size)}"


def _cpu(host: Host) -> str:
    return f"{plain(host.cpu) or 'CPU'}, {count(host.cpu_count, 'CPU')}"


def _made(capture: Capture) -> str:
    """Where it comes from."""
    reading = capture.reading
    if capture.identity.source == "profile":
        return "by simulation, shipped as a profile"
    if reading is None:
        return f"by {capture.identity.source}, {capture.identity.captured_at}"
    chosen = reading.starts[reading.chosen]
    which = f"lines {chosen.first_line:,} to {chosen.last_line:,} of {reading.lines:,}"
    return f"by {capture.identity.source}, {capture.identity.captured_at} · log: {which}, {reading.recognised}"


def _stand_ins(capture: Capture) -> Iterator[str]:
    """How much of what was asked neither the engine nor a fact of the GPU answered."""
    if capture.simulated and capture.simulated.stand_ins:
        yield f"{count(len(capture.simulated.stand_ins), 'answer')} of stand-ins (listed in the capture, `simulated`)"


def _failure(page: Page, capture: Capture) -> None:
    failure = capture.failure
    if failure is None:
        return
    page.section()
    what = "It failed while serving" if failure.stage == "serving" else f"It did not start ({failure.stage})"
    page.line(Text(f"{what}: {failure.cause or failure.exit}", style="bad"))
    if failure.would_fit:
        page.line(Text(f"{failure.would_fit[:1].upper()}{failure.would_fit[1:].rstrip('.')}.", style="title"))
    page.line(failure.advice)
    for line in failure.last_words[-MOST_LAST_WORDS:]:
        page.line(Text(line, style="quiet"), lead=Text(" " * INDENT + "| ", style="quiet"))
    if failure.log:
        page.whole(Text(f"log: {failure.log}", style="quiet"))


def _distinct(capture: Capture) -> Iterator[tuple[Rank, int]]:
    """Each rank whose memory differs from that of the ranks before it, and how many are like it."""
    ranks = [rank for instance in capture.instances for rank in instance.ranks if rank.ledger or rank.pools]
    shapes = Counter(_shape(rank) for rank in ranks)
    first = {_shape(rank): rank for rank in reversed(ranks)}
    for shape, rank in sorted(first.items(), key=lambda one: ranks.index(one[1])):
        yield rank, shapes[shape] - 1


def _shape(rank: Rank) -> tuple[object, ...]:
    """Everything about a rank's memory that is printed."""
    return (
        tuple((term.name, number(term.bytes)) for term in rank.ledger),
        tuple(_pool(pool) for pool in rank.pools),
    )


def _place(rank: Rank) -> str:
    """The device and the place in the grid, for ranks that do not name devices of their own."""
    grid = ((name, getattr(rank, name)) for name in ("dp", "pp", "tp", "ep"))
    return f"{rank.device}, {' '.join(f'{name.upper()}{at}' for name, at in grid if at) or 'TP0'}"


def _memory(page: Page, where: str, rank: Rank, others: int) -> None:
    page.section(f"Memory on {where}" + (f", and {count(others, 'rank')} alike" if others else ""))
    rows = []
    for term in rank.ledger:
        size = number(term.bytes)
        inner = "  " if term.kind in ("use", "remainder") else ""
        meaning = term.bytes.because if isinstance(term.bytes, Unknown) else term.meaning
        text = format_bytes(size) if size is not None else "unknown"
        rows.append((inner + term.name, text, Text(meaning, style="quiet")))
    page.rows(rows, right=(1,))
    for pool in rank.pools:
        page.line(_pool(pool), lead=Text(" " * INDENT + f"{pool.name}: "))


def _pool(pool: Pool) -> str:
    if isinstance(pool.bytes, Unknown) and pool.groups and isinstance(pool.tokens, Unknown):
        return f"{'; '.join(map(_group, pool.groups))}; how much there is: {pool.bytes.because}"
    facts = [show(pool.bytes, "bytes")]
    if pool.factors:
        facts.append(" × ".join(f"{show(f.value)} {f.name}" for f in pool.factors))
    if isinstance(pool.blocks, Known):
        facts.append(f"{show(pool.blocks)} blocks of {show(pool.block_tokens)} tokens")
    facts.append(f"{show(pool.tokens)} tokens")
    facts.append(f"{show(pool.max_concurrency)} requests of {show(pool.concurrency_at_tokens)} tokens")
    return ", ".join(facts)


def _group(group: Group) -> str:
    """What one block of a group of layers takes."""
    kind = "attention state" if group.kind == "state" else f"{group.kind} attention"
    size = f"{show(group.bytes_per_block, 'bytes')} for {show(group.block_tokens)} tokens"
    return f"{size} in {show(group.layers)} layers of {kind}"


def _settings(page: Page, capture: Capture, everything: bool) -> None:
    shown = [
        (key, info, setting)
        for key, info in registry().items()
        if (setting := capture.settings.get(key)) and (everything or setting.origin != "default")
    ]
    if capture.settings:
        page.section(
            "Settings" if everything else HEADINGS.get(capture.identity.source, "Settings that were set or derived")
        )
    keys = max((len(key) for key, _, _ in shown), default=0)
    values = max((len(v) for _, i, s in shown if len(v := show(s.final, i.unit)) <= WIDEST_VALUE), default=0)
    if page.width - (INDENT + GAP + keys + GAP) < values + GAP + LONGEST_ORIGIN:
        values = 0  # too narrow for a column of its own: each origin follows its value
    for area in AREAS:
        rows = [(key, show(s.final, info.unit), _origin(s, capture)) for key, info, s in shown if info.area == area]
        if rows:
            page.line(Text(area, style=area), indent=INDENT)
        for key, value, origin in rows:
            text = Text.assemble(value.ljust(values), " " * GAP, (origin, "quiet"))
            page.line(text, lead=Text(" " * (INDENT + GAP) + key.ljust(keys) + " " * GAP))
    hidden = len(capture.settings) - len(shown)
    if hidden and not everything:
        page.line(
            Text(f"{hidden} more {'holds its' if hidden == 1 else 'hold their'} declared default (--all)", "quiet"),
            indent=INDENT,
        )


def _origin(setting: Setting, capture: Capture) -> str:
    unsaid = SAID_BY.get(capture.identity.source, "not set by you")
    if setting.configured and setting.final is setting.configured:
        unsaid = "set by you"
    text = ORIGINS.get(setting.origin or "", unsaid)
    if setting.origin == "forced" and setting.configured:
        text += f" (you asked for {show(setting.configured)})"
    return text + (f": {setting.because}" if setting.because else "")


def _decisions(page: Page, capture: Capture, everything: bool) -> None:
    """What was decided and why; of a source that does not say, only what it says."""
    rows: list[tuple[str, Value]] = [
        ("model runner", capture.runner.name),
        ("  its reason", capture.runner.because),
        ("attention", capture.runner.attention_backend),
        ("admission", capture.admission.rule),
        ("preemption", capture.admission.preemption),
    ]
    silent = capture.launch.unknown_because is not None and not everything
    said = [
        (name, Text(f"unknown: {v.because}", style="quiet") if isinstance(v, Unknown) else Text(str(v.value)))
        for name, v in rows
        if not (silent and isinstance(v, Unknown))
    ]
    said += [("process", _process(p)) for instance in capture.instances for p in instance.processes]
    page.section("Decisions" if said else "")
    page.rows(said)
    if len(said) < len(rows):
        names = ", ".join(name.strip() for name, v in rows if isinstance(v, Unknown))
        page.line(Text(f"not stated: {names} (--all says why)", "quiet"), indent=INDENT)


def _process(process: Process) -> Text:
    threads = number(process.threads)
    steps = ", ".join(process.steps) or "no step of a request"
    text = "threads unknown" if threads is None else count(int(threads), "thread")
    return Text(f"{process.name}: {steps} ({text})")


def _boot(page: Page, capture: Capture) -> None:
    if any(isinstance(phase.seconds, Known) for phase in capture.boot):
        page.section("Boot")
        page.rows([(p.name, _seconds(p.seconds), Text(p.meaning, style="quiet")) for p in capture.boot], right=(1,))


def _run(page: Page, capture: Capture) -> None:
    """What the run-time lines and counters said, each number as least, mean and most."""
    if not capture.run_summary:
        return
    page.section("While serving")
    rows = []
    for name, value in capture.run_summary.items():
        summary = plain(value)
        rows.append((name, Text(_summary(summary) if isinstance(summary, dict) else show(value))))
    page.rows(rows)


def _summary(series: Mapping[str, JsonValue]) -> str:
    least, mean, most = (show(Known(value=series.get(part))) for part in ("least", "mean", "most"))
    return f"{least} to {most}, mean {mean}, in {series.get('lines'):,} lines" if "lines" in series else str(series)


def _warnings(page: Page, capture: Capture, everything: bool) -> None:
    if capture.warnings:
        page.section("Warnings of the engine")
        shown = capture.warnings if everything else capture.warnings[:MOST_WARNINGS]
        for warning in shown:
            times = f" (×{warning.times})" if warning.times > 1 else ""
            text = warning.text if everything else shortened(warning.text, LONGEST_WARNING)
            _item(page, f"line {warning.line}{times}: {text}")
        if len(shown) < len(capture.warnings):
            page.line(Text(f"{len(capture.warnings) - len(shown)} more (--all)", "quiet"), indent=INDENT)


def _pairs(page: Page, title: str, pairs: Mapping[str, str]) -> None:
    if pairs:
        page.section(title)
        page.rows([(name, Text(why, style="quiet")) for name, why in pairs.items()])


def _item(page: Page, text: str) -> None:
    page.line(Text(text, style="quiet"), lead=Text(" " * INDENT + "· ", style="quiet"))


def _seconds(value: Value) -> str:
    seconds = number(value)
    return format_seconds(seconds) if seconds is not None else "unknown"
