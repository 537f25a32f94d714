"""What can be asked of the past: all that looks back at it, and questions.

What answers a question is found here, and told in the shape of the contract; the work is done by pure functions of `asking`.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from kite_memory.app import evidence_search
from kite_memory.app.timeline_queries import LookingBack, named
from kite_memory.app.timeline_queries import since as time_since
from kite_memory.distill.answering import Answerer, Said, Sentence, Unsaid
from kite_memory.distill.polishing import Polisher
from kite_memory.errors import KiteError, UsageError
from kite_memory.model.event import EvidenceReference
from kite_memory.projects.project import project_of
from kite_memory.recall.recall import Recall
from kite_memory.recall.rendering import plain_line
from kite_memory.recall.search import Query
from kite_memory.redaction import drop_private, redact
from kite_memory.redaction.cutting import beginning
from kite_memory.text.ages import age
from kite_memory.timeline.search import EventQuery
from kite_memory.timeline.store import Timeline
from kite_memory.vault import Vault

Json = dict[str, Any]

_LONGEST_QUESTION = 4_000


def _nobody() -> None:
    return None


class History(LookingBack):
    """Thread-safe. ``answerer`` says who writes answers, ``polisher`` who says a brief better; nobody, where there is no model."""

    def __init__(
        self,
        *,
        timeline: Timeline,
        vault: Vault,
        recall: Recall,
        answerer: Callable[[], Answerer | None],
        clock: Callable[[], datetime],
        polisher: Callable[[], Polisher | None] = _nobody,
    ) -> None:
        super().__init__(timeline=timeline, vault=vault, polisher=polisher)
        self._notes = vault
        self._recall = recall
        self._answerer = answerer
        self._clock = clock

    def operations(self) -> Mapping[str, Callable[..., Json]]:
        return {**super().operations(), "ask": self.ask}

    def ask(self, *, question: str, project: str = "", since: str = "", cwd: str = "", offline: bool = False) -> Json:
        """Each sentence of the answer names what it rests on; one that rests on nothing that is there any more is left out."""
        began = time.perf_counter()
        words = redact(drop_private(beginning(question, _LONGEST_QUESTION))).strip()
        if not words:
            raise UsageError("there is no question", hint='as in: kmem ask "why did we choose postgres?"')
        evidence = self._evidence(words, named(project), age(since, self._clock()), cwd)
        answerer = None if offline else self._answerer()
        by, remark = "offline", ""
        told: Sequence[Sentence] = ()
        dropped = 0
        if answerer is not None and evidence:
            match answerer.answer(words, [each.piece for each in evidence]):
                case Said() as said:
                    told, dropped, by = said.sentences, said.dropped, answerer.name
                case Unsaid(reason=reason):
                    remark = f"the model was of no help: {plain_line(reason)}"
        if by == "offline":
            told = evidence_search.extract(words, evidence)
        kept = [each for sentence in told if (each := self._resolved(sentence, evidence)) is not None]
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
            "dropped": dropped + len(told) - len(kept),
            "problems": [remark] if remark else [],
            "took_ms": time_since(began),
        }

    def _evidence(self, question: str, project: str, since: datetime | None, cwd: str) -> list[evidence_search.Evidence]:
        here = project or project_of(cwd)
        notes = self._recall.search(Query(text=question, project=here, within=project, since=since, limit=evidence_search.NOTES))
        events = self._timeline.search(EventQuery(text=question, project=project, since=since, limit=evidence_search.EVENTS))
        return [*map(evidence_search.of_note, notes), *map(evidence_search.of_event, events)]

    def _resolved(self, sentence: Sentence, evidence: Sequence[evidence_search.Evidence]) -> Sentence | None:
        rests_on = tuple(place for place in sentence.rests_on if self._resolves(evidence[place]))
        return Sentence(text=sentence.text, rests_on=rests_on) if rests_on else None

    def _resolves(self, piece: evidence_search.Evidence) -> bool:
        """Whether whoever follows it now finds something there."""
        if piece.kind == "event":
            reference = EvidenceReference.parse(piece.reference)
            return reference is not None and bool(self._timeline.evidence(reference))
        try:
            return self._notes.find(piece.name).path == piece.reference
        except KiteError:  # it is gone, or the vault is
            return False


def _citation(piece: evidence_search.Evidence, number: int) -> Json:
    return {
        "number": number,
        "kind": piece.kind,
        "reference": piece.reference,
        "title": plain_line(piece.title),
        "at": piece.at.isoformat(),
    }
