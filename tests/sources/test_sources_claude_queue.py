"""Prompts typed while the agent works: none lost, none reported twice, in every way that versions have recorded them."""

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
    transcript = Transcript()
    transcript.user("graft the pear")
    transcript.call("Bash", "toolu_1", command="graft pear")
    return transcript


def test_a_prompt_that_starts_the_next_turn_is_reported_by_its_own_line(home: Home) -> None:
    transcript = at_work()
    transcript.queue("enqueue", WATER)
    transcript.result("toolu_1", "grafted")
    transcript.assistant("Grafted.")
    transcript.queue("dequeue")
    line = transcript.user(WATER)
    transcript.assistant("Watered.")

    events = home.events(transcript)

    assert said(events) == ["graft the pear", WATER]
    assert line in {event.id for event in events}


def test_a_prompt_handed_over_amid_a_turn_is_reported_once_the_agent_answers(home: Home) -> None:
    transcript = at_work()
    transcript.queue("enqueue", WATER)
    transcript.result("toolu_1", "grafted")
    transcript.queue("remove")
    before = home.look(transcript)
    transcript.assistant("Watering, too.")

    events = home.events(transcript)

    assert said(before) == ["graft the pear"]
    assert said(events) == ["graft the pear", WATER]
    assert [event.type for event in events][-2:] == ["user_message", "assistant_message"]


def test_such_a_prompt_leads_to_its_queue_line_and_keeps_its_time(home: Home) -> None:
    transcript = at_work()
    transcript.queue("enqueue", WATER)
    enqueued = transcript.rows[-1]
    transcript.result("toolu_1", "grafted")
    transcript.queue("remove")
    transcript.assistant("Watering, too.")

    event = next(event for event in home.events(transcript) if event.text == WATER)

    assert transcript.bytes[event.where.start : event.where.end].startswith(b'{"type":"queue-operation","operation":"enqueue"')
    assert event.at.isoformat().startswith(enqueued["timestamp"][:19])
    assert (event.role, event.session) == ("user", SESSION)


def test_an_answer_from_before_the_handing_over_does_not_tell_it(home: Home) -> None:
    transcript = at_work()
    transcript.queue("enqueue", WATER)
    transcript.queue("remove")
    transcript.assistant("Grafting first.", timestamp="2026-03-02T09:00:03Z")
    transcript.result("toolu_1", "grafted")
    line = transcript.attachment("queued_command", prompt=WATER, commandMode="prompt")
    transcript.assistant("Watering, too.")

    events = home.events(transcript)

    assert [event.id for event in events if event.text == WATER] == [line]


@pytest.mark.parametrize("order", ["remove first", "attachment first"])
@pytest.mark.parametrize("content", [None, WATER])
def test_a_prompt_that_comes_as_an_attachment_is_reported_by_that(home: Home, order: str, content: str | None) -> None:
    transcript = at_work()
    transcript.queue("enqueue", WATER)
    transcript.result("toolu_1", "grafted")
    if order == "remove first":
        transcript.queue("remove", content)
    line = transcript.attachment("queued_command", prompt=WATER, commandMode="prompt", origin={"kind": "human"})
    if order == "attachment first":
        transcript.queue("remove", content, reason="absorbed_mid_turn")
    transcript.assistant("Watering, too.")
    transcript.user("thanks")
    transcript.user("bye")

    events = home.events(transcript)

    assert said(events) == ["graft the pear", WATER, "thanks", "bye"]
    assert line in {event.id for event in events}


def test_an_attachment_after_the_answer_shows_nothing_twice(home: Home) -> None:
    transcript = at_work()
    transcript.queue("enqueue", WATER)
    transcript.queue("remove")
    transcript.assistant("Watering, too.")
    transcript.attachment("queued_command", prompt=WATER, commandMode="prompt")

    assert said(home.events(transcript)) == ["graft the pear", WATER]


def test_an_attachment_of_blocks_is_reported_without_its_picture(home: Home) -> None:
    transcript = at_work()
    transcript.queue("enqueue")
    transcript.attachment(
        "queued_command",
        prompt=[{"type": "text", "text": WATER}, {"type": "image", "source": {"type": "base64", "data": "AAAA"}}],
        commandMode="prompt",
    )
    transcript.queue("remove", WATER)
    transcript.assistant("Watering, too.")

    look = home.look(transcript)

    assert said(look) == ["graft the pear", WATER]
    assert "AAAA" not in str(look)


