"""Runs SGLang's own resolution of its arguments for a GPU that is not there: ``python THIS ORDER.json``.

Standard library, torch and SGLang only. What a CUDA machine has and this one lacks is stood in for before SGLang is
imported (kernel packages that the release itself asks for, nvidia-smi, torch.cuda). Each scenario leaves what the probe
leaves of the front end, ``arguments.json``, and what the scheduler's process would have changed in ``simulation.json``.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

if importlib.util.find_spec("engdiff_sglang_probe"):
    import engdiff_pretend_kit as kit
    import engdiff_sglang_meta_model as meta_model
    import engdiff_sglang_probe as probe
    import engdiff_sglang_support as support
    import engdiff_simulation_kit as run
    from engdiff_probe_kit import attempt, plain, write
else:
    from engdiff.engines import pretend_kit as kit
    from engdiff.engines import simulation_kit as run
    from engdiff.engines.probe_kit import attempt, plain, write
    from engdiff.engines.sglang import meta_model, probe, support

EXTRAS = ("srt", "runtime-common", "runtime_common")
"""Extras of a server; from 0.5.3 on it needs none."""

KERNELS = {
    "sgl_kernel": ("sgl-kernel", "sglang-kernel"),
    "flashinfer": ("flashinfer-python",),
    "deep_gemm": ("sgl-deep-gemm", "sgl-kernel", "sglang-kernel"),
    "deep_ep": ("sgl-deep-ep",),
    "flash_mla": ("sgl-flash-mla",),
    "tilelang": ("tilelang",),
    "quack": ("quack-kernels",),
    "cutlass": ("nvidia-cutlass-dsl",),
    "nvshmem": ("nvshmem4py-cu13",),
    "humming": ("humming-kernels",),
    "torch_memory_saver": ("torch-memory-saver",),
}
"""Import names of kernel packages and what ships them. Only those that a release asks for are there: what a plain
installation lacks (vllm, mooncake, nixl) stays away, as it would change what is chosen."""


def main() -> None:
    """Resolve every scenario of the order."""
    order = kit.read_order(sys.argv[1])
    device = kit.Device(order["device"]) if order["device"] else None
    if device:
        pretend(device, order["version"])
    else:
        support.install()
    import_engine()
    sys.exit(run.each_scenario(order, device, resolve))


# --- the machine that is not there ------------------------------------------------------------------------------


def pretend(device: kit.Device, version: str) -> None:
    """Everything that SGLang asks a CUDA machine for."""
    asked = run.requirements("sglang", EXTRAS)
    packages = kernel_packages(asked)
    of_kernels = {name for names in KERNELS.values() for name in names}
    run.state_versions({"sglang": version, **{n: run.pinned(a) or "0" for n, a in asked.items() if n in of_kernels}})
    kit.pretend_torch(device, run.cuda_of(run.pinned(asked.get("torch")) or "99.0"))
    kit.tolerate_missing_operators()
    support.answer_for_amx()
    sys.meta_path.insert(0, support.VisionFinder())
    kit.StandInPackages(packages, answers=kit.of_kernel_packages(device))
    kit.pretend_triton(device)
    kit.pretend_nvidia_smi(device, Path(tempfile.mkdtemp(prefix="nvidia-smi-", dir=Path(sys.argv[1]).parent)))
    if importlib.util.find_spec("pynvml"):
        import pynvml

        kit.pretend_nvml(pynvml, device)


def kernel_packages(asked: dict[str, str]) -> dict[str, str]:
    """Import names and releases of the kernel packages that this release asks for."""
    found: dict[str, str] = {}
    for module, names in KERNELS.items():
        wanted = next((name for name in names if name in asked), None)
        if wanted and importlib.util.find_spec(module) is None:
            found[module] = run.pinned(asked[wanted]) or "0"
    return found


def import_engine() -> None:
    """Import SGLang once for all scenarios."""
    import sglang.srt.server_args as module

    probe.watch_arguments(module)
    run.built(lambda: __import__("sglang.srt.model_executor.model_runner"))


# --- one scenario ----------------------------------------------------------------------------------------------


def resolve(scenario: dict[str, Any], device: kit.Device | None) -> None:
    """Resolve one command line and write down what came out."""
    import sglang.srt.server_args as module

    words = ["--model-path", scenario["model"], *scenario["arguments"]]
    sys.argv = ["sglang.launch_server", *words]
    said = run.listened("sglang")
    try:
        made = module.prepare_server_args(words)
        if hasattr(made, "resolve_once"):
            made.resolve_once()
        if hasattr(made, "check_server_args"):
            made.check_server_args()
    except (Exception, SystemExit) as error:
        run.refused(error, said)
        return
    later = attempt(lambda: scheduler_side(made)) if device else {}
    built = run.built(lambda: meta_model.facts(made, model_config(made))) if device else None
    write("simulation", lambda: simulation(later, built, said))


def simulation(later: Any, built: Any, said: list[str]) -> dict[str, Any]:
    """What stood in for the engine and for its machine, what was built, and whose libraries answered."""
    return {
        "notes": run.stand_ins(),
        "later": later,
        "built": built,
        "said": said,
        "variables": probe.variables(),
        "libraries": run.libraries(run.requirements("sglang", EXTRAS)),
    }


# --- what the scheduler's process decides, as far as it looks at nothing that was measured ----------------------


def scheduler_side(made: Any) -> dict[str, Any]:
    """The model's facts, and arguments and graph sizes as the model runner would have left them."""
    config = model_config(made)
    before = probe.resolved(made)
    runner = adjustable_runner(made, config)
    adjusted = attempt(runner.model_specific_adjustment) if hasattr(runner, "model_specific_adjustment") else None
    after = probe.resolved(made)
    return {
        "model": model_facts(config),
        "server_args": {name: plain(value) for name, value in after.items() if before.get(name) != value},
        "not_adjusted": adjusted,
        "capture_bs": capture_sizes(runner, made, after),
    }


