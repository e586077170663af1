"""SGLang's probe for a server that somebody else starts: files for its path, and its answers as a Capture."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from engdiff.engines.contract import Observed
from engdiff.engines.layers import exact
from engdiff.engines.probe_kit import OUT
from engdiff.engines.sglang import from_launch, launch
from engdiff.schema.capture import Capture


class SGLangProbe:
    """See :class:`engdiff.engines.contract.ExportedProbe`."""

    def files(self) -> Mapping[str, str]:
        """The probe and what brings it into every process."""
        return launch.probe_files()

    def variables(self, mounted: str, output: str) -> Mapping[str, str]:
        """Python imports ``sitecustomize`` from the path."""
        return {"PYTHONPATH": mounted, OUT: output}

    def wrote(self, files: Mapping[str, JsonValue]) -> bool:
        """A scheduler's file, or the front end's arguments, which no other probe writes with rules."""
        arguments = files.get("arguments")
        of_front_end = isinstance(arguments, dict) and "rules" in arguments
        return of_front_end or any(name.startswith("scheduler-dp") for name in files)

    def capture(self, files: Mapping[str, JsonValue], base: Capture) -> Capture:
        """As of a launch, without processes, log and endpoints."""
        arguments = files.get("arguments")
        told = arguments if isinstance(arguments, dict) else {}
        versions = told.get("versions")
        version = versions.get("sglang") if isinstance(versions, dict) else None
        made = from_launch.capture(Observed.by_probe(files, str(version or ""), "sglang"), base)
        identity, begun = made.identity, made.launch
        if isinstance(version, str):
            identity = identity.model_copy(update={"version": exact(version, "probe", "sglang.__version__")})
        words, explicit = told.get("argv"), told.get("explicit")
        if isinstance(words, list):
            model = explicit.get("model_path") if isinstance(explicit, dict) else None
            written = ("python", "-m", "sglang.launch_server", *map(str, words))
            given = model if isinstance(model, str) else None
            begun = begun.model_copy(update={"native_command": written, "model_given": given})
        return made.model_copy(update={"identity": identity, "launch": begun})