@pytest.mark.parametrize("content", [WATER, None, f"something else\n{WATER}"])
def test_a_prompt_that_went_back_into_the_editor_is_not_reported(home: Home, content: str | None) -> None:
    transcript = at_work()
    transcript.queue("enqueue", WATER)
    transcript.queue("popAll", content)
    transcript.result("toolu_1", "grafted")
    transcript.assistant("Grafted.")
    transcript.user("one")
    transcript.user("two")
    transcript.user("three")

    assert said(home.events(transcript)) == ["graft the pear", "one", "two", "three"]


def test_what_was_typed_again_after_that_is_reported(home: Home) -> None:
    transcript = at_work()
    transcript.queue("enqueue", "and water")
    transcript.queue("popAll", "and water")
    transcript.queue("enqueue", WATER)
    transcript.queue("remove")
    transcript.assistant("Watering, too.")

    assert said(home.events(transcript)) == ["graft the pear", WATER]


def test_notifications_and_bare_commands_in_the_queue_are_no_ones_words(home: Home) -> None:
    transcript = at_work()
    transcript.queue("enqueue", "<task-notification>\n<task-id>1</task-id>\n</task-notification>")
    transcript.queue("enqueue", "/copy")
    transcript.queue("remove")
    transcript.queue("dequeue")
    transcript.assistant("Grafted.")
    transcript.user("<task-notification>\n<task-id>1</task-id>\n</task-notification>", origin={"kind": "task-notification"})
    transcript.attachment("queued_command", prompt="<task-notification>2</task-notification>", commandMode="task-notification")
    transcript.attachment("queued_command", prompt="tick", commandMode="prompt", origin={"kind": "task-notification"})
    transcript.user("thanks")
    transcript.user("bye")

    assert said(home.events(transcript)) == ["graft the pear", "thanks", "bye"]


def test_a_prompt_between_notifications_is_still_the_one_handed_over(home: Home) -> None:
    transcript = at_work()
    transcript.queue("enqueue", "<task-notification>1</task-notification>")
    transcript.queue("enqueue", WATER)
    transcript.queue("remove")
    transcript.queue("remove")
    transcript.assistant("Watering, too.")

    assert said(home.events(transcript)) == ["graft the pear", WATER]


def test_a_queued_command_with_words_is_reported_by_its_line(home: Home) -> None:
    transcript = at_work()
    transcript.queue("enqueue", "/compact keep the pears")
    transcript.queue("dequeue")
    transcript.user("<command-name>/compact</command-name>\n<command-args>keep the pears</command-args>")
    transcript.user("thanks")
    transcript.user("bye")

    assert said(home.events(transcript)) == ["graft the pear", "/compact keep the pears", "thanks", "bye"]


@pytest.mark.parametrize("mark", ["[Pasted text #1 +12 lines]", "[Image #1]"])
def test_a_prompt_whose_paste_was_put_in_is_reported_once(home: Home, mark: str) -> None:
    transcript = at_work()
    transcript.queue("enqueue", f"Look at this: {mark}")
    transcript.queue("dequeue")
    transcript.user("Look at this: a very long list of pears")
    transcript.user("thanks")
    transcript.user("bye")

    assert said(home.events(transcript)) == ["graft the pear", "Look at this: a very long list of pears", "thanks", "bye"]


def test_a_starting_prompt_that_reads_quite_differently_is_still_reported_once(home: Home) -> None:
    transcript = at_work()
    transcript.queue("enqueue", "[Pasted text #1 +12 lines]")
    transcript.queue("dequeue")
    transcript.user("a very long list of pears")
    transcript.user("thanks")
    transcript.user("bye")

    assert said(home.events(transcript)) == ["graft the pear", "a very long list of pears", "thanks", "bye"]


def test_a_prompt_that_the_client_died_upon_is_reported_when_the_session_goes_on(home: Home) -> None:
    transcript = at_work()
    transcript.queue("enqueue", WATER)
    transcript.user("I am back")
    transcript.user("where were we?")

    assert said(home.events(transcript)) == ["graft the pear", "I am back", WATER, "where were we?"]


def test_words_at_a_permission_prompt_do_not_make_a_waiting_prompt_look_forgotten(home: Home) -> None:
    transcript = at_work()
    transcript.queue("enqueue", WATER)
    transcript.result("toolu_1", "grafted", beside=[{"type": "text", "text": "gently"}])
    for number in range(2, 5):
        transcript.call("Bash", f"toolu_{number}", command="graft")
        transcript.result(f"toolu_{number}", "grafted", beside=[{"type": "text", "text": f"gently, {number}"}])
    transcript.queue("dequeue")
    transcript.user(WATER)

    assert said(home.events(transcript)) == ["graft the pear", "gently", "gently, 2", "gently, 3", "gently, 4", WATER]


