"""Conversations added to a prompt's answer: pointers at any prompt, and quotes at a session's first prompt."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from kite_memory.app.searching import is_sure
from kite_memory.errors import KiteError
from kite_memory.model.event import evidence_reference
from kite_memory.model.hit import Pointer, Quote
from kite_memory.recall.rendering import estimated_tokens, first_words, plain_line
from kite_memory.timeline.conversations import CardQuery, Talk
from kite_memory.timeline.event_embeddings import Meaning
from kite_memory.timeline.store import CardHit, Timeline

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
_OPENED_WITH, _ENDED_WITH = 8, 8
"""Tokens of a title for how the conversation was opened, and how it ended."""
_FAINTEST, _SLOPE = 0.4, 0.8
"""Line from a card's score to the probability that it bears on a prompt: a score of .5 gives .08. On three projects, evidence of a
needed note was found in 15 of 393 cards at .45 to .50, in 26 of 278 at .50 to .60.
"""
_BEGUN = 0.08
"""Least probability for the nearest conversation at a session's opening, that it is worth a line."""
_READ = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationVoices:
    """Same as `model.hit.Cards`. A timeline that cannot be read adds nothing."""

    timeline: Timeline
    meaning: Meaning | None

    def near(self, text: str, *, project: str, session: str, least: float) -> Sequence[Pointer]:
        hits = self._found(text, project, session, _POINTERS, _FAINTEST + least / _SLOPE)
        return [self._pointer(hit, _probability(hit)) for hit in hits if is_sure(hit)]

    def opening(self, text: str, *, project: str, session: str) -> tuple[Sequence[Quote], Sequence[Pointer]]:
        hits = self._found(text, project, session, _QUOTES + _POINTERS)
        bar = self.timeline.bar(project) if hits else None
        speaks = bar is not None and len(text) <= _REPORT and max(hit.bm25 for hit in hits) > bar
        quotes = [quote for hit in hits[:_QUOTES] if (quote := self._quote(hit))] if speaks else []
        quoted = {quote.session for quote in quotes}
        others = [hit for hit in hits if hit.session.id not in quoted]
        first = [hit for hit in others if hit.score >= others[0].score - _ABOUT_EQUAL]
        nearest = sorted(first, key=lambda hit: hit.prompt.at, reverse=True)[:1]
        return quotes, [self._pointer(hit, max(_BEGUN, _probability(hit))) for hit in nearest]

    def _found(self, text: str, project: str, session: str, limit: int, least: float = 0.0) -> list[CardHit]:
        """Return the best hit of each session."""
        query = CardQuery(text=text[:_READ], within=project, project=project, besides=session, least=least, limit=2 * limit)
        try:
            hits = self.timeline.cards(query, self.meaning)
        except (KiteError, sqlite3.Error):
            return []
        first: dict[str, CardHit] = {}
        for hit in hits:
            first.setdefault(hit.session.id, hit)
        return list(first.values())[:limit]

    def _pointer(self, hit: CardHit, probability: float) -> Pointer:
        talk = self.timeline.talk(hit.prompt.id)
        opening, ended = (talk.opening, talk.last) if talk is not None else (hit.prompt.text, hit.answer.text)
        title = f"conversation: {first_words(opening, _OPENED_WITH)} settled: {first_words(ended, _ENDED_WITH)}"
        handle = hit.prompt.id[:_HANDLE]
        return Pointer(
            id=_citation(hit),
            handle=handle if len(self.timeline.prompts_called(handle)) == 1 else "",
            title=title[:_TITLE],
            date=hit.prompt.at,
            score=round(probability, 4),
            is_note=False,
            session=hit.session.id,
            evidence=_evidence(hit),
        )

    def _quote(self, hit: CardHit) -> Quote | None:
        for room in _ROOMS:
            talk = self.timeline.talk(hit.prompt.id, room)
            if talk is not None and estimated_tokens(text := _text_of(talk)) <= _QUOTE_TOKENS:
                return Quote(
                    id=_citation(hit),
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


def _citation(hit: CardHit) -> str:
    return evidence_reference(hit.prompt.provider, hit.prompt.session, hit.prompt.id)


def _evidence(hit: CardHit) -> tuple[str, ...]:
    of_answer = evidence_reference(hit.answer.provider, hit.answer.session, hit.answer.id)
    return tuple(dict.fromkeys((_citation(hit), of_answer)))
