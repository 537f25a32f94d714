import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.text.display import answered_part, clip, clip_end, clip_line, clip_middle, counted, gist, without_markup


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a title that fits into the line", "a title that fits into the line"),
        ("a title that is cut between two of its words", "a title that is cut between two of its…"),
        ("a title with a comma, where it is cut, in two", "a title with a comma, where it is cut…"),
        ("evidence 01234567-89ab-cdef-0123-456789abcdef", "evidence 01234567-89ab-cdef-0123-456789…"),
    ],
)
def test_a_text_is_cut_between_words(text: str, shown: str) -> None:
    assert clip(text, 40) == shown


def test_a_line_is_cut_wherever_it_gets_too_long() -> None:
    assert clip_line("one\n  two three", 9) == "one two…"
    assert clip_line("one\n  twenty", 9) == "one twen…"


@given(st.text(), st.integers(0, 40))
def test_no_cut_text_is_longer_than_allowed(text: str, limit: int) -> None:
    assert len(clip(text, limit)) <= limit
    assert len(clip_end(text, limit)) <= max(1, limit)
    assert len(clip_line(text, limit)) <= max(1, limit)


@pytest.mark.parametrize(
    ("number", "noun", "said"),
    [
        (0, "note", "0 notes"),
        (1, "note", "1 note"),
        (21_091, "note", "21,091 notes"),
        (2, "entity", "2 entities"),
        (2, "reply", "2 replies"),
        (2, "day", "2 days"),
        (1, "memory", "1 memory"),
    ],
)
def test_things_are_counted_as_people_count(number: int, noun: str, said: str) -> None:
    assert counted(number, noun) == said


