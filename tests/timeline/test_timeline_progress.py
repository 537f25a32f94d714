"""What a session changed, what failed, and its last stable point: also where a shell or a person did it."""

import pytest

from kite_memory.model.event import Status
from kite_memory.timeline.progress import BriefPart, all_changes
from kite_memory.timeline.resume import Brief, brief
from kite_memory.timeline.runs import runs
from tests.fakes.work import Work

HOME = "/home/ada/orchard"


def of(work: Work) -> Brief:
    result = brief(work.session, work.events)
    assert result is not None
    return result


def lines_of(work: Work, part: BriefPart) -> list[str]:
    return [line.text for line in of(work).lines if line.part is part]


def changes_of(work: Work) -> list[tuple[str, str]]:
    found = all_changes(work.events, runs(work.events, work.session.cwd), work.session.cwd)
    return [(change.path, change.action) for change in found]


class TestChanges:
    def test_files_changed_by_a_shell_count_among_those_of_tools_in_order(self) -> None:
        work = Work().edited(f"{HOME}/a.py").ran("sed -i 's/1/2/' b.py").ran(f"cd {HOME}/trees && cat > c.py <<EOF\nEOF")
        work = work.edited(f"{HOME}/d.py")

        assert changes_of(work) == [("a.py", "edited"), ("b.py", "edited"), ("trees/c.py", "written"), ("d.py", "edited")]

    @pytest.mark.parametrize("status", ["denied", "interrupted", "failed"])
    def test_a_line_that_was_not_run_or_failed_changed_nothing(self, status: Status) -> None:
        assert changes_of(Work().ran("sed -i 's/1/2/' b.py", "sed: can't read b.py", status)) == []

    def test_of_a_line_whose_check_failed_what_came_before_it_counts(self) -> None:
        work = Work().ran("sed -i 's/1/2/' b.py && pytest", "1 failed", "failed", tests="failed")

        assert changes_of(work) == [("b.py", "edited")]

    def test_a_merge_counts_also_with_conflicts_but_not_without_anything_new(self) -> None:
        conflict = Work().ran("git merge pears", "CONFLICT (content): Merge conflict in a.py", "failed")

        assert changes_of(conflict) == [("", "git merge pears")]
        assert changes_of(Work().ran("git merge pears", "fatal: refusing to merge unrelated histories", "failed")) == []
        assert changes_of(Work().ran("git merge pears", "Already up to date.")) == []

    def test_a_formatter_counts_unless_it_says_that_it_changed_nothing(self) -> None:
        assert changes_of(Work().ran("npm run lint:fix", "Checked 9 files. Fixed 2 files.")) == [("", "npm run lint:fix")]
        assert changes_of(Work().ran("npm run lint:fix", "Checked 9 files. No fixes applied.")) == []
        assert changes_of(Work().ran("ruff format .", "9 files left unchanged")) == []
        assert changes_of(Work().ran("prettier --write .", "a.ts 12ms (unchanged)")) == []
        assert changes_of(Work().ran("prettier --write .", "a.ts 12ms (unchanged)\nb.ts 9ms")) == [("", "prettier")]

    @pytest.mark.parametrize("command", ["mise run fmt", "gofmt -w .", "cargo fmt", "make format", "eslint --fix src", "black ."])
    def test_a_formatter_that_prints_nothing_may_have_changed_any_file(self, command: str) -> None:
        work = Work().ran("pytest", "4 passed", tests="ok").ran("make lint", "pear.py:1:1: bad format", "failed").ran(command, "")

        (stable,) = lines_of(work, BriefPart.STABLE)
        (failed,) = lines_of(work, BriefPart.FAILED)
        assert "nothing since" not in stable and "since then `" in stable
        assert "; unverified: `" in failed and failed.endswith("` ran since, run it again")

    def test_what_a_script_that_checks_the_format_lists_is_why_it_failed(self) -> None:
        said = "row watered\n" * 20 + "These files need to be formatted:\n\nsrc/pear.go\nsrc/plum.go\n\nERROR task failed"

        (failed,) = lines_of(Work().ran("mise run lint:fmt", said, "failed"), BriefPart.FAILED)
        assert "These files need to be formatted: src/pear.go src/plum.go" in failed

    def test_a_shell_that_stays_in_a_folder_names_the_file_that_is_known_there(self) -> None:
        work = Work().edited(f"{HOME}/trees/pear.py").ran("sed -i 's/1/2/' pear.py")

        assert changes_of(work)[-1] == ("trees/pear.py", "edited")

    def test_the_last_change_by_a_command_is_in_the_brief_under_its_own_name(self) -> None:
        work = Work().edited(f"{HOME}/a.py").ran("git merge pears", "Updating 1..2").ran("sed -i 's/1/2/' a.py")

        assert lines_of(work, BriefPart.CHANGED) == ["edited: a.py", "files changed by commands: `git merge pears`"]
        assert [file.path for file in of(work).files] == ["a.py"]


