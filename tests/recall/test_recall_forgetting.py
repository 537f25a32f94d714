"""What is forgotten, muted or replaced is nowhere from then on, whatever was under way."""

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from kite_memory.errors import StateNotWritten
from kite_memory.model.hit import Hit, Injection, Judged, Question, Verdict
from kite_memory.model.note import NoteStatus
from kite_memory.recall.uptake import Uptake
from tests.recall.notes import AUTH, DAY, QUEUE, Pile
from tests.recall.services import Services

FINDS_THE_QUEUE = Judged(verdicts=(Verdict(note="queue", probability=0.9),))


def about(*names: str) -> Question:
    known = {each.id: each for each in (QUEUE, AUTH)}
    candidates = tuple(Hit(note=known[name], score=0.3, why="") for name in names)
    return Question(session="one", project="mycelia", prompt="ask", exchange="", candidates=candidates)


def ruled(services: Services) -> Injection:
    return services.recall.judged(about("queue", "auth"), FINDS_THE_QUEUE)


def test_what_a_judge_finds_is_shown(services: Services) -> None:
    assert [hit.note.id for hit in ruled(services.over(QUEUE, AUTH)).hits] == ["queue"]


@pytest.mark.parametrize(
    "meanwhile",
    [
        {"status": NoteStatus.MUTED},
        {"status": NoteStatus.REJECTED},
        {"status": NoteStatus.SUPERSEDED},
        {"status": NoteStatus.PROPOSED},
        {"expires": DAY - timedelta(days=1)},
    ],
    ids=str,
)
def test_what_may_no_longer_be_said_is_not_shown_whatever_the_judge_found(services: Services, meanwhile: dict[str, Any]) -> None:
    services.over(replace(QUEUE, **meanwhile), AUTH)

    assert ruled(services).silent


def test_what_was_replaced_while_the_judge_read_is_not_shown(services: Services) -> None:
    services.over(QUEUE, replace(AUTH, supersedes=("queue",)))

    assert ruled(services).silent


def test_what_was_forgotten_while_the_judge_read_is_not_shown(services: Services) -> None:
    assert ruled(services.over(AUTH)).silent


def test_what_was_changed_while_the_judge_read_is_shown_as_it_reads_now(services: Services) -> None:
    services.over(replace(QUEUE, body="The job queue is in PostgreSQL, on the second machine."), AUTH)

    assert "on the second machine" in ruled(services).block


Moment = Callable[[Services], Injection]


@pytest.mark.parametrize("muted", ["the note", "its copy"])
@pytest.mark.parametrize(
    "moment",
    [
        lambda services: services.says("should the job queue use PostgreSQL or SQLite?"),
        lambda services: services.recall.brief(session="one", project="mycelia"),
        ruled,
    ],
    ids=["prompt", "brief", "late"],
)
def test_a_note_is_muted_whatever_a_copy_of_its_file_says(services: Services, moment: Moment, muted: str) -> None:
    files = {"the note": QUEUE, "its copy": replace(QUEUE, path="decisions/postgres-over-sqlite-feb26 1.md")}
    pile = Pile(*files.values())
    services.recall.refresh(pile)
    before = moment(services)
    services.recall.forget_session("one")

    pile.change(files[muted].path, status=NoteStatus.MUTED)
    services.recall.refresh(pile)

    assert [hit.note.id for hit in before.hits] == ["queue"]
    assert moment(services).silent


ReadResult = Callable[[Services], object]


@pytest.mark.parametrize(
    "look",
    [
        lambda services: services.recall.memory.shown("one"),
        lambda services: [given.note for occasion in services.recall.memory.report.occasions(9) for given in occasion.given],
        lambda services: [given.why for occasion in services.recall.memory.report.occasions(9) for given in occasion.given],
        lambda services: list(services.recall.memory.tallies()),
        lambda services: [ruled.note for each in services.recall.memory.verdicts.since(DAY) for ruled in each.notes],
        lambda services: _stored(services),
    ],
    ids=["shown", "given", "why", "tallies", "rulings", "anything stored"],
)
def test_the_record_of_what_was_shown_no_longer_names_it(services: Services, look: ReadResult) -> None:
    services.over(QUEUE, AUTH)
    for name in ("queue", "auth"):
        services.recall.judged(about(name), Judged(verdicts=(Verdict(note=name, probability=0.9),)))
    services.recall.log_verdicts(about("queue", "auth"), FINDS_THE_QUEUE)
    for showing in services.recall.memory.shown_open(services.now + timedelta(days=1)):
        services.recall.memory.settle(showing, Uptake(outcome="used", why=f"“{showing.note}.py” in a command"), services.now)
    assert "queue" in str(look(services))

    services.recall.forget_notes(["queue"])

    assert "queue" not in str(look(services))
    assert "auth" in str(look(services))


def _stored(services: Services) -> list[Any]:
    with sqlite3.connect(services.recall.memory.path) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows = [database.execute(f"SELECT * FROM {name}").fetchall() for name in tables]
    database.close()
    return rows


def test_what_was_counted_week_by_week_stays(services: Services) -> None:
    services.over(QUEUE)
    ruled(services)
    before = services.recall.memory.report.weekly(1, services.now)

    services.recall.forget_notes(["queue"])

    assert services.recall.memory.report.weekly(1, services.now) == before
    assert before[0].count.shown == 1


def test_what_came_of_it_is_not_written_down_once_it_is_forgotten(services: Services) -> None:
    services.over(QUEUE)
    ruled(services)
    (showing,) = services.recall.memory.shown_open(services.now + timedelta(days=1))

    services.recall.forget_notes(["queue"])
    services.recall.memory.settle(showing, Uptake(outcome="used", why="“row-level locking” in what it said"), services.now)

    assert "row-level" not in str(_stored(services))


def test_a_verdict_on_what_was_forgotten_meanwhile_is_not_written_down(services: Services) -> None:
    services.over(AUTH).recall.log_verdicts(about("queue", "auth"), FINDS_THE_QUEUE)

    assert services.recall.memory.verdicts.since(DAY) == ()


def test_where_the_record_cannot_be_changed_it_says_so(services: Services) -> None:
    services.over(QUEUE)
    ruled(services)
    other = sqlite3.connect(services.recall.memory.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(StateNotWritten, match="locked"):
        services.recall.forget_notes(["queue"])
    other.close()
