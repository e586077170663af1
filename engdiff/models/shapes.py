"""The model shapes that engdiff ships: the architecture of well-known models, without their weights.

A shape is one file of ``profiles/models/``: facts written down from public model cards. An engine's own configuration
code reads a folder made of it as it reads a downloaded model, because that code looks at no weights.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from engdiff.errors import UsageError
from engdiff.models.folders import holds, write_files
from engdiff.models.tiny import tokenizer_files
from engdiff.shipped import folder as shipped_folder

_CONFIG = "config.json"

_TOKENIZERS = (
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "tekken.json",
    "tiktoken.model",
    "vocab.json",
)
"""Files of which a model folder with a tokenizer has at least one (the names that public model repositories use)."""


@dataclass(frozen=True)
class Shape:
    """One model, as its card describes it."""

    key: str
    title: str
    hub_id: str
    aliases: tuple[str, ...]
    kind: str
    """``dense``, ``moe``, ``mla-moe``, ``hybrid`` or ``hybrid-moe``."""

    parameters: int
    """Of the published checkpoint; ``notes`` says what beside the language model is among them."""

    config: Mapping[str, Any]
    """The content of the model's ``config.json``, as far as it describes the architecture."""

    sources: Mapping[str, str]
    """A public URL by what was read there."""

    notes: str
    """What a reader of the figures should know; empty where there is nothing."""

    licence: str
    """Of the published weights, as the card names it."""

    @property
    def context(self) -> int | None:
        """The longest text in tokens."""
        return _context(self.config)


@cache
def shapes() -> Mapping[str, Shape]:
    """Every shape by its key, in alphabetical order."""
    files = (shipped_folder("profiles") / "models").glob("*.json")
    return MappingProxyType({file.stem: _read(file) for file in sorted(files, key=lambda file: file.stem)})


def shape(text: str) -> Shape | None:
    """The shape of this key, alias or hub id, in any case; ``None`` where none has this name."""
    return _names().get(text.lower())


def make_shape(shape: Shape, folder: Path) -> Path:
    """Give the model folder ``folder``/KEY: the shape's configuration with the bundled tiny model's tokenizer.

    Safe to call from several processes at once. A folder that is there already is left alone.
    """
    config = f"{json.dumps(shape.config, indent=1)}\n".encode()
    return _make(folder / shape.key, config, shape.context)


def local_config(path: Path, folder: Path) -> Path:
    """Give a model folder for what the user has: a model folder, or a ``config.json`` by itself.

    A folder with a tokenizer is given back as it is. Else the configuration is copied to a folder in ``folder``, named
    after its content, and gets the bundled tiny model's tokenizer; nothing is written beside the user's file.
    Raises UsageError where there is no configuration or it cannot be read.
    """
    file = path / _CONFIG if path.is_dir() else path
    content, config = _read_config(file)
    if file.name == _CONFIG and any((file.parent / name).is_file() for name in _TOKENIZERS):
        return file.parent
    name = f"{file.resolve().parent.name or 'config'}-{hashlib.sha256(content).hexdigest()[:12]}"
    return _make(folder / name, content, _context(config))


def configuration(path: Path) -> Mapping[str, Any]:
    """The content of a model folder's configuration, or of a ``config.json`` by itself. Raises UsageError."""
    return _read_config(path / _CONFIG if path.is_dir() else path)[1]


def _make(home: Path, config: bytes, context: int | None) -> Path:
    contents = {**tokenizer_files(context), _CONFIG: config}  # the configuration last: with it, the folder is complete
    if not holds(home, contents):
        write_files(home, contents)
    return home


def _read_config(file: Path) -> tuple[bytes, dict[str, Any]]:
    """The file's bytes and what they say. Published files may hold ``Infinity``, which strict JSON does not know."""
    try:
        content = file.read_bytes()
        config = json.loads(content)
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}", "give a model folder or a config.json") from None
    except (ValueError, RecursionError):
        raise UsageError(f"{file}: not JSON", "give a model folder or a config.json") from None
    if not isinstance(config, dict) or not {"architectures", "model_type"} & config.keys():
        raise UsageError(f"{file}: not a model's configuration", "it should name `architectures` or `model_type`")
    return content, config


def _context(config: Mapping[str, Any]) -> int | None:
    """The context of a configuration, or of its language model where it is one of several."""
    found = config.get("max_position_embeddings")
    nested = config.get("text_config")
    if found is None and isinstance(nested, Mapping):
        found = nested.get("max_position_embeddings")
    return found if isinstance(found, int) else None


@cache
def _names() -> Mapping[str, Shape]:
    return {name.lower(): each for each in shapes().values() for name in (each.key, each.hub_id, *each.aliases)}


def _read(file: Path) -> Shape:
    data = json.loads(file.read_text(encoding="utf-8"))
    return Shape(
        key=file.stem,
        title=data["title"],
        hub_id=data["hub_id"],
        aliases=tuple(data["aliases"]),
        kind=data["kind"],
        parameters=data["parameters"],
        config=data["config"],
        sources=data["sources"],
        notes=data.get("notes", ""),
        licence=data["license"],
    )
