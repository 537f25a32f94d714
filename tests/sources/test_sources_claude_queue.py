"""Prompts typed while the agent works: none lost, none told twice, in every way that versions have recorded them."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kite_memory.model.event import Cursor, Event
from tests.counts import examples
from tests.sources.transcript import SESSION, Home, Transcript, said

WATER = "and water it, but only in the evening"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def at_work() -> Transcript:
    told = Transcript()
    told.user("graft the pear")
    told.call("Bash", "toolu_1", command="graft pear")
    return told


def test_a_prompt_that_starts_the_next_turn_is_told_by_its_own_line(home: Home) -> None:
    told = at_work()
    told.queue("enqueue", WATER)
    told.result("toolu_1", "grafted")
    told.assistant("Grafted.")
    told.queue("dequeue")
    line = told.user(WATER)
    told.assistant("Watered.")

    events = home.events(told)

    assert said(events) == ["graft the pear", WATER]
    assert line in {event.id for event in events}


def test_a_prompt_handed_over_amid_a_turn_is_told_once_the_agent_answers(home: Home) -> None:
    told = at_work()
    told.queue("enqueue", WATER)
    told.result("toolu_1", "grafted")
    told.queue("remove")
    before = home.look(told)
    told.assistant("Watering, too.")

    events = home.events(told)

    assert said(before) == ["graft the pear"]
    assert said(events) == ["graft the pear", WATER]
    assert [event.type for event in events][-2:] == ["user_message", "assistant_message"]


def test_such_a_prompt_leads_to_its_queue_line_and_keeps_its_time(home: Home) -> None:
    told = at_work()
    told.queue("enqueue", WATER)
    enqueued = told.rows[-1]
    told.result("toolu_1", "grafted")
    told.queue("remove")
    told.assistant("Watering, too.")

    event = next(event for event in home.events(told) if event.text == WATER)

    assert told.bytes[event.where.start : event.where.end].startswith(b'{"type":"queue-operation","operation":"enqueue"')
    assert event.at.isoformat().startswith(enqueued["timestamp"][:19])
    assert (event.role, event.session) == ("user", SESSION)


def test_an_answer_from_before_the_handing_over_does_not_tell_it(home: Home) -> None:
    told = at_work()
    told.queue("enqueue", WATER)
    told.queue("remove")
    told.assistant("Grafting first.", timestamp="2026-03-02T09:00:03Z")
    told.result("toolu_1", "grafted")
    line = told.attachment("queued_command", prompt=WATER, commandMode="prompt")
    told.assistant("Watering, too.")

    events = home.events(told)

    assert [event.id for event in events if event.text == WATER] == [line]


@pytest.mark.parametrize("order", ["remove first", "attachment first"])
@pytest.mark.parametrize("content", [None, WATER])
def test_a_prompt_that_comes_as_an_attachment_is_told_by_that(home: Home, order: str, content: str | None) -> None:
    told = at_work()
    told.queue("enqueue", WATER)
    told.result("toolu_1", "grafted")
    if order == "remove first":
        told.queue("remove", content)
    line = told.attachment("queued_command", prompt=WATER, commandMode="prompt", origin={"kind": "human"})
    if order == "attachment first":
        told.queue("remove", content, reason="absorbed_mid_turn")
    told.assistant("Watering, too.")
    told.user("thanks")
    told.user("bye")

    events = home.events(told)

    assert said(events) == ["graft the pear", WATER, "thanks", "bye"]
    assert line in {event.id for event in events}


def test_an_attachment_after_the_answer_tells_nothing_twice(home: Home) -> None:
    told = at_work()
    told.queue("enqueue", WATER)
    told.queue("remove")
    told.assistant("Watering, too.")
    told.attachment("queued_command", prompt=WATER, commandMode="prompt")

    assert said(home.events(told)) == ["graft the pear", WATER]


def test_an_attachment_of_blocks_is_told_without_its_picture(home: Home) -> None:
    told = at_work()
    told.queue("enqueue")
    told.attachment(
        "queued_command",
        prompt=[{"type": "text", "text": WATER}, {"type": "image", "source": {"type": "base64", "data": "AAAA"}}],
        commandMode="prompt",
    )
    told.queue("remove", WATER)
    told.assistant("Watering, too.")

    look = home.look(told)

    assert said(look) == ["graft the pear", WATER]
    assert "AAAA" not in str(look)


@pytest.mark.parametrize("content", [WATER, None, f"something else\n{WATER}"])
def test_a_prompt_that_went_back_into_the_editor_is_not_told(home: Home, content: str | None) -> None:
    told = at_work()
    told.queue("enqueue", WATER)
    told.queue("popAll", content)
    told.result("toolu_1", "grafted")
    told.assistant("Grafted.")
    told.user("one")
    told.user("two")
    told.user("three")

    assert said(home.events(told)) == ["graft the pear", "one", "two", "three"]


def test_what_was_typed_again_after_that_is_told(home: Home) -> None:
    told = at_work()
    told.queue("enqueue", "and water")
    told.queue("popAll", "and water")
    told.queue("enqueue", WATER)
    told.queue("remove")
    told.assistant("Watering, too.")

    assert said(home.events(told)) == ["graft the pear", WATER]


def test_notifications_and_bare_commands_in_the_queue_are_nobodys_words(home: Home) -> None:
    told = at_work()
    told.queue("enqueue", "<task-notification>\n<task-id>1</task-id>\n</task-notification>")
    told.queue("enqueue", "/copy")
    told.queue("remove")
    told.queue("dequeue")
    told.assistant("Grafted.")
    told.user("<task-notification>\n<task-id>1</task-id>\n</task-notification>", origin={"kind": "task-notification"})
    told.attachment("queued_command", prompt="<task-notification>2</task-notification>", commandMode="task-notification")
    told.attachment("queued_command", prompt="tick", commandMode="prompt", origin={"kind": "task-notification"})
    told.user("thanks")
    told.user("bye")

    assert said(home.events(told)) == ["graft the pear", "thanks", "bye"]


def test_a_prompt_between_notifications_is_still_the_one_handed_over(home: Home) -> None:
    told = at_work()
    told.queue("enqueue", "<task-notification>1</task-notification>")
    told.queue("enqueue", WATER)
    told.queue("remove")
    told.queue("remove")
    told.assistant("Watering, too.")

    assert said(home.events(told)) == ["graft the pear", WATER]


def test_a_queued_command_with_words_is_told_by_its_line(home: Home) -> None:
    told = at_work()
    told.queue("enqueue", "/compact keep the pears")
    told.queue("dequeue")
    told.user("<command-name>/compact</command-name>\n<command-args>keep the pears</command-args>")
    told.user("thanks")
    told.user("bye")

    assert said(home.events(told)) == ["graft the pear", "/compact keep the pears", "thanks", "bye"]


@pytest.mark.parametrize("mark", ["[Pasted text #1 +12 lines]", "[Image #1]"])
def test_a_prompt_whose_paste_was_put_in_is_told_once(home: Home, mark: str) -> None:
    told = at_work()
    told.queue("enqueue", f"Look at this: {mark}")
    told.queue("dequeue")
    told.user("Look at this: a very long list of pears")
    told.user("thanks")
    told.user("bye")

    assert said(home.events(told)) == ["graft the pear", "Look at this: a very long list of pears", "thanks", "bye"]


def test_a_starting_prompt_that_reads_quite_differently_is_still_told_once(home: Home) -> None:
    told = at_work()
    told.queue("enqueue", "[Pasted text #1 +12 lines]")
    told.queue("dequeue")
    told.user("a very long list of pears")
    told.user("thanks")
    told.user("bye")

    assert said(home.events(told)) == ["graft the pear", "a very long list of pears", "thanks", "bye"]


def test_a_prompt_that_the_client_died_upon_is_told_when_the_session_goes_on(home: Home) -> None:
    told = at_work()
    told.queue("enqueue", WATER)
    told.user("I am back")
    told.user("where were we?")

    assert said(home.events(told)) == ["graft the pear", "I am back", WATER, "where were we?"]


def test_words_at_a_permission_prompt_do_not_make_a_waiting_prompt_look_forgotten(home: Home) -> None:
    told = at_work()
    told.queue("enqueue", WATER)
    told.result("toolu_1", "grafted", beside=[{"type": "text", "text": "gently"}])
    for number in range(2, 5):
        told.call("Bash", f"toolu_{number}", command="graft")
        told.result(f"toolu_{number}", "grafted", beside=[{"type": "text", "text": f"gently, {number}"}])
    told.queue("dequeue")
    told.user(WATER)

    assert said(home.events(told)) == ["graft the pear", "gently", "gently, 2", "gently, 3", "gently, 4", WATER]


def test_the_same_words_typed_twice_are_told_twice(home: Home) -> None:
    told = at_work()
    told.queue("enqueue", "go on with all the other pears")
    told.queue("remove")
    told.assistant("Going on.")
    told.user("go on with all the other pears")

    assert said(home.events(told)) == ["graft the pear", *["go on with all the other pears"] * 2]


def test_several_prompts_are_each_told_once_in_their_order(home: Home) -> None:
    told = at_work()
    for number in range(5):
        told.queue("enqueue", f"prompt number {number}")
    for _ in range(5):
        told.queue("remove")
    told.assistant("All right.")

    assert said(home.events(told)) == ["graft the pear", *(f"prompt number {number}" for number in range(5))]


def test_more_prompts_than_are_remembered_are_told_at_once(home: Home) -> None:
    told = at_work()
    for number in range(40):
        told.queue("enqueue", f"prompt number {number}")
    told.user("I am back")
    told.user("where were we?")

    assert sorted(said(home.events(told)))[2:-1] == sorted(f"prompt number {number}" for number in range(40))


def test_the_id_of_a_queued_prompt_depends_on_its_words_time_and_session_alone(home: Home) -> None:
    told = at_work()
    told.queue("enqueue", WATER)
    told.queue("remove")
    told.assistant("Watering, too.")
    moved = at_work()
    moved.rows[0]["cwd"] = "/home/ada/elsewhere"
    moved.rows += told.rows[2:]

    there = next(event for event in home.events(told) if event.text == WATER)
    here = next(event for event in home.events(moved, "copy.jsonl") if event.text == WATER)

    assert there.id == here.id
    assert there.where != here.where


def test_a_long_prompt_does_not_weigh_on_the_cursor(home: Home) -> None:
    told = at_work()
    told.queue("enqueue", "water " * 8_000)
    path = home.write(told)
    first = home.read(path)
    told.queue("remove")
    told.assistant("Watering.")
    home.write(told)

    second = home.read(path, first.cursor)

    assert len(first.cursor.carry) < 2_000
    assert said(second) == [("water " * 8_000).strip()]


def test_an_unknown_operation_is_counted(home: Home) -> None:
    told = at_work()
    told.queue("shuffle")

    assert [problem.reason for problem in home.look(told).problems] == ["unknown queue operation shuffle"]


STEPS = st.lists(
    st.sampled_from(
        [
            *(("enqueue", number) for number in range(3)),
            ("dequeue", None),
            ("remove", None),
            ("remove", 0),
            ("popAll", None),
            *(("user", number) for number in range(3)),
            *(("attached", number) for number in range(3)),
            ("answer", None),
            ("notify", None),
        ]
    ),
    max_size=25,
)


def acted(steps: list[tuple[str, int | None]]) -> Transcript:
    told = Transcript()
    for step, number in steps:
        words = f"prompt number {number}"
        match step:
            case "user":
                told.user(words)
            case "attached":
                told.attachment("queued_command", prompt=words, commandMode="prompt")
            case "answer":
                told.assistant("All right.")
            case "notify":
                told.queue("enqueue", "<task-notification>1</task-notification>")
            case _:
                told.queue(step, None if number is None else words)
    return told


@settings(max_examples=examples(200), deadline=None)
@given(steps=STEPS, cuts=st.lists(st.integers(0, 25), max_size=4))
def test_whatever_happens_to_the_queue_reads_the_same_in_many_looks(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int | None]], cuts: list[int]
) -> None:
    home = Home(tmp_path_factory.mktemp("home"))
    told = acted(steps)
    path = home.write(told)
    whole = home.read(path)
    cursor: Cursor | None = None
    events: list[Event] = []
    rows = list(told.rows)

    for cut in sorted(cuts):
        told.rows = rows[:cut]
        path.write_bytes(told.bytes)
        look = home.read(path, cursor)
        cursor, events = look.cursor, [*events, *look.events]
    told.rows = rows
    path.write_bytes(told.bytes)

    assert tuple(events) + home.read(path, cursor).events == whole.events
    assert all(one.ordinal < other.ordinal for one, other in pairwise(whole.events))
    lines = [words for words in said(whole.events) if words in {f"prompt number {number}" for number in range(3)}]
    assert len(lines) <= sum(step in ("enqueue", "user", "attached") for step, _ in steps)
    assert len(lines) >= sum(step == "user" for step, _ in steps)
