"""What would be sent to a model about one session: made by the code that asks, and recorded instead of sent."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from kite_memory.app.agent_hooks import as_judged
from kite_memory.app.question_answering import History
from kite_memory.app.session_context import before
from kite_memory.app.trace import Tracer
from kite_memory.distill.answering import Answerer
from kite_memory.distill.backends.backend import Ending, Inquiry
from kite_memory.distill.extractor import Refused, Sharing, Usage
from kite_memory.distill.polishing import Polisher
from kite_memory.errors import KiteError
from kite_memory.model.chunk import Chunk, Remembered
from kite_memory.model.event import Event, EventType, Session
from kite_memory.model.hit import Question
from kite_memory.model.judging import Judge
from kite_memory.recall.prose import passages
from kite_memory.recall.recall import Recall
from kite_memory.recall.select import Prompt
from kite_memory.timeline.store import Timeline
from kite_memory.vault import Vault

Json = dict[str, Any]

TASKS = ("extract", "judge", "ask", "polish", "embed")

_SECONDS = 60.0
_MOST_PROMPTS = 50
_EVENTS = 2_000


@dataclass(slots=True)
class Recorder:
    """A backend that sends nothing: it keeps what it is asked, and refuses."""

    name: str
    model: str
    asked: list[Inquiry] = field(default_factory=list)

    def estimate(self, inquiry: Inquiry) -> Usage:
        return Usage()

    def ask(self, inquiry: Inquiry) -> Ending:
        self.asked.append(inquiry)
        return Refused(reason="nothing is sent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Askers:
    """Whatever asks a model, each joined to ``recorder``."""

    recorder: Recorder
    extractor: Sharing
    judge: Judge
    answerer: Answerer
    polisher: Polisher


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """Nothing is sent, booked, written or remembered."""

    askers: Askers
    tracer: Tracer
    timeline: Timeline
    vault: Vault
    recall: Recall
    remembered: Callable[[Chunk], Iterable[Remembered]]
    clock: Callable[[], datetime]

    def about(self, named: str) -> list[Json]:
        """One for each call: its ``task``, ``when`` it is made, and its texts. An embedder gets ``texts`` alone.

        A person's question is not known beforehand: the session's last prompt stands in for it.
        """
        session = self.tracer.find(named)
        return [
            *self._told("extract", "once for each finished chunk", self._extract(session)),
            *self._told("extract", "once for short chunks of several sessions; here those of this one", self._shared(session)),
            *self._told("judge", "with a prompt that the gate is in doubt about", self._judge(session)),
            *self._told("ask", "by `kmem ask`, here with the last prompt as the question", self._ask(session)),
            *self._told("polish", "by `kmem resume --polish`", self._polish(session)),
            *self._embed(session),
        ]

    def _told(self, task: str, when: str, asking: Iterator[None]) -> Iterator[Json]:
        for _ in asking:
            for inquiry in self.askers.recorder.asked:
                yield {
                    "task": task,
                    "when": when,
                    "to": f"{self.askers.recorder.name} {self.askers.recorder.model}".strip(),
                    "system": inquiry.system,
                    "user": inquiry.user,
                    "schema": dict(inquiry.schema),
                    "max_tokens": inquiry.max_tokens,
                }
            self.askers.recorder.asked.clear()

    def _extract(self, session: Session) -> Iterator[None]:
        for chunk in self._chunks(session):
            self.askers.extractor.extract(chunk)
            yield

    def _shared(self, session: Session) -> Iterator[None]:
        together: list[Chunk] = []
        for chunk in self._chunks(session):
            if self.askers.extractor.share([*together, chunk]):
                together.append(chunk)
        if len(together) > 1:
            self.askers.extractor.extract_together(together)
            yield

    def _chunks(self, session: Session) -> Iterator[Chunk]:
        """As they would be asked about now: with the notes that are there by now."""
        for part in self.tracer.parts(session):
            never_asked = part.state == "nothing" and part.entry is not None and not part.entry.extractor
            if part.chunk is not None and part.chunk.events and not never_asked:
                yield replace(part.chunk, remembered=tuple(self.remembered(part.chunk)))

    def _judge(self, session: Session) -> Iterator[None]:
        """About the last prompt that any note could help with."""
        for event in self._prompts(session):
            prompt = Prompt(
                text=event.text,
                project=session.project,
                situation=before(self.timeline, session.provider, session.id, event.text),
            )
            candidates = self.recall.weigh(prompt).candidates
            if not candidates:
                continue
            question = Question(
                session=session.id,
                project=session.project,
                prompt=prompt.text,
                exchange=prompt.situation.exchange,
                candidates=candidates,
            )
            self.askers.judge.judge(as_judged(question), seconds=_SECONDS)
            yield
            return

    def _ask(self, session: Session) -> Iterator[None]:
        for event in self._prompts(session)[:1]:
            self._history().ask(question=event.text, project=session.project)
            yield

    def _polish(self, session: Session) -> Iterator[None]:
        try:
            self._history().resume(session=f"{session.provider}:{session.id}", polish=True)
        except KiteError:  # a session without events has no brief
            return
        yield

    def _embed(self, session: Session) -> Iterator[Json]:
        notes = [note for note in map(self.vault.read, self.vault.notes_of(session.provider, session.id)) if note is not None]
        if texts := [text for note in notes for text in passages(note)]:
            yield {"task": "embed", "when": "with a Voyage key, once for each note", "to": "voyage", "texts": texts}

    def _history(self) -> History:
        return History(
            timeline=self.timeline,
            vault=self.vault,
            recall=self.recall,
            answerer=lambda: self.askers.answerer,
            polisher=lambda: self.askers.polisher,
            clock=self.clock,
        )

    def _prompts(self, session: Session) -> list[Event]:
        """The newest first."""
        events = self.timeline.last_events(session.provider, session.id, _EVENTS)
        said = [event for event in self.timeline.offered(events) if event.type is EventType.USER_MESSAGE and event.role == "user"]
        return said[::-1][:_MOST_PROMPTS]
