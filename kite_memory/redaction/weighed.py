"""Secrets in sentences of any wording: each word near a word about access is weighed by its form and its place.

Patterns foresee a wording. Here every word that may be a password has some properties: its form, what introduces it, what follows
it, what the line is about. ``weights.txt`` has the weight of each of them; `bench.reading.fit_weights` fits them.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from kite_memory.redaction.chance import (
    CUES,
    DATA,
    JOINING,
    LEADING,
    Span,
    TextWords,
    capitals,
    digits,
    ordinary,
    signs,
    smalls,
)
from kite_memory.redaction.cleaning import LABEL, listed, tables
from kite_memory.redaction.tokens import COMMON, find_seed_phrases, form_of
from kite_memory.text import lazy_regex

_FITTED = dict(tables("weights.txt"))
WEIGHTS = {name: float(weight) for name, weight in _FITTED["weights"].items()}
THRESHOLD = float(_FITTED["fit"]["threshold"])
_LINKS: dict[bytes, str] = {word: kind for kind, words in DATA["links"].items() for word in listed(words)}
_INTRODUCING = {**dict.fromkeys(LEADING, "is"), **dict.fromkeys(JOINING, "and"), **_LINKS}
_SKIPPED = frozenset(word for word, kind in _LINKS.items() if kind == "skipped")
"""Words between what introduces a value and the value: "is still X"."""

_NAMED_BY = frozenset(listed(DATA["words"]["named"]))
"""What has a name rather than a password: "user X", "the login is X"."""
_AFTER: dict[bytes, str] = {word: kind for kind, words in DATA["after"].items() for word in listed(words)}
_SPEECH = frozenset(listed(DATA["words"]["speech"]))
"""Words of a person who speaks to somebody, which documents and code lack."""
_REACH = 240
_MOST_CODE = 6
_NOT_CODE = bytes(code for code in range(256) if code not in b"{}();<>=\\$[]|")
_WORD = lazy_regex(rb"(?<!\S)\S{2,80}+(?!\S)")
_OPENING = b"(\"'`*?[,<"
_CLOSING = b"\"'`,;:.)]}?*>"
_QUOTES = b"\"'`?*"
_ARTICLES = tuple(b" a ,an ,the ,das ,der ,die ,le ,la ,el ,il ".split(b","))
_QUOTE_SIGNS = (b'"', b"'", b"`", b"*", b"?")
_SPELLED_WORD = (
    rb"(?i:zero|one|two|three|four|five|six|seven|eight|niner?|oh|alfa|alpha|bravo|charlie|delta|echo|foxtrot|golf|hotel|india|juliett?"
    rb"|kilo|lima|mike|november|oscar|papa|quebec|romeo|sierra|tango|uniform|victor|whiskey|x-?ray|yankee|zulu|dash|underscore)"
)
"""A digit, or a letter as it is spelled on the telephone."""
_SPELLED = lazy_regex(
    rb"(?<![A-Za-z\-])(?:"
    + _SPELLED_WORD
    + rb"(?:[ ,\-]{1,2}"
    + _SPELLED_WORD
    + rb"(?![A-Za-z])){3,40}+|[A-Za-z](?:-[A-Za-z0-9]){5,30}+(?![\w\-])|[A-Za-z](?: [A-Za-z0-9]){6,30}+(?![\w\-]))"
)
_PHRASES = (
    lazy_regex(rb"[\"'?] ?(?P<quoted>[A-Za-z]{2,16}(?: [a-z0-9]{1,16}| [A-Z][a-z]{1,15}){1,11}+) ?[\"'?]"),
    lazy_regex(
        rb"(?:[:=]|\b(?:is|are|was|with|e|est|es|ist|lautet|type|typed|enter|give(?: it)?|reads|says|remains|be|answer|escribir"
        rb"|bitte|(?:pass)?phrase[?,]?))[ ]"
        rb"(?P<plain>[A-Za-z][a-z]{1,13}(?:(?: [A-Z]?[a-z]{1,14}){1,11}+ [0-9]{1,4}(?=[ .,;]|$)"
        rb"|(?: [A-Z]?[a-z]{1,14}){2,11}+(?=[ ]{0,2}(?:$|[.,;(?\-])| until )))"
    ),
    lazy_regex(rb"(?<![a-z] )(?<![A-Za-z])(?P<groups>[a-z]{4}(?: [a-z]{4}){3})(?![a-z ])"),
    lazy_regex(rb"(?<![0-9A-Za-z.,:\-])(?P<digits>[0-9]{3} [0-9]{3}|[0-9]{2}(?: [0-9]{2}){2,3}+)(?![0-9A-Za-z.:\-]| [0-9])"),
)
"""Passwords of several words or numbers."""
_BEFORE_PLAIN = frozenset(
    b"is are was with e est es ist lautet type typed enter give it reads says remains be answer escribir bitte".split()
)
_TWO_FOURS = lazy_regex(rb" [a-z]{4} [a-z]{4} ")
_TWO_NUMBERS = lazy_regex(rb" (?<=[0-9] )[0-9]")
_NAMES = bytes(code if chr(code).isalnum() or code == ord("_") else 32 for code in range(128)) + b" " * 128
_SENTENCE_ENDS = lazy_regex(rb"[.!?][ \n]")
_LENGTHS_OF_HASHES = (32, 40, 64)
_LETTERS_OF_WORD = lazy_regex(rb"[A-Za-z][a-z]{3,24}")
_OTHER_CODE = lazy_regex(
    rb"(?:zip|postal|post|exit|error|status|response|return|country|area|source|qr|op|byte|language|colou?r)[ _\-]codes?\Z"
    rb"|(?:foreign|primary|sort)[ _\-]key\Z"
)
_ABOUT_HASHES = lazy_regex(
    rb"\b(?:hash(?:es)?|commits?|sha[0-9]{0,3}|checksum|digest|fingerprint|md5|uuid|branch|revision|refs|objects?|blob|head)\b"
)
_IN_NAMES = frozenset(bytes((code,)) for code in b"abcdefghijklmnopqrstuvwxyz0123456789_=")
"""Beside one of these, a word is a part of a name."""
_STATEMENT = lazy_regex(
    rb"[ \t+\-]{0,40}(?:type \w{1,80} (?:struct|interface|func)\b"
    rb"|from [\w.]{1,120} import |import [\w.{*\"' ]|export |#include|package [\w.]{1,80};?$"
    rb"|using [\w.]{1,80};|ssh-[a-z0-9]{2,8} AAAA"
    rb"|[\w.]{1,80}(?:, [\w.]{1,80}){0,3} :?= [\w.]{1,120}\()"
)
"""A line of code: an import, a type, or what a call returned. Its names are no sentence."""
_TELLING = lazy_regex(rb"[A-Za-z][\-._]?[0-9!#$%^&*+~]|[0-9!#$%^&*+~][\-._]?[A-Za-z]")
"""A word that is hardly one of a language: a line that only speaks of access needs one, or most lines of a log would be weighed."""
_DIGIT = lazy_regex(
    rb"[0-9]|(?:one|two|three|four|five|six|seven|eight|nine|zero)[ \-](?:one|two|three|four|five|six|seven|eight|nine|zero)\b"
)
"""A digit, in figures or spelled out behind another: a line that names a code or a key, and no password, needs one."""
LONG = 2_000
"""Bytes."""
_CUES_OF_LONG = frozenset(word for word, kind in CUES.items() if kind in ("label", "key"))
"""Words about access that count in a long text: a file or an output is full of the others, and no person's message."""
_OF_PASSWORDS = frozenset(("label", "weak"))
_OF_CODES = frozenset(("code", "key"))
_ANNOUNCING = frozenset(("label", "weak", "key", "code"))
_MADE = frozenset(("compound", "joined", "pair", "numbered", "path", "signed"))
"""Forms for the sake of which a line that only speaks of access is weighed."""


