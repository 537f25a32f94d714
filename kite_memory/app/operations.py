"""Operations of Kite Memory, the same functions behind the socket and the command line.

Arguments and results are JSON values in the shapes of the contract, so it makes no difference whether the daemon or the calling
process does the work.
"""

import inspect
import logging
import re
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Protocol, get_args, get_origin

from kite_memory.app.note_indexer import NoteIndexer
from kite_memory.app.note_view import NoteView, explained_json, known_project, note_json, pointer_json, quote_json
from kite_memory.app.review import NoteChanged
from kite_memory.app.searching import hit_json
from kite_memory.app.session_context import EarlierWork, before
from kite_memory.app.timeline_queries import since
from kite_memory.errors import KiteError, UsageError
from kite_memory.model.note import Note, NoteKind, Scope
from kite_memory.projects import branch_of, project_of
from kite_memory.recall.recall import Recall
from kite_memory.recall.rendering import likely_tokens
from kite_memory.recall.select import Prompt
from kite_memory.redaction import drop_private, redact
from kite_memory.text.display import duration
from kite_memory.timeline.store import Timeline
from kite_memory.tools import declarations
from kite_memory.tools.argument_parsing import writable_key, written_tags
from kite_memory.tools.declarations import OTHER_VERSION, ToolDispatcher
from kite_memory.tools.store import MemoryPlace
from kite_memory.vault import Vault
from kite_memory.vault.drafting import Memo
from kite_memory.vault.notefile import with_body
from kite_memory.vault.review_page import version

Json = dict[str, Any]

log = logging.getLogger("kite_memory")


_CHANGING = frozenset({"remember", "edit", "forget", "consolidate", "undo", "import", "sort"})
"""Operations after which another note may wait for the user's review."""


class Keep(Protocol):
    def __call__(
        self, key: str, text: str, place: MemoryPlace, *, kind: NoteKind, tags: Sequence[str], expires: datetime | None
    ) -> Note:
        """Same as `tools.local_store.LocalStore.keep`."""
        ...


class OperationRegistry:
    """All operations by their names, joined from those of the use cases. Thread-safe.

    Raises `KiteError` for what the caller can correct, and `UsageError` for arguments of the wrong kind.
    """

    def __init__(self, *use_cases: Mapping[str, Callable[..., Json]]) -> None:
        self._named = {name: operation for each in use_cases for name, operation in each.items()}
        self._signatures = {name: inspect.signature(operation) for name, operation in self._named.items()}

    def perform(self, op: str, arguments: Mapping[str, Any]) -> Json:
        operation = self._named.get(op)
        if operation is None:
            raise UsageError(f"unknown operation {op!r}", hint=OTHER_VERSION)
        try:
            bound = self._signatures[op].bind(**arguments)
        except TypeError as error:
            raise UsageError(f"invalid arguments for {op}: {error}", hint=OTHER_VERSION) from error
        for given, value in bound.arguments.items():
            if not _fits(value, bound.signature.parameters[given].annotation):
                raise UsageError(f"invalid arguments for {op}: {given} cannot be {value!r:.40}", hint=OTHER_VERSION)
        result = operation(*bound.args, **bound.kwargs)
        if op in _CHANGING:
            try:
                self._named["review_page"]()
            except (KiteError, sqlite3.Error) as error:  # the operation itself succeeded; the page is updated the next time
                log.warning("the review page could not be updated: %s", error)
        return result


def bridge_operations(bridge: ToolDispatcher) -> Mapping[str, Callable[..., Json]]:
    def performed(*, tool: str, arguments: Json, asker: Json) -> Json:
        """Perform an agent's tool call. An error that the agent can act on is returned as a part of the answer."""
        return declarations.perform(bridge.perform, tool, arguments, asker)

    return {"bridge": performed}


_NO_PROJECT = "this folder belongs to no project: an agent that works here is only given notes that belong to none"


class PromptAnswers:
    """What prompts are shown."""

    def __init__(
        self,
        *,
        timeline: Timeline,
        recall: Recall,
        note_view: NoteView,
        clock: Callable[[], datetime],
    ) -> None:
        self._timeline = timeline
        self._recall = recall
        self._note_view = note_view
        self._work = EarlierWork(timeline, clock)

    def operations(self) -> Mapping[str, Callable[..., Json]]:
        return {"recall": self.recall}

    def recall(self, *, prompt: str, session: str = "", cwd: str = "", explain: bool = False) -> Json:
        """Return what recall answers to a prompt, without recording it as shown.

        With ``session``, the prompt counts as its next: notes shown there are left out, and its topic is considered. Outside a
        project, a person is shown notes of all projects, as an agent is not.
        """
        began = time.perf_counter()
        asked = self._prompt(drop_private(prompt), session, cwd)
        injection = self._recall.answer(asked, remember=False)
        begins = not asked.situation.position
        work = self._work.asked(asked.text, asked.project, besides=asked.session, begins=begins)
        earlier = work.block() if asked.project else ""
        answer: Json = {
            "silent": injection.silent and not earlier,
            "reason": "it asks about the work itself" if earlier and injection.silent else injection.reason,
            "took_ms": since(began),
            "block": "\n".join(filter(None, (earlier, injection.block))),
            "tokens": injection.tokens + (likely_tokens(earlier) if earlier else 0),
            "work": [{"text": line.text, "evidence": list(line.evidence)} for line in work.lines] if earlier else [],
            "notes": [{**hit_json(hit), "evidence": list(hit.note.evidence)} for hit in injection.hits],
            "pointers": [pointer_json(pointer) for pointer in injection.pointers],
            "quotes": [quote_json(quote) for quote in injection.quotes],
            "for_the_judge": len(injection.question.candidates) if injection.question else 0,
            "problems": [*self._note_view.index_problems(), *([] if asked.project else [_NO_PROJECT])],
        }
        if explain:
            weighed = self._recall.weigh(asked)
            answer["threshold"] = weighed.threshold
            answer["candidates"] = [hit_json(hit) for hit in weighed.candidates]
            answer["explained"] = explained_json(asked, weighed)
        return answer

    def _prompt(self, text: str, session: str, cwd: str) -> Prompt:
        """Build the prompt. ``session`` may be the beginning of an id if it matches one session only."""
        named = self._timeline.sessions.named(session) if session.isprintable() and session else []
        known = next((each for each in named if each.id == session), named[0] if len(named) == 1 else None)
        prompt = Prompt(text=text, session=session, project=project_of(cwd), branch=branch_of(cwd), project_only=True)
        if known is None:
            return prompt
        return replace(prompt, session=known.id, situation=before(self._timeline, known.provider, known.id, text))


