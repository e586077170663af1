"""``engdiff budget``: what an engine would hold, whether it starts, and how many requests it takes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

Model = Annotated[str, typer.Option("--model", "-m", help="A shipped shape (70b), a model folder, or a config.json.")]
EngineName = Annotated[str, typer.Option("--engine", help="Engine and release: vllm@0.25.1. Without: the newest vLLM.")]
GpuName = Annotated[str, typer.Option("--gpu", help="The device: h100-80gb, l40s:2. Without: h100-80gb.")]
Vary = Annotated[
    list[str] | None,
    typer.Option("--vary", help="A table over values: util=0.85:0.95:0.01, max-num-batched-tokens=2048,8192."),
]


def budget(
    model: Model = "",
    engine: EngineName = "",
    gpu: GpuName = "",
    tp: Annotated[int, typer.Option("--tp", min=1, help="Devices that share each layer.")] = 1,
    pp: Annotated[int, typer.Option("--pp", min=1, help="Stages of a pipeline.")] = 1,
    experts: Annotated[bool, typer.Option("--ep", help="Ranks hold whole experts.")] = False,
    context: Annotated[int | None, typer.Option("--context", min=1, help="Longest request, tokens.")] = None,
    util: Annotated[float | None, typer.Option("--util", min=0.01, max=1.0, help="Share of device memory.")] = None,
    batched_tokens: Annotated[int | None, typer.Option("--max-num-batched-tokens", min=1)] = None,
    seqs: Annotated[int | None, typer.Option("--max-num-seqs", min=1)] = None,
    kv_dtype: Annotated[str | None, typer.Option("--kv-dtype", help="auto, fp8.")] = None,
    eager: Annotated[bool, typer.Option("--eager", help="No graphs.")] = False,
    vary: Vary = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write the Budget, to be diffed later.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the output file.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the Budget as JSON.")] = False,
) -> int:
    """Say what an engine would hold of a device, whether it starts, and how near the limit is. Nothing is run.

    engdiff budget --model 70b --tp 2

    engdiff budget --model 70b --tp 2 --gpu h100-80gb --context 8192 --engine vllm@0.25.1 --util 0.90
    """
    from engdiff.budget.answer import answer
    from engdiff.budget.asking import Said, question
    from engdiff.budget.axes import axes
    from engdiff.report.budget_terminal import print_budget
    from engdiff.report.console import stdout
    from engdiff.schema.files import check_output, dump, write_text

    stated: dict[str, Any] = {
        "model.max_model_len": context,
        "kv.gpu_memory_utilization": util,
        "scheduler.max_num_batched_tokens": batched_tokens,
        "scheduler.max_num_seqs": seqs,
        "kv.dtype": kv_dtype,
        "model.enforce_eager": eager or None,
    }
    said = Said(model, engine, gpu, tp, pp, experts, {key: value for key, value in stated.items() if value is not None})
    if output is not None:
        check_output(output, force=force)
    asked = question(said)
    made = answer(asked, axes(asked, vary or ()))
    if output is not None:
        write_text(output, dump(made))
    if json:
        sys.stdout.write(dump(made))
    else:
        print_budget(made, stdout())
    return 0
