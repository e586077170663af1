"""``engdiff capture``: start an engine, write down what it decided, stop it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from engdiff.cli.words import Build, EngineWords, Force, Limit, Model, Python, Quiet, Variables, variables


def capture(
    context: typer.Context,
    engine: Annotated[
        str, typer.Argument(metavar="ENGINE[@VERSION]", help="vllm@0.32.0, llamacpp@2026.9.11063, or just vllm.")
    ],
    model: Model = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the capture here.")] = None,
    like: Annotated[
        Path | None, typer.Option("--like", help="The same model, words and variables as in this capture.")
    ] = None,
    python: Python = None,
    build: Build = None,
    env: Variables = None,
    start_limit: Limit = None,
    keep_log: Annotated[Path | None, typer.Option("--keep-log", help="Keep the engine's log here.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the capture as JSON.")] = False,
    force: Force = False,
    quiet: Quiet = False,
) -> int:
    """Start an engine, write down what it decided, and stop it.

    Words after -- go to the engine:

    engdiff capture vllm@0.32.0 --model tiny -o new.json -- --max-num-seqs 8

    Without -o the capture goes to standard output when that is a pipe, and to ENGINE-VERSION.json on a terminal.
    """
    from engdiff.errors import UsageError
    from engdiff.references import EngineReference, parse
    from engdiff.report.capture_terminal import print_capture
    from engdiff.report.console import stderr, stdout
    from engdiff.report.errors import print_error
    from engdiff.report.progress import Progress
    from engdiff.schema.files import check_output, dump, load_capture, write_somewhere
    from engdiff.schema.values import plain
    from engdiff.sources.acquire import Wishes, acquire

    reference = parse(engine)
    if not isinstance(reference, EngineReference):
        raise UsageError(
            f"`{engine}` is not an engine",
            "name one: engdiff capture vllm@0.32.0; to read a capture: engdiff show FILE",
        )
    words: EngineWords = context.obj
    if output:
        check_output(output, force=force)
    wishes = Wishes(
        model=model,
        arguments=words.words or (),
        variables=variables(env),
        like=load_capture(like) if like else None,
        python=python,
        build=build,
        start_limit_seconds=start_limit,
        keep_log=keep_log,
    )
    with Progress(quiet=quiet) as progress:
        outcome = acquire(reference, wishes, progress)
    made = outcome.capture
    target = output or (
        None if json or not sys.stdout.isatty() else _free_name(made.identity.engine, plain(made.identity.version))
    )
    if target:
        written = write_somewhere(target, dump(made))
        what = "partial capture" if outcome.error else "capture"
        stderr().print(f"{what} written to {written}", style="quiet", soft_wrap=True)
    if json or target is None:
        sys.stdout.write(dump(made))
    elif outcome.error is None:
        print_capture(made, stdout())
    if outcome.error:
        print_error(outcome.error)
        return outcome.error.exit_code
    return 0


def _free_name(engine: str, version: object) -> Path:
    """A name in the working folder that replaces nothing."""
    stem = f"{engine}-{version}"
    names = (Path(f"{stem}.json"), *(Path(f"{stem}-{n}.json") for n in range(2, 10_000)))
    return next(name for name in names if not name.exists())
