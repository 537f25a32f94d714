"""Parsing of search queries, the JSON form of results, and the conversations that are added to a prompt's answer."""

import math
import sqlite3
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

from kite_memory.app.note_view import NoteView, became_of, known_project, note_json
from kite_memory.app.timeline_queries import since as since_began
from kite_memory.errors import KiteError, UsageError
from kite_memory.model.event import EventType
from kite_memory.model.hit import Hit, Pointer, Quote
from kite_memory.model.note import Note, NoteKind
from kite_memory.projects import project_of
from kite_memory.recall.catalogue import VisibleNotes
from kite_memory.recall.index import Index
from kite_memory.recall.lexical import essence
from kite_memory.recall.rendering import estimated_tokens, first_words
from kite_memory.recall.search import Mode, Query
from kite_memory.text.display import age, clip, clip_line
from kite_memory.text.quoting import plain_line
from kite_memory.text.stems import stems
from kite_memory.timeline.conversations import CardQuery, ConversationEmbedder, Talk
from kite_memory.timeline.history_queries import became, fix_of_quoted_failure
from kite_memory.timeline.search import EventQuery
from kite_memory.timeline.store import CardHit, EventHit, StoredCards, Timeline
from kite_memory.vault.known import KnownNotes

if TYPE_CHECKING:
    from kite_memory.timeline.conversations import Vector

Json = dict[str, Any]

_KINDS = {f"{kind.value}:": kind for kind in NoteKind}
_STATUSES = {
    "failed": "failed",
    "failing": "failed",
    "passed": "ok",
    "passing": "ok",
    "denied": "denied",
    "interrupted": "interrupted",
}
"""Words that filter by status after ``test:`` or ``tool:``. Elsewhere they are ordinary words."""
_TYPES = {"error:": EventType.ERROR, "test:": EventType.TEST_RESULT, "resume:": EventType.RESUME_POINT}
_NAMES = ("tool:", "file:", "session:")
_PREFIXES = (*_KINDS, *_TYPES, *_NAMES)
_SNIPPET = 240
_PLACE = 4_096
_MOST_HITS = 200
_CARDS_FIRST, _EVENTS_NEXT = 3, 2
_COVERED, _MEANT = 0.35, 0.4
_SHORT = 8
_AHEAD = 0.1
"""Score advantage that only decides between two results of about equal score."""


