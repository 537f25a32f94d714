"""Entry point of recall: keep an index, answer searches, and choose what a prompt is given."""

import contextlib
import sqlite3
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from functools import partial

import numpy as np

from kite_memory.errors import StateNotWritten
from kite_memory.model.hit import ConversationLookup, Fixes, Hit, Injection, Judged, Pointer, Question, Quote, Verdict
from kite_memory.model.note import Note, NoteKind, Scope, Surroundings
from kite_memory.recall import pointing
from kite_memory.recall.catalogue import VisibleNotes
from kite_memory.recall.gate import personal
from kite_memory.recall.index import Evidence, Index, Refreshed, no_evidence
from kite_memory.recall.pointing import Commands, contents, nearest, nothing_run
from kite_memory.recall.prose import NoteFiles
from kite_memory.recall.rendering import CHARACTERS, block, handle, render_prompt_block
from kite_memory.recall.rendering import contents as list_of
from kite_memory.recall.search import Query, recent, search, spoken, unbound
from kite_memory.recall.select import (
    Delivery,
    Needless,
    Prompt,
    Requirement,
    Selection,
    Weighed,
    deliver,
    silence,
    weigh,
)
from kite_memory.recall.session_memory import TEAMS, Occasion, SessionMemory, ShownNote
from kite_memory.recall.tool_advice import ToolAdvice
from kite_memory.recall.uptake import Moment
from kite_memory.system import utc_now
from kite_memory.text.shell import Action

_ANYTHING = 0.50
_FIRST = 0.40
_ALSO = 0.40
"""A judge's probabilities from which a note is shown. The judge is asked two things: whether any note helps, and which. Measured on
recorded verdicts, the first question prevents more false injections than a higher bar for the second.
"""
_STRANGE = 0.20
"""How much higher a judge's probability must be for another project's note. The gate's own score includes this already."""
_LIST_TOKENS = 300
_POINTER_TOKENS, _FIRST_POINTER_TOKENS = 130, 300
_LEARNED_FROM = timedelta(days=180)


def _go_on() -> bool:
    return False


def _unseen(done: int, total: int) -> None:
    pass


