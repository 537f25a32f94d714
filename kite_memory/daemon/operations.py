"""What can be asked of Kite Memory: the same functions behind the socket and the command line.

Arguments and results are JSON values in the shapes of the contract, so it makes no difference whether the daemon or the
asking process does the work.
"""

import inspect
import time
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from kite_memory.daemon.ages import age, duration
from kite_memory.daemon.pipeline import Pipeline
from kite_memory.daemon.prompt_hook import HookInput, read_hook_input
from kite_memory.distill.outbox import Outbox
from kite_memory.distill.scheduler import Idle
from kite_memory.errors import NoteNotFound, UsageError
from kite_memory.model.event import EvidenceReference
from kite_memory.model.hit import Hit
from kite_memory.model.note import Note, NoteKind, NoteStatus
from kite_memory.model.scope import Scope
from kite_memory.recall.answer import Prompt
from kite_memory.recall.recall import Recall
from kite_memory.recall.rendering import plain, plain_line
from kite_memory.recall.search import Query, name
from kite_memory.redaction import drop_private, redact
from kite_memory.sources.project import project_of
from kite_memory.timeline.store import Timeline
from kite_memory.vault import Vault

Json = dict[str, Any]

_OTHER_VERSION = "kmem and its daemon may be of different versions: `kmem down`, then `kmem up`, restarts it"

_HEAD = 200
_EVENT_TEXT = 2_000
_LAST_NOTES = 5

_PREFIXES = {f"{kind.value}:": kind for kind in NoteKind}


