"""The configurations that a log prints: LlmArgs, what Dynamo gives to it, PyTorchConfig, the features of attention.

LlmArgs (tensorrt_llm/llmapi/llm_args.py, newest) is printed by rank 0 after the KV cache is sized, on the line after
its title; PyTorchConfig (0.17 to 1.1) and AttentionRuntimeFeatures are printed before the weights are loaded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pydantic import JsonValue

from engdiff.logs.reprs import parse
from engdiff.logs.starts import Start
from engdiff.logs.statements import Statement
from engdiff.logs.values import evidence
from engdiff.schema.values import Evidence

LONGEST_EXCERPT = 400


@dataclass(frozen=True)
class Printed:
    """One printed configuration: its fields under their own names, and in words what is missing."""

    tree: dict[str, JsonValue]
    missing: tuple[str, ...]
    statement: Statement

    def cite(self, path: str) -> Evidence:
        """The piece of the line that states a dotted field."""
        text = self.statement["args"]
        start = at = 0
        for name in path.split("."):
            found = re.compile(rf"(?<![\w'\"])['\"]?{re.escape(name)}['\"]?(?:=|: )").search(text, at)
            if found is None:
                break
            start, at = found.start(), found.end()
        end = _NEXT.search(text, at)
        stop = end.start() if end else len(text)
        _, line = self.statement.cited("args")
        return evidence(text[start : min(stop, start + LONGEST_EXCERPT)], line)


_NEXT = re.compile(r"[)}]*,? ['\"]?[A-Za-z_]\w*['\"]?(?:=|: )|[)}]+\s*$")
"""Where the next field begins, or the whole ends."""


@dataclass(frozen=True)
class Configurations:
    """What a start printed of each; of repetitions the last."""

    args: Printed | None
    pytorch: Printed | None
    features: Printed | None

    def missing(self) -> tuple[str, ...]:
        """In words, what could not be read."""
        named = (("the arguments", self.args), ("PyTorchConfig", self.pytorch), ("the features", self.features))
        return tuple(f"{name}: {words}" for name, printed in named if printed for words in printed.missing)


def read(start: Start) -> Configurations:
    """What the start printed."""
    return Configurations(
        args=_printed(start, "llm_args") or _printed(start, "dynamo_args"),
        pytorch=_printed(start, "pytorch_config"),
        features=_printed(start, "attention_features"),
    )


def _printed(start: Start, name: str) -> Printed | None:
    statement = start.last_of(name)
    if statement is None:
        return None
    parsed = parse(statement["args"])
    return Printed(parsed.tree, parsed.missing, statement) if parsed.tree else None