class TestStable:
    def test_what_a_shell_changed_since_is_said(self) -> None:
        work = Work().edited(f"{HOME}/a.py").ran("pytest", "4 passed", tests="ok")
        work = work.ran("sed -i 's/1/2/' src/trees/b.py").ran("git rebase main", "Successfully rebased")

        assert lines_of(work, BriefPart.STABLE) == [
            "2026-03-01 09:00: `pytest` passed (4 passed), since then `git rebase main`, trees/b.py; a.py changed by then"
        ]
        assert lines_of(work, BriefPart.VERIFY) == ["run `pytest` again: files changed since the last stable point"]

    def test_tests_that_passed_before_the_lint_of_their_line_failed_are_stable(self) -> None:
        work = Work().ran("bun run test && bun run lint", "1274 pass\n0 fail\nFound 2 errors.", "failed", tests="failed")

        (line,) = lines_of(work, BriefPart.STABLE)
        assert line.endswith("the tests of `bun run test && bun run lint` passed (1274 pass), nothing since")
        assert len(lines_of(work, BriefPart.FAILED)) == 1
        assert lines_of(work.ran("bun run lint", "Checked 9 files", tests="ok"), BriefPart.FAILED) == []

    def test_a_check_that_failed_behind_a_pipe_leaves_its_line_mixed(self) -> None:
        said = '4 pass\n0 fail\nerror: script "lint" exited with code 1'
        work = Work().ran("bun run test 2>&1 | tail -5 && bun run lint 2>&1 | tail -3", said, tests="ok")

        (line,) = lines_of(work, BriefPart.STABLE)
        assert line.endswith("the tests of `bun run test && bun run lint` passed (4 pass), nothing since")
        assert len(lines_of(work, BriefPart.FAILED)) == 1

    def test_the_commit_of_the_tested_state_is_named_and_what_it_holds_is_not_new(self) -> None:
        work = Work().edited(f"{HOME}/a.py").ran("pytest", "4 passed", tests="ok").edited(f"{HOME}/CHANGES.md")
        work = work.committed("abc1234", "Graft").edited(f"{HOME}/b.py").committed("def5678", "Prune")

        assert lines_of(work, BriefPart.STABLE) == [
            "2026-03-01 09:00, committed as abc1234: `pytest` passed (4 passed), since then b.py"
        ]

    def test_a_clean_lint_after_the_tests_is_said_until_something_changes(self) -> None:
        work = Work().ran("pytest", "4 passed", tests="ok").ran("ruff check .", "All checks passed!")

        assert lines_of(work, BriefPart.STABLE)[0].endswith("nothing since; `ruff check .` went well after that")
        assert "ruff" not in lines_of(work.edited(f"{HOME}/a.py"), BriefPart.STABLE)[0]

    def test_where_no_test_passed_a_clean_lint_is_said(self) -> None:
        work = Work().edited(f"{HOME}/a.py").ran("ruff check .", "All checks passed!")

        assert lines_of(work, BriefPart.STABLE) == ["no test or build was seen to pass; `ruff check .` went well"]


