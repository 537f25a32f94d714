"""Cards and events found by their embedding, the later conversations about the same matter, and how a conversation ended.

An event worth finding has a bundle: its text with the text around it, read from the events on demand. Only its vector is
stored.
"""

import json
import math
import re
import sqlite3
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from operator import neg
from typing import TYPE_CHECKING

from kite_memory.model.hit import FOREIGN_PROJECT, FULL_TERMS, MEANING_WEIGHT, SMALL_COLLECTION, WORDS_STEEPNESS
from kite_memory.text import lazy_regex
from kite_memory.text.display import clip_line
from kite_memory.text.stems import beginnings
from kite_memory.timeline import cards
from kite_memory.timeline.cards import CardTurn, Match, highest, prompt_outcome, turn_of, turns
from kite_memory.timeline.fixes import fix_of
from kite_memory.timeline.schema import BUNDLED, Rows, next_of_backlog, rows_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vector = npt.NDArray[np.float32]
    Vectors = npt.NDArray[np.float32]
    Floats = npt.NDArray[np.float64]


_BACKLOG = 5_000
"""Events of an earlier schema handled in one commit, which takes some milliseconds."""
PER_DAY = 2_000
"""Bundles of the backlog embedded in a day: some eighty seconds of processor time."""
_TEXT, _SAID, _SUMMARY = 700, 350, 1_200
_TELLING = 40
"""A shorter text («3 failed», «interrupted») is too much like many others."""
_QUIET = timedelta(minutes=10)
_OVER = timedelta(hours=3)
"""After this long without a line in the session, or in any case, a failure's fix has been recorded if it ever is."""
_FRESH = timedelta(days=2)
_RIPE = (
    "(e.at < ? OR s.committed_at < ? AND (e.type <> 'user_message' OR EXISTS ("
    " SELECT 1 FROM events AS n WHERE n.session = e.session AND n.ordinal > e.ordinal AND n.type = 'user_message')))"
)
_COMPARED = 60_000
"""A query is compared with this many of the newest vectors."""
_BLOCK = 4_096
NEAREST, NEAREST_OF_SOME = 20, 80
"""More are looked at where a filter rules out some of them."""
_FAINT_EVENT = 0.4
"""A lower cosine is no match."""
_SCALE = 127


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationEmbedder:
    """An embedder: its functions return rows of unit length or zeros. Vectors of one ``space`` can be compared with each other."""

    space: str
    of_texts: "Callable[[Sequence[str]], Vectors]"
    of_question: "Callable[[str], Vectors]"


def find_backlog(database: sqlite3.Connection) -> None:
    """Add rows for some of the bundles of an earlier schema, newest first."""
    if between := next_of_backlog(database, "unbundled", _BACKLOG):
        database.execute(f"INSERT OR IGNORE INTO bundles (event) {BUNDLED} AND seq >= ? AND seq < ?", between)


def set_embedding_space(database: sqlite3.Connection, space: str) -> None:
    """Set the current space. Vectors of another space are dropped, to be computed again."""
    found = database.execute("SELECT tag, version FROM space").fetchall()
    if [tag for tag, _ in found] != [space]:
        database.execute("UPDATE bundles SET vector = NULL, embedded = ''")
        database.execute("DELETE FROM space")
        database.execute("INSERT INTO space (tag, version) VALUES (?, ?)", (space, 1 + sum(version for _, version in found)))


