"""Byte-level byte-pair encoding (BPE), as GPT-2 introduced it: learned from a text, so that nothing is downloaded.

A token is written as a string with one printable character per byte (see ``byte_alphabet``), the form in which both
``tokenizer.json`` and GGUF keep it. Token ids 0 to 255 are the single bytes, so any text can be encoded.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

Pair = tuple[str, str]

# GPT-2's rule for cutting text into words, with \p{L} and \p{N} as near as the standard library's `re` gets: letters
# and decimal digits agree; a few rare numerals such as "²" count as letters here.
_WORD = re.compile(r"'(?:s|t|re|ve|m|ll|d)| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")


def byte_alphabet() -> dict[int, str]:
    """Map each byte to a printable character: itself where Latin-1 can print it, else the next from U+0100 on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) if byte in printable else chr(0x100 + others.index(byte)) for byte in range(256)}


_ALPHABET = byte_alphabet()
_BYTES = {character: byte for byte, character in _ALPHABET.items()}


@dataclass(frozen=True)
class Bpe:
    """A learned vocabulary: the 256 bytes, then one token per merge, in the order in which they were learned."""

    merges: tuple[Pair, ...]

    @property
    def tokens(self) -> list[str]:
        """Every token, by id."""
        return [*_ALPHABET.values(), *(left + right for left, right in self.merges)]

    def encode(self, text: str) -> list[int]:
        """Token ids of a text: in each word, the earliest learned merge is made first."""
        ids = {token: number for number, token in enumerate(self.tokens)}
        ranks = {pair: rank for rank, pair in enumerate(self.merges)}
        return [ids[token] for word in _words(text) for token in _merge_all(word, ranks)]

    def decode(self, ids: Iterable[int]) -> bytes:
        """Join the bytes that token ids stand for; a character may span tokens, so this need not be whole UTF-8."""
        tokens = self.tokens
        return b"".join(token_bytes(tokens[number]) for number in ids)


def token_bytes(token: str) -> bytes:
    """Turn a token back into the bytes that it stands for."""
    return bytes(_BYTES[character] for character in token)


def learn(text: str, count: int) -> Bpe:
    """Learn ``count`` merges: again and again the most frequent neighbours, the greater pair of equals.

    Fewer, if the text's words run out of neighbours first.
    """
    words = Counter(_words(text))
    merges: list[Pair] = []
    while len(merges) < count:
        pairs = _count_pairs(words)
        if not pairs:
            break
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        merges.append(best)
        words = Counter({_merge(word, best): times for word, times in words.items()})
    return Bpe(tuple(merges))


def _words(text: str) -> list[tuple[str, ...]]:
    """Cut a text into words, each as its bytes' characters."""
    return [tuple(_ALPHABET[byte] for byte in word.encode()) for word in _WORD.findall(text)]


def _count_pairs(words: Counter[tuple[str, ...]]) -> Counter[Pair]:
    pairs: Counter[Pair] = Counter()
    for word, times in words.items():
        for pair in pairwise(word):
            pairs[pair] += times
    return pairs


def _merge_all(word: tuple[str, ...], ranks: dict[Pair, int]) -> tuple[str, ...]:
    while known := [pair for pair in pairwise(word) if pair in ranks]:
        word = _merge(word, min(known, key=ranks.__getitem__))
    return word


def _merge(word: tuple[str, ...], pair: Pair) -> tuple[str, ...]:
    """Make each occurrence of the pair, from the left, one token."""
    merged: list[str] = []
    index = 0
    while index < len(word):
        step = 2 if word[index : index + 2] == pair else 1
        merged.append("".join(word[index : index + step]))
        index += step
    return tuple(merged)
