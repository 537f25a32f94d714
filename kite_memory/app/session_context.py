"""Context of what recall is asked: where a hook's call comes from, the events before a prompt, and the evidence of a note."""

import sqlite3
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property, partial
from itertools import takewhile

from kite_memory.app.prompt_hook import HookInput
from kite_memory.model.event import Event, EventType, EvidenceReference, Session, opens_turn
from kite_memory.model.note import Note
from kite_memory.projects.project import project_of
from kite_memory.projects.repositories import branch_of
from kite_memory.recall.index import Refreshed
from kite_memory.recall.recall import Recall
from kite_memory.recall.select import Situation, situation_of
from kite_memory.redaction import drop_private
from kite_memory.sources.common.words import Approved, Said, Utterance, utterances
from kite_memory.timeline.resume import BriefPart, brief, changed_files, cut
from kite_memory.timeline.runs import open_failures, runs
from kite_memory.timeline.store import Timeline
from kite_memory.vault import Vault

ABOUT = "what was being done here last, from the transcript"

_FORGOTTEN = timedelta(days=14)
_FILES = 4
_PROMPT = 160
_COMMAND = 120
_ALSO = (BriefPart.STABLE, BriefPart.OPEN)


def last_work(session: Session, events: Sequence[Event], prompt: Event | None, now: datetime) -> tuple[str, ...]:
    """Return at most five lines about a session's last ``events``, given oldest first; the most important line first.

    ``prompt`` is the session's last one. Empty if the last of them is more than two weeks old.
    """
    ends = max((event.at for event in (*events, *filter(None, (prompt,)))), default=None)
    if ends is None or now - ends > _FORGOTTEN:
        return ()
    return tuple(_lines(session, events, prompt, ends))


def _lines(session: Session, events: Sequence[Event], prompt: Event | None, ends: datetime) -> Iterator[str]:
    if prompt is not None and (asked := cut(prompt.text, _PROMPT)):
        branch = f" on {session.branch}" if session.branch not in ("", "HEAD") else ""
        yield f'{ends:%Y-%m-%d}{branch}, the last prompt: "{asked}"'
    if files := tuple(dict.fromkeys(file.path for file in changed_files(events, session.cwd))):
        yield f"Files changed last: {', '.join(files[:_FILES])}"
    if failed := _open_failure(session, events):
        yield f"A command that failed and was not seen to succeed since: {cut(failed, _COMMAND)}"
    if (found_brief := brief(session, events)) is not None:
        for part in _ALSO:
            line = next((line for line in found_brief.lines if line.part is part and "no answer" not in line.text), None)
            if line is not None:
                yield f"{'Last stable' if part is BriefPart.STABLE else 'Open'}: {line.text}"


def _open_failure(session: Session, events: Sequence[Event]) -> str:
    """Return the last command that failed in a meaningful way and has not succeeded since."""
    done = runs(events, session.cwd)
    last = next((run for run in reversed(done) if run.outcome == "failed" and run.purposes), None)
    return last.command if last is not None and last in open_failures(done) else ""


_SESSIONS = 12
_REFERENCES = 4
_LENGTH = 1_500
_UNREADABLE = (sqlite3.Error, UnicodeError)
"""Errors of names that are no valid text, as YAML or a shell can produce. They are treated as unknown."""
_EVENTS = 200
"""Events of the session read before a prompt: about sixty tool calls, in less than two milliseconds."""


def said_about(timeline: Timeline, note: Note) -> str:
    """Return the text of the note's evidence for the index, since users ask again in the words of that time.

    It is redacted as stored; missing evidence is skipped.
    """
    parts: dict[str, None] = {}
    for text in note.evidence[:_REFERENCES]:
        reference = EvidenceReference.parse(text)
        try:
            events = [] if reference is None else timeline.evidence(reference)
        except _UNREADABLE:
            return ""
        parts.update((event.text[:_LENGTH], None) for event in events[:1])
    return "\n".join(parts)