def model_config(made: Any) -> Any:
    """SGLang's own reading of the model's configuration."""
    from sglang.srt.configs.model_config import ModelConfig

    if hasattr(ModelConfig, "from_server_args"):
        return ModelConfig.from_server_args(made)
    return ModelConfig(
        made.model_path,
        trust_remote_code=made.trust_remote_code,
        revision=made.revision,
        context_length=made.context_length,
        model_override_args=made.json_model_override_args,
        is_embedding=made.is_embedding,
        dtype=made.dtype,
        quantization=made.quantization,
    )


def model_facts(config: Any) -> dict[str, Any]:
    """What the model runner reads of it."""
    return {
        "context_len": config.context_len,
        "dtype": str(config.dtype).removeprefix("torch."),
        "attention_arch": config.attention_arch.name,
        "layers": config.num_hidden_layers,
    }


def adjustable_runner(made: Any, config: Any) -> Any:
    """A model runner that was never built, with what its own rules of adjustment look at."""
    runner = meta_model.bare_runner(made, config)
    held = {
        "is_multimodal": getattr(config, "is_multimodal", False),
        "is_multimodal_chunked_prefill_supported": getattr(config, "is_multimodal_chunked_prefill_supported", True),
        "is_hybrid": getattr(config, "is_hybrid", None),
        "is_generation": config.is_generation,
        "req_to_token_pool": types.SimpleNamespace(size=MANY_REQUESTS),
    }
    meta_model.hold(runner, held)
    return runner


MANY_REQUESTS = 2048
"""Slots for requests, known once memory was measured; graph sizes beyond them are not captured, and none lies beyond
this many (``get_batch_sizes_to_capture`` in model_executor/cuda_graph_runner.py, 0.4.6-0.5.14)."""


def capture_sizes(runner: Any, made: Any, resolved: dict[str, Any]) -> Any:
    """Batch sizes of graphs where the arguments do not hold them yet; ``None`` where they do."""
    if resolved.get("cuda_graph_config") or resolved.get("cuda_graph_bs") or resolved.get("disable_cuda_graph"):
        return None
    from sglang.srt.model_executor import cuda_graph_runner as graphs

    context = int(resolved.get("attn_cp_size") or 1)
    replicas = made.dp_size if made.enable_dp_attention else 1
    groups = {"get_attention_tp_size": max(1, made.tp_size // replicas // context), "get_attention_cp_size": context}
    for name, size in groups.items():
        if hasattr(graphs, name):
            setattr(graphs, name, lambda size=size: size)
    return list(graphs.get_batch_sizes_to_capture(runner)[0])


if __name__ == "__main__":
    main()