def events_to_embed(rows: Rows, now: datetime, limit: int, per_day: int) -> list[int]:
    """Return the newest events that wait for a vector and whose surroundings are complete.

    Recent prompts come before the backlog, of which at most ``per_day`` are returned in a day. The result of a session's last
    prompt may take long: a command may run for an hour without output.
    """
    long_ago, quiet = (now - _OVER).isoformat(timespec="milliseconds"), (now - _QUIET).timestamp()
    fresh = rows(
        "SELECT b.event FROM sessions AS s"  # noqa: S608 - ours
        " CROSS JOIN events AS e ON e.session = s.key AND e.ordinal >= 0 AND e.type = 'user_message'"
        " CROSS JOIN bundles AS b ON b.event = e.seq WHERE s.last_at > ? AND b.vector IS NULL"
        f" AND {_RIPE} ORDER BY e.at DESC LIMIT ?",
        ((now - _FRESH).isoformat(timespec="milliseconds"), long_ago, quiet, limit),
    )
    if fresh:
        return [event for (event,) in fresh]
    ((today,),) = rows("SELECT COUNT(*) FROM bundles WHERE embedded = ?", (_day(now),))
    found = rows(
        "SELECT b.event FROM bundles AS b JOIN events AS e ON e.seq = b.event JOIN sessions AS s ON s.key = e.session"  # noqa: S608
        f" WHERE b.vector IS NULL AND {_RIPE} ORDER BY b.event DESC LIMIT ?",
        (long_ago, quiet, max(0, min(limit, per_day - today))),
    )
    return [event for (event,) in found]


def text_of(rows: Rows, event: int) -> str:
    """Return the text of the event and its surroundings, most important first; empty if it is not worth embedding."""
    for session, ordinal, type, text, command in rows(
        "SELECT session, ordinal, type, SUBSTR(text, 1, ?), SUBSTR(command, 1, ?) FROM events WHERE seq = ?",
        (_SUMMARY, _SAID, event),
    ):
        if type == "user_message":
            asked = prompt_outcome(rows, event, talk=_TELLING)
            return asked.text if asked is not None else ""
        if len(text) < _TELLING:
            return ""
        match type:
            case "decision":
                before = rows(
                    "SELECT SUBSTR(text, 1, ?) FROM events WHERE session = ? AND ordinal < ?"
                    " AND type IN ('user_message', 'assistant_message') ORDER BY ordinal DESC, seq DESC LIMIT 2",
                    (_SAID, session, ordinal),
                )
                parts = [text[:_TEXT], *(said for (said,) in before)]
            case "error" | "test_result":
                parts = [text[:_TEXT], command]
                if fix := fix_of(rows, event):
                    parts += [
                        f"It went away with: {fix.worked[:_SAID]}",
                        *(step[:_SAID] for step in fix.steps),
                        " ".join(fix.files),
                    ]
            case _:
                parts = [text]
        return "\n".join(part for part in parts if part)
    return ""


def save_vectors(database: sqlite3.Connection, texts: dict[int, str], vectors: "Vectors", now: datetime) -> int:
    """Store the vectors of bundles whose text is unchanged, drop bundles with an empty text, and return how many were handled."""
    import numpy as np  # imported late: the daemon has loaded it anyway, and readers of events need not wait for it

    rows = rows_of(database)
    packed = np.rint(vectors * _SCALE).astype(np.int8)
    same = [(place, event) for place, (event, text) in enumerate(texts.items()) if text_of(rows, event) == text]
    kept = [(packed[place].tobytes(), _day(now), event) for place, event in same if texts[event]]
    database.executemany("UPDATE bundles SET vector = ?, embedded = ? WHERE event = ?", kept)
    database.executemany("DELETE FROM bundles WHERE event = ?", [(event,) for _, event in same if not texts[event]])
    database.execute("UPDATE space SET version = version + 1")
    return len(same)


def stored_vectors(rows: Rows, prompts: Sequence[str], space: str) -> "dict[str, Vector]":
    """Return the vectors of those events of the given ids that have one in this space."""
    import numpy as np

    found = rows(
        "SELECT e.id, b.vector FROM json_each(?) AS t CROSS JOIN events AS e ON e.id = t.value"
        " CROSS JOIN bundles AS b ON b.event = e.seq WHERE b.vector IS NOT NULL AND ? IN (SELECT tag FROM space)",
        (json.dumps(list(prompts)), space),
    )
    return {event: np.asarray(np.frombuffer(vector, np.int8) / _SCALE, np.float32) for event, vector in found}


