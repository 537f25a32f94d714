"""Answers to questions about the past, from notes, conversations and events, by a model or without one.

The functions of the first part are pure: what counts as evidence, and which of its sentences answer.
"""

import math
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any, Literal

from kite_memory.app.searching import answers, is_an_answer, nearness_of_turns
from kite_memory.app.session_context import EarlierWork
from kite_memory.app.timeline_queries import TimelineQueries, named, no_polisher
from kite_memory.app.timeline_queries import since as time_since
from kite_memory.distill.answering import Answerer, CitedSentence, EvidencePiece, Polisher, Unsaid, WrittenAnswer
from kite_memory.distill.prose import clean, one_line, sentences, stems
from kite_memory.errors import KiteError, UsageError
from kite_memory.model.event import Event, EventType, EvidenceReference, Session
from kite_memory.model.hit import Hit
from kite_memory.model.note import NoteStatus
from kite_memory.projects import project_of
from kite_memory.recall.prose import prose
from kite_memory.recall.search import Query
from kite_memory.redaction import drop_private, redact
from kite_memory.redaction.cutting import beginning
from kite_memory.text import lazy_regex
from kite_memory.text.display import age, clip, is_chatter, ungreeted, without_cut_emphasis
from kite_memory.text.quoting import plain_line
from kite_memory.timeline.conversations import CardQuery, ConversationEmbedder
from kite_memory.timeline.search import EventQuery
from kite_memory.timeline.store import CardHit, Timeline
from kite_memory.vault.known import StoredNotes
from kite_memory.vault.lifecycle import at_odds
from kite_memory.vault.usefulness import asked_and_said

if TYPE_CHECKING:
    from kite_memory.app.searching import SearchableNotes
    from kite_memory.timeline.conversations import Vector