class _Cue(NamedTuple):
    start: int
    end: int
    kind: str


class _Line(NamedTuple):
    """A line about access, with the one before it where that asks or announces."""

    begin: int
    end: int
    cues: tuple[_Cue, ...]
    language: str
    """That of a word for a password in it, if it is not English."""


Labels = list[tuple[int, int, bool, str]]


def find_weighed(raw: bytes, small: bytes, words: TextWords, labels: Labels, spans: list[Span], of: int) -> None:
    """Find secrets in lines about access. ``labels`` are where the words for a password are, ``of`` as in `spoken.find_spoken`."""
    find_seed_phrases(raw, small, words, spans)
    for line in lines(raw, small, words, labels, of):
        if any(cue.kind in ("label", "code") for cue in line.cues):
            spans.extend((*spelled.span(), "password") for spelled in _SPELLED.finditer(raw, line.begin, line.end))
        if line.language == "another":
            spans.extend(_abroad(raw, line))
        for start, end, properties in candidates(raw, small, line):
            if weight(properties) >= THRESHOLD:
                spans.append((start, end, "password"))


def _abroad(raw: bytes, line: _Line) -> Iterator[Span]:
    """Yield words in Latin letters that belong to no language, in a line of a script without equivalents that has a label."""
    for found in _LATIN.finditer(raw, line.begin, line.end):
        word = found[0].strip(_OPENING + _CLOSING)
        form = form_of(word)
        if form in ("clear", "mixed") or (form in ("compound", "snake", "joined") and (digits(word) or _SIGN_WITHIN.search(word))):
            start = found.start() + found[0].find(word)
            yield start, start + len(word), "password"


