"""What is near to a new note; and how a note is said whose code has changed, or which holds on another branch only."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from kite_memory.model.note import Note, NoteKind, NoteStatus, Scope
from kite_memory.recall.search import holding
from kite_memory.recall.select import Requirement
from tests.recall.notes import AUTH, DAY, LINT, QUEUE, VAULT, Pile, note
from tests.recall.services import Services

ON_THE_QUEUE = "should the job queue use PostgreSQL or SQLite?"
NEW = note("new", "MariaDB for the job queue", "The job queue lives in MariaDB now, no longer in PostgreSQL.", project="mycelia")


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    services = Services(tmp_path)
    yield services
    services.recall.close()


def test_the_nearest_note_of_its_project_comes_first(services: Services) -> None:
    around = services.over(*VAULT, NEW).recall.nearest(NEW)

    assert around.near[0].note.id == "queue"
    assert {each.note.project for each in around.near} == {"mycelia"}
    assert "new" not in {each.note.id for each in around.near}


def test_a_note_that_says_the_very_same_means_the_same(services: Services) -> None:
    around = services.over(QUEUE, AUTH, LINT).recall.nearest(replace(QUEUE, id="another"))

    assert around.near[0].cosine > 0.99


@pytest.mark.parametrize(
    "changes",
    [{"status": NoteStatus.REJECTED}, {"expires": DAY}, {"kind": NoteKind.JOURNAL}, {"kind": NoteKind.ENTITY}, {"id": ""}],
)
def test_nothing_is_held_against_what_does_not_count(services: Services, changes: dict[str, Any]) -> None:
    near = services.over(replace(QUEUE, **changes), AUTH).recall.nearest(NEW).near

    assert [each.note.id for each in near] == ["auth"]


def test_around_nothing_there_is_nothing(services: Services) -> None:
    assert services.recall.nearest(NEW).near == ()


def test_a_note_whose_code_has_changed_counts_for_less_and_says_so(services: Services) -> None:
    pile = Pile(*VAULT)
    services.recall.refresh(pile)
    fresh = services.weighed(ON_THE_QUEUE).candidates[0]
    pile.change(QUEUE.path, drifted=DAY)
    services.recall.refresh(pile)
    stale = services.weighed(ON_THE_QUEUE).candidates[0]

    said = services.reopened(requirement=Requirement(threshold=0.1)).says(ON_THE_QUEUE).block

    assert (fresh.note.id, stale.note.id) == ("queue", "queue")
    assert stale.score < fresh.score
    assert "· the code has changed since ---" in said


@pytest.mark.parametrize(("branch", "said"), [("fix/queue", ["queue"]), ("", ["queue"]), ("main", [])])
def test_a_note_of_a_branch_is_weighed_on_that_branch(services: Services, branch: str, said: list[str]) -> None:
    services.over(replace(QUEUE, branch="fix/queue"), *VAULT[1:])

    found = [hit.note.id for hit in services.weighed(ON_THE_QUEUE, branch=branch).candidates if hit.note.id == "queue"]

    assert found == said


ELSEWHERE: list[dict[str, Any]] = [
    {"branch": "fix/queue"},
    {"scope": Scope.SESSION, "session": "another"},
    {"project": "orchard"},
]


def crowd(count: int = 60, **where: Any) -> list[Note]:
    return [replace(QUEUE, id=f"q{number}", path=f"decisions/q{number}.md", **where) for number in range(count)]


@pytest.mark.parametrize("where", ELSEWHERE)
@pytest.mark.parametrize("how", [Requirement(), Requirement(threshold=0.1)])
def test_notes_that_may_not_be_shown_hide_no_other(services: Services, where: dict[str, Any], how: Requirement) -> None:
    services.over(*crowd(**where), NEW)

    weighed = services.reopened(requirement=how).weighed(ON_THE_QUEUE, branch="main")

    assert [hit.note.id for hit in weighed.candidates] == ["new"]


NARROW: list[dict[str, Any]] = [{"branch": "fix/queue"}, {"scope": Scope.SESSION, "session": "another"}, {"expires": DAY}]


@pytest.mark.parametrize("where", NARROW)
def test_a_note_is_shown_where_what_replaces_it_does_not_hold(services: Services, where: dict[str, Any]) -> None:
    services.over(QUEUE, replace(NEW, supersedes=(QUEUE.path,), **where), *VAULT[1:])

    found = [hit.note.id for hit in services.weighed(ON_THE_QUEUE, branch="main").candidates]

    assert "queue" in found
    assert "new" not in found


@pytest.mark.parametrize("where", [*NARROW[:2], {"expires": DAY + timedelta(days=9)}])
def test_a_note_is_replaced_where_what_replaces_it_holds(services: Services, where: dict[str, Any]) -> None:
    services.over(QUEUE, replace(NEW, supersedes=(QUEUE.path,), **where), *VAULT[1:])

    found = [hit.note.id for hit in services.weighed(ON_THE_QUEUE, branch="fix/queue", session="another").candidates]

    assert "queue" not in found
    assert "new" in found


def test_a_session_begins_with_the_only_note_of_its_branch(services: Services) -> None:
    services.over(*crowd(220, branch="fix/queue", importance=3), LINT)

    brief = services.recall.brief(session="s", project="mycelia", branch="main")

    assert [hit.note.id for hit in brief.hits] == ["lint"]


@pytest.mark.parametrize("scope", Scope)
@pytest.mark.parametrize("branch", ["", "fix/queue"])
@pytest.mark.parametrize("session", ["", "one"])
def test_the_index_knows_where_a_note_holds(services: Services, scope: Scope, branch: str, session: str) -> None:
    held = replace(QUEUE, scope=scope, branch=branch, session=session)
    index = services.over(held).recall.index
    columns, number = index.columns(), index.project_number(QUEUE.project)
    for on, during in product(("", "main", "fix/queue"), ("", "one", "two")):
        (holds,) = holding(index, columns, project=number, branch=on, session=during)

        of_branch = branch == "" or on in ("", branch)
        assert holds == (of_branch and (scope is not Scope.SESSION or session == during))


def test_a_session_begins_without_notes_of_other_branches_or_of_code_that_changed(services: Services) -> None:
    services.over(replace(QUEUE, branch="fix/queue"), replace(AUTH, drifted=DAY), LINT)

    brief = services.recall.brief(session="s", project="mycelia", branch="main")

    assert [hit.note.id for hit in brief.hits] == ["lint"]
