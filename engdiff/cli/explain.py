"""``engdiff explain``: what a setting is, what it costs, its history, and its flags on each engine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engdiff.cli.blame import GPU, MODEL, Gpu, ShapeName
from engdiff.cli.words import EngineWords

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engdiff.engines.contract import Engine
    from engdiff.schema.history import History


def explain(
    context: typer.Context,
    setting: Annotated[
        str | None,
        typer.Argument(metavar="[SETTING]", help="A canonical name, a flag, or runner; none: list all."),
    ] = None,
    capture: Annotated[
        Path | None, typer.Option("--capture", help="A capture: what holds there, and the engine's own reasons.")
    ] = None,
    gpu: Gpu = GPU,
    model: ShapeName = MODEL,
    everything: Annotated[bool, typer.Option("--all", help="Every fact, with its source.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the Explanation as JSON.")] = False,
) -> int:
    """Say what a setting is, what it costs, how each engine spells it, and what its default was over the releases.

    engdiff explain scheduler.max_num_batched_tokens

    engdiff explain --max-num-seqs

    What keeps a configuration off the newer model runner: engdiff explain runner --capture c.json
    """
    from engdiff import engines
    from engdiff.diff.explaining import explanation
    from engdiff.diff.keys import key_of
    from engdiff.report.console import stdout
    from engdiff.report.explanation_terminal import print_explanation
    from engdiff.schema.files import dump, load_capture

    words: EngineWords = context.obj
    if setting is None:
        return _listed()
    held = load_capture(capture) if capture else None
    of = [engines.get(held.identity.engine)] if held else [engines.get(name) for name in engines.names()]
    key = key_of(setting, of, held)
    histories = {} if held else _histories(key, of, gpu, model, words.words or ())
    told = explanation(key, of, histories, held)
    if json:
        sys.stdout.write(dump(told))
    else:
        print_explanation(told, stdout(), everything=everything)
    return 0


def _histories(
    key: str, engines: Sequence[Engine], gpu: str, model: str, arguments: tuple[str, ...]
) -> dict[str, History]:
    """What the default was over the releases, of every engine whose profiles hold this scenario."""
    from engdiff.diff.history import Asked, history
    from engdiff.diff.shipped_releases import releases
    from engdiff.knowledge.gpus import pretended
    from engdiff.schema.values import Known
    from engdiff.sources.profiles.shipped import asked, newest_capture

    found = {}
    for engine in engines:
        of = asked(engine, pretended(gpu), model, arguments)
        if newest_capture(engine.name, of.key):
            wanted = Asked(key, of.text, of.model, of.arguments)
            found[engine.name] = history(engine, wanted, releases(engine.name, of.key))
    return {name: one for name, one in found.items() if any(isinstance(span.value, Known) for span in one.spans)}


def _listed() -> int:
    """Every key with its meaning."""
    from engdiff.knowledge.decisions import decisions
    from engdiff.knowledge.settings import registry
    from engdiff.report.console import stdout
    from engdiff.report.page import Page

    page = Page(stdout())
    page.line("Settings and decisions; engdiff explain NAME tells of one")
    page.rows([(one.key, one.meaning) for one in decisions().values()])
    page.rows([(one.key, one.meaning) for one in registry().values()])
    return 0
