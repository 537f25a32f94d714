"""Entry point of the redaction: its results hold no secrets."""

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson

from kite_memory.model.event import Event, ReadResult, RedactedResult, RedactedText
from kite_memory.redaction.assigned import NAMED_KINDS, find_assigned
from kite_memory.redaction.carriers import find_carried
from kite_memory.redaction.chance import Span, digits, joined, worded, words_of
from kite_memory.redaction.cleaning import KIND as PROTECTED
from kite_memory.redaction.cleaning import bare, clean, drop_private, find_protected
from kite_memory.redaction.spoken import find_spoken
from kite_memory.redaction.tokens import OWN_KINDS, UNKNOWN, find_blocks, find_tokens
from kite_memory.redaction.vendors import VENDORS, AnchorPatterns, every_vendor
from kite_memory.redaction.views import View, find_dumped, put_together, resolved
from kite_memory.redaction.weighed import LONG
from kite_memory.text import lazy_regex

KINDS: frozenset[str] = (
    frozenset(vendor.kind for vendor in VENDORS)
    | NAMED_KINDS
    | OWN_KINDS
    | {"private-key", "url-password", "url-token", "webhook", "password", "password-hash", "authorization", "cookie", "text"}
    | {PROTECTED}
)
"""Every kind of secret. A mark with any other kind is not treated as a mark, so no secret can hide in one."""

_MARK = lazy_regex(r"\[redacted:([a-z0-9-]{1,32})\]")


def mark(kind: str) -> str:
    return f"[redacted:{kind}]"


def marks(text: str) -> list[tuple[int, int]]:
    """Return where marks of an earlier pass are."""
    if "[redacted:" not in text:
        return []
    return [found.span() for found in _MARK.finditer(text) if found[1] in KINDS]


def blanked(raw: bytes, places: list[tuple[int, int]]) -> bytes:
    """Return ``raw`` with marks replaced by brackets, which end every token and begin no value."""
    if not places:
        return raw
    blank = bytearray(raw)
    for start, end in places:
        blank[start:end] = b"[" * (end - start)
    return bytes(blank)


def beside(spans: list[Span], places: list[tuple[int, int]]) -> list[Span]:
    """Join ``spans``.

    A span covers a mark whole or not at all, and never only marks, so each pass leaves less text outside of marks.
    """
    spans = joined(spans)
    if not places:
        return spans
    starts = [start for start, _ in places]
    ends = [end for _, end in places]
    kept: list[Span] = []
    for start, end, kind in spans:
        first, behind = bisect_right(ends, start), bisect_left(starts, end)
        if first < behind:
            start, end = min(start, starts[first]), max(end, ends[behind - 1])
            if sum(ends[at] - starts[at] for at in range(first, behind)) == end - start:
                continue
        kept.append((start, end, kind))
    return joined(kept)


_PLAIN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 /._-"
"""Among these alone, and without a word that a search asks for, only a token can be a secret."""
_DEEPEST = 2
"""Base 64 within base 64 is decoded up to this depth."""


def find(raw: bytes, places: list[tuple[int, int]], every: AnchorPatterns | None = None, *, of: int = 0) -> list[Span]:
    """Return the spans of secrets in a text made by `bare`, unordered and possibly overlapping. ``places`` are those of marks.

    ``of``: the length of the text of which this is a part.
    """
    every = every or every_vendor()
    raw = blanked(raw, places)
    if not raw.translate(None, _PLAIN) and b" -" not in raw and b"0 " not in raw and not words_of(raw.lower()).each:
        spans: list[Span] = []
        find_tokens(raw, spans, _opener(every), every)
        return spans
    spans = _whole(raw, every, max(of, len(raw)))
    escaped = resolved(raw)
    if escaped is not None:
        further = _whole(escaped.raw, every, len(escaped.raw))
        spans += [(*escaped.origin(start, end), kind) for start, end, kind in further if kind != UNKNOWN]
    return spans


