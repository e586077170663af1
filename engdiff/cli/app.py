"""The command line: verbs, and the one place where an error becomes a message and an exit code."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import typer

from engdiff import __version__, errors
from engdiff.cli import blame, budget, capture, diff, doctor, env, explain, probe, profiles, schema, show
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


def _exits(verb: Callable[..., int]) -> Callable[..., None]:
    """The verb with its result as the exit code; Ctrl-C becomes an error like any other, and a closed pipe is none."""

    @functools.wraps(verb)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        code = errors.EXIT_FINE
        try:
            code = verb(*args, **kwargs)
            sys.stdout.flush()
        except KeyboardInterrupt:
            raise errors.Interrupted("interrupted; what engdiff had started was stopped") from None
        except BrokenPipeError:  # whoever read has read enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(code)

    return wrapped


VERBS: tuple[tuple[str, Callable[..., int]], ...] = (
    ("capture", capture.capture),
    ("diff", diff.diff),
    ("budget", budget.budget),
    ("blame", blame.blame),
    ("explain", explain.explain),
    ("show", show.show),
    ("doctor", doctor.doctor),
    ("schema", schema.schema),
)
NAMES_FLAGS = ("blame", "explain")
"""Verbs to which an engine's flag can be named: an option that they do not know is one."""

for name, verb in VERBS:
    app.command(name, context_settings={"ignore_unknown_options": name in NAMES_FLAGS})(_exits(verb))

environments = typer.Typer(
    help="Environments that engdiff made, one per engine and version.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(environments, name="env")
for name, verb in (("list", env.list_), ("remove", env.remove), ("prune", env.prune)):
    environments.command(name)(_exits(verb))

probes = typer.Typer(
    help="The part of engdiff that runs inside an engine, to mount into a server that runs elsewhere.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(probes, name="probe")
probes.command("export")(_exits(probe.export))

shipped = typer.Typer(
    help="Captures that engdiff ships: what every release decides on pretended GPUs, resolved by its own code.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(shipped, name="profiles")
for name, verb in (("list", profiles.list_), ("refresh", profiles.refresh)):
    shipped.command(name)(_exits(verb))

STARTS_NOTHING = ("budget", "show", "doctor", "schema", "env", "probe", "profiles")


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
        if own[:1] and own[0] in STARTS_NOTHING:
            EngineWords(engine_words).refuse(own[0])
        app(args=own, prog_name="engdiff", obj=EngineWords(engine_words))
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else errors.EXIT_FINE
    except errors.EngdiffError as error:
        from engdiff.report.errors import print_error

        print_error(error)
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - the one broad except: whatever it is, the user gets a sentence and a file
        return _defect(error)
    return errors.EXIT_FINE


def _defect(error: Exception) -> int:
    """A fault of engdiff's own: one sentence, and the details in a file for a bug report."""
    import tempfile
    import traceback

    from engdiff.redact import redact_text

    handle, path = tempfile.mkstemp(prefix="engdiff-defect-", suffix=".txt")
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        stream.write(redact_text("".join(traceback.format_exception(error))))
    sys.stderr.write(
        f"error: engdiff itself failed ({type(error).__name__}: {redact_text(str(error))})\n"
        f"   this is a defect of engdiff; please report it with {path}\n"
    )
    return errors.EXIT_DEFECT


def _split(argv: list[str]) -> tuple[list[str], tuple[str, ...] | None]:
    if "--" not in argv:
        return argv, None
    at = argv.index("--")
    return argv[:at], tuple(argv[at + 1 :])