class TestReported:
    def test_a_failure_that_only_the_person_saw_is_open(self) -> None:
        work = Work().asked("make lint is failing on the server, why?").said("Let me look.").ran("cat lint.yml")

        assert lines_of(work, BriefPart.FAILED) == ["reported by the person: make lint is failing on the server, why?"]

    def test_pasted_output_is_reported_with_the_command_and_what_was_changed_since(self) -> None:
        work = Work().asked("❯ go run ./pump\nerror: pump: no pressure").edited(f"{HOME}/src/pump/valve.go")

        assert lines_of(work, BriefPart.FAILED) == [
            "reported by the person in what was asked last: error: pump: no pressure;"
            " changed since, and not seen to be tried: pump/valve.go"
        ]
        assert lines_of(work.asked("which valve was it then?"), BriefPart.FAILED) == []
        seen_later = Work().asked("❯ go run ./pump\nerror: pump: no pressure").said("Which?").asked("the one by the wall")
        assert lines_of(seen_later, BriefPart.FAILED) == ["in the person's output of `go run ./pump`: error: pump: no pressure"]

    def test_it_stays_open_after_a_commit_if_the_person_was_asked_to_try_again(self) -> None:
        work = Work().asked("❯ ./pump --all\nerror: no pressure").edited(f"{HOME}/valve.go").committed("abc1234", "Mend the valve")
        to_try = work.said("Committed. Now try it again with all rows.").asked("should there be any water visible?")

        assert lines_of(to_try, BriefPart.FAILED) == [
            "in the person's output of `./pump --all`: error: no pressure; changed since, and not seen to be tried: valve.go"
        ]
        assert lines_of(to_try.asked("it works now"), BriefPart.FAILED) == []

    @pytest.mark.parametrize(
        "mended",
        [
            Work().asked("lint is failing").edited(f"{HOME}/a.go").ran("make lint", "0 issues.", tests="ok"),
            Work().asked("❯ go run ./pump\nerror: no pressure").edited(f"{HOME}/a.go").ran("go run ./pump"),
            Work().asked("there's a merge conflict").ran("git rebase --continue", "Successfully rebased"),
            Work().asked("the pump is broken").edited(f"{HOME}/a.go").committed("abc1234", "Mend the pump"),
            Work().asked("the pump is broken").edited(f"{HOME}/a.go").asked("Now water all of the rows"),
            Work().asked("the pump is broken").said("It was the valve.").asked("thanks, that works"),
        ],
    )
    def test_it_is_not_once_something_shows_that_it_is_mended(self, mended: Work) -> None:
        assert lines_of(mended, BriefPart.FAILED) == []

    def test_it_stays_open_where_the_agent_cannot_see_it_fail(self) -> None:
        work = Work().asked("the tests fail on the server").ran("make test", "4 passed", tests="ok")

        assert lines_of(work, BriefPart.FAILED) == [
            "reported by the person: the tests fail on the server; `make test` went well here, with nothing changed"
        ]

    def test_what_a_program_marked_as_wrong_is_reported_rather_than_that_its_task_failed(self) -> None:
        pasted = (
            "❯ mise run licenses\n✗ Found 1 bad license:\n\n  - orchard/pump\n    License: Unknown\n[licenses] ERROR task failed"
        )

        (line,) = lines_of(Work().asked(pasted), BriefPart.FAILED)
        assert line == "reported by the person in what was asked last: ✗ Found 1 bad license: - orchard/pump License: Unknown"

    def test_a_plan_that_speaks_of_failures_reports_none(self) -> None:
        plan = f"# Plan\n\n## Context\n\nThe pump is broken.\n\n## 1. Mend the pump\n\n{'Slowly. ' * 50}"

        assert lines_of(Work().asked(plan), BriefPart.FAILED) == []

    def test_it_stays_open_while_the_person_only_asks_about_it(self) -> None:
        work = Work().asked("the pump is broken").said("Which one?").asked("the one at the northern gate of course")

        assert lines_of(work, BriefPart.FAILED) == ["reported by the person: the pump is broken"]

    def test_what_the_agent_saw_fail_as_well_is_said_once(self) -> None:
        work = Work().asked("lint is failing").ran("make lint", "a.py:3:1: unused", "failed", tests="failed")

        (line,) = lines_of(work, BriefPart.FAILED)
        assert line.startswith("`make lint` failed")