NOTES, EVENTS = 8, 12
_MOST_SENTENCES, _MOST_OF_TWO = 5, 7
"""Sentences of an answer without a model, and of one that quotes two conversations."""
_SENTENCE, _SENTENCES_OF_A_PIECE, _READ = 320, 60, 6_000
_LEAST_COVERED = 0.4
"""Least share of the question's words, by weight, that a sentence repeats; it must repeat two words, if there are two."""
_NEAR = 0.4
"""Least score of a note about the question's topic; its sentences then need a smaller share of the question's words."""
_LEAST_OF_WHAT_IS_NEAR = 0.1
_SURE = 0.6
"""Least score of a note that answers a question without sharing a word with it."""
_SAME = 0.75
_SETTLING_WORDS, _SAYING_WORDS = 4, 3
_SILENCE = timedelta(minutes=30)
"""After a longer one, a conversation may be about something else."""
_TELLING = frozenset(
    {
        *(EventType.USER_MESSAGE, EventType.ASSISTANT_MESSAGE, EventType.DECISION, EventType.RESUME_POINT),
        *(EventType.ERROR, EventType.TEST_RESULT, EventType.COMMAND),
    }
)
"""Types of events that are quoted. The text of the others is a tool's output."""
_COMMITTED = lazy_regex(
    r"\bgit commit\b[^\n\"']{0,80}(?:\"\$\(cat <<-?\s?['\"]?EOF['\"]?\n(.{1,4000}?)\nEOF|"
    r"-\w{0,4}m\s{0,4}(?:\"([^\"]{1,4000})\"|'([^']{1,4000})'))",
    re.DOTALL,
)
_PARAGRAPH = lazy_regex(r"\n\s*\n|\n(?=\s{0,8}(?:[-*#>|]|\d{1,3}[.)]\s))")
_CODE = lazy_regex(r"```.{0,4000}?(?:```|\Z)", re.DOTALL)
_WORD = lazy_regex(r"[\"'(\[*`]{0,3}[^\W\d_]+(?:['’-][^\W\d_]+)*[\"')\]*`.,;:!?—-]{0,4}|[—–-]")
_LINE_MARKUP = lazy_regex(r"^\s{0,12}(?:#{1,6}|[-*>]|\d{1,3}[.)])\s+", re.MULTILINE)
_OFFER = lazy_regex(
    r"^\W{0,3}(?:I['’]d|I['’]ll|I (?:could|can|would|will|suggest|propose|recommend)|we (?:could|can|might)|let me|let['’]s"
    r"|options?\b|choices?\b|or (?:we|I)\b|then I['’]d|my plan|the plan|plan:|next\b|easiest is|alternatively|shall|should|want me"
    r"|do you want)",
    re.IGNORECASE,
)
"""Beginnings of an agent's offers and plans, which are no statements of what was done or decided."""
_LEAVES = lazy_regex(
    r"\b(?:leav\w+|left|drop\w*|abandon\w*|ditch\w*|replac\w*|reject\w*|remov\w*|retir\w*|swap\w*|stop\w*|quit\w*|away|rid"
    r"|(?:mov|switch|migrat)\w*(?= (?:away|off|from)\b)|instead|rather|against)\b",
    re.IGNORECASE,
)
"""Words in which a question asks about something that was left for something else."""
_LEFT = lazy_regex(
    r"\b(?:over|instead of|rather than|in place of|against|no longer|(?:mov|switch|migrat|swap)\w*(?: \w+){0,5} from|away from"
    r"|(?:mov|switch)\w* off|dropp?(?:ed|ing|s)?|leaving|left|abandon(?:ed|ing)|ditch(?:ed|ing)|replac(?:ed|ing|es)"
    r"|reject(?:ed|ing)|remov(?:ed|ing|es)|retir(?:ed|ing)|got rid of|stopped using)\b(?P<after>(?:\W{1,8}\w+){1,4})"
    r"|\b(?P<before>(?:\w+\W{1,4}){1,4})(?:was|were|is|are|has been|got)\W"
    r"(?:dropped|left|abandoned|ditched|replaced|rejected|removed|retired)\b",
    re.IGNORECASE,
)
"""What a note says of such a change, with the words beside it: what was left is among them."""
_REJECTED = "Rejected:"
_ASKS_WHY_NOT = lazy_regex(r"\b(?:not|n['’]t|options?|alternatives?|else|over|than|compared?)\b", re.IGNORECASE)
_CARDS, _COMPARED = 20, 5
_EMBEDDED, _TALK = 2, 400
"""Conversations whose turns have no stored vectors yet: this many are compared, and so many characters of each text embedded."""
_FAR = 0.2
"""A conversation whose cosine with the question is this much lower than the best one's is not looked at more closely."""
_AS_SURE = 0.5
"""A newer conversation that is at least this likely, compared with the best, is about the same matter and goes first."""
_RULING_WORDS = 6
_QUOTED = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One source of an answer.

    ``reference`` is a note's path, or an event's citation. ``score`` is that of the search that found it, 0 to 1.
    """

    kind: Literal["note", "event"]
    reference: str
    title: str
    at: datetime
    text: str
    score: float
    name: str = ""
    by_agent: bool = False
    asked: str = ""
    """Of a note, the person's words that its body begins with; what it says answers them."""
    rests_on: frozenset[str] = frozenset()
    """Of a note, its own evidence."""
    elsewhere: bool = False  # a note of another project than the question's

    @property
    def piece(self) -> EvidencePiece:
        return EvidencePiece(head=f"{self.title}, {self.at:%Y-%m-%d}", text=self.text)


def of_note(hit: Hit, here: str = "") -> Evidence:
    note = hit.note
    status = "" if note.status is NoteStatus.ACCEPTED else f", {note.status.value}"
    asked, said = asked_and_said(redact(drop_private(prose(note.body)))[:_READ])
    return Evidence(
        kind="note",
        reference=note.path,
        title=f"{note.kind.value}{status}: {one_line(note.title)}",
        at=note.created,
        text=said,
        score=hit.score,
        name=note.name,
        asked=asked,
        rests_on=frozenset(note.evidence),
        elsewhere=bool(here) and note.project not in ("", here),
    )


