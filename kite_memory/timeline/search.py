"""Search for events by their words and by where they belong."""

import math
import posixpath
import re
import sqlite3
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from types import MappingProxyType

from kite_memory.model.event import EventType
from kite_memory.text import lazy_regex
from kite_memory.text.display import clip_line
from kite_memory.text.error_signature import signatures
from kite_memory.text.stems import edits, stem
from kite_memory.timeline.cards import prompt_outcome, steps
from kite_memory.timeline.schema import Rows, next_of_backlog

_BACKLOG = 2_000
"""Events of an earlier schema indexed in one commit, which takes some fifty milliseconds."""
_TEXT = 4_000
_TERMS = 24
"""Only the first terms of a longer text are used; a known failure message is also found by its signature."""
_CORRECTED = 4
_COMMON = 2_000
"""A word that more events hold is not looked up by itself, only among events that hold the rare ones."""
_POSTINGS = 4_000
_COMMON_LOOKED_AT = 6
_MANY = 100_000
"""Beyond so many events most words of a query are common: whether one is, is asked before its events are read."""
_SHORTLIST = 150
"""This many texts are read again to be scored."""
_READ = 3_000
_SESSIONS = 50
_MONTHS = 240
_LEAST = 0.55
"""Least share of the query's weight for an answer: one of two equally rare words is only ``near``."""
_NUMBER = 0.25
"""Factor for the weight of a number: ports, lines and times differ from one occurrence to the next."""
_SNIPPET = 200
_ASKED, _CAME = 80, 150
_COVERED, _ADJACENT = 0.6, 0.25
_KNOWN_FAILURE = 0.3
_MEANT_TOO = 0.3
_WEIGHTS = {
    EventType.DECISION: 0.15,
    EventType.USER_MESSAGE: 0.12,
    EventType.ERROR: 0.12,
    EventType.TEST_RESULT: 0.12,
    EventType.ASSISTANT_MESSAGE: 0.1,
    EventType.RESUME_POINT: 0.08,
    EventType.COMMAND: 0.06,
    EventType.FILE_ACTION: 0.04,
    EventType.TOOL_RESULT: 0.02,
    EventType.TOOL_CALL: 0.0,
}
"""User messages count more than tool output; of the events of one call, the one with the outcome counts most."""
_FAILURES = frozenset({EventType.ERROR, EventType.TEST_RESULT})