class NoteIndexer:
    """Keeps the index in step with the vault, each note with the text of its evidence."""

    def __init__(self, *, vault: Vault, timeline: Timeline, recall: Recall) -> None:
        self._vault = vault
        self._recall = recall
        self._evidence = partial(said_about, timeline)

    def refresh(
        self,
        paths: Collection[str] | None = None,
        *,
        meaning: bool = True,
        stop: Callable[[], bool] = lambda: False,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> Refreshed:
        """Same as `Recall.refresh`, for these ``paths`` or for all."""
        return self._recall.refresh(self._vault, evidence=self._evidence, hint=paths, meaning=meaning, stop=stop, progress=progress)

    def rebuild(self, *, progress: Callable[[int, int], None]) -> Refreshed:
        """Same as `Recall.rebuild`."""
        return self._recall.rebuild(self._vault, evidence=self._evidence, progress=progress)


def commands_run(timeline: Timeline, project: str) -> tuple[tuple[str, ...], ...]:
    """Return the commands of a project's last sessions, a list for each; empty if they cannot be read."""
    try:
        sessions = timeline.last_sessions(project, _SESSIONS)
        of_each = (timeline.last_events(session.provider, session.id, _EVENTS) for session in sessions)
        return tuple(tuple(event.command for event in events if event.command) for events in of_each)
    except _UNREADABLE:
        return ()


def conversation(timeline: Timeline, reference: EvidenceReference) -> str:
    """Return the prompt and the end of a conversation. Empty if the timeline does not hold it, or its events were forgotten."""
    try:
        line = timeline.offered(timeline.evidence(reference)[:1])
        if not line:
            return ""
        asked = line[0]
        later = timeline.offered(timeline.events(asked.provider, asked.session, after=asked.ordinal, limit=_EVENTS))
    except _UNREADABLE:
        return ""
    turn = list(takewhile(lambda event: not opens_turn(event), later))
    said = [event.text for event in turn if event.type is EventType.ASSISTANT_MESSAGE and event.text]
    closing = f"\nIt ended: {said[-1][:_LENGTH]}" if said else ""
    return f"{asked.at:%Y-%m-%d}, {asked.role}: {asked.text[:_LENGTH]}{closing}"


def before(timeline: Timeline, provider: str, session: str, prompt: str) -> Situation:
    """Return the session's context of a prompt; empty for an unknown session, or one that cannot be read."""
    try:
        events = timeline.last_events(provider, session, _EVENTS) if session else []
        return situation_of(events, prompt, spoken=timeline.spoken(provider, session))
    except _UNREADABLE:
        return Situation()


@dataclass(frozen=True)
class HookContext:
    """A hook's call, and what is known of the place and the moment it comes from. Each part is found when first needed, once."""

    call: HookInput
    agent: str
    timeline: Timeline

    @property
    def session(self) -> str:
        return self.call.session

    @cached_property
    def project(self) -> str:
        return project_of(self.call.cwd)

    @cached_property
    def branch(self) -> str:
        return branch_of(self.call.cwd)

    @cached_property
    def utterances(self) -> tuple[Utterance, ...]:
        return utterances(self.call.prompt)

    @cached_property
    def typed(self) -> str:
        """The user's own words, without approved plans."""
        return "\n".join(piece.text for piece in self.utterances if isinstance(piece, Said))

    @cached_property
    def _spoken(self) -> str:
        pieces = (piece for piece in self.utterances if isinstance(piece, Said | Approved))
        return "\n".join(piece.text if isinstance(piece, Said) else piece.plan for piece in pieces)

    @property
    def is_automatic(self) -> bool:
        """Whether no person wrote the prompt: it is, for example, the news that a task has ended."""
        return bool(self.call.prompt) and not self._spoken

    @cached_property
    def text(self) -> str:
        """The user's words and approved plans, without what the agent puts around them and without private text."""
        return drop_private(self._spoken)

    @cached_property
    def situation(self) -> Situation:
        return before(self.timeline, self.agent, self.session, self.text)
