"""Regular expressions that are compiled when they are first used."""

import re

import pytest

from kite_memory.text import lazy_regex


def test_it_finds_what_a_compiled_one_finds() -> None:
    lazy, compiled = lazy_regex(r"(?P<tree>plum|pear)s?\b", re.IGNORECASE), re.compile(r"(?P<tree>plum|pear)s?\b", re.IGNORECASE)
    text = "Plums, a pear and pearls"

    assert [found.span() for found in lazy.finditer(text)] == [found.span() for found in compiled.finditer(text)]
    assert lazy.sub("tree", text) == compiled.sub("tree", text)
    assert (lazy.pattern, lazy.flags, lazy.groupindex) == (compiled.pattern, compiled.flags, compiled.groupindex)


def test_bytes_are_searched_too() -> None:
    assert lazy_regex(rb"pl(u)m").findall(b"a plum") == [b"u"]


def test_nothing_is_compiled_before_it_is_used() -> None:
    wrong = lazy_regex("(")

    with pytest.raises(re.error):
        wrong.search("a plum")