_LATIN = lazy_regex(rb"[!->@-~]{5,40}+")
_SIGN_WITHIN = lazy_regex(rb"[A-Za-z][!#$%^~&+@*][A-Za-z]")


def weight(properties: list[str]) -> float:
    return sum(map(WEIGHTS.get, properties, [0.0] * len(properties)))


def lines(raw: bytes, small: bytes, words: TextWords, labels: Labels, of: int) -> Iterator[_Line]:
    """Yield the lines of a text that are about access, if they read like sentences."""
    cues = [_Cue(start, end, "weak" if weak else "label") for start, end, weak, _ in labels]
    named = words.each & (CUES.keys() if of <= LONG else _CUES_OF_LONG)
    for word in named:
        kind = CUES[word]
        at = small.find(word)
        while at >= 0:
            end = at + len(word)
            alone = small[at - 1 : at] not in _IN_NAMES and small[end : end + 1] not in _IN_NAMES
            if alone and (kind not in ("code", "key") or not _OTHER_CODE.search(small, max(0, at - 9), end)):
                cues.append(_Cue(at, end, kind))
            at = small.find(word, end)
    cues.sort()
    at = 0
    while at < len(cues):
        begin, end = _bounds(raw, cues[at].start)
        last = at
        while last < len(cues) and cues[last].start < end:
            last += 1
        here = cues[at:last]
        at = last
        line = raw[begin:end]
        if (b" " not in line and LABEL not in line) or len(line.translate(None, _NOT_CODE)) > _MOST_CODE:
            continue
        kinds = {cue.kind for cue in here}
        telling = (
            not kinds.isdisjoint(_OF_PASSWORDS)
            or _TELLING.search(line)
            or not _SPEECH.isdisjoint(small[begin:end].split())
            or (not kinds.isdisjoint(_OF_CODES) and _DIGIT.search(line))
            or any(_looks(word, "")[2] in _MADE for word in line.split() if not word.islower())
        )
        if telling and not _STATEMENT.match(line):
            language = next((name for start, _, _, name in labels if name and begin <= start < end), "")
            yield _Line(begin, end, tuple(here), language)


def _bounds(raw: bytes, at: int) -> tuple[int, int]:
    """Return where the line around a place begins and ends, with the next line where this one announces it."""
    begin = max(raw.rfind(b"\n", max(0, at - _REACH), at) + 1, at - _REACH, 0)
    if begin and raw[begin - 1] not in b" \n" and (blank := raw.find(b" ", begin, at)) >= 0:
        begin = blank + 1
    end = raw.find(b"\n", at, at + _REACH)
    if end < 0:
        return begin, min(len(raw), at + _REACH)
    if raw[begin:end].rstrip()[-1:] in (b"?", b":", b'"'):
        following = raw.find(b"\n", end + 1, end + _REACH)
        if following == end + 1:
            following = raw.find(b"\n", end + 2, end + _REACH)
        end = following if following >= 0 else min(len(raw), end + _REACH)
    return begin, end


