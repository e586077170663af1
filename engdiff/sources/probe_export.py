"""Writes an engine's probe as a folder and as a Kubernetes ConfigMap, and says how to switch it on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml

from engdiff.errors import OutputExists, OutputUnwritable
from engdiff.sources.probe import probe_of

MOUNTED = "/engdiff-probe"
OUTPUT = "/tmp/engdiff"  # noqa: S108 - a path inside somebody else's container
NAME = "engdiff-probe"


def export_probe(engine_name: str, folder: Path, *, force: bool) -> tuple[str, ...]:
    """Write the files; the lines that say how to go on. Raises an error that names what cannot be written."""
    probe = probe_of(engine_name)
    files, variables = probe.files(), probe.variables(MOUNTED, OUTPUT)
    texts = {**files, "configmap.yaml": _config_map(files), "pod-patch.yaml": _patch(files, variables)}
    if not force and folder.exists() and any(folder.iterdir() if folder.is_dir() else [folder]):
        raise OutputExists(folder)
    for name, text in texts.items():
        _write(folder / name, text)
    return _how(engine_name, folder, variables)


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OutputUnwritable(path, error.strerror or str(error)) from None


def _key(name: str) -> str:
    """A ConfigMap's keys hold no slash; the volume puts each back at its path."""
    return name.replace("/", "__")


def _config_map(files: Mapping[str, str]) -> str:
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": NAME},
            "data": {_key(name): text for name, text in files.items()},
        },
        sort_keys=False,
    )


def _patch(files: Mapping[str, str], variables: Mapping[str, str]) -> str:
    """A strategic merge patch; only the container's name is left to fill in."""
    items = [{"key": _key(name), "path": name} for name in files]
    container = {
        "name": "CONTAINER",
        "env": [{"name": name, "value": value} for name, value in variables.items()],
        "volumeMounts": [
            {"name": NAME, "mountPath": MOUNTED, "readOnly": True},
            {"name": f"{NAME}-out", "mountPath": OUTPUT},
        ],
    }
    volumes = [{"name": NAME, "configMap": {"name": NAME, "items": items}}, {"name": f"{NAME}-out", "emptyDir": {}}]
    patch = {"spec": {"template": {"spec": {"containers": [container], "volumes": volumes}}}}
    return yaml.safe_dump(patch, sort_keys=False)


def _how(engine: str, folder: Path, variables: Mapping[str, str]) -> tuple[str, ...]:
    words = " ".join(f"-e {name}={value}" for name, value in variables.items())
    return (
        f"{folder}: the probe of {engine}. It reads what was resolved once the server is up, and changes nothing.",
        "",
        "Docker:",
        f"   docker run -v {folder.absolute()}:{MOUNTED}:ro -v $PWD/out:{OUTPUT} {words} ...",
        "Kubernetes (write the container's name into pod-patch.yaml; the pods restart):",
        f"   kubectl apply -f {folder / 'configmap.yaml'}",
        f"   kubectl patch deployment NAME --patch-file {folder / 'pod-patch.yaml'}",
        f"   kubectl exec POD -- tar cf - -C {OUTPUT} . | tar xf - -C out",
        "",
        "A PYTHONPATH or VLLM_PLUGINS that the container sets already must keep its value beside this one.",
        "Then:",
        "   engdiff capture --probe out -o live.json",
    )
