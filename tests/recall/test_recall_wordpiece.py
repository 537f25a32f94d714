import unicodedata
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kite_memory.recall import local_embedder
from kite_memory.recall.local_embedder import WEIGHTS
from tests.counts import examples

VOCABULARY = local_embedder.read_vocabulary(WEIGHTS / "vocab.txt")

OLD_CHARACTERS = st.characters(exclude_categories=["Cs"]).filter(
    lambda char: unicodedata.ucd_3_2_0.category(char) == unicodedata.category(char)
)
"""Of these every library's tables say the same; newer ones are unknown to the vocabulary anyway."""


def ids(text: str, limit: int = 10_000) -> list[int]:
    return local_embedder.tokens(text, VOCABULARY, limit)


def pieces(text: str) -> list[str]:
    spelling = {number: piece for piece, number in VOCABULARY.items()}
    return [spelling[number] for number in ids(text)][1:-1]


@cache
def reference() -> Any:
    """The library the model was trained with, where it happens to be installed."""
    implementations = pytest.importorskip("tokenizers.implementations")
    tokenizer = implementations.BertWordPieceTokenizer(str(WEIGHTS / "vocab.txt"), lowercase=True)
    tokenizer.encode_special_tokens = True
    return tokenizer


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("Hello, World!", ["hello", ",", "world", "!"]),
        ("PostgreSQL", ["post", "##gre", "##s", "##q", "##l"]),
        ("naïve Café", ["naive", "cafe"]),
        ("日本語", ["日", "本", "語"]),
        ("a\u200bb\x00c", ["abc"]),
        ("x" * 101, ["[UNK]"]),
        ("snake_case.py", ["snake", "_", "case", ".", "p", "##y"]),
        ("[SEP] [MASK]", ["[", "sep", "]", "[", "mask", "]"]),
        ("ΟΔΟΣ", ["ο", "##δ", "##ο", "##σ"]),
    ],
)
def test_words_are_cut_as_the_model_learnt_them(text: str, expected: list[str]) -> None:
    assert pieces(text) == expected


@given(st.text(OLD_CHARACTERS, max_size=60) | st.text(max_size=60, alphabet="aAbzé ßΣσİ.,_-'#[]0129\t\n\u3000日語가ไ"))
@settings(max_examples=examples(400), deadline=None)
def test_every_text_is_cut_as_the_library_cuts_it(text: str) -> None:
    assert ids(text) == reference().encode(text).ids


@given(st.text(max_size=400), st.integers(2, 64))
@settings(deadline=None)
def test_no_text_yields_more_tokens_than_asked_for(text: str, limit: int) -> None:
    found = ids(text, limit)

    assert found == [*ids(text)[:-1][: limit - 1], local_embedder.END]


def test_a_megabyte_is_not_read_to_its_end() -> None:
    assert ids("tea " * 250_000, 256) == ids("tea " * 300, 256)