def candidates(raw: bytes, small: bytes, line: _Line) -> Iterator[tuple[int, int, list[str]]]:
    """Yield the words of a line that may be secrets, with their properties."""
    text = raw[line.begin : line.end]
    phrases = _phrases_in(text)
    said = [found.span() for found in _WORD.finditer(raw, line.begin, line.end)]
    kinds = {cue.kind for cue in line.cues}
    found = [*_words(raw, small, line, said, kinds), *_phrases(raw, small, line, said, phrases)]
    if not found:
        return
    about = _about(raw, small, line, said, kinds)
    mixtures = [mixture(raw[each.start : each.end]) for each in found]
    most = max(mixtures)
    for each, mixed in zip(found, mixtures, strict=True):
        place = "less odd" if mixed < most else "oddest" if mixtures.count(most) == 1 else "as odd"
        yield each.start, each.end, [*about, *_properties(raw, small, line, each, kinds, mixed, place)]


class _Candidate(NamedTuple):
    start: int
    end: int
    last: int
    """Where its word ends, with the signs behind it."""
    form: str
    link: str


def mixture(word: bytes) -> int:
    """Return how many kinds of characters the word has: small letters, capitals, digits, signs, and signs that join words."""
    inner = word.strip(b"!.")
    joints = len(inner) - len(inner.translate(None, b".-_/ "))
    return (
        (smalls(word) > 0)
        + (capitals(word[1:]) > 0 or (capitals(word) > 0 and joints > 0))
        + (digits(word) > 0)
        + (signs(word) > 0)
        + (joints > 0)
    )


def _about(raw: bytes, small: bytes, line: _Line, said: list[tuple[int, int]], kinds: set[str]) -> list[str]:
    """Return the properties of a line."""
    access = len({small[cue.start : cue.end] for cue in line.cues if cue.kind == "access"})
    spoken = sum(small[first:last].strip(_OPENING + _CLOSING) in _SPEECH for first, last in said)
    code = len(raw[line.begin : line.end].translate(None, _NOT_CODE))
    return [
        *(f"about {kind}" for kind in sorted(kinds)),
        f"access {min(access, 3)}",
        f"code {min(4, code)}",
        f"speech {min(spoken, 3)}",
        *(f"speech {min(spoken, 3)} {kind}" for kind in sorted(kinds)),
        *(["short line"] if len(said) < 6 else []),
        *(["about hashes"] if _ABOUT_HASHES.search(small, line.begin, line.end) else []),
        *(["heading"] if raw[line.begin : line.begin + 1] in (b"#", b"|", b"/", b"-", b" ") else []),
    ]


def _words(raw: bytes, small: bytes, line: _Line, said: list[tuple[int, int]], kinds: set[str]) -> Iterator[_Candidate]:
    hashes = _ABOUT_HASHES.search(small, line.begin, line.end) is not None
    for number, (first, last) in enumerate(said):
        before, word, kind = _looks(raw[first:last], line.language)
        if not kind:
            continue
        start = first + before
        end = start + len(word)
        link = _link(raw, small, said, number, start)
        group = _GROUPS_OF_LOOKS.get(kind, "phrase")
        names_user = group != "strong" and small[start - 10 : start] in (b'for user "', b"for user '")
        if link == "id" or raw.startswith(b"```", first) or names_user:
            continue
        far = link == "other" and not (kind in ("word", "name") and len(word) >= 8)
        if kind in ("file", "serial") and kinds.isdisjoint(_ANNOUNCING):
            continue
        far = far or (kind in ("file", "serial") and link == "start")
        if (group == "plain" and (far or link == "start")) or (group in ("plain", "made") and link == "setting"):
            continue
        unannounced = kind in ("digits", "door") and kinds.isdisjoint(("code", "label"))
        if unannounced and link != "with" and (len(word) < 6 or link != "is"):
            continue
        if kind == "hex" and len(word) in _LENGTHS_OF_HASHES and (hashes or kinds.isdisjoint(("key", "weak", "label"))):
            continue
        if any(cue.start < end and cue.end > start for cue in line.cues if cue.kind != "access") and kind not in (
            "clear",
            "mixed",
            "groups",
            "signed",
        ):
            continue
        if kind in ("dial", "year") and ("code" not in kinds or link not in ("is", "sign")):
            continue
        yield _Candidate(start, end, last, kind, link)


