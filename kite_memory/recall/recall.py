"""The room's front door: keep an index, answer questions, and give prompts what helps."""

import sqlite3
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import UTC, datetime

from kite_memory.model.hit import Hit, Injection, Question
from kite_memory.model.judging import Judged
from kite_memory.model.look import Problem
from kite_memory.recall.answer import Prompt, Weighed, weigh
from kite_memory.recall.index import Index, IndexStatus, Refreshed, Shelf
from kite_memory.recall.rendering import block
from kite_memory.recall.search import Query, name, search
from kite_memory.recall.session_memory import Given, Occasion, SessionMemory

_CANDIDATES = 20
_WORTH_SHOWING = 0.4


def _now() -> datetime:
    return datetime.now(UTC)


def _go_on() -> bool:
    return False


def _unseen(done: int, total: int) -> None:
    pass


class Recall:
    """Safe to share between threads. A ``threshold`` of ``None`` is the embedder's own, which rises with the vault."""

    def __init__(
        self,
        *,
        index: Index,
        memory: SessionMemory,
        threshold: float | None = None,
        notes_per_prompt: int = 2,
        tokens_per_prompt: int = 1600,
        clock: Callable[[], datetime] = _now,
    ) -> None:
        self._index = index
        self._memory = memory
        self._threshold = threshold
        self._notes_per_prompt = notes_per_prompt
        self._tokens_per_prompt = tokens_per_prompt
        self._clock = clock

    def close(self) -> None:
        self._index.close()
        self._memory.close()

    def refresh(
        self,
        shelf: Shelf,
        *,
        hint: Collection[str] | None = None,
        stop: Callable[[], bool] = _go_on,
        progress: Callable[[int, int], None] = _unseen,
    ) -> Refreshed:
        """As `Index.refresh`. A full one also forgets what was shown more than thirty days ago."""
        if hint is None:
            try:
                self._memory.prune(self._clock())
            except sqlite3.Error:
                pass  # old rows do no harm, and the next full refresh tries again
        return self._index.refresh(shelf, hint=hint, stop=stop, progress=progress)

    def rebuild(
        self, shelf: Shelf, *, stop: Callable[[], bool] = _go_on, progress: Callable[[int, int], None] = _unseen
    ) -> Refreshed:
        """Throw the index away and make it anew. What sessions were shown is kept."""
        self._index.clear()
        return self._index.refresh(shelf, stop=stop, progress=progress)

    def search(self, query: Query) -> tuple[Hit, ...]:
        return search(self._index, query, self._clock())

    def weigh(self, prompt: Prompt) -> Weighed:
        """What `answer` would choose from, without its being remembered: for explanations, and for whoever judges further."""
        return self._weighed(prompt, _CANDIDATES, below_too=True)

    def answer(self, prompt: Prompt, *, remember: bool = True) -> Injection:
        """What the prompt hook says. No network is asked, and nothing is raised.

        With ``remember`` the notes count as shown to this session, and the occasion is written into the log.
        """
        try:
            injection = self._chosen(prompt, remember)
            if remember:
                self._memory.record(self._occasion(prompt, injection))
        except sqlite3.Error as error:
            return Injection(block="", hits=(), reason=f"the memory of what was shown cannot be used: {error}")
        return injection

    def judged(self, question: Question, judged: Judged) -> Injection:
        """What the judge found worth showing, claimed for the session, to be delivered while the turn lasts. Nothing is raised."""
        found = {verdict.note: verdict.probability for verdict in judged.verdicts if verdict.probability >= _WORTH_SHOWING}
        chosen = sorted(
            (replace(hit, score=found[name(hit.note)]) for hit in question.candidates if name(hit.note) in found),
            key=lambda hit: -hit.score,
        )[: self._notes_per_prompt]
        rendered = block(chosen, tokens=self._tokens_per_prompt)
        names = [name(hit.note) for hit in rendered.hits]
        try:
            if not names:
                return Injection(block="", hits=(), reason="the judge found nothing")
            if question.session and not self._memory.claim(question.session, names, self._clock()):
                return Injection(block="", hits=(), reason="already shown in this session")
        except sqlite3.Error as error:
            return Injection(block="", hits=(), reason=f"the memory of what was shown cannot be used: {error}")
        reason = f"the judge: best {chosen[0].score:.2f}"
        return Injection(block=rendered.text, hits=rendered.hits, reason=reason, tokens=rendered.tokens)

    def brief(self, *, session: str, project: str, remember: bool = True) -> Injection:
        """What a session is told of the vault as it starts: at most eight notes and 400 tokens. Nothing is raised."""
        return Injection(block="", hits=(), reason="not chosen yet")

    def forget_session(self, session: str) -> None:
        """After a compaction nothing that was shown is in the agent's context any more."""
        self._memory.forget_session(session)

    def occasions(self, count: int) -> tuple[Occasion, ...]:
        """The last prompts, the latest first: when, in which session, what they were given, and why."""
        return self._memory.last(count)

    def status(self) -> IndexStatus:
        return self._index.status()

    def verify(self) -> tuple[Problem, ...]:
        return self._index.verify()

    def _weighed(self, prompt: Prompt, limit: int, *, below_too: bool = False) -> Weighed:
        return weigh(
            self._index,
            prompt,
            shown=self._memory.shown(prompt.session) if prompt.session else (),
            now=self._clock().timestamp(),
            limit=limit,
            threshold=self._threshold,
            below_too=below_too,
        )

    def _chosen(self, prompt: Prompt, remember: bool) -> Injection:
        weighed = self._weighed(prompt, self._notes_per_prompt)
        chosen = tuple(hit for hit in weighed.candidates if hit.score >= weighed.threshold)
        if weighed.silence:
            return Injection(block="", hits=(), reason=weighed.silence)
        rendered = block(chosen, tokens=self._tokens_per_prompt)
        if not rendered.text:
            return Injection(block="", hits=(), reason="no room for a note")
        names = [name(hit.note) for hit in rendered.hits]
        if remember and prompt.session and not self._memory.claim(prompt.session, names, self._clock()):
            return Injection(block="", hits=(), reason="already shown in this session")
        reason = f"{len(names)} above threshold: best {chosen[0].score:.2f} ≥ {weighed.threshold:.2f}"
        return Injection(block=rendered.text, hits=rendered.hits, reason=reason, tokens=rendered.tokens)

    def _occasion(self, prompt: Prompt, injection: Injection) -> Occasion:
        return Occasion(
            at=self._clock(),
            session=prompt.session,
            project=prompt.project,
            head=prompt.head,
            reason=injection.reason,
            given=tuple(Given(note=name(hit.note), score=hit.score) for hit in injection.hits),
        )
