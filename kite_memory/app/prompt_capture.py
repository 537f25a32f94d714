"""What a person asks in a prompt to have kept is written at once; what distillation makes of the same line later adds to it."""

import re
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from kite_memory.app.judge_queue import Report
from kite_memory.app.session_context import NoteIndexer
from kite_memory.distill.prose import stems
from kite_memory.model.event import Event, EventType, evidence_reference
from kite_memory.model.note import Note, NoteKind, Scope
from kite_memory.model.plan import Amend, Skip
from kite_memory.model.provenance import Provenance, Trace
from kite_memory.model.record import Chunk, Origin
from kite_memory.projects.project import project_of
from kite_memory.recall.recall import Recall
from kite_memory.redaction import drop_private, redact
from kite_memory.vault import Vault
from kite_memory.vault.drafting import Draft
from kite_memory.vault.ledger import Known
from kite_memory.vault.wording import body_key, note_id

if TYPE_CHECKING:
    from kite_memory.distill.asked_to_keep import Asked

TAG = "said"

_MOST_WAITING = 16
_TO_END = 5.0
_OVERLAP = 0.6
"""Share of the words of the shorter of two wordings that the other has, from which on they are the same thought."""
_COPIED, _COPIED_PAIRS = 0.8, 8
"""A share of its pairs of words, and how many there are at least: five words that mean something are no chance."""
_BECAUSE = "kept as it was said"
_COMMAND = re.compile(r"\s*[/$]remember\s+(?P<text>\S.*)", re.DOTALL)
"""The agent has had it kept, in these words or in others: then it cannot be told here."""
_LONGEST_COMMAND = 4_000
_NO_TIME = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prompt:
    text: str
    agent: str
    session: str
    cwd: str


class PromptCapture:
    """Thread-safe. A thread begins when there is something to look at, and ends when there is nothing more."""

    def __init__(
        self,
        *,
        vault: Vault,
        recall: Recall,
        indexer: NoteIndexer,
        report: Report,
        provenance: Callable[[str], Provenance | None] = lambda project: None,
    ) -> None:
        self._vault = vault
        self._provenance = provenance
        self._recall = recall
        self._indexer = indexer
        self._vault_lock = vault.lock
        self._report = report
        self._lock = threading.Lock()
        self._waiting: deque[_Prompt] = deque()
        self._working = False
        self._closed = False

    def hear(self, text: str, *, agent: str, session: str, cwd: str) -> None:
        """Returns at once. ``text`` is a person's; what it asks to keep is on disk and found a moment later."""
        from kite_memory.distill.asked_to_keep import may_ask  # its long expressions: only who hears prompts pays for them

        if not may_ask(text):
            return
        with self._lock:
            if self._closed or len(self._waiting) == _MOST_WAITING:
                return  # the transcript has it, too
            self._waiting.append(_Prompt(text=text, agent=agent, session=session, cwd=cwd))
            if self._working:
                return
            self._working = True
        try:
            threading.Thread(target=self._work, name="kmem-saying", daemon=True).start()
        except RuntimeError as error:  # no more threads to be had: the prompt is answered all the same
            with self._lock:
                self._working = False
                self._waiting.clear()
            self._report(error)

    def close(self) -> None:
        """What is being written is ended first, if that is soon; nothing more is begun."""
        with self._lock:
            self._closed = True
            self._waiting.clear()
        if self._vault_lock.acquire(timeout=_TO_END):
            self._vault_lock.release()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._working = False
                    return
                prompt = self._waiting.popleft()
            try:
                self._keep(prompt)
            except Exception as error:  # noqa: BLE001 - the edge of a thread
                if not self._closed:
                    self._report(error)

    def _keep(self, prompt: _Prompt) -> None:
        from kite_memory.distill.asked_to_keep import asked_to_keep

        asked = asked_to_keep(redact(drop_private(prompt.text)))
        if not asked:
            return
        project = project_of(prompt.cwd)
        origins = self._whose(asked, project)
        with self._vault_lock:
            if self._closed:
                return
            kept: dict[str, Note] = {}
            try:
                for each, origin in zip(asked, origins, strict=True):
                    note = self._keep_one(each, prompt, project, origin)
                    kept[note.path] = note
            finally:
                if kept:
                    self._indexer.refresh(set(kept))
            if related := {path for path, note in kept.items() if self._vault.relate(note, self._recall.nearest)}:
                self._indexer.refresh(related)

    def _whose(self, asked: "Sequence[Asked]", project: str) -> list[Origin]:
        """A file's word where that had nearly all of it first: a prompt may be filled by a script, a skill, or another agent."""
        known = self._provenance(project)
        traces = known.traces([each.text for each in asked]) if known else [Trace(pairs=0)] * len(asked)
        return ["tool" if each.pairs >= _COPIED_PAIRS and each.foreign >= _COPIED else "user" for each in traces]

    def _keep_one(self, asked: "Asked", prompt: _Prompt, project: str, origin: Origin) -> Note:
        return self._vault.remember(
            asked.text,
            kind=_kind(asked),
            project="" if asked.everywhere else project,
            scope=Scope.GLOBAL if asked.everywhere else None,
            tags=[TAG],
            importance=3,
            origin=origin,
            also_known_as=said_id(prompt.agent, prompt.session, asked),
        )