class TestFailed:
    def test_what_failed_while_the_work_was_put_away_is_no_failure_of_the_work(self) -> None:
        work = Work().edited(f"{HOME}/a.py").ran("git stash && make test; git stash pop", "1 failed", "failed", tests="failed")

        assert lines_of(work, BriefPart.FAILED) == []
        passed = work.ran("git stash push a.py\nmake test\ngit stash pop", "4 passed", tests="ok")
        assert lines_of(passed, BriefPart.STABLE) == []

    def test_a_program_that_was_found_behind_another_is_not_missing(self) -> None:
        work = Work().ran("go version && go run ./pump --help", "zsh:1: command not found: go", "failed")

        assert len(lines_of(work, BriefPart.FAILED)) == 1
        assert lines_of(work.ran("mise exec -- go run ./pump --help").ran("ls"), BriefPart.FAILED) == []

    def test_what_failed_in_a_folder_that_was_thrown_away_is_not_open(self) -> None:
        work = (
            Work()
            .ran('set -e; ROW=$(mktemp -d); ./pump "$ROW"', "error: no pressure", "failed")
            .ran("ls")
            .said("So it needs a pipe.")
        )

        assert lines_of(work, BriefPart.FAILED) == []

    def test_the_reason_comes_from_another_run_of_the_same_test_if_need_be(self) -> None:
        said = "    pump_test.go:7: opening\n    pump_test.go:9: pressure should be 3, got 0\n--- FAIL: TestPump (0.10s)\nFAIL"
        work = Work().ran("go test -run TestPump -v ./...", said, "failed", tests="failed")
        work = work.ran("make test", "--- FAIL: TestPump (0.12s)\nFAIL\nFAIL\tpump\t1.2s", "failed", tests="failed")

        (line, *_) = lines_of(work, BriefPart.FAILED)
        assert line == "`make test` failed: --- FAIL: TestPump; pump_test.go:9: pressure should be 3, got 0"

    def test_a_place_outside_the_project_is_no_reason(self) -> None:
        said = "--- FAIL: TestPump (0.10s)\n/usr/go/src/runtime/panic.go:783 +0x120\n/home/ada/orchard/pump.go:9 +0x40\nFAIL"
        work = Work().ran("make test", said, "failed", tests="failed")

        (line,) = lines_of(work, BriefPart.FAILED)
        assert line.endswith("/home/ada/orchard/pump.go:9 +0x40")

    def test_what_the_agent_calls_older_than_its_work_is_quoted(self) -> None:
        work = Work().ran("make test", "1 failed", "failed", tests="failed")
        work = work.said("I looked. The failure is unrelated: main has it as well.")

        (line,) = lines_of(work, BriefPart.FAILED)
        assert line.endswith('; the agent: "The failure is unrelated: main has it as well."')

    def test_a_line_its_program_did_not_understand_is_not_open_once_its_words_went_well(self) -> None:
        work = Work().ran("rtk bun run test", "error: unrecognized subcommand 'bun'", "failed")

        assert len(lines_of(work, BriefPart.FAILED)) == 1
        assert lines_of(work.ran("rtk test bun run test", "4 pass", tests="ok"), BriefPart.FAILED) == []

    @pytest.mark.parametrize(
        ("status", "said", "shown"),
        [
            ("failed", "String to replace not found.\nString: a", "failed, and is not applied: String to replace not found."),
            ("denied", "The person refused.", "was denied"),
        ],
    )
    def test_an_edit_that_was_not_made_is_said_until_it_is(self, status: Status, said: str, shown: str) -> None:
        work = Work().edited(f"{HOME}/src/a.py").refused(f"{HOME}/src/a.py", said, status)

        assert lines_of(work, BriefPart.FAILED) == [f"the last Edit of src/a.py {shown}"]
        assert lines_of(work.edited(f"{HOME}/src/a.py"), BriefPart.FAILED) == []

    @pytest.mark.parametrize(
        ("command", "said"),
        [("make lint:fix", "Fixed 2 files."), ("make test", "4 passed"), ('git commit -am "Mend"', "[main abc1234] Mend")],
    )
    def test_an_edit_that_was_not_made_is_no_longer_missed_once_the_agent_went_on(self, command: str, said: str) -> None:
        work = Work().refused(f"{HOME}/src/a.py", "String to replace not found.", "failed").ran(command, said)

        assert lines_of(work, BriefPart.FAILED) == []

    def test_a_failure_whose_mend_the_person_denied_stays_open(self) -> None:
        work = Work().ran("make test", "1 failed", "failed", tests="failed").said("It is the valve.")

        assert lines_of(work.refused(f"{HOME}/src/valve.go", "The person refused.", "denied"), BriefPart.FAILED) == [
            "`make test` failed: 1 failed",
            "the last Edit of src/valve.go was denied",
        ]

    def test_a_panic_is_reason_enough_without_a_place_in_a_trace(self) -> None:
        said = f"--- FAIL: TestPump\npanic: no pressure{' at all' * 30}\n/home/ada/orchard/pump.go:9 +0x40\nFAIL"
        work = Work().ran("make test", said, "failed", tests="failed")

        assert "+0x40" not in lines_of(work, BriefPart.FAILED)[0]

    @pytest.mark.parametrize("hook", ["husky - pre-commit script failed (code 2)", "lint...Failed\n- hook id: lint"])
    def test_a_commit_that_a_hook_refused_is_open_until_one_is_made(self, hook: str) -> None:
        """Whatever the program in front of git says of it by its exit status."""
        said = f"ok 2 files changed\n4 pass\n 0 fail\nsrc/valve.ts(7,2): error TS18046: 'it' is of type 'unknown'.\n{hook}"
        work = Work().asked("commit").ran('wrapped git add a.ts && wrapped git commit -m "Mend"', said).ran("wrapped git log -3")

        assert lines_of(work, BriefPart.FAILED) == [
            "the commit was refused by its hook, and is to be tried again:"
            " src/valve.ts(7,2): error TS18046: 'it' is of type 'unknown'."
        ]
        assert lines_of(work.committed("abc1234", "Mend"), BriefPart.FAILED) == []

    def test_a_push_is_made_up_for_without_the_commit_that_had_worked(self) -> None:
        said = "[main abc1234] Mend\n ! [rejected] main -> main (fetch first)\nerror: failed to push some refs to 'origin'"
        work = Work().ran('git commit -am "Mend" && git push', said, "failed")

        assert len(lines_of(work, BriefPart.FAILED)) == 1
        assert lines_of(work.ran("git pull").ran("git push"), BriefPart.FAILED) == []

    def test_a_call_of_another_tool_that_failed_is_open_until_it_works(self) -> None:
        work = Work().asked("commit").called("Skill", "skill: commit").answered("Unknown skill: commit", "failed")

        assert lines_of(work, BriefPart.FAILED) == ["the last call of Skill (skill: commit) failed: Unknown skill: commit"]
        assert lines_of(work.committed("abc1234", "Mend"), BriefPart.FAILED) == []

    def test_a_commit_that_failed_for_any_reason_is_open(self) -> None:
        work = Work().asked("commit").ran('git add dist && git commit -m "Mend"', "This path is ignored: dist", "failed")
        work = work.said("It is ignored. Let me leave it out.").called("Bash", "git add src && git commit")

        assert lines_of(work, BriefPart.FAILED) == ['`git add dist && git commit -m "Mend"` failed: This path is ignored: dist']

    def test_of_several_complaints_of_a_checker_more_are_quoted_where_there_is_room(self) -> None:
        said = "".join(f"pump.go:{at}:1: {name} is unused (unparam)\n" for at, name in enumerate(("valve", "gate", "rope"), 1))
        work = Work().ran("make lint", said, "failed")
        (line,) = (line for line in of(work).lines if line.part is BriefPart.FAILED)

        assert line.text.endswith("valve is unused (unparam); pump.go:2:1: gate is unused (unparam) and 1 more")
        assert line.longer[0].endswith("pump.go:3:1: rope is unused (unparam)")

    def test_the_file_that_a_formatter_complains_about_is_named(self) -> None:
        said = "at src/Gate.tsx format ━━━━━━━━\n\n  156 │ open(\n\nChecked 9 files. Found 1 error."
        (line,) = lines_of(Work().ran("bun run lint", said, "failed"), BriefPart.FAILED)

        assert "at src/Gate.tsx format" in line

    def test_a_look_that_failed_leaves_nothing_undone(self) -> None:
        work = Work().asked("Prune").called("Read", f"{HOME}/a.py").answered("File does not exist.", "failed")

        assert lines_of(work, BriefPart.FAILED) == []

    def test_the_failing_test_that_the_agent_found_goes_with_the_report(self) -> None:
        work = Work().asked("the tests on main are failing - why?").ran("gh run view 7 --log-failed | tail -100", "a log")
        work = work.said("Found it. The failing test is:\n\n```\nTestPump/opens\n    got = 0, want 3\n```\n\nLet me read it.").ran(
            "ls"
        )

        assert lines_of(work, BriefPart.FAILED) == [
            "reported by the person: the tests on main are failing - why?;"
            ' the agent: "Found it. The failing test is: TestPump/opens got = 0, want 3"'
        ]

    def test_the_cause_that_the_agent_found_goes_with_the_failure_until_a_check_went_well(self) -> None:
        work = Work().asked("Prune").ran("make lint", "a.sh: line 3: CI: unbound variable", "failed", tests="failed")
        work = work.said("I looked. The problem is that CI is unset here.").edited(f"{HOME}/a.sh")

        assert lines_of(work, BriefPart.FAILED)[0].endswith('; the agent: "The problem is that CI is unset here."')
        assert lines_of(work.ran("make lint", "0 issues.", tests="ok"), BriefPart.FAILED) == []

    def test_a_bug_that_the_agent_found_is_open_until_something_is_changed(self) -> None:
        work = Work().asked("Look through the pump").said("I found a bug: the valve opens twice. Let me see the rest.").ran("ls")

        assert lines_of(work, BriefPart.FAILED) == [
            'the agent found, and has not changed anything since: "I found a bug: the valve opens twice."'
        ]
        assert lines_of(work.edited(f"{HOME}/valve.py"), BriefPart.FAILED) == []

    def test_the_last_command_counts_even_if_it_only_prepared_something(self) -> None:
        work = Work().asked("commit").ran("git add dist", "Exit code 1\nThe following paths are ignored: dist", "failed")

        assert lines_of(work, BriefPart.FAILED) == [
            "the last command, `git add dist`, failed: The following paths are ignored: dist"
        ]
        assert lines_of(Work().asked("Prune").ran("grep pear a.py", "", "failed"), BriefPart.FAILED) == []

    def test_a_command_that_failed_before_an_answer_and_the_next_prompt_was_given_up(self) -> None:
        work = Work().asked("Publish").ran("deploy", "error: no route to host", "failed")

        assert len(lines_of(work, BriefPart.FAILED)) == 1
        assert lines_of(work.said("I put it on the shelf instead.").asked("fine"), BriefPart.FAILED) == []

    def test_the_reason_stands_above_the_name_of_the_test(self) -> None:
        said = f"error: provoked\n{'fine ' * 400}\nerror: expected 3, got 0\n(fail) pump > opens [0.5ms]\n1 fail\n3 pass"
        (line,) = lines_of(Work().ran("bun test", said, "failed", tests="failed"), BriefPart.FAILED)

        assert line.endswith("; error: expected 3, got 0")

    def test_a_wrong_call_does_not_stand_for_an_earlier_failure_of_the_check(self) -> None:
        work = Work().ran("golangci-lint run ./...", "pump.go:3:1: unused (unused)\n1 issues:", "failed", tests="failed")
        work = work.ran("golangci-lint run --json ./... | python3 count.py", "No version is set for command python3", "failed")

        assert any("pump.go:3:1: unused" in line for line in lines_of(work, BriefPart.FAILED))

    def test_a_wrapper_that_counts_errors_has_checked_nothing_well(self) -> None:
        work = Work().ran("pytest", "4 passed", tests="ok").ran("wrapped lint", "Lint: 1 errors, 1 warnings")

        assert "wrapped lint" not in lines_of(work, BriefPart.STABLE)[0]


