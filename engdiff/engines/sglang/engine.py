"""SGLang behind the contract: read from logs and running servers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from engdiff.deployments.served import Recognise
from engdiff.engines.contract import Cause, ExportedProbe, HttpReading, LogReading
from engdiff.engines.last_words import explain
from engdiff.engines.recorded import Recorded
from engdiff.engines.sglang import deployment, from_log, http, log
from engdiff.knowledge.tables import Knowledge

LOG = LogReading(log.FORMAT, from_log.capture, from_log.stage)
HTTP = HttpReading(http.IDENTIFY, http.ENDPOINTS, http.DRAINING, http.recognises, http.capture)


@dataclass(frozen=True)
class SGLang(Recorded):
    """See :class:`engdiff.engines.contract.Engine` for what each method promises."""

    name: str = "sglang"
    title: str = "SGLang"
    model_kind: Literal["gguf", "hf"] = "hf"
    knowledge: Knowledge = from_log.KNOWLEDGE
    native_root: str = "server_args."
    log: LogReading = LOG
    http: HttpReading = HTTP
    served: Recognise = deployment.recognise
    exported_probe: ExportedProbe | None = None

    def cause(self, log: str, exit_status: str) -> Cause | None:
        """See ``knowledge/failures.toml``."""
        return explain(self.knowledge.failures, log, exit_status)


ENGINE = SGLang()