_NEXT_TURN = 0.6
"""Weight of a turn's vector in its conversation's, as a share of the turn's before: the opening names the topic best."""
_ABOUT, _SETTLED, _IS_SETTLED, _OTHERWISE = 14.0, 3.3, 0.4, -5.6
"""Weights of `answers`, fitted with the built-in embedder on `bench/cases/ask_development.jsonl` alone."""
_SURE_OF_A_CHAT = 0.48
"""Least probability of a conversation that is cited. With it, one of that set's twenty questions without an answer gets one."""
_SURE_OF_TALK = 0.6
"""Least probability of a conversation that is cited although the user settled nothing in it."""
_LIKELY_AND_FOUND = 0.91
"""Least sum of that probability and the search's score: a conversation that is merely likely must also be found for its words."""
_REPEATED, _REPEATED_WELL = 0.35, 0.6
"""Least share of a question's words, by their rarity, in a conversation: with a probability of `_PERHAPS`, and without."""
_PERHAPS = 0.15
_FOLLOWED = 20
"""Only for these many results is it looked up what became of them."""
_LEAST = 0.02
"""Scores below this are omitted beside higher ones. Of 480 labelled questions, every answer scores 0.17 and more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchedFor:
    """Parsed query: the words, and the filters of its prefixes. ``kinds`` filter notes, all others filter events."""

    words: str
    kinds: frozenset[NoteKind] = frozenset()
    types: frozenset[EventType] = frozenset()
    tool: str = ""
    file: str = ""
    session: str = ""
    status: str = ""

    @property
    def for_events(self) -> bool:
        return bool(self.types or self.tool or self.file or self.session)

    @property
    def notes(self) -> bool:
        """Return whether notes can be a result: filters by tool, file or session exclude them."""
        return not (self.tool or self.file or self.session) and (bool(self.kinds) or not self.types)

    @property
    def events(self) -> bool:
        """Return whether events can be a result. A search for decisions finds both."""
        return bool(self.types) or not self.kinds or NoteKind.DECISION in self.kinds

    @property
    def event_types(self) -> frozenset[EventType]:
        return self.types | ({EventType.DECISION} if NoteKind.DECISION in self.kinds else frozenset())


def searched_for(query: str) -> SearchedFor:
    """Parse a query. The name of a tool, file or session follows its prefix, with or without a space."""
    kinds: set[NoteKind] = set()
    types: set[EventType] = set()
    named = dict.fromkeys(_NAMES, "")
    words: list[str] = []
    awaited = ""
    for word in query.split():
        prefix = next((each for each in _PREFIXES if word.lower().startswith(each)), "")
        rest = word[len(prefix) :]
        if prefix in _NAMES:
            awaited = "" if rest else prefix
            named[prefix] = rest
            continue
        if prefix in _KINDS:
            kinds.add(_KINDS[prefix])
        elif prefix in _TYPES:
            types.add(_TYPES[prefix])
        if rest and awaited and not prefix:
            named[awaited], awaited = rest, ""
        elif rest:
            words.append(rest)
    went = ""
    if (types & {EventType.TEST_RESULT} or named["tool:"]) and (last := [word for word in words if word.lower() in _STATUSES][-1:]):
        went = _STATUSES[last[0].lower()]
        words.remove(last[0])
    return SearchedFor(
        words=" ".join(words),
        status=went,
        kinds=frozenset(kinds),
        types=frozenset(types),
        tool=named["tool:"],
        file=named["file:"],
        session=named["session:"],
    )


class SearchableNotes(Protocol):
    """What a search asks of `Recall`, or of `IndexedNotes` in a process that only searches."""

    def search(self, query: Query) -> tuple[Hit, ...]: ...

    def recent(self, *, project: str, kinds: Collection[NoteKind], limit: int, visible: VisibleNotes) -> list[Note]: ...

    @property
    def index(self) -> Index: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Searching:
    """The search operation, in the shape of the contract."""

    timeline: Timeline
    known: KnownNotes
    recall: SearchableNotes
    meaning: ConversationEmbedder | None
    note_view: NoteView
    clock: Callable[[], datetime]

    def operations(self) -> Mapping[str, Callable[..., Json]]:
        return {"search": self.search}

    def search(
        self, *, query: str, mode: str = "hybrid", project: str = "", since: str = "", limit: int = 10, cwd: str = ""
    ) -> Json:
        began = time.perf_counter()
        wanted = searched_for(query)
        if not (wanted.words or wanted.for_events or wanted.kinds):
            raise UsageError("there are no words to search for", hint="as in: kmem search decision: postgres")
        how, start, most = _mode(mode), age(since, self.clock()), max(1, min(limit, _MOST_HITS))
        within = known_project(self.known, project) if project else ""
        asked = _Asked(wanted=wanted, how=how, here=within or project_of(cwd), within=within, since=start, most=most)
        hits = self._notes(asked) if wanted.notes else ()
        found = self._passages(asked, hits) if wanted.events else []
        ranks = mixed(wanted.words, hits, found)
        return {
            "query": query,
            "mode": mode,
            "took_ms": since_began(began),
            "hits": [
                hit_json(hit) | {"rank": rank, "became": became_of(hit.note), "tier": tier_of(hit, wanted.words)}
                for hit, rank in zip(hits, ranks.notes, strict=True)
            ],
            "events": [
                passage_json(each) | {"rank": rank, "became": self._became(each) if rank <= _FOLLOWED else []}
                for each, rank in zip(found, ranks.passages, strict=True)
            ],
            "problems": self._problems(asked),
            "nothing_read": not (hits or found) and self.timeline.sessions.last(None) is None,
        }

    def search_passages(
        self,
        hits: Sequence[Hit],
        *,
        query: str,
        here: str,
        within: str,
        since: datetime | None,
        most: int,
        projects: Collection[str] | None = None,
    ) -> Json:
        """Return conversations and single events for a search that found these notes, and all ranks, as `search` does.

        ``projects`` are those whose passages may be returned, ``None`` for all.
        """
        wanted = searched_for(query)
        found: list[CardHit | EventHit] = []
        for project in (within,) if within or projects is None else sorted(projects):
            if wanted.events and (projects is None or project in projects):
                asked = _Asked(wanted=wanted, how="hybrid", here=here, within=project, since=since, most=most)
                found += self._passages(asked, hits)
        found = sorted(found, key=lambda each: -each.score)[:most] if not within and projects is not None else found
        ranks = mixed(wanted.words, hits, found)
        return {
            "notes": list(ranks.notes),
            "events": [passage_json(each) | {"rank": rank} for each, rank in zip(found, ranks.passages, strict=True)],
        }

    def _notes(self, asked: "_Asked") -> tuple[Hit, ...]:
        kinds, since = asked.wanted.kinds, asked.since
        if not asked.wanted.words:
            newest = self.recall.recent(project=asked.within, kinds=kinds, limit=asked.most, visible=VisibleNotes())
            return tuple(Hit(note=note, score=1.0, why="the newest") for note in newest if since is None or note.created >= since)
        query = Query(
            text=asked.wanted.words,
            mode=asked.how,
            project=asked.here,
            within=asked.within,
            since=since,
            kinds=kinds,
            limit=asked.most,
        )
        return worth_listing(self.recall.search(query))

    def _passages(self, asked: "_Asked", hits: Sequence[Hit]) -> list[CardHit | EventHit]:
        wanted, by_words = asked.wanted, asked.how != "semantic"
        meaning = self.meaning if asked.how != "keyword" else None
        cards: tuple[CardHit, ...] = ()
        if wanted.words and not (wanted.for_events or wanted.kinds):
            of_cards = CardQuery(
                text=wanted.words,
                project=asked.here,
                within=asked.within,
                since=asked.since,
                by_words=by_words,
                limit=asked.most,
            )
            cards = self.timeline.cards.find(of_cards, meaning)
        of_events = EventQuery(
            text=wanted.words,
            types=wanted.event_types,
            tool=wanted.tool,
            file=wanted.file,
            session=wanted.session,
            status=wanted.status,
            project=asked.within,
            since=asked.since,
            by_words=by_words,
        )
        events = self._events(of_events, meaning, hits, cards, asked.most)
        if not events and wanted.words and (wanted.file or wanted.types):
            latest = self.timeline.search.find(replace(of_events, text=""))
            events = [replace(each, near=True) for each in latest]
        return passages(cards, events, asked.most)

    def _events(
        self, query: EventQuery, meaning: ConversationEmbedder | None, hits: Sequence[Hit], cards: Sequence[CardHit], most: int
    ) -> list[EventHit]:
        """Return the events to list beside these cards, without those whose note is already among the hits.

        Cards leave room for a few. More are asked for where too many of these few are shown anyway.
        """
        rests_on = {reference for hit in hits for reference in hit.note.evidence}
        shown = {card.telling.id for card in cards}
        room = max(_EVENTS_NEXT, most - len(cards))
        for limit in (room + _EVENTS_NEXT, most + len(hits)):
            found = self.timeline.search.find(replace(query, limit=limit), meaning)
            events = [each for each in found if each.event.reference not in rests_on]
            has_all = len(found) < limit or found[-1].near  # those that are merely near come last
            if has_all or sum(each.event.id not in shown for each in events) >= room:
                break
        return events

    def _became(self, hit: CardHit | EventHit) -> list[str]:
        """Return what followed a passage, one line each."""
        if isinstance(hit, CardHit):
            later = hit.later
            return [f"came up again on {later.at:%Y-%m-%d} [{plain_line(later.reference)}]"] if later is not None else []
        return [plain_line(line, _SNIPPET) for line in became(self.timeline, hit.event)]

    def _problems(self, asked: "_Asked") -> list[str]:
        problems = [*self.note_view.index_problems(), *(problem.reason for problem in self.recall.index.status().problems)]
        within = asked.within
        if within and not (self.known.has_project(within) or self.timeline.sessions.count(project=within)):
            problems.append(f"no project called {plain_line(within)} is known")
        if not (asked.wanted.notes or asked.wanted.events):
            problems.append("no note is of a tool, a file or a session: leave one of the prefixes out")
        if unsearched := self.timeline.search.unsearched():
            problems.append(f"{unsearched} older events cannot be found yet; each look at a transcript takes in some of them")
        return problems


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    wanted: SearchedFor
    how: Mode
    here: str
    within: str
    since: datetime | None
    most: int


def _mode(text: str) -> Mode:
    for mode in get_args(Mode):
        if text == mode:
            known: Mode = mode
            return known
    raise UsageError(f"unknown mode {text!r}", hint=f"choose one of: {', '.join(get_args(Mode))}")


def hit_json(hit: Hit) -> Json:
    return {**note_json(hit.note), "id": hit.note.name, "score": hit.score, "snippet": hit.snippet, "why": hit.why}


def worth_listing(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return the hits without those of a score near 0, unless all are: a query may be a word that all notes contain."""
    best = max((hit.score for hit in hits), default=0.0)
    return tuple(hit for hit in hits if hit.score >= min(_LEAST, best / 10))


