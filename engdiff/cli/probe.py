"""``engdiff probe export``: the probe alone, to mount into a server that somebody else starts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from engdiff.cli.words import Force


def export(
    engine: Annotated[str, typer.Argument(metavar="ENGINE", help="vllm")],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where to write it.")],
    force: Force = False,
) -> int:
    """Write an engine's probe, standard library only, to mount into an existing container or pod.

    engdiff probe export vllm probe/

    What it says then becomes a capture: engdiff capture --probe FOLDER -o live.json
    """
    from engdiff.sources.probe_export import export_probe

    for line in export_probe(engine, folder, force=force):
        sys.stdout.write(line + "\n")
    return 0