class TestGist:
    PLAN = (
        "# Plan: Water the orchard\n\n## Context\n\nThe pump broke in May, and the pears are dry. The goal is to water every row by"
        f" night.\n\n## Changes\n\n### 1. Mend the pump\n\n**File**: `pump.py`\n\nNew seals for both valves.{' Slowly.' * 30}\n\n"
        f"### 2. Open the gates\n\n- Row one first\n- Then the others\n\n## Verification\n\n1. `make test`{' again' * 30}\n2. Look"
    )

    def test_a_list_that_ends_in_a_question_is_about_that_question(self) -> None:
        items = f"1. The pump stops{' slowly' * 20}\n2. The gates stay open"
        scenario = f"Take this scenario:\n\n{items}\n\nIt rains. Does the first row drown?"

        assert gist(scenario, 150).startswith('"Take this scenario:": It rains. Does the first row drown? (1) The pump stops')

    def test_a_step_that_names_only_a_file_is_told_by_its_parts_in_bold(self) -> None:
        changes = "**Change A: Read the pressure twice**\n\n1. Old\n2. New\n\n**Change B: Close the northern valve**\n\nNow."
        other = f"### File 2: `gate.py`\n\nPaint it.{' Green.' * 60}"
        plan = f"# Plan: Pump\n\n## Changes\n\n### File 1: `pump.py`\n\n{changes}\n\n{other}"

        assert "Change A: Read the pressure twice; Change B: Close the northern valve" in gist(plan, 300)

    def test_of_a_step_its_name_is_shown_rather_than_two_words_more(self) -> None:
        rows = "".join(f"\n\n### {at}. Water the northern row {at}\n\nOpen its gate and wait.{' Wait.' * 20}" for at in range(1, 6))

        assert "(1) Water the northern row 1; (2)" in gist(f"# Plan: Water\n\n## Changes{rows}", 200)

    def test_a_prompt_that_fits_is_whole(self) -> None:
        assert gist("Water\nthe  pears", 60) == '"Water the pears"'

    def test_a_plan_is_its_title_its_goal_and_its_steps(self) -> None:
        assert gist(self.PLAN, 300) == (
            '"Plan: Water the orchard": The pump broke in May, and the pears are dry. The goal is to water every row by night.'
            " (1) Mend the pump: New seals for both valves.; (2) Open the gates: Row one first; Then the others"
        )

    def test_what_is_to_be_delivered_is_the_goal(self) -> None:
        asked = f"# Task: Think about the pump\n\nThis is a design. Your deliverable is a sketch, NOT a new pump.\n\n{self.PLAN}"

        assert '": a sketch, NOT a new pump.' in gist(asked, 300)

    def test_what_is_to_be_done_in_a_step_is_shown_and_steps_without_work_are_not(self) -> None:
        does = "**File:** `src/pump.py`\n\n- Read the pressure\n- Close the valve at night"
        nothing = "### 2. No new seals needed\n\nThey hold."
        plan = f"# Plan: Pump\n\n### 1. Mend the old pump\n\n{does}\n\n{nothing}\n\n## Notes\n\n{'They hold well. ' * 30}"

        assert gist(plan, 160) == '"Plan: Pump" (1) Mend the old pump (pump.py): Read the pressure; Close the valve at night'

    def test_the_reason_for_what_is_asked_is_kept(self) -> None:
        of_gates = "The gates by the wall are green this year."
        reason = "With 900 rows it stops, 500 rows go well."
        prompt = f"The log is here. {of_gates} {reason} {of_gates.replace('green', 'blue')} Please add a limit for the pump."

        assert gist(prompt, 110) == f'"The log is here. … {reason} … Please add a limit for the pump."'

    def test_of_a_short_question_below_a_log_the_question_is_shown(self) -> None:
        log = "time=09:00 level=INFO msg=watered row=9\n" * 30

        assert gist(f"{log}\nCould we water the ninth row first?", 160) == '"Could we water the ninth row first?"'

    def test_with_little_room_the_title_and_the_goal_come_before_the_steps(self) -> None:
        short = gist(self.PLAN, 130)

        assert short.startswith('"Plan: Water the orchard": The pump broke')
        assert "(1) Mend the pump" in short

    def test_steps_may_be_items_of_a_list_or_headings_in_bold(self) -> None:
        listed = f"Please do all of this{' soon' * 40}:\n\n1. Mend the pump. It leaks.\n2. Open the gates\n"
        bold = f"**CONTEXT**\nThe pears are dry.{' Very.' * 40}\n\n**MEND**\nMend the pump.\n\n**WATER**\nWater the rows.\n"

        assert gist(listed, 160).endswith("(1) Mend the pump.; (2) Open the gates")
        assert gist(bold, 160).endswith("(1) MEND: Mend the pump.; (2) WATER: Water the rows.")

    def test_a_heading_that_says_nothing_gives_way_to_what_is_below_it(self) -> None:
        below = f"**Seals**: new ones.{' Soon.' * 40}\n\n**Valves**: both.\n"
        plan = f"# Mend it\n\n## Drain it\n\nIt leaks.\n\n## Changes\n\n{below}"

        assert gist(plan, 160) == '"Mend it" (1) Drain it: It leaks.; (2) Seals; (3) Valves'

    def test_pasted_output_is_the_persons_words_the_command_and_the_failure(self) -> None:
        printed = "\n".join(f"[row {number}] watered, pressure falling" for number in range(40))
        pasted = f"why does it stop?\n\n❯ go run ./pump --all\n{printed}\nerror: pump: no pressure\nexit status 1"

        assert gist(pasted, 200) == '"why does it stop?"; pasted: ran `go run ./pump --all`, output: error: pump: no pressure'

    def test_of_other_long_prompts_the_beginning_and_the_end_are_kept(self) -> None:
        shown = gist(f"The pears were dry {'and the plums too ' * 30}so can you water them?", 120)

        assert shown.startswith('"The pears were dry')
        assert shown.endswith('so can you water them?"')

    def test_what_a_long_prompt_asks_for_is_kept_wherever_it_stands(self) -> None:
        dry = "It has not rained since May and the old pump gives hardly any pressure at noon."
        prompt = f"Row nine is dry. {dry} Could you water it by hand? {dry.replace('May', 'June')} The plums are fine."

        assert gist(prompt, 140) == '"Row nine is dry. … Could you water it by hand? … The plums are fine."'

    def test_of_a_plan_all_that_it_is_about_is_given_where_there_is_room(self) -> None:
        about = "The pump broke in May. Its seal was cut by sand. The pears are dry. The rows are watered by night."
        plan = f"# Mend the pump\n\n## Context\n\n{about}\n\n## 1. Clean it\n\n{'Twice. ' * 90}\n\n## 2. Seal it\n\n{'Well. ' * 90}"

        assert about in gist(plan, 640)
        assert about not in gist(plan, 160)

    def test_a_first_sentence_that_is_too_long_leaves_a_gap(self) -> None:
        assert gist("1111111111111111. . 1", 20) == '"… . 1"'

    @given(st.text("ab#*-1. \n`❯$:", max_size=300), st.integers(20, 200))
    def test_any_prompt_has_one(self, prompt: str, length: int) -> None:
        assert len(gist(prompt, length)) <= 2 * length + 300


def test_the_middle_of_a_line_may_be_left_out() -> None:
    assert clip_middle("the pump\nleaks", 40) == "the pump leaks"
    shown = clip_middle(f"the pump {'and its valve ' * 9}leaks sand", 40)
    assert shown.startswith("the pump and") and shown.endswith("… valve leaks sand") and len(shown) <= 40


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("The hull takes 2**20 nails, not 2**10.", "The hull takes 2**20 nails, not 2**10."),
        ("Call f(**rigging) and g(**sails).", "Call f(**rigging) and g(**sails)."),
        ("It reads hull/**/*.oak and **/*.ash.", "It reads hull/**/*.oak and **/*.ash."),
        ("Put it in __init__ of the **new `hull`** and __only there__.", "Put it in __init__ of the new `hull` and only there."),
        ("**Keel** first, then ***both*** masts", "Keel first, then both masts"),
        ("**The keel is cut", "The keel is cut"),
    ],
)
def test_emphasis_goes_and_signs_of_code_stay(text: str, plain: str) -> None:
    assert without_markup(text) == plain


def test_a_message_that_ends_in_rules_is_quoted_from_its_beginning() -> None:
    assert answered_part("The lock is held by the sweeper.\n" + "---\n" * 1_500, "please rename the handler", 300).startswith(
        "The lock is held"
    )
