"""Which sessions went on with one another's work, and why."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.extensions.contract.extractor_contract import START
from kite_memory.model.event import Session
from kite_memory.timeline.store import Timeline
from kite_memory.timeline.summaries import Work as Summary
from kite_memory.timeline.threads import JOINED, SURE, WorkThread, joined, threads
from tests.fakes.work import Work, session

HOME = "/home/ada/orchard"
AGENTS = ("claude-code", "codex", "gemini-cli")


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


def numbers(thread: WorkThread) -> list[int]:
    return [int(work.session.id[:4], 16) for work in thread.works]


def test_three_agents_at_one_file_are_one_thread() -> None:
    works = [did(number, "src/pear.py", "src/graft.py", provider=agent) for number, agent in enumerate(AGENTS, 1)]

    (thread,) = threads(works)

    assert numbers(thread) == [1, 2, 3]
    assert {joint.reasons[0].tie for joint in thread.joints} == {"file"}
    assert {joint.reasons[0].what for joint in thread.joints} == {"src/graft.py"}


def test_each_session_but_the_first_is_joined_once_to_one_before_it() -> None:
    (thread,) = threads([did(number, *(f"src/{number + more}.py" for more in range(3))) for number in range(1, 7)])

    assert [joint.later.id for joint in thread.joints] == [work.session.id for work in thread.works[1:]]
    assert all(joint.earlier.started < joint.later.started for joint in thread.joints)
    assert all(SURE <= joint.strength <= 1 for joint in thread.joints)


@pytest.mark.parametrize(
    "name", ["go.sum", "README.md", "web/package-lock.json", "Cargo.lock", "poetry.lock", "CHANGELOG.md", "go.mod"]
)
def test_what_every_task_touches_joins_nothing(name: str) -> None:
    assert threads([did(1, name), did(2, name)]) == ()


def test_a_file_that_everybody_touches_joins_nothing_however_it_is_called() -> None:
    assert threads(crowd(30, "src/registry.py")) == ()


def test_a_rare_file_joins_in_the_same_crowd() -> None:
    works = [*crowd(30, "src/registry.py"), did(1, "src/pear.py", "src/plum.py", day=1)]
    works.append(did(2, "src/pear.py", "src/plum.py", day=2))

    assert [numbers(thread) for thread in threads(works)] == [[1, 2]]


def test_commands_alone_join_nothing() -> None:
    lines = tuple(f"make graft-{number} --all" for number in range(20))

    assert threads([did(1, commands=lines), did(2, commands=lines)]) == ()


def test_commands_strengthen_what_a_file_joins() -> None:
    without = threads([did(1, "a.py", "b.py"), did(2, "a.py", "b.py")])
    with_commands = threads([did(number, "a.py", "b.py", commands=("make graft --all",)) for number in (1, 2)])

    assert with_commands[0].joints[0].strength > without[0].joints[0].strength


def test_looking_at_git_is_no_ones_work() -> None:
    (thread,) = threads([did(number, "a.py", "b.py", commands=("git status", "ls -la")) for number in (1, 2)])

    assert {reason.tie for reason in thread.joints[0].reasons} == {"file"}


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
    here = did(1, "src/pear.py", "src/plum.py")
    files = frozenset(["/tmp/worktree/src/pear.py", "/tmp/worktree/src/plum.py"])
    there = replace(did(2), session=replace(did(2).session, cwd="/tmp/worktree"), files=files)

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

    def test_what_a_session_worked_with_is_reported(self, timeline: Timeline) -> None:
        self._worked(timeline, session(1), 1)

        (summary,) = timeline.sessions.works()

        assert summary.files == {f"{HOME}/a.py"}
        assert summary.commands == {"pytest"}
        assert summary.decisions == {"Quince"}
        assert any("the soil is dry" in signature for signature in summary.signatures)
        assert summary.prompts == 2

    def test_failures_that_were_let_go_are_not_reported(self, timeline: Timeline) -> None:
        work = self._worked(timeline, session(1), 1)

        timeline.forgotten.add([event for event in work.events if "the soil is dry" in event.text])

        (summary,) = timeline.sessions.works()
        assert not summary.signatures

    def test_sessions_are_counted_newest_first(self, timeline: Timeline) -> None:
        self._worked(timeline, session(1), 1)
        self._worked(timeline, session(2, provider="codex", project="meadow"), 2)

        found = timeline.sessions.overviews()

        assert [each.session.id for each in found] == [session(2).id, session(1).id]
        assert [(each.prompts, each.tests, each.failed_tests) for each in found] == [(2, 1, 1), (2, 1, 1)]
        assert [each.session.project for each in timeline.sessions.overviews(project="meadow")] == ["meadow"]

    def test_only_the_latest_are_looked_at_and_commits_are_no_sessions(self, timeline: Timeline) -> None:
        for number in range(1, 5):
            self._worked(timeline, session(number), number)
        self._worked(timeline, session(9, provider="git"), 9)

        assert [work.session.id for work in timeline.sessions.works(limit=2)] == [session(4).id, session(3).id]
        assert timeline.sessions.count() == 4

    def test_sub_agents_are_found_by_their_session(self, timeline: Timeline) -> None:
        self._worked(timeline, session(1), 1)
        self._worked(timeline, session(2, parent=session(1).id), 2)

        assert [each.id for each in timeline.sessions.sub_sessions("claude-code", session(1).id)] == [session(2).id]
        assert timeline.sessions.sub_sessions("codex", session(1).id) == []


def test_failures_join_nothing_and_strengthen_a_little() -> None:
    own = "error: dry\nerror: cold"

    assert threads([did(1, "a.py", signatures=own), did(2, "b.py", signatures=own)]) == ()
    without, with_own, met = (
        threads([did(number, "a.py", "b.py", signatures=said) for number in (1, 2)])[0].joints[0].strength
        for said in ("exit code 1", own, "exit code 127\ngraft: command not found\npermission denied")
    )
    assert without == met < with_own


class TestIntent:
    """What joins two sessions that share no more than this."""

    def _asked(self, number: int, text: str, *files: str, branch: str = "main", closing: str = "", committed: str = "") -> Summary:
        commits = frozenset([committed] if committed else [])
        asked = replace(did(number, *files, branch=branch), asked=frozenset([text]), opening=text)
        return replace(asked, committed=commits, closing=closing)

    @pytest.mark.parametrize(
        ("first", "second"),
        [
            ("Look into PEAR-12", "PEAR-12 again: the soil"),
            ("review PR 142", "merge https://forge.example/orchard/pull/142 now"),
            ("Implement the plan in docs/plans/grafting.md", "Where does docs/plans/grafting.md stand?"),
            ("# Plan: Graft the pear onto quince\n\n## Context", "# Plan: Graft the pear  onto quince\n\nIn short"),
        ],
    )
    def test_what_both_name_joins(self, first: str, second: str) -> None:
        assert len(threads([self._asked(1, first), self._asked(2, second)])) == 1

    @pytest.mark.parametrize(
        ("first", "second"),
        [
            ("Use UTF-8 in the reader", "Write UTF-8 in the printer"),
            ("1. #1 dig\n2. #2 rest", "take #1 and #2 of these"),
            ("MPL-2.0 or MIT?", "all files say MPL-2.0"),
            ("port 5432 already in use. then seed users", "port 5432 already in use, kill it; then slow queries"),
            ("cargo: linker cc not found", "linker cc not found again, then add a flag"),
        ],
    )
    def test_what_anybody_says_joins_nothing(self, first: str, second: str) -> None:
        found = joined([self._asked(1, first), self._asked(2, second)])

        assert (found.threads, found.unsure) == ((), ())

    def test_a_numbered_record_and_what_names_it(self) -> None:
        written = self._asked(1, "Write down how the wheel turns", "docs/adr/0012-wheel.md")

        assert len(threads([written, self._asked(2, "Carry out ADR 12, first step", "wheel.py")])) == 1
        assert threads([written, self._asked(2, "Carry out ADR 11, first step", "wheel.py")]) == ()
        assert threads([written, self._asked(2, "Carry out step 12", "wheel.py")]) == ()

    def test_a_commit_and_what_names_it(self) -> None:
        made = self._asked(1, "Graft", committed="[main 1a2b3c4] Graft the pear\n 1 file changed")

        assert len(threads([made, self._asked(2, "revert 1a2b3c4d5e6f please")])) == 1
        assert threads([made, self._asked(2, "see https://1a2b3c4d5e6f708192a3.example")]) == ()

    def test_the_persons_own_words_of_what_was_left(self) -> None:
        first = self._asked(
            1, "The list is slow", "models/product.py", closing="Faster by half. The facet aggregates are what is left."
        )
        leftover = self._asked(2, "yesterday's leftover: facet aggregates of the product", "models/product.py", branch="facets")

        assert len(threads([first, leftover])) == 1
        assert threads([first, self._asked(2, "write the imprint page", "models/product.py", branch="facets")]) == ()

    def test_one_file_alone_is_said_to_be_unsure(self) -> None:
        found = joined([did(1, "src/pear.py"), did(2, "src/pear.py")])

        assert found.threads == ()
        (joint,) = found.unsure
        assert JOINED <= joint.strength < SURE

    def test_each_on_a_branch_of_its_own_is_other_work(self) -> None:
        files = ("src/pear.py", "src/plum.py")

        assert len(threads([did(1, *files), did(2, *files)])) == 1
        assert threads([did(1, *files, branch="dig"), did(2, *files, branch="prune")]) == ()

    @pytest.mark.parametrize(
        "command", ["git rebase origin/next", "gh pr create --base next --fill", "git switch next && git pull"]
    )
    def test_what_others_are_built_upon_is_the_trunk(self, command: str) -> None:
        both = [did(1, branch="next"), did(2, branch="next")]

        assert len(threads(both)) == 1
        assert threads([*both, did(3, commands=(command,))]) == ()

    @pytest.mark.parametrize(
        "name", ["prisma/schema.prisma", "src/main.rs", ".claude/settings.json", "CLAUDE.md", "memory/notes.md"]
    )
    def test_everybodys_files_join_nothing(self, name: str) -> None:
        found = joined([did(1, name), did(2, name)])

        assert (found.threads, found.unsure) == ((), ())
