"""What is known of a command, a failure and a file."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from kite_memory.model.event import EventType
from kite_memory.timeline.history_queries import became, changes, fix_of_quoted_failure, search_failures, search_uses
from kite_memory.timeline.store import Timeline
from tests.fakes.work import Work, session

HOME = "/home/ada/orchard"
FAILED = "--- FAIL: TestPear (0.00s)\n    pear_test.go:7: connect: port 5432 refused\nFAIL"


@pytest.fixture
def timeline(tmp_path: Path) -> Iterator[Timeline]:
    timeline = Timeline(tmp_path / "timeline.sqlite")
    work = (
        Work(session(1)).asked("Graft the pear").edited(f"{HOME}/pear.go").ran("go test ./pear", FAILED, "failed", tests="failed")
    )
    work.edited(f"{HOME}/pear.go").ran("go test ./plum", "ok plum 0.1s", tests="ok").ran(
        "go test ./...", "ok pear 0.1s", tests="ok"
    )
    work.asked("And write it down").edited(f"{HOME}/pear.go").committed("abc1234", "Graft the pear").ran("go vet ./...")
    later = Work(session(2), begins=timedelta(days=2)).asked("Prune it").edited(f"{HOME}/pear.go").ran("go vet ./...")
    timeline.commit([work.look(), later.look()], "claude-code")
    yield timeline
    timeline.close()


class TestUses:
    def test_what_went_well_comes_first_and_of_that_the_commonest(self, timeline: Timeline) -> None:
        found = search_uses(timeline, "go")

        assert [(use.what, use.times, use.outcome) for use in found][:1] == [("go vet ./...", 2, "ok")]
        assert [use.what for use in found if use.outcome == "failed"] == ["go test ./pear"]
        assert found[-1].what == "go test ./pear"

    def test_a_failure_is_reported_with_what_ended_it(self, timeline: Timeline) -> None:
        (failed,) = (use for use in search_uses(timeline, "go test") if use.outcome == "failed")

        assert failed.fix is not None
        assert failed.fix.worked == "go test ./..."

    def test_words_of_a_command_line_are_no_program(self, timeline: Timeline) -> None:
        assert search_uses(timeline, "pear") == []
        assert search_uses(timeline, "go build") == []
        assert search_uses(timeline, " ") == []

    def test_a_program_is_known_by_its_name_without_a_folder(self, timeline: Timeline) -> None:
        timeline.commit([Work(session(5)).asked("Ship it").ran("./bin/ship --all").look()], "claude-code")

        assert [use.what for use in search_uses(timeline, "./bin/ship")] == ["./bin/ship --all"]

    def test_an_agents_tool_is_known_by_its_calls(self, timeline: Timeline) -> None:
        assert [use.times for use in search_uses(timeline, "Edit")] == [4]


class TestMet:
    def test_a_failure_by_its_words_with_how_it_went_away(self, timeline: Timeline) -> None:
        (found,) = search_failures(timeline, "port 5432 refused")

        assert "port 5432 refused" in found.failure
        assert (found.command, found.times) == ("go test ./pear", 1)
        assert found.fix is not None
        assert found.fix.files == (f"{HOME}/pear.go",)

    def test_a_run_of_something_else_is_not_what_ended_it(self, timeline: Timeline) -> None:
        (found,) = search_failures(timeline, "port 5432 refused")

        assert found.fix is not None
        assert found.fix.worked == "go test ./..."
        assert "go test ./plum" in found.fix.steps

    def test_words_that_any_message_has_make_no_failure_alike(self, timeline: Timeline) -> None:
        work = Work(session(3)).ran("gate open", "error: the stake is bent", "failed")
        work.ran("pear list", "error: the list is not in the depot", "failed")
        timeline.commit([work.look()], "claude-code")

        found = search_failures(timeline, "the stake is bent")

        assert [each.failure for each in found] == ["error: the stake is bent"]

    def test_the_wording_that_was_asked_for_comes_before_what_went_away(self, timeline: Timeline) -> None:
        asked = "cannot find module 'stake'"
        work = Work(session(3)).ran("npm test", f"error: {asked} from '/srv/a.ts'", "failed")
        other = Work(session(4)).ran("go get stake", "stake: cannot find module providing package stake", "failed")
        other.ran("go get stake", "done")
        timeline.commit([work.look(), other.look()], "claude-code")

        found = search_failures(timeline, asked)

        assert [asked in each.failure for each in found] == [True, False]
        assert [each.fix is not None for each in found] == [False, True]

    def test_a_prompt_that_quotes_a_failure_is_told_what_ended_it(self, timeline: Timeline) -> None:
        work = Work(session(3)).asked("Fill the cellar").ran("cellar fill", "cellar: CaskTooSmall: 40 l do not fit", "failed")
        work.asked("I swapped the cask, once more").ran("cellar fill", "done")
        timeline.commit([work.look()], "claude-code")

        def told(text: str, besides: str = "") -> str:
            found = fix_of_quoted_failure(timeline, text, project="orchard", besides=besides)
            return found.text if found is not None else ""

        assert "`go test ./...` succeeded after changes to pear.go" in told("again it says connect: port 5432 refused, why?")
        assert "succeeded after the user wrote “I swapped the cask, once more”" in told("CaskTooSmall again")
        assert told("CaskTooSmall again", besides=work.session.id) == ""
        assert told("why is the port refused?") == told("fill the cellar") == told("the error is 40 l") == ""

    def test_a_failure_of_another_file_or_a_test_that_is_only_named_is_not_that_failure(self, timeline: Timeline) -> None:
        lost = "FileNotFoundError: [Errno 2] No such file or directory: 'conf/plum.yml'"
        work = Work(session(3)).asked("Load it").ran("python load.py", lost, "failed").ran("cp plum.example conf/plum.yml")
        work.ran("python load.py", "loaded").ran("go test ./plum", "--- FAIL: TestPlumRipensEarly (0.00s)", "failed")
        work.edited(f"{HOME}/plum.go").ran("go test ./plum", "ok")
        timeline.commit([work.look()], "claude-code")

        def told(text: str) -> bool:
            return fix_of_quoted_failure(timeline, text, project="orchard", besides="") is not None

        assert told(f"now it says {lost}") and told("TestPlumRipensEarly fails again")
        assert not told(f"now it says {lost.replace('plum', 'fig')}")
        assert not told("why does TestPlumRipensEarly need a clock?")

    def test_what_never_failed_is_not_known(self, timeline: Timeline) -> None:
        assert search_failures(timeline, "the zeppelin leaks") == []
        assert search_failures(timeline, "port of the zeppelin that leaks") == []


class TestChanges:
    def test_a_file_is_reported_by_the_prompts_that_changed_it(self, timeline: Timeline) -> None:
        found = changes(timeline, "pear.go")

        assert [(change.prompt, change.times) for change in found] == [
            ("Prune it", 1),
            ("And write it down", 1),
            ("Graft the pear", 2),
        ]
        assert [change.commit.subject if change.commit else "" for change in found] == ["", "Graft the pear", "Graft the pear"]

    def test_a_name_that_a_shell_completed_or_a_mac_wrote_is_the_same_file(self, timeline: Timeline) -> None:
        timeline.commit([Work(session(5)).asked("Bake").edited(f"{HOME}/pa\u0302te\u0301.go").look()], "claude-code")

        assert len(changes(timeline, "./pear.go")) == len(changes(timeline, "pear.go")) == 3
        assert [change.prompt for change in changes(timeline, "p\u00e2t\u00e9.go")] == ["Bake"]

    def test_a_change_that_was_taken_back_has_no_commit(self, timeline: Timeline) -> None:
        work = Work(session(6)).asked("Try the plum").edited(f"{HOME}/plum.go").ran("git checkout -- plum.go")
        timeline.commit([work.edited(f"{HOME}/quince.go").committed("ddd1234", "Add a quince").look()], "claude-code")

        (plum,), (quince,) = changes(timeline, "plum.go"), changes(timeline, "quince.go")

        assert (plum.action, plum.commit) == ("edited and taken back", None)
        assert quince.commit is not None

    def test_a_commit_read_from_git_is_joined_with_the_session_that_made_it(self, timeline: Timeline) -> None:
        work = Work(session(7)).asked("Move the fig").edited(f"{HOME}/fig.go").ran("git commit -qam 'Move the fig'", "")
        by_git = Work(session(8, provider="git"), begins=timedelta(hours=1))
        for subject in ("Move the fig", "Water the fig"):
            by_git._add(EventType.FILE_ACTION, "system", f"{subject}\n\nIt stood in the sun.", tool="git commit")
            by_git._add(EventType.FILE_ACTION, "system", "edited", tool="git commit", path=f"{HOME}/fig.go")
            by_git.events[-1] = replace(by_git.events[-1], parent=by_git.events[-2].id)
        timeline.commit([work.look()], "claude-code")
        timeline.commit([by_git.look()], "git")

        found = changes(timeline, "fig.go")

        assert [(each.session.provider, each.commit.subject if each.commit else "") for each in found] == [
            ("git", "Water the fig"),
            ("claude-code", "Move the fig"),
        ]

    def test_of_two_commits_with_one_subject_a_session_made_the_nearer(self, timeline: Timeline) -> None:
        for number, days in ((7, 0), (9, 10)):
            begins = timedelta(days=days)
            work = (
                Work(session(number), begins=begins)
                .asked("Prune")
                .edited(f"{HOME}/fig{number}.go")
                .ran("git commit -qam 'wip'", "")
            )
            by_git = Work(session(number + 1, provider="git"), begins=begins + timedelta(minutes=1))
            by_git._add(EventType.FILE_ACTION, "system", "wip", tool="git commit")
            timeline.commit([work.look()], "claude-code")
            timeline.commit([by_git.look()], "git")
        late = Work(session(12), begins=timedelta(days=20)).edited(f"{HOME}/fig12.go").ran("git commit -qam 'wip'", "")
        timeline.commit([late.look()], "claude-code")

        made = [changes(timeline, f"fig{number}.go")[0].commit for number in (7, 9, 12)]

        assert [each and each.event.session for each in made] == [session(8).id, session(10).id, None]

    def test_a_file_is_taken_back_by_its_own_path_and_only_if_that_succeeds(self, timeline: Timeline) -> None:
        work = Work(session(6, cwd=HOME)).asked("Try the plum").edited(f"{HOME}/trees/plum.go").edited(f"{HOME}/fig.go")
        work.ran("git checkout -- plum.go").ran("git checkout -- fig.go", "error: pathspec", "failed")
        timeline.commit([work.look()], "claude-code")

        assert [changes(timeline, file)[0].action for file in ("trees/plum.go", "fig.go")] == ["edited", "edited"]

    def test_only_of_a_project(self, timeline: Timeline) -> None:
        assert changes(timeline, "pear.go", project="meadow") == []


class TestBecame:
    def test_what_came_of_a_failure_and_of_a_change(self, timeline: Timeline) -> None:
        events = timeline.events.of_session("claude-code", session(1).id)
        failure = next(event for event in events if event.type is EventType.TEST_RESULT)
        change = next(event for event in events if event.type is EventType.FILE_ACTION)

        (fixed,) = became(timeline, failure)
        (changed,) = became(timeline, change)

        assert "by `go test ./...`, after changes to pear.go" in fixed
        assert "changed 3 times since, last 2026-03-03" in changed

    def test_nothing_came_of_what_is_only_said(self, timeline: Timeline) -> None:
        assert list(became(timeline, timeline.events.of_session("claude-code", session(2).id)[0])) == []
