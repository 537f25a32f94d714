"""Store of sessions, events and read positions in one SQLite file; events and positions are committed together."""

import hashlib
import re
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from kite_memory.model.event import Event, EvidenceReference, RedactedResult, Session
from kite_memory.timeline import cards, conversations, passages, search
from kite_memory.timeline.conversations import CardQuery, ConversationEmbedder, Talk
from kite_memory.timeline.fixes import KnownFixes, sign_backlog
from kite_memory.timeline.rows import SELECT_EVENT_FIRST, ReadFiles, StoredEvents, event_of
from kite_memory.timeline.schema import TimelineDatabase
from kite_memory.timeline.search import EventQuery
from kite_memory.timeline.summaries import Sessions
from kite_memory.timeline.writing import ForgottenEvents, save_read_result

if TYPE_CHECKING:
    from kite_memory.timeline.conversations import Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class EventHit:
    """An event found by a search.

    ``score`` is from 0 to 1. ``snippet`` is a part of one line of the event. ``near`` is true where the event holds too few of the
    query's words to count as an answer.
    """

    event: Event
    session: Session
    score: float
    snippet: str
    near: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CardHit:
    """A turn found by a search: the ``prompt``, and the ``answer`` that closed it.

    ``telling`` is whichever of the two holds more of the query's words. ``later`` is the prompt of a later conversation about the
    same matter. ``bm25`` is the raw score, ``meaning`` a cosine, and ``covered`` the share, weighted by rarity, of the query's
    words that the card holds.
    """

    prompt: Event
    answer: Event
    telling: Event
    session: Session
    score: float
    snippet: str
    bm25: float
    meaning: float
    covered: float
    later: Event | None = None


_HANDLE = re.compile(r"[0-9a-f]{8}")