@lru_cache(maxsize=1 << 14)
def _looks(said: bytes, language: str) -> tuple[int, bytes, str]:
    """Return how many signs are before a word, the word without those around it, and its form."""
    word = said.lstrip(_OPENING)
    before = len(said) - len(word)
    word = word.rstrip(_CLOSING)
    return before, word, form_of(word, language)


def _phrases_in(text: bytes) -> list[re.Pattern[bytes]]:
    """Return those of `_PHRASES` that a line may have."""
    quoted, plain, groups, numbers = _PHRASES
    return [
        *([quoted] if b'"' in text or b"'" in text or b"?" in text else ()),
        *(
            [plain]
            if b": " in text or b"= " in text or b"phrase" in text or not _BEFORE_PLAIN.isdisjoint(text.translate(_NAMES).split())
            else ()
        ),
        *([groups] if _TWO_FOURS.search(text) else ()),
        *([numbers] if _TWO_NUMBERS.search(text) else ()),
    ]


def _phrases(
    raw: bytes, small: bytes, line: _Line, said: list[tuple[int, int]], phrases: list[re.Pattern[bytes]]
) -> Iterator[_Candidate]:
    for found in chain.from_iterable(phrase.finditer(raw, line.begin, line.end) for phrase in phrases):
        group = found.lastgroup or "plain"
        start, end = found.span(group)
        words = raw[start:end].split()
        if group == "quoted" and (len(words) < 3 or all(map(ordinary, words))):
            continue
        if any(cue.start < end and cue.end > start for cue in line.cues if cue.kind != "access"):
            continue
        rare = sum(not ordinary(word) for word in words)
        if group == "plain" and (rare < (2 if len(words) < 4 else 1) or (line.language and raw[start - 2] not in b":=")):
            continue
        number = sum(first < start for first, _ in said)
        yield _Candidate(start, end, end, f"phrase {group}", _link(raw, small, said, number, start))


def _link(raw: bytes, small: bytes, said: list[tuple[int, int]], number: int, start: int) -> str:
    """Return what introduces a word: the sign or the word before it."""
    if not number:
        return "start"
    first, last = said[number - 1]
    while number > 1 and small[first:last].strip(_QUOTES) in _SKIPPED:
        number -= 1
        first, last = said[number - 1]
    word = small[first:last]
    if _INTRODUCING.get(word.rstrip(b":")) == "id":
        return "id"
    if (word[-1:] in b":=" and (b"_" in word or b'"' in word)) or b"=" in word[1:-1]:
        return "setting"
    if word[-1:] in b":=" or word in (b"->", b"=>", b"-", b"|", b"--", b"?"):
        return "sign"
    if word in (b"/", b"+"):
        return "slash"
    if raw[start - 1 : start] == b"(":
        return "bracket"
    if word[-1:] in b",;":
        return "comma"
    if word[-1:] in b".!?)":
        return "stop"
    word = word.strip(_OPENING + _CLOSING)
    if word in _NAMED_BY:
        return "user"
    if link := _INTRODUCING.get(word):
        before = small[slice(*said[number - 2])].strip(_OPENING + _CLOSING) if number > 1 else b""
        return "user" if link == "is" and before in _NAMED_BY else link
    if word.endswith(b"'s"):
        return "is" if word in (b"it's", b"that's", b"password's", b"here's", b"what's") else "owner"
    return "label" if CUES.get(word, "") not in ("", "access") else "other"


_GROUPS_OF_LOOKS = {
    **dict.fromkeys(("clear", "mixed", "random", "hex", "groups", "chosen", "signed"), "strong"),
    **dict.fromkeys(
        ("compound", "joined", "snake", "camel", "dotted", "pair", "stand-in", "numbered", "path", "file", "serial"), "made"
    ),
    **dict.fromkeys(("word", "name", "common word"), "plain"),
    **dict.fromkeys(("digits", "door", "dial", "year"), "digits"),
}


