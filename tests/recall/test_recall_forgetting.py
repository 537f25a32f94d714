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
from tests.recall.house import Services
from tests.recall.notes import AUTH, DAY, QUEUE, Pile

FINDS_THE_QUEUE = Judged(verdicts=(Verdict(note="queue", probability=0.9),))


def about(*names: str) -> Question:
    known = {each.id: each for each in (QUEUE, AUTH)}
    candidates = tuple(Hit(note=known[name], score=0.3, why="") for name in names)
    return Question(session="one", project="mycelia", prompt="ask", exchange="", candidates=candidates)


def ruled(house: Services) -> Injection:
    return house.recall.judged(about("queue", "auth"), FINDS_THE_QUEUE)


def test_what_a_judge_finds_is_shown(house: Services) -> None:
    assert [hit.note.id for hit in ruled(house.over(QUEUE, AUTH)).hits] == ["queue"]


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
def test_what_may_no_longer_be_said_is_not_shown_whatever_the_judge_found(house: Services, meanwhile: dict[str, Any]) -> None:
    house.over(replace(QUEUE, **meanwhile), AUTH)

    assert ruled(house).silent


def test_what_was_replaced_while_the_judge_read_is_not_shown(house: Services) -> None:
    house.over(QUEUE, replace(AUTH, supersedes=("queue",)))

    assert ruled(house).silent


def test_what_was_forgotten_while_the_judge_read_is_not_shown(house: Services) -> None:
    assert ruled(house.over(AUTH)).silent


def test_what_was_changed_while_the_judge_read_is_shown_as_it_reads_now(house: Services) -> None:
    house.over(replace(QUEUE, body="The job queue is in PostgreSQL, on the second machine."), AUTH)

    assert "on the second machine" in ruled(house).block


Moment = Callable[[Services], Injection]


@pytest.mark.parametrize("muted", ["the note", "its copy"])
@pytest.mark.parametrize(
    "moment",
    [
        lambda house: house.says("should the job queue use PostgreSQL or SQLite?"),
        lambda house: house.recall.brief(session="one", project="mycelia"),
        ruled,
    ],
    ids=["prompt", "brief", "late"],
)
def test_a_note_is_muted_whatever_a_copy_of_its_file_says(house: Services, moment: Moment, muted: str) -> None:
    files = {"the note": QUEUE, "its copy": replace(QUEUE, path="decisions/postgres-over-sqlite-feb26 1.md")}
    pile = Pile(*files.values())
    house.recall.refresh(pile)
    before = moment(house)
    house.recall.forget_session("one")

    pile.change(files[muted].path, status=NoteStatus.MUTED)
    house.recall.refresh(pile)

    assert [hit.note.id for hit in before.hits] == ["queue"]
    assert moment(house).silent


ReadResult = Callable[[Services], object]


@pytest.mark.parametrize(
    "look",
    [
        lambda house: house.recall.memory.shown("one"),
        lambda house: [given.note for occasion in house.recall.memory.report.occasions(9) for given in occasion.given],
        lambda house: [given.why for occasion in house.recall.memory.report.occasions(9) for given in occasion.given],
        lambda house: list(house.recall.memory.tallies()),
        lambda house: [ruled.note for each in house.recall.memory.verdicts.since(DAY) for ruled in each.notes],
        lambda house: _stored(house),
    ],
    ids=["shown", "given", "why", "tallies", "rulings", "anything stored"],
)
def test_the_record_of_what_was_shown_no_longer_names_it(house: Services, look: ReadResult) -> None:
    house.over(QUEUE, AUTH)
    for name in ("queue", "auth"):
        house.recall.judged(about(name), Judged(verdicts=(Verdict(note=name, probability=0.9),)))
    house.recall.log_verdicts(about("queue", "auth"), FINDS_THE_QUEUE)
    for showing in house.recall.memory.shown_open(house.now + timedelta(days=1)):
        house.recall.memory.settle(showing, Uptake(outcome="used", why=f"“{showing.note}.py” in a command"), house.now)
    assert "queue" in str(look(house))

    house.recall.forget_notes(["queue"])

    assert "queue" not in str(look(house))
    assert "auth" in str(look(house))


def _stored(house: Services) -> list[Any]:
    with sqlite3.connect(house.recall.memory.path) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows = [database.execute(f"SELECT * FROM {name}").fetchall() for name in tables]
    database.close()
    return rows


def test_what_was_counted_week_by_week_stays(house: Services) -> None:
    house.over(QUEUE)
    ruled(house)
    before = house.recall.memory.report.weekly(1, house.now)

    house.recall.forget_notes(["queue"])

    assert house.recall.memory.report.weekly(1, house.now) == before
    assert before[0].count.shown == 1


def test_what_came_of_it_is_not_written_down_once_it_is_forgotten(house: Services) -> None:
    house.over(QUEUE)
    ruled(house)
    (showing,) = house.recall.memory.shown_open(house.now + timedelta(days=1))

    house.recall.forget_notes(["queue"])
    house.recall.memory.settle(showing, Uptake(outcome="used", why="“row-level locking” in what it said"), house.now)

    assert "row-level" not in str(_stored(house))


def test_a_verdict_on_what_was_forgotten_meanwhile_is_not_written_down(house: Services) -> None:
    house.over(AUTH).recall.log_verdicts(about("queue", "auth"), FINDS_THE_QUEUE)

    assert house.recall.memory.verdicts.since(DAY) == ()


def test_where_the_record_cannot_be_changed_it_says_so(house: Services) -> None:
    house.over(QUEUE)
    ruled(house)
    other = sqlite3.connect(house.recall.memory.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(StateNotWritten, match="locked"):
        house.recall.forget_notes(["queue"])
    other.close()