class NoteChanges:
    """The operations `remember`, `edit` and `mute`, by which a person changes notes."""

    def __init__(
        self,
        *,
        vault: Vault,
        recall: Recall,
        indexer: NoteIndexer,
        note_view: NoteView,
        keep_memory: Keep,
        clock: Callable[[], datetime],
    ) -> None:
        self._vault = vault
        self._recall = recall
        self._indexer = indexer
        self._note_view = note_view
        self._keep = keep_memory
        self._clock = clock

    def operations(self) -> Mapping[str, Callable[..., Json]]:
        return {"remember": self.remember, "mute": self.mute, "edit": self.edit}

    def remember(
        self,
        *,
        text: str,
        kind: str = "fact",
        project: str = "",
        everywhere: bool = False,
        key: str = "",
        ttl: str = "",
        tags: list[str] | None = None,
        cwd: str = "",
    ) -> Json:
        """Store a note. It is on disk and can be found when this returns."""
        public = drop_private(text)
        words = redact(public).strip()
        redacted = {"redacted": words.count("[redacted:") > public.count("[redacted:")}
        if not words:
            raise UsageError(
                "there is nothing to remember", hint="give the text as an argument, or - to read it from standard input"
            )
        lasts = duration(ttl) if ttl else None
        if lasts is not None and not lasts:
            raise UsageError("--ttl must be longer than zero", hint="leave out --ttl to keep the note")
        expires = self._clock() + lasts if lasts else None
        of = "" if everywhere else known_project(self._vault.known, redact(project)) if project else project_of(cwd)
        clean = [redact(tag) for tag in tags or []]
        if key:
            place = MemoryPlace(scope=Scope.PROJECT if of else Scope.GLOBAL, project=of)
            kept = self._keep(writable_key(key), words, place, kind=_kind(kind), tags=written_tags(clean), expires=expires)
            return note_json(kept) | redacted
        with self._vault.lock:
            note = self._vault.edits.remember(
                Memo(
                    text=words,
                    kind=_kind(kind),
                    project=of,
                    scope=Scope.GLOBAL if everywhere else None,
                    tags=clean,
                    expires=expires,
                )
            )
            self._indexer.refresh({note.path})
            if self._vault.relations.relate(note, self._recall.nearest):
                self._indexer.refresh({note.path})
        return note_json(note) | redacted

    def mute(self, *, note: str, undo: bool = False) -> Json:
        with self._vault.lock:
            self._note_view.found(note)
            muted = self._vault.edits.mute(note, undo=undo)
            self._indexer.refresh({muted.path, *self._vault.edits.copies(muted.path)})
        return note_json(muted)

    def edit(self, *, note: str, body: str, seen: str = "") -> Json:
        """Replace a note's text by what a user wrote. From then on it is theirs; its properties stay.

        With ``seen``, only if the note is still of that `version`.
        """
        given = _without_blank_ends(body.replace("\r\n", "\n"))
        words = _without_blank_ends(redact(drop_private(given)))
        if not words:
            raise UsageError("a note needs a text", hint="to remove it, forget it")
        with self._vault.lock:
            found = self._note_view.found(note)
            if seen and seen != version(found):
                raise NoteChanged(f"{found.path} has changed since you opened it", hint="open it again, and repeat your change")
            before = self._vault.notes.text(found.path)
            after = with_body(before, f"{words}\n")
            if after != before and not self._vault.edits.rewrite(found.path, before, after):
                raise NoteChanged(f"{found.path} cannot be changed now", hint="another program may be writing it: try again")
            if found.id:
                self._vault.edits.disown(found.id)
            self._indexer.refresh({found.path})
            edited = self._note_view.found(found.path)
        return {**note_json(edited), "left_out": words != given}


def _without_blank_ends(text: str) -> str:
    """Return the text without blank lines at its beginning and end. The first line's indent stays: it may be code."""
    return _BLANK_LINES.sub("", text).rstrip()


_BLANK_LINES = re.compile(r"\A(?:[ \t]*\n)+")


def _kind(text: str) -> NoteKind:
    try:
        return NoteKind(text)
    except ValueError:
        raise UsageError(f"unknown kind {text!r}", hint=f"choose one of: {', '.join(NoteKind)}") from None


def _fits(value: object, annotation: Any) -> bool:
    """Return whether a JSON value from the socket has the annotated type."""
    match get_origin(annotation):
        case None:
            return type(value) is annotation
        case kind if kind is dict:
            return isinstance(value, dict)
        case kind if kind is list:
            (inner,) = get_args(annotation)
            return isinstance(value, list) and all(_fits(each, inner) for each in value)
        case _:
            return any(_fits(value, each) for each in get_args(annotation))
