"""Working state: saved by agents, shown by their transcripts, and carried from one session to the next."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from kite_memory.errors import UsageError
from kite_memory.tools.arguments import LocalContext
from kite_memory.tools.declarations import Json, ToolDispatcher
from kite_memory.tools.local_state import joined, tools
from kite_memory.tools.memory_tools import resume_tools
from kite_memory.tools.store import OWNER, Asker, Grant, NotAllowed, State, Todo
from tests.fakes.clock import Clock
from tests.fakes.memory_store import MemoryStore
from tests.tools.local_stores import START

HERE = Asker(grant=OWNER, project="orchard", session="s1", ai="claude-code")
Ask = Callable[..., Json]


def state(
    ai: str = "claude-code", session: str = "s1", *, at: datetime = START, todos: tuple[str, ...] = (), notes: str = ""
) -> State:
    return State(
        ai=ai,
        session=session,
        project="orchard",
        todos=tuple(Todo(text=text) for text in todos),
        working_notes=notes,
        context_summary="",
        saved=at,
    )


@pytest.fixture
def clock() -> Clock:
    return Clock(START)


def asking(clock: Clock, *shown: State) -> Ask:
    def working(project: str, session: str, *, projects: Sequence[str] = ()) -> list[State]:
        return [each for each in shown if (each.session == session if session else each.project == project)]

    known = ToolDispatcher(tools(MemoryStore(), LocalContext(working=working), clock=clock))

    def ask(tool: str, asker: Asker = HERE, **arguments: object) -> Json:
        return known.perform(tool, arguments, asker)

    return ask


def test_what_is_saved_is_got_again(clock: Clock) -> None:
    ask = asking(clock)
    ask("ai_state_save", todos=["Prune", {"text": "Graft", "status": "done"}], working_notes="ladder", context_summary="half done")

    got = ask("ai_state_get")

    assert got["todos"] == [{"text": "Prune", "status": "pending"}, {"text": "Graft", "status": "completed"}]
    assert (got["working_notes"], got["context_summary"], got["ai_id"], got["session_id"]) == (
        "ladder",
        "half done",
        "claude-code",
        "s1",
    )


def test_an_id_that_holds_a_secret_is_not_kept(clock: Clock) -> None:
    ask = asking(clock)
    token = "ghp_" + "a1B2" * 9
    given = {"ai_id": token, "session_id": f"password={token}"}
    ask("ai_state_save", todos=[{"content": "Prune the pear tree"}], **given)

    listed, again = ask("ai_state_list"), ask("ai_state_get", **given)

    assert token not in json.dumps([listed, again])
    assert again["found"]


def test_todos_come_back_as_they_were_given(clock: Clock) -> None:
    ask = asking(clock)
    given = [
        {"content": "Add tests", "activeForm": "Adding tests", "status": "in_progress", "updated_at": "2026-03-01T09:00:00Z"},
        {"step": "Release", "status": "pending", "priority": 2},
        {"text": "Prune", "status": "completed"},
    ]
    ask("ai_state_save", todos=given)

    assert ask("ai_state_get")["todos"] == given


def test_a_transcript_that_is_newer_takes_nothing_from_what_a_todo_says() -> None:
    todo = Todo(text="Prune", named="content", more=(("activeForm", "Pruning"),))
    saved = replace(state(), todos=(todo,))
    shown = replace(state(at=START + timedelta(minutes=1)), todos=(Todo(text="Prune", status="completed"), Todo(text="Graft")))

    (both,) = joined([saved], [shown])

    assert both.todos == (replace(todo, status="completed"), Todo(text="Graft"))


def test_what_else_a_todo_says_is_bounded_and_cleaned(clock: Clock) -> None:
    ask = asking(clock)
    secret = "ghp_" + "Zx9" * 12
    ask("ai_state_save", todos=[{"content": "Prune", "note": f"token {secret}", "long": "x" * 9_000, "deep": {"a": 1}, "text": 7}])

    (todo,) = ask("ai_state_get")["todos"]

    assert set(todo) == {"content", "status", "note", "long"}
    assert secret not in str(todo) and len(todo["long"]) <= 500


def test_what_is_not_mentioned_stays(clock: Clock) -> None:
    ask = asking(clock)
    ask("ai_state_save", todos=["Prune"], working_notes="ladder")
    ask("ai_state_save", working_notes="saw")

    got = ask("ai_state_get")

    assert (got["todos"][0]["text"], got["working_notes"]) == ("Prune", "saw")


def test_several_ais_share_a_session(clock: Clock) -> None:
    ask = asking(clock)
    ask("ai_state_save", working_notes="mine")
    ask("ai_state_save", ai_id="codex", working_notes="theirs")

    assert ask("ai_state_get", ai_id="codex")["working_notes"] == "theirs"
    assert ask("ai_state_get")["working_notes"] == "mine"
    assert ask("ai_state_list")["count"] == 2


APART = [
    ("claude-planner", "claude-coder"),
    ("agent-1", "agent-2"),
    ("gpt-5", "gpt-4"),
    ("agent_1", "agent-1"),
    ("claude-opus-4-1", "claude-sonnet-4-5"),
]
"""Of each two, the second saves last."""


@pytest.mark.parametrize(("one", "other"), APART)
def test_names_that_begin_alike_are_two_ais(clock: Clock, one: str, other: str) -> None:
    ask = asking(clock)
    for ai in (one, other):
        clock.now += timedelta(minutes=1)
        ask("ai_state_save", ai_id=ai, working_notes=f"of {ai}")

    assert ask("ai_state_get", ai_id=one.upper())["working_notes"] == f"of {one}"
    assert [each["ai_id"] for each in ask("ai_state_list", ai_id=one)["states"]] == [one]


@pytest.mark.parametrize(("one", "other"), APART)
def test_what_another_ai_saved_is_not_handed_over_as_ones_own(clock: Clock, one: str, other: str) -> None:
    ask = asking(clock)
    ask("ai_state_save", ai_id=one, working_notes="theirs")

    moved = ask("ai_state_transfer", ai_id=other, from_session="s1", to_session="s2")

    assert not moved["transferred"]
    assert not ask("ai_state_get", ai_id=other, session_id="s2")["found"]
    assert not ask("ai_state_get", ai_id=other)["found"]


@pytest.mark.parametrize(
    ("saved", "asked"),
    [
        ("claude-code", "claude"),
        ("claude", "Claude Code"),
        ("claude_code", "claude-code"),
        ("claude-code", "claude-sonnet-4-5"),
        ("gemini-cli", "gemini-2.5-pro"),
        ("codex", "gpt-5.1-codex-max"),
        ("codex", "gpt-5-codex"),
        ("roo-code", "roo"),
    ],
)
def test_a_known_client_is_one_ai_under_all_its_names(clock: Clock, saved: str, asked: str) -> None:
    ask = asking(clock)
    ask("ai_state_save", ai_id=saved, working_notes="ladder")

    assert ask("ai_state_get", ai_id=asked)["working_notes"] == "ladder"
    assert ask("ai_state_transfer", ai_id=asked, from_session="s1", to_session="s2")["working_notes"] == "ladder"


def test_what_was_saved_under_exactly_this_name_goes_before_what_another_name_saved_later(clock: Clock) -> None:
    ask = asking(clock)
    ask("ai_state_save", ai_id="claude-code", working_notes="mine")
    clock.now += timedelta(minutes=1)
    ask("ai_state_save", ai_id="claude", working_notes="the other's")

    assert ask("ai_state_get")["working_notes"] == "mine"


def test_a_transcripts_todos_are_joined_with_what_was_saved_under_its_own_name() -> None:
    later = START + timedelta(minutes=5)
    saved = [state(ai="claude", at=later, notes="the other's"), state(notes="mine")]

    both = joined(saved, [state(at=later, todos=("Prune",))])

    assert {each.working_notes: [todo.text for todo in each.todos] for each in both} == {"the other's": [], "mine": ["Prune"]}


def test_a_state_goes_to_another_session_and_says_so(clock: Clock) -> None:
    ask = asking(clock)
    ask("ai_state_save", todos=["Prune"])
    clock.now += timedelta(hours=1)

    moved = ask("ai_state_transfer", from_session="s1", to_session="s2")

    assert (moved["transferred"], moved["transferred_from"], moved["transferred_at"]) == (True, "s1", clock.now.isoformat())
    assert ask("ai_state_get", session_id="s2")["todos"][0]["text"] == "Prune"
    assert ask("ai_state_get", session_id="s1")["todos"][0]["text"] == "Prune"
    lost = ask("ai_state_transfer", from_session="none", to_session="s3")
    assert not lost["transferred"] and "ai_state_list" in lost["hint"]


def test_todos_that_only_a_transcript_shows_are_a_state_too(clock: Clock) -> None:
    ask = asking(clock, state(todos=("Prune",)))

    assert ask("ai_state_get")["todos"] == [{"text": "Prune", "status": "pending"}]
    assert ask("ai_state_transfer", from_session="s1", to_session="s2")["transferred"]
    assert ask("ai_state_get", session_id="s2")["todos"][0]["text"] == "Prune"


@pytest.mark.parametrize(("minutes", "todos"), [(5, "Prune"), (-5, "Water")])
def test_of_saved_and_shown_todos_the_newer_hold_and_saved_words_stay(minutes: int, todos: str) -> None:
    shown = state(at=START + timedelta(minutes=minutes), todos=("Prune",))
    saved = state(ai="claude", todos=("Water",), notes="ladder")

    (both,) = joined([saved], [shown])

    assert ([todo.text for todo in both.todos], both.working_notes) == ([todos], "ladder")


def test_another_agents_list_is_not_taken_for_ones_own() -> None:
    assert len(joined([state(ai="codex", notes="x")], [state(todos=("Prune",))])) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"todos": "Prune"},
        {"todos": [5]},
        {"todos": [{"status": "done"}]},
        {"todos": [{"text": "x", "status": "someday"}]},
        {"todos": ["x" * 501]},
        {"todos": ["x"] * 101},
        {"working_notes": 5},
        {"working_notes": "x" * 8_001},
        {"session_id": "a\0b", "working_notes": "x"},
    ],
    ids=str,
)
def test_what_is_no_state_is_refused_with_what_would_do(clock: Clock, wrong: dict[str, object]) -> None:
    ask = asking(clock)

    with pytest.raises(UsageError) as refused:
        ask("ai_state_save", **wrong)
    assert refused.value.hint
    assert ask("ai_state_list")["count"] == 0


def test_who_speaks_must_be_known(clock: Clock) -> None:
    with pytest.raises(UsageError, match="ai_id"):
        asking(clock)("ai_state_get", replace(HERE, ai=""))


def test_nothing_secret_is_kept(clock: Clock) -> None:
    ask, token = asking(clock), "ghp_" + "a1B2" * 9
    ask("ai_state_save", todos=[f"Use {token}"], working_notes=token, context_summary=token)

    assert token not in str(ask("ai_state_get"))


def test_a_grant_bounds_what_is_saved_and_what_is_shown(clock: Clock) -> None:
    ask = asking(clock, state(todos=("Prune",)))
    meadow = Asker(grant=Grant(name="m", projects=frozenset({"meadow"})), project="meadow", session="s1", ai="claude-code")

    assert not ask("ai_state_get", meadow)["found"]
    assert ask("ai_state_list", meadow, project="orchard")["count"] == 0
    with pytest.raises(NotAllowed):
        ask("ai_state_save", replace(meadow, project="orchard"), working_notes="x")


def test_what_is_not_mentioned_stays_however_many_sessions_there_were_since(clock: Clock) -> None:
    ask, nowhere = asking(clock), replace(HERE, session="")
    ask("ai_state_save", nowhere, todos=["Graft the plums"])
    for number in range(30):
        clock.now += timedelta(minutes=1)
        ask("ai_state_save", session_id=f"s{number}", working_notes="dig")

    answer = ask("ai_state_save", nowhere, working_notes="the grafts are in the cellar")

    assert [todo["text"] for todo in answer["todos"]] == ["Graft the plums"]


def test_what_was_saved_elsewhere_under_the_same_session_does_not_stand_for_ones_own(clock: Clock) -> None:
    ask = asking(clock)
    quarry = Asker(grant=Grant(name="quarry", projects=frozenset({"quarry"})), project="quarry", session="s1", ai="claude-code")
    ask("ai_state_save", todos=["Prune"], working_notes="ours")
    ask("ai_state_save", asker=quarry, todos=["Sell the orchard"], working_notes="planted")

    assert ask("ai_state_get")["working_notes"] == "ours"
    assert ask("ai_state_transfer", from_session="s1", to_session="s2")["working_notes"] == "ours"
    assert ask("ai_state_get", project="quarry")["working_notes"] == "planted"


def test_a_brief_of_a_session_is_of_the_callers_project(clock: Clock) -> None:
    store = MemoryStore()
    for project, todo, at in (("orchard", "Prune", START), ("quarry", "Sell the orchard", START + timedelta(minutes=1))):
        store.save_state(OWNER, replace(state(todos=(todo,), at=at), project=project))
    tools = ToolDispatcher(resume_tools(store, LocalContext(), clock=clock))

    briefing = tools.perform("smart_resume", {"session_id": "s1"}, HERE)["briefing"]

    assert "Prune" in briefing
    assert "Sell" not in briefing
