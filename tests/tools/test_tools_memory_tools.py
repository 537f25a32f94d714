"""What an agent that resumes the work gets, and how little room it takes."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kite_memory.config import Config, EmbedderConfig, ExtractorConfig
from kite_memory.errors import KiteError, UsageError
from kite_memory.extensions.contract.extractor_contract import SESSION, event
from kite_memory.model.event import Cursor, EventType, ReadResult, RedactedResult, Session
from kite_memory.model.note import NoteKind, Scope
from kite_memory.recall.rendering import estimated_tokens
from kite_memory.tools import declarations
from kite_memory.tools.arguments import LocalContext
from kite_memory.tools.declarations import Json, ToolDispatcher
from kite_memory.tools.memory_tools import BriefingPart, briefing, context, cost, resume_tools, state_lines
from kite_memory.tools.store import OWNER, Asker, Grant, Memory, MemoryPlace, State, Todo
from kite_memory.wiring.services import Services, open_services
from tests.fakes.memory_store import MemoryStore
from tests.tools.local_stores import START

HERE = Asker(grant=OWNER, project="orchard", session="now", ai="codex")
ORCHARD = MemoryPlace(scope=Scope.PROJECT, project="orchard")
Ask = Callable[..., Json]
_MOST_TOKENS = 500
"""What `arguments.RESUME_TOKENS` allows."""


def resumed(**asked: str) -> Json:
    """As `kmem resume` shows it."""
    if asked["cwd"] not in ("orchard", "") or asked["session"] not in ("", "s1"):
        raise KiteError("no session is known", hint="")
    lines = [
        {"part": "doing", "text": 'asked last: "Graft the plums"'},
        {"part": "doing", "text": 'asked first: "Prune the pears"'},
        {"part": "failed", "text": "`make check` failed: no ladder"},
        {"part": "changed", "text": "edited: pear.py"},
    ]
    return {
        "session": {"provider": "claude-code", "id": "5e55e55e-1", "project": "orchard"},
        "at": "2026-03-02T08:00:00+00:00",
        "lines": lines,
    }


def working(project: str, session: str, *, projects: Sequence[str] = ()) -> Sequence[State]:
    state = State(
        ai="claude-code",
        session="s1",
        project="orchard",
        todos=(Todo(text="Prune", status="completed"), Todo(text="Graft", status="in_progress"), Todo(text="Water")),
        working_notes="",
        context_summary="",
        saved=START - timedelta(hours=1),
    )
    return [state] if project == "orchard" or session == "s1" else []


def asking(store: MemoryStore) -> Ask:
    known = ToolDispatcher(resume_tools(store, LocalContext(resume=resumed, working=working), clock=lambda: START))

    def ask(asker: Asker = HERE, **arguments: object) -> Json:
        return known.perform("smart_resume", arguments, asker)

    return ask


def furnished() -> MemoryStore:
    store = MemoryStore()
    store.write_memory(OWNER, "current.task", {"goal": "graft the plums"}, ORCHARD)
    store.write_memory(OWNER, "project.rootstock", "quince", ORCHARD)
    store.write_memory(OWNER, "shared.ladder", "in the barn", MemoryPlace(scope=Scope.SHARED))
    store.write_memory(OWNER, "discovered.frost", "late", ORCHARD)
    store.remember(OWNER, "Quince it is, since it stays small.", NoteKind.DECISION, ORCHARD, title="Quince as rootstock")
    return store


def test_it_shows_for_the_session_the_todos_the_decisions_and_what_is_kept() -> None:
    result = asking(furnished())()

    for said in ("orchard", "Graft the plums", "no ladder", "1 of 3 done; in progress: Graft", "Quince as rootstock"):
        assert said in result["briefing"]
    assert result["context"] == {
        "current": {"current.task": {"goal": "graft the plums"}},
        "project": {"project.rootstock": "quince"},
        "shared": {"shared.ladder": "in the barn"},
    }
    assert result["project"] == "orchard"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"task": "auth refactoring", "progress": 70, "next": "add tests"}, "70 % through auth refactoring; next: add tests"),
        ({"currentTask": "auth", "progress": "70%", "next_steps": ["a", "b"]}, "70 % through auth; next: a, b"),
        ({"progress": 0.5, "status": "blocked", "blockers": ["review"]}, "50 % done; status: blocked; blocked by: review"),
        ({"file_count": 3, "empty": ""}, "file count: 3"),
        ("half grafted", "half grafted"),
    ],
    ids=str,
)
def test_the_newest_state_is_said_in_words(value: Any, said: str) -> None:
    store = furnished()
    store.write_memory(OWNER, "current.work", value, ORCHARD)

    result = asking(store)()

    assert f": {said}\n" in result["briefing"] + "\n"
    assert result["context"]["current"]["current.work"] == value


def test_a_long_value_is_reported_by_how_it_begins() -> None:
    store = furnished()
    store.write_memory(OWNER, "current.rows", {"rows": ["The trees of this row bear fruit late."] * 40}, ORCHARD)

    assert isinstance(asking(store)()["context"]["current"].get("current.rows", ""), str)


def test_what_it_costs_is_the_whole_answers_and_it_is_reported() -> None:
    result = asking(furnished())()

    answer = {"briefing": result["briefing"], "context": result["context"]}
    assert result["token_count"] == estimated_tokens(json.dumps(answer, ensure_ascii=False)) <= _MOST_TOKENS


def test_where_there_is_much_to_say_it_takes_the_room_and_no_more() -> None:
    store = furnished()
    for number in range(60):
        for name in ("current", "project", "shared"):
            store.write_memory(OWNER, f"{name}.row{number}", "The trees of this row bear fruit late in the year. " * 40, ORCHARD)
        store.remember(
            OWNER, f"Row {number} is cut.", NoteKind.DECISION, ORCHARD, title=f"Row {number} is cut in winter, as it was before"
        )

    for tokens in (100, 200, 300, 500):
        assert 0.8 * tokens <= asking(store)(tokens=tokens)["token_count"] <= tokens
    assert asking(store)()["token_count"] <= _MOST_TOKENS


def test_what_is_done_or_long_past_takes_no_line_from_what_is_not() -> None:
    done = replace(working("orchard", "")[0], todos=(Todo(text="Prune", status="completed"),))
    past = replace(working("orchard", "")[0], saved=START - timedelta(days=15))
    noted = replace(done, ai="codex", working_notes="half grafted", saved=START - timedelta(days=2))

    lines = list(state_lines([done, done, done, noted, past], START))

    assert lines == ["codex, 2026-02-28 09:30, noted: half grafted"]


def test_what_was_handed_over_to_another_session_is_said_once() -> None:
    left = replace(working("orchard", "")[0], working_notes="half grafted")
    moved = replace(left, session="s2", saved=START, transferred_from="s1")
    gone_on = replace(left, saved=START + timedelta(minutes=1))

    assert list(state_lines([moved, left], START)) == list(state_lines([moved], START))
    assert len(list(state_lines([gone_on, moved], START))) == 2 * len(list(state_lines([moved], START)))


def test_of_nothing_it_says_so() -> None:
    result = asking(MemoryStore())(replace(HERE, project="meadow"))

    assert result["briefing"] == "Resuming meadow. Nothing is known of it yet."
    assert result["context"] == {"current": {}, "project": {}, "shared": {}}


def test_of_a_session_that_no_one_knows_it_says_so() -> None:
    briefing = asking(furnished())(session_id="nobody")["briefing"]

    assert "No session of that id is known" in briefing and "Decided lately" in briefing
    assert "No session" not in asking(furnished())(session_id="s1")["briefing"]


def test_a_session_may_be_named() -> None:
    assert "Graft the plums" in asking(MemoryStore())(replace(HERE, project=""), session_id="s1")["briefing"]


def test_a_bounded_grant_gets_nothing_of_what_lies_beyond_it() -> None:
    bounded = Asker(grant=Grant(name="m", projects=frozenset({"meadow"})), project="orchard")

    result = asking(furnished())(bounded)

    assert "shared.ladder" in result["context"]["shared"]
    del result["context"]["shared"]
    assert not any(word in str(result) for word in ("Graft", "plums", "Quince", "rootstock", "ladder", "done"))
    assert "Graft" not in asking(furnished())(replace(bounded, project=""), session_id="s1")["briefing"]


@pytest.mark.parametrize(
    "wrong", [{"project_path": 5}, {"session_id": "a\nb"}, {"tokens": 5}, {"tokens": 10_000}, {"tokens": "many"}], ids=str
)
def test_what_is_wrong_is_refused_with_what_would_do(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as refused:
        asking(MemoryStore())(**wrong)
    assert refused.value.hint


def memory(number: int, key: str, value: str) -> Memory:
    return Memory(id=str(number), key=key, value=value, place=ORCHARD, version=1, created=START, updated=START)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.lists(st.lists(st.text(max_size=200), max_size=4), max_size=3),
    st.lists(st.text(min_size=1, max_size=150), max_size=6),
    st.integers(60, 500),
)
def test_whatever_there_is_to_say_it_never_takes_more_than_its_room(said: list[list[str]], values: list[str], tokens: int) -> None:
    parts = [BriefingPart(heading="BriefingPart", lines=lines) for lines in said]
    memories = [memory(number, f"project.{number}", value) for number, value in enumerate(values)]

    made = briefing("Resuming orchard.", parts, memories, tokens=tokens)

    assert cost({"briefing": made.text, "context": context(made.kept)}) <= tokens


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    config = Config(
        file=tmp_path / "config.toml",
        state=tmp_path / "state",
        vault=tmp_path / "memory",
        claude_root=tmp_path / "claude",
        extractor=ExtractorConfig(name="offline"),
        embedder=EmbedderConfig(name="local"),
    )
    with open_services(config) as opened:
        opened.init_vault()
        yield opened


def take_in(services: Services, session: Session) -> None:
    asked = event(1, "Graft the plums onto the quince", session=session)
    listed = replace(
        event(2, "todos:\n[x] Prune\n[>] Graft\n[ ] Water", EventType.TOOL_CALL, session=session), tool="TodoWrite", call="c"
    )
    look = ReadResult(
        path="/t", session=session, events=(asked, listed), problems=(), cursor=Cursor(position=1, size=1, mtime_ns=1)
    )
    services.timeline.commit([RedactedResult(look)], session.provider)


def ask(services: Services, tool: str, **arguments: object) -> Json:
    asker = {"project": "orchard", "session": "now", "ai": "claude-code"}
    return declarations.result_of(services.operations.perform("bridge", {"tool": tool, "arguments": arguments, "asker": asker}))


def test_in_real_services_todos_of_the_transcript_are_resumed_without_anybody_saving_them(services: Services) -> None:
    from datetime import UTC, datetime

    session = replace(SESSION, started=datetime.now(UTC))
    take_in(services, session)

    state = ask(services, "ai_state_get", session_id=session.id)

    assert [each["text"] for each in state["todos"]] == ["Prune", "Graft", "Water"]
    assert "Graft the plums onto the quince" in ask(services, "smart_resume")["briefing"]


def test_in_real_services_what_one_tool_writes_the_others_find(services: Services) -> None:
    ask(services, "write_memory", key="project.rootstock", value="Quince, since it stays small")

    (hit,) = services.operations.perform("search", {"query": "quince", "project": "orchard"})["hits"]
    shown = services.operations.perform("show", {"note": hit["id"], "history": True})

    assert hit["title"] == "project.rootstock"
    assert [each["text"] for each in shown["versions"]] == ["Quince, since it stays small"]
    assert services.operations.perform("status", {})["notes"]["keyed"] == 1


def test_in_real_services_a_conflict_keeps_its_version_on_the_way(services: Services) -> None:
    ask(services, "write_memory", key="project.rootstock", value=1)

    answer = services.operations.perform(
        "bridge",
        {
            "tool": "write_memory",
            "arguments": {"key": "project.rootstock", "value": 2, "expected_version": 0},
            "asker": {"project": "orchard", "session": "", "ai": ""},
        },
    )

    assert (answer["error"]["kind"], answer["error"]["version"]) == ("conflict", 1)


def test_the_newest_of_120_memories_is_reported_whatever_it_is_called() -> None:
    store = MemoryStore()
    place = MemoryPlace(scope=Scope.PROJECT, project="orchard")
    for number in range(120):
        store.write_memory(OWNER, f"current.task{number:03}", f"older {number}", place)
    store.write_memory(OWNER, "current.zebra", "the newest", place)

    assert asking(store)()["context"]["current"]["current.zebra"] == "the newest"
