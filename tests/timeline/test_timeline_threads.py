"""Which sessions went on with one another's work, and why."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.model.event import Session
from kite_memory.timeline.store import Timeline
from kite_memory.timeline.summaries import Work as Summary
from kite_memory.timeline.threads import JOINED, Thread, threads
from tests.fakes.events import START
from tests.fakes.work import Work, session

HOME = "/home/ada/orchard"


def did(number: int, *files: str, day: float | None = None, commands: tuple[str, ...] = (), **changes: str) -> Summary:
    began = START + timedelta(days=number if day is None else day)
    named = {"branch": "main"} | {name: value for name, value in changes.items() if name not in ("signatures", "decisions")}
    of = replace(session(number, **named), started=began)
    known = {name: frozenset(changes[name].splitlines()) for name in ("signatures", "decisions") if name in changes}
    return Summary(
        session=of,
        last=began + timedelta(hours=1),
        files=frozenset(f"{HOME}/{file}" for file in files),
        commands=frozenset(commands),
        signatures=known.get("signatures", frozenset()),
        decisions=known.get("decisions", frozenset()),
    )


def crowd(count: int, *files: str) -> list[Summary]:
    """Sessions of the project that have nothing in common but ``files``."""
    return [did(100 + number, f"own{number}.py", *files, day=number / 10) for number in range(count)]


def numbers(thread: Thread) -> list[int]:
    return [int(work.session.id[:4], 16) for work in thread.works]


def test_three_agents_at_one_file_are_one_thread() -> None:
    works = [did(1, "src/pear.py"), did(2, "src/pear.py", provider="codex"), did(3, "src/pear.py", provider="gemini-cli")]

    (thread,) = threads(works)

    assert numbers(thread) == [1, 2, 3]
    assert {joint.reasons[0].tie for joint in thread.joints} == {"file"}
    assert {joint.reasons[0].what for joint in thread.joints} == {"src/pear.py"}


def test_each_session_but_the_first_is_joined_once_to_one_before_it() -> None:
    (thread,) = threads([did(number, f"src/{number}.py", f"src/{number + 1}.py") for number in range(1, 7)])

    assert [joint.later.id for joint in thread.joints] == [work.session.id for work in thread.works[1:]]
    assert all(joint.earlier.started < joint.later.started for joint in thread.joints)
    assert all(JOINED <= joint.strength <= 1 for joint in thread.joints)


@pytest.mark.parametrize(
    "name", ["go.sum", "README.md", "web/package-lock.json", "Cargo.lock", "poetry.lock", "CHANGELOG.md", "go.mod"]
)
def test_what_every_task_touches_joins_nothing(name: str) -> None:
    assert threads([did(1, name), did(2, name)]) == ()


def test_a_file_that_everybody_touches_joins_nothing_however_it_is_called() -> None:
    assert threads(crowd(30, "src/registry.py")) == ()


def test_a_rare_file_joins_in_the_same_crowd() -> None:
    works = [*crowd(30, "src/registry.py"), did(1, "src/pear.py", day=1), did(2, "src/pear.py", day=2)]

    assert [numbers(thread) for thread in threads(works)] == [[1, 2]]


def test_commands_alone_join_nothing() -> None:
    lines = tuple(f"make graft-{number} --all" for number in range(20))

    assert threads([did(1, commands=lines), did(2, commands=lines)]) == ()


def test_commands_strengthen_what_a_file_joins() -> None:
    without = threads([did(1, "a.py"), did(2, "a.py")])
    with_commands = threads([did(1, "a.py", commands=("make graft --all",)), did(2, "a.py", commands=("make graft --all",))])

    assert with_commands[0].joints[0].strength > without[0].joints[0].strength


def test_looking_at_git_is_nobodys_work() -> None:
    (thread,) = threads([did(1, "a.py", commands=("git status", "ls -la")), did(2, "a.py", commands=("git status", "ls -la"))])

    assert [reason.tie for reason in thread.joints[0].reasons] == ["file"]


def test_a_branch_joins_and_the_main_one_does_not() -> None:
    assert len(threads([did(1, branch="graft/pear"), did(2, branch="graft/pear")])) == 1
    assert threads([did(1, branch="main"), did(2, branch="main")]) == ()


def test_a_branch_made_in_a_session_is_the_next_ones() -> None:
    works = [did(1, commands=("git checkout -b graft/pear",)), did(2, branch="graft/pear")]

    assert threads(works)[0].joints[0].reasons[0].what == "graft/pear"


def test_a_decision_joins_and_one_failure_alone_does_not() -> None:
    assert len(threads([did(1, decisions="Quince as the stock"), did(2, decisions="Quince  as the stock")])) == 1
    assert threads([did(1, signatures="error: dry soil"), did(2, signatures="error: dry soil")]) == ()


def test_a_sub_agent_belongs_to_its_session_even_without_a_project() -> None:
    parent = did(1, project="")
    child = did(2, project="", parent=parent.session.id)

    (thread,) = threads([parent, child])

    assert numbers(thread) == [1, 2]
    assert thread.joints[0].strength == 1.0


def test_projects_are_kept_apart() -> None:
    assert threads([did(1, "src/pear.py"), did(2, "src/pear.py", project="meadow")]) == ()


def test_without_a_project_a_shared_file_joins_nothing() -> None:
    assert threads([did(1, "src/pear.py", project=""), did(2, "src/pear.py", project="")]) == ()


def test_worktrees_of_a_project_share_its_files() -> None:
    here = did(1, "src/pear.py")
    there = replace(did(2), session=replace(did(2).session, cwd="/tmp/worktree"), files=frozenset(["/tmp/worktree/src/pear.py"]))

    assert len(threads([here, there])) == 1


def test_after_months_the_same_file_is_other_work() -> None:
    assert threads([did(1, "src/pear.py"), did(2, "src/pear.py", day=90)]) == ()


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from("abc"), st.booleans()), max_size=25))
def test_no_session_is_in_two_threads_and_order_does_not_matter(rows: list[tuple[int, str, bool]]) -> None:
    works = [
        did(number, f"{file}.py", day=day, provider="codex" if codex else "claude-code")
        for number, (day, file, codex) in enumerate(rows)
    ]

    found = threads(works)

    members = [work.session.id for thread in found for work in thread.works]
    assert len(members) == len(set(members))
    assert all(len(thread.works) == len(thread.joints) + 1 for thread in found)
    assert threads(reversed(works)) == found


class TestSummaries:
    @pytest.fixture
    def timeline(self, tmp_path: Path) -> Iterator[Timeline]:
        timeline = Timeline(tmp_path / "timeline.sqlite")
        yield timeline
        timeline.close()

    def _worked(self, timeline: Timeline, of: Session, day: int) -> Work:
        work = Work(of, begins=timedelta(days=day)).asked("Graft the pear").edited(f"{HOME}/a.py").edited(f"{HOME}/b.py", "read")
        work = work.ran("pytest", "E   AssertionError: the soil is dry", "failed", tests="failed").decided("Quince").asked("go on")
        timeline.commit([work.look()], of.provider)
        return work

    def test_what_a_session_worked_with_is_told(self, timeline: Timeline) -> None:
        self._worked(timeline, session(1), 1)

        (summary,) = timeline.works()

        assert summary.files == {f"{HOME}/a.py"}
        assert summary.commands == {"pytest"}
        assert summary.decisions == {"Quince"}
        assert any("the soil is dry" in signature for signature in summary.signatures)
        assert summary.prompts == 2

    def test_failures_that_were_let_go_are_not_told(self, timeline: Timeline) -> None:
        work = self._worked(timeline, session(1), 1)

        timeline.let_go([event for event in work.events if "the soil is dry" in event.text])

        (summary,) = timeline.works()
        assert not summary.signatures

    def test_sessions_are_counted_newest_first(self, timeline: Timeline) -> None:
        self._worked(timeline, session(1), 1)
        self._worked(timeline, session(2, provider="codex", project="meadow"), 2)

        found = timeline.overviews()

        assert [each.session.id for each in found] == [session(2).id, session(1).id]
        assert [(each.prompts, each.tests, each.failed_tests) for each in found] == [(2, 1, 1), (2, 1, 1)]
        assert [each.session.project for each in timeline.overviews(project="meadow")] == ["meadow"]

    def test_only_the_latest_are_looked_at_and_commits_are_no_sessions(self, timeline: Timeline) -> None:
        for number in range(1, 5):
            self._worked(timeline, session(number), number)
        self._worked(timeline, session(9, provider="git"), 9)

        assert [work.session.id for work in timeline.works(limit=2)] == [session(4).id, session(3).id]
        assert timeline.session_count() == 4

    def test_sub_agents_are_found_by_their_session(self, timeline: Timeline) -> None:
        self._worked(timeline, session(1), 1)
        self._worked(timeline, session(2, parent=session(1).id), 2)

        assert [each.id for each in timeline.sub_sessions("claude-code", session(1).id)] == [session(2).id]
        assert timeline.sub_sessions("codex", session(1).id) == []


def test_failures_that_anybody_meets_join_nothing() -> None:
    met = "exit code 127\ngraft: command not found\npermission denied\nls: no such file or directory"

    own = "error: dry\nerror: cold"

    assert threads([did(1, "a.py", signatures=met), did(2, "b.py", signatures=met)]) == ()
    assert len(threads([did(1, "a.py", signatures=own), did(2, "b.py", signatures=own)])) == 1
