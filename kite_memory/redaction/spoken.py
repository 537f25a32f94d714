"""Secrets in natural language and in tables: a label in any language with a value after it, below it, or in another element.

Half of a secret matches no pattern, nor does a password without its name. So a text is redacted around the place where it is
cut.
"""

import re
from collections.abc import Iterator

from kite_memory.redaction.chance import (
    FORMS,
    JOINING,
    LABELS,
    LEADING,
    Form,
    Label,
    Span,
    TextWords,
    chosen,
    clear,
    direct,
    first_word,
    is_value,
    numeric,
    signed,
)
from kite_memory.redaction.cleaning import LABEL
from kite_memory.redaction.vendors import any_of

Table = tuple[int, int]
"""Where a table's header begins, and where its rows end."""

_KIND = "password"
_LAYOUT_LINE = 600
_ROWS = 200
_CELLS = 40
_CELL_SIGNS = b" \t\"'`*\r"
_HEADER = re.compile(rb"[\w \xf1\xf0\-.*\"'`()]{1,40}")
_RULE = re.compile(rb"[\s|+:=\-]{3,600}+")
_AFTER_LABEL = re.compile(rb"[\"'`*\]]{0,4}[ \t]{0,4}([:=?]?)[ \t]{0,4}(?:[>|][+\-]?|\"\"\"|''')?[ \t]{0,4}\r?(?=\n)")
_NEXT = re.compile(
    rb"(?:[ \t]{0,40}\r?\n){1,3}+(?:[ \t]{0,8}[\-=]{3,80}+[ \t]{0,8}\r?\n)?"
    rb"[ \t>\-*]{0,40}[\"'`]?([^\s\"'`]{4,64}+)[\"'`]?,?[ \t]{0,8}\r?(?=\n|\Z)"
)
_LABELS = (
    rb"(?:[a-z0-9_\- ]{0,24}"
    + any_of(label.stem.decode() for label in LABELS if not label.weak).encode()
    + rb"[a-z0-9_\-]{0,12}|[a-z0-9_\-]{0,24}[_\-]pass|pass|pw|\xf1{2,12})"
)
_BEHIND_TAG = rb":?[ \t]{0,4}</[a-z0-9]{1,8}>\s{0,40}<[a-z0-9]{1,10}[^<>]{0,120}>[ \t]{0,4}(?P<value>[^<>\s]{3,128}+)[ \t]{0,4}</"
_BEHIND_NAME = rb"[\"'][ \t]{0,4}>(?P<value>[^<>\s]{3,128}+)</"
_FIELD = rb"[\"'][ \t]{0,4},\s{0,40}[\"']?value[\"']?[ \t]{0,4}:[ \t]{0,4}[\"'](?P<value>[^\"'\r\n]{3,128}+)[\"']"
_LABEL_REACH = 160
_MARKUP = (
    (b"<input", re.compile(rb"<input\b[^<>]{0,200}?\btype=[\"']?password[^<>]{0,200}?\bvalue=[\"'](?P<value>[^\"'<>]{3,128}+)")),
    (
        b"<input",
        re.compile(rb"<input\b[^<>]{0,200}?\bvalue=[\"'](?P<value>[^\"'<>]{3,128}+)[\"'][^<>]{0,200}?\btype=[\"']?password"),
    ),
    (b"<property ", re.compile(rb"<property name=[\"']" + _LABELS + rb"[\"'] value=[\"'](?P<value>[^\"'<>]{3,128}+)")),
)
_LABELLED = (
    (b"</", re.compile(rb"</[a-z0-9]{1,8}>\s{0,40}<"), re.compile(rb">[ \t]{0,4}" + _LABELS + _BEHIND_TAG)),
    (b"</", re.compile(rb">(?<=[\"' \t]>)[^<>\s]{3,128}+</"), re.compile(rb"[\"']" + _LABELS + _BEHIND_NAME)),
    (b"value", re.compile(rb"value[\"']?[ \t]{0,4}:[ \t]{0,4}[\"']"), re.compile(rb"[\"']" + _LABELS + _FIELD)),
)
"""What follows a label is searched first, from a literal on, since it is much rarer than the sign before a label."""


def find_in_markup(raw: bytes, small: bytes, spans: list[Span]) -> None:
    if b"<" not in raw and b'"value"' not in small and b"'value'" not in small:
        return
    matches = [found for literal, pattern in _MARKUP if literal in small for found in pattern.finditer(small)]
    for literal, behind, pattern in _LABELLED:
        for hit in behind.finditer(small) if literal in small else ():
            matches += pattern.finditer(small, max(0, hit.start() - _LABEL_REACH), hit.end() + _LAYOUT_LINE)
    for found in matches:
        start, end = found.span("value")
        if chosen(raw[start:end]):
            spans.append((start, end, _KIND))


def on_next_line(raw: bytes, start: int, at: int, stop: int, spans: list[Span]) -> None:
    """Find a value on the next line, if the label ends its line and the next one holds nothing else."""
    after = _AFTER_LABEL.match(raw, at, stop + 1)
    if after is None or not (found := _NEXT.match(raw, after.end())):
        return
    line = raw[max(0, raw.rfind(b"\n", max(0, start - 80), start) + 1) : start].strip(b" \t-*\"'#>")
    value = found[1].rstrip(b",")
    if chosen(value) if after[1] and len(line) <= 40 else not line and clear(value):
        spans.append((found.start(1), found.start(1) + len(value), _KIND))


