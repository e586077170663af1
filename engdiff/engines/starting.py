"""What starting a Python server has in common, whichever engine it is."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from engdiff.engines.contract import LaunchRequest, Observed
from engdiff.engines.probe_kit import OUT
from engdiff.schema.capture import Phase
from engdiff.schema.values import Known, Unknown, Value

LIBRARIES = (
    "HF_",
    "HUGGING_FACE_",
    "TRANSFORMERS_",
    "TORCH",
    "PYTORCH_",
    "INDUCTOR_",
    "TRITON_",
    "FLASHINFER_",
    "NCCL_",
    "CUDA_",
    "HIP_",
    "ROCR_",
    "GLOO_",
    "RAY_",
    "OMP_",
    "KMP_",
    "MKL_",
    "GOMP_",
    "LD_PRELOAD",
    "DG_JIT_",
    "LMCACHE_",
    "MOONCAKE_",
)
"""Beginnings of variables that the libraries under an engine read."""


def without_flags(arguments: Sequence[str], names: Collection[str]) -> tuple[str, ...]:
    """The words without flags that take one value, and without their values."""
    out: list[str] = []
    skip = False
    for word in arguments:
        name, equals, _ = word.partition("=")
        if skip:
            skip = False
        elif name in names:
            skip = not equals
        else:
            out.append(word)
    return tuple(out)


REASONS = {
    OUT: "where the probe writes",
    "PYTHONPATH": "so that every process of the engine finds the probe",
    "PATH": "so that tools of the engine's own environment come first",
    "HF_HUB_OFFLINE": "the model is a local folder",
}
"""Why engdiff sets the variables of :func:`added`."""


def added(request: LaunchRequest, hook: Path, output: Path) -> dict[str, str]:
    """Variables that bring the probe of folder ``hook`` in; one that the user set keeps its value."""
    variables = request.variables
    found = {OUT: str(output), "PYTHONPATH": _before(hook, variables, "PYTHONPATH")}
    if request.image is None:
        found["PATH"] = _before(request.interpreter.parent, variables, "PATH")
    if Path(request.model).is_dir() and "HF_HUB_OFFLINE" not in variables:
        found["HF_HUB_OFFLINE"] = "1"
    return found


def _before(place: Path, variables: Mapping[str, str], name: str) -> str:
    """A list of places with one put before those that the variable has already."""
    return os.pathsep.join(filter(None, (str(place), variables.get(name, ""))))


def written(folder: Path, files: Mapping[str, str]) -> Path:
    """The folder with these files in it, by relative path."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def beginning(variables: Mapping[str, str], prefixes: tuple[str, ...]) -> dict[str, str]:
    """Those variables whose names begin so."""
    return {name: value for name, value in variables.items() if name.startswith(prefixes)}


def whole_boot(observed: Observed) -> Phase:
    """From the start to the first answer, as engdiff measured it."""
    total: Value = Unknown(because="the server did not come up")
    if observed.ready_at is not None:
        total = Known(value=round(observed.ready_at - observed.started_at, 2), basis="measured")
    return Phase(name="start to healthy", seconds=total, meaning="imports, configuration and all of the above")