def tier_of(hit: Hit, words: str) -> Literal["note", "nearest"]:
    """Return ``nearest`` for a note that hardly scores and holds none of the words."""
    is_far = hit.score < _LEAST and set(stems(words)).isdisjoint(stems(f"{hit.note.title} {hit.note.body}"))
    return "nearest" if is_far else "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixed:
    """One ranking of all results. ``notes`` and ``passages`` hold the rank of each note, and of each card or event."""

    notes: tuple[int, ...]
    passages: tuple[int, ...]


def is_sure(card: CardHit) -> bool:
    """Return whether a card is an answer and not merely the nearest."""
    return card.covered >= _COVERED or card.meaning >= _MEANT


def answers(about: float, settled: float | None) -> float:
    """Return the probability that a conversation answers a question.

    ``about`` is the question's cosine with the whole conversation, ``settled`` that with what the user settled in it and the
    agent's words after it, or ``None`` if the user settled nothing.
    """
    weighed = _OTHERWISE + _ABOUT * about + (_IS_SETTLED + _SETTLED * settled if settled is not None else 0.0)
    return 1 / (1 + math.exp(-weighed))


def is_an_answer(likely: float | None, *, settles: bool, score: float, covered: float) -> bool:
    """Return whether a conversation is cited: it is likely and found by the search, or it repeats much of the question.

    One that is about something else by its meaning must repeat more. ``likely`` is ``None`` if meaning is not known.
    """
    if likely is None:
        return covered >= _COVERED
    is_likely = likely >= (_SURE_OF_A_CHAT if settles else _SURE_OF_TALK)
    return covered >= (_REPEATED if likely >= _PERHAPS else _REPEATED_WELL) or (is_likely and likely + score >= _LIKELY_AND_FOUND)


