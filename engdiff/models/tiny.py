"""The bundled tiny model: made on the spot in both forms that engines load, always with the same bytes.

It is a real Llama in every respect that a serving engine cares about (grouped-query attention, rotary embeddings, a
byte-level tokenizer, a chat template), but its weights are random: its answers are readable words without meaning, and
never end before the length that was asked for.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from engdiff.models import llama_gguf, llama_hf
from engdiff.models.folders import write_files
from engdiff.models.llama import LlamaShape, random_weights
from engdiff.models.vocabulary import learn_vocabulary

TINY = "tiny"
"""What a user calls it."""

RECIPE = 1  # raise it whenever the bytes change, so that nobody takes an old model for the new one

SHAPE = LlamaShape(
    vocabulary=640,
    layers=4,
    hidden=256,
    heads=8,
    kv_heads=2,
    feed_forward=512,
    context=4096,
    norm_epsilon=1e-5,
    rope_base=10000.0,
)

_NAME = f"tiny-llama-{RECIPE}"
_SEED = 7
_GGUF = f"{_NAME}.gguf"
_HF = "hf"
_SIZES = "sizes.json"  # written last: name and bytes of every file, so it is there only when they are


@dataclass(frozen=True)
class TinyModel:
    """Where the two forms of the model are; both hold the same weights and vocabulary."""

    gguf: Path
    """A file, for llama.cpp."""

    hf: Path
    """A Hugging Face folder, for the other engines."""


def make_tiny(folder: Path) -> TinyModel:
    """Give the tiny model in ``folder``; make it (in 0.1 s, about 10 MB) unless it is there already.

    Safe to call from several processes at once: they write the same bytes, and each file appears whole.
    """
    home = folder / _NAME
    if not _is_complete(home):
        contents = _contents()
        sizes = json.dumps({name: len(data) for name, data in contents.items()}, indent=1) + "\n"
        write_files(home, {**contents, _SIZES: sizes.encode()})
    return TinyModel(gguf=home / _GGUF, hf=home / _HF)


def tokenizer_files(context: int | None) -> dict[str, bytes]:
    """Give the files of the tokenizer and the generation settings, bytes by name, for a context of so many tokens."""
    return llama_hf.dump_tokenizer(context, learn_vocabulary(SHAPE.vocabulary))


def _contents() -> dict[str, bytes]:
    """Make every file, as bytes by its path in the model's folder."""
    vocabulary = learn_vocabulary(SHAPE.vocabulary)
    weights = random_weights(SHAPE, vocabulary.speakable_ids(), _SEED)
    folder = llama_hf.dump(SHAPE, vocabulary, weights)
    return {
        _GGUF: llama_gguf.dump(_NAME, SHAPE, vocabulary, weights),
        **{f"{_HF}/{name}": data for name, data in folder.items()},
    }


def _is_complete(home: Path) -> bool:
    """Say whether every file is there in its full size."""
    try:
        sizes: dict[str, int] = json.loads((home / _SIZES).read_text(encoding="utf-8"))
        return all((home / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError):
        return False
