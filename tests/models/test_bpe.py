"""Byte-pair encoding: what is learned, that nothing is lost, and the built-in vocabulary."""

from __future__ import annotations

import functools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engdiff.models import bpe
from engdiff.models.tiny import SHAPE
from engdiff.models.vocabulary import Vocabulary, learn_vocabulary


@functools.cache
def vocabulary() -> Vocabulary:
    return learn_vocabulary(SHAPE.vocabulary)


def test_the_alphabet_is_printable_and_reversible() -> None:
    alphabet = bpe.byte_alphabet()
    assert sorted(alphabet) == list(range(256))
    assert len(set(alphabet.values())) == 256
    assert all(character.isprintable() and not character.isspace() for character in alphabet.values())
    assert (alphabet[ord("a")], alphabet[ord(" ")], alphabet[ord("\n")]) == ("a", "Ġ", "Ċ"), "as GPT-2 has them"


def test_the_most_frequent_pair_comes_first() -> None:
    assert bpe.learn("aab aab ab", 2).merges == (("a", "b"), ("a", "ab"))
    assert bpe.learn("abab abab", 1).encode("abab") == [256, 256]


def test_equally_frequent_pairs_come_in_a_fixed_order() -> None:
    assert bpe.learn("ab\nyz", 1).merges == bpe.learn("yz\nab", 1).merges == (("y", "z"),)


def test_learning_stops_when_every_word_is_one_token() -> None:
    assert bpe.learn("abc", 99).tokens[256:] == ["bc", "abc"]
    assert bpe.learn("", 99).merges == ()


def test_merges_never_cross_words() -> None:
    assert all(" " not in bpe.token_bytes(token).decode()[1:] for token in vocabulary().bpe.tokens[256:])


def test_earlier_merges_go_first() -> None:
    learned = bpe.Bpe((("b", "c"), ("a", "b")))
    assert [learned.tokens[number] for number in learned.encode("abc")] == ["a", "bc"]


@settings(deadline=None)
@given(st.text())
def test_any_text_comes_back(text: str) -> None:
    learned = vocabulary().bpe
    assert learned.decode(learned.encode(text)) == text.encode()


@settings(deadline=None)
@given(st.binary())
def test_any_bytes_have_tokens(data: bytes) -> None:
    assert vocabulary().bpe.decode(data) == data


@settings(deadline=None)
@given(st.text(alphabet="abc '\n1", max_size=40), st.integers(0, 20))
def test_learned_merges_only_shorten(text: str, count: int) -> None:
    learned = bpe.learn(text, count)
    assert len(learned.merges) <= count
    assert learned.decode(learned.encode(text)) == text.encode()
    assert len(learned.encode(text)) <= len(text.encode())


def test_token_ids_that_llama_cpp_and_transformers_give() -> None:
    """Read off ``/tokenize`` of llama.cpp and transformers' tokenizer; all agree."""
    learned = vocabulary().bpe
    assert learned.encode("The capital of France is") == [
        84,
        258,
        601,
        112,
        284,
        97,
        108,
        302,
        32,
        70,
        114,
        97,
        110,
        413,
        288,
    ]
    assert learned.encode("Hello, world! 1234 naïve 東京 ½") == [
        72,
        101,
        108,
        274,
        44,
        340,
        410,
        33,
        32,
        49,
        50,
        51,
        52,
        303,
        97,
        195,
        175,
        403,
        32,
        230,
        157,
        177,
        228,
        186,
        172,
        32,
        194,
        189,
    ]


def test_every_speakable_token_is_readable() -> None:
    learned = vocabulary()
    said = [bpe.token_bytes(learned.tokens[number]).decode() for number in learned.speakable_ids()]
    assert len(said) > 100
    assert all(word in {",", "."} or (word[0] == " " and word[1:].isalpha()) for word in said)
    assert not set(learned.speakable_ids()) & set(learned.special_ids)


def test_a_vocabulary_has_the_size_asked_for() -> None:
    assert len(set(vocabulary().tokens)) == SHAPE.vocabulary
    with pytest.raises(ValueError, match="only gives"):
        learn_vocabulary(10_000)