def nearness_of_turns(turns: Sequence["Vector"], asked: "Vector") -> float:
    """Return the cosine between a question and a conversation, given the vectors of its turns; 0 for one that says nothing."""
    weighed = [turn * _NEXT_TURN**place for place, turn in enumerate(turns)]
    length = math.hypot(*sum(weighed[1:], weighed[0])) if weighed else 0.0
    return sum(float(turn @ asked) for turn in weighed) / length if length else 0.0


def passages(cards: Sequence[CardHit], events: Sequence[EventHit], limit: int) -> list[CardHit | EventHit]:
    """Return conversations first, then single events. Merely near ones are returned only if nothing else is found."""
    sure = [card for card in cards if is_sure(card)]
    shown = {card.telling.id for card in cards}
    single = [event for event in events if event.event.id not in shown]
    good = [event for event in single if not event.near]
    first: list[CardHit | EventHit] = [*cards[:_CARDS_FIRST], *good[:_EVENTS_NEXT], *cards[_CARDS_FIRST:], *good[_EVENTS_NEXT:]]
    if not (sure or good):
        first += [event for event in single if event.near]
    return first[:limit]


def mixed(query: str, notes: Sequence[Hit], found: Sequence[CardHit | EventHit]) -> Mixed:
    """Rank notes and passages together.

    Short queries ask for a known fact: notes come first. Long ones describe a situation that a conversation may have described
    before: cards come first. Single events come last.
    """
    ahead = _AHEAD if len(set(stems(query))) <= _SHORT else -_AHEAD
    scores = [(hit.score + ahead, 0, -place) for place, hit in enumerate(notes)]
    last = 2.0
    for place, passage in enumerate(found):
        own = passage.score if isinstance(passage, CardHit) and is_sure(passage) else -1.0
        last = min(last, own)  # they keep their own order
        scores.append((last, -1, -place))
    order = sorted(range(len(scores)), key=lambda each: scores[each], reverse=True)
    rank = {each: place for place, each in enumerate(order, 1)}
    return Mixed(
        notes=tuple(rank[place] for place in range(len(notes))),
        passages=tuple(rank[len(notes) + place] for place in range(len(found))),
    )


