"""``engdiff diff``: what moved between two captures, and what pins it back."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from engdiff.cli.words import Build, EngineWords, Force, Limit, Model, Python, Quiet, Variables, variables


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
    old: Annotated[str, typer.Argument(metavar="OLD", help="A capture file, - for standard input, or ENGINE@VERSION.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="Likewise.")],
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
    env: Variables = None,
    start_limit: Limit = None,
    force: Force = False,
    quiet: Quiet = False,
) -> int:
    """Say what moved between two captures, what it costs, and what pins it back.

    Two files: engdiff diff old.json new.json

    An engine takes the file's command: engdiff diff old.json vllm@0.32.0

    Two engines; words after -- go to both:

    engdiff diff vllm@0.20.2 vllm@0.32.0 --model tiny -- --max-model-len 2048

    Exit code 0: nothing moved. 1: it differs.
    """
    from engdiff import errors
    from engdiff.diff.accept import load_acceptances, unused
    from engdiff.diff.compare import compare
    from engdiff.report.progress import Progress
    from engdiff.schema.files import check_output, dump, write_text
    from engdiff.sources.pair import Wanted, acquire_pair

    words: EngineWords = context.obj
    if output:
        check_output(output, force=force)
    accepted = load_acceptances(accept) if accept else ()
    wanted = Wanted(
        old,
        new,
        model=model,
        arguments=words.words,
        variables=variables(env),
        python=python,
        build=build,
        start_limit_seconds=start_limit,
    )
    with Progress(quiet=quiet) as progress:
        pair = acquire_pair(wanted, progress)
    found = compare(
        pair.old,
        pair.new,
        old_label=pair.old_label,
        new_label=pair.new_label,
        style=pins.value,
        accept=accepted,
        old_launched=pair.old_launched,
    )
    for stale in unused(accepted, found):
        progress(f"note: {accept}: `{stale.key}` accepts nothing in this diff")
    if output:
        write_text(output, dump(found))
    _print(found, Format.json if json else format, everything=everything)
    return errors.EXIT_DIFFERS if found.findings else errors.EXIT_FINE


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
