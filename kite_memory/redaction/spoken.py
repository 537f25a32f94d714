"""Secrets in natural language: a label in any language with a value after it, sentences, commands."""

import re
from collections.abc import Iterator

from kite_memory.redaction.cleaning import LABEL
from kite_memory.redaction.layouts import Table, find_in_columns, find_in_markup, on_next_line
from kite_memory.redaction.likeness import chosen, clear, direct, is_value, numeric, signed
from kite_memory.redaction.span import Span
from kite_memory.redaction.vendors import any_of
from kite_memory.redaction.words import FORMS, JOINING, LABELS, LEADING, Form, Label, TextWords, first_word

_KIND = "password"
_WINDOW = 200
_LINE = 400
_MOST_WORDS = 14
_NEAR = 3
"""Number of words that may be between a sign, or a word such as "is", and the value."""
_OTHER = bytes((LABEL,))
_TAIL = re.compile(rb"[a-z\xf0]{0,12}+(?:[_\-][a-z0-9_\-]{0,24}+)?(?:'s)?[\"'`*\])]{0,4}")
"""A suffix of a label, and what closes it."""
_ASIDE = re.compile(rb"[ \t]{0,3}\([^()\r\n]{1,60}\)")
_SIGN = re.compile(rb"[ \t?]{0,40}(?:(?:[:=?|>]|->|=>|:=|-(?=[ \t])|\.{3,60})[ \t?*]{0,40}){1,3}+(?![=])")
_TOKEN = re.compile(rb"[^\s]{1,256}+")
_QUOTED = re.compile(rb"[ \t]{0,8}\\?([\"'`])([^\"'`\\\r\n]{3,128}+)\\?\1")
_OPENING = b"(\"'`*?\xab[,"
_CLOSING = b"\"'`,;:.)]?*"
_DIGIT = re.compile(rb"[0-9]")
_TELLING = re.compile(rb"[0-9!#$%^&*~+@]")
"""Every value has one of these characters."""
_STOPS = re.compile(rb"[({\[<>;]")
_WITHIN_WORDS = tuple(label for label in LABELS if not label.word)
_WITHIN_WORD = re.compile(any_of(label.stem.decode() for label in _WITHIN_WORDS).encode())
_ONE_WORD = tuple(label for label in LABELS if label.word and label.stem.isalpha())
_WORD_BEGINS = re.compile(b" (" + any_of(label.stem.decode() for label in _ONE_WORD).encode() + b")")
_LABELS_AT = {each.stem: tuple(label for label in _ONE_WORD if each.stem.startswith(label.stem)) for each in _ONE_WORD}
_SEVERAL_WORDS: dict[bytes, list[Label]] = {}
"""Labels of several words, by their first word."""
for _label in LABELS:
    if _label.word and not _label.stem.isalpha():
        _SEVERAL_WORDS.setdefault(first_word(_label.stem), []).append(_label)
_SEVERAL = frozenset(_SEVERAL_WORDS)
_FORM_WORDS = frozenset(word for form in FORMS for word in form.words[0])
_FORMS = {word: tuple(form for form in FORMS if word in form.words[0]) for word in _FORM_WORDS}


def find_spoken(raw: bytes, small: bytes, words: TextWords, spans: list[Span]) -> None:
    """Find secrets in natural language. ``small`` is ``raw`` in lower case, and ``words`` are its words."""
    if not words.each and _OTHER not in raw:
        return
    table: Table = (0, 0)
    labels = sorted([*_labels(small, words), *_other_labels(raw)])
    for start, end, weak in labels:
        table = _look(raw, small, start, end, weak, table, spans)
    if labels:
        find_in_markup(raw, small, spans)
    for form in {form for word in words.each & _FORM_WORDS for form in _FORMS[word]}:
        if not any(words.each.isdisjoint(some) for some in form.words[1:]):
            _match(raw, small, form, spans)


def _labels(small: bytes, words: TextWords) -> Iterator[tuple[int, int, bool]]:
    """Yield where a label begins and ends, and whether it is weak.

    The words are searched first, since a text has few different ones.
    """
    there = [label for hit in _WORD_BEGINS.findall(words.joined) for label in _LABELS_AT[hit]]
    there += (label for word in words.each & _SEVERAL for label in _SEVERAL_WORDS[word])
    if _WITHIN_WORD.search(words.joined):
        there += (label for label in _WITHIN_WORDS if label.stem in words.joined)
    for label in {label.stem: label for label in there}.values():
        at = small.find(label.stem)
        while at >= 0:
            end = at + len(label.stem)
            if not ((label.word and small[at - 1 : at].isalpha()) or (label.whole and small[end : end + 1].isalnum())):
                yield at, end, label.weak
            at = small.find(label.stem, at + 1)


