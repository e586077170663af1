"""``engdiff env``: the environments that engdiff made, with their sizes."""

from __future__ import annotations

from typing import Annotated

import typer


def list_() -> int:
    """List them: size on disk, what removing would free, when each was last used."""
    from engdiff.environments.store import environments, environments_folder
    from engdiff.report.console import stdout
    from engdiff.report.environments import print_environments

    print_environments(environments(), environments_folder(), stdout())
    return 0


def remove(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="ENGINE@VERSION, or a name from the list.")],
) -> int:
    """Remove environments."""
    from engdiff.environments import store
    from engdiff.report.console import stdout
    from engdiff.report.environments import print_removed

    print_removed(store.remove(names), stdout())
    return 0


def prune(
    days: Annotated[float, typer.Option("--days", min=0, help="Remove what was not used for so many days.")] = 30.0,
) -> int:
    """Remove what was not used lately, and what is half-made."""
    from engdiff.environments import store
    from engdiff.report.console import stdout
    from engdiff.report.environments import print_removed

    print_removed(store.prune(days), stdout())
    return 0