def _properties(raw: bytes, small: bytes, line: _Line, each: _Candidate, kinds: set[str], mixed: int, place: str) -> Iterator[str]:
    start, end, last, kind, link = each
    word = raw[start:end]
    group = _GROUPS_OF_LOOKS.get(kind, "phrase")
    best = next((name for name in ("label", "key", "code", "weak", "access") if name in kinds), "")
    yield f"form {kind}"
    yield f"link {link}"
    yield f"{group} {place}"
    yield f"{group} link {link}"
    yield f"mixture {mixed}"
    yield f"mixture {mixed} {best}"
    yield f"mixture {mixed} link {link}"
    yield f"{best} form {kind}"
    yield f"{best} link {link}"
    yield f"{best} {group} link {link}"
    for name in ("label", "key", "code", "weak", "access", "spelling"):
        near = [cue for cue in line.cues if cue.kind == name and not (cue.start < end and cue.end > start)]
        before = [cue for cue in near if cue.end <= start]
        if before:
            between = raw[before[-1].end : start]
            gap = between.count(b" ")
            apart = "far" if gap > 8 else "near" if gap > 2 else "next"
            yield f"{name} {apart} before"
            yield f"{name} {apart} {group}"
            if _SENTENCE_ENDS.search(between):
                yield f"{name} in an earlier sentence"
            elif b"," in between:
                yield f"{name} in an earlier clause"
        elif near:
            gap = raw[end : near[0].start].count(b" ")
            yield f"{name} {'far' if gap > 8 else 'near' if gap > 3 else 'next'} after"
    if small[max(0, start - 4) : start] in _ARTICLES or small[max(0, start - 3) : start] in _ARTICLES:
        yield f"article {group}"
    if raw[start - 1 : start] in _QUOTE_SIGNS and raw[end : end + 1] in _QUOTE_SIGNS:
        yield "quoted"
        yield f"quoted {group}"
    after = _after(raw, small, end, last)
    if link in _APART and after in _APART:
        yield f"by itself {group}"
        yield f"by itself {link} {after}"
    former = small[max(line.begin, start - 40) : start].split()[-2:]
    for name, some in (("before", former), ("behind", small[last : min(line.end, last + 40)].split()[:1])):
        for at, beside in enumerate(reversed(some)):
            beside = beside.strip(_OPENING + _CLOSING)
            if beside.isalpha() and beside.isascii() and len(beside) <= 12:
                yield f"{name} {at} {beside.decode()}"
    yield f"after {after}"
    yield f"after {after} link {link}"
    yield f"after {after} {group}"
    if signs(word.strip(b"!")):
        yield "signs within"
    if digits(word) and digits(word[-2:]) == 2:
        yield f"ends with digits {group}"
    if word.endswith(b"!"):
        yield "ends with a sign"
    if capitals(word) and smalls(word):
        yield f"both cases {group}"
    size = (
        f"{min(len(word), 9)} digits" if word.isdigit() else "short" if len(word) < 6 else "long" if len(word) >= 12 else "middle"
    )
    yield f"{size} {group}"
    yield f"{size} {group} link {link}"
    yield f"{best} {size} {group}"
    yield f"{best} {size} {group} link {link}"
    if group in ("strong", "made"):
        yield f"joined by {'dot' if b'.' in word else 'underscore' if b'_' in word else 'dash' if b'-' in word else 'nothing'}"
        known = [piece.lower() in COMMON or ordinary(piece) for piece in _LETTERS_OF_WORD.findall(word)]
        yield f"{min(2, known.count(False))} rare words {group}"
    if group == "phrase":
        words = word.split()
        yield f"{kind} of {min(12, len(words))}"
        yield f"{min(3, sum(len(each) < 4 or each in COMMON or ordinary(each) for each in words))} ordinary words"


_APART = frozenset(("stop", "comma", "sign", "start", "end", "bracket"))
"""What sets a word apart from the others: "ok. X. that's it"."""


def _after(raw: bytes, small: bytes, end: int, last: int) -> str:
    """Return what follows a word: a sign, the end of its line, or a word."""
    sign = raw[end:last].strip(_QUOTES)[:1]
    if sign in (b",", b";"):
        return "comma"
    if sign in (b".", b")"):
        return "stop"
    following = small[last : last + 24].split(None, 1)
    if not following or raw[last : last + 1] in (b"\n", b""):
        return "end"
    return _AFTER.get(following[0].strip(_QUOTES + b",."), "other")
