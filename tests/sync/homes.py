"""Machines of one person, each with a memory of its own, that exchange through one folder."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from kite_memory.app.forgetting import Forgetting
from kite_memory.app.syncing import Machine, Syncing, purge
from kite_memory.extensions.contract.extractor_contract import START, event
from kite_memory.model.event import Cursor, Event, ReadResult, Session
from kite_memory.redaction import redact_result
from kite_memory.vault.drafting import Memo
from tests.fakes.extractors import ScriptedExtractor
from tests.fakes.services import FakeServices, fake_services

LONG_AGO = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


class Clock:
    """A clock that moves on by a second whenever it is looked at."""

    def __init__(self) -> None:
        self._now = LONG_AGO

    def __call__(self) -> datetime:
        self._now += timedelta(seconds=1)
        return self._now


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """One machine. ``shared`` is the folder through which it exchanges."""

    name: str
    root: Path
    shared: Path
    services: FakeServices
    syncing: Syncing
    forgetting: Forgetting

    @property
    def vault(self) -> Path:
        return self.root / "vault"

    def sync(self, *, join: str = "", **more: Any) -> Any:
        return self.syncing.sync(target=str(self.shared), join=join, **more)

    def key(self) -> str:
        return str(self.syncing.status(target=str(self.shared))["key"])

    def remember(self, text: str) -> str:
        """Return the id of the note."""
        note = self.services.vault.edits.remember(Memo(text=text))
        return note.id

    def path(self, id: str) -> Path:
        self.services.vault.scanner.compare()
        return self.vault / self.services.vault.notes.find(id).path

    def write(self, id: str, text: str) -> None:
        """Write a sentence into a note, as its owner does in an editor."""
        path = self.path(id)
        path.write_text(path.read_text() + f"\n{text}\n")

    def rename(self, id: str, name: str) -> None:
        path = self.path(id)
        path.rename(path.with_name(f"{name}.md"))

    def delete(self, id: str) -> None:
        self.path(id).unlink()

    def files(self) -> dict[str, str]:
        """Return the notes, with their texts."""
        found = (path for path in self.vault.rglob("*.md") if not any(part.startswith(".") for part in path.parts))
        texts = {path.relative_to(self.vault).as_posix(): path.read_text() for path in found}
        return {path: text for path, text in texts.items() if path.split("/")[0] not in ("templates", "Home.md", "README.md")}

    def trashed(self) -> str:
        return "\n".join(path.read_text() for path in sorted((self.vault / ".trash").glob("*.md")))

    def read(self, *events: Event, session: Session, amends: bool = False) -> None:
        """Read events of a transcript."""
        look = ReadResult(
            path=f"/transcripts/{session.id}.jsonl",
            session=session,
            events=events,
            problems=(),
            cursor=Cursor(position=0, size=0, mtime_ns=0),
            amends=amends,
        )
        self.services.timeline.commit([redact_result(look)], session.provider)

    def texts(self, session: Session) -> list[str]:
        return [each.text for each in self.services.timeline.events.of_session(session.provider, session.id)]


def session_of(machine: str) -> Session:
    return Session(id=f"5e55e55e-0000-4000-8000-{machine:0>12.12}", provider="claude-code", started=START, project="orchard")


def said(number: int, text: str, session: Session) -> Event:
    return replace(event(number, text, session=session), id=f"{number:08x}-{session.id[-4:]}-4000-8000-000000000000")


@contextmanager
def open_home(
    root: Path, shared: Path, clock: Callable[[], datetime], step: Callable[[str], None] = lambda doing: None
) -> Iterator[Home]:
    with fake_services(root, ScriptedExtractor([]), step=step) as services:
        forgetting = Forgetting(
            timeline=services.timeline,
            outbox=services.outbox,
            vault=services.vault,
            recall=services.recall,
            indexer=services.indexer,
        )
        syncing = Syncing(
            vault=services.vault,
            timeline=services.timeline,
            outbox=services.outbox,
            memory=services.recall.memory,
            index_notes=services.indexer.refresh,
            forgetting=forgetting,
            erase=lambda: forgetting.purge_files(
                {"sync.sqlite": partial(purge, root / "state", services.timeline, services.vault)}
            ),
            machine=Machine(name=root.name, state=root / "state", environment={}),
            clock=clock,
            step=step,
        )
        yield Home(name=root.name, root=root, shared=shared, services=services, syncing=syncing, forgetting=forgetting)


@contextmanager
def homes(folder: Path, *names: str) -> Iterator[list[Home]]:
    """Open machines that have joined the same folder."""
    clock, shared = Clock(), folder / "shared"
    shared.mkdir(exist_ok=True)
    with ExitStack() as closing:
        opened = [closing.enter_context(open_home(folder / name, shared, clock)) for name in names]
        opened[0].sync()
        for other in opened[1:]:
            other.sync(join=opened[0].key())
        yield opened


def settle(*machines: Home) -> None:
    """Let all exchange until nothing goes any more."""
    for _ in range(8):
        listed = [machine.sync() for machine in machines]
        problems = [problem for each in listed for problem in each["problems"]]
        assert not problems, problems
        if not any(sum(each["went"].values()) or sum(each["came"].values()) for each in listed):
            return
    raise AssertionError(f"they never come to rest: {listed}")