def passage_json(hit: CardHit | EventHit) -> dict[str, Any]:
    return card_json(hit) if isinstance(hit, CardHit) else event_json(hit)


def card_json(hit: CardHit) -> dict[str, Any]:
    """Return a card as its more telling event, with the prompt as ``asked``, and as ``later`` what followed on its topic."""
    later = hit.later
    telling = EventHit(event=hit.telling, session=hit.session, score=hit.score, snippet=hit.snippet, near=not is_sure(hit))
    return event_json(telling) | {
        "tier": "card" if is_sure(hit) else "nearest",
        "asked": plain_line(hit.prompt.text, _SNIPPET),
        "card": plain_line(hit.prompt.reference),
        "later": plain_line(later.reference) if later else "",
        "later_at": later.at.isoformat() if later else "",
    }


def event_json(hit: EventHit) -> dict[str, Any]:
    """Return an event with ``where`` it is in the transcript, and as ``reference`` its citation."""
    event = hit.event
    return {
        "tier": "nearest" if hit.near else "event",
        "id": event.id,
        "session": event.session,
        "type": event.type.value,
        "at": event.at.isoformat(),
        "snippet": plain_line(hit.snippet, _SNIPPET),
        "where": plain_line(f"{event.where.file}:{event.where.start}-{event.where.end}", _PLACE),
        "reference": plain_line(event.reference),
        "score": hit.score,
        "provider": event.provider,
        "project": plain_line(hit.session.project),
        "tool": plain_line(event.tool),
        "path": plain_line(event.path),
        "status": event.status,
    }


