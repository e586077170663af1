"""``engdiff env``: the environments that engdiff made, with their sizes."""

from __future__ import annotations

from typing import Annotated

import typer


def list_() -> int:
    """List them: size on disk, what removing would free, when each was last used.

    To find what can go: engdiff env list
    """
    from engdiff.environments.store import environments, environments_folder
    from engdiff.report.console import stdout
    from engdiff.report.environments import print_environments

    print_environments(environments(), environments_folder(), stdout())
    return 0


def remove(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="ENGINE@VERSION, or a name from the list.")],
) -> int:
    """Remove environments.

    By engine and version, or by a name from the list: engdiff env remove vllm@0.20.2
    """
    from engdiff.environments import store
    from engdiff.report.console import stdout
    from engdiff.report.environments import print_removed

    print_removed(store.remove(names), stdout())
    return 0


def prune(
    days: Annotated[float, typer.Option("--days", min=0, help="Remove what was not used for so many days.")] = 30.0,
) -> int:
    """Remove what was not used lately, and what is half-made.

    All that a week did not use: engdiff env prune --days 7
    """
    from engdiff.environments import store
    from engdiff.report.console import stdout
    from engdiff.report.environments import print_removed

    print_removed(store.prune(days), stdout())
    return 0