def _other_labels(raw: bytes) -> Iterator[tuple[int, int, bool]]:
    at = raw.find(_OTHER)
    while at >= 0:
        end = at + len(raw[at : at + 32]) - len(raw[at : at + 32].lstrip(_OTHER))
        yield at, end, False
        at = raw.find(_OTHER, end)


def _match(raw: bytes, small: bytes, form: Form, spans: list[Span]) -> None:
    if not form.near:
        _add_all(raw, form.pattern.finditer(small), form, spans)
    for near in form.near:
        at = 0
        while hit := near.search(small, at):
            begin = max(small.rfind(b"\n", max(0, hit.start() - _WINDOW), hit.start()) + 1, hit.start() - _WINDOW)
            at = small.find(b"\n", hit.start(), hit.start() + _LINE)
            at = at if at >= 0 else min(len(small), hit.start() + _LINE)
            _add_all(raw, form.pattern.finditer(small, begin, at), form, spans)


def _add_all(raw: bytes, matches: Iterator[re.Match[bytes]], form: Form, spans: list[Span]) -> None:
    for found in matches:
        for group in form.pattern.groupindex:
            start, end = found.span(group)
            if group.startswith("bare"):
                end -= len(raw[start:end]) - len(raw[start:end].rstrip(b".:"))
            if start < end and is_value(raw[start:end], form.likeness):
                spans.append((start, end, _KIND))


def _look(raw: bytes, small: bytes, start: int, end: int, weak: bool, table: Table, spans: list[Span]) -> Table:
    """Check what is around the label at ``[start, end)``."""
    tail = _TAIL.match(small, end)
    at = tail.end() if tail else end
    stop = raw.find(b"\n", at, at + _WINDOW)
    stop = stop if stop >= 0 else min(len(raw), at + _WINDOW)
    on_next_line(raw, start, at, stop, spans)
    _walk(raw, small, at, stop, weak, spans)
    _back(raw, start, spans)
    return find_in_columns(raw, start, at, table, spans)


def _walk(raw: bytes, small: bytes, at: int, stop: int, weak: bool, spans: list[Span]) -> None:
    """Go from word to word behind a label to a value."""
    if not _TELLING.search(raw, at, stop):
        return
    if aside := _ASIDE.match(raw, at, stop):
        at = aside.end()
    led = 0  # for this many more words, a value is expected
    glued = True
    for number in range(_MOST_WORDS):
        if sign := _SIGN.match(raw, at, stop):
            at, led, glued = sign.end(), _NEAR, False
        if quoted := _QUOTED.match(raw, at, stop):
            if is_quoted(quoted[2], led > 0 and not weak):
                spans.append((*quoted.span(2), _KIND))
            at = quoted.end()
            led -= 1
            glued = False
            continue
        token = _TOKEN.search(raw, at, stop)
        if token is None or (glued and token.start() == at and token[0][:1] not in b"?,\xf0"):
            return
        glued = False
        start, end = token.span()
        start += len(token[0]) - len(token[0].lstrip(_OPENING))
        end -= len(token[0]) - len(token[0].rstrip(_CLOSING))
        at = token.end()
        word = raw[start:end].rstrip(b"=")
        first = number == 0 and not weak and direct(word)
        expected = led > 0 and (signed(word) if weak else chosen(word) or numeric(word))
        if expected or first or clear(word):
            spans.append((start, end, _KIND))
            led = 2
        elif small[start:end] in LEADING or small[start:end] in JOINING:
            led = max(led, _NEAR if small[start:end] in LEADING else led)
        elif token[0][-1:] in (b":", b"="):
            led = _NEAR
        elif _STOPS.search(token[0]) or token[0].endswith((b".", b"!")):
            return
        else:
            led -= 1


def is_quoted(value: bytes, led: bool) -> bool:
    if b" " in value:
        return led and len(value) >= 8 and any(48 <= code <= 57 for code in value) and value.count(b" ") <= 5 and b"=" not in value
    return chosen(value) if led else clear(value)


def _back(raw: bytes, start: int, spans: list[Span]) -> None:
    """Find a value before a label, as in ``… X as the password``, only if it clearly looks like a password."""
    begin = raw.rfind(b"\n", max(0, start - 60), start) + 1 or max(0, start - 60)
    if not _DIGIT.search(raw, begin, start):
        return
    for token in _TOKEN.finditer(raw, begin, start):
        first = token.start() + len(token[0]) - len(token[0].lstrip(_OPENING))
        last = token.end() - len(token[0]) + len(token[0].rstrip(_CLOSING))
        if (first > begin or begin == 0 or raw[begin - 1 : begin] == b"\n") and clear(raw[first:last]):
            spans.append((first, last, _KIND))
