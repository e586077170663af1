"""What the tiny model reads and says: a vocabulary learned from a text about serving, and a ChatML template."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from engdiff.models import bpe

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)

_SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_PUNCTUATION = (".", ",")

_TEXT = """\
an engine reads a prompt and writes its answer one token at a time. each request gets a slot, and each slot keeps
its own context: the cache holds the keys and the values of every token that came before, in blocks of memory. when
a batch is full, the scheduler lets the next request wait in a queue; when a stream ends, its blocks are free again.
a longer prompt takes more memory, and more memory for one request leaves less room for the others. the first token
is slow and the rest are quick, until the pool runs dry and some work has to be done twice. a new version may change
a default, and the same command line then gives another number. so we measure both, on the same machine, with the
same words, and write down what we saw: which flag moved, how much it cost, and what would bring the old way back. a
small model on a small computer still shows how space is shared and where time goes. what is the name of the river
that flows through the city? the answer is short. tell me a story about a robot who lived in the far north and liked
to count stars. good tools are plain, true and easy to check. if two runs do not agree, look again before you trust
either of them. hello, please help: thank you! anyone may read, change and share this model.
"""


@dataclass(frozen=True)
class Vocabulary:
    """A byte-level BPE vocabulary with special tokens after it."""

    bpe: bpe.Bpe

    @cached_property
    def tokens(self) -> list[str]:
        """Every token by id, the special ones last; ordinary ones in the characters of ``bpe.byte_alphabet``."""
        return [*self.bpe.tokens, *_SPECIAL]

    @property
    def special_ids(self) -> range:
        """Ids of the tokens that no text can produce by accident."""
        return range(len(self.tokens) - len(_SPECIAL), len(self.tokens))

    @property
    def pad_id(self) -> int:
        """``<|endoftext|>``: begins a text, where something must, and fills a batch."""
        return self.tokens.index("<|endoftext|>")

    @property
    def end_id(self) -> int:
        """``<|im_end|>``: ends a turn of a chat, and so an answer."""
        return self.tokens.index("<|im_end|>")

    @property
    def merges(self) -> list[str]:
        """The merges as ``tokenizer.json`` and GGUF write them: two tokens with a space between."""
        return [" ".join(pair) for pair in self.bpe.merges]

    def speakable_ids(self) -> list[int]:
        """Ids of the whole words of the text, each with a space before it, and of its stops: any order is readable."""
        readable = {f" {word}".encode() for word in re.findall(r"[a-z]+", _TEXT)}
        readable |= {stop.encode() for stop in _PUNCTUATION}
        return [number for number, token in enumerate(self.bpe.tokens) if bpe.token_bytes(token) in readable]


def learn_vocabulary(size: int) -> Vocabulary:
    """Learn a vocabulary of exactly ``size`` tokens."""
    vocabulary = Vocabulary(bpe.learn(" ".join(_TEXT.split()), size - 256 - len(_SPECIAL)))
    if len(vocabulary.tokens) != size:
        raise ValueError(f"the built-in text only gives {len(vocabulary.tokens)} tokens, not {size}")
    return vocabulary
