"""What one launch of TensorRT-LLM showed of what was asked for: the probe's answers, the words, the YAML file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from engdiff.engines.contract import Observed
from engdiff.engines.probed import Tree, tree
from engdiff.engines.trtllm import plugin, words, yaml_config
from engdiff.engines.trtllm.words import Written
from engdiff.engines.trtllm.yaml_config import YamlFile

SERVE = "trtllm-serve"
"""The front end that takes words; every other one is a script of the user's own."""


def engine_version(files: Mapping[str, JsonValue]) -> str | None:
    """The version that any of the probe's files states."""
    for value in files.values():
        version = tree(tree(value).get("versions")).get("tensorrt_llm")
        if isinstance(version, str):
            return version
    return None


@dataclass(frozen=True)
class Seen:
    """The probe's answers, and what the user wrote."""

    version: str
    asked: Tree
    made: Tree
    workers: tuple[Tree, ...]
    words: Written
    yaml: YamlFile | None

    @property
    def own_script(self) -> bool:
        """Whether a script of the user's own made the ``LLM``: its keywords are what was written."""
        return bool(self.asked) and self.asked.get("front") != SERVE


def look(observed: Observed) -> Seen:
    """Put together what belongs to one launch."""
    asked = tree(observed.probe.get(plugin.ARGUMENTS))
    version = observed.request.version
    ranks = sorted(
        (int(name.removeprefix(plugin.WORKER)), tree(value))
        for name, value in observed.probe.items()
        if name.startswith(plugin.WORKER) and name.removeprefix(plugin.WORKER).isdigit()
    )
    return Seen(
        version=version,
        asked=asked,
        made=tree(observed.probe.get(plugin.LLM)),
        workers=tuple(answer for _, answer in ranks if answer),
        words=words.written(observed.request.arguments, version, observed.request.model),
        yaml=yaml_config.used(observed.request.arguments, asked.get("yaml")),
    )
