"""Words and forms in which people write down a password: labels in many languages, sentences, commands."""

import re
import tomllib
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from kite_memory.redaction.cleaning import bare
from kite_memory.redaction.vendors import any_of


class PasswordLikeness(StrEnum):
    """How much a value must look like a password."""

    ANY = "any"
    """No placeholder."""
    CODE = "code"
    """Digits, or groups of letters and digits."""
    CHOSEN = "chosen"
    """Letters with a digit or a sign among them."""
    WORDS = "words"
    """TextWords that do not form a sentence."""
    CLEAR = "clear"
    """Letters, a digit and a sign, in no form that an identifier has."""
    SIGNED = "signed"
    """Clear, with a sign."""
    DRAWN = "drawn"
    """Random."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """A word for "password". ``stem`` is folded as by `bare` and in lower case.

    ``word``: only at the start of a word. ``whole``: only as a whole word. ``weak``: ambiguous, so only values that clearly look
    like a password count.
    """

    stem: bytes
    word: bool
    weak: bool
    whole: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Form:
    """A sentence or command with a password. ``pattern`` is for text in lower case.

    A text matches only if it has a word of each set of ``words``, and a line only if it has one of ``near``, which is empty for a
    pattern that begins with a literal.
    """

    words: tuple[frozenset[bytes], ...]
    near: tuple[re.Pattern[bytes], ...]
    pattern: re.Pattern[bytes]
    likeness: PasswordLikeness


_LETTERS = bytes(code if 97 <= code <= 122 else 32 for code in range(256))


class Words(NamedTuple):
    """The different words of a text that any search asks for: runs of letters, each once, in lower case.

    They are a small part of the text, so it is faster to check here first what need not be searched in the text.
    """

    each: frozenset[bytes]
    joined: bytes
    """With a blank before each."""


_MOST_KNOWN = 1 << 16
_asked_for: set[bytes] = set()
_unasked: set[bytes] = set()
"""Words met so far, by whether a search asks for them. Most texts consist of words that were met before."""


def words_of(small: bytes) -> Words:
    """Return those words of a text in lower case that a search asks for."""
    each = set(small.translate(_LETTERS).split()).difference(_unasked)
    if new := each.difference(_asked_for):
        if len(_unasked) > _MOST_KNOWN or len(_asked_for) > _MOST_KNOWN:
            _unasked.clear()
            _asked_for.clear()
        asked_for = set(filter(is_asked_for, new))
        _asked_for.update(asked_for)
        _unasked.update(new.difference(asked_for))
        each.difference_update(new.difference(asked_for))
    return Words(frozenset(each), b" ".join((b"", *each))) if each else _NO_WORDS


def first_word(stem: bytes) -> bytes:
    return stem.translate(_LETTERS).split()[0]


_PIECES = {
    "{user}": r"[^\s,;|<>(){}]{1,64}",
    "{gap}": r"(?:[ \t]{1,3}+[^\s:=(){}<>]{1,20}+){0,6}",
    "{phrase}": r"(?P<phrase>[^\r\n\"'<>{}]{4,60}+)",
    "{quoted}": r"\\?(?:\"(?P<double>[^\"\\\r\n]{3,128}+)\\?\"|'(?P<single>[^'\\\r\n]{3,128}+)\\?')",
    "{secret}@": r"(?P<bare>[^\s\"'`<>|;,()\\@]{3,128}+)[\"']?@",
    "{secret2}": r"(?P<bare2>[^\s\"'`<>|;,()\\]{3,128}+)",
    "{secret}": r"(?:[\"`](?P<double>[^\"`\\\r\n]{3,128}+)[\"`]|'(?P<single>[^'\\\r\n]{3,128}+)'"
    r"|(?P<bare>[^\s\"'`<>|;,()\\]{3,128}+))",
}
_BLANKS = re.compile(r"\[[^\]]{0,400}\]| \?| ")


def _compiled(text: str) -> re.Pattern[bytes]:
    def blank(found: re.Match[str]) -> str:
        return {" ": r"[ \t]{1,3}", " ?": r"[ \t]{0,3}"}.get(found[0], found[0])

    text = _BLANKS.sub(blank, text)
    for piece, expression in _PIECES.items():
        text = text.replace(piece, expression)
    return re.compile(text.encode(), re.MULTILINE)


def _literals(literals: list[str]) -> tuple[re.Pattern[bytes], ...]:
    """Return patterns that group literals by their beginning, since a pattern that begins with a literal is found quickly."""
    heads = dict.fromkeys(each[:3] for each in literals)
    return tuple(re.compile(any_of(each for each in literals if each.startswith(head)).encode()) for head in heads)


def _labels(table: dict[str, list[str]]) -> tuple[Label, ...]:
    """Return the labels in Latin letters; those of other scripts are `OTHER_LABELS`."""
    found: dict[bytes, Label] = {}
    for label in dict.fromkeys(label for labels in table.values() for label in labels):
        stem = bare(label.strip("*~?")).lower()
        if stem.isascii():
            weak, whole = label.startswith("?"), not label.endswith("*")
            found[stem] = Label(stem=stem, word=not label.startswith("~"), weak=weak, whole=whole)
    return tuple(found.values())


_DATA = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
LABELS = _labels(_DATA["labels"])
FORMS = tuple(
    Form(
        words=tuple(frozenset(words.encode().split()) for words in form["words"].split("|")),
        near=_literals(form["near"].split("|")) if "near" in form else (),
        pattern=_compiled(form["text"]),
        likeness=PasswordLikeness(form["value"]),
    )
    for form in (*_DATA["sentence"], *_DATA["command"])
)
PATTERNS = tuple(form.pattern for form in FORMS)
LEADING = frozenset(bare(word).lower() for word in _DATA["words"]["is"].split())
"""TextWords after which a value follows."""
JOINING = frozenset(bare(word).lower() for word in _DATA["words"]["and"].split())

_SEVERAL_WORDS = (first_word(label.stem) for label in LABELS if not label.stem.isalpha())
_ASKED_FOR = frozenset((*(word for form in FORMS for words in form.words for word in words), *_SEVERAL_WORDS))
_ASKED_FOR_PARTS = re.compile(
    rb"p(?:ass|wd|w\Z|sk|at\Z|hrase)|key|token|cookie|secret|cred|auth|jwt|mnemonic|sig|curl|bearer|basic"
    rb"|securestring|parameter|alter|create|grant|user|role|login|identified|echo|printf|private|static|kty|"
    + any_of(label.stem.decode() for label in LABELS if label.stem.isalpha()).encode()
)
_NO_WORDS = Words(frozenset(), b"")


def is_asked_for(word: bytes) -> bool:
    """Return whether any search of this room asks if a text has the word, or a word with such a part."""
    return word in _ASKED_FOR or _ASKED_FOR_PARTS.search(word) is not None
