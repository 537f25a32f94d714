"""Pipeline from sources through timeline, outbox and vault to the index. The only module that connects all of them."""

import contextlib
import logging
import math
import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from kite_memory.app.code_anchors import anchored
from kite_memory.app.note_indexer import NoteIndexer
from kite_memory.app.prompt_capture import already_captured, evidence_amendments
from kite_memory.app.survey import READ_BUDGET, PassedOver, TranscriptSurvey, batches, passed_over, sessions_behind
from kite_memory.app.usage_report import OutcomeTracker
from kite_memory.distill.condense import ChunkPolicy, Span, finished, silence_needed, worth_asking
from kite_memory.distill.extractor import Usage
from kite_memory.distill.model_extractor import MOST_HERE, MOST_NEAR, as_remembered, may_be_changed, nearest_to
from kite_memory.distill.outbox import AnsweredChunk, Outbox, WaitingChunk
from kite_memory.distill.prose import retractions, withdrawn
from kite_memory.distill.scheduler import ChunkHandled, Idle, Steps
from kite_memory.errors import KiteError, VaultFolderWrong
from kite_memory.model.event import EARLIEST, Event, EventType, Passage, Problem, ReadResult, RedactedResult, Speaker, in_time
from kite_memory.model.note import Chunk, Note, NoteKind, NoteStatus, Remembered
from kite_memory.recall.index import Refreshed
from kite_memory.recall.recall import Recall
from kite_memory.redaction import redact_result
from kite_memory.sources import Source
from kite_memory.sources.common.words import without_echo
from kite_memory.sources.git_history import PROVIDER as GIT
from kite_memory.timeline.rows import SessionState
from kite_memory.timeline.store import Timeline
from kite_memory.vault import Vault
from kite_memory.vault.drafting import Draft, draft
from kite_memory.vault.lifecycle import Rulings
from kite_memory.vault.writing import AlreadyWritten, Amended, Outcome, Superseded, Written

log = logging.getLogger("kite_memory.app.pipeline")

_BLOCKED_PAUSE = 60.0
"""Seconds until a vault that could not be written to is tried again, unless a comparison finds it writable before."""

_BEFORE = 160
"""Number of events before a chunk that the extractor sees with it."""


_DAY = 86_400.0
_AHEAD = 366 * _DAY
_LAST_SECOND = 253_370_764_800.0
"""Latest accepted time, in the year 9998, since a clock may report anything."""

_GONE = "its events are gone from the timeline"

_PATIENCE = 1.0
"""Least seconds between two attempts to cut one session into chunks, however fast its lines arrive."""


