"""A probe that no plugin system calls: Python itself calls it, as ``sitecustomize``, in every process of the engine."""

from __future__ import annotations

from importlib.resources import files

KIT = "engdiff_probe_kit.py"


def site_files(probe_source: str, module: str) -> dict[str, str]:
    """Files of a folder for ``PYTHONPATH``. ``module`` is named ``engdiff_...``; its ``install()`` is called early.

    Whoever had a ``sitecustomize`` of his own keeps it: it runs after ours.
    """
    hook = source("engdiff.engines.site_hook", "sitecustomize.py")
    return {"sitecustomize.py": hook, KIT: kit_source(), f"{module}.py": probe_source}


def kit_source() -> str:
    """What probes have in common, as the text of a module of its own."""
    return source("engdiff.engines", "probe_kit.py")


def source(package: str, name: str) -> str:
    """The text of a module that runs in an engine, and is copied there."""
    return (files(package) / name).read_text(encoding="utf-8")
