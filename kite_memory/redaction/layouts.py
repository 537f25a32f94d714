"""Secrets whose label is elsewhere: on the line above, at the head of a column, in another element."""

import re

from kite_memory.redaction.likeness import chosen, clear
from kite_memory.redaction.span import Span
from kite_memory.redaction.vendors import any_of
from kite_memory.redaction.words import LABELS

Table = tuple[int, int]
"""Where a table's header begins, and where its rows end."""

_KIND = "password"
_LINE = 600
_ROWS = 200
_CELLS = 40
_CELL_SIGNS = b" \t\"'`*\r"
_HEADER = re.compile(rb"[\w \xf1\xf0\-.*\"'`()]{1,40}")
_RULE = re.compile(rb"[\s|+:=\-]{3,600}+")
_AFTER_LABEL = re.compile(rb"[\"'`*\]]{0,4}[ \t]{0,4}([:=?]?)[ \t]{0,4}(?:[>|][+\-]?)?[ \t]{0,4}\r?(?=\n)")
_NEXT = re.compile(rb"(?:[ \t]{0,40}\r?\n){1,3}+[ \t>\-*]{0,40}[\"'`]?([^\s\"'`]{4,64}+)[\"'`]?,?[ \t]{0,8}\r?(?=\n|\Z)")
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
            matches += pattern.finditer(small, max(0, hit.start() - _LABEL_REACH), hit.end() + _LINE)
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
    begin = raw.rfind(b"\n", max(0, start - _LINE), start) + 1
    stop = raw.find(b"\n", end, end + _LINE)
    if stop < 0 or (begin == 0 and start > _LINE) or last[0] < begin < last[1]:
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
        line_end = raw.find(b"\n", at, at + _LINE)
        line_end = line_end if line_end >= 0 else min(len(raw), at + _LINE)
        row = raw[at:line_end]
        if not _RULE.fullmatch(row):
            if row.count(sign) != count:
                break
            cell = row.split(sign)[column]
            value = cell.strip(_CELL_SIGNS)
            if chosen(value):
                first = at + sum(len(each) + 1 for each in row.split(sign)[:column]) + len(cell) - len(cell.lstrip(_CELL_SIGNS))
                spans.append((first, first + len(value), _KIND))
        if line_end >= len(raw) or (line_end - at == _LINE and raw[line_end : line_end + 1] != b"\n"):
            break
        at = line_end + 1
    return begin, at
