"""``engdiff capture``: write down what an engine decided: launched now, running already, or in a log."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from engdiff.cli.words import Build, Container, EngineWords, Force, Limit, Model, Python, Quiet, Variables, variables

Logs = Annotated[
    list[Path] | None,
    typer.Option("--log", help="Read a start-up log; - is standard input. Again for other nodes or ranks."),
]


def capture(
    context: typer.Context,
    engine: Annotated[
        str | None,
        typer.Argument(metavar="[ENGINE[@VERSION]]", help="vllm@0.32.0, llamacpp@2026.9.11063, or just vllm."),
    ] = None,
    model: Model = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the capture here.")] = None,
    like: Annotated[
        Path | None,
        typer.Option(
            "--like", help="The same model, words and variables as in this capture, compose or Kubernetes file."
        ),
    ] = None,
    service: Annotated[str | None, typer.Option("--service", help="Which container of the --like file.")] = None,
    log: Logs = None,
    start: Annotated[
        int | None, typer.Option("--start", min=1, help="Which start in the log; the last good one.")
    ] = None,
    source: Annotated[str | None, typer.Option("--source", help="Which service or pod in the log.")] = None,
    attach: Annotated[str | None, typer.Option("--attach", metavar="URL", help="Read a server that runs.")] = None,
    token_env: Annotated[
        str | None, typer.Option("--token-env", metavar="NAME", help="Variable that holds the server's bearer token.")
    ] = None,
    ca_file: Annotated[Path | None, typer.Option("--ca-file", help="Certificates to trust, PEM.")] = None,
    time_limit: Annotated[float, typer.Option("--time-limit", min=0.1, help="Seconds for each endpoint.")] = 10,
    drain: Annotated[
        bool, typer.Option("--drain", help="Also read what a reading changes (counters that begin again).")
    ] = False,
    probe: Annotated[
        Path | None, typer.Option("--probe", help="Folder that an exported probe wrote (engdiff probe export).")
    ] = None,
    simulate: Annotated[
        str | None,
        typer.Option(
            "--simulate",
            metavar="GPU[:COUNT]",
            help="Start nothing: let the engine's own configuration code decide for this GPU (h100-80gb:8), or for "
            "this machine (here).",
        ),
    ] = None,
    python: Python = None,
    build: Build = None,
    container: Container = None,
    env: Variables = None,
    start_limit: Limit = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the command that would be run; start nothing.")
    ] = False,
    keep_log: Annotated[Path | None, typer.Option("--keep-log", help="Keep the engine's log here.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the capture as JSON.")] = False,
    force: Force = False,
    quiet: Quiet = False,
) -> int:
    """Write down what an engine decided: start it and stop it, or read a log or a server that runs.

    Launched; words after -- go to the engine:

    engdiff capture vllm@0.32.0 --model tiny -o new.json -- --max-num-seqs 8

    From a log: engdiff capture --log server.log -o old.json

    From a server, completed by its log: engdiff capture --attach http://127.0.0.1:8000 --log server.log

    From a deployment: engdiff capture --like deployment.yaml

    In a container: engdiff capture vllm@0.33.0 --model M --container default

    On a GPU that is not here: engdiff capture vllm@0.33.0 --simulate h100-80gb:8 --model llama-3.1-70b -- -tp 8

    Without -o the capture goes to standard output when that is a pipe, and to ENGINE-VERSION.json on a terminal.
    """
    from engdiff.fetch import Access
    from engdiff.report.progress import Progress
    from engdiff.schema.files import check_output
    from engdiff.sources.acquire import Wishes
    from engdiff.sources.attach import AttachWishes
    from engdiff.sources.log import LogWishes
    from engdiff.sources.wanted import Wanted, acquire_wanted, rehearse_wanted

    words: EngineWords = context.obj
    if output:
        check_output(output, force=force)
    wanted = Wanted(
        engine=engine,
        gpu=simulate,
        logs=tuple(log or ()),
        log_wishes=LogWishes(start=start, source=source),
        url=attach,
        probe=probe,
        like=like,
        service=service,
        wishes=Wishes(
            model=model,
            arguments=words.words or (),
            variables=variables(env),
            python=python,
            build=build,
            container=container,
            start_limit_seconds=start_limit,
            keep_log=keep_log,
            fresh=simulate is not None,
            attach=AttachWishes(
                access=Access(token=_token(token_env), ca_file=ca_file, limit_seconds=time_limit), drain=drain
            ),
        ),
    )
    with Progress(quiet=quiet) as progress:
        if dry_run:
            sys.stdout.write(rehearse_wanted(wanted, progress) + "\n")
            return 0
        outcome = acquire_wanted(wanted, progress)
    return _finish(outcome, output, as_json=json)


def _token(variable: str | None) -> str | None:
    """A token is named by its variable, so that it stands in no process list and no shell history."""
    from engdiff.errors import UsageError

    if variable is None:
        return None
    token = os.environ.get(variable)
    if not token:
        raise UsageError(f"--token-env {variable}: no such variable, or it is empty", f"export {variable} first")
    return token


def _finish(outcome: object, output: Path | None, *, as_json: bool) -> int:
    """Write, print, and say how it ended."""
    from engdiff.errors import EXIT_ENGINE_FAILED, EXIT_FINE
    from engdiff.report.capture_terminal import print_capture
    from engdiff.report.console import stderr, stdout
    from engdiff.report.errors import print_error
    from engdiff.schema.files import dump, write_somewhere
    from engdiff.schema.values import plain
    from engdiff.sources.order import Outcome

    assert isinstance(outcome, Outcome)
    made = outcome.capture
    target = output or (
        None if as_json or not sys.stdout.isatty() else _free_name(made.identity.engine, plain(made.identity.version))
    )
    if target:
        written = write_somewhere(target, dump(made))
        what = "partial capture" if outcome.error else "capture"
        stderr().print(f"{what} written to {written}", style="quiet", soft_wrap=True)
    if as_json or target is None:
        sys.stdout.write(dump(made))
    elif outcome.error is None:
        print_capture(made, stdout())
    if outcome.error:
        print_error(outcome.error)
        return outcome.error.exit_code
    return EXIT_ENGINE_FAILED if made.failure and made.identity.source == "launch" else EXIT_FINE


def _free_name(engine: str, version: object) -> Path:
    """A name in the working folder that replaces nothing."""
    stem = f"{engine}-{version}" if version else f"{engine}-log"
    names = (Path(f"{stem}.json"), *(Path(f"{stem}-{n}.json") for n in range(2, 10_000)))
    return next(name for name in names if not name.exists())
