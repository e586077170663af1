"""TensorRT-LLM's probe for a server, or a script with ``LLM()``, that somebody else starts."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from engdiff.engines.contract import Observed
from engdiff.engines.layers import exact
from engdiff.engines.probe_kit import OUT
from engdiff.engines.probed import tree
from engdiff.engines.trtllm import from_launch, plugin, record, seen
from engdiff.engines.trtllm.launch import SCRIPT
from engdiff.engines.trtllm.releases import DISTRIBUTION
from engdiff.redact import redact_words
from engdiff.schema.capture import Capture


class TrtLlmProbe:
    """See :class:`engdiff.engines.contract.ExportedProbe`."""

    def files(self) -> Mapping[str, str]:
        """The hook that Python imports, and the probe."""
        return plugin.probe_files()

    def variables(self, mounted: str, output: str) -> Mapping[str, str]:
        """Python imports ``sitecustomize`` of what is on its path."""
        return {"PYTHONPATH": mounted, OUT: output}

    def wrote(self, files: Mapping[str, JsonValue]) -> bool:
        """Any file that names the engine."""
        return any(name.startswith("trtllm-") and isinstance(value, dict) for name, value in files.items())

    def capture(self, files: Mapping[str, JsonValue], base: Capture) -> Capture:
        """As of a launch, without processes, log and endpoints."""
        asked = tree(files.get(plugin.ARGUMENTS))
        version = seen.engine_version(files)
        words = tuple(str(word) for word in asked.get("argv") or ()) if asked.get("front") == SCRIPT else ()
        model = asked["model"] if isinstance(asked.get("model"), str) else ""
        seen_by_probe = Observed.by_probe(files, str(version or ""), DISTRIBUTION, model=model, arguments=words)
        made = from_launch.capture(seen_by_probe, base)
        identity, launch = made.identity, made.launch
        if version:
            identity = identity.model_copy(update={"version": exact(version, "probe", "tensorrt_llm.__version__")})
        if words:
            launch = launch.model_copy(update={"native_command": (SCRIPT, *redact_words(words))})
        if model:
            launch = launch.model_copy(update={"model": model, "model_given": model})
        return record.marked(made.model_copy(update={"identity": identity, "launch": launch, "boot": ()}))
