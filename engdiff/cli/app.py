"""The command line: verbs, and the one place where an error becomes a message and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click
import typer

from engdiff import __version__, errors
from engdiff.cli import capture, diff, doctor, env, schema, show
from engdiff.cli.words import EngineWords

app = typer.Typer(
    name="engdiff",
    help="Same command line, different behaviour: what moved between two versions of an LLM serving engine, "
    "what it costs, what pins it back.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command("capture")(capture.capture)
app.command("diff")(diff.diff)
app.command("show")(show.show)
app.add_typer(env.app, name="env")
app.command("doctor")(doctor.doctor)
app.command("schema")(schema.schema)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"engdiff {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """Exit codes: 0 fine, 1 it differs, 2 wrong usage or input, 4 engine failed, 5 unfit machine, 130 interrupted."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run, and leave with the exit code. No traceback reaches a user."""
    sys.exit(run(sys.argv[1:] if argv is None else list(argv)))


def run(argv: list[str]) -> int:
    """Run one command line; words after the first ``--`` belong to the engine and are not parsed here."""
    own, engine_words = _split(argv)
    try:
        result = app(args=own, prog_name="engdiff", standalone_mode=False, obj=EngineWords(engine_words))
    except click.exceptions.Abort:
        return errors.EXIT_INTERRUPTED
    except click.ClickException as error:
        error.show()
        return errors.EXIT_USAGE
    except KeyboardInterrupt:
        print("interrupted; the engine and everything it started were stopped", file=sys.stderr)  # noqa: T201
        return errors.EXIT_INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return errors.EXIT_FINE
    except errors.EngdiffError as error:
        from engdiff.report.errors import print_error

        print_error(error)
        return error.exit_code
    return result if isinstance(result, int) else errors.EXIT_FINE


def _split(argv: list[str]) -> tuple[list[str], tuple[str, ...] | None]:
    if "--" not in argv:
        return argv, None
    at = argv.index("--")
    return argv[:at], tuple(argv[at + 1 :])