_READ_LAST = 5_000
"""Only so many events are put in order of time where a query has no words."""
_WORD = lazy_regex(r"[^\W_]+")
_GAP = lazy_regex(r"[\W_]+")
_SPACELESS = lazy_regex("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_BLANKS = lazy_regex(r"[\s\x00-\x1f\x7f-\x9f]+")
_LINES = lazy_regex(r"[^\n]+")
_EMPTY_WORDS = """
a an and are as at be but by can did do does for from had has have how i if in is it its me my no not of on or our so that the
their then there these they this to us was we were what when where which who why will with you your
"""
_EMPTY = frozenset(_EMPTY_WORDS.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class EventQuery:
    """A query for events that hold most of the words of ``text`` and match every filter that is not empty.

    ``tool`` and ``file`` are names; ``file`` may include any number of its parent folders, and also matches failures whose text
    names the file. ``session`` is the prefix of an id. Without words, the latest matching events are found.
    """

    text: str = ""
    types: frozenset[EventType] = frozenset()
    tool: str = ""
    file: str = ""
    session: str = ""
    project: str = ""
    provider: str = ""
    status: str = ""
    since: datetime | None = None
    by_words: bool = True
    limit: int = 10

    @property
    def narrow(self) -> bool:
        """Whether the filters rule out most events."""
        return bool(self.types or self.tool or self.file or self.session or self.project or self.provider or self.since)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundEvent:
    """A found event: ``event`` is its row number, ``score`` is from 0 to 1.

    ``near`` is true where it holds too few of the words to count as an answer.
    """

    event: int
    score: float
    snippet: str
    near: bool = False


def index_backlog(database: sqlite3.Connection) -> None:
    """Index some events of an earlier schema, newest first."""
    if between := next_of_backlog(database, "unsearched", _BACKLOG):
        database.execute(
            "INSERT INTO told (rowid, words, marks) SELECT seq, words, marks FROM searchable WHERE seq >= ? AND seq < ?", between
        )


def find(rows: Rows, query: EventQuery, now: datetime, meant: Mapping[int, float] = MappingProxyType({})) -> list[FoundEvent]:
    """Return the best events, newest first among equals, with a bounded number of bounded queries.

    ``meant`` maps candidate events to the cosine between their embedding and the query's, from 0 to 1.
    """
    within = _within(rows, query, now)
    terms = _terms(query.text)
    if within is None or not (within or terms):
        return []
    if terms:
        asked = _weigh_terms(rows, within, terms if query.by_words else [])
        asked.known = _belonging(rows, within, _known_failures(rows, query.text)) if query.by_words else frozenset()
        belonging = _belonging(rows, within, meant)
        asked.leading_there = _prompts_leading_there(rows, query, within, meant.keys() - belonging)
        asked.meant = {event: meant[event] for event in belonging | asked.leading_there}
        shortlist = _shortlist(rows, within, asked)
    else:
        asked = _WeighedQuery()
        shortlist = _newest(rows, within, _SHORTLIST)
    return _weigh(rows, query, asked, shortlist)


@dataclass(slots=True)
class _Term:
    """A word of a query.

    ``about`` is the approximate number of events that hold it, ``newest`` are the last of them, and ``stem`` is roughly what the
    index stores for it.
    """

    word: str
    match: str
    stem: str
    newest: list[int] = field(default_factory=list)
    about: float = 0.0
    weight: float = 0.0


@dataclass(slots=True)
class _WeighedQuery:
    terms: list[_Term] = field(default_factory=list)
    held: dict[int, float] = field(default_factory=dict)
    """Total weight of the query's words that an event holds."""
    known: frozenset[int] = frozenset()
    meant: Mapping[int, float] = field(default_factory=dict)
    leading_there: frozenset[int] = frozenset()
    """Prompts that match a file or tool filter only by the events they led to."""

    @property
    def weight(self) -> float:
        return sum(term.weight for term in self.terms)


def corrected(rows: Rows, text: str, beginning: Callable[[str], list[tuple[str, int]]]) -> str:
    """Return the text with words that the index does not hold replaced by similar ones that it holds.

    ``beginning`` is `words_beginning` of the same index.
    """
    words = list(dict.fromkeys(word for word in _words(text[:_TEXT]) if word not in _EMPTY))[:_TERMS]
    plain = [word for word in words if len(word) > 3 and word.isascii() and word.isalpha()]
    unknown = [word for word in plain if not _is_held(rows, _quoted(word))]
    meant = {word: near for word in unknown[:_CORRECTED] if (near := _spelt(beginning, word))}
    return _WORD.sub(lambda found: meant.get(found.group().lower(), found.group()), text[:_TEXT]) if meant else text


def words_beginning(rows: Rows, start: str) -> list[tuple[str, int]]:
    """Return the words of the index that begin so, each with the number of events that hold it."""
    found = rows("SELECT term, doc FROM told_words WHERE term >= ? AND term < ?", (start, start + "\U0010ffff"))
    return [(word, events) for word, events in found if word.isalpha()]


def _spelt(beginning: Callable[[str], list[tuple[str, int]]], word: str) -> str:
    """Return the stem in the index that is closest to the word, the most common among equals; empty if none is close."""
    typed = stem(word)
    most = 1 if len(typed) < 8 else 2
    letters = set(typed)
    found: list[tuple[int, int, str]] = []
    for start in dict.fromkeys((typed[:2], typed[1::-1])):
        for near, events in beginning(start):
            if abs(len(near) - len(typed)) > most or len(letters.symmetric_difference(near)) > 2 * most:
                continue  # far cheaper to see than the edits themselves
            if (distance := edits(typed, near, most)) <= most:
                found.append((distance, -events, near))
    return min(found)[2] if found else ""


def _terms(text: str) -> list[_Term]:
    words = list(dict.fromkeys(_words(text[:_TEXT])))
    telling = [word for word in words if word not in _EMPTY] or words
    return [
        _Term(word=word, match=_quoted(word) + ("*" if _SPACELESS.search(word) else ""), stem=word[: max(4, len(word) - 3)])
        for word in telling[:_TERMS]
    ]


def _words(text: str) -> list[str]:
    """Return the words as the index has them.

    Letters unknown to the index's Unicode version become blanks, since the index would split the word there and then find nothing.
    """
    text = unicodedata.normalize("NFC", text).lower()
    if not text.isascii():
        text = "".join(char if char.isascii() or unicodedata.ucd_3_2_0.category(char)[0] in "LN" else " " for char in text)
    return [word for word in _WORD.findall(text) if len(word) <= 64]


def _weigh_terms(rows: Rows, within: Sequence[str], terms: list[_Term]) -> _WeighedQuery:
    ((newest,),) = rows("SELECT COALESCE(MAX(seq), 0) FROM events", ())
    for term in terms:
        wanted = (*within, term.match)
        oldest = _last_but(rows, wanted, _COMMON - 1) if newest > _MANY else 0
        term.newest = [] if oldest else _read_last(rows, wanted, _COMMON)
        count = _COMMON if oldest else len(term.newest)
        term.about = count if count < _COMMON else max(_COMMON, count * newest / (newest - (oldest or term.newest[-1]) + 1))
        term.weight = math.log(1 + (newest + 10) / (term.about + 1)) * (_NUMBER if term.word.isdigit() else 1.0)
    return _WeighedQuery(terms=sorted(terms, key=lambda term: term.about))


def _shortlist(rows: Rows, within: Sequence[str], asked: _WeighedQuery) -> list[int]:
    """Return the events with the highest weight of query words.

    If all words are common, the newest events that hold all of them, or the rarest two, or one.
    """
    present = [term for term in asked.terms if term.about]
    rare: list[_Term] = []
    postings = 0.0
    for term in present:
        if term.about >= _COMMON or (rare and postings + term.about > _POSTINGS):
            break
        rare.append(term)
        postings += term.about
    held = asked.held
    for term in rare:
        _add(held, term, term.newest)
    common = present[len(rare) :][:_COMMON_LOOKED_AT]
    if rare:
        any_rare = _any_of(term.match for term in rare)
        for term in common:
            _add(held, term, _newest(rows, (*within, any_rare, term.match), _POSTINGS))
    elif common:
        for together in (common, common[:2], common[:1]):
            for event in _newest(rows, (*within, *(term.match for term in together)), _SHORTLIST):
                held.setdefault(event, sum(term.weight for term in together))
            if len(held) >= _SHORTLIST // 4:
                break
    for event in (*asked.known, *asked.meant):
        held.setdefault(event, 0.0)
    sure = asked.known.union(asked.meant)
    ordered = [event for _, event in sorted(zip(held.values(), held, strict=True), reverse=True)]
    return [*(event for event in ordered if event in sure), *(event for event in ordered if event not in sure)][:_SHORTLIST]


def _add(held: dict[int, float], term: _Term, events: Iterable[int]) -> None:
    for event in events:
        held[event] = held.get(event, 0.0) + term.weight


def _known_failures(rows: Rows, text: str) -> list[int]:
    """Return the newest events that raised the failure in ``text``, if it is one."""
    found: list[int] = []
    for signature in signatures(text[:_TEXT], 3):
        raised = rows(
            "SELECT event FROM raised WHERE signature = (SELECT key FROM signatures WHERE text = ?) ORDER BY event DESC LIMIT ?",
            (signature, _SHORTLIST // 4),
        )
        found += (event for (event,) in raised)
    return found


def _belonging(rows: Rows, within: Sequence[str], events: Collection[int]) -> frozenset[int]:
    if not (events and within):
        return frozenset(events)
    kept = rows(
        "SELECT rowid FROM told WHERE told MATCH ? AND rowid IN (SELECT value FROM json_each(?))", (_all_of(*within), _json(events))
    )
    return frozenset(event for (event,) in kept)


def _prompts_leading_there(rows: Rows, query: EventQuery, within: Sequence[str], prompts: Collection[int]) -> frozenset[int]:
    if query.types or not (query.tool or query.file):
        return frozenset()
    return frozenset(prompt for prompt in prompts if _belonging(rows, within, steps(rows, prompt)))


def _read_last(rows: Rows, wanted: Sequence[str], limit: int) -> list[int]:
    """Return the events that were read last, the last first."""
    found = rows("SELECT rowid FROM told WHERE told MATCH ? ORDER BY rowid DESC LIMIT ?", (_all_of(*wanted), limit))
    return [event for (event,) in found]


def _last_but(rows: Rows, wanted: Sequence[str], count: int) -> int:
    """Return the event that was read just before the last ``count`` matching ones, 0 if there are no more of them."""
    found = rows("SELECT rowid FROM told WHERE told MATCH ? ORDER BY rowid DESC LIMIT 1 OFFSET ?", (_all_of(*wanted), count))
    return found[0][0] if found else 0


def _newest(rows: Rows, wanted: Sequence[str], limit: int) -> list[int]:
    """Return the newest events among those read last: an old transcript may have been read after a new one.

    If there are fewer than ``limit``, these are all, in no order: looking up the time of each takes most of a search.
    """
    found = _read_last(rows, wanted, limit)
    if len(found) < limit:
        return found
    query = (
        "SELECT e.seq FROM (SELECT rowid FROM told WHERE told MATCH ? ORDER BY rowid DESC LIMIT ?) AS t"
        " CROSS JOIN events AS e ON e.seq = t.rowid ORDER BY e.at DESC, e.seq DESC LIMIT ?"
    )
    return [event for (event,) in rows(query, (_all_of(*wanted), max(limit, _READ_LAST), limit))]


def _is_held(rows: Rows, wanted: str) -> bool:
    return bool(rows("SELECT 1 FROM told WHERE told MATCH ? LIMIT 1", (wanted,)))


def _weigh(rows: Rows, query: EventQuery, asked: _WeighedQuery, shortlist: Sequence[int]) -> list[FoundEvent]:
    """Read the texts of the shortlist again and score them: adjacent words count more than the same words apart.

    Only the best event of one call, and of one text in a session, is returned.
    """
    best: dict[tuple[str, str], tuple[bool, float, str, int, str]] = {}

    def covered(event: int) -> float:
        return asked.held.get(event, 0.0) / asked.weight if asked.terms else float(not asked.meant)

    enough = [event for event in shortlist if event in asked.known or event in asked.meant or covered(event) >= _LEAST]
    nearest = [event for event in shortlist if event not in enough][: 2 * query.limit] if len(enough) < query.limit else []
    pairs = list(pairwise(_words(query.text[:_TEXT])[:_TERMS]))
    for event, at, type, session, call, path, status, text in rows(
        "SELECT seq, at, type, session, call, path, status, SUBSTR(text || IIF(command IN ('', text), '', ' ' || command), 1, ?)"
        " FROM events WHERE seq IN (SELECT value FROM json_each(?)) AND id NOT IN (SELECT event FROM let_go)",
        (_READ, _json([*enough, *nearest])),
    ):
        if query.since and datetime.fromisoformat(at) < query.since:
            continue
        if query.status and status != query.status:
            continue
        if query.file and event not in asked.leading_there and not _is_of(query.file, path, type, text):
            continue
        known, meant, coverage, sure = event in asked.known, asked.meant.get(event, 0.0), covered(event), event in enough
        adjacent = share_adjacent(pairs, text) if pairs and asked.terms else coverage
        worded = _COVERED * coverage + _ADJACENT * adjacent + _KNOWN_FAILURE * known
        score = max(worded, meant) + _MEANT_TOO * min(worded, meant) + _WEIGHTS[EventType(type)]
        shown = f"{text} {path}".strip() if path and len(text) < _SNIPPET else text
        same = (f"{session} call", call) if call else (f"{session} text", shown)
        best[same] = max(best.get(same, (False, 0.0, "", 0, "")), (sure, round(min(1.0, score), 3), at, event, shown))
    by_score = bool(asked.terms or asked.meant)
    ordered = sorted(best.values(), key=lambda each: (each[0], each[1] if by_score else 0.0, each[2], each[3]), reverse=True)
    stems = [term.stem for term in asked.terms]
    return [
        FoundEvent(
            event=event,
            score=score,
            snippet=(event in asked.meant and _prompt_with_outcome(rows, event)) or snippet(shown, stems),
            near=not sure,
        )
        for sure, score, _, event, shown in ordered[: max(0, query.limit)]
    ]


def _prompt_with_outcome(rows: Rows, event: int) -> str:
    """Return a prompt found by its embedding with what came of it, in one line."""
    found = prompt_outcome(rows, event)
    return f"{clip_line(found.prompt, _ASKED)} → {clip_line(found.came, _CAME)}" if found is not None else ""


def share_adjacent(pairs: Sequence[tuple[str, str]], text: str) -> float:
    """Return the share of the pairs of words that follow each other somewhere in the text."""
    lowered = text.lower()
    return sum(_are_adjacent(lowered, *pair) for pair in pairs) / len(pairs)


def _are_adjacent(text: str, one: str, other: str) -> bool:
    """Return whether a word that begins with ``other`` follows ``one`` somewhere.

    The text is not taken apart into words, since that would take longer than the rest of a query.
    """
    at = text.find(one) if other in text else -1
    while at >= 0:
        end = at + len(one)
        gap = _GAP.match(text, end)
        if gap is not None and not (at and text[at - 1].isalnum()) and text.startswith(other, gap.end()):
            return True
        at = text.find(one, end)
    return False


def query_stems(text: str) -> list[str]:
    """Return roughly what the index stores for the words of a query, to look for them in a text."""
    return [term.stem for term in _terms(text)]


def share_held(text: str, stems: Sequence[str]) -> float:
    lowered = text.lower()
    return sum(stem in lowered for stem in stems) / max(1, len(stems))


def snippet(text: str, stems: Sequence[str]) -> str:
    """Return the line that holds most of the words, from a little before the first of them."""
    best, held = "", -1
    for found in _LINES.finditer(text):
        line = found.group().lower()
        if (count := sum(stem in line for stem in stems)) > held:
            best, held = found.group(), count
    start = 0
    if len(best) > _SNIPPET:
        lowered = best.lower()
        start = max(0, min((place for stem in stems if (place := lowered.find(stem)) >= 0), default=0) - _SNIPPET // 4)
    shown = _BLANKS.sub(" ", best[start : start + _SNIPPET]).strip()
    return ("…" if start else "") + shown + ("…" if start + _SNIPPET < len(best) else "")


def _within(rows: Rows, query: EventQuery, now: datetime) -> list[str] | None:
    """Return the index expressions that the filters require; ``None`` if nothing can match."""
    wanted: list[str] = []
    if query.types:
        wanted.append(_any_of(_type_mark(type) for type in sorted(query.types)))
    if query.session:
        found = rows(
            "SELECT key FROM sessions WHERE id >= ? AND id < ? LIMIT ?", (query.session, query.session + "\U0010ffff", _SESSIONS)
        )
        if not found:
            return None
        wanted.append(_any_of(_mark("s", str(key)) for (key,) in found))
    if query.project:
        wanted.append(_mark("p", _hex(query.project)))
    if query.provider:
        wanted.append(_mark("a", _hex(query.provider)))
    if query.tool:
        parts = [re.sub(r"[_-]", "", part) for part in _ascii_lower(query.tool).split("__")]
        words = [word for part in parts for word in _words(f"xc{part}x")]
        wanted += map(_quoted, words)
    if query.file:
        wanted.append(_of_file(rows, query.file))
    if query.since and (months := _months(query.since, now)):
        wanted.append(_any_of(_mark("m", month) for month in months))
    return wanted


def _of_file(rows: Rows, file: str) -> str:
    """Return an expression for events of a file and failures that name it; for an unknown file, of paths with its words."""
    name = _asked_path(file).rpartition("/")[2]
    mark = _any_of(dict.fromkeys(_mark("f", _hex(unicodedata.normalize(form, name))) for form in ("NFC", "NFD")))
    words = [_quoted(word) for word in _words(name)[:_TERMS]]
    if not words:
        return mark
    failures = _any_of(_type_mark(type) for type in sorted(_FAILURES))
    if not _is_held(rows, mark):
        return _all_of(*words)
    return _any_of((mark, _all_of(failures, *words)))


def _is_of(file: str, path: str, type: str, text: str) -> bool:
    wanted, there = _asked_path(file), _slashed(path)
    if there == wanted or there.endswith("/" + wanted):
        return True
    if not path:
        return type in _FAILURES and wanted in _slashed(text)
    return "." not in wanted and wanted in there


def _months(since: datetime, now: datetime) -> list[str]:
    """Return the months from ``since`` to the next one, for clocks that are ahead.

    Empty for very many, which would exclude nothing.
    """
    first, last = since.year * 12 + since.month - 1, now.year * 12 + now.month
    return [f"{month // 12:04}{month % 12 + 1:02}" for month in range(first, last + 1)] if last - first < _MONTHS else []


def _mark(kind: str, name: str) -> str:
    return _quoted(f"x{kind}{name}x".lower())


def _type_mark(type: EventType) -> str:
    return _mark("t", type.value.replace("_", ""))


def _hex(name: str) -> str:
    return name.encode("utf-8", "replace").hex()


def _slashed(path: str) -> str:
    return _ascii_lower(unicodedata.normalize("NFC", path.replace("\\", "/")).strip("/"))


def _asked_path(file: str) -> str:
    """Return the path of a query, which a shell may have completed to ``./file``."""
    return _slashed(posixpath.normpath(_slashed(file))) if _slashed(file) else ""


def _ascii_lower(text: str) -> str:
    """Lowercase ASCII letters only, as SQLite does."""
    return text.translate(_LOWER)


_LOWER = {ord(char): char.lower() for char in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}


def _json(numbers: Iterable[int]) -> str:
    return f"[{','.join(map(str, numbers))}]"


def _quoted(word: str) -> str:
    """Quote a word so that FTS5 takes nothing in it as query syntax."""
    return '"' + word.replace('"', '""') + '"'


def _all_of(*wanted: str) -> str:
    return " AND ".join(wanted)


def _any_of(wanted: Iterable[str]) -> str:
    return "(" + " OR ".join(wanted) + ")"
