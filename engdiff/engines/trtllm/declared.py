"""TensorRT-LLM's static defaults as a capture: read off its sources, as engdiff cannot run it."""

from __future__ import annotations

from dataclasses import dataclass

from engdiff.engines.layers import MISSING, exact, settle
from engdiff.engines.trtllm import defaults, normalize, releases
from engdiff.schema.capture import Capture, Setting
from engdiff.schema.values import Unknown

NOT_RUN = Unknown(because="TensorRT-LLM was not run: its worker may decide otherwise")
NOTE = (
    "static defaults, read off its sources by people and not verified on a live engine by this project; "
    "a model's own defaults and the worker come after them"
)


@dataclass(frozen=True)
class TrtllmDeclared:
    """See :class:`engdiff.engines.contract.Declared` for what each part promises."""

    @property
    def versions(self) -> tuple[str, ...]:
        """Those whose sources were read, newest first."""
        return tuple(version for version in releases.KNOWN if defaults.at(version))

    def capture(self, version: str, base: Capture) -> Capture:
        """The defaults of one release."""
        found = defaults.at(version)
        settings: dict[str, Setting] = {}
        for key, names in normalize.KNOWLEDGE.names(version).items():
            value = normalize.static_default(key, version)
            if value is MISSING or names.native is None:
                continue
            settings[key] = settle(
                configured=None,
                declared=value,
                resolved=exact(value, "rule", f"{defaults.LABEL}: {found[names.native].source}"),  # type: ignore[arg-type]
                effective=NOT_RUN,
                native=names.native,
            )
        return base.model_copy(update={"settings": settings, "notes": (*base.notes, NOTE)})