class Operations:
    """Thread-safe. Raises `KiteError` for what the asker can mend, and `UsageError` for arguments of the wrong kind."""

    def __init__(
        self,
        *,
        pipeline: Pipeline,
        timeline: Timeline,
        outbox: Outbox,
        vault: Vault,
        recall: Recall,
        extractor: str,
        budget_dollars: float,
        daemon: Callable[[], Json],
        idle: Callable[[], Idle],
        clock: Callable[[], datetime],
    ) -> None:
        self._pipeline = pipeline
        self._timeline = timeline
        self._outbox = outbox
        self._vault = vault
        self._recall = recall
        self._extractor = extractor
        self._budget_dollars = budget_dollars
        self._daemon = daemon
        self._idle = idle
        self._clock = clock
        self._named: Mapping[str, Callable[..., Json]] = {
            "search": self.search,
            "recall": self.recall,
            "show": self.show,
            "remember": self.remember,
            "forget": self.forget,
            "mute": self.mute,
            "why": self.why,
            "status": self.status,
        }

    def perform(self, op: str, arguments: Mapping[str, Any]) -> Json:
        operation = self._named.get(op)
        if operation is None:
            raise UsageError(
                f"unknown operation {op!r}", hint="kmem and its daemon may be of different versions: restart the daemon"
            )
        try:
            bound = inspect.signature(operation).bind(**arguments)
        except TypeError as error:
            raise UsageError(f"{op} was asked wrongly: {error}", hint=_OTHER_VERSION) from error
        return operation(*bound.args, **bound.kwargs)

    def hook(self, body: bytes, agent: str = "") -> str:
        """What the agent's prompt is given: a block, or nothing. Anything that is not understood is given nothing."""
        asked = read_hook_input(body)
        if asked is None or asked.is_subagent:
            return ""
        match asked.event:
            case "SessionStart" if asked.source in ("compact", "clear"):
                self._recall.forget_session(asked.session)
                return ""
            case "UserPromptSubmit":
                return self._recall.answer(self._prompt(asked)).block
            case _:
                return ""

    def _prompt(self, asked: HookInput) -> Prompt:
        text = drop_private(asked.prompt)
        return Prompt(
            text=text,
            session=asked.session,
            project=project_of(asked.cwd) if asked.cwd else "",
            head=plain_line(redact(text[: 4 * _HEAD]), _HEAD),
        )

    def search(
        self, *, query: str, mode: str = "hybrid", project: str = "", since: str = "", limit: int = 10, cwd: str = ""
    ) -> Json:
        began = time.perf_counter()
        kinds, words = _prefixed(query)
        if mode not in ("hybrid", "keyword", "semantic"):
            raise UsageError(f"unknown mode {mode!r}", hint="choose hybrid, keyword or semantic")
        hits = self._recall.search(
            Query(
                text=words,
                mode=mode,  # type: ignore[arg-type]  # one of the three, as was just seen
                project=project or (project_of(cwd) if cwd else ""),
                within=project,
                since=age(since, self._clock()),
                kinds=kinds,
                limit=limit,
            )
        )
        return {
            "query": query,
            "mode": mode,
            "took_ms": _since(began),
            "hits": [_hit(hit) for hit in hits],
            "events": [],
            "problems": [problem.reason for problem in self._recall.status().problems],
        }

    def recall(self, *, prompt: str, session: str = "", cwd: str = "", explain: bool = False) -> Json:
        began = time.perf_counter()
        asked = Prompt(text=drop_private(prompt), session=session, project=project_of(cwd) if cwd else "")
        injection = self._recall.answer(asked, remember=False)
        told: Json = {
            "silent": injection.silent,
            "reason": injection.reason,
            "took_ms": _since(began),
            "block": injection.block,
            "notes": [_hit(hit) for hit in injection.hits],
        }
        if explain:
            weighed = self._recall.weigh(asked)
            told["threshold"] = weighed.threshold
            told["candidates"] = [_hit(hit) for hit in weighed.candidates]
        return told

    def show(self, *, note: str) -> Json:
        found = self._vault.find(note)
        file = self._vault.root / found.path
        return {**_note(found), "file": str(file), "text": plain(file.read_text(encoding="utf-8", errors="replace"))}

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
        """The note is on disk and can be found when this returns."""
        words = redact(drop_private(text)).strip()
        if not words:
            raise UsageError(
                "there is nothing to remember", hint="give the text as an argument, or - to read it from standard input"
            )
        theirs = "" if everywhere else project or (project_of(cwd) if cwd else "")
        with self._pipeline.vault_lock:
            note = self._vault.remember(
                words,
                kind=NoteKind(kind),
                project=theirs,
                scope=Scope.GLOBAL if everywhere else None,
                key=redact(key),
                tags=[redact(tag) for tag in tags or []],
                expires=self._clock() + duration(ttl) if ttl else None,
            )
            self._recall.refresh(self._vault, hint={note.path})
        return _note(note)

    def forget(
        self,
        *,
        note: str = "",
        session: str = "",
        since: str = "",
        matching: str = "",
        ids: list[str] | None = None,
        dry_run: bool = False,
    ) -> Json:
        """With ``ids`` exactly those; else the one named, or the sweep that the other arguments describe together."""
        with self._pipeline.vault_lock:
            chosen = [self._vault.find(each) for each in ids] if ids is not None else self._chosen(note, session, since, matching)
            told = [{"id": each.id, "path": each.path, "title": plain_line(each.title)} for each in chosen]
            if not dry_run:
                for each in told:
                    each["trash"] = str(self._vault.root / self._vault.forget(each["id"] or each["path"]).trashed)
                self._recall.refresh(self._vault, hint={each.path for each in chosen})
        return {"notes": told}

    def _chosen(self, note: str, session: str, since: str, matching: str) -> list[Note]:
        if note:
            return [self._vault.find(note)]
        if not (session or since or matching):
            raise UsageError("nothing named to forget", hint="name a note, a session, an age or a text")
        start = age(since, self._clock())
        of_session = None
        if session:
            of_session = {
                path
                for known in self._timeline.sessions_named(session, limit=1_000)
                for path in self._vault.notes_of(known.provider, known.id)
            }
        chosen: list[Note] = []
        for entry in self._vault.entries():
            if of_session is not None and entry.path not in of_session:
                continue
            found = self._vault.read(entry.path)
            if found is None or (start is not None and found.created < start):
                continue
            if matching and matching.casefold() not in f"{found.title}\n{found.body}".casefold():
                continue
            chosen.append(found)
        return chosen

    def mute(self, *, note: str, undo: bool = False) -> Json:
        with self._pipeline.vault_lock:
            muted = self._vault.mute(note, undo=undo)
            self._recall.refresh(self._vault, hint={muted.path})
        return _note(muted)

    def why(self, *, note: str = "", last: int = 10) -> Json:
        if not note:
            return {"prompts": [self._occasion(occasion) for occasion in self._recall.occasions(last)]}
        found = self._vault.find(note)
        return {**_note(found), "evidence": [self._evidence(reference) for reference in found.evidence]}

    def _evidence(self, text: str) -> Json:
        reference = EvidenceReference.parse(text)
        events = [] if reference is None else self._timeline.evidence(reference)
        return {
            "reference": plain_line(text),
            "events": [
                {
                    "id": event.id,
                    "session": event.session,
                    "at": event.at.isoformat(),
                    "role": event.role,
                    "type": event.type.value,
                    "text": plain(event.text[:_EVENT_TEXT]),
                    "where": f"{event.where.file}:{event.where.start}-{event.where.end}",
                }
                for event in events
            ],
        }

    def _occasion(self, occasion: Any) -> Json:
        return {
            "at": occasion.at.isoformat(),
            "session": occasion.session,
            "project": occasion.project,
            "prompt": occasion.head,
            "reason": occasion.reason,
            "notes": [{"id": given.note, "score": given.score, "title": self._title(given.note)} for given in occasion.given],
        }

    def _title(self, note: str) -> str:
        try:
            return plain_line(self._vault.find(note).title)
        except NoteNotFound:
            return "(forgotten since)"

    def status(self) -> Json:
        now = self._clock()
        notes = self._vault.known()
        index = self._recall.status()
        states = self._outbox.states()
        spending = self._outbox.spending(now.date().isoformat())
        idle = self._idle()
        problems = [
            {"reason": each.reason, "count": each.count, "where": f"{each.file}:{each.first_position}"}
            for each in self._timeline.problems(limit=20)
        ]
        problems += [{"reason": each.reason, "count": 1, "where": each.file} for each in (*self._vault.problems(), *index.problems)]
        if frozen := self._vault.frozen:
            problems.insert(0, {"reason": frozen, "count": 1, "where": str(self._vault.root)})
        kept = [note for note in notes if note.kind and not note.problem]
        return {
            "daemon": self._daemon(),
            "sources": self._sources(),
            "notes": {
                "total": len(kept),
                "by_kind": dict(sorted(Counter(note.kind for note in kept).items())),
                "proposed": sum(note.status == NoteStatus.PROPOSED.value for note in kept),
            },
            "last_notes": self._last_notes(),
            "index": {"rows": index.rows, "stale": index.stale, "embedder": index.embedder},
            "extractor": {
                "name": self._extractor,
                "calls_today": spending.calls,
                "tokens_in": spending.tokens_in,
                "tokens_out": spending.tokens_out,
                "cost_usd": round(spending.dollars, 6),
                "budget_usd": self._budget_dollars,
                "backlog_chunks": sum(states.get(state, 0) for state in ("waiting", "asked", "answered")),
                "refused_chunks": states.get("refused", 0),
                "refused_items": self._outbox.refusals(),
                "waiting_for": idle.reason if idle.until is not None else "",
                "waiting_until": idle.until,
                "hint": idle.hint,
            },
            "problems": problems,
        }

    def _sources(self) -> list[Json]:
        behind: Counter[str] = Counter()
        for source, _, size in self._pipeline.unread():
            behind[source.provider] += size
        counted = {count.provider: count for count in self._timeline.counts()}
        return [
            {
                "provider": provider,
                "sessions": counted[provider].sessions if provider in counted else 0,
                "events": counted[provider].events if provider in counted else 0,
                "problems": counted[provider].problems if provider in counted else 0,
                "behind_bytes": behind[provider],
            }
            for provider in sorted(set(counted) | set(behind) | set(self._pipeline.providers()))
        ]

    def _last_notes(self) -> list[Json]:
        paths = sorted(self._vault.known(), key=lambda known: known.mtime_ns, reverse=True)[:_LAST_NOTES]
        return [_note(note) for known in paths if (note := self._vault.read(known.path)) is not None]


def _prefixed(query: str) -> tuple[frozenset[NoteKind], str]:
    kinds: set[NoteKind] = set()
    words: list[str] = []
    for word in query.split():
        prefix = next((each for each in _PREFIXES if word.lower().startswith(each)), "")
        if prefix:
            kinds.add(_PREFIXES[prefix])
        words.append(word[len(prefix) :])
    return frozenset(kinds), " ".join(words).strip()


def _note(note: Note) -> Json:
    return {
        "id": note.id,
        "path": note.path,
        "kind": note.kind.value,
        "title": plain_line(note.title),
        "project": note.project,
        "created": note.created.isoformat(),
        "status": note.status.value,
        "evidence": list(note.evidence),
    }


def _hit(hit: Hit) -> Json:
    return {**_note(hit.note), "id": name(hit.note), "score": hit.score, "snippet": hit.snippet, "why": hit.why}


def _since(began: float) -> float:
    return round((time.perf_counter() - began) * 1000, 3)