@dataclass(frozen=True, slots=True)
class VectorSnapshot:
    """The newest vectors as read at one ``state``. Cached, since reading them takes longer than comparing them.

    ``seen`` is the connection's count of others' changes to the database when the state was last compared.
    """

    seen: int
    state: tuple[str, int, int]
    events: tuple[int, ...]
    codes: "npt.NDArray[np.int8]"


def read(rows: Rows, before: VectorSnapshot | None) -> VectorSnapshot | None:
    """Return the newest vectors, or ``before`` itself if nothing has changed; ``None`` if there are no vectors."""
    ((seen,),) = rows("PRAGMA data_version", ())
    if before is not None and before.seen == seen:
        return before
    found = rows("SELECT tag, version, (SELECT COUNT(*) FROM bundles WHERE embedded <> '') FROM space", ())
    if not found or not found[0][2]:
        return None
    if before is not None and before.state == found[0]:
        return replace(before, seen=seen)
    import numpy as np

    kept = rows("SELECT event, vector FROM bundles WHERE vector IS NOT NULL ORDER BY event DESC LIMIT ?", (_COMPARED,))
    codes = np.frombuffer(b"".join(vector for _, vector in kept), np.int8)
    return (
        VectorSnapshot(seen=seen, state=found[0], events=tuple(event for event, _ in kept), codes=codes.reshape(len(kept), -1))
        if kept
        else None
    )


@dataclass(frozen=True, slots=True)
class Nearness:
    """Cosines between one text and bundles. ``events`` are row numbers, in descending order, ``codes`` the bundles' own vectors."""

    events: tuple[int, ...]
    cosines: "Vectors"
    codes: "npt.NDArray[np.int8]"

    def best(self, most: int, least: float = _FAINT_EVENT) -> dict[int, float]:
        places = highest(self.cosines, most, least)
        return {self.events[place]: float(self.cosines[place]) for place in places.tolist()}

    def of(self, events: Iterable[int]) -> dict[int, float]:
        """Return the cosines of those of ``events`` that have a vector."""
        found: dict[int, float] = {}
        for event in events:
            if (place := self._place(event)) is not None:
                found[event] = float(self.cosines[place])
        return found

    def between(self, one: int, other: int) -> float:
        """Return the cosine between two events, 0 if one of them has no vector."""
        import numpy as np

        places = self._place(one), self._place(other)
        if places[0] is None or places[1] is None:
            return 0.0
        first, second = (self.codes[place].astype(np.float32) for place in places)
        return float(first @ second) / _SCALE**2

    def _place(self, event: int) -> int | None:
        place = bisect_left(self.events, -event, key=neg)
        return place if place < len(self.events) and self.events[place] == event else None


def near(vectors: VectorSnapshot, meaning: ConversationEmbedder, text: str) -> Nearness | None:
    """Return the cosines between ``text`` and all vectors; ``None`` if the text is blank or the vectors belong to another space."""
    if not text.strip() or vectors.state[0] != meaning.space:
        return None
    import numpy as np

    question, codes = meaning.of_question(text), vectors.codes
    blocks = [codes[at : at + _BLOCK].astype(np.float32) @ question for at in range(0, len(codes), _BLOCK)]
    return Nearness(events=vectors.events, cosines=np.asarray(np.concatenate(blocks) / _SCALE, np.float32), codes=codes)


def _day(now: datetime) -> str:
    return now.date().isoformat()


_AS_NEAR = 80
_FAINT = 0.2
"""A card that shares no word with the query and has a lower cosine than this is not a candidate."""
_OF_A_SESSION = 2
"""Most cards of one session in an answer; a third would mostly repeat the others."""