_QUOTES = 2
_QUOTE_TOKENS = 190
_ROOMS = (560, 420, 300, 180)
"""Characters for a conversation's end: the first that stays within a quote's tokens is used."""
_POINTERS = 3
_REPORT = 2_000
"""Characters of a longest opening for which conversations are quoted. A longer one is a plan, which holds what was settled: quotes
would repeat it, and since it shares words with much, it would get them each time.
"""
_ABOUT_EQUAL = 0.02
"""Difference of two scores below which the newer conversation goes first."""
_TITLE = 100
_HANDLE = 8
_OPENED_WITH, _ENDED_WITH = 7, 10
"""Tokens of a title for what was asked, and what the user settled then."""
_FAINTEST, _SLOPE = 0.4, 0.8
"""Line from a card's score to the probability that it bears on a prompt: a score of .5 gives .08. On three projects, evidence of a
needed note was found in 15 of 393 cards at .45 to .50, in 26 of 278 at .50 to .60.
"""
_BEGUN = 0.08
"""Least probability for the nearest conversation at a session's opening, that it is worth a line."""
_OF_THE_MATTER = 0.3
"""Least cosine of that conversation. Of 42 invented openings, 39 have as much to the conversation that decided their matter, of 51
prompts that are about nothing said before, 6.
"""
_READ = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineConversations:
    """Same as `model.hit.ConversationLookup`. A timeline that cannot be read adds nothing."""

    cards: StoredCards
    meaning: ConversationEmbedder | None
    timeline: Timeline | None = None
    """Where failures are looked up; without it none are."""

    def answer(self, text: str, *, project: str, session: str, of_the_past: bool) -> Sequence[Quote]:
        try:
            met = self.timeline and fix_of_quoted_failure(self.timeline, text, project=project, besides=session)
        except (KiteError, sqlite3.Error):
            met = None
        found = self._found(text, project, session, 1) if of_the_past else []
        return [*([met] if met else []), *(self._quote_of_turn(hit) for hit in found if is_sure(hit))]

    def near(self, text: str, *, project: str, session: str, least: float) -> Sequence[Pointer]:
        hits = self._found(text, project, session, _POINTERS, _FAINTEST + least / _SLOPE)
        return [self._pointer(hit, _probability(hit)) for hit in hits if is_sure(hit)]

    def opening(self, text: str, *, project: str, session: str) -> tuple[Sequence[Quote], Sequence[Pointer]]:
        hits = self._found(text, project, session, _QUOTES + _POINTERS)
        threshold = self.cards.opening_threshold(project) if hits else None
        speaks = threshold is not None and len(text) <= _REPORT and max(hit.bm25 for hit in hits) > threshold
        quotes = [quote for hit in hits[:_QUOTES] if (quote := self._quote(hit))] if speaks else []
        quoted = {quote.session for quote in quotes}
        others = [hit for hit in hits if hit.session.id not in quoted]
        others = [hit for hit in others if hit.meaning >= _OF_THE_MATTER or (not hit.meaning and is_sure(hit))]
        first = [hit for hit in others if hit.score >= others[0].score - _ABOUT_EQUAL]
        nearest = sorted(first, key=lambda hit: hit.prompt.at, reverse=True)[:1]
        return quotes, [self._pointer(hit, max(_BEGUN, _probability(hit))) for hit in nearest]

    def _found(self, text: str, project: str, session: str, limit: int, least: float = 0.0) -> list[CardHit]:
        """Return the best hit of each session."""
        query = CardQuery(
            text=text[:_READ],
            meant=essence(text),  # the vector of which the notes were compared with
            within=project,
            project=project,
            besides=session,
            least=least,
            limit=2 * limit,
        )
        try:
            hits = self.cards.find(query, self.meaning)
        except (KiteError, sqlite3.Error):
            return []
        first: dict[str, CardHit] = {}
        for hit in hits:
            first.setdefault(hit.session.id, hit)
        return list(first.values())[:limit]

    def _pointer(self, hit: CardHit, probability: float) -> Pointer:
        talk = self.cards.talk(hit.prompt.id)
        asked = hit.prompt.text if talk is None or len(hit.prompt.text.split()) >= _SHORT else talk.opening
        if talk is not None and talk.settled:
            title = f"conversation: {first_words(asked, _OPENED_WITH)} settled: {first_words(talk.settled, _ENDED_WITH)}"
        else:
            title = f"conversation: {first_words(asked, _OPENED_WITH + _ENDED_WITH)}"
        handle = hit.prompt.id[:_HANDLE]
        return Pointer(
            id=hit.prompt.reference,
            handle=handle if len(self.cards.prompts_called(handle)) == 1 else "",
            title=clip(title, _TITLE),
            date=hit.prompt.at,
            score=round(probability, 4),
            is_note=False,
            session=hit.session.id,
            evidence=_evidence(hit),
        )

    def _quote_of_turn(self, hit: CardHit) -> Quote:
        talk = self.cards.talk(hit.prompt.id)
        settled = f'  Then you: "{clip_line(talk.settled, 240)}"' if talk is not None and talk.settled else ""
        said = f'You: "{clip_line(hit.prompt.text, 240)}"  Agent: "{clip_line(hit.answer.text, 240)}"{settled}'
        return Quote(
            id=hit.prompt.reference,
            text=plain_line(said, 800),
            date=hit.prompt.at,
            score=hit.score,
            session=hit.session.id,
            evidence=_evidence(hit),
        )

    def _quote(self, hit: CardHit) -> Quote | None:
        for room in _ROOMS:
            talk = self.cards.talk(hit.prompt.id, room)
            if talk is not None and estimated_tokens(text := _text_of(talk)) <= _QUOTE_TOKENS:
                return Quote(
                    id=hit.prompt.reference,
                    text=text,
                    date=hit.prompt.at,
                    score=hit.score,
                    session=hit.session.id,
                    evidence=_evidence(hit),
                )
        return None


def _text_of(talk: Talk) -> str:
    return f'You asked: "{plain_line(talk.opening, 200)}"  It ended: "{plain_line(talk.ended, 800)}"'


def _probability(hit: CardHit) -> float:
    return max(0.0, min(1.0, _SLOPE * (hit.score - _FAINTEST)))


def _evidence(hit: CardHit) -> tuple[str, ...]:
    return tuple(dict.fromkeys((hit.prompt.reference, hit.answer.reference)))
