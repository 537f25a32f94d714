"""From two sessions that contradict each other to one note that is said: the walk, with and without somebody who reads pairs."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from kite_memory.distill.extractor import Answer, Usage
from kite_memory.model.note import NoteStatus
from kite_memory.model.plan import Contest, Ruling
from kite_memory.model.record import Chunk, Decision, Record, Rejected, Topic
from kite_memory.recall.select import Prompt
from tests.fakes.extractors import ScriptedExtractor
from tests.fakes.house import FakeHouse, fake_house
from tests.sources.transcript import SESSION, Transcript

LATER = "5e551011-0000-4000-8000-00000000000b"


def said(title: str, body: str, *rejected: str) -> "Answering":
    return Answering(title, body, rejected)


class Answering:
    def __init__(self, title: str, body: str, rejected: Sequence[str]) -> None:
        self._told = (title, body, rejected)

    def __call__(self, chunk: Chunk) -> Answer:
        title, body, rejected = self._told
        decision = Decision(
            title=title,
            body=body,
            evidence=(chunk.events[0].id,),
            importance=3,
            origin="user",
            rejected=tuple(Rejected(alternative=each, reason="it was tried") for each in rejected),
        )
        return Answer(record=Record(topics=(Topic(name="the queue", summary="", items=(decision,)),)), usage=Usage())


OLD = said("SQLite for the job queue", "The job queue of the orchard lives in SQLite, in one file beside the code.")
NEW = said(
    "PostgreSQL over SQLite for the job queue", "The job queue of the orchard lives in PostgreSQL for its row locks.", "SQLite"
)
VAGUE = said(
    "PostgreSQL for the job queue", "The job queue of the orchard lives in PostgreSQL, formerly in a file beside the code."
)


def transcript(home: Path, session: str, *, first: int) -> None:
    written = Transcript(session, first=first)
    written.user("Where should the job queue of the orchard live from now on, and why there of all places?")
    written.assistant("As you decided.")
    folder = home / "claude" / "projects" / "-orchard"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{session}.jsonl").write_bytes(written.bytes)


def walk(house: FakeHouse, home: Path) -> None:
    transcript(home, SESSION, first=1)
    house.walk()
    transcript(home, LATER, first=500)
    house.walk()


def test_what_a_later_decision_turns_down_is_not_said_any_more(tmp_path: Path) -> None:
    with fake_house(tmp_path, ScriptedExtractor([OLD, NEW])) as house:
        walk(house, tmp_path)

        old, new = house.vault.find("SQLite for the job queue"), house.vault.find("PostgreSQL over SQLite for the job queue")
        given = house.recall.weigh(Prompt(text="SQLite for the job queue of the orchard, in one file?", project="orchard"))
    assert (old.status, old.superseded_by) == (NoteStatus.SUPERSEDED, Path(new.path).stem)
    assert new.supersedes == (Path(old.path).stem,)
    assert [hit.note.id for hit in given.candidates] == [new.id]


def test_what_a_person_lets_stand_again_is_said_again(tmp_path: Path) -> None:
    with fake_house(tmp_path, ScriptedExtractor([OLD, NEW])) as house:
        walk(house, tmp_path)
        old = house.vault.find("SQLite for the job queue")
        file = house.vault.root / old.path
        file.write_text(file.read_text().replace("status: superseded", "status: accepted"))

        house.pipeline.compare_vault()

        given = house.recall.weigh(Prompt(text="SQLite for the job queue of the orchard, in one file?", project="orchard"))
    assert old.id in {hit.note.id for hit in given.candidates}


class Reader:
    """Says the same of every pair, and remembers which it was shown."""

    def __init__(self, ruling: Ruling) -> None:
        self._ruling = ruling
        self.asked: list[tuple[str, str]] = []

    def __call__(self, contests: Sequence[Contest]) -> dict[tuple[str, str], Ruling]:
        self.asked += [(each.newer.title, each.older.title) for each in contests]
        return {(each.newer.id, each.older.id): self._ruling for each in contests}


@pytest.mark.parametrize(("ruling", "status"), [("replaces", "superseded"), ("neither", "accepted"), ("conflicts", "accepted")])
def test_somebody_who_reads_is_asked_of_what_is_in_doubt_and_once(tmp_path: Path, ruling: Ruling, status: str) -> None:
    reader = Reader(ruling)
    with fake_house(tmp_path, ScriptedExtractor([OLD, VAGUE]), arbitrate=reader) as house:
        walk(house, tmp_path)
        house.walk()

        old, new = house.vault.find("SQLite for the job queue"), house.vault.find("PostgreSQL for the job queue")
    assert reader.asked == [(new.title, old.title)]
    assert old.status.value == status
    assert bool(new.conflicts) is (ruling == "conflicts")
