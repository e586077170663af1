"""Reading a model's ``config.json``: fields under the names that model families use, and which of them is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engdiff.errors import UsageError


@dataclass(frozen=True)
class Config:
    """The configuration of a language model; of a multimodal one, its text part with the outer part behind it."""

    fields: Mapping[str, Any]
    architecture: str
    """The first of ``architectures``: the name by which an engine finds its class."""

    whole: Mapping[str, Any]
    """As the file has it."""

    def integer(self, *names: str) -> int:
        """The first of ``names`` that is there, as a whole number.

        Raises :class:`~engdiff.errors.UsageError` naming the field when none is.
        """
        found = self.optional(*names)
        if found is None:
            raise UsageError(
                f"the model's config.json ({self.architecture}) has no `{names[0]}`",
                "its size cannot be computed without it: take the complete config.json of the model",
            )
        return found

    def optional(self, *names: str) -> int | None:
        """The first of ``names`` that holds a whole number; ``None`` when none does."""
        for name in names:
            value = self.fields.get(name)
            if isinstance(value, int) and not isinstance(value, bool):
                return value
        return None

    def flag(self, name: str, *, default: bool) -> bool:
        """A switch; ``default`` is what the family's own configuration class says where the file is silent."""
        value = self.fields.get(name)
        return default if value is None else bool(value)

    def number(self, name: str, default: float) -> float:
        """A number; ``default`` is what the family's own configuration class says where the file is silent."""
        value = self.fields.get(name)
        return default if not isinstance(value, int | float) or isinstance(value, bool) else float(value)

    def texts(self, name: str) -> Sequence[str]:
        """A list of words, empty where there is none."""
        value = self.fields.get(name)
        return [str(one) for one in value] if isinstance(value, Sequence) and not isinstance(value, str) else ()

    def with_defaults(self, **fields: object) -> Config:
        """With what the family's own configuration class says where the file is silent."""
        return Config({**fields, **self.fields}, self.architecture, self.whole)

    @property
    def head_dim(self) -> int:
        """Elements of one head; where the file is silent, the hidden size over the heads."""
        return self.optional("head_dim") or self.integer("hidden_size") // self.integer("num_attention_heads")

    @property
    def kv_heads(self) -> int:
        """Heads of keys and values; where the file is silent, as many as query heads."""
        return self.optional("num_key_value_heads") or self.integer("num_attention_heads")

    @property
    def element(self) -> str | None:
        """Element type of the checkpoint; ``None`` where the file is silent and an engine decides."""
        value = self.fields.get("torch_dtype") or self.fields.get("dtype")
        return value.removeprefix("torch.") if isinstance(value, str) else None


def read(content: Mapping[str, Any]) -> Config:
    """A configuration from the content of a ``config.json``.

    Raises :class:`~engdiff.errors.UsageError` when it names no architecture.
    """
    names = content.get("architectures")
    if not isinstance(names, Sequence) or isinstance(names, str) or not names:
        raise UsageError("the model's config.json has no `architectures`", "take the complete config.json of the model")
    text = content.get("text_config") or content.get("llm_config") or {}
    outer = {name: value for name, value in content.items() if not isinstance(value, Mapping) or name not in PARTS}
    return Config(fields={**outer, **dict(text)}, architecture=str(names[0]), whole=content)


PARTS = frozenset({"text_config", "llm_config", "vision_config", "audio_config"})
"""Nested configurations of a multimodal model."""
