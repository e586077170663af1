"""``engdiff profiles``: which captures are shipped, and making them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from engdiff.cli.words import Quiet


def list_(
    engine: Annotated[str | None, typer.Argument(metavar="[ENGINE]", help="One engine only.")] = None,
    scenarios: Annotated[bool, typer.Option("--scenarios", help="Also list GPUs, models and words.")] = False,
) -> int:
    """List releases with a shipped profile, and with which GPUs and models.

    Every GPU and model that can be pretended, shipped or not: engdiff profiles list --scenarios
    """
    from engdiff import engines
    from engdiff.report.console import stdout
    from engdiff.report.profiles import print_profiles
    from engdiff.sources.profiles.grid import scenarios as grid
    from engdiff.sources.profiles.shipped import by_device, versions

    wanted = (engines.get(engine).name,) if engine else engines.names()
    held = {name: versions(name) for name in wanted}
    keys = {name: [one.key for one in grid(by_device=by_device(engines.get(name)))] for name in wanted}
    print_profiles(held, keys, stdout(), everything=scenarios)
    return 0


def refresh(
    references: Annotated[list[str], typer.Argument(metavar="ENGINE@VERSION...", help="Releases to resolve.")],
    folder: Annotated[
        Path | None, typer.Option("--folder", help="Where to write; by default the profiles of this checkout.")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Write nothing: compare with what is shipped.")] = False,
    quiet: Quiet = False,
) -> int:
    """Resolve every shipped scenario of a release by its own code, and write the profile.

    Needs what --simulate needs: some minutes, and the engine's libraries in an environment that engdiff makes.

    engdiff profiles refresh vllm@0.33.1

    Exit code with --check: 0 where all are byte for byte the same, 1 where one differs.
    """
    from engdiff import errors
    from engdiff.report.console import stdout
    from engdiff.report.progress import Progress
    from engdiff.sources.profiles.refresh import refreshed
    from engdiff.sources.profiles.shipped import home

    differ = False
    with Progress(quiet=quiet) as progress:
        for text in references:
            done = refreshed(text, folder or home(text.partition("@")[0]), progress, check=check)
            differ = differ or not done.same
            stdout().print(done.says, soft_wrap=True)
    return errors.EXIT_DIFFERS if check and differ else errors.EXIT_FINE
