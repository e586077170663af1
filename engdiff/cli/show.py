"""``engdiff show``: one capture, for reading."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def show(
    capture: Annotated[str, typer.Argument(metavar="CAPTURE", help="A capture file, a log, or - for standard input.")],
    everything: Annotated[bool, typer.Option("--all", help="Also settings that hold their declared defaults.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print it as JSON, in the newest schema.")] = False,
) -> int:
    """Print one capture for reading.

    A file: engdiff show new.json

    What was captured just now: engdiff capture llamacpp --model tiny | engdiff show -
    """
    from engdiff import engines
    from engdiff.errors import DocumentMissing, UsageError
    from engdiff.references import EngineReference, UrlReference, parse
    from engdiff.report.capture_terminal import print_capture
    from engdiff.report.console import stdout
    from engdiff.schema.files import dump
    from engdiff.sources.given import read

    reference = parse(capture)
    if isinstance(reference, EngineReference):
        if reference.engine not in engines.names():
            raise DocumentMissing(capture)
        raise UsageError(
            f"`{capture}` is an engine, not a capture",
            f"make one first: engdiff capture {capture} --model tiny -o FILE",
        )
    if isinstance(reference, UrlReference):
        raise UsageError(f"`{capture}` is a server, not a capture", f"read it: engdiff capture --attach {capture}")
    made = read(reference)
    if json:
        sys.stdout.write(dump(made))
    else:
        print_capture(made, stdout(), everything=everything)
    return 0