def test_the_same_words_typed_twice_are_reported_twice(home: Home) -> None:
    transcript = at_work()
    transcript.queue("enqueue", "go on with all the other pears")
    transcript.queue("remove")
    transcript.assistant("Going on.")
    transcript.user("go on with all the other pears")

    assert said(home.events(transcript)) == ["graft the pear", *["go on with all the other pears"] * 2]


def test_several_prompts_are_each_reported_once_in_their_order(home: Home) -> None:
    transcript = at_work()
    for number in range(5):
        transcript.queue("enqueue", f"prompt number {number}")
    for _ in range(5):
        transcript.queue("remove")
    transcript.assistant("All right.")

    assert said(home.events(transcript)) == ["graft the pear", *(f"prompt number {number}" for number in range(5))]


def test_more_prompts_than_are_remembered_are_reported_at_once(home: Home) -> None:
    transcript = at_work()
    for number in range(40):
        transcript.queue("enqueue", f"prompt number {number}")
    transcript.user("I am back")
    transcript.user("where were we?")

    assert sorted(said(home.events(transcript)))[2:-1] == sorted(f"prompt number {number}" for number in range(40))


def test_the_id_of_a_queued_prompt_depends_on_its_words_time_and_session_alone(home: Home) -> None:
    transcript = at_work()
    transcript.queue("enqueue", WATER)
    transcript.queue("remove")
    transcript.assistant("Watering, too.")
    moved = at_work()
    moved.rows[0]["cwd"] = "/home/ada/elsewhere"
    moved.rows += transcript.rows[2:]

    there = next(event for event in home.events(transcript) if event.text == WATER)
    here = next(event for event in home.events(moved, "copy.jsonl") if event.text == WATER)

    assert there.id == here.id
    assert there.where != here.where


def test_a_long_prompt_does_not_weigh_on_the_cursor(home: Home) -> None:
    transcript = at_work()
    transcript.queue("enqueue", "water " * 8_000)
    path = home.write(transcript)
    first = home.read(path)
    transcript.queue("remove")
    transcript.assistant("Watering.")
    home.write(transcript)

    second = home.read(path, first.cursor)

    assert len(first.cursor.carry) < 2_000
    assert said(second) == [("water " * 8_000).strip()]


def test_an_unknown_operation_is_counted(home: Home) -> None:
    transcript = at_work()
    transcript.queue("shuffle")

    assert [problem.reason for problem in home.look(transcript).problems] == ["unknown queue operation shuffle"]


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
    transcript = Transcript()
    for step, number in steps:
        words = f"prompt number {number}"
        match step:
            case "user":
                transcript.user(words)
            case "attached":
                transcript.attachment("queued_command", prompt=words, commandMode="prompt")
            case "answer":
                transcript.assistant("All right.")
            case "notify":
                transcript.queue("enqueue", "<task-notification>1</task-notification>")
            case _:
                transcript.queue(step, None if number is None else words)
    return transcript


@settings(max_examples=examples(200), deadline=None)
@given(steps=STEPS, cuts=st.lists(st.integers(0, 25), max_size=4))
def test_whatever_happens_to_the_queue_reads_the_same_in_many_looks(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int | None]], cuts: list[int]
) -> None:
    home = Home(tmp_path_factory.mktemp("home"))
    result = acted(steps)
    path = home.write(result)
    whole = home.read(path)
    cursor: Cursor | None = None
    events: list[Event] = []
    rows = list(result.rows)

    for cut in sorted(cuts):
        result.rows = rows[:cut]
        path.write_bytes(result.bytes)
        look = home.read(path, cursor)
        cursor, events = look.cursor, [*events, *look.events]
    result.rows = rows
    path.write_bytes(result.bytes)

    assert tuple(events) + home.read(path, cursor).events == whole.events
    assert all(one.ordinal < other.ordinal for one, other in pairwise(whole.events))
    lines = [words for words in said(whole.events) if words in {f"prompt number {number}" for number in range(3)}]
    assert len(lines) <= sum(step in ("enqueue", "user", "attached") for step, _ in steps)
    assert len(lines) >= sum(step == "user" for step, _ in steps)
