"""Conversations added to a prompt's answer: pointers at any prompt, and quotes at a session's first prompt."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from kite_memory.app.searching import is_sure
from kite_memory.errors import KiteError
from kite_memory.model.event import evidence_reference
from kite_memory.model.hit import Pointer, Quote
from kite_memory.recall.rendering import estimated_tokens, plain_line
from kite_memory.timeline.conversations import CardQuery, Talk
from kite_memory.timeline.event_embeddings import Meaning
from kite_memory.timeline.store import CardHit, Timeline

_QUOTES = 2
_QUOTE_TOKENS = 190
_ROOMS = (560, 420, 300, 180)
"""Characters for a conversation's end: the first that stays within a quote's tokens is used."""
_POINTERS = 3
_TITLE = 100
_FAINTEST, _SLOPE = 0.3, 0.4
"""Line from a card's score to the probability that it bears on a prompt: a score of .425 gives .05."""
_BEGUN = 0.06
"""Least probability for the nearest conversations of the project at a session's opening: each is worth a line."""
_READ = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationVoices:
    """Same as `model.hit.Cards`. A timeline that cannot be read adds nothing."""

    timeline: Timeline
    meaning: Meaning | None

    def near(self, text: str, *, project: str, session: str, limit: int) -> Sequence[Pointer]:
        hits = [hit for hit in self._found(text, project, session, limit) if is_sure(hit)]
        return [self._pointer(hit, _probability(hit)) for hit in hits]

    def opening(self, text: str, *, project: str, session: str) -> tuple[Sequence[Quote], Sequence[Pointer]]:
        hits = self._found(text, project, session, _QUOTES + _POINTERS)
        bar = self.timeline.bar(project) if hits else None
        speaks = bar is not None and max(hit.bm25 for hit in hits) > bar
        quotes = [quote for hit in hits[:_QUOTES] if (quote := self._quote(hit))] if speaks else []
        quoted = {quote.session for quote in quotes}
        others = [hit for hit in hits if hit.session.id not in quoted]
        return quotes, [self._pointer(hit, max(_BEGUN, _probability(hit))) for hit in others[:_POINTERS]]

    def conversation_text(self, citation: str) -> str | None:
        """Return the text that a pointer's citation opens: the whole turn and how the conversation ended."""
        prompt = self.timeline.card_prompt(citation)
        talk = self.timeline.talk(prompt.id) if prompt is not None else None
        return None if talk is None else _text_of(talk)

    def _found(self, text: str, project: str, session: str, limit: int) -> list[CardHit]:
        """Return the best hit of each session."""
        query = CardQuery(text=text[:_READ], within=project, project=project, besides=session, limit=2 * limit)
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
        title = f"conversation: {plain_line(opening, 44)} … settled: {plain_line(ended, 40)}"
        return Pointer(
            id=_citation(hit),
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
