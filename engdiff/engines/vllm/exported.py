"""vLLM's probe for a server that somebody else starts: the plugin as files, and its answers as a Capture."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from engdiff.engines.contract import Observed
from engdiff.engines.layers import exact
from engdiff.engines.probe_kit import OUT
from engdiff.engines.vllm import normalize
from engdiff.engines.vllm.plugin import plugin_files
from engdiff.schema.capture import Capture


class VllmProbe:
    """See :class:`engdiff.engines.contract.ExportedProbe`."""

    def files(self) -> Mapping[str, str]:
        """Module and metadata."""
        return plugin_files()

    def variables(self, mounted: str, output: str) -> Mapping[str, str]:
        """VLLM finds plugins of everything on the path; a list in VLLM_PLUGINS must name this one as well."""
        return {"PYTHONPATH": mounted, OUT: output}

    def wrote(self, files: Mapping[str, JsonValue]) -> bool:
        """An engine core's file, or the front end's."""
        return any(isinstance(files.get(name), dict) for name in ("core-0", "arguments"))

    def capture(self, files: Mapping[str, JsonValue], base: Capture) -> Capture:
        """As of a launch, without processes, log and endpoints."""
        core, arguments = files.get("core-0"), files.get("arguments")
        versions = core.get("versions") if isinstance(core, dict) else None
        version = versions.get("vllm") if isinstance(versions, dict) else None
        words = arguments.get("argv") if isinstance(arguments, dict) else None
        explicit = arguments.get("explicit") if isinstance(arguments, dict) else None
        model = explicit.get("model_tag") or explicit.get("model") if isinstance(explicit, dict) else None
        made = normalize.capture(Observed.by_probe(files, str(version or ""), "vllm"), base)
        identity, launch = made.identity, made.launch
        if isinstance(version, str):
            identity = identity.model_copy(update={"version": exact(version, "probe", "vllm.__version__")})
        if isinstance(words, list):
            written = tuple(str(word) for word in words)
            launch = launch.model_copy(update={"native_command": ("vllm", *written), "model_given": _text(model)})
        return made.model_copy(update={"identity": identity, "launch": launch})


def _text(model: object) -> str | None:
    return model if isinstance(model, str) else None
