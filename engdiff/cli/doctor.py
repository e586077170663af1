"""``engdiff doctor``: what can run here, what cannot, and why."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def doctor(json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False) -> int:
    """Say what can run on this machine, what cannot, and why.

    Exit code 5 when something stands in the way: engdiff doctor && engdiff capture vllm --model tiny
    """
    import json as json_module
    from dataclasses import asdict

    from engdiff import errors
    from engdiff.doctor import examine
    from engdiff.report.console import stdout
    from engdiff.report.doctor import print_check
    from engdiff.report.progress import Progress

    checks = []
    with Progress() as progress:
        for check in examine(progress):
            checks.append(check)
            if not json:
                print_check(check, stdout())
    if json:
        sys.stdout.write(json_module.dumps([asdict(c) for c in checks], indent=1) + "\n")
    return errors.EXIT_UNFIT if any(c.state == "bad" for c in checks) else errors.EXIT_FINE