def said_id(provider: str, session: str, asked: "Asked") -> str:
    """By which a transcript's line finds the note that was made of it as it was typed. The same words give the same one."""
    return note_id(_NO_TIME, TAG, provider, session, body_key(asked.text))


def attested(events: Iterable[Event], vault: Vault) -> list[Amend]:
    """The lines of a transcript in which a person asked for what is kept already, as its evidence."""
    found: list[Amend] = []
    for event in events:
        for _, known, _ in _kept(event, vault):
            if known is not None:
                reference = evidence_reference(event.provider, event.session, event.id)
                found.append(Amend(id=known.id, path=known.path, evidence=(reference,), addition="", because=_BECAUSE))
    return found


def heard_before(drafts: Sequence[Draft], chunk: Chunk, vault: Vault) -> tuple[list[Draft], list[Amend | Skip]]:
    """What is left of ``drafts``, and what becomes of those that say what a person had kept with these very words.

    The note that was written then gets their evidence, and keeps its words. A note that its owner has deleted since stays away.
    """
    left = list(drafts)
    actions: list[Amend | Skip] = []
    for event in chunk.events:
        for asked, known, gone in _kept(event, vault):
            if known is None and not gone:
                continue
            reference = evidence_reference(event.provider, event.session, event.id)
            same = [draft for draft in left if reference in draft.note.evidence and _is_same(draft, asked)]
            left = [draft for draft in left if draft not in same]
            if known is None:
                actions += [Skip(title=draft.note.title, because="you deleted it") for draft in same]
                continue
            evidence = tuple(dict.fromkeys((reference, *(one for draft in same for one in draft.note.evidence))))
            actions += [
                Amend(id=known.id, path=known.path, evidence=evidence, addition="", because=_BECAUSE, absorbs=absorbed)
                for absorbed in [draft.note.id for draft in same] or [""]
            ]
    return left, actions


def _kept(event: Event, vault: Vault) -> "Iterator[tuple[Asked, Known | None, bool]]":
    """What a person asks in a line to have kept, the note of it, and whether they have deleted that since."""
    if event.type is not EventType.USER_MESSAGE or event.role != "user":
        return
    from kite_memory.distill.asked_to_keep import Asked, asked_to_keep

    for asked in asked_to_keep(event.text):
        id = said_id(event.provider, event.session, asked)
        yield asked, vault.known.by_id(id), vault.known.is_buried(id)
    if command := _COMMAND.fullmatch(event.text[:_LONGEST_COMMAND]):
        yield Asked(kind="fact", text=command["text"]), vault.known.saying(command["text"]), False


def _is_same(draft: Draft, asked: "Asked") -> bool:
    mine, theirs = stems(asked.text), stems(f"{draft.note.title}\n{draft.note.body}")
    least = min(len(mine), len(theirs))
    return least > 0 and len(mine & theirs) >= _OVERLAP * least


def _kind(asked: "Asked") -> NoteKind:
    return NoteKind.PREFERENCE if asked.kind == "preference" else NoteKind.FACT
