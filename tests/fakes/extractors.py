"""Extractors that do as they are told, and word every answer differently."""

import itertools
from collections.abc import Callable, Iterable

from kite_memory.distill.extractor import Answer, Outcome, Usage
from kite_memory.model.record import Chunk, Decision, Record, Topic


class ScriptedExtractor:
    """Gives out ``outcomes`` in order, then plain answers; keeps the ids of the chunks it was asked about."""

    name = "scripted"
    version = "1"

    def __init__(self, outcomes: Iterable[Outcome | Callable[[Chunk], Outcome]] = (), *, price: float = 0.01) -> None:
        self._outcomes = iter(outcomes)
        self._price = price
        self._worded = itertools.count(1)
        self.asked: list[str] = []

    def estimate(self, chunk: Chunk) -> Usage:
        return Usage(tokens_in=1000, tokens_out=100, dollars=self._price) if self._price else Usage()

    def extract(self, chunk: Chunk) -> Outcome:
        self.asked.append(chunk.id)
        match next(self._outcomes, None):
            case None:
                return plain_answer(chunk, f"Wording {next(self._worded)}")
            case function if callable(function):
                return function(chunk)
            case outcome:
                return outcome


_USUAL = Usage(tokens_in=900, tokens_out=90, dollars=0.005)


def plain_answer(chunk: Chunk, title: str, *, body: str = "", usage: Usage = _USUAL) -> Answer:
    decision = Decision(
        title=title,
        body=body or f"{title}: because the orchard needs it.",
        evidence=(chunk.events[0].id,),
        importance=2,
        origin="user",
    )
    return Answer(record=Record(topics=(Topic(name="the orchard", summary="", items=(decision,)),)), usage=usage)
