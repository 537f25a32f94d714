"""Notes that a user asks for in a prompt. They are written at once, and extended when the chunk is extracted."""

import re
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from kite_memory.app.note_indexer import NoteIndexer
from kite_memory.distill.prose import stems
from kite_memory.model.event import Event, EventType, Provenance, Trace
from kite_memory.model.note import Amend, Chunk, Note, NoteKind, Origin, Scope, Skip
from kite_memory.recall.recall import Recall
from kite_memory.redaction import drop_private, redact
from kite_memory.text import lazy_regex
from kite_memory.vault import Vault
from kite_memory.vault.drafting import Draft, Memo
from kite_memory.vault.ledger import KnownFile
from kite_memory.vault.wording import body_key, note_id

if TYPE_CHECKING:
    from kite_memory.distill.asked_to_keep import KeepRequest


TAG = "said"

_MOST_WAITING = 16
_TO_END = 5.0
_OVERLAP = 0.6
"""Share of words in common, of the shorter text, from which two texts count as the same thought."""
_COPIED = 0.8
"""Share of a request's word pairs found in a file from which the request counts as copied."""
_COPIED_PAIRS = 8
"""Least number of word pairs of a request that can count as copied."""
_BECAUSE = "kept as it was said"
_COMMAND = lazy_regex(r"\s*[/$]remember\s+(?P<text>\S.*)", re.DOTALL)
"""Command that makes the agent store a note, in these words or in others. In other words, the note is not found here."""
_LONGEST_COMMAND = 4_000
_NO_TIME = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prompt:
    text: str
    agent: str
    session: str
    project: str


class PromptCapture:
    """Writes the notes that prompts ask for. Thread-safe: a thread starts when there is a prompt to read, and ends when no more
    wait.
    """

    def __init__(
        self,
        *,
        vault: Vault,
        recall: Recall,
        indexer: NoteIndexer,
        report: Callable[[BaseException], None],
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

    def capture(self, text: str, *, agent: str, session: str, project: str) -> None:
        """Queue a user's prompt and return at once. What it asks to remember is on disk and found a moment later."""
        from kite_memory.distill.asked_to_keep import may_ask  # imported here: its long expressions are slow to compile

        if not may_ask(text):
            return
        with self._lock:
            if self._closed or len(self._waiting) == _MOST_WAITING:
                return  # the note is made from the transcript later
            self._waiting.append(_Prompt(text=text, agent=agent, session=session, project=project))
            if self._working:
                return
            self._working = True
        try:
            threading.Thread(target=self._work, name="kmem-capture", daemon=True).start()
        except RuntimeError as error:  # no thread available: the prompt is answered without capture
            with self._lock:
                self._working = False
                self._waiting.clear()
            self._report(error)

    def close(self) -> None:
        """Drop waiting prompts, and wait a short time for a note that is being written."""
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
        origins = self._whose(asked, prompt.project)
        with self._vault_lock:
            if self._closed:
                return
            kept: dict[str, Note] = {}
            try:
                for each, origin in zip(asked, origins, strict=True):
                    note = self._keep_one(each, prompt, origin)
                    kept[note.path] = note
            finally:
                if kept:
                    self._indexer.refresh(set(kept))
            if related := {path for path, note in kept.items() if self._vault.relations.relate(note, self._recall.nearest)}:
                self._indexer.refresh(related)

    def _whose(self, asked: "Sequence[KeepRequest]", project: str) -> list[Origin]:
        """Return the origin of each request: ``tool`` if nearly all of it was in a file before, else ``user``.

        A prompt may be filled by a script, a skill, or another agent.
        """
        known = self._provenance(project)
        traces = known.traces([each.text for each in asked]) if known else [Trace(pairs=0)] * len(asked)
        return ["tool" if each.pairs >= _COPIED_PAIRS and each.foreign >= _COPIED else "user" for each in traces]

    def _keep_one(self, asked: "KeepRequest", prompt: _Prompt, origin: Origin) -> Note:
        return self._vault.edits.remember(
            Memo(
                text=asked.text,
                kind=_kind(asked),
                project="" if asked.everywhere else prompt.project,
                scope=Scope.GLOBAL if asked.everywhere else None,
                tags=[TAG],
                importance=3,
                origin=origin,
            ),
            also_known_as=said_id(prompt.agent, prompt.session, asked),
        )


def said_id(provider: str, session: str, asked: "KeepRequest") -> str:
    """Return the id of the note made from a prompt. Its transcript line has the same words, so it gives the same id."""
    return note_id(_NO_TIME, TAG, provider, session, body_key(asked.text))


def evidence_amendments(events: Iterable[Event], vault: Vault) -> list[Amend]:
    """Return amendments that add transcript lines as evidence to notes already captured from the prompt."""
    found: list[Amend] = []
    for event in events:
        for _, known, _ in _kept(event, vault):
            if known is not None:
                reference = event.reference
                found.append(Amend(id=known.id, path=known.path, evidence=(reference,), addition="", because=_BECAUSE))
    return found


def already_captured(drafts: Sequence[Draft], chunk: Chunk, vault: Vault) -> tuple[list[Draft], list[Amend | Skip]]:
    """Return the drafts that were not captured already, and actions for the others.

    The captured note gets the draft's evidence and keeps its text. A note that its owner has deleted since is not written again.
    """
    left = list(drafts)
    actions: list[Amend | Skip] = []
    for event in chunk.events:
        for asked, known, gone in _kept(event, vault):
            if known is None and not gone:
                continue
            reference = event.reference
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


def _kept(event: Event, vault: Vault) -> "Iterator[tuple[KeepRequest, KnownFile | None, bool]]":
    """Yield each request of a user's message, its captured note, and whether the user has deleted that since."""
    if event.type is not EventType.USER_MESSAGE or event.role != "user":
        return
    from kite_memory.distill.asked_to_keep import KeepRequest, asked_to_keep

    for asked in asked_to_keep(event.text):
        id = said_id(event.provider, event.session, asked)
        yield asked, vault.known.by_id(id), vault.known.is_buried(id)
    if command := _COMMAND.fullmatch(event.text[:_LONGEST_COMMAND]):
        yield KeepRequest(kind="fact", text=command["text"]), vault.known.saying(command["text"]), False


def _is_same(draft: Draft, asked: "KeepRequest") -> bool:
    mine, theirs = stems(asked.text), stems(f"{draft.note.title}\n{draft.note.body}")
    least = min(len(mine), len(theirs))
    return least > 0 and len(mine & theirs) >= _OVERLAP * least


def _kind(asked: "KeepRequest") -> NoteKind:
    return NoteKind.PREFERENCE if asked.kind == "preference" else NoteKind.FACT
