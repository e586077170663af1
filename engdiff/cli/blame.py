"""``engdiff blame``: every release at which a setting or decision moved."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from engdiff.cli.words import EngineWords

GPU = "h100-80gb"
MODEL = "llama-3.1-8b"

Gpu = Annotated[str, typer.Option("--gpu", help="The GPU to tell it for, with its count: h100-80gb:8.")]
ShapeName = Annotated[str, typer.Option("--model", help="The model to tell it for, by the name of a shipped shape.")]


def blame(
    context: typer.Context,
    engine: Annotated[str, typer.Argument(metavar="ENGINE", help="vllm or sglang.")],
    setting: Annotated[
        str, typer.Argument(metavar="SETTING", help="A canonical name, a flag, a path of its configuration, or runner.")
    ],
    gpu: Gpu = GPU,
    model: ShapeName = MODEL,
    everything: Annotated[bool, typer.Option("--all", help="Every known change in full.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the History as JSON.")] = False,
) -> int:
    """Say at which release a default moved, from shipped profiles: nothing is installed or started.

    engdiff blame vllm graphs.capture_sizes

    engdiff blame sglang --mem-fraction-static --gpu l4

    engdiff blame vllm runner --gpu h100-80gb:8 --model deepseek-v3 -- --tensor-parallel-size 8
    """
    from engdiff import engines
    from engdiff.diff.history import Asked, history
    from engdiff.diff.keys import key_of
    from engdiff.diff.shipped_releases import releases
    from engdiff.knowledge.gpus import pretended
    from engdiff.knowledge.versions import older
    from engdiff.report.console import stdout
    from engdiff.report.history_terminal import print_history
    from engdiff.schema.files import dump
    from engdiff.sources.profiles.shipped import newest_capture, scenario, versions

    words: EngineWords = context.obj
    found = engines.get(engine)
    of = scenario(found, pretended(gpu), model, words.words or ())
    key = key_of(setting, (found,), newest_capture(found.name, of.key))
    told = history(found, Asked(key, of.text, of.model, of.arguments), releases(found.name, of.key))
    newest = versions(found.name)[-1]
    newer = [v for v in found.known_versions(found.distributions[0]) if older(newest, v)]
    if json:
        sys.stdout.write(dump(told))
    else:
        print_history(told, stdout(), newer, everything=everything)
    return 0
