"""The YAML file of ``trtllm-serve --config`` (up to 1.1: ``--extra_llm_api_options``), and how it meets the words.

Up to some release of 1.3 the file overrides the words, and does so field by field of the first level only: a
``kv_cache_config:`` in it replaces the whole of what the words say of it (``llm_args | yaml``:
tensorrt_llm/llmapi/llm_utils.py 0.17 to 1.2). Later explicit words win (pull request 14812, merged in June 2026; no
source names the first release that has it). Which of them held is therefore read from what was resolved, never from
the version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from pydantic import JsonValue

from engdiff.engines.layers import MISSING, lookup, same
from engdiff.engines.trtllm.normalize import Source
from engdiff.engines.trtllm.words import Written, yaml_path
from engdiff.schema.values import Evidence, Known, Unknown

LARGEST_BYTES = 1_000_000
MOST_NODES = 20_000
"""With every alias written out. Published configurations have below a hundred."""

OVERRIDES = "the YAML of {flag} overrides the command line (commands/serve.py)"
DROPPED = (
    "the {parent} of the YAML replaces that of the command line as a whole (a shallow merge, commands/serve.py), so "
    "that {flag} is dropped"
)


@dataclass(frozen=True)
class YamlFile:
    """One file: ``tree`` is empty where it was not read, and ``unread`` says why."""

    path: str
    flag: str
    tree: dict[str, JsonValue] = field(default_factory=dict)
    unread: str | None = None

    @property
    def source(self) -> Source:
        """As a configuration that canonical settings are read from."""
        return Source(self.tree, self.cite)

    def cite(self, path: str) -> Evidence:
        """The file and the key in it."""
        return Evidence(source="command", where=f"{self.flag} {path}", file=self.path)


def used(words: Sequence[str], probed: object) -> YamlFile | None:
    """The file that the words name: as the probe read it, else as it is read now; ``None`` where none is named."""
    named = yaml_path(words)
    if named is None:
        return None
    flag, path = named
    answers = probed if isinstance(probed, list) else []
    seen = [one for one in answers if isinstance(one, dict) and one.get("path") == path]
    if seen and "tree" in seen[-1]:
        return _made(path, flag, seen[-1]["tree"])
    return read(path, flag)


def read(path: str, flag: str) -> YamlFile:
    """Read a file from disk. A fault is no error here: it is the engine's to tell."""
    try:
        with Path(path).open("rb") as stream:
            text = stream.read(LARGEST_BYTES + 1)
        if len(text) > LARGEST_BYTES:
            return YamlFile(path, flag, unread=f"it is larger than {LARGEST_BYTES:,} bytes")
        return _made(path, flag, yaml.safe_load(text))
    except OSError as error:
        return YamlFile(path, flag, unread=error.strerror or str(error))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        return YamlFile(path, flag, unread=" ".join(str(error).split()) or type(error).__name__)


def _made(path: str, flag: str, data: object) -> YamlFile:
    if not isinstance(data, dict):
        return YamlFile(path, flag, unread="it holds no fields")
    tree = _plain(data, _Budget(MOST_NODES))
    if not isinstance(tree, dict):
        return YamlFile(path, flag, unread=f"it holds more than {MOST_NODES:,} values")
    return YamlFile(path, flag, tree)


@dataclass
class _Budget:
    left: int


def _plain(value: Any, budget: _Budget) -> Any:
    """As JSON has it; ``None`` for the whole once the budget is used up."""
    budget.left -= 1
    if budget.left < 0:
        return None
    if isinstance(value, Mapping):
        made: Any = {str(name): _plain(one, budget) for name, one in value.items() if budget.left >= 0}
    elif isinstance(value, list):
        made = [_plain(one, budget) for one in value if budget.left >= 0]
    else:
        made = value if value is None or isinstance(value, bool | int | float | str) else str(value)
    return made if budget.left >= 0 else None


@dataclass(frozen=True)
class Meeting:
    """What the user wrote for one setting, on the command line and in the file, with the native path of each."""

    words: tuple[Known, str] | None
    file: tuple[Known, str] | None

    @property
    def configured(self) -> Known | None:
        """What counts as written: the word, which the user typed last."""
        chosen = self.words or self.file
        return chosen[0] if chosen else None


def because(meeting: Meeting, resolved: Known | Unknown, yaml_file: YamlFile | None, words: Written) -> str | None:
    """Why what was resolved is not what the words say; ``None`` when the file has no part in it."""
    if meeting.words is None or yaml_file is None or isinstance(resolved, Unknown):
        return None
    word, path = meeting.words
    if same(word.value, resolved.value):
        return None
    if meeting.file is not None:
        return OVERRIDES.format(flag=yaml_file.flag) if same(meeting.file[0].value, resolved.value) else None
    parent = path.rpartition(".")[0]
    if parent and lookup(yaml_file.tree, parent) is not MISSING:
        return DROPPED.format(parent=parent, flag=words.flags.get(path, path))
    return None


def note(key: str, meeting: Meeting, resolved: Known | Unknown, why: str | None, yaml_file: YamlFile) -> str | None:
    """What a reader must know where words and file meet in one setting."""
    if meeting.words is None:
        return None
    word = f"{_where(meeting.words[0])} {meeting.words[0].value}"
    if why is not None and isinstance(resolved, Known):
        return f"{key}: {word} does not hold, {resolved.value} does: {why}"
    if meeting.file is None or same(meeting.words[0].value, meeting.file[0].value):
        return None
    both = f"{key}: {word} on the command line, {meeting.file[0].value} in {yaml_file.path}"
    if isinstance(resolved, Unknown):
        return f"{both}; which of them holds is not known: {resolved.because}"
    if same(meeting.words[0].value, resolved.value):
        return f"{both}: the command line overrides the YAML"
    return None


def _where(value: Known) -> str:
    return value.evidence.where if value.evidence else "the command line"