_FOLLOWED, _COMPARED_WITH = 2, 10
"""Number of the best sessions for which a later conversation about the same matter is looked up, and of cards it may be among."""
_AS_GOOD, _LESS_COVERED = 0.8, 0.25
"""A later conversation answers a query, too, with this share of the older one's score, or if it covers at most this much less."""
_SAME_MATTER, _SAME_MATTER_CUED = 0.25, 0.2
"""Least share of a conversation's score that a later one must reach to be about its matter; less where its text announces a change.

In the labelled pairs of one matter this share is .23 to .33, in other pairs of a project .29 at most.
"""
_SAME_MATTER_NEAR, _ALSO_ASKED = 0.12, 0.55
"""A later conversation may share this little if its vector is near, too, and it reaches this share of the older one's score."""
_NEAR, _NEAR_RULING = 0.5, 0.4
"""Least cosine of the two; less where the user replied at some length in the later one, so that something was settled in it."""
_RULING_WORDS = 6
_CUE = lazy_regex(
    r"\b(?:amend\w*|chang(?:e|es|ed|ing)|instead|no longer|not? any ?more|anymore|overrul\w*|overrid\w*|replac\w*|revers\w*"
    r"|revert\w*|revisit\w*|reconsider\w*|supersed\w*|swap\w*|scrap\w*|we settled|settled on|second thought|was (?:naive|wrong)"
    r"|turned out|from now on|the rest stays|stays? as (?:is|it was)|(?:old|earlier|previous|former) (?:rule|plan|decision|one)s?"
    r"|previously|now (?:also|adds?|is|are|only|uses?)|forget (?:it|that|about)|(?:bring|put|take|switch|go)\b[^.\n]{0,30} back"
    r"|back to|drop\b[^.\n]{0,30} again)\b",
    re.IGNORECASE,
)
_READ = 3_000