def of_event(event: Event, session: Session, score: float) -> Evidence:
    project = f" in {session.project}" if session.project else ""
    return Evidence(
        kind="event",
        reference=event.reference,
        title=f"{event.type.value.replace('_', ' ')}{project}",
        at=event.at,
        text=_said_by(event),
        score=score,
        by_agent=event.role == "assistant" and event.type is EventType.ASSISTANT_MESSAGE,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """A turn that answers the question: the places, in the evidence, of the user's words and of the agent's words after them.

    ``later`` is when the topic came up again.
    """

    said: int
    recap: int | None
    later: datetime | None = None


def quoted_turns(said: Sequence[Event], matched: str, question: str) -> list[tuple[Event, ...]]:
    """Return turns of a conversation, each a prompt with the agent's last words: the one that shares most words with the question,
    the user's next words that settle something, and the last such words if they share a word with it, too.

    The first is left out if the next says as much of the question, or if the agent only made offers in it. After a long silence, a
    later turn must share words. ``matched`` is the prompt that the search found: of turns that share as much, its own goes first.
    """
    wanted = stems(question)
    turns = [
        (event, after) if after is not None and after.role == "assistant" else (event,)
        for event, after in zip_longest(said, said[1:])
        if event.role == "user"
    ]
    if not turns:
        return []
    stemmed = [stems(" ".join(event.text for event in turn)) for turn in turns]
    about = [each & wanted for each in stemmed]
    at = max(range(len(turns)), key=lambda place: (len(about[place]), any(about) and turns[place][0].id == matched, -place))
    settling = [place for place, turn in enumerate(turns) if _settles(turn[0].text)]
    later = [
        place
        for place in settling
        if place > at
        if turns[place][0].at - turns[at][-1].at < _SILENCE or stemmed[place] & (stemmed[at] | wanted)
    ]
    says_less = bool(later) and about[at] <= about[later[0]] and (bool(about[at]) or at not in settling)
    offers = _only_offers(turns[at])
    chosen = [at, *later[:1]] if not later or not (says_less or offers) else later[:1]
    following = turns[at + 1][0].text.rstrip() if at + 1 < len(turns) else ""
    if offers and following and not (following.endswith(("?", "？")) or _settles(following)):
        chosen = [at, at + 1]  # a word or two settle what was asked, and then something else may be
    if not later and at not in settling:
        chosen = [*[place for place in settling if place < at][-1:], at]
    chosen += [place for place in later[1:][-1:] if about[place]]
    return [turns[place] for place in chosen]


def _only_offers(turn: Sequence[Event]) -> bool:
    return all(_OFFER.match(each) or each.endswith("?") for event in turn[1:] for each in sentences(clean(event.text[:_READ])))


def _settles(text: str) -> bool:
    return len(text.split()) >= _SETTLING_WORDS and not text.rstrip().endswith(("?", "？"))


def sentences_of_evidence(conversations: Sequence[Settled], evidence: Sequence[Evidence], question: str) -> list[CitedSentence]:
    """Return sentences that quote the conversations; of the agent's words only statements, no offers, about the question first."""
    wanted = stems(question)
    quotes: list[CitedSentence] = []
    for each in conversations:
        said = evidence[each.said]
        marked = f" (it came up again on {each.later.astimezone():%Y-%m-%d})" if each.later else ""
        text = f"On {said.at.astimezone():%Y-%m-%d}{marked}: “{clip(ungreeted(said.text), _QUOTED)}”"
        quotes.append(CitedSentence(text=text, rests_on=(each.said,)))
        if each.recap is not None:
            recap = [
                each for each in _sentences_of(evidence[each.recap]) if not _OFFER.match(each[0]) and not each[0].endswith("?")
            ]
            first = max(range(len(recap) - 2), key=lambda at: len(recap[at][1] & wanted), default=0)
            text = " ".join(text for text, _ in recap[first : first + 3])
            if len(text.split()) >= _SAYING_WORDS:
                quotes.append(CitedSentence(text=clip(text, _QUOTED), rests_on=(each.recap,)))
    return quotes


def rulings_in(said: Sequence[Event]) -> dict[str, str]:
    """Return what the user replied at some length in a conversation, no question, each with the agent's next words, by event id."""
    return {
        event.id: f"{event.text} {after.text if after is not None and after.role == 'assistant' else ''}"
        for event, after in zip_longest(said[1:], said[2:])
        if event.role == "user" and len(event.text.split()) >= _RULING_WORDS and _settles(event.text)
    }


def _said_by(event: Event) -> str:
    """Return the event's text; of a commit only its message, without the shell command around it."""
    text = clean((event.text or event.command)[: 2 * _READ])
    if event.type is EventType.COMMAND and (message := _COMMITTED.search(text)) is not None:
        text = message[1] or message[2] or message[3]
    return text[:_READ]


def extract(question: str, evidence: Sequence[Evidence]) -> tuple[CitedSentence, ...]:
    """Return the few sentences of the evidence that best cover the question, each once, with all evidence for it.

    The title of a note counts for each of its sentences. Of two that contradict each other the newer comes first. What a note says
    was rejected answers only a question about that. The result is empty if no sentence covers enough.
    """
    wanted = stems(question)
    leaves = " ".join(_LEAVES.findall(question))
    left, asks_what_was_left = wanted & stems(leaves), bool(leaves) or _ASKS_WHY_NOT.search(question) is not None
    titles = [
        stems(piece.title) | (left if _says_left(piece, wanted - left) else frozenset()) if piece.kind == "note" else frozenset()
        for piece in evidence
    ]
    found = [
        (place, text, said) for place, piece in enumerate(evidence) if _is_useful(piece) for text, said in _sentences_of(piece)
    ]
    about = Counter(stem for place, _, said in found for stem in (said | titles[place]) & wanted)
    worth = {stem: math.log(1 + len(found) / max(1, about[stem])) for stem in wanted}
    total = sum(worth.values())
    weighed: list[tuple[float, int, str, frozenset[str]]] = []
    for place, text, said in found:
        again = (said | titles[place]) & wanted
        covered = sum(worth[stem] for stem in again) / total if total else 0.0
        near = evidence[place].kind == "note" and evidence[place].score >= _NEAR and covered >= _LEAST_OF_WHAT_IS_NEAR
        enough = covered >= _LEAST_COVERED and len(again) >= min(2, len(wanted))
        if (evidence[place].by_agent and _OFFER.match(text)) or (text.startswith(_REJECTED) and not asks_what_was_left):
            continue
        if (near or enough) and not text.rstrip().endswith(("?", "？")):
            weight = _prose(text) * (covered + 0.5 * evidence[place].score + _more(evidence[place]))
            weighed.append((weight, place, text, said))
    weighed.sort(key=lambda each: (-each[0], each[1]))
    if not weighed:
        return _by_meaning(evidence)
    chosen: list[_Chosen] = []
    for _, place, text, said in weighed:
        alike = [each for each in chosen if _alike(each.said, said)]
        other = next((each for each in alike if at_odds(text, each.text)), None)
        if alike and other is None:
            alike[0].places.setdefault(place)
        elif len(chosen) < _MOST_SENTENCES:
            new = _Chosen(text=text, said=said, places={place: None}, dated=other is not None)
            is_newer = other is not None and evidence[place].at > evidence[next(iter(other.places))].at
            chosen.insert(chosen.index(other) if other is not None and is_newer else len(chosen), new)
            if other is not None:
                other.dated = True
    return tuple(
        CitedSentence(
            text=(f"{evidence[next(iter(each.places))].at.astimezone():%Y-%m-%d}: " if each.dated else "")
            + clip(each.text, _SENTENCE),
            rests_on=tuple(each.places),
        )
        for each in chosen
    )


@dataclass(slots=True)
class _Chosen:
    """A sentence of an answer and the places it was found at, best first. One that another contradicts is ``dated``."""

    text: str
    said: frozenset[str]
    places: dict[int, None]
    dated: bool


def _says_left(piece: Evidence, wanted: frozenset[str]) -> bool:
    """Return whether a note says, in whatever words, that one of the ``wanted`` things was left for something else."""
    return any(
        not wanted.isdisjoint(stems(found["after"] or found["before"])) for found in _LEFT.finditer(f"{piece.title}\n{piece.text}")
    )


def _is_useful(piece: Evidence) -> bool:
    return piece.kind == "note" or any(piece.title.startswith(type.value.replace("_", " ")) for type in _TELLING)


def _more(piece: Evidence) -> float:
    """Return an advantage for notes, which were selected once already when they were made."""
    return 0.3 if piece.kind == "note" else 0.0


def _prose(text: str) -> float:
    """Return the share of ordinary words, which is low for lines of a log."""
    words = text.split()
    return sum(_WORD.fullmatch(word) is not None for word in words) / max(1, len(words))


def _sentences_of(piece: Evidence) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield each sentence with its stems."""
    taken = 0
    for paragraph in _PARAGRAPH.split(_CODE.sub("\n\n", piece.text)):
        for sentence in sentences(without_cut_emphasis(_LINE_MARKUP.sub("", paragraph))):
            if len(sentence) >= 12 and taken < _SENTENCES_OF_A_PIECE and not is_chatter(sentence):
                taken += 1
                yield sentence, stems(f"{piece.asked} {sentence}" if taken == 1 else sentence)
    if not taken and piece.text.strip():
        yield one_line(piece.text), stems(piece.text)


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) >= _SAME * len(one | other)


def _by_meaning(evidence: Sequence[Evidence]) -> tuple[CitedSentence, ...]:
    """Return the beginning of the note that is nearest by its embedding, though it shares no word with the question."""
    best = max(
        (place for place, piece in enumerate(evidence) if piece.kind == "note"), key=lambda at: evidence[at].score, default=None
    )
    if best is None or evidence[best].score < _SURE:
        return ()
    first = next((text for text, _ in _sentences_of(evidence[best])), evidence[best].title)
    return (CitedSentence(text=clip(first, _SENTENCE), rests_on=(best,)),)


Json = dict[str, Any]
_LONGEST_QUESTION = 4_000


class QuestionAnswering(TimelineQueries):
    """The operation `ask`, beside those of `TimelineQueries`. Thread-safe.

    ``answerer`` returns the model that writes answers, ``polisher`` the one that rewords briefs, or ``None``.
    """

    def __init__(
        self,
        *,
        timeline: Timeline,
        notes: StoredNotes,
        recall: "SearchableNotes",
        answerer: Callable[[], Answerer | None],
        clock: Callable[[], datetime],
        polisher: Callable[[], Polisher | None] = no_polisher,
        meaning: ConversationEmbedder | None = None,
    ) -> None:
        self._meaning = meaning
        super().__init__(timeline=timeline, notes=notes, polisher=polisher)
        self._stored = notes
        self._recall = recall
        self._answerer = answerer
        self._clock = clock

    def operations(self) -> Mapping[str, Callable[..., Json]]:
        return {**super().operations(), "ask": self.ask}

    def ask(self, *, question: str, project: str = "", since: str = "", cwd: str = "", offline: bool = False) -> Json:
        """Answer a question. Each sentence names its evidence; one whose evidence no longer exists is omitted."""
        began = time.perf_counter()
        words = redact(drop_private(beginning(question, _LONGEST_QUESTION))).strip()
        if not words:
            raise UsageError("there is no question", hint='as in: kmem ask "why did we choose postgres?"')
        here = named(project) or project_of(cwd)
        if not since and (work := EarlierWork(self._timeline, self._clock).asked(words, here)).lines:
            return {**work.answer(words), "took_ms": time_since(began)}
        evidence, conversations = self._evidence(words, named(project), age(since, self._clock()), cwd)
        answerer = None if offline else self._answerer()
        by, remark, dropped = "offline", "", 0
        sentences: Sequence[CitedSentence] = ()
        if answerer is not None and evidence:
            match answerer.answer(words, [each.piece for each in evidence]):
                case WrittenAnswer() as said:
                    sentences, dropped, by = said.sentences, said.dropped, answerer.name
                case Unsaid(reason=reason):
                    remark = f"the model was of no help: {plain_line(reason)}"
        if by == "offline":
            sentences = self._without_a_model(words, evidence, conversations)
        kept = [each for sentence in sentences if (each := self._resolved(sentence, evidence)) is not None]
        first_of = {evidence[place].reference: place for sentence in reversed(kept) for place in reversed(sentence.rests_on)}
        kept = [replace(each, rests_on=_once(each.rests_on, evidence, first_of)) for each in kept]
        used = list(dict.fromkeys(place for sentence in kept for place in sentence.rests_on))
        number = {place: count for count, place in enumerate(used, 1)}
        return {
            "question": words,
            "answer": "\n".join(
                f"{plain_line(each.text, 1_000)} {''.join(f'[{number[place]}]' for place in each.rests_on)}" for each in kept
            ),
            "sentences": [
                {
                    "text": plain_line(each.text, 1_000),
                    "citations": [_citation(evidence[place], number[place]) for place in each.rests_on],
                }
                for each in kept
            ],
            "citations": [_citation(evidence[place], number[place]) for place in used],
            "by": by,
            "considered": len(evidence),
            "dropped": dropped + len(sentences) - len(kept),
            "problems": [remark] if remark else [],
            "nothing_read": not evidence and self._timeline.sessions.last(None) is None,
            "took_ms": time_since(began),
        }

    def _evidence(self, question: str, project: str, since: datetime | None, cwd: str) -> tuple[list[Evidence], list[Settled]]:
        here = project or project_of(cwd)
        notes = self._recall.search(Query(text=question, project=here, within=project, since=since, limit=NOTES))
        cards = self._timeline.cards.find(
            CardQuery(text=question, project=here, within=project, since=since, limit=_CARDS), self._meaning
        )
        events = self._timeline.search.find(EventQuery(text=question, project=project, since=since, limit=EVENTS))
        of_events = (of_event(hit.event, hit.session, hit.score) for hit in events if not hit.near)
        evidence = [*(of_note(hit, here) for hit in notes), *of_events]
        conversations: list[Settled] = []
        for hit in self._about(question, cards):
            later = hit.later.at if hit.later else None
            for turn in quoted_turns(self._timeline.cards.conversation(hit.prompt.id) or [hit.prompt], hit.prompt.id, question):
                said, recap = len(evidence), len(evidence) + 1 if len(turn) > 1 else None
                conversations.append(Settled(said=said, recap=recap, later=later))
                evidence += [of_event(event, hit.session, hit.score) for event in turn]
                later = None
        return evidence, conversations

    def _about(self, question: str, cards: Sequence[CardHit]) -> list[CardHit]:
        """Return the conversation that answers, before it any newer one about as likely; empty if none surely does."""
        first: dict[str, CardHit] = {}
        for hit in cards:
            first.setdefault(hit.session.id, hit)
        hits = list(first.values())[:_COMPARED]
        if not hits:
            return []
        likely, settle = self._likelihoods(question, hits)
        best = max(range(len(hits)), key=lambda at: (likely[at], hits[at].covered))
        if not is_an_answer(
            None if self._meaning is None else likely[best],
            settles=settle[best],
            score=hits[best].score,
            covered=hits[best].covered,
        ):
            return []
        chosen = hits[best]
        newer = [
            hit
            for hit, sure, settles in zip(hits, likely, settle, strict=True)
            if hit.session.started > chosen.session.started
            if settles or not settle[best]
            if (settles and sure >= _AS_SURE * likely[best])
            or (chosen.later is not None and chosen.later.session == hit.session.id)
        ]
        return [*sorted(newer, key=lambda hit: hit.session.started, reverse=True)[:1], chosen]

    def _likelihoods(self, question: str, hits: Sequence[CardHit]) -> tuple[list[float], list[bool]]:
        """Return for each conversation the probability that it answers, 0 without an embedder, and whether it settles anything."""
        said = [self._timeline.cards.conversation(hit.prompt.id) for hit in hits]
        rulings = [rulings_in(each) for each in said]
        settle = [bool(each) for each in rulings]
        if self._meaning is None:
            return [0.0 for _ in hits], settle
        asked = self._meaning.of_question(question)
        prompts = [[event.id for event in each if event.role == "user"] for each in said]
        stored = self._timeline.cards.vectors([prompt for each in prompts for prompt in each], self._meaning.space)
        about = [nearness_of_turns([stored[prompt] for prompt in each if prompt in stored], asked) for each in prompts]
        unknown = [at for at, each in enumerate(prompts) if stored.keys().isdisjoint(each)][:_EMBEDDED]
        openings = self._cosines(["\n".join(event.text for event in said[at]) for at in unknown], asked)
        for at, cosine in zip(unknown, openings, strict=True):
            about[at] = cosine
        close = [each if near >= max(about) - _FAR else {} for each, near in zip(rulings, about, strict=True)]
        replies = {prompt: text for each in close for prompt, text in each.items()}
        near = {prompt: float(stored[prompt] @ asked) for prompt in replies if prompt in stored}
        late = {prompt: text for prompt, text in replies.items() if prompt not in near}
        near |= zip(late, self._cosines(list(late.values()), asked), strict=True)
        return [
            answers(one, max((near[prompt] for prompt in each), default=None)) for one, each in zip(about, close, strict=True)
        ], settle

    def _cosines(self, texts: Sequence[str], asked: "Vector") -> list[float]:
        """Return the cosines of texts that have no stored vector; embedding takes most of an answer's time."""
        if self._meaning is None or not texts:
            return []
        return [float(cosine) for cosine in self._meaning.of_texts([text[:_TALK] for text in texts]) @ asked]

    def _without_a_model(
        self, question: str, evidence: Sequence[Evidence], conversations: Sequence[Settled]
    ) -> list[CitedSentence]:
        """Return sentences of notes, of a conversation that surely fits, and of single messages if they say more than that; first
        those that say most of the question, last other projects'. A message that a note was made of is not quoted again.
        """
        said = extract(question, evidence)
        of_notes = [each for each in said if any(evidence[place].kind == "note" for place in each.rests_on)]
        noted = {reference for each in of_notes for place in each.rests_on for reference in evidence[place].rests_on}
        own = [
            each
            for each in sentences_of_evidence(conversations, evidence, question)
            if noted.isdisjoint(evidence[place].reference for place in each.rests_on)
        ]
        others = [each for each in said if each not in of_notes]
        wanted = stems(question)
        in_notes, in_others = (max((len(wanted & stems(each.text)) for each in group), default=0) for group in (of_notes, others))
        turns = [f"{said.text} {recap.text}" for said, recap in zip(own, [*own[1:], *own[:1]], strict=True)]
        in_own = max((len(wanted & stems(turn)) for turn in turns), default=0)
        groups = [(in_notes, of_notes), (in_own, own), (in_others, others if not own or in_others > in_own else [])]
        groups.sort(key=lambda each: -each[0])
        most = _MOST_SENTENCES if len({_session_of(evidence[each.said]) for each in conversations}) < 2 else _MOST_OF_TWO
        found = chain.from_iterable(group for _, group in groups)
        return sorted(found, key=lambda each: all(evidence[at].elsewhere for at in each.rests_on))[:most]

    def _resolved(self, sentence: CitedSentence, evidence: Sequence[Evidence]) -> CitedSentence | None:
        rests_on = tuple(place for place in sentence.rests_on if self._resolves(evidence[place]))
        return CitedSentence(text=sentence.text, rests_on=rests_on) if rests_on else None

    def _resolves(self, piece: Evidence) -> bool:
        """Return whether what is cited still exists."""
        if piece.kind == "event":
            reference = EvidenceReference.parse(piece.reference)
            return reference is not None and bool(self._timeline.events.evidence(reference))
        try:
            return self._stored.find(piece.name).path == piece.reference
        except KiteError:  # the note or the vault is gone
            return False


def _session_of(piece: Evidence) -> str:
    reference = EvidenceReference.parse(piece.reference)
    return reference.session if reference is not None else ""


def _once(places: Sequence[int], evidence: Sequence[Evidence], first_of: Mapping[str, int]) -> tuple[int, ...]:
    """Return the places with one for each reference, the first at which it stands in the answer."""
    return tuple(dict.fromkeys(first_of[evidence[place].reference] for place in places))


def _citation(piece: Evidence, number: int) -> Json:
    return {
        "number": number,
        "kind": piece.kind,
        "reference": piece.reference,
        "title": plain_line(piece.title),
        "at": piece.at.isoformat(),
    }