class Pipeline:
    """Each step commits before the next begins and can be repeated, so that work continues after a crash anywhere.

    Ingestion is for one thread at a time, and so is everything from the vault onward, which `Vault.lock` guards. With
    ``remembers``, the extractor sees the notes that a chunk may change.
    """

    def __init__(
        self,
        *,
        sources: Sequence[Source],
        timeline: Timeline,
        outbox: Outbox,
        scheduler: Steps,
        vault: Vault,
        recall: Recall,
        indexer: NoteIndexer,
        policy: ChunkPolicy,
        remembers: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.sources = tuple(sources)
        self._timeline = timeline
        self._outbox = outbox
        self._scheduler = scheduler
        self._vault = vault
        self._recall = recall
        self._indexer = indexer
        self._policy = policy
        self._remembers = remembers
        self._clock = clock
        self._due_at: dict[tuple[str, str], float] = {}
        self._seen: dict[tuple[str, str], tuple[int, float]] = {}
        self._written: dict[tuple[str, str], float] = {}
        """When the file of a session was last written whose events all have the time of its start, as in Aider's histories."""
        self._opened = False
        self.survey = TranscriptSurvey(sources=sources, files=timeline.files, passed_over=self.passed_over)
        self._outcome_tracker = OutcomeTracker(timeline=timeline, recall=recall, providers=self.providers, clock=clock)
        self._held_back: dict[str, float] = {}
        """Answered chunks whose notes cannot be written, until when."""
        self._tidy: Callable[[], None] = lambda: None

    def after_deletions(self, tidy: Callable[[], None]) -> None:
        """Set the function that removes data kept beside notes, called after users have deleted notes."""
        self._tidy = tidy

    def providers(self) -> tuple[str, ...]:
        return tuple(source.provider for source in self.sources)

    def sources_of(self, paths: Iterable[Path]) -> list[tuple[Source, Path]]:
        """Return the source of each path, in the order to read them. Missing paths and those without a source are omitted."""
        there = [path for path in paths if os.path.exists(path)]  # noqa: PTH110 - which raises nothing, no matter who owns the folder
        return [(source, path) for source in self.sources for path in source.in_order(path for path in there if source.owns(path))]

    def unread(self) -> list[tuple[Source, Path, int]]:
        """Return the transcripts that differ from what was read of them, and by about how many bytes."""
        return [(source, path, behind) for source, path, behind in self.survey.compared() if behind is not None]

    def ingest_changed(self, source: Source, path: Path, behind: int | None, *, stop: Callable[[], bool]) -> None:
        """Call `ingest`, and count the file in `survey`.

        ``behind`` is the difference that the survey found, ``None`` for a file reported by the watch.
        """
        new = behind is None and self._timeline.files.cursor(str(path)) is None
        self.ingest(source, path, stop=stop)
        self.survey.read(source.provider, behind, new=new)

    def ingest(
        self,
        source: Source,
        path: Path,
        *,
        progress: Callable[[int], None] = lambda _: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> int:
        """Read ``path`` to its end, or until ``stop`` returns true, and commit its events. Return how many were new."""
        added = 0
        while True:
            cursor = self._timeline.files.cursor(str(path))
            read_result = source.read(path, cursor, budget=READ_BUDGET)
            nothing_read = cursor is not None and read_result.cursor == cursor and not read_result.events
            if nothing_read and not read_result.problems:
                return added
            read_result = self._in_time(redacted(read_result), source.provider)
            if nothing_read:
                read_result = replace(read_result, problems=self._new_problems(read_result))
                if not read_result.problems:
                    return added
            fresh = self._timeline.commit([read_result], source.provider)
            added += fresh
            log.debug(
                "read %s to %d: %d new events, %d problems", path, read_result.cursor.position, fresh, len(read_result.problems)
            )
            self._add_prompt_evidence(read_result)
            if read_result.session is not None and read_result.events:
                key, soon = (source.provider, read_result.session.id), self._clock() + _PATIENCE
                self._due_at[key] = min(self._due_at.get(key, soon), soon)
                alike = all(event.at <= read_result.session.started for event in read_result.events)
                if alike and read_result.events[-1].ordinal and not read_result.more:  # a first event always has that time
                    self._written[key] = read_result.cursor.mtime_ns / 1e9
            progress(max(0, read_result.cursor.position - (cursor.position if cursor else 0)))
            if not read_result.more or stop():
                return added

    def _in_time(self, read_result: RedactedResult, provider: str) -> RedactedResult:
        """Correct events dated in the future. Commits are returned unchanged.

        Events written while the clock was ahead are dated by their file, too.
        """
        if provider == GIT or read_result.session is None:
            return read_result
        now = max(self._clock(), min(read_result.cursor.mtime_ns / 1e9, self._clock() + _AHEAD))
        latest = datetime.fromtimestamp(min(now, _LAST_SECOND) + _DAY, UTC)
        if all(EARLIEST <= at <= latest for at in (read_result.session.started, *(event.at for event in read_result.events))):
            return read_result
        known = self._timeline.sessions.state(provider, read_result.session.id)
        before = datetime.fromtimestamp(known.quiet_since, UTC) if known is not None else None
        return in_time(read_result, latest=latest, before=before if before is not None and EARLIEST <= before <= latest else None)

    def _new_problems(self, read_result: ReadResult) -> tuple[Problem, ...]:
        """Return the problems not recorded yet: a file that cannot be read is one problem, however often it is read."""
        known = {each.reason for each in self._timeline.files.problems(file=read_result.path)}
        return tuple(problem for problem in read_result.problems if problem.reason not in known)

    def _add_prompt_evidence(self, read_result: ReadResult) -> None:
        """Add the lines as evidence to notes captured from prompts.

        What cannot be written now is added when the chunk is extracted.
        """
        actions = evidence_amendments(read_result.events, self._vault)
        if not actions:
            return
        with self._vault.lock, contextlib.suppress(KiteError):
            outcomes = self._vault.planner.carry_out(actions)
            if paths := {outcome.path for outcome in outcomes if isinstance(outcome, Amended)}:
                self._indexer.refresh(paths)

    def ingest_many(self, unread: Iterable[tuple[Source, Path]], *, progress: Callable[[int], None] = lambda _: None) -> int:
        return sum(self.ingest(source, path, progress=progress) for source, path in unread)

    def form_chunks(self) -> float | None:
        """Add finished chunks to the outbox. Return the Unix time to call this again if no event arrives, or ``None``.

        This also settles how the notes shown in a finished turn were used.
        """
        self._outcome_tracker.settle()
        now = self._clock()
        due = [key for key, ripe in self._due_at.items() if ripe <= now]
        for keys in batches(due):
            self.follow_timeline(keys)
            chunked_to = self._outbox.formed.chunked_to(keys)
            for key in keys:
                self._form(key, chunked_to.get(key, -1), now)
        return min(self._due_at.values(), default=None)

    def _form(self, key: tuple[str, str], after: int, now: float) -> None:
        state = self._timeline.sessions.state(*key)
        events = self._timeline.events.of_session(*key, after=after) if state is not None else []
        if state is None or not events:
            self._close(key)
            return
        ordinal, seen_at = self._seen.get(key, (-1, now))
        if ordinal != state.last_ordinal:
            self._seen[key] = (state.last_ordinal, seen_at := now)
        # By our own clock too: an event may be dated in the future.
        quiet_since = min(max(state.quiet_since, self._written.get(key, 0.0)), seen_at)
        spans = list(finished(events, self._policy, quiet_for=now - quiet_since))
        if spans:
            self._outbox.formed.add(spans, nothing=[span.id for span in spans if not worth_asking(_within(events, span))])
        left_over = [event for event in events if not spans or event.ordinal > spans[-1].last]
        if left_over:
            self._due_at[key] = max(quiet_since + silence_needed(left_over, self._policy), now + _PATIENCE)
        else:
            self._close(key)

    def _close(self, key: tuple[str, str]) -> None:
        """Mark the session as having every event in a chunk."""
        self._due_at.pop(key, None)
        self._seen.pop(key, None)
        self._written.pop(key, None)

    def open_sessions(self, *, skip_before: datetime | None = None, provider: str = "") -> None:
        """Find the sessions that have events in no chunk yet, after a start; of one provider, if given.

        Those whose last event is older than ``skip_before`` are passed over until `queue_skipped` gets them.
        """
        self._opened = self._opened or not provider
        for state in self._unchunked():
            key = (state.session.provider, state.session.id)
            if provider not in ("", state.session.provider):
                continue
            if skip_before is not None and state.quiet_since < skip_before.timestamp():
                last = self._timeline.events.last(*key, 1)
                self._outbox.formed.skip(*key, state.last_ordinal, event=last[-1].id if last else "")
                self._close(key)
            else:
                self._due_at[key] = 0.0

    def follow_timeline(self, sessions: Collection[tuple[str, str]] | None = None) -> None:
        """Move the cursors of ``sessions``, or of all, to their events' places in a timeline that was read again."""
        cursors = self._outbox.formed.cursors(sessions)
        found = self._timeline.events.ordinals([(*key, cursor.event) for key, cursor in cursors.items() if cursor.event])
        for key, cursor in cursors.items():
            ordinal = found.get((*key, cursor.event))
            if ordinal is None and (state := self._timeline.sessions.state(*key)) is not None:
                ordinal = min(cursor.ordinal, state.last_ordinal)
            if ordinal is not None and ordinal != cursor.ordinal:
                places = self._outbox.formed.places(*key)
                at = self._timeline.events.ordinals([(*key, event) for _, *ends in places for event in ends])
                chunks = {
                    id: (at[*key, first], at[*key, last])
                    for id, first, last in places
                    if at.keys() >= {(*key, first), (*key, last)}
                }
                self._outbox.formed.renumber(*key, ordinal, chunks)

    def _unchunked(self) -> Iterator[SessionState]:
        for page in self._timeline.sessions.pages():
            keys = [(each.session.provider, each.session.id) for each in page]
            self.follow_timeline(keys)
            chunked_to = self._outbox.formed.chunked_to(keys)
            yield from (each for key, each in zip(keys, page, strict=True) if each.last_ordinal > chunked_to.get(key, -1))

    def open_count(self) -> int:
        """Return how many sessions have events in no chunk yet, without those passed over."""
        if self._opened:
            return len(self._due_at)
        return sessions_behind(self._outbox.formed, self._timeline.sessions)

    def passed_over(self, *, since: datetime | None = None, provider: str = "") -> list[PassedOver]:
        """Return the passed-over parts of sessions that were active at ``since`` or later."""
        found = passed_over(self._outbox.formed, self._timeline.events, provider)
        if since is None:
            return found
        states = self._timeline.sessions.states()
        quiet = {(each.session.provider, each.session.id): each.quiet_since for each in states}
        return [each for each in found if quiet[each.provider, each.session] >= since.timestamp()]

    def open_stretches(self) -> Iterator[PassedOver]:
        """Yield the part of each session that is in no chunk yet."""
        for state in self._unchunked():
            key = (state.session.provider, state.session.id)
            begun = self._outbox.formed.chunked_to([key]).get(key, -1)
            yield PassedOver(provider=key[0], session=key[1], first=begun + 1, last=state.last_ordinal)

    def queue_skipped(self, passed_over: Iterable[PassedOver]) -> None:
        """Add passed-over parts to the outbox; they are no longer passed over then."""
        for each in passed_over:
            spans = list(self.spans(each))
            nothing = [span.id for events, span in spans if not worth_asking(_within(events, span))]
            self._outbox.formed.add([span for _, span in spans], nothing=nothing)

    def spans(self, passed_over: PassedOver) -> Iterator[tuple[list[Event], Span]]:
        """Yield the chunks that a passed-over part would make, each with the part's events.

        The last chunk ends at once, since later events are in a chunk already or were written later.
        """
        first, last = passed_over.first, passed_over.last
        found = self._timeline.events.of_session(passed_over.provider, passed_over.session, after=first - 1)
        events = [event for event in found if event.ordinal <= last]
        yield from ((events, span) for span in finished(events, self._policy, quiet_for=math.inf))

    def _loaded(self, waiting: WaitingChunk, loaded: list[Chunk]) -> Chunk | None:
        chunk = self.load(waiting)
        loaded += [chunk] if chunk is not None and chunk.events else []
        return chunk

    def plain_chunk(self, waiting: WaitingChunk) -> Chunk | None:
        """Return the chunk with its events alone, or ``None`` if they are gone."""
        return self._chunk(waiting.id, waiting.provider, waiting.session, waiting.first, waiting.last)

    def load(self, waiting: WaitingChunk) -> Chunk | None:
        """Return the chunk as an extractor gets it, or ``None`` if its events are gone."""
        chunk = self.plain_chunk(waiting)
        if chunk is None:
            return None
        before = self._timeline.events.last(waiting.provider, waiting.session, _BEFORE, before=waiting.first)
        with self._vault.lock:
            noted = len(self._vault.known.of_session(waiting.provider, waiting.session))
        provenance = self._timeline.provenance(chunk.session.project)
        remembered = tuple(self.remembered(chunk)) if self._remembers else ()
        return replace(chunk, before=tuple(before), noted=noted, provenance=provenance, remembered=remembered)

    def remembered(self, chunk: Chunk) -> Iterator[Remembered]:
        """Yield the notes that a chunk may change.

        They are the session's own notes and the nearest ones of its project or of none. Notes stored under a key are omitted, since
        the extractor must not change them.
        """
        key = (chunk.session.provider, chunk.session.id)
        with self._vault.lock:
            here = [note for note in map(self._vault.notes.read, self._vault.known.of_session(*key)) if note is not None]
        here = sorted((note for note in here if may_be_changed(note)), key=lambda note: note.created)[-MOST_HERE:]
        ids = {note.id for note in here}
        near = [note for note in nearest_to(chunk, self._recall.nearest) if may_be_changed(note) and note.id not in ids]
        yield from (as_remembered(note, here=True) for note in here)
        yield from (as_remembered(note, here=False) for note in near[:MOST_NEAR])

    def _chunk(self, name: str, provider: str, session: str, first: int, last: int) -> Chunk | None:
        known = self._timeline.sessions.get(provider, session)
        if known is None:
            return None
        events = self._timeline.events.offered(
            self._timeline.events.of_session(provider, session, after=first - 1, limit=last - first + 1_000)
        )
        return Chunk(id=name, session=known, events=tuple(event for event in events if event.ordinal <= last))

    def distil(self) -> ChunkHandled | Idle:
        """Write the notes of answered chunks, then ask about one chunk.

        Nothing is asked while notes cannot be written, since answers would only pile up.
        """
        if blocked := self.publish():
            return Idle(until=self._clock() + _BLOCKED_PAUSE, reason=str(blocked), hint=blocked.hint)
        asked: list[Chunk] = []
        step = self._scheduler.step(lambda waiting: self._loaded(waiting, asked))
        match step:
            case ChunkHandled(chunk=chunk, answered=answered):
                log.debug("chunk %s: %s", chunk, "answered" if answered else "nothing came of it, see `kmem trace`")
            case Idle(reason=reason):
                log.debug("no chunk is asked about: %s", reason)
        if isinstance(step, ChunkHandled) and (blocked := self.publish()):
            return Idle(until=self._clock() + _BLOCKED_PAUSE, reason=str(blocked), hint=blocked.hint)
        for each in asked if isinstance(step, ChunkHandled) else ():  # one without notes may take something back, too
            self._take_back(each)
        if isinstance(step, Idle) and self._held_back:
            again = min(self._held_back.values())
            return replace(step, until=again if step.until is None else min(step.until, again))
        return step

    def publish(self) -> KiteError | None:
        """Write the notes of every answered chunk and index them. Return the error that prevents it, if any.

        If one folder of the vault is wrong, the notes that belong there wait, and the others are written.
        """
        now = self._clock()
        self._held_back = {id: until for id, until in self._held_back.items() if now < until <= now + _BLOCKED_PAUSE}
        while answered := self._outbox.answered(limit=20, without=self._held_back):
            for chunk in answered:
                drafted = self._drafted(chunk)
                if drafted is not None:
                    try:
                        self._publish(self._skip_captured(*drafted), chunk.record.weighed)
                        self._take_back(drafted[1])
                    except VaultFolderWrong as error:
                        log.warning("%s: %s", error, error.hint)
                        self._held_back[chunk.id] = now + _BLOCKED_PAUSE
                        continue
                    except KiteError as error:
                        return error
                    self._outbox.written(chunk.id)
                else:
                    self._outbox.refuse(chunk.id, Usage(), reason=_GONE)
        return None

    def _drafted(self, answered: AnsweredChunk) -> tuple[list[Draft], Chunk] | None:
        """Return the drafts of an answer, or ``None`` if the chunk's events are gone: the answer has no evidence then."""
        chunk = self._chunk(answered.id, answered.provider, answered.session, answered.first, answered.last)
        if chunk is None or not chunk.events:
            return None
        return anchored(draft(answered.record, chunk), chunk, datetime.fromtimestamp(self._clock(), UTC)), chunk

    def _skip_captured(self, drafts: Sequence[Draft], chunk: Chunk) -> list[Draft]:
        """Return the drafts without those already stored from the user's own prompt: these notes get the evidence."""
        with self._vault.lock:
            left, actions = already_captured(drafts, chunk, self._vault)
            if paths := {outcome.path for outcome in self._vault.planner.carry_out(actions) if isinstance(outcome, Amended)}:
                self._indexer.refresh(paths)
        return left

    def _publish(self, drafts: Sequence[Draft], weighed: Sequence[str] = ()) -> None:
        """Write the drafts as notes. Notes they were ``weighed`` against, and that none of them changes, stay valid."""
        around = self._vault.planner.around(drafts, self._recall.nearest)
        rulings = _both_hold(drafts, weighed)
        wrong: VaultFolderWrong | None = None
        with self._vault.lock:
            outcomes: list[Outcome] = []
            with self._vault.undisturbed():
                for action in self._vault.planner.plan(drafts, around=around, rulings=rulings):
                    try:
                        outcomes += self._vault.planner.carry_out([action])
                    except VaultFolderWrong as error:
                        wrong = error
            paths = {outcome.path for outcome in outcomes if isinstance(outcome, Written | Amended | AlreadyWritten | Superseded)}
            paths.update(outcome.old_path for outcome in outcomes if isinstance(outcome, Superseded))
            if paths:
                self._indexer.refresh(paths)
        if wrong:
            raise wrong

    def _take_back(self, chunk: Chunk) -> None:
        """Replace what an agent found earlier in a session by what it finds where it says that it was wrong.

        If it finds nothing then, the note is archived; it waits for review where the retraction may be about something else.
        """
        if not (taken_back := [*retractions(chunk.events)]):
            return
        changed: set[str] = set()
        with self._vault.lock:
            known = map(self._vault.notes.read, self._vault.known.of_session(chunk.session.provider, chunk.session.id))
            here = [note for note in known if note is not None and _is_a_finding(note)]
            said_now = {event.reference for event in chunk.events}
            instead = max((note for note in here if said_now & {*note.evidence}), key=lambda note: note.created, default=None)
            for note in here:
                text = f"{note.title} {note.body}"
                if said_now & {*note.evidence} or note.created >= chunk.events[-1].at or not withdrawn(text, -1, taken_back):
                    continue
                if not self._vault.notes.is_ours(note):
                    continue
                if not withdrawn(text, -1, taken_back, surely=True):
                    changed |= {note.path} if self._vault.edits.annotate(note.id, {"status": NoteStatus.PROPOSED.value}) else set()
                elif instead is not None:
                    changed.update(self._vault.relations.settle(instead.id, note.id, "replaces"))
                elif self._vault.edits.annotate(note.id, {"status": NoteStatus.ARCHIVED.value}):
                    changed.add(note.path)
            if changed:
                self._indexer.refresh(changed)

    def unchanged_since_written(self, paths: Iterable[Path]) -> bool:
        """Return whether these files of the vault are all unchanged since they were last written here."""
        with self._vault.lock:  # so that none is just being written
            return all(map(self._vault.known.is_unchanged, paths))

    def embed(self, *, stop: Callable[[], bool] = lambda: False) -> None:
        """Compute the missing embeddings of notes that were indexed by their words only."""
        self._recall.embed(stop=stop)

    def read_vault(self) -> bool:
        """Read the user's changes to the vault, and return whether they may be indexed. Raises `KiteError` if that fails."""
        with self._vault.lock:
            comparison = self._vault.scanner.compare()
            if comparison.frozen:
                return False
            if comparison.deleted or self._vault.scanner.links_outdated:
                self._vault.scanner.mend_links()
                self._tidy()
            self._vault.relations.bring_in_line()
        return True

    def compare_vault(
        self,
        *,
        embed: bool = True,
        progress: Callable[[int, int], None] = lambda done, total: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> Refreshed | None:
        """Read the user's changes to the vault, then update the index. ``None`` while the vault is missing or frozen.

        Indexing holds no lock: a note that is written meanwhile is indexed on its own.
        """
        try:
            if not self.read_vault():
                return None
            return self._indexer.refresh(embed=embed, progress=progress, stop=stop)
        except KiteError as error:
            log.warning("the vault could not be compared: %s", error)
            return None


def _is_a_finding(note: Note) -> bool:
    """Return whether a note is a standing finding of an agent."""
    return (note.kind, note.status, note.origin) == (NoteKind.INSIGHT, NoteStatus.ACCEPTED, "assistant")


def _both_hold(drafts: Sequence[Draft], weighed: Sequence[str]) -> Rulings:
    """Return rulings that each draft and each weighed note both hold, in either order: a draft may be the older one."""
    pairs = [(draft.note.id, id) for draft in drafts for id in weighed]
    return dict.fromkeys((*pairs, *((other, one) for one, other in pairs)), "neither")


def redacted(read_result: ReadResult) -> RedactedResult:
    """Redact everything that was read, without what Kite Memory gave to the agent. All that is stored passes through here."""
    return redact_result(
        replace(read_result, events=tuple(map(_without_echo, read_result.events)), passages=tuple(_passages(read_result)))
    )


def _passages(read_result: ReadResult) -> Iterator[Passage]:
    """Yield everything that was written or read in the session, whole. Only hashes of it are stored."""
    said = (
        Passage(
            text=event.whole or event.text,
            said_by=_said_by(event),
            at=event.at.timestamp(),
            start=event.where.start,
            tool=event.tool,
        )
        for event in read_result.events
        if event.type in _TELLING and not (event.type is EventType.TOOL_CALL and event.text.count(" ") < _FEWEST_BLANKS)
    )
    for passage in (*read_result.passages, *said):
        if passage.text and not _OUR_TOOLS.search(passage.tool):
            ours = any(mark in passage.text for mark in _PERHAPS_OURS)
            yield replace(passage, text=without_echo(passage.text)) if ours else passage


def _said_by(event: Event) -> Speaker:
    match event.role:
        case "tool":
            return "failure" if event.status == "failed" else "tool"
        case "system":  # an agent's summary of earlier work, or a commit, which may be by anyone
            return "tool" if event.provider == GIT else "assistant"
        case role:
            return role


_TELLING = frozenset(
    (
        EventType.USER_MESSAGE,
        EventType.ASSISTANT_MESSAGE,
        EventType.TOOL_CALL,
        EventType.TOOL_RESULT,
        EventType.DECISION,
        EventType.RESUME_POINT,
    )
)
"""Types of events that are compared. Events of other types repeat a part of these."""
_FEWEST_BLANKS = 6
"""Least number of spaces in a call worth comparing. Shorter ones are file names or patterns, never an agent's own words."""
_PERHAPS_OURS = ("vault", "Vault", "VAULT", ".md] ")
"""Strings found in every block that the hook has written, in any layout."""


def _without_echo(event: Event) -> Event:
    """Remove text that Kite Memory itself gave to an agent, in whatever form it is repeated: it is no news."""
    text = "" if event.role == "tool" and _OUR_TOOLS.search(event.tool) else without_echo(event.text)
    command = without_echo(event.command) if event.command else ""
    same = (text, command, "") == (event.text, event.command, event.whole)
    return event if same else replace(event, text=text, command=command, whole="")


_OUR_TOOLS = re.compile(r"kite[-_. ]?memory", re.IGNORECASE)
"""Name of the MCP server, as it appears in agents' names of its tools."""


def _within(events: Iterable[Event], span: Span) -> list[Event]:
    return [event for event in events if span.first <= event.ordinal <= span.last]