_TALK = 6
"""A session of at most this many turns is one conversation that ends with the session; in a longer one, each turn is its own."""
_LAST_WORDS = 3
_SENTENCE_END = lazy_regex(r"(?<=[.!;])\s+")
_ASSENT = lazy_regex(
    r"\W{0,3}(?:ok(?:ay)?|yes|yep|fine|thanks?|thx|works|great|good|nice|perfect|lol|sure|done|cool)\b", re.IGNORECASE
)
_LINKED = lazy_regex(r"\A(?:and|but|so|then|also)\s+", re.IGNORECASE)
_OPENING = 160
ROOM: int = 560
"""Characters of a quote, together less than two hundred tokens."""
_OPENINGS = 60
_FEWEST_OPENINGS = 4
_PERCENTILE = 0.95
_GROWN = 1.1
_BARS_AT_ONCE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A card that answers a query, by rows. ``later`` is the prompt of a later conversation about its matter, or 0."""

    match: Match
    score: float
    meaning: float
    covered: float = 0.0
    later: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """A conversation in a few lines: its opening, how it ended, and the sentences with which the user settled something after
    the card's turn, the last one first.

    ``whole`` are the rows of what was said in it.
    """

    opening: str
    ended: str
    settled: tuple[str, ...]
    whole: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CardQuery:
    """A query for cards.

    ``project`` is where the query comes from; ``within`` restricts the answer to one project. ``session`` is the prefix of a
    session id; ``besides`` is the id of a session to leave out. Cards that score below ``least`` are left out. ``meant`` is what to
    compare by meaning, as it was written; without it, that is ``text`` with its spelling corrected.
    """

    text: str
    meant: str = ""
    project: str = ""
    within: str = ""
    session: str = ""
    besides: str = ""
    provider: str = ""
    since: datetime | None = None
    by_words: bool = True
    least: float = 0.0
    limit: int = 10


def rank(rows: Rows, query: CardQuery, near: Nearness | None = None) -> list[Ranked]:
    """Return the cards that answer best; where two are about one matter, the newer comes first."""
    within = query.within or None
    matches = cards.find(rows, query.text, project=within, limit=_AS_NEAR) if query.by_words else []
    meant: dict[int, float] = {}
    if near is not None:
        meant = near.best(_AS_NEAR, _FAINT)
        matches += cards.of_prompts(rows, meant.keys() - {match.prompt for match in matches}, within)
        meant = near.of(match.prompt for match in matches)
    terms = max((match.terms for match in matches), default=1)
    sessions = _sessions(rows, {match.session for match in matches})
    ranked = []
    for match in matches:
        where = sessions[match.session]
        if _is_wanted(where, query):
            meaning = max(0.0, meant.get(match.prompt, 0.0))
            score = MEANING_WEIGHT * meaning + (1 - MEANING_WEIGHT) * words_score(match.bm25, size=match.size, terms=terms)
            if query.project and where.project not in ("", query.project):
                score -= FOREIGN_PROJECT
            score = round(max(0.0, min(1.0, score)), 4)
            if score >= query.least:
                ranked.append(Ranked(match=match, score=score, meaning=meaning, covered=match.covered))
    ranked.sort(key=lambda each: (-each.score, -each.match.prompt))
    taken: dict[int, int] = {}
    chosen = []
    for each in ranked:
        taken[each.match.session] = taken.get(each.match.session, 0) + 1
        if taken[each.match.session] <= _OF_A_SESSION:
            chosen.append(each)
    return newest_first(rows, chosen[: max(query.limit, _COMPARED_WITH)], sessions, near)[: query.limit]


def _is_wanted(where: "_Session", query: CardQuery) -> bool:
    return (
        where.id.startswith(query.session)
        and query.provider in ("", where.provider)
        and not (query.besides and where.id == query.besides)
        and (query.since is None or datetime.fromisoformat(where.last) >= query.since)
    )


def words_score(bm25: float, *, size: int, terms: int) -> float:
    """Return the word score from 0 to 1, computed like `recall.search.words_score`."""
    fair = bm25 * min(1.0, FULL_TERMS / max(1, terms))
    return 1 - math.exp(-fair / (WORDS_STEEPNESS * math.log(1 + max(size, SMALL_COLLECTION))))


@dataclass(frozen=True, slots=True)
class _Session:
    id: str
    provider: str
    project: str
    started: str
    last: str


def _sessions(rows: Rows, keys: Collection[int]) -> dict[int, _Session]:
    return {
        key: _Session(*rest)
        for key, *rest in rows(
            "SELECT s.key, s.id, s.provider, s.project, s.started, s.last_at FROM json_each(?) AS t"
            " CROSS JOIN sessions AS s ON s.key = t.value",
            (json.dumps(sorted(keys)),),
        )
    }


def newest_first(
    rows: Rows, ranked: Sequence[Ranked], sessions: Mapping[int, _Session], near: Nearness | None = None
) -> list[Ranked]:
    """Put a later conversation that answers, too, before each of the best cards of its matter, and mark the older card with it.

    No card is left out. The later card takes the older one's figures where its own are lower. A turn of a long session is marked
    and stays in its place: it is one of many on its topic, and the last is seldom the one asked for. (Of labelled questions, the
    older turn was the answer in 110 cases, the later one in 24.)
    """
    ordered = list(ranked)
    for each in list(dict.fromkeys(one.match.session for one in ranked))[:_FOLLOWED]:
        place = next(at for at, one in enumerate(ordered) if one.match.session == each)
        older = ordered[place]
        newer = [one for one in ranked if sessions[one.match.session].started > sessions[each].last]
        answers = {
            one.match.session
            for one in newer
            if one.covered >= older.covered - _LESS_COVERED or one.score >= _AS_GOOD * older.score
        }
        also = {
            one.match.session: near.between(one.match.prompt, older.match.prompt)
            for one in reversed(newer)
            if near is not None and one.score >= _ALSO_ASKED * older.score
        }
        talk = _is_talk(rows, each)
        later = _later(rows, older.match, sessions[each], also) if talk else _last_near(newer, answers, also, sessions)
        if later is None:
            continue
        ordered[place] = replace(older, later=later.prompt)
        known = next((at for at, one in enumerate(ordered) if one.match.session == later.session), 0)
        if known <= place or later.session not in answers or not (talk and _is_talk(rows, later.session)):
            continue
        first = ordered.pop(known)
        ordered.insert(
            place,
            replace(
                first,
                score=max(first.score, older.score),
                meaning=max(first.meaning, older.meaning),
                covered=max(first.match.covered, older.covered),
            ),
        )
    return ordered


def _last_near(
    newer: Sequence[Ranked], answers: Collection[int], also: Mapping[int, float], sessions: Mapping[int, _Session]
) -> Match | None:
    """Return the card of the newest of the sessions that answer the same query and are near in meaning, or ``None``."""
    near = [one.match for one in newer if one.match.session in answers and also.get(one.match.session, 0.0) >= _NEAR]
    return max(near, key=lambda each: sessions[each.session].started, default=None)


def _later(rows: Rows, match: Match, where: _Session, also: Mapping[int, float]) -> Match | None:
    """Return the newest matching card of another session that began after this one ended, or ``None``.

    ``also`` are the sessions that answer the same query, with their cosine to this one.
    """
    text = _matter(rows, match)
    best: dict[int, Match] = {}
    for each in cards.find(rows, text, project=where.project, limit=_AS_NEAR, share=_SAME_MATTER_NEAR, of=match.card):
        best.setdefault(each.session, each)
    if (own := best.pop(match.session, None)) is None:
        return None
    near = [each for each in best.values() if each.bm25 >= _SAME_MATTER_NEAR * own.bm25]
    theirs = _sessions(rows, {each.session for each in near})
    newer = [
        each
        for each in near
        if theirs[each.session].started > where.last
        and (
            each.bm25 >= _SAME_MATTER * own.bm25
            or also.get(each.session, 0.0) >= _NEAR
            or (also.get(each.session, 0.0) >= _NEAR_RULING and _rules(rows, each.session))
            or (each.bm25 >= _SAME_MATTER_CUED * own.bm25 and _CUE.search(_matter(rows, each)))
        )
    ]
    return max(newer, key=lambda each: (theirs[each.session].started, each.bm25), default=None)


def _is_talk(rows: Rows, session: int) -> bool:
    ((count,),) = rows("SELECT COUNT(*) FROM cards WHERE session = ?", (session,))
    return bool(count <= _TALK)


def _rules(rows: Rows, session: int) -> bool:
    """Return whether the user replied in the session with more than a few words that are no question."""
    return any(
        len(turn.asked.split()) >= _RULING_WORDS and not turn.asked.rstrip().endswith(("?", "？"))
        for turn in turns(rows, session)[1:]
    )


def _matter(rows: Rows, match: Match) -> str:
    """Return the text of the card's conversation; of a long session, of the card's turn."""
    if not _is_talk(rows, match.session):
        return turn_of(rows, match.prompt, match.answer).text[:_READ]
    talked = turns(rows, match.session)
    return "\n".join(turn.text for turn in talked if len(talked) <= _TALK or turn.prompt == match.prompt)[:_READ]


def talk(rows: Rows, prompt: int, session: int, room: int = ROOM) -> Talk | None:
    """Return a summary of the conversation of a card; of a long session, of the turns around the card."""
    all_turns = turns(rows, session)
    if (at := next((place for place, turn in enumerate(all_turns) if turn.prompt == prompt), None)) is None:
        return None
    opening, closing = (all_turns[0], all_turns[-2:]) if len(all_turns) <= _TALK else (all_turns[at], all_turns[at : at + 2])
    return Talk(
        opening=clip_line(" ".join(opening.asked.split()), _OPENING),
        ended=_ended(closing, opening.asked, room),
        settled=_settled(all_turns[at], all_turns[at + 1 :] if len(all_turns) <= _TALK else closing[1:]),
        whole=_rows_of(all_turns if len(all_turns) <= _TALK else closing),
    )


def _settled(turn: CardTurn, later: Sequence[CardTurn]) -> tuple[str, ...]:
    """Return sentences with which the user settled something in the ``later`` turns, the last first.

    The next turn may say it in other words than the card's; a still later one may be about something else.
    """
    about = beginnings(turn.text)
    found: list[str] = []
    for place, each in reversed(list(enumerate(later))):
        if "?" in each.asked or "？" in each.asked or len(each.asked.split()) <= _LAST_WORDS:
            continue
        said = [part for part in _SENTENCE_END.split(" ".join(each.asked.split())) if len(part.split()) > 2]
        shared = [part for part in said if not about.isdisjoint(beginnings(part))]
        follows = place == 0 and len(turn.asked.split()) > _LAST_WORDS  # a card that is itself an answer was settled by it
        if not shared and follows and len(each.asked.split()) >= _RULING_WORDS and not _ASSENT.match(each.asked):
            shared = said
        found += [_LINKED.sub("", part) for part in shared[:1]]
    return tuple(found)


def _rows_of(shown: Sequence[CardTurn]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(row for turn in shown for row in (turn.prompt, turn.answer)))


def _ended(closing: Sequence[CardTurn], besides: str, most: int) -> str:
    """Return the closing turns in at most ``most`` characters. Prompts count more than answers, so they are cut last."""
    room = most - sum(min(len(turn.asked), most // 2) for turn in closing if turn.asked != besides)
    answers = [turn.answered for turn in closing if turn.answered]
    parts: list[str] = []
    for turn in closing:
        if turn.asked != besides:
            parts.append(f"you: {clip_line(' '.join(turn.asked.split()), most // 2)}")
        if turn.answered:
            share = max(60, room // max(1, len(answers)))
            parts.append(f"agent: {clip_line(' '.join(turn.answered.split()), share)}")
    return " / ".join(parts)


def opening_threshold(rows: Rows, project: str) -> float | None:
    """Return the score that an opening must exceed to count as about an earlier conversation.

    It is the 95th percentile of the project's own openings; ``None`` where there are too few.
    """
    opened = rows(
        "SELECT s.key, s.started, (SELECT MIN(c.prompt) FROM cards AS c WHERE c.session = s.key) AS first FROM sessions AS s"
        " WHERE s.project = ? AND first IS NOT NULL ORDER BY s.last_at DESC LIMIT ?",
        (project, _OPENINGS),
    )
    if len(opened) < _FEWEST_OPENINGS:
        return None
    scores = []
    for _, started, first in opened:
        ((text,),) = rows(f"SELECT SUBSTR(text, 1, {_READ}) FROM events WHERE seq = ?", (first,))  # noqa: S608 - ours
        found = cards.find(rows, text, project=project, limit=_AS_NEAR)
        began = {key: where.started for key, where in _sessions(rows, {match.session for match in found}).items()}
        scores.append(max((match.bm25 for match in found if began[match.session] < started), default=0.0))
    scores.sort()
    place = _PERCENTILE * (len(scores) - 1)
    low = int(place)
    high = min(low + 1, len(scores) - 1)
    return scores[low] + (place - low) * (scores[high] - scores[low])


def refresh_opening_thresholds(database: sqlite3.Connection) -> None:
    """Compute the thresholds again of projects whose number of cards changed enough since the last time."""

    rows = rows_of(database)
    grown = "SELECT key, name, cards FROM card_projects WHERE cards > ? * bar_of OR bar_of > ? * cards LIMIT ?"
    for key, name, count in rows(grown, (_GROWN, _GROWN, _BARS_AT_ONCE)):
        database.execute("UPDATE card_projects SET bar = ?, bar_of = ? WHERE key = ?", (opening_threshold(rows, name), count, key))
