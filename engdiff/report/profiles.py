"""Shipped profiles for reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console

from engdiff.knowledge.gpus import gpus
from engdiff.models.shapes import shapes
from engdiff.report.page import INDENT, Page
from engdiff.report.wording import count


def print_profiles(
    versions: Mapping[str, Sequence[str]],
    scenarios: Mapping[str, Sequence[str]],
    console: Console,
    *,
    everything: bool = False,
) -> None:
    """Releases and scenarios by engine; ``everything``: also all that can be pretended."""
    page = Page(console)
    for engine, releases in versions.items():
        page.section(f"{engine}: {count(len(releases), 'release')}" if releases else f"{engine}: none is shipped")
        if releases:
            page.line(" ".join(reversed(releases)), indent=INDENT)
    for held in dict.fromkeys(tuple(several) for several in scenarios.values()):
        named = ", ".join(engine for engine, several in scenarios.items() if tuple(several) == held)
        page.section(f"Scenarios of {named}: GPU, model, words after --" if len(held) > 1 else f"Scenario of {named}")
        for one in held:
            page.line(one, indent=INDENT)
    if everything:
        page.section("GPUs that can be pretended (ENGINE@VERSION/GPU[:COUNT])")
        page.line(" ".join(gpus()), indent=INDENT)
        page.section("Models whose shape is shipped (--model)")
        page.line(" ".join(shapes()), indent=INDENT)
