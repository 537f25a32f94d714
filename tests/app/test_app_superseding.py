"""From sessions that contradict each other to one note that is said: the pipeline, and what a model says of notes it was shown."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from kite_memory.distill.extractor import Answer, Usage
from kite_memory.model.note import Change, Chunk, Decision, NoteStatus, Origin, Record, Rejected, Topic
from kite_memory.recall.select import Prompt
from tests.fakes.extractors import ScriptedExtractor
from tests.fakes.services import FakeServices, fake_services
from tests.sources.transcript import SESSION, Transcript

LATER = "5e551011-0000-4000-8000-00000000000b"


def said(title: str, body: str, *rejected: str) -> "Answering":
    return Answering(title, body, rejected)


class Answering:
    def __init__(self, title: str, body: str, rejected: Sequence[str]) -> None:
        self._reported = (title, body, rejected)

    def __call__(self, chunk: Chunk) -> Answer:
        title, body, rejected = self._reported
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


def walk(services: FakeServices, home: Path) -> None:
    transcript(home, SESSION, first=1)
    services.run_until_idle()
    transcript(home, LATER, first=500)
    services.run_until_idle()


def test_what_a_later_decision_turns_down_stands_until_a_person_says(tmp_path: Path) -> None:
    with fake_services(tmp_path, ScriptedExtractor([OLD, NEW])) as services:
        walk(services, tmp_path)

        old, new = (
            services.vault.notes.find("SQLite for the job queue"),
            services.vault.notes.find("PostgreSQL over SQLite for the job queue"),
        )
    assert (old.status, new.status) == (NoteStatus.ACCEPTED, NoteStatus.ACCEPTED)
    assert new.conflicts == (Path(old.path).stem,)


def test_what_a_person_lets_stand_again_is_said_again(tmp_path: Path) -> None:
    moved = changing("PostgreSQL for the job queue", "The job queue of the orchard lives in PostgreSQL.", "replaces")
    with fake_services(tmp_path, ScriptedExtractor([OLD, moved]), remembers=True) as services:
        walk(services, tmp_path)
        old = services.vault.notes.find("SQLite for the job queue")
        assert old.status is NoteStatus.SUPERSEDED
        file = services.vault.root / old.path
        file.write_text(file.read_text().replace("status: superseded", "status: accepted"))

        services.pipeline.compare_vault()

        given = services.recall.weigh(Prompt(text="SQLite for the job queue of the orchard, in one file?", project="orchard"))
    assert old.id in {hit.note.id for hit in given.candidates}


def changing(title: str, body: str, does: Literal["replaces", "amends"], *, origin: Origin = "user") -> Callable[[Chunk], Answer]:
    """What a model makes of a chunk, where it says what that does to the first note it was shown."""

    def answer_to(chunk: Chunk) -> Answer:
        change = Change(note=chunk.remembered[0].id, does=does, because="row locks are needed now")
        item = Decision(title=title, body=body, evidence=(chunk.events[0].id,), importance=2, origin=origin, change=change)
        weighed = tuple(note.id for note in chunk.remembered)
        return Answer(record=Record(topics=(Topic(name="the queue", summary="", items=(item,)),), weighed=weighed), usage=Usage())

    return answer_to


def test_a_note_is_offered_to_a_later_session_and_replaced_by_what_is_said_there(tmp_path: Path) -> None:
    moved = changing("PostgreSQL for the job queue", "The job queue of the orchard lives in PostgreSQL.", "replaces")
    with fake_services(tmp_path, ScriptedExtractor([OLD, moved]), remembers=True) as services:
        walk(services, tmp_path)

        old, new = services.vault.notes.find("SQLite for the job queue"), services.vault.notes.find("PostgreSQL for the job queue")
    assert (old.status, old.superseded_by) == (NoteStatus.SUPERSEDED, Path(new.path).stem)


def test_what_amends_a_note_keeps_what_it_does_not_change(tmp_path: Path) -> None:
    rule = said(
        "Backups are kept 30 days", "Backups are kept 30 days; invoices stay for 10 years. Never copy them to staging.", "a year"
    )
    longer = changing("Backups are kept 90 days", "Backups are kept 90 days, since the auditor asks each quarter.", "amends")
    with fake_services(tmp_path, ScriptedExtractor([rule, longer]), remembers=True) as services:
        walk(services, tmp_path)

        old, new = services.vault.notes.find("Backups are kept 30 days"), services.vault.notes.find("Backups are kept 90 days")
    assert old.status is NoteStatus.SUPERSEDED
    assert all(held in new.body for held in ("90 days", "invoices stay for 10 years", "Never copy them to staging"))
    assert "30 days" not in new.body
    assert set(old.evidence) < set(new.evidence)


def test_a_session_that_takes_back_what_it_said_an_hour_ago_is_believed(tmp_path: Path) -> None:
    back = changing("SQLite stays out of the job queue", "The job queue of the orchard lives in PostgreSQL after all.", "replaces")
    with fake_services(tmp_path, ScriptedExtractor([OLD, back]), remembers=True) as services:
        transcript(tmp_path, SESSION, first=1)
        services.run_until_idle()
        more = Transcript(SESSION, first=900)
        more.user("No, scratch that: the job queue of the orchard goes to PostgreSQL, since we need row locks after all.")
        more.assistant("Then it goes there.")
        with (tmp_path / "claude" / "projects" / "-orchard" / f"{SESSION}.jsonl").open("ab") as file:
            file.write(more.bytes)
        services.run_until_idle()

        old = services.vault.notes.find("SQLite for the job queue")
    assert old.status is NoteStatus.SUPERSEDED


def test_a_persons_rule_is_not_changed_on_anybody_elses_word(tmp_path: Path) -> None:
    moved = changing(
        "PostgreSQL for the job queue", "The job queue of the orchard lives in PostgreSQL.", "replaces", origin="assistant"
    )
    with fake_services(tmp_path, ScriptedExtractor([OLD, moved]), remembers=True) as services:
        walk(services, tmp_path)

        old, new = services.vault.notes.find("SQLite for the job queue"), services.vault.notes.find("PostgreSQL for the job queue")
    assert old.status is NoteStatus.ACCEPTED
    assert new.conflicts == (Path(old.path).stem,)


def test_of_two_notes_that_a_model_read_and_let_stand_no_one_is_asked(tmp_path: Path) -> None:
    def beside(chunk: Chunk) -> Answer:
        answer = VAGUE(chunk)
        return replace(answer, record=replace(answer.record, weighed=tuple(note.id for note in chunk.remembered)))

    with fake_services(tmp_path, ScriptedExtractor([OLD, beside]), remembers=True) as services:
        walk(services, tmp_path)

        old, new = services.vault.notes.find("SQLite for the job queue"), services.vault.notes.find("PostgreSQL for the job queue")
    assert old.status is NoteStatus.ACCEPTED
    assert new.conflicts == ()
