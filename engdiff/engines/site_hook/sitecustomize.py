"""Python imports this at the start of every process that has this folder on its path.

Installs every probe that lies beside it, then runs the ``sitecustomize`` that this one hides, if there is one.
"""

import importlib
import importlib.machinery
import importlib.util
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120


def install_probes() -> None:
    """Each on its own: one that fails is told, and is never in the engine's way."""
    for name in sorted(os.listdir(HERE)):  # noqa: PTH208
        if name.startswith("engdiff_") and name.endswith("_probe.py"):
            try:
                importlib.import_module(name[:-3]).install()
            except Exception as error:  # noqa: BLE001
                sys.stderr.write(f"engdiff probe: {name}: {type(error).__name__}: {error}\n")


def run_hidden() -> None:
    """The next ``sitecustomize`` on the path."""
    elsewhere = [place for place in sys.path if os.path.abspath(place or os.curdir) != HERE]  # noqa: PTH100
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", elsewhere)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


install_probes()
run_hidden()
