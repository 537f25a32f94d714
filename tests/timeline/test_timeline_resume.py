"""Where a session stood, from events alone: every line with what it rests on."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.extensions.contract.extractor_contract import SESSION, START, event
from kite_memory.model.event import PLANNING, EventType, Status, merged_by_time
from kite_memory.timeline.progress import BriefLine, BriefPart, fitted
from kite_memory.timeline.resume import Brief, brief
from kite_memory.timeline.runs import open_failures, runs
from tests.fakes.work import Work, session

HOME = "/home/ada/orchard"
STATUSES: tuple[Status, ...] = ("", "ok", "failed", "denied")
RAN = Work().asked("Graft the pear onto the quince tree").edited(f"{HOME}/pear.py").ran("pytest", "4 passed", tests="ok")


def of(work: Work) -> Brief:
    result = brief(work.session, work.events)
    assert result is not None
    return result


def lines_of(work: Work, part: BriefPart) -> list[str]:
    return [line.text for line in of(work).lines if line.part is part]


def test_of_nothing_nothing_is_reported() -> None:
    assert brief(SESSION, []) is None


def test_every_line_cites_events_that_are_there() -> None:
    work = Work().asked("Graft the pear onto the quince tree").edited(f"{HOME}/a.py").ran("make check", "error: no", "failed")
    work = work.decided("Quince it is").ran("pytest", "4 passed", tests="ok").edited(f"{HOME}/b.py")
    work = work.called("TodoWrite", "todos:\n[>] Water the quince\n[ ] Prune").said("Shall I go on?")

    cited = {reference for line in of(work).lines for reference in line.evidence}

    assert {line.part for line in of(work).lines} == set(BriefPart)
    assert all(line.evidence for line in of(work).lines)
    assert cited <= {each.reference for each in work.events}


class TestDoing:
    def test_the_last_prompt_comes_first_and_then_what_the_agent_said(self) -> None:
        work = Work().asked("Graft the pear onto the quince").said("Done, it holds.").asked("yes").said("## Watered\n\nIt *grows*.")

        assert lines_of(work, BriefPart.DOING) == [
            'asked last: "yes" in answer to: "Done, it holds."',
            'the agent said last: "Watered It *grows*."',
            'asked first: "Graft the pear onto the quince"',
        ]

    def test_code_is_left_out_of_what_was_answered(self) -> None:
        offered = "I could print the height while it grows:\n\n```\n10 cm\n20 cm\n```\n\nShall I?"

        (line, *_) = lines_of(Work().said(offered).asked("yes"), BriefPart.DOING)

        assert line == 'asked last: "yes" in answer to: "I could print the height while it grows: Shall I?"'

    def test_what_only_agrees_is_not_told_of_earlier_prompts(self) -> None:
        work = Work().asked("Graft the pear onto the quince").asked("yes").asked("go on").asked("Water the whole orchard twice")

        assert [line for line in lines_of(work, BriefPart.DOING) if "yes" in line or "go on" in line] == []

    def test_an_interruption_and_a_decision_are_reported(self) -> None:
        work = Work().decided("Which tree?\nAnswer: the pear").asked("Graft")
        work = work.decided("Which stock?\nAnswer: Quince\nNot chosen: Plum").interrupted()

        assert lines_of(work, BriefPart.DOING) == [
            'asked last: "Graft"; then answered "Quince Not chosen: Plum" to "Which stock?"; then interrupted the agent',
            'decided: "the pear" to "Which tree?"',
        ]


class TestNext:
    def test_the_open_items_of_the_agents_list_those_in_hand_first(self) -> None:
        listed = "todos:\n[x] Dig\n[ ] Prune\n[>] Water the quince\n[ ] Sweep\n[ ] Rest"

        assert lines_of(Work().called("TodoWrite", listed), BriefPart.NEXT) == [
            "open on the agent's list, 1 of 5 done: in hand: Water the quince; Prune; Sweep and 1 more"
        ]
        (line,) = (line for line in of(Work().called("TodoWrite", listed)).lines if line.part is BriefPart.NEXT)
        assert line.longer == ("open on the agent's list, 1 of 5 done: in hand: Water the quince; Prune; Sweep; Rest",)

    def test_the_open_list_comes_before_what_the_agent_was_at(self) -> None:
        work = Work().called("TodoWrite", "todos:\n[x] Dig\n[>] Water the quince").said("Now the watering:")

        assert [line.partition(":")[0] for line in lines_of(work, BriefPart.NEXT)] == [
            "open on the agent's list, 1 of 2 done",
            "the agent was at",
        ]

    def test_a_list_older_than_the_last_prompt_comes_after_what_the_agent_was_at(self) -> None:
        work = (
            Work().called("TodoWrite", "todos:\n[ ] Dig\n[>] Water").asked("Graft the pear first").said("It breaks — let me look.")
        )

        assert [line.partition(":")[0][:20] for line in lines_of(work, BriefPart.NEXT)] == [
            "the agent was at",
            "open on the agent's ",
        ]

    def test_a_message_may_announce_the_next_step_in_its_last_sentence(self) -> None:
        work = Work().asked("Graft").said("It builds. Now let me prune the quince, and add a stake.").ran("ls")
        asking = Work().asked("Graft").said("It builds. Let me know what to prune.")

        assert lines_of(work, BriefPart.NEXT) == [
            'the agent was at: "It builds. Now let me prune the quince, and add a stake."; since then looked with `ls`'
        ]
        assert lines_of(asking, BriefPart.NEXT) == ["the agent answered; it is your turn"]

    def test_a_message_in_the_middle_of_a_turn_says_what_the_agent_was_at(self) -> None:
        assert lines_of(Work().asked("Graft").said("The stock is too thin.").ran("ls"), BriefPart.NEXT) == [
            'the agent was at: "The stock is too thin."; since then looked with `ls`'
        ]

    def test_a_call_that_says_nothing_of_itself_is_named_by_its_tool(self) -> None:
        assert lines_of(Work().asked("Commit").called("Bash", ""), BriefPart.NEXT) == ["begun, and no result was seen: Bash"]

    def test_a_list_of_which_all_is_done_is_not_next(self) -> None:
        work = Work().called("TodoWrite", "todos:\n[x] Dig").said("Done.")

        assert lines_of(work, BriefPart.NEXT) == ["the agent answered; it is your turn"]

    def test_what_the_agent_announced_with_what_it_did_since(self) -> None:
        work = Work().asked("Graft").said("The stock is cut.\nNow graft the pear:").ran("make graft")

        assert lines_of(work, BriefPart.NEXT) == [
            'the agent was at: "The stock is cut. Now graft the pear:"; since then `make graft` went well'
        ]

    def test_what_was_announced_before_a_commit_is_done(self) -> None:
        work = Work().asked("Graft").said("Now commit:").committed("abc1234", "Graft").said("Grafted.")

        assert lines_of(work, BriefPart.NEXT) == ["the agent answered; it is your turn"]

    def test_a_call_without_a_result_was_begun(self) -> None:
        assert lines_of(Work().asked("Graft").called("WebSearch", "which stock"), BriefPart.NEXT) == [
            "begun, and no result was seen: WebSearch which stock"
        ]

    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("old_string: a\nreach = 2\nnew_string: a\nreach = 3", "Edit pear.py, `reach = 2` to `reach = 3`"),
            ("replace_all: true\nold_string: pear\nnew_string: quince", "Edit pear.py, all `pear` to `quince`"),
        ],
    )
    def test_of_an_edit_that_was_begun_the_change_is_said(self, text: str, shown: str) -> None:
        work = Work().asked("Graft").called("Edit", text, f"{HOME}/pear.py")
        (line,) = (line for line in of(work).lines if line.part is BriefPart.NEXT)

        assert line.text == "begun, and no result was seen: Edit pear.py"
        assert line.longer[0] == f"begun, and no result was seen: {shown}"

    def test_a_search_that_was_begun_is_named_by_what_it_looks_for(self) -> None:
        work = Work().asked("Graft").called("Grep", "pattern: graft|stake\noutput_mode: content")

        assert lines_of(work, BriefPart.NEXT) == ["begun, and no result was seen: Grep graft|stake"]

    def test_what_the_agent_looked_at_since_is_named_without_folders(self) -> None:
        work = Work().asked("Graft").said("Now let me see how the stake is tied.").read(f"{HOME}/src/stake.py")
        work = work.ran(f"grep -n tie {HOME}/src/rope.py").edited(f"{HOME}/src/rope.py")

        assert lines_of(work, BriefPart.NEXT) == [
            'the agent was at: "Now let me see how the stake is tied."; since then read stake.py,'
            " looked with `grep -n tie …/rope.py`, edited rope.py"
        ]

    def test_that_nothing_was_changed_yet_is_said_with_what_was_read(self) -> None:
        work = Work().asked("Tie the stake").read(f"{HOME}/src/rope.py").said("Now the stake:").read(f"{HOME}/src/stake.py")

        assert lines_of(work, BriefPart.NEXT) == [
            'the agent was at: "Now the stake:"; since then read stake.py; nothing is changed yet for this request,'
            " read before: rope.py"
        ]
        assert "nothing" not in lines_of(work.edited(f"{HOME}/src/rope.py"), BriefPart.NEXT)[0]

    def test_a_message_before_many_calls_no_longer_says_what_the_agent_is_at(self) -> None:
        work = Work().asked("Graft").said("Let me graft all of them:")
        for number in range(10):
            work.edited(f"{HOME}/tree{number}.py")

        assert lines_of(work, BriefPart.NEXT) == [
            'the agent had said, 10 calls before the end: "Let me graft all of them:"; since then edited tree7.py, tree8.py,'
            " tree9.py"
        ]

    def test_a_check_in_hand_that_went_well_since_is_said_to(self) -> None:
        work = Work().asked("Graft").called("TodoWrite", "todos:\n[x] Graft\n[>] Run the tests and lint")
        work = work.ran("pytest", "4 passed", tests="ok").ran("ruff check . --fix", "Fixed 2 files.")

        assert lines_of(work, BriefPart.NEXT)[0].endswith("in hand: Run the tests and lint")
        assert lines_of(work.ran("ruff check .", "All checks passed!"), BriefPart.NEXT)[0].endswith(
            "in hand: Run the tests and lint (`ruff check .` and `pytest` went well since)"
        )

    def test_once_all_that_was_announced_went_well_it_is_to_be_reported(self) -> None:
        work = Work().asked("Graft").edited(f"{HOME}/pear.py").said("Now run the tests:").ran("pytest", "4 passed", tests="ok")
        more = Work().asked("Graft").edited(f"{HOME}/pear.py").said("Now tests and lint:").ran("pytest", "4 passed", tests="ok")

        assert lines_of(work, BriefPart.NEXT)[0].endswith("`pytest` went well; what was done is then to be reported")
        assert lines_of(more, BriefPart.NEXT)[0].endswith("`pytest` went well")

    def test_the_steps_of_a_plan_that_name_a_file_not_changed_yet_are_left(self) -> None:
        steps = "".join(f"## {at}. Prune `{name}.py`\n\n{'Slowly and with care. ' * 20}\n\n" for at, name in enumerate("abcd", 1))
        steps += "## 5. No change of `e.py` is needed\n\nIt is fine.\n\n"
        work = Work().asked(f"# Plan: Prune the orchard\n\n{steps}").edited(f"{HOME}/a.py").edited(f"{HOME}/c.py")

        assert "left of the plan, by the files changed so far: (2) Prune b.py" in lines_of(work, BriefPart.NEXT)[-1]
        assert "(4) Prune d.py" in lines_of(work, BriefPart.NEXT)[-1]
        assert "(5)" not in lines_of(work, BriefPart.NEXT)[-1]

    def test_a_call_before_the_last_prompt_is_not_what_was_begun(self) -> None:
        work = Work().asked("Graft").called("new_task", "message: prune first").asked("It is pruned. Now water it.")

        assert lines_of(work, BriefPart.NEXT) == ["nothing was done yet for what was asked last"]

    def test_a_prompt_at_the_end_is_what_is_next(self) -> None:
        work = Work().asked("Graft").said("Done.").asked("Now water it")

        assert lines_of(work, BriefPart.NEXT) == ["nothing was done yet for what was asked last"]

    def test_what_was_left_on_the_way_says_what_was_done_last(self) -> None:
        assert lines_of(Work().asked("commit").ran("git status"), BriefPart.NEXT) == [
            "left before an answer to what was asked last; done last: looked with `git status`"
        ]
        assert lines_of(Work().ran("git status"), BriefPart.NEXT) == ["done last: looked with `git status`"]

    def test_what_a_look_found_is_said_where_there_is_room(self) -> None:
        work = Work().asked("Which row is dry?").said("Let me see.").ran("grep dry rows.txt", "row 7: dry\n" * 40 + "row 9: dry")

        (line,) = [line for line in of(work).lines if line.part is BriefPart.NEXT]

        assert line.text == 'the agent was at: "Let me see."; since then looked with `grep dry rows.txt`'
        (found,) = line.longer
        assert (
            found.startswith(f'{line.text} → "row 7: dry') and found.endswith('row 9: dry"') and len(found) < len(line.text) + 180
        )

    def test_a_change_that_failed_and_what_another_agent_answered_are_among_what_was_done(self) -> None:
        work = (
            Work()
            .asked("Graft the pear")
            .said("Now I graft:")
            .called("Task", "description: Cut the stock")
            .answered("The stock is cut.")
        )

        assert lines_of(work, BriefPart.NEXT) == [
            'the agent was at: "Now I graft:"; since then Task Cut the stock came back: "The stock is cut."'
        ]
        failed = (
            Work().asked("Graft").said("Now I graft:").refused(f"{HOME}/pear.py", "String to replace not found\nin file", "failed")
        )
        assert lines_of(failed, BriefPart.NEXT) == [
            'the agent was at: "Now I graft:"; since then Edit of pear.py failed: String to replace not found'
        ]

    def test_what_the_agent_found_since_the_last_check_that_went_well(self) -> None:
        found = "The roots of the pear are rotten, since the pump leaks into row two. Let me look at the pump."
        work = (
            Work()
            .asked("Why is it dry?")
            .said("The quince in row one is quite well, as it seems.")
            .ran("pytest", "4 passed", tests="ok")
        )
        work = work.said(found).ran("ls").said("Now the pump:").ran("cat pump.txt")

        assert lines_of(work, BriefPart.NEXT)[1:] == [
            'the agent had said before that: "The roots of the pear are rotten, since the pump leaks into row two."'
        ]

    def test_calls_begun_together_are_counted(self) -> None:
        work = Work().asked("Look").said("Both at once.").called("Bash", "").called("Grep", "pattern: dry")

        assert lines_of(work, BriefPart.NEXT)[-1] == "begun, and no result was seen: Grep dry and 1 more"

    def test_what_the_agent_lists_as_left_to_do(self) -> None:
        said = "Grafted.\n\n## Next steps\n\n1. **Water** it\n2. Prune the plum\n\nAll else is well."

        assert lines_of(Work().said(said), BriefPart.NEXT) == ["left to do, as the agent said: Water it; Prune the plum"]


class TestBranch:
    def test_what_git_named_last_goes_before_what_the_transcript_says(self) -> None:
        work = Work().ran("git checkout -b graft/pear", "Switched to a new branch 'graft/pear'")

        assert of(work).branch == "graft/pear"
        assert of(work.ran("git commit -m x", "[graft/plum abc1234] x")).branch == "graft/plum"

    def test_after_a_long_silence_the_transcript_knows_better(self) -> None:
        work = Work().ran("git switch graft/pear", "Switched to branch 'graft/pear'").later(timedelta(hours=9)).asked("go on")

        assert of(work).branch == SESSION.branch


class TestChanged:
    def test_files_are_reported_by_their_last_action_from_where_the_session_ran(self) -> None:
        work = Work().edited(f"{HOME}/src/a.py", "created").edited("/etc/hosts").edited(f"{HOME}/src/a.py", "deleted")

        assert lines_of(work, BriefPart.CHANGED) == ["deleted: src/a.py", "edited: hosts"]

    def test_a_file_that_was_only_read_has_not_changed(self) -> None:
        assert lines_of(Work().edited(f"{HOME}/a.py", "read"), BriefPart.CHANGED) == []

    def test_a_commit_parts_what_changed_before_from_what_changed_since(self) -> None:
        work = Work().edited(f"{HOME}/a.py").committed("abc1234", "Graft the pear").edited(f"{HOME}/b.py")

        assert lines_of(work, BriefPart.CHANGED) == [
            "edited since the last commit: b.py",
            "committed last: Graft the pear (abc1234)",
            "changed up to that commit: a.py",
        ]

    @pytest.mark.parametrize(
        ("output", "status", "hash"),
        [
            ("[main abc1234] Graft the pear\nerror: failed to push some refs", "failed", "abc1234"),
            ("[detached HEAD abc1234] Graft the pear", "ok", "abc1234"),
            ("[main (root-commit) abc1234] Graft the pear", "ok", "abc1234"),
        ],
    )
    def test_a_commit_is_one_wherever_and_whatever_came_of_the_push(self, output: str, status: Status, hash: str) -> None:
        work = Work().edited(f"{HOME}/a.py").ran("git commit -am 'Graft the pear' && git push", output, status)

        assert f"committed last: Graft the pear ({hash})" in lines_of(work, BriefPart.CHANGED)

    def test_what_only_looks_like_a_commit_is_none(self) -> None:
        work = Work().edited(f"{HOME}/a.py").ran("cat notes.txt", "[main abc1234] Graft the pear")

        assert lines_of(work, BriefPart.CHANGED) == ["edited: a.py"]

    def test_of_many_files_a_few_are_named(self) -> None:
        work = Work()
        for number in range(9):
            work.edited(f"{HOME}/f{number}.py")

        assert lines_of(work, BriefPart.CHANGED) == ["edited: f8.py, f7.py, f6.py, f5.py and 5 more"]
        assert len(of(work).files) == 9


class TestFailed:
    def test_what_failed_is_reported_with_its_signature(self) -> None:
        work = Work().ran("make check", "src/pear.py:3: error: Name 'quince' is not defined", "failed")

        assert lines_of(work, BriefPart.FAILED) == ["`make check` failed: src/pear.py:3: error: Name 'quince' is not defined"]

    @pytest.mark.parametrize("passed", [" 12 pass\n 0 fail", "=== 12 passed in 0.3s ===", "Tests:  12 passed, 12 total"])
    def test_what_passing_tests_print_is_not_the_failure_of_what_comes_after_them(self, passed: str) -> None:
        said = f"error: a graft that must fail\n{passed}\nsrc/pear.ts(5,3): error TS18046: 'stock' is of type 'unknown'."

        (failed,) = lines_of(Work().ran("git commit -m Graft", said, "failed"), BriefPart.FAILED)

        assert "TS18046" in failed and "must fail" not in failed

    def test_of_many_failures_the_first_is_told(self) -> None:
        work = Work().ran(
            "make check", "".join(f"error: no graft for {tree}\n" for tree in ("pear", "plum", "fig", "elm")), "failed"
        )

        assert lines_of(work, BriefPart.FAILED) == [
            "`make check` failed: error: no graft for pear; error: no graft for plum and 2 more"
        ]

    @pytest.mark.parametrize(("later", "status", "open_still"), [("npm test", "ok", 0), ("npm test", "failed", 1), ("ls", "ok", 1)])
    def test_a_failed_wrapper_is_forgotten_once_the_command_was_run_without_it(
        self, later: str, status: Status, open_still: int
    ) -> None:
        work = Work().ran("trim npm test", "error: unrecognized subcommand 'npm'", "failed").ran(later, "error: 2 grafts", status)

        failed = lines_of(work, BriefPart.FAILED)

        assert len(failed) == open_still
        assert later == "ls" or not any("trim" in line for line in failed)

    def test_what_went_well_afterwards_is_not_told(self) -> None:
        work = Work().ran("make check", "error: no such graft", "failed").ran("cd src && make check 2>&1 | tail -3")

        assert lines_of(work, BriefPart.FAILED) == []

    @pytest.mark.parametrize(
        ("command", "output"),
        [
            ("make check | wc -l", "1047"),
            ("make check 2>&1 | grep -E 'warning|error' | head -20", ""),
            ("make check 2>&1 | head -40", "vet: orchard/pear.go:26:34: not enough arguments in call to Graft"),
            ("make check 2>&1 | tail -40", "mise ERROR error parsing config file: mise.toml"),
            ("make check; echo exit=$?", "exit=2"),
            ("make check || echo FAILED", "FAILED"),
            ("make check --version", "1.2"),
        ],
    )
    def test_a_line_whose_end_says_nothing_of_the_check_makes_up_for_nothing(self, command: str, output: str) -> None:
        work = Work().ran("make check", "error: no such graft", "failed").edited(f"{HOME}/a.py").ran(command, output)

        assert lines_of(work, BriefPart.FAILED) == [
            "`make check` failed: error: no such graft; unverified: a.py changed since, run it again"
        ]

    @pytest.mark.parametrize("output", ["all is well\nexit=0", "PASSED: 10, FAILED: 0", "0 FAILED", "status: 200", ""])
    def test_a_line_that_shows_no_failure_makes_up_for_one(self, output: str) -> None:
        work = Work().ran("make check", "error: no such graft", "failed").ran("make check; echo exit=$?", output)

        assert lines_of(work, BriefPart.FAILED) == []

    @pytest.mark.parametrize(
        ("failed", "tests", "later"),
        [
            ("make test && make lint", "failed", "make fmt && make lint"),
            ("make fmt && make lint", "", "make fmt"),
            ("make lint && make check", "", "make lint"),
            ("go build ./... && go vet ./...", "", "go build ./..."),
            ("git commit -am x && git push", "", "git commit -am y"),
            ("python deploy.py", "", "python -c 'print(1)'"),
            ("python deploy.py", "", "python prune.py"),
        ],
    )
    def test_a_part_of_a_line_does_not_make_up_for_another(self, failed: str, tests: Status, later: str) -> None:
        work = Work().ran(failed, "error: no such graft", "failed", tests=tests).ran(later)

        (line,) = lines_of(work, BriefPart.FAILED)
        assert line.startswith(f"`{failed}` failed: error: no such graft")

    @pytest.mark.parametrize("later", [["make test"], ["make test", "make lint"], ["make lint && make test"]])
    def test_tests_that_failed_in_a_line_are_made_up_for_by_tests(self, later: list[str]) -> None:
        work = Work().ran("go build ./... && make test && make lint", "1 failed", "failed", tests="failed")
        for command in later:
            work.ran(command, "4 passed", tests="ok")

        assert lines_of(work, BriefPart.FAILED) == []

    @pytest.mark.parametrize(
        ("said", "later", "left"),
        [
            ("pear.go:3:2: unused (errcheck)\n1 issues:\nok  \torchard\t0.1s", "go test ./...", 1),
            ("pear.go:3:2: unused (errcheck)\n1 issues:\nok  \torchard\t0.1s", "golangci-lint run; go test ./...", 0),
            ("FAIL\torchard\t0.1s", "go test ./...", 0),
        ],
    )
    def test_tests_do_not_make_up_for_a_checker_that_failed_beside_them(self, said: str, later: str, left: int) -> None:
        work = Work().ran("go test ./... | tail -3 && golangci-lint run | tail -3", said, tests="failed")

        assert len(lines_of(work.ran(later, "ok  \torchard\t0.1s", tests="ok"), BriefPart.FAILED)) == left

    def test_what_was_run_together_may_go_well_one_by_one(self) -> None:
        work = Work().ran("make lint && make check", "error: no such graft", "failed").ran("make check").ran("make lint")

        assert lines_of(work, BriefPart.FAILED) == []

    def test_a_failing_test_under_a_pipe_that_went_well_is_a_failure(self) -> None:
        assert len(lines_of(Work().ran("pytest | tail -3", "1 failed, 2 passed", tests="failed"), BriefPart.FAILED)) == 1

    def test_a_part_that_passes_does_not_make_up_for_the_whole(self) -> None:
        work = Work().ran("pytest", "1 failed", tests="failed").ran("pytest tests/test_pear.py", "1 passed", tests="ok")

        (line,) = lines_of(work, BriefPart.FAILED)

        assert line.endswith("(only `pytest tests/test_pear.py` has gone well since)")

    @pytest.mark.parametrize("later", ["pytest", "pytest tests", "pytest tests/test_pear.py", "pytest ./tests/", f"pytest {HOME}"])
    def test_as_much_or_more_makes_up_for_it(self, later: str) -> None:
        work = Work().ran("pytest tests/test_pear.py", "1 failed", tests="failed").ran(later, "9 passed", tests="ok")

        assert lines_of(work, BriefPart.FAILED) == []

    def test_the_same_failure_again_is_reported_once(self) -> None:
        work = Work().ran("pytest", "1 failed", tests="failed").ran("pytest -q", "1 failed", tests="failed")

        assert len(lines_of(work, BriefPart.FAILED)) == 1

    @pytest.mark.parametrize("command", ["grep -rn todo src", "ls nowhere", "git status", "test -f x", ""])
    def test_what_only_looks_has_not_failed(self, command: str) -> None:
        assert lines_of(Work().ran(command, "no", "failed"), BriefPart.FAILED) == []

    @pytest.mark.parametrize("commands", [("pytest", "pytest tests/test_pear.py"), ("pytest tests/test_pear.py", "pytest")])
    def test_the_whole_and_its_part_are_one_failure(self, commands: tuple[str, str]) -> None:
        work = Work()
        for command in commands:
            work.ran(command, "1 failed", tests="failed")

        assert len(lines_of(work, BriefPart.FAILED)) == 1

    def test_an_odd_command_that_was_given_up_long_ago_is_not_reported_but_a_check_is(self) -> None:
        work = Work().ran("deploy pear", "error: the gate is shut", "failed").ran("make check", "error: dry soil", "failed")
        for number in range(40):
            work.ran(f"water tree{number}")

        assert lines_of(work, BriefPart.FAILED) == ["`make check` failed: error: dry soil"]


class TestWider:
    """What a run of everything says of one of a part."""

    FAILED = "--- FAIL: TestPear (0.00s)\nFAIL"

    @pytest.mark.parametrize("wider", ["go test ./...", "make test", "mise run lint && mise run test"])
    def test_it_makes_up_for_the_part(self, wider: str) -> None:
        work = (
            Work()
            .ran("go test ./pear -run TestPear", self.FAILED, "failed", tests="failed")
            .ran(wider, "ok, 9 packages", tests="ok")
        )

        assert lines_of(work, BriefPart.FAILED) == []

    def test_also_for_what_did_not_compile(self) -> None:
        work = Work().ran("go build ./pear", "pear/graft.go:3:5: undefined: quince", "failed")

        assert len(lines_of(work, BriefPart.FAILED)) == 1
        assert lines_of(work.ran("make test", "ok, 9 packages", tests="ok"), BriefPart.FAILED) == []

    @pytest.mark.parametrize("other", ["npm test", "go test ./plum", "go test ./pear -run TestPlum", "make lint"])
    def test_anything_else_does_not(self, other: str) -> None:
        work = (
            Work()
            .ran("go test ./pear -run TestPear", self.FAILED, "failed", tests="failed")
            .ran(other, "ok, 9 packages", tests="ok")
        )

        assert len(lines_of(work, BriefPart.FAILED)) == 1

    def test_lint_is_not_tested(self) -> None:
        work = Work().ran("golangci-lint run ./pear", "pear/graft.go:3:5: unused (unused)", "failed")

        assert len(lines_of(work.ran("make test", "ok, 9 packages", tests="ok"), BriefPart.FAILED)) == 1

    def test_a_failure_is_quoted_as_it_was_printed(self) -> None:
        work = Work().ran("make check", "Error: connect ECONNREFUSED 127.0.0.1:5432", "failed")

        assert lines_of(work, BriefPart.FAILED) == ["`make check` failed: Error: connect ECONNREFUSED 127.0.0.1:5432"]


class TestVerify:
    def test_a_check_that_is_older_than_a_change_is_to_be_run_again(self) -> None:
        work = Work().ran("make lint").edited(f"{HOME}/a.py").edited(f"{HOME}/README.md")

        assert lines_of(work, BriefPart.VERIFY) == [
            "run `make lint`: it went well at 03-01 09:00, but not seen since these changed: a.py"
        ]

    def test_nothing_is_to_be_verified_where_everything_was(self) -> None:
        assert lines_of(Work().edited(f"{HOME}/a.py").ran("pytest", "4 passed", tests="ok"), BriefPart.VERIFY) == []

    def test_a_linter_that_reported_its_version_has_checked_nothing(self) -> None:
        work = Work().edited(f"{HOME}/a.py").ran("golangci-lint version", "2.8.0")

        assert lines_of(work, BriefPart.VERIFY) == ["nothing has been run that tests: a.py"]

    def test_without_any_check_that_is_said(self) -> None:
        assert lines_of(Work().edited(f"{HOME}/a.py").ran("ls"), BriefPart.VERIFY) == ["nothing has been run that tests: a.py"]

    def test_prose_needs_no_test(self) -> None:
        assert lines_of(Work().edited(f"{HOME}/README.md"), BriefPart.VERIFY) == []

    def test_what_was_changed_since_it_failed_is_unverified(self) -> None:
        work = Work().edited(f"{HOME}/a.py").ran("make lint", "error: no", "failed")
        assert lines_of(work, BriefPart.FAILED) == ["`make lint` failed: error: no"]

        work.edited(f"{HOME}/a.py")

        assert lines_of(work, BriefPart.FAILED) == ["`make lint` failed: error: no; unverified: a.py changed since, run it again"]
        assert lines_of(work, BriefPart.VERIFY) == []


class TestStable:
    def test_without_a_stable_point_that_is_said(self) -> None:
        work = Work().edited(f"{HOME}/a.py").ran("pytest", "1 failed", tests="failed")

        assert lines_of(work, BriefPart.STABLE) == ["no test or build was seen to pass"]
        assert lines_of(Work().edited(f"{HOME}/a.py").ran("ls"), BriefPart.STABLE) == []

    @pytest.mark.parametrize(
        ("said", "stable"), [("", True), ("(Bash completed with no output)", True), ("graft/pear.go:3:1: undefined: stake", False)]
    )
    def test_a_build_with_a_look_at_its_types_is_a_stable_point(self, said: str, stable: bool) -> None:
        work = Work().edited(f"{HOME}/a.go").ran("go build ./... && go vet ./graft 2>&1 | head -30", said)

        assert (of(work).stable is not None) is stable

    def test_the_last_passing_tests_with_the_files_as_they_were_then(self) -> None:
        work = Work().edited(f"{HOME}/a.py").committed("abc1234", "Graft").ran("pytest", "4 passed", tests="ok")
        then = work.events[2]
        work.edited(f"{HOME}/a.py").edited(f"{HOME}/b.py").ran("pytest", "1 failed", tests="failed")

        stable = of(work).stable

        assert stable is not None
        assert [(file.path, file.evidence) for file in stable.files] == [("a.py", then.reference)]
        assert lines_of(work, BriefPart.STABLE) == [
            "2026-03-01 09:00, at commit abc1234: `pytest` passed (4 passed), since then b.py, a.py"
        ]

    def test_a_run_that_reported_no_tests_is_no_stable_point(self) -> None:
        assert of(Work().ran("make", "all is well")).stable is None

    @pytest.mark.parametrize(
        "command",
        [
            *("ruff check .", "npx tsc --noEmit", "cargo build", "npm run lint", "mypy . && eslint src"),
            *("mise run fmt && mise run lint", "mise run lint && go build -o graft . && ./graft explain"),
        ],
    )
    def test_what_only_checks_the_text_is_no_stable_point(self, command: str) -> None:
        work = Work().edited(f"{HOME}/a.py").ran("pytest", "4 passed", tests="ok").ran(command, "All checks passed!", tests="ok")

        stable = of(work).stable

        assert stable is not None
        assert stable.command == "pytest"
        alone = of(Work().ran(command, "All checks passed!", tests="ok")).stable
        assert alone is None or (alone.tests, command) == (False, "cargo build")

    def test_where_no_test_passed_a_build_is_one_and_says_so(self) -> None:
        (line,) = lines_of(Work().ran("go build ./..."), BriefPart.STABLE)

        assert "`go build ./...` built; no test was seen to pass" in line

    def test_some_of_the_tests_are_reported_as_a_part_of_them(self) -> None:
        all_of_them = Work().ran("pytest", "9 passed", tests="ok")
        changed = all_of_them.edited(f"{HOME}/a.py").ran("pytest -k pear", "1 passed", tests="ok")

        (line,) = lines_of(changed, BriefPart.STABLE)

        assert "`pytest -k pear` passed (1 passed), a part of the tests, nothing since; all of them last: `pytest` at 03-01" in line

    def test_all_of_the_tests_go_before_some_of_them_where_nothing_changed_in_between(self) -> None:
        stable = of(Work().ran("pytest", "9 passed", tests="ok").ran("pytest tests/test_pear.py", "1 passed", tests="ok")).stable

        assert stable is not None
        assert (stable.command, stable.narrow) == ("pytest", False)

    @pytest.mark.parametrize("command", ["go test -bench=. ./...", "cargo bench", "npm run bench"])
    def test_a_measurement_is_none(self, command: str) -> None:
        assert of(Work().ran(command, "ok, 3 packages", tests="ok")).stable is None

    @pytest.mark.parametrize(
        ("said", "some"),
        [
            ("===== 5 deselected in 0.01s =====", False),
            ("3 skipped, 2 warnings in 0.10s", False),
            ("PASS\nok  \torchard/pear\t0.1s [no tests to run]", False),
            ("test result: ok. 0 passed; 0 failed; 0 ignored; 9 filtered out", False),
            ("===== 1 passed, 4 deselected in 0.01s =====", True),
            ("ok  \torchard/pear\t0.1s [no tests to run]\nok  \torchard/plum\t0.2s", True),
            ("test result: ok. 0 passed; 0 failed\ntest result: ok. 3 passed; 0 failed", True),
            ("DONE 0 tests in 0.1s", False),
            ("# tests 0\n# pass 0\n# fail 0", False),
            ("# tests 3\n# pass 3\n# fail 0", True),
            (" 0 pass\n 0 fail".strip(), False),
            ("0 fail", True),
            ("0 passing (1ms)", False),
            ("0 examples, 0 failures", False),
            ("Ran 0 tests in 0.000s\nOK", False),
            ("OK", True),
            ("No tests executed!", False),
            ("Executed 0 tests, with 0 failures", False),
            ("Executed 0 tests, with 0 failures\n✔ Test run with 3 tests passed after 0.1 seconds.", True),
            ("3 files would be left unchanged.", False),
            ("All matched files use Prettier code style!", False),
            ("PASS", True),
        ],
    )
    def test_where_no_test_was_run_is_no_stable_point(self, said: str, some: bool) -> None:
        assert (of(Work().ran("make test | tail -5", said, tests="ok")).stable is not None) is some

    def test_tests_that_were_cut_off_are_no_stable_point(self) -> None:
        shown = "\n".join(f"ok  \torchard/p{number}\t0.1s" for number in range(3))

        assert of(Work().ran("go test ./... | head -3", shown, tests="ok")).stable is None
        assert of(Work().ran("go test ./... | head -4", shown, tests="ok")).stable is not None

    def test_what_failed_even_then_is_said(self) -> None:
        work = Work().ran("make lint", "error: no", "failed").ran("pytest", "4 passed", tests="ok")

        assert lines_of(work, BriefPart.STABLE)[0].endswith("; `make lint` still failed")


class TestOpen:
    def test_the_question_an_agent_ends_with(self) -> None:
        work = Work().asked("Graft").said("It holds.\n\n- **Done.** Shall I water it, too?")

        assert lines_of(work, BriefPart.OPEN) == ['the agent asks: "Shall I water it, too?"']

    def test_a_question_that_was_answered_is_not_open(self) -> None:
        assert lines_of(Work().said("Shall I water it?").asked("yes").said("Watered."), BriefPart.OPEN) == []

    def test_a_prompt_without_an_answer_is_not_said_twice(self) -> None:
        assert lines_of(Work().asked("Why is it dry?"), BriefPart.OPEN) == []
        assert lines_of(Work().asked("Why is it dry?").ran("look around"), BriefPart.OPEN) == []

    def test_a_choice_that_was_passed_over_is_not_open(self) -> None:
        work = Work().asked("Graft").called("AskUserQuestion", "Which stock?").asked("never mind").said("Done.")

        assert lines_of(work, BriefPart.OPEN) == []

    def test_a_choice_that_was_never_made(self) -> None:
        work = Work().asked("Graft").called("AskUserQuestion", "Which stock?").said("I wait.")

        assert lines_of(work, BriefPart.OPEN) == ["the agent asked, and had no answer: Which stock?"]


def test_the_agents_recap_names_the_task_until_many_prompts_came_after_it() -> None:
    work = Work().asked("Graft the quince onto hawthorn, and stake it").recapped("Grafting the quince; the stake is still missing.")

    assert 'the agent\'s recap: "Grafting the quince; the stake is still missing."' in lines_of(
        work.asked("commit that").ran("git commit -m Graft"), BriefPart.DOING
    )
    for prompt in ("now the pear", "prune it first", "and water it", "thanks"):
        work.asked(prompt).said("Done.")
    assert not any("recap" in line for line in lines_of(work, BriefPart.DOING))


def test_what_sub_agents_did_counts_but_not_what_they_were_asked() -> None:
    own = Work().asked("Graft the pear").ran("pytest", "4 passed", tests="ok")
    helper = Work(session(7, parent=SESSION.id), begins=timedelta(minutes=1)).asked("You are a helper").edited(f"{HOME}/b.py")

    result = brief(own.session, own.events, [helper.events])

    assert result is not None
    assert [line.text for line in result.lines if line.part is BriefPart.VERIFY] == [
        "run `pytest` again: files changed since the last stable point"
    ]
    assert not any("helper" in line.text for line in result.lines)


@given(st.lists(st.integers(-600, 600), max_size=12), st.lists(st.integers(-600, 600), max_size=12))
def test_put_together_each_keeps_its_own_order(own: list[int], other: list[int]) -> None:
    first = [replace(event(number), at=START + timedelta(seconds=at)) for number, at in enumerate(own)]
    second = [replace(event(100 + number), at=START + timedelta(seconds=at)) for number, at in enumerate(other)]

    merged = merged_by_time(first, second)

    assert [each for each in merged if each in first] == first
    assert [each for each in merged if each in second] == second


@given(st.integers(0, 400))
def test_what_is_reported_fits_and_the_weightiest_of_each_part_goes_first(room: int) -> None:
    chosen = of(RAN)

    kept = fitted(chosen.lines, tokens=room, cost=lambda line: len(line.text))

    assert sum(len(line.text) for line in kept) <= room
    assert [line.part for line in chosen.lines if any(_is_of(line, each) for each in kept)] == [line.part for line in kept]


def _is_of(line: BriefLine, shown: BriefLine) -> bool:
    return (line.part, line.evidence) == (shown.part, shown.evidence) and line.text.startswith(shown.text)


def test_of_a_long_plan_the_goal_and_the_steps_are_named_in_as_many_words_as_there_is_room_for() -> None:
    steps = "".join(f"\n\n## {number}. Water row {number}\n\n{'soil and rain ' * 24}" for number in range(1, 4))
    plan = f"# Plan: water the orchard\n\n## Context\n\nThe pears are dry since the pump broke.{steps}"
    chosen = of(Work().asked(plan).edited(f"{HOME}/a.py"))

    (wide, *_), (narrow, *_) = (fitted(chosen.lines, tokens=room, cost=lambda line: len(line.text)) for room in (2_000, 400))

    assert narrow.text.startswith(
        'asked last: "Plan: water the orchard": The pears are dry since the pump broke. (1) Water row 1: soil'
    )
    assert "(3) Water row 3: soil" in narrow.text
    assert len(narrow.text) < 400 < len(wide.text)
    assert wide.evidence == narrow.evidence


def test_how_a_plan_is_to_be_verified_is_said_until_it_was() -> None:
    steps = f"## 1. Mend the pump\n\n{'Slowly. ' * 40}\n\n## Verification\n\n1. `make test`\n2. Look at the pears"
    plan = f"# Water the orchard\n\n{steps}"
    work = Work().asked(plan).edited(f"{HOME}/a.py")

    assert lines_of(work, BriefPart.VERIFY)[-1] == "as the plan says: make test; Look at the pears"
    work = work.ran("make test", "4 passed", tests="ok")
    assert lines_of(work, BriefPart.VERIFY)[-1] == "as the plan says: Look at the pears"


def test_a_prompt_that_says_little_is_given_with_the_one_before_it() -> None:
    work = Work().asked("Graft the pear onto the quince, and stake it against the wind").asked("continue").edited(f"{HOME}/a.py")
    work = work.ran("make lint", "a.py:3:1: unused", "failed").said("Now the next row of trees:").called("Bash", "")

    kept = fitted(of(work).lines, tokens=230, cost=lambda line: len(line.text))

    assert [line.text.partition(":")[0] for line in kept if line.part is BriefPart.DOING] == ["asked last", "asked first"]


def test_a_failed_test_goes_before_earlier_prompts_and_before_a_failed_lint() -> None:
    work = (
        Work()
        .asked("Water the first row of the orchard")
        .asked("Water the second row of the orchard")
        .asked("Water the third row of it")
    )
    work = work.ran("make test", "1 failed", tests="failed").ran("make lint", "a.py:3:1: unused", "failed")
    chosen = of(work)
    cost = {line: len(line.text) for line in chosen.lines}
    first_of_each = {line.part: cost[line] for line in reversed(chosen.lines)}

    kept = fitted(chosen.lines, tokens=sum(first_of_each.values()) + 60, cost=lambda line: len(line.text))

    assert [line.text.split("`")[1] for line in kept if line.part is BriefPart.FAILED] == ["make test", "make lint"]
    assert not any(line.text.startswith("asked first") for line in kept)


def test_a_sentence_that_answers_is_shown_with_what_it_answers() -> None:
    work = (
        Work()
        .said("Shall I graft the pear onto the quince?")
        .asked("yes, but use the old stock by the wall if the new one is too thin")
    )

    (line, *_) = lines_of(work, BriefPart.DOING)

    assert line.endswith('in answer to: "Shall I graft the pear onto the quince?"')


def test_a_failure_at_which_the_text_is_cut_is_not_quoted_in_halves() -> None:
    printed = "Found 1 error.\n" + f"{'ok ' * 30}\n" * 43
    said = f"{printed}{'.' * (3_975 - len(printed))}\nerror: script lint exited with code 1"

    (line,) = lines_of(Work().ran("make lint", said, "failed"), BriefPart.FAILED)

    assert line.startswith("`make lint` failed: Found 1 error.")


def test_a_prompt_that_interrupts_answers_what_was_said_before_that_turn() -> None:
    work = (
        Work().said("Shall I prune it, or graft it?").asked("prune").said("The shears are blunt.").ran("ls").asked("or no, graft")
    )

    (line, *_) = lines_of(work, BriefPart.DOING)

    assert line == 'asked last: "or no, graft" in answer to: "Shall I prune it, or graft it?"'


def test_what_the_agent_announced_is_not_what_a_prompt_answers() -> None:
    work = Work().asked("Graft the pear onto the quince").said("Let me cut the stock first.").asked("continue")

    (line, *_) = lines_of(work, BriefPart.DOING)

    assert line == 'asked last: "continue"'


_TEXT = st.text(st.sampled_from('ab?/. \n`"[]é🍐\x1b'), max_size=60)


@given(st.lists(st.tuples(st.sampled_from(EventType), _TEXT, st.sampled_from(STATUSES), _TEXT), max_size=30))
def test_whatever_was_reported_a_brief_can_be_made_of_it(rows: list[tuple[EventType, str, Status, str]]) -> None:
    events = [
        replace(event(number, text, type, command=command, status=status), path=command, call=text[:2])
        for number, (type, text, status, command) in enumerate(rows)
    ]

    result = brief(SESSION, events)

    assert (result is None) == (not events)
    assert result is None or all(line.evidence and len(line.text) < 1_500 for line in result.lines)


def test_a_failure_is_looked_after_no_longer_than_until_it_was_made_up_for() -> None:
    compared = 0

    class Purposes(frozenset[str]):
        def __and__(self, other: object) -> "frozenset[str]":
            nonlocal compared
            compared += 1
            return frozenset(self).intersection(other if isinstance(other, frozenset) else ())

    work = Work()
    for _ in range(200):
        work = work.ran("pytest", "1 failed in 0.1s", "failed", tests="failed").ran("pytest", "4 passed in 0.1s", tests="ok")
    done = [replace(run, purposes=Purposes(run.purposes)) for run in runs(work.events)]

    assert open_failures(done) == []
    assert compared == 200


class TestAnswered:
    def test_the_offer_below_a_heading_that_asks_is_shown_whole(self) -> None:
        lines = "The pump is old.\n" * 60
        offered = f"It is slow.\n\n{lines}\n\n## Shall I mend it?\n\n- New seals\n- Old pipes\n\nIt takes an hour."

        (line, *_) = lines_of(Work().said(offered).asked("yes, do it"), BriefPart.DOING)

        assert line == 'asked last: "yes, do it" in answer to: "Shall I mend it? New seals Old pipes It takes an hour."'

    def test_of_a_long_message_its_beginning_and_its_question_are_shown(self) -> None:
        offered = f"The seals are worn, so the pump leaks.\n\n{'It drips. ' * 120}\n\n{'Slowly. ' * 80}Shall I replace both?"

        (line, *_) = lines_of(Work().said(offered).asked("yes"), BriefPart.DOING)

        assert 'in answer to: "The seals are worn, so the pump leaks. … Slowly.' in line
        assert line.endswith('Shall I replace both?"')

    def test_a_remark_is_shown_with_the_lines_it_is_about(self) -> None:
        said = f"All is done.\n\n- The gates are painted{' green' * 60}\n- The northern valve closes in winter\n\n{'Rest. ' * 60}"

        (line, *_) = lines_of(Work().said(said).asked("the northern valve is not what I meant"), BriefPart.DOING)

        assert 'in answer to: "The northern valve closes in winter Rest.' in line

    def test_the_prompt_before_goes_before_a_long_paste(self) -> None:
        work = Work().asked("Water the pears").asked(f"The pump logged this: {'tick ' * 300}").asked("Now mend both of its seals")

        (_, second, *_) = lines_of(work.asked(f"Then paint the gates{' and the doors' * 20}"), BriefPart.DOING)

        assert second == 'asked before: "Now mend both of its seals"'

    def test_the_prompt_before_goes_before_an_old_task_and_one_about_something_else_is_left_out(self) -> None:
        work = Work().asked("Please review this branch carefully").asked(f"The pump logged this: {'tick ' * 300}")
        work = work.asked("Can we paint them all?").asked("Do the gates need paint?").asked("And the northern one?")
        work = work.said("Shall I paint the gates?").asked("yes")

        assert [line.partition(":")[0] + line[line.index('"') :][:12] for line in lines_of(work, BriefPart.DOING)[1:]] == [
            'asked before"And the nor',
            'asked before"The pump lo',
            'asked before"Do the gate',
        ]


def test_a_first_line_that_does_not_fit_is_shown_without_its_last_clauses() -> None:
    work = Work().asked("Graft it").edited(f"{HOME}/a.py").ran("pytest", "4 passed", tests="ok").ran("ruff check .")
    stable = next(line for line in of(work).lines if line.part is BriefPart.STABLE)
    only = replace(of(work), lines=(stable,))

    (kept,) = fitted(only.lines, tokens=len(stable.text) - 1, cost=lambda line: len(line.text))

    assert kept.text == "2026-03-01 09:00: `pytest` passed (4 passed), nothing since; a.py changed by then"


def test_an_approach_that_was_agreed_to_is_given_by_its_steps() -> None:
    steps = "1. Move the ties to the rope\n2. Keep the stake where it is\n3. Let the gate use both"
    why = "It makes sense because the rope is lighter than the stake, and nothing else hangs on it. " * 6
    work = Work().asked("Tie it").said(f"The stake holds all ties today.\n\n{steps}\n\n{why}\n\nWant me to do so?").asked("yes")

    assert "(1) Move the ties to the rope; (2) Keep the stake where it is" in lines_of(work, BriefPart.DOING)[0]


def test_the_approved_plan_goes_before_more_of_the_last_prompt() -> None:
    steps = "".join(f"## {at}. Prune row {at}\n\n{'Slowly. ' * 40}\n\n" for at in (1, 2, 3))
    work = Work().decided(f"# Plan: Prune the orchard\n\nThe goal is to let light in.\n\n{steps}")
    work.events[-1] = replace(work.events[-1], tool=PLANNING)
    work = work.said("Done, all rows are pruned.").asked(f"not there but below, {'as I said before, ' * 40}")
    kept = fitted(of(work).lines, tokens=900, cost=lambda line: len(line.text))

    assert any(line.text.startswith("asked before, a plan: ") and "Prune the orchard" in line.text for line in kept)


class TestBackground:
    """Commands that go on in the background, whose output another call brings."""

    def test_a_commit_whose_output_came_later_is_known_with_its_branch(self) -> None:
        work = Work().edited(f"{HOME}/a.py").called("exec_command", "git commit -m Graft").ran('git commit -m "Graft"', "", "")
        work = work.called("write_stdin", "session_id: 7").answered("[pear abc1234] Graft\n 1 file changed")

        assert lines_of(work, BriefPart.CHANGED)[0] == "committed last: Graft (abc1234)"
        assert of(work).branch == "pear"

    def test_the_branch_is_also_known_from_looking(self) -> None:
        assert of(Work().ran("git status", "On branch quince\nnothing to commit")).branch == "quince"
        assert of(Work().ran("git log --decorate", "abc1234 (HEAD -> plum, main) Graft")).branch == "plum"

    def test_what_is_waited_for_is_named(self) -> None:
        work = Work().asked("Water it").ran("./water --all", "", "").said("Still running.").called("write_stdin", "session_id: 69")

        assert lines_of(work, BriefPart.NEXT)[-1] == "begun, and no result was seen: write_stdin session_id: 69 of `./water --all`"

    def test_a_process_that_was_named_is_found_by_its_name(self) -> None:
        work = Work().asked("Water it").ran("./water --all", "Running in the background with ID: bash_3").ran("ls", "", "")
        work = work.called("BashOutput", "bash_id: bash_3")

        assert lines_of(work, BriefPart.NEXT)[-1] == "begun, and no result was seen: BashOutput bash_id: bash_3 of `./water --all`"


class TestFindings:
    def test_a_guess_is_left_out_once_the_cause_is_known(self) -> None:
        work = Work().asked("Why is it dry?").said("The valve is likely stuck in the northern row of trees.")
        work = work.said("Found the cause: the pump stands still since the fuse is blown. Let me look.").ran("ls")
        guessed = work.said("Now the fuse box:").ran("cat fuse.txt")

        (line,) = lines_of(guessed, BriefPart.NEXT)[1:]

        assert line == 'the agent had said before that: "Found the cause: the pump stands still since the fuse is blown."'

    def test_how_it_begins_and_what_it_concludes(self) -> None:
        middle = "The rows beside it are wet, and so is the whole of the slope below the wall by the gate. " * 3
        said = f"The northern row is dry since March. {middle}So the pipe is to be laid anew. Let me see."
        work = Work().asked("Why?").said(said).ran("ls").said("Now the pipe:").ran("cat pipe.txt")

        (line,) = lines_of(work, BriefPart.NEXT)[1:]

        assert "The northern row is dry since March." in line and line.endswith('… So the pipe is to be laid anew."')

    def test_what_another_agent_answered_is_among_them(self) -> None:
        work = (
            Work()
            .asked("Graft all")
            .called("Task", "description: Graft")
            .answered("All nine pears were grafted onto the old quince stock.")
        )
        work = work.ran("make test", "4 passed", tests="ok").said("All green. Let me look at the diff:")

        assert lines_of(work, BriefPart.NEXT)[1:] == [
            'the agent had said before that: "All nine pears were grafted onto the old quince stock."'
        ]

    def test_what_waits_and_what_was_found_go_before_a_longer_prompt(self) -> None:
        work = (
            Work()
            .asked(f"Why is it dry? {'Look at each row, please. ' * 20}")
            .said("The pump stands still since the fuse is blown.")
        )
        work = work.ran("ls").said("Now the fuse:").called("Bash", "")

        kept = fitted(of(work).lines, tokens=520, cost=lambda line: len(line.text))

        assert [line.text.partition(":")[0] for line in kept if line.part is BriefPart.NEXT] == [
            "the agent was at",
            "begun, and no result was seen",
            "the agent had said before that",
        ]


class TestRefers:
    LONG = "The pump is old, and it was mended twice this year. " * 12

    def first(self, said: str, prompt: str) -> str:
        return lines_of(Work().asked("Water the orchard by night").said(said).asked(prompt), BriefPart.DOING)[0]

    def test_answers_one_by_one_are_shown_with_their_questions(self) -> None:
        said = f"{self.LONG}\n\n1. Old row\n2. New row\n\nTo decide:\n\n1. **Seals** - new ones?\n2. **Valves** - both?\n3. Paint?"

        line = self.first(
            f"{said}\n\nWhat is your call?", "1. yes\n2. no, one\n3. can you look at its colour first? " + "please " * 20
        )

        assert line.endswith('in answer to: "(1) Seals - new ones?; (2) Valves - both?; (3) Paint?"')

    def test_both_are_the_two_that_have_a_label(self) -> None:
        tiers = f"**Tier 1 — the northern row first.**\n\n- x\n\n**Tier 2 — stop at the wall.**\n\n{self.LONG}"

        line = self.first(
            f"{self.LONG}\n\n1. It leaks\n2. It drips\n3. It stops\n\n{tiers}\n\nShall I sketch it?", "can we do both?"
        )

        assert line.endswith('in answer to: "Tier 1 — the northern row first; Tier 2 — stop at the wall"')

    def test_an_objection_is_shown_with_the_proposal_at_the_end(self) -> None:
        said = f"{self.LONG}\n\nThe stream feeds the valve.\n\n{self.LONG}\n\nThis speaks for a pond above the wall."
        prompt = f"but the stream above the valve is dry when it freezes {'and so are the ditches ' * 5}then"

        line = self.first(said, prompt)

        assert 'in answer to: "The stream feeds the valve.' in line and line.endswith('This speaks for a pond above the wall."')

    def test_with_hardly_a_word_in_common_the_end_of_the_message_is_shown(self) -> None:
        said = f"Water the ninth row.\n\n{self.LONG}\n\nI would dig a pond.\n\n---\n\nIt holds for ten years."

        assert self.first(said, "check again").endswith('Water the ninth row. … I would dig a pond. It holds for ten years."')

    def test_the_persons_request_goes_before_what_was_only_pasted(self) -> None:
        pasted = "error: pump: no pressure\nexit status 1\n" + "target: declined\n" * 20
        work = (
            Work().asked("Water the orchard by night").asked("9 rows at once fail, so let us take 5 rows by default").said("Fine.")
        )
        work = work.asked(pasted).said("It is the pump, not the rows.").asked("ok, add a param")

        assert lines_of(work, BriefPart.DOING)[1] == 'asked before: "9 rows at once fail, so let us take 5 rows by default"'

    def test_a_question_below_a_long_log_is_a_request_and_no_plan(self) -> None:
        log = "time=09:00 level=INFO msg=watered row=9\n" * 40
        work = (
            Work().asked("Start").asked("Move only the branches of the pears").asked(f"{log}\nCould we water the ninth row first?")
        )

        assert lines_of(work.said("Yes. Shall I?").asked("yes"), BriefPart.DOING)[1] == (
            'asked before: "Could we water the ninth row first?"'
        )

    def test_a_step_that_is_left_is_told_with_what_it_says(self) -> None:
        first = "### 1. Mend the old pump\n\n**File:** `pump.py`\n\n- New seals\n- Old pipes"
        second = "### 2. Open the gates by night\n\n**File:** `gate.py`\n\n- Read the hour\n- Close at dawn"
        work = Work().asked(f"# Plan: Water\n\n{first}\n\n{second}\n\n## Notes\n\n{self.LONG * 3}").edited(f"{HOME}/pump.py")

        assert (
            "left of the plan, by the files changed so far: (2) Open the gates by night (gate.py): Read the hour; Close at dawn"
            in lines_of(work, BriefPart.NEXT)
        )


OPTIONS = (
    "There are three ways to do it.\n\n**A. Graft in spring.** Takes long, and the stock is to be bought first, as always.\n"
    "**B. Graft in autumn.** Is done by next week, though it may freeze, which would be the end of it.\n"
    "**C. Sow anew.** Needs ten years and a good deal of patience, but no stock.\n\nI recommend A. Which way?"
)


@pytest.mark.parametrize("prompt", ["let's do B", "B, but in the same row please", "take b"])
def test_an_answer_that_names_an_option_is_shown_with_that_option(prompt: str) -> None:
    (line, *_) = lines_of(Work().asked("Graft the pear onto the quince").said(OPTIONS).asked(prompt), BriefPart.DOING)

    assert 'in answer to: "B. Graft in autumn. Is done by next week' in line and line.endswith('Which way?"')


@pytest.mark.parametrize("prompt", ["let's do it in C++ then, shall we", "I'd wait 2 weeks", "a good idea"])
def test_other_letters_and_numbers_name_no_option(prompt: str) -> None:
    (line, *_) = lines_of(Work().asked("Graft the pear onto the quince").said(OPTIONS).asked(prompt), BriefPart.DOING)

    assert "C. Sow anew. Needs ten years and a good deal of patience, but no stock. …" not in line
    assert 'to: "A. Graft' not in line and 'to: "B. Graft' not in line


def test_a_list_that_commits_were_made_after_is_said_to_be_old_and_comes_later() -> None:
    work = Work().asked("Graft and commit each").called("TodoWrite", "todos:\n[>] Graft the pear\n[ ] Commit it").answered("ok")
    work = work.committed("abc1234", "Graft the pear").said("Now the second tree:").ran("ls")

    now, listed = lines_of(work, BriefPart.NEXT)

    assert now.startswith('the agent was at: "Now the second tree:"')
    assert "(last changed 03-01 09:00, committed since: Graft the pear): in hand: Graft the pear; Commit it" in listed


def test_a_recap_comes_after_a_request_about_something_else_that_followed_it() -> None:
    recap = "Renaming the orchard's folders and their imports; next: mend the license check."
    work = Work().asked("Rename the folders of the orchard").recapped(recap)

    about_it = work.asked("also the imports in the license check of the orchard").said("Shall I?").asked("yes")
    first, *_ = [line for line in lines_of(about_it, BriefPart.DOING) if not line.startswith("asked last")]
    assert first.startswith("the agent's recap")

    work = Work().asked("Rename the folders of the orchard").recapped(recap)
    other = work.asked("please write a formula for the homebrew tap").said("A or B?").asked("A, please")
    first, *_ = [line for line in lines_of(other, BriefPart.DOING) if not line.startswith("asked last")]
    assert first == 'asked before: "please write a formula for the homebrew tap"'