def find_in_columns(raw: bytes, start: int, end: int, last: Table, spans: list[Span]) -> Table:
    """Find values in a table whose header has the label ``[start, end)`` as a cell: CSV, Markdown, output of database clients.

    ``last`` is the table found before, in whose rows no other begins; the current last one is returned.
    """
    before, behind = raw[max(0, start - 40) : start].rstrip(_CELL_SIGNS)[-1:], raw[end : end + 40].lstrip(_CELL_SIGNS)[:1]
    tab = b"\t" in (raw[start - 1 : start], raw[end : end + 1])
    if not tab and before not in (b",", b";", b"|", b"\n", b"") and behind not in (b",", b";", b"|"):
        return last
    begin = raw.rfind(b"\n", max(0, start - _LAYOUT_LINE), start) + 1
    stop = raw.find(b"\n", end, end + _LAYOUT_LINE)
    if stop < 0 or (begin == 0 and start > _LAYOUT_LINE) or last[0] < begin < last[1]:
        return last
    header = raw[begin:stop]
    sign = b"\t" if tab else next((sign for sign in (b"|", b",", b";") if sign in header), b"")
    if not sign or header.count(sign) > _CELLS:
        return last
    column = raw[begin:start].count(sign)
    if not all(_HEADER.fullmatch(cell) or not cell.strip() for cell in header.split(sign)):
        return last
    count = header.count(sign)
    at = stop + 1
    for _ in range(_ROWS):
        line_end = raw.find(b"\n", at, at + _LAYOUT_LINE)
        line_end = line_end if line_end >= 0 else min(len(raw), at + _LAYOUT_LINE)
        row = raw[at:line_end]
        if not _RULE.fullmatch(row):
            if row.count(sign) != count:
                break
            cell = row.split(sign)[column]
            value = cell.strip(_CELL_SIGNS)
            if chosen(value):
                first = at + sum(len(each) + 1 for each in row.split(sign)[:column]) + len(cell) - len(cell.lstrip(_CELL_SIGNS))
                spans.append((first, first + len(value), _KIND))
        if line_end >= len(raw) or (line_end - at == _LAYOUT_LINE and raw[line_end : line_end + 1] != b"\n"):
            break
        at = line_end + 1
    return begin, at


_WINDOW = 200
_LINE = 400
_MOST_WORDS = 14
_NEAR = 3
"""Number of words that may be between a sign, or a word such as "is", and the value."""
_OTHER = bytes((LABEL,))
_TAIL = re.compile(rb"[a-z\xf0]{0,12}+(?:[_\-][a-z0-9_\-]{0,24}+)?(?:'s)?[\"'`*\])]{0,4}")
_OTHER_TAIL = re.compile(rb"(?:\xf0{1,12}+(?![a-z0-9]))?[\"'`*\])]{0,4}")
"""A suffix of a label, and what closes it; in a script without blanks a value may follow at once."""
_ASIDE = re.compile(rb"[ \t]{0,3}\([^()\r\n]{1,60}\)")
_SIGN = re.compile(rb"[ \t?]{0,40}(?:(?:[:=?|>]|->|=>|:=|-(?=[ \t])|\.{3,60})[ \t?*]{0,40}){1,3}+(?![=])")
_TOKEN = re.compile(rb"[^\s]{1,256}+")
_QUOTED = re.compile(rb"[ \t]{0,8}\\?([\"'`])([^\"'`\\\r\n]{3,128}+)\\?\1")
_GLUED = re.compile(rb"\xf0{1,3}(?=[!-~]{5,64}\Z)")
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
        for some in form.words[1:]:
            if words.each.isdisjoint(some):
                break
        else:
            _match(raw, small, form, spans)


def _labels(small: bytes, words: TextWords) -> Iterator[tuple[int, int, bool]]:
    """Yield where a label begins and ends, and whether it is weak.

    The words are searched first, since a text has few different ones.
    """
    there = [label for word in words.each & _SEVERAL for label in _SEVERAL_WORDS[word]]
    if words.parts:
        there += (label for hit in _WORD_BEGINS.findall(words.joined) for label in _LABELS_AT[hit])
    if words.parts and _WITHIN_WORD.search(words.joined):
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
        hit = near.search(small)
        while hit:
            begin = max(small.rfind(b"\n", max(0, hit.start() - _WINDOW), hit.start()) + 1, hit.start() - _WINDOW)
            at = small.find(b"\n", hit.start(), hit.start() + _LINE)
            at = at if at >= 0 else min(len(small), hit.start() + _LINE)
            _add_all(raw, form.pattern.finditer(small, begin, at), form, spans)
            hit = near.search(small, at)


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
    tail = (_OTHER_TAIL if raw[end - 1] == LABEL else _TAIL).match(small, end)
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
        start, end = token.span()
        if glued and (spelled := _GLUED.match(token[0])):
            start, led = start + spelled.end(), _NEAR  # scripts without blanks: 密码是X
        glued = False
        start += len(token[0]) - len(token[0].lstrip(_OPENING)) if start == token.start() else 0
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