class Recall:
    """Services of recall for one vault. Thread-safe.

    Where the ``requirement`` is ``judged``, only notes above the "quiet" threshold are shown at once, and doubtful ones are passed
    on as a question for a judge.
    """

    def __init__(
        self,
        *,
        index: Index,
        memory: SessionMemory,
        requirement: Requirement | None = None,
        notes_per_prompt: int = 2,
        tokens_per_prompt: int = 1600,
        clock: Callable[[], datetime] = utc_now,
        fixes: Fixes | None = None,
        cards: ConversationLookup | None = None,
        commands: Commands = nothing_run,
    ) -> None:
        self._index = index
        self._memory = memory
        self._requirement = requirement or Requirement()
        self._fitted = self._requirement.gate
        self._learned: date | None = None
        self._notes_per_prompt = notes_per_prompt
        self._tokens_per_prompt = tokens_per_prompt
        self._clock = clock
        self._cards = cards
        self._commands = commands
        self._acting = ToolAdvice(index=index, memory=memory, fixes=fixes)

    @property
    def notes_per_prompt(self) -> int:
        return self._notes_per_prompt

    @property
    def memory(self) -> SessionMemory:
        return self._memory

    @property
    def index(self) -> Index:
        return self._index

    def close(self) -> None:
        self._index.close()
        self._memory.close()

    def refresh(
        self,
        files: NoteFiles,
        *,
        evidence: Evidence = no_evidence,
        hint: Collection[str] | None = None,
        embed: bool = True,
        stop: Callable[[], bool] = _go_on,
        progress: Callable[[int, int], None] = _unseen,
    ) -> Refreshed:
        """Bring the index up to date, as `Index.refresh` does. A full refresh also deletes old texts and figures from the session
        memory.
        """
        if hint is None:
            for upkeep in (self._prune, self._learn):
                with contextlib.suppress(sqlite3.Error):  # old rows do no harm, and the next full refresh tries again
                    upkeep()
        return self._index.refresh(files, evidence=evidence, hint=hint, embed=embed, stop=stop, progress=progress)

    def embed(self, *, stop: Callable[[], bool] = _go_on) -> int:
        """Embed the texts that have no vector yet, as `Index.embed` does."""
        return self._index.embed(stop=stop)

    def _prune(self) -> None:
        self._memory.prune(self._clock())

    def _learn(self) -> None:
        """Refit the gate's bias to recent verdicts, at most once a day."""
        now = self._clock()
        if self._learned != now.date():
            gate = personal(self._fitted, self._memory.verdicts.since(now - _LEARNED_FROM))
            self._requirement = replace(self._requirement, gate=gate)
            self._learned = now.date()

    def rebuild(
        self,
        files: NoteFiles,
        *,
        evidence: Evidence = no_evidence,
        stop: Callable[[], bool] = _go_on,
        progress: Callable[[int, int], None] = _unseen,
    ) -> Refreshed:
        """Delete the index and build it again. The record of what sessions were shown is kept."""
        self._index.clear()
        return self._index.refresh(files, evidence=evidence, stop=stop, progress=progress)

    def search(self, query: Query) -> tuple[Hit, ...]:
        return search(self._index, query, self._clock())

    def nearest(self, note: Note) -> Surroundings:
        """Return the notes of the same project that a new note may repeat or contradict."""
        return nearest(self._index, note, self._clock().timestamp())

    def recent(self, *, project: str, kinds: Collection[NoteKind], limit: int, visible: VisibleNotes) -> list[Note]:
        """Return the newest notes of a project and of no project, newest first; with ``kinds``, only of those kinds. Notes that
        were rejected or have expired are omitted.
        """
        return recent(self._index, project=project, kinds=kinds, limit=limit, visible=visible, now=self._clock().timestamp())

    def weigh(self, prompt: Prompt) -> Weighed:
        """Return what `answer` would choose from, without recording it. Used for explanations and for further judging."""
        return self._weighed(prompt, explain_all=True)

    def answer(self, prompt: Prompt, *, remember: bool = True, delivery: Delivery | None = None) -> Injection:
        """Return what the prompt hook injects. Uses no network and raises nothing.

        With ``remember``, the notes count as shown to this session and the occasion is logged: immediately or, as everywhere in
        this class, once the ``delivery`` has arrived.
        """
        return self._delivered(lambda: self._selection(prompt, self._chosen(prompt), "prompt"), remember, delivery)

    def log_verdicts(self, question: Question, judged: Judged) -> None:
        """Log the judge's verdict on a question, whether or not it is delivered before the turn ends. Raises nothing.

        A question about a note that has been forgotten meanwhile is not logged.
        """
        if not all(self._index.numbers(hit.note.name) for hit in question.candidates):
            return
        try:
            self._memory.verdicts.log(question, judged, self._clock())
        except sqlite3.Error:
            pass  # one more example to learn from, lost

    def likely(self, question: Question) -> Judged:
        """Return the verdicts that the gate alone gives, for use when the judge returned none."""
        verdicts = (Verdict(note=hit.note.name, probability=hit.score) for hit in question.candidates)
        return Judged(verdicts=tuple(each for each in verdicts if each.probability >= self._requirement.likely), by_gate=True)

    def judged(
        self, question: Question, judged: Judged, *, tokens: int | None = None, delivery: Delivery | None = None
    ) -> Injection:
        """Choose what to show from the judge's verdicts and claim it for the session, for delivery during the turn. Raises nothing.

        ``tokens`` is what is left of the turn's budget.
        """
        return deliver(partial(self._ruled, question, judged, tokens), self._memory, delivery)

    def _ruled(self, question: Question, judged: Judged, tokens: int | None) -> Selection:
        found = {verdict.note: verdict.probability for verdict in judged.verdicts} if judged.anything >= _ANYTHING else {}
        shown = self._shown(question.session)
        asked = [hit for hit in question.candidates if hit.note.name in found]
        who = "the gate, for want of a judge" if judged.by_gate else "the judge"
        hits = [replace(hit, score=found[hit.note.name], why=who) for hit in self._in_force(asked)]
        hits = sorted((hit for hit in hits if hit.note.name not in shown), key=lambda hit: -hit.score)
        first, also = (
            (self._requirement.likely, self._requirement.likely * self._fitted.second) if judged.by_gate else (_FIRST, _ALSO)
        )
        foreign = [_STRANGE * (not judged.by_gate and _of_another(hit.note, question.project)) for hit in hits]
        chosen = [hit for place, hit in enumerate(hits) if hit.score >= foreign[place] + (also if place else first)]
        chosen = chosen[: self._notes_per_prompt]
        rendered = block(chosen, tokens=self._room(tokens))
        if not rendered.hits:
            return Selection(injection=silence(f"{who} found nothing"))
        reason = f"{who}: best {chosen[0].score:.2f}"
        prompt = Prompt(text="", session=question.session, project=question.project, head=question.head)
        injection = Injection(block=rendered.text, hits=rendered.hits, reason=reason, tokens=rendered.tokens)
        return self._selection(prompt, injection, "late")

    def from_the_team(
        self, prompt: Prompt, hits: Sequence[Hit], *, beside: Injection, tokens: int, delivery: Delivery | None = None
    ) -> Injection:
        """Choose which team notes to show, in the room that ``beside`` leaves, and claim them for the session. Raises nothing.

        Notes that this machine has as well are omitted: local recall covers them. ``tokens`` is what is left of the turn's budget.
        """
        return deliver(partial(self._of_the_team, prompt, hits, beside, tokens), self._memory, delivery)

    def _of_the_team(self, prompt: Prompt, hits: Sequence[Hit], beside: Injection, tokens: int) -> Selection:
        shown = self._shown(prompt.session)
        fresh = [hit for hit in hits if hit.note.id not in shown and not self._index.numbers(hit.note.id.removeprefix(TEAMS))]
        rendered = block(
            fresh[: max(0, self._notes_per_prompt - len(beside.hits))],
            tokens=min(tokens, self._tokens_per_prompt - beside.tokens),
            characters=CHARACTERS - len(beside.block) - 1,
            whose="this user's team",
        )
        if not rendered.hits:
            return Selection(injection=silence("nothing new from the team"))
        reason = f"{len(rendered.hits)} of the team's: best {max(hit.score for hit in rendered.hits):.2f}"
        injection = Injection(block=rendered.text, hits=rendered.hits, reason=reason, tokens=rendered.tokens)
        return self._selection(prompt, injection, "team")

    def brief(
        self, *, session: str, project: str, branch: str = "", remember: bool = True, delivery: Delivery | None = None
    ) -> Injection:
        """Return what a session is shown of the vault as it starts: at most fifteen titles. Raises nothing."""
        return self._delivered(partial(self._titles, session, project, branch), remember, delivery)

    def _titles(self, session: str, project: str, branch: str) -> Selection:
        shown = self._shown(session)
        if shown or (session and self._memory.listed(session)):
            return Selection(injection=silence("the session has begun already"))
        lines = contents(
            self._index,
            project=project,
            shown=shown,
            now=self._clock().timestamp(),
            taken_up=self._memory.taken_up(),
            at_rest=self._memory.at_rest(),
            commands=self._commands,
            session=session,
            branch=branch,
        )
        rendered = list_of(lines, tokens=_LIST_TOKENS)
        if not rendered.text:
            return Selection(injection=silence("nothing to begin with"))
        injection = Injection(block=rendered.text, hits=rendered.hits, reason="a session starts", tokens=rendered.tokens)
        return self._selection(Prompt(text="", session=session, project=project), injection, "start")

    def act(self, action: Action, *, branch: str = "", delivery: Delivery | None = None) -> Injection:
        """Return the advice for an agent that runs a command, or whose command failed: one line, rarely. Raises nothing."""
        return self._acting.act(action, self._clock(), branch=branch, delivery=delivery)

    def opened(self, session: str, called: Sequence[str], *, project: str = "") -> None:
        """Record that the agent opened these notes, named by an id, the end of an id, or a citation. Raises nothing."""
        try:
            known = self._memory.listed(session)
            short = {short: each for each in known for short in (each.rpartition("#")[2], handle(each), each)}
            names = [short.get(one) or self._named(one) for one in called]
            self._memory.opened(session, list(dict.fromkeys(filter(None, names))), self._clock(), project=project)
        except sqlite3.Error:
            pass  # at worst it is shown once more

    def _named(self, called: str) -> str:
        note = self._index.called(called)
        return note.name if note is not None else ""

    def take_over(self, session: str, origin: str) -> None:
        """Count what the session ``origin`` was shown as shown to its fork ``session`` too. Raises nothing."""
        try:
            self._memory.take_over(session, origin)
        except sqlite3.Error:
            pass  # at worst something is shown to the fork again

    def forget_session(self, session: str) -> None:
        """Forget what the session was shown, since a compaction removed it from the agent's context. Raises nothing."""
        try:
            self._memory.forget_session(session)
        except sqlite3.Error:
            pass  # then earlier notes are not shown again, to be cautious

    def forget_notes(self, notes: Collection[str]) -> None:
        """Forget notes by id, or by path if they have none. Raises `StateNotWritten` if that fails."""
        try:
            self._memory.forget_notes(notes)
        except sqlite3.Error as error:
            raise StateNotWritten(
                f"the memory of what was shown cannot be used: {error}", hint="nothing was forgotten; try again in a moment"
            ) from error

    def forget_words(self, heads: Collection[tuple[str, str]], sessions: Collection[str]) -> None:
        """Erase words of what was shown. ``heads`` are pairs of a session and the beginning of a prompt to erase; for ``sessions``,
        all words kept of them are erased. Raises nothing.
        """
        try:
            for session, beginning in heads:
                self._memory.forget_head(session, beginning)
            self._memory.forget_words_of(sessions)
        except sqlite3.Error:
            pass  # they are pruned after thirty days

    def purge(self) -> bool:
        """Erase removed notes' text from the files. Return ``False`` while another process reads one of them. Raises nothing."""
        purged = self._index.purge()
        try:
            return self._memory.purge() and purged
        except sqlite3.Error:
            return False

    def _weighed(self, prompt: Prompt, *, explain_all: bool = False) -> Weighed:
        return weigh(
            self._index,
            prompt,
            self._requirement,
            shown=self._shown(prompt.session),
            now=self._clock().timestamp(),
            limit=self._notes_per_prompt,
            tallies=self._memory.tallies(),
            explain_all=explain_all,
        )

    def _chosen(self, prompt: Prompt) -> Injection:
        weighed = self._weighed(prompt)
        chosen = weighed.candidates[: weighed.chosen]
        if not chosen and self._requirement.threshold is None and not self._requirement.judged and not weighed.needless:
            asked = pointing.asked_for(prompt.text, weighed.near, readiness=self._requirement.readiness)
            chosen = weighed.near[: min(asked, self._notes_per_prompt)]
        quotes, pointers = self._beside(prompt, weighed, chosen)
        first = not prompt.situation.position
        rendered = render_prompt_block(
            chosen,
            quotes,
            pointers,
            tokens=self._room(prompt.tokens),
            pointer_tokens=_FIRST_POINTER_TOKENS if first and quotes else _POINTER_TOKENS,
        )
        question = weighed.question if not rendered.hits else None
        if not rendered.text:
            return Injection(block="", hits=(), reason=weighed.silence or "no room for a note", question=question)
        best = max((hit.score for hit in chosen), default=0.0)
        parts = [f"{len(rendered.hits)} in full: best {best:.2f}"] if rendered.hits else []
        parts += [f"{len(rendered.quotes)} quoted"] if rendered.quotes else []
        parts += [f"{len(rendered.pointers)} by title: best {rendered.pointers[0].score:.2f}"] if rendered.pointers else []
        return Injection(
            block=rendered.text,
            hits=rendered.hits,
            reason=", ".join(parts),
            tokens=rendered.tokens,
            question=question,
            pointers=rendered.pointers,
            quotes=rendered.quotes,
        )

    def _beside(self, prompt: Prompt, weighed: Weighed, chosen: Sequence[Hit]) -> tuple[Sequence[Quote], Sequence[Pointer]]:
        """Return conversations to quote and pointers that the session has not been shown yet."""
        if weighed.needless not in (None, Needless.TERSE):
            return (), ()
        listed = self._memory.listed(prompt.session) if prompt.session else {}
        shown = self._shown(prompt.session)
        said = {hit.note.name for hit in chosen}.union(shown)
        given = [hit.note for hit in chosen] + [note for each in shown if (note := self._index.called(each)) is not None]
        cited = {reference for note in given for reference in note.evidence}
        near = [hit for hit in weighed.near if hit.note.name not in said]
        could = pointing.candidates(prompt.text, near)
        scores = [hit.score for hit in near]
        asks = not chosen and pointing.asks_of_the_past(prompt.text)
        notes = pointing.MANY if chosen else weighed.notes  # what was asked for is there: more must be likely
        pointers = pointing.pointers(could, scores, notes=notes, listed=listed, asks=asks)
        first = not prompt.situation.position
        if self._cards is None or not prompt.project:
            return (), pointers
        asked = self._cards.answer(prompt.text, project=prompt.project, session=prompt.session, of_the_past=asks)
        asked = [quote for quote in asked if quote.id not in shown and cited.isdisjoint(quote.evidence)]
        if (pointers or chosen) and not first:
            return asked, pointers
        quotes: Sequence[Quote] = ()
        least = pointing.least_of_conversations(listed)
        if first:
            quotes, others = self._cards.opening(prompt.text, project=prompt.project, session=prompt.session)
        else:
            others = self._cards.near(prompt.text, project=prompt.project, session=prompt.session, least=least)
        of_sessions = {quote.session for quote in asked}
        quotes = [quote for quote in quotes if quote.id not in shown and cited.isdisjoint(quote.evidence)]
        quotes = [*asked, *(quote for quote in quotes if quote.session not in of_sessions)]
        of_sessions.update(quote.session for quote in quotes)
        others = [
            each for each in others if each.id not in shown and each.session not in of_sessions and cited.isdisjoint(each.evidence)
        ]
        return quotes, (
            *pointers,
            *pointing.conversations(others, could, given=[each.id for each in pointers], listed=listed, least=least),
        )

    def _delivered(self, select: Callable[[], Selection], remember: bool, delivery: Delivery | None) -> Injection:
        """Deliver, or without ``remember`` only select."""
        return deliver(select if remember else lambda: replace(select(), occasion=None), self._memory, delivery)

    def _selection(self, prompt: Prompt, injection: Injection, moment: Moment) -> Selection:
        occasion = self._occasion(prompt, injection, moment=moment)
        claimed = [given.note for given in occasion.given if given.voice != "pointer"] if moment != "start" else []
        return Selection(injection=injection, occasion=occasion, claimed=tuple(claimed))

    def _shown(self, session: str) -> frozenset[str]:
        return self._memory.shown(session) if session else frozenset()

    def _room(self, left: int | None) -> int:
        return self._tokens_per_prompt if left is None else min(left, self._tokens_per_prompt)

    def _in_force(self, hits: Sequence[Hit]) -> Iterator[Hit]:
        """Yield the hits whose notes may still be shown, with their current text: a note may be forgotten, muted or replaced while
        a judge reads it.
        """
        columns = self._index.columns()
        may_be_shown = spoken(columns, self._clock().timestamp(), unbound(columns))
        for hit in hits:
            numbers = self._index.numbers(hit.note.name)
            rows = columns.rows_of(np.array(numbers, np.int64)).tolist()
            notes = self._index.notes([number for number, row in zip(numbers, rows, strict=True) if row >= 0 and may_be_shown[row]])
            for note in list(notes.values())[:1]:
                yield replace(hit, note=note)

    def _occasion(self, prompt: Prompt, injection: Injection, *, moment: Moment) -> Occasion:
        listed = moment == "start"
        given = [
            ShownNote(note=hit.note.name, score=pointing.POINTER_THRESHOLDS.listed if listed else hit.score)
            for hit in injection.hits
        ]
        given += [ShownNote(note=quote.id, score=quote.score, voice="quote") for quote in injection.quotes]
        given += [ShownNote(note=pointer.id, score=pointer.score, voice="pointer") for pointer in injection.pointers]
        return Occasion(
            at=self._clock(),
            moment=moment,
            session=prompt.session,
            project=prompt.project,
            head=prompt.head,
            reason=injection.reason,
            given=tuple(given),
        )


def _of_another(note: Note, project: str) -> bool:
    return note.scope in (Scope.PROJECT, Scope.SESSION) and note.project != project
