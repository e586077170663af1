"""SGLang behind the contract: read from logs and running servers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from engdiff.deployments.served import Served
from engdiff.engines.contract import Cause, ExportedProbe
from engdiff.engines.last_words import explain
from engdiff.engines.recorded import Recorded
from engdiff.engines.sglang import deployment, from_log, http, log
from engdiff.knowledge.tables import Knowledge
from engdiff.logs.starts import LogFormat, Start
from engdiff.schema.capture import Capture


@dataclass(frozen=True)
class SGLang(Recorded):
    """See :class:`engdiff.engines.contract.Engine` for what each method promises."""

    name: str = "sglang"
    title: str = "SGLang"
    model_kind: Literal["gguf", "hf"] = "hf"
    knowledge: Knowledge = from_log.KNOWLEDGE
    native_root: str = "server_args."
    log: LogFormat = log.FORMAT
    exported_probe: ExportedProbe | None = None
    identify: tuple[str, ...] = http.IDENTIFY
    endpoints: Mapping[str, str] = field(default_factory=lambda: http.ENDPOINTS)
    draining: Mapping[str, str] = field(default_factory=lambda: http.DRAINING)

    def from_log(self, start: Start, base: Capture) -> Capture:
        """See :mod:`~engdiff.engines.sglang.from_log`."""
        return from_log.capture(start, base)

    def stage(self, start: Start) -> str:
        """See :mod:`~engdiff.engines.sglang.from_log`."""
        return from_log.stage(start)

    def served(
        self, image: str, words: Sequence[str], variables: Mapping[str, str], *, appended: bool
    ) -> Served | None:
        """See :mod:`~engdiff.engines.sglang.deployment`."""
        return deployment.recognise(image, words, variables, appended=appended)

    def recognises(self, answers: Mapping[str, str]) -> bool:
        """See :mod:`~engdiff.engines.sglang.http`."""
        return http.recognises(answers)

    def from_endpoints(self, answers: Mapping[str, str], base: Capture) -> Capture:
        """See :mod:`~engdiff.engines.sglang.http`."""
        return http.capture(answers, base)

    def cause(self, log: str, exit_status: str) -> Cause | None:
        """See ``knowledge/failures.toml``."""
        return explain(self.knowledge.failures, log, exit_status)


ENGINE = SGLang()
