"""Vaults, chunks and records, invented."""

import os
import shutil
import traceback
from collections.abc import Callable, Container, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from kite_memory.model.event import Event, EventType, Session, Where
from kite_memory.model.note import Chunk, Decision, Fact, Note, NoteKind, Record, RecordItem, Rejected, Topic
from kite_memory.vault import links
from kite_memory.vault.drafting import Draft, draft
from kite_memory.vault.files import Files
from kite_memory.vault.folders import Renames
from kite_memory.vault.vault import Vault
from kite_memory.vault.wording import note_id

TEMPLATE = Path(__file__).parent.parent.parent / "vault_template"
MEMORY_DISK = os.environ.get("KMEM_TEST_DISK") or ("/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
"""Where vaults of tests lie: ``KMEM_TEST_DISK`` tries the file system of another folder."""
START = datetime(2026, 2, 26, 14, 3, 11, tzinfo=UTC)
SESSION = Session(id="5e55-0001", provider="claude-code", started=START, project="orchard")


def later() -> datetime:
    return START + timedelta(days=30)


def event(number: int) -> Event:
    return Event(
        id=f"{number:08x}-0000",
        session=SESSION.id,
        provider=SESSION.provider,
        ordinal=number,
        at=START + timedelta(minutes=number),
        role="user",
        type=EventType.USER_MESSAGE,
        text="",
        where=Where(file="transcript.jsonl", start=number, end=number + 1),
    )


def chunk(name: str = "chunk-1", *, first: int = 0, session: str = SESSION.id) -> Chunk:
    changed = replace(SESSION, id=session)
    return Chunk(id=name, session=changed, events=tuple(event(number) for number in range(first, first + 4)))


def fact(title: str, body: str = "", *, entities: Iterable[str] = (), evidence: int = 1) -> Fact:
    return Fact(
        title=title,
        body=body or f"{title}, as everybody knows.",
        evidence=(event(evidence).id,),
        importance=2,
        origin="user",
        entities=tuple(entities),
    )


def decision(
    title: str = "Pears over apples for the north field",
    body: str = "You chose pears over apples for the north field because frost comes late there.",
    *,
    entities: Iterable[str] = (),
    rejected: Iterable[Rejected] = (),
    evidence: int = 1,
) -> Decision:
    return Decision(
        title=title,
        body=body,
        evidence=(event(evidence).id,),
        importance=3,
        origin="user",
        entities=tuple(entities),
        rejected=tuple(rejected),
    )


def record(*items: RecordItem, categories: Iterable[str] = ("fruit",)) -> Record:
    return Record(topics=(Topic(name="the orchard", summary="", items=items, categories=tuple(categories)),))


def drafts(*items: RecordItem, name: str = "chunk-1", first: int = 0, session: str = SESSION.id) -> list[Draft]:
    return draft(record(*items), chunk(name, first=first, session=session))


def note(title: str = "Frost comes late", body: str = "It does.", *, number: int = 1, path: str = "") -> Note:
    return Note(
        id=note_id(START, title, str(number)),
        path=path or f"projects/{title.lower().replace(' ', '-')}-feb26.md",
        kind=NoteKind.FACT,
        title=title,
        body=body,
        created=START,
        updated=START,
        project="orchard",
        evidence=(f"claude-code:5e55-0001#{number:08x}",),
    )


def linked(title: str, body: str, *, kind: NoteKind = NoteKind.FACT, importance: int = 2) -> Note:
    made = note(title, body)
    return replace(made, kind=kind, importance=importance, links=links.targets(body))


def orchard() -> list[Note]:
    return [
        linked("Pears", "A fruit.", kind=NoteKind.ENTITY),
        linked("Plant pears", "Because [[pears-feb26|pears]] bear frost.", kind=NoteKind.DECISION, importance=3),
        linked("Prune in March", "See [[Pears]] and [[nowhere]].", kind=NoteKind.PREFERENCE),
        linked("Which rootstock", "Quince or pear?", kind=NoteKind.QUESTION),
    ]


def vault_in(
    folder: Path, *, laid_out: bool = True, renames: Renames | None = None, step: Callable[[str], None] = lambda doing: None
) -> Vault:
    root = folder / "vault"
    vault = Vault(root, folder / "state" / "vault.sqlite", files=Files(root, renames=renames, step=step), clock=later, step=step)
    if laid_out:
        vault.ensure(TEMPLATE)
    return vault


def write(vault: Vault, *items: RecordItem, name: str = "chunk-1", first: int = 0, session: str = SESSION.id) -> list[str]:
    """Distil, plan and carry out; the paths of what became notes of their own."""
    from kite_memory.vault.writing import Written

    made = drafts(*items, name=name, first=first, session=session)
    with vault.undisturbed():
        return [outcome.path for outcome in vault.planner.carry_out(vault.planner.plan(made)) if isinstance(outcome, Written)]


def contents(root: Path) -> dict[str, bytes]:
    """Every file below a folder, hidden ones included."""
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def leftovers(root: Path) -> list[str]:
    return [path for path in contents(root) if path.rpartition("/")[2].startswith(".kmem-")]


def in_a_process_that_may_die(work: Callable[[], None]) -> int:
    """Run it in a child process and say how that ended; 0 is by itself. Nothing is flushed, closed or caught on the way."""
    child = os.fork()
    if not child:
        status = 70
        try:
            work()
            status = 0
        finally:
            if status:
                traceback.print_exc()
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class AtStep:
    """A ``step`` that does something just before the change to the disk with that number; ``unless`` are not counted."""

    def __init__(self, number: int, act: Callable[[], object], *, unless: Container[str] = ()) -> None:
        self.doing: list[str] = []
        self._number = number
        self._act = act
        self._unless = unless

    def __call__(self, doing: str) -> None:
        if doing not in self._unless:
            self.doing.append(doing)
            if len(self.doing) == self._number + 1:
                self._act()

    @property
    def reached(self) -> bool:
        return len(self.doing) > self._number


def dying_at(number: int) -> AtStep:
    return AtStep(number, lambda: os._exit(17))


def copy(source: Path, target: Path) -> Path:
    shutil.copytree(source, target, symlinks=True)
    return target