def _whole(raw: bytes, every: AnchorPatterns, of: int) -> list[Span]:
    spans = _plain(raw, every, of=of)
    broken = put_together(raw) if b"\n" in raw or b"\\" in raw else None
    return spans if broken is None else spans + _across(broken, {end for _, end, kind in spans if kind != UNKNOWN}, every)


def _opener(every: AnchorPatterns, depth: int = 0) -> Callable[[bytes], str]:
    def look_inside(plain: bytes) -> str:
        spans = _plain(plain, every, depth + 1) if depth < _DEEPEST else []
        return spans[0][2] if spans else ""

    return look_inside


def _plain(raw: bytes, every: AnchorPatterns, depth: int = 0, *, spoken: bool = True, of: int = 0) -> list[Span]:
    """Find secrets without joining lines. ``spoken`` includes secrets in natural language, which end with a line."""
    look_inside = _opener(every, depth)
    spans: list[Span] = []
    find_tokens(raw, spans, look_inside, every)
    small = raw.lower()
    words = words_of(small)
    find_assigned(raw, small, words, spans)
    if spoken:
        find_spoken(raw, small, words, spans, max(of, len(raw)))
    find_carried(raw, words, spans)
    find_blocks(raw, words, spans)
    find_dumped(raw, look_inside, spans)
    return spans


def _across(broken: View, ends: set[int], every: AnchorPatterns) -> list[Span]:
    """Find secrets that only appear where lines were joined. ``ends`` are where secrets found without joining end.

    A word at the beginning of the next line is no part of a secret, least of all after one that was complete without it.
    """
    found: list[Span] = []
    for start, end, kind in _plain(broken.raw, every, spoken=False):
        if kind == UNKNOWN or not broken.touched(start, end):
            continue  # two joined words may look random
        piece, seam = broken.behind(start, end)
        complete = seam in ends
        if digits(piece) or not ((complete and len(piece) < 4) or ((complete or len(piece) >= 8) and worded(piece))):
            found.append((*broken.origin(start, end), kind))
    return found


_PASSES = 8


def redact(text: str, *, of: int = 0) -> RedactedText:
    """Return ``text`` with each secret replaced by ``[redacted:<kind>]``.

    ``of``: the length of the text of which this is a part, as fewer words are weighed in a long one.
    Terminal escapes and invisible characters between plain ones are removed; everything else stays. Redacting twice changes
    nothing: the result was searched without a find.
    """
    text = clean(text)
    return _redacted(text, bare(text), of=of)


_innocent: set[tuple[str, bool]] = set()
_formerly_innocent: set[tuple[str, bool]] = set()
_MOST_INNOCENT = 2048
_LONGEST_INNOCENT = 4096
"""Texts in which nothing was found, up to this number and length: a transcript repeats many. The older half is dropped at once."""


def _find_or_recall(text: str, raw: bytes, places: list[tuple[int, int]], of: int) -> list[Span]:
    """Return `find` of ``raw``, which is ``text`` from `bare`, without searching a text again in which nothing was found."""
    global _innocent, _formerly_innocent
    known = (text, max(of, len(raw)) > LONG)
    if known in _innocent or known in _formerly_innocent:
        return []
    spans = find(raw, places, of=of)
    if not spans and len(text) <= _LONGEST_INNOCENT:
        if len(_innocent) >= _MOST_INNOCENT:
            _innocent, _formerly_innocent = set(), _innocent
        _innocent.add(known)
    return spans


def _redacted(text: str, raw: bytes, of: int = 0) -> RedactedText:
    """Redact a cleaned ``text``; ``raw`` is the same text from `bare`."""
    for _ in range(_PASSES):
        places = marks(text)
        spans = beside([*_find_or_recall(text, raw, places, of), *find_protected(text)], places)
        if not spans:
            return RedactedText(text)
        text = clean(_replaced(text, spans))
        raw = bare(text)
    return RedactedText(mark("text"))  # built to reveal another secret whenever one is removed


_ORDINARY_ID = lazy_regex(r"(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{1,64})(?::[0-9]{1,6})?|[a-z]{0,12}|[0-9]{0,19}")

