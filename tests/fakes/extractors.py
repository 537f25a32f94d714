"""Extractors that do as they are instructed, and word every answer differently."""

import itertools
from collections.abc import Callable, Iterable, Sequence

from kite_memory.distill.extractor import Answer, Outcome, Refused, Usage
from kite_memory.model.note import Chunk, Decision, Record, Topic


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


class SharingExtractor(ScriptedExtractor):
    """Takes up to ``most`` chunks in a call; ``calls`` has the ids of each. What is in ``leaves_out`` gets no answer in company."""

    def __init__(
        self, outcomes: Iterable[Outcome | Callable[[Chunk], Outcome]] = (), *, most: int, leaves_out: Iterable[str] = ()
    ) -> None:
        super().__init__(outcomes)
        self._most = most
        self._leaves_out = frozenset(leaves_out)
        self.calls: list[list[str]] = []

    def share(self, chunks: Sequence[Chunk]) -> bool:
        return len(chunks) <= self._most

    def estimate_together(self, chunks: Sequence[Chunk]) -> Usage:
        return self.estimate(chunks[0])

    def extract(self, chunk: Chunk) -> Outcome:
        self.calls.append([chunk.id])
        return super().extract(chunk)

    def extract_together(self, chunks: Sequence[Chunk]) -> list[Outcome]:
        self.calls.append([chunk.id for chunk in chunks])
        first = super().extract(chunks[0])
        if not isinstance(first, Answer):
            return [first] * len(chunks)
        rest = (
            Refused(reason="left out") if chunk.id in self._leaves_out else plain_answer(chunk, f"About {chunk.id}", usage=Usage())
            for chunk in chunks[1:]
        )
        return [first, *rest]
