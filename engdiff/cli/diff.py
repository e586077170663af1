"""``engdiff diff``: what moved between two captures, and what pins it back."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engdiff.cli.words import Build, Container, EngineWords, Force, Limit, Model, Python, Quiet, Variables, variables

if TYPE_CHECKING:
    from engdiff.diff.accept import Acceptance
    from engdiff.engines.contract import PinStyle
    from engdiff.sources.sides import SideCapture


class Format(StrEnum):
    """The faces of a Diff."""

    terminal = "terminal"
    json = "json"
    markdown = "markdown"
    github = "github"


class Pins(StrEnum):
    """How pins are written."""

    flags = "flags"
    env = "env"


def diff(
    context: typer.Context,
    references: Annotated[
        list[str],
        typer.Argument(
            metavar="OLD NEW...", help="Each a capture file, a log, - for standard input, a URL, or ENGINE@VERSION."
        ),
    ],
    model: Model = None,
    format: Annotated[Format, typer.Option("--format", help="How to print it.")] = Format.terminal,  # noqa: A002 - the option's name
    json: Annotated[bool, typer.Option("--json", help="Short for --format json.")] = False,
    pins: Annotated[Pins, typer.Option("--pins", help="Pins as flags or as environment variables.")] = Pins.flags,
    accept: Annotated[
        Path | None, typer.Option("--accept", help="TOML file of differences that are accepted, each with a reason.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="List what is otherwise only counted.")] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Also write the Diff as JSON here.")] = None,
    python: Python = None,
    build: Build = None,
    container: Container = None,
    env: Variables = None,
    start_limit: Limit = None,
    force: Force = False,
    quiet: Quiet = False,
) -> int:
    """Say what moved between two captures, what it costs, and what pins it back.

    Two files, captures or logs: engdiff diff old.json new.log

    Three or more give one table of what moved at which step: engdiff diff a.log b.log c.log

    An engine takes the file's command: engdiff diff old.json vllm@0.32.0

    Two engines; words after -- go to both:

    engdiff diff vllm@0.20.2 vllm@0.32.0 --model tiny -- --max-model-len 2048

    Exit code 0: nothing moved. 1: it differs.
    """
    from engdiff import errors
    from engdiff.diff.accept import load_acceptances
    from engdiff.report.progress import Progress
    from engdiff.schema.files import check_output
    from engdiff.sources.acquire import Wishes
    from engdiff.sources.sides import acquire_sides

    words: EngineWords = context.obj
    if len(references) < 2:
        raise errors.UsageError("one side alone cannot differ", "give two or more: engdiff diff OLD NEW")
    if output:
        check_output(output, force=force)
    asked = Asked(
        style=pins.value,
        accepted=load_acceptances(accept) if accept else (),
        accept_file=accept,
        output=output,
        format=Format.json if json else format,
        everything=everything,
    )
    wishes = Wishes(
        model=model,
        arguments=words.words or (),
        variables=variables(env),
        python=python,
        build=build,
        container=container,
        start_limit_seconds=start_limit,
    )
    with Progress(quiet=quiet) as progress:
        sides = acquire_sides(references, wishes, progress)
    return _two(sides, asked, progress) if len(sides) == 2 else _several(sides, asked, progress)


@dataclass(frozen=True)
class Asked:
    """How the user wants the answer."""

    style: PinStyle
    accepted: tuple[Acceptance, ...]
    accept_file: Path | None
    output: Path | None
    format: Format
    everything: bool


def _two(sides: Sequence[SideCapture], asked: Asked, progress: Callable[[str], None]) -> int:
    """The Diff of two, printed; the exit code."""
    from engdiff import errors
    from engdiff.diff.accept import unused
    from engdiff.diff.compare import compare
    from engdiff.schema.files import dump, write_text

    old, new = sides
    found = compare(
        old.capture,
        new.capture,
        old_label=old.label,
        new_label=new.label,
        style=asked.style,
        accept=asked.accepted,
        old_launched=old.launched,
    )
    for stale in unused(asked.accepted, found):
        progress(f"note: {asked.accept_file}: `{stale.key}` accepts nothing in this diff")
    if asked.output:
        write_text(asked.output, dump(found))
    _print(found, asked.format, everything=asked.everything)
    return errors.EXIT_DIFFERS if found.findings else errors.EXIT_FINE


def _several(sides: Sequence[SideCapture], asked: Asked, progress: Callable[[str], None]) -> int:
    """The Series of three or more, printed; the exit code."""
    from engdiff import errors
    from engdiff.diff.accept import unused
    from engdiff.diff.series import series
    from engdiff.report.console import stdout
    from engdiff.report.diff_github import diff_github
    from engdiff.report.series_markdown import series_markdown
    from engdiff.report.series_terminal import print_series
    from engdiff.schema.files import dump, write_text

    found = series(
        [side.capture for side in sides],
        [side.label for side in sides],
        asked.style,
        asked.accepted,
        launched=[side.launched for side in sides],
    )
    stale = [set(unused(asked.accepted, step)) for step in found.diffs]
    for one in sorted(set.intersection(*stale), key=lambda acceptance: acceptance.key):
        progress(f"note: {asked.accept_file}: `{one.key}` accepts nothing in these diffs")
    if asked.output:
        write_text(asked.output, dump(found))
    match asked.format:
        case Format.terminal:
            print_series(found, stdout(), everything=asked.everything)
        case Format.json:
            sys.stdout.write(dump(found))
        case Format.markdown:
            sys.stdout.write(series_markdown(found))
        case Format.github:
            sys.stdout.write("".join(diff_github(step) for step in found.diffs))
    return errors.EXIT_DIFFERS if found.rows else errors.EXIT_FINE


def _print(found: object, format: Format, *, everything: bool) -> None:  # noqa: A002
    from engdiff.report.console import stdout
    from engdiff.report.diff_github import diff_github
    from engdiff.report.diff_markdown import diff_markdown
    from engdiff.report.diff_terminal import print_diff
    from engdiff.schema.diff import Diff
    from engdiff.schema.files import dump

    assert isinstance(found, Diff)
    match format:
        case Format.terminal:
            print_diff(found, stdout(), everything=everything)
        case Format.json:
            sys.stdout.write(dump(found))
        case Format.markdown:
            sys.stdout.write(diff_markdown(found))
        case Format.github:
            sys.stdout.write(diff_github(found))