class TestPrograms:
    def test_a_program_that_was_found_at_another_place_is_no_open_failure(self) -> None:
        work = Work().asked("Water").ran("tools/pump.sh --all", "zsh:1: no such file or directory: tools/pump.sh", "failed")

        assert len(lines_of(work, BriefPart.FAILED)) == 1
        assert lines_of(work.ran("/opt/orchard/pump.sh --all", "running"), BriefPart.FAILED) == []

    def test_a_package_that_was_added_changed_the_file_that_lists_it(self) -> None:
        work = Work().ran("go get orchard/pump@v2", "go: upgraded orchard/pump v1 => v2").ran("go test ./...", "ok", tests="ok")

        assert lines_of(work, BriefPart.CHANGED) == ["changed by go get: go.mod"]
        assert lines_of(work, BriefPart.STABLE)[0].endswith("nothing since; go.mod changed by then")


class TestScripts:
    def test_a_file_that_was_run_itself_was_tried(self) -> None:
        work = Work().edited(f"{HOME}/tools/count.py").ran("cd tools; python count.py", "3 pears")

        assert lines_of(work, BriefPart.VERIFY) == []
        assert lines_of(work, BriefPart.STABLE) == [
            "no test or build was seen to pass; `cd tools; python count.py` ran without an error 03-01 09:00"
        ]

    def test_a_program_that_only_changes_the_file_did_not_try_it(self) -> None:
        work = Work().edited(f"{HOME}/tools/count.py").ran("python -c \"open('tools/count.py')\"")

        assert lines_of(work, BriefPart.VERIFY) == ["nothing has been run that tests: tools/count.py"]