class BundleVectors:
    """The embeddings of bundles, and how close they are to a text."""

    def __init__(self, database: TimelineDatabase, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock
        self._snapshot: conversations.VectorSnapshot | None = None
        self._nearness: tuple[object, conversations.Nearness | None] = (None, None)

    def near(self, text: str, meaning: ConversationEmbedder | None) -> conversations.Nearness | None:
        """Return how close bundles are to ``text``. Cached, since cards and events are searched for the same text."""
        if meaning is None:
            return None
        self._snapshot = vectors = conversations.read(self._database.all, self._snapshot)
        if vectors is None:
            return None
        asked = text, meaning.space, vectors.state
        known, near = self._nearness
        if known != asked:
            near = conversations.near(vectors, meaning, text)
            self._nearness = asked, near
        return near

    def embed(self, meaning: ConversationEmbedder, limit: int = 16, *, per_day: int = conversations.PER_DAY) -> int:
        """Embed some of the bundles that wait for a vector. Return how many were handled, 0 if there is nothing to do now."""
        now = datetime.fromtimestamp(self._clock(), UTC)
        with self._database.writing() as database:
            conversations.set_embedding_space(database, meaning.space)
        texts = {
            event: conversations.text_of(self._database.all, event)
            for event in conversations.events_to_embed(self._database.all, now, limit, per_day)
        }
        if not texts:
            return 0
        vectors = meaning.of_texts(list(texts.values()))
        with self._database.writing() as database:
            return conversations.save_vectors(database, texts, vectors, now)


_WORDS_KEPT = 40_000
_GROWN = 1.01


class _Spelling:
    """Corrects the words of a query. The last correction is kept, since cards and events are searched for the same text.

    Words of the index are kept, too, by their beginnings, since the index counts the holders of each whenever it lists them. They
    are read again when events have been forgotten or have grown by a hundredth.
    """

    def __init__(self, database: TimelineDatabase) -> None:
        self._database = database
        self._last: tuple[object, str] = (None, "")
        self._lock = threading.Lock()
        self._state = (0, 0)
        self._words: dict[str, list[tuple[str, int]]] = {}

    def corrected(self, text: str) -> str:
        asked = text, self._database.one("PRAGMA data_version")
        known, meant = self._last
        if known != asked:
            with self._lock:
                self._forget_outdated()
                meant = search.corrected(self._database.all, text, self._beginning)
            self._last = asked, meant
        return meant

    def _forget_outdated(self) -> None:
        ((newest, forgotten),) = self._database.all("SELECT MAX(seq), (SELECT COUNT(*) FROM let_go) FROM events")
        then, forgotten_then = self._state
        if forgotten != forgotten_then or not then <= (newest or 0) <= then * _GROWN:
            self._words.clear()
            self._state = newest or 0, forgotten

    def _beginning(self, start: str) -> list[tuple[str, int]]:
        words = self._words.pop(start, None)
        if words is None:
            words = search.words_beginning(self._database.all, start)
        self._words[start] = words
        while sum(map(len, self._words.values())) > _WORDS_KEPT and len(self._words) > 1:
            del self._words[next(iter(self._words))]
        return words


class _Search:
    """The parts of the timeline that a search reads."""

    def __init__(
        self,
        database: TimelineDatabase,
        events: StoredEvents,
        sessions: Sessions,
        vectors: BundleVectors,
        spelling: _Spelling,
        clock: Callable[[], float],
    ) -> None:
        self._database = database
        self._spelling = spelling
        self._events = events
        self._sessions = sessions
        self._vectors = vectors
        self._clock = clock


class EventSearch(_Search):
    """Search for single events, by words and by meaning."""

    def find(self, query: EventQuery, meaning: ConversationEmbedder | None = None) -> tuple[EventHit, ...]:
        """Return hits, best first, and the newest first among equals.

        With ``meaning``, bundles with a similar embedding are found too. The read lock is held for one query at a time.
        """
        now = datetime.fromtimestamp(self._clock(), UTC)
        query = replace(query, text=self._spelling.corrected(query.text))
        most = conversations.NEAREST_OF_SOME if query.narrow else conversations.NEAREST
        meant = near.best(most) if (near := self._vectors.near(query.text, meaning)) else {}
        if not (found := search.find(self._database.all, query, now, meant)):
            return ()
        events = self._events.numbered([each.event for each in found])
        sessions: dict[tuple[str, str], Session] = {}
        hits: list[EventHit] = []
        for each in found:
            if (event := events.get(each.event)) is None:
                continue
            key = (event.provider, event.session)
            if key not in sessions:
                if (session := self._sessions.get(*key)) is None:
                    continue  # forgotten since the search began
                sessions[key] = session
            hits.append(EventHit(event=event, session=sessions[key], score=each.score, snippet=each.snippet, near=each.near))
        return tuple(hits)

    def unsearched(self) -> int:
        """Return how many events of an earlier schema are not indexed yet. Every commit indexes some of them."""
        return sum(below for (below,) in self._database.all("SELECT below - 1 FROM unsearched"))


class StoredCards(_Search):
    """The cards of prompts with what came of them, and the conversations that hold them."""

    def find(self, query: CardQuery, meaning: ConversationEmbedder | None = None) -> tuple[CardHit, ...]:
        """Return the cards that `conversations.rank` finds, with their events."""
        query = replace(query, text=self._spelling.corrected(query.text))
        ranked = conversations.rank(self._database.all, query, self._vectors.near(query.meant or query.text, meaning))
        events = self._events.numbered([row for each in ranked for row in (each.match.prompt, each.match.answer, each.later)])
        stems = search.query_stems(query.text)
        hits: list[CardHit] = []
        for each in ranked:
            prompt, answer = events.get(each.match.prompt), events.get(each.match.answer)
            session = self._sessions.get(prompt.provider, prompt.session) if prompt is not None else None
            if prompt is None or answer is None or session is None:
                continue
            telling = max(answer, prompt, key=lambda event: search.share_held(event.text, stems))
            hits.append(
                CardHit(
                    prompt=prompt,
                    answer=answer,
                    telling=telling,
                    session=session,
                    score=each.score,
                    snippet=search.snippet(telling.text, stems),
                    bm25=each.match.bm25,
                    meaning=each.meaning,
                    covered=each.covered,
                    later=events.get(each.later),
                )
            )
        return tuple(hits)

    def talk(self, prompt: str, room: int = conversations.ROOM) -> Talk | None:
        """Return a summary of the conversation that holds the card of this prompt id; ``None`` if there is no such card."""
        card = self._database.one(
            "SELECT c.prompt, c.session FROM events AS e JOIN cards AS c ON c.prompt = e.seq WHERE e.id = ?", (prompt,)
        )
        return conversations.talk(self._database.all, card[0], card[1], room) if card is not None else None

    def turn(self, prompt: str) -> list[Event]:
        """Return the prompt and the answer of the card of this prompt id."""
        card = self._database.one(
            "SELECT c.prompt, c.answer FROM events AS e JOIN cards AS c ON c.prompt = e.seq WHERE e.id = ?", (prompt,)
        )
        events = self._events.numbered(list(dict.fromkeys(card))) if card is not None else {}
        return sorted(events.values(), key=lambda event: event.ordinal)

    def conversation(self, prompt: str) -> list[Event]:
        """Return the events said in that conversation, oldest first; of a long session, those of the card's turn and the next."""
        talk = self.talk(prompt)
        events = self._events.numbered(talk.whole) if talk is not None else {}
        return sorted(events.values(), key=lambda event: event.ordinal)

    def vectors(self, prompts: Sequence[str], space: str) -> dict[str, "Vector"]:
        """Return the stored vectors of those prompts, each with what came of it, by prompt id; nothing for another space."""
        return conversations.stored_vectors(self._database.all, prompts, space)

    def opening_threshold(self, project: str) -> float | None:
        """Return the least score of an opening about an earlier conversation, as `conversations.opening_threshold` last computed
        it.
        """
        row = self._database.one("SELECT bar FROM card_projects WHERE name = ?", (project,))
        return None if row is None else row[0]

    def prompt_of(self, citation: str) -> Event | None:
        """Return the prompt of the card whose prompt or answer the citation names."""
        reference = EvidenceReference.parse(citation)
        for event in self._events.evidence(reference) if reference is not None else []:
            row = self._database.one(
                "SELECT c.prompt FROM events AS e JOIN cards AS c ON c.session = e.session AND e.seq IN (c.prompt, c.answer)"
                " WHERE e.id = ?",
                (event.id,),
            )
            if row is not None:
                return self._events.numbered([row[0]]).get(row[0])
        return None

    def prompts_called(self, handle: str) -> list[Event]:
        """Return the prompts, at most two, of cards whose event ids begin with these eight characters."""
        if not _HANDLE.fullmatch(handle):
            return []
        rows = self._database.all(
            SELECT_EVENT_FIRST + " WHERE e.id >= ? AND e.id < ? AND EXISTS (SELECT 1 FROM cards WHERE prompt = e.seq) LIMIT 2",  # noqa: S608
            (handle, handle + "\U0010ffff"),
        )
        return [event_of(row) for row in rows]

    def rebuild(self, limit: int = 40) -> int:
        """Make cards as `cards.rebuild_cards` does, and refresh the opening thresholds of projects that grew."""
        now = datetime.fromtimestamp(self._clock(), UTC)
        with self._database.writing() as database:
            looked_at = cards.rebuild_cards(database, now, limit)
            conversations.refresh_opening_thresholds(database)
            return looked_at


class Timeline:
    """The store of sessions and events, safe to use from several threads. Each subject has a part of its own.

    Writes are serialized by a lock on the write connection. Readers share a connection of their own and never wait for the writer.
    After `commit` returns, a line cannot be lost even if the agent deletes its transcript; before that, nothing of the batch is
    visible. Opening raises `StateDamaged` or `StateNewer`.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._database = database = TimelineDatabase(path)
        self.files = ReadFiles(database)
        self.sessions = Sessions(database)
        self.events = StoredEvents(database)
        self.fixes = KnownFixes(database)
        self.forgotten = ForgottenEvents(database, path)
        self._passages = passages.IndexedPassages(database.all)
        self.vectors = BundleVectors(database, clock)
        spelling = _Spelling(database)
        self.search = EventSearch(database, self.events, self.sessions, self.vectors, spelling, clock)
        self.cards = StoredCards(database, self.events, self.sessions, self.vectors, spelling, clock)

    def close(self) -> None:
        self._database.close()

    def commit(self, read_results: Iterable[RedactedResult], provider: str) -> int:
        """Write the read results in one transaction, all or nothing, and return the number of new events.

        An event whose id is already stored, from whatever file, stays as first seen, unless the read result amends and the event
        belongs to the same session. If another line of the same file has the same id and a different content, both are kept.
        """
        with self._database.writing() as database:
            added = sum(save_read_result(database, read_result, provider, self._clock()) for read_result in read_results)
            sign_backlog(database)
            search.index_backlog(database)
            conversations.find_backlog(database)
            return added

    def provenance(self, project: str) -> passages.PassageLookup:
        """Return a lookup of who first said a text in the sessions of ``project``."""
        return self._passages.lookup(project)

    def identity(self) -> str:
        """Return what distinguishes this timeline from one that was made anew, whose rows have other numbers."""
        row = self._database.one("SELECT HEX(key) FROM passage_key")
        return "" if row is None else hashlib.sha256(row[0].encode()).hexdigest()[:16]

    def damage(self) -> list[str]:
        """Return SQLite's integrity errors, or how the forgotten events here and in their file disagree; empty if all is well."""
        found = [line for (line,) in self._database.all("PRAGMA integrity_check(20)") if line != "ok"]
        return found or self.forgotten.mismatches()