_ONE_RUN = lazy_regex(r"[A-Za-z0-9_]{1,80}")
"""An id in one run of characters has no context that could reveal a secret, so only its own form counts."""


def redact_id(text: str) -> str:
    """Return ``text``, or if it holds a secret, an id made from its SHA-256, the same each time.

    An id that only looks random stays, since ids look like that.
    """
    if _ORDINARY_ID.fullmatch(text):
        return text
    spans: list[Span] = []
    if _ONE_RUN.fullmatch(text):
        find_tokens(text.encode(), spans, _opener(every_vendor()), every_vendor())
    else:
        spans = find(bare(text), []) if clean(text) == text else [(0, len(text), "text")]
    if all(kind == UNKNOWN for _, _, kind in spans) and not find_protected(text):
        return text  # ids normally look random
    return f"{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:24]}-redacted"


def redact_event(event: Event, known: dict[str, str] | None = None) -> Event:
    """Return the event redacted, or the event itself if there is nothing to remove.

    ``known`` caches texts with their redacted form and is extended by this event's texts: an agent often names the same files and
    repeats the same words.
    """
    known = {} if known is None else known
    text, command, path = (_let_through(part, known) if part else part for part in (event.text, event.command, event.path))
    ids = (event.id, event.session, event.parent, event.call, event.tool)
    redacted = tuple([part and (known.get(f"\0{part}") or _id(part, known)) for part in ids])
    if text == event.text and command == event.command and path == event.path and ids == redacted:
        return event
    id, session, parent, call, tool = redacted
    return replace(event, text=text, command=command, path=path, id=id, session=session, parent=parent, call=call, tool=tool)


def redact_result(read_result: ReadResult) -> RedactedResult:
    """Return a read result redacted, including the cursor's state. Passages are left whole: only hashes of them are stored."""
    session = read_result.session
    known: dict[str, str] = {}
    if session is not None:
        session = replace(
            session,
            id=redact_id(session.id),
            parent=redact_id(session.parent),
            title=_clean(session.title),
            branch=_clean(session.branch),
            cwd=_clean(session.cwd),
            project=_clean(session.project),
        )
    return RedactedResult(
        replace(
            read_result,
            session=session,
            events=tuple(redact_event(event, known) for event in read_result.events),
            problems=tuple(replace(problem, reason=redact(problem.reason)) for problem in read_result.problems),
            cursor=replace(read_result.cursor, carry=_clean_json(read_result.cursor.carry)),
        )
    )


def _clean(text: str) -> str:
    return redact(drop_private(text)) if text else text


def _clean_json(carry: str) -> str:
    """Redact each string by itself: the ids of calls and events among them do not look like secrets when alone."""
    try:
        return orjson.dumps(_clean_value(orjson.loads(carry))).decode() if carry else carry
    except orjson.JSONDecodeError:
        return _clean(carry)


def _clean_value(value: Any) -> Any:
    match value:
        case str():
            return _clean(value)
        case list():
            return [_clean_value(each) for each in value]
        case dict():
            return {key: _clean_value(each) for key, each in value.items()}
        case _:
            return value


def _id(text: str, known: dict[str, str]) -> str:
    redacted = known[f"\0{text}"] = redact_id(text)  # the same string is redacted differently as an id and as a text
    return redacted


def _let_through(text: str, known: dict[str, str]) -> str:
    """Return ``redact(drop_private(text))``, but clean only once if nothing is marked as private."""
    redacted = known.get(text)
    if redacted is None:
        plain = clean(text)
        raw = bare(plain)
        redacted = known[text] = redact(drop_private(text)) if b"private" in raw.lower() else _redacted(plain, raw)
    return redacted


def _replaced(text: str, spans: list[Span]) -> str:
    pieces: list[str] = []
    at = 0
    for start, end, kind in spans:
        pieces += (text[at:start], mark(kind))
        at = end
    return "".join((*pieces, text[at:]))
