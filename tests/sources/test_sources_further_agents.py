"""Cases of Pi, Qwen Code, Goose, Factory Droid and Kilo Code that the contract does not have."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kite_memory.model.event import Event, EventType, ReadResult
from kite_memory.sources import Source
from kite_memory.sources.common.words import OWN_EXTRACTOR_MARK
from kite_memory.sources.droid import Droid as DroidSource
from kite_memory.sources.goose import Goose
from kite_memory.sources.opencode.source import Kilo, OpenCode
from kite_memory.sources.pi import Pi as PiSource
from kite_memory.sources.qwen_code import QwenCode
from tests.fakes import opencode_store
from tests.fakes.goose_store import SESSION, GooseStore, a_morning, request, response
from tests.fakes.goose_store import text as said
from tests.sources.further_lines import (
    CWD,
    NAME,
    Droid,
    Pi,
    Qwen,
    a_droid_day,
    a_pi_day,
    a_qwen_day,
    function,
    lines,
    text,
)

BUDGET = 4 * 1024 * 1024


def pi(folder: Path, day: Pi, name: str = NAME) -> ReadResult:
    path = folder / "sessions" / "--home-ada-orchard--" / f"2026-03-02T09-00-00-000Z_{name}.jsonl"
    return of(PiSource(folder, own_state=folder / "state"), path, day.rows)


def qwen(folder: Path, day: Qwen) -> ReadResult:
    path = folder / "projects" / "-home-ada-orchard" / "chats" / f"{NAME}.jsonl"
    return of(QwenCode(folder, own_state=folder / "state"), path, day.rows)


def droid(folder: Path, day: Droid) -> ReadResult:
    path = folder / "sessions" / "-home-ada-orchard" / f"{NAME}.jsonl"
    return of(DroidSource(folder, own_state=folder / "state"), path, day.rows)


def of(source: Source, path: Path, rows: list[dict[str, Any]]) -> ReadResult:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lines(rows))
    return source.read(path, None, budget=BUDGET)


def goose(folder: Path, store: GooseStore) -> list[Event]:
    store.close()
    source, path = Goose((folder,), own_state=folder / "state"), folder / "sessions.db"
    found = [source.read(path, None, budget=BUDGET)]
    while found[-1].more:
        found.append(source.read(path, found[-1].cursor, budget=BUDGET))
    return [event for read in found for event in read.events]


def persons(events: Sequence[Event]) -> list[str]:
    return [event.text for event in events if event.type is EventType.USER_MESSAGE]


def brief(events: Sequence[Event]) -> list[tuple[str, str]]:
    return [(event.type.name, event.status) for event in events]


A_DAY = [
    ("USER_MESSAGE", ""),
    ("ASSISTANT_MESSAGE", ""),
    ("TOOL_CALL", ""),
    ("COMMAND", ""),
    ("TOOL_RESULT", "failed"),
    ("TEST_RESULT", "failed"),
    ("ERROR", "failed"),
    ("TOOL_CALL", ""),
    ("TOOL_RESULT", "ok"),
    ("FILE_ACTION", "ok"),
    ("ASSISTANT_MESSAGE", ""),
]


def test_the_same_day_yields_the_same_events_whichever_agent_wrote_it(tmp_path: Path) -> None:
    days = {
        "pi": pi(tmp_path / "pi", a_pi_day()).events,
        "qwen": qwen(tmp_path / "qwen", a_qwen_day()).events,
        "droid": droid(tmp_path / "droid", a_droid_day()).events,
        "goose": goose(tmp_path / "goose", a_morning(tmp_path / "goose" / "sessions.db")),
    }

    assert {name: brief(events) for name, events in days.items()} == dict.fromkeys(days, A_DAY)
    assert {name: persons(events) for name, events in days.items()} == {name: ["Why do the pears drop early?"] for name in days}


def test_a_session_knows_its_folder_and_title(tmp_path: Path) -> None:
    day = a_pi_day()
    day.row("session_info", name="Early pears")

    session = pi(tmp_path, day).session

    assert session is not None
    assert (session.id, session.cwd, session.title) == (NAME, CWD, "Early pears")


def test_a_fork_of_pi_adds_nothing_twice_and_names_its_origin(tmp_path: Path) -> None:
    origin = pi(tmp_path, a_pi_day())
    fork = Pi(parentSession=f"/home/ada/.pi/agent/sessions/--x--/2026-03-02T09-00-00-000Z_{NAME}.jsonl")
    fork.rows = [fork.rows[0], *a_pi_day().rows[1:]]
    fork.user("And the plums?")

    read = pi(tmp_path, fork, "0a917070-0000-4000-8000-000000000002")

    assert read.session is not None
    assert read.session.parent == NAME
    assert [event.text for event in read.events if event.id not in {each.id for each in origin.events}] == ["And the plums?"]


def test_what_extensions_skills_and_files_say_to_pi_is_not_the_persons(tmp_path: Path) -> None:
    day = Pi()
    day.row("custom_message", customType="memory", content="Always prune.", display=False)
    day.user('<skill name="prune" location="/s/SKILL.md">\nReferences are relative to /s.\n\nCut low.\n</skill>\n\nthe old pear')
    day.user('<file name="/a.txt">\nAlways water.\n</file>\nWhat is this?')
    day.message("custom", customType="memory", content="Always weed.", display=True)
    day.user('<file name="/a.txt">\nAlways water.\n</file>\nAlways weed.\n</file>\nAnd this?')
    day.user('<skill name="prune" location="/s/SKILL.md">\nCut low.\n</skill>\n\nAlways weed.\n</skill>\n\nthe young pear')

    assert persons(pi(tmp_path, day).events) == ["the old pear", "What is this?", "And this?", "the young pear"]


def test_a_person_may_run_a_command_in_pi_and_stop_it(tmp_path: Path) -> None:
    day = Pi()
    day.message("bashExecution", command="git pull", output="Up to date.", exitCode=0, cancelled=False, truncated=False)
    day.assistant(text("I begin"), stop="aborted")
    day.row("compaction", summary="The pears were watered.", firstKeptEntryId="00000001", tokensBefore=9)

    events = pi(tmp_path, day).events

    assert [(event.type.name, event.role, event.text, event.status) for event in events] == [
        ("COMMAND", "user", "git pull", ""),
        ("ASSISTANT_MESSAGE", "assistant", "I begin", ""),
        ("RESUME_POINT", "system", "Interrupted by the user", "interrupted"),
        ("RESUME_POINT", "system", "The pears were watered.", ""),
    ]


def test_of_a_prompt_to_qwen_only_what_was_typed_is_the_persons(tmp_path: Path) -> None:
    day = Qwen()
    day.user("What is in @a.txt?", "\n--- Content from referenced files ---", "Always water.", "A hook says: always prune.")
    day.user(
        "What is in a.txt?\n\nAlways water.", systemPayload={"displayText": "What is in @a.txt now?", "hookContext": "Always weed."}
    )
    day.user("The task is done.", subtype="notification")
    day.user("Look at the pears.", subtype="cron")
    day.user("Continue with the goal.", provenance="goal_runtime")
    day.user("Explore the orchard.", isSidechain=True, agentId="explore-1")
    day.user("Quick, the rain!", subtype="mid_turn_user_message")

    assert persons(qwen(tmp_path, day).events) == ["What is in @a.txt?", "What is in @a.txt now?", "Quick, the rain!"]


@pytest.mark.parametrize(("after", "theirs"), [(1, ["/init pears"]), (60, ["/init pears", "Hello"])])
def test_the_template_of_a_slash_command_is_not_the_persons(tmp_path: Path, after: int, theirs: list[str]) -> None:
    day = Qwen()
    day.system("slash_command", phase="invocation", rawCommand="/init pears")
    day.row("user", after=after, message={"role": "user", "parts": [{"text": "Hello"}]})

    assert persons(qwen(tmp_path, day).events) == theirs


def test_a_cancelled_call_of_qwen_was_denied(tmp_path: Path) -> None:
    day = Qwen()
    day.assistant(function("c1", "run_shell_command", command="rm -r pears"))
    day.result("c1", "run_shell_command", "[Operation Cancelled] Reason: User did not allow tool call", "cancelled")

    assert brief(qwen(tmp_path, day).events)[-1] == ("TOOL_RESULT", "denied")


def test_in_a_sub_agents_session_of_droid_no_person_writes(tmp_path: Path) -> None:
    called, result = Droid(callingSessionId="0a917070-0000-4000-8000-000000000009"), Droid()
    called.message("user", text("Explore the orchard."))
    result.message("user", text("# Task Tool Invocation\n\nExplore the orchard."))
    result.message("user", text("And the meadow."))

    reads = [droid(tmp_path / "called", called), droid(tmp_path / "told", result)]

    assert [persons(read.events) for read in reads] == [[], []]
    assert reads[0].session is not None
    assert reads[0].session.parent == "0a917070-0000-4000-8000-000000000009"


def test_a_conversation_that_goose_writes_anew_adds_only_what_is_new(tmp_path: Path) -> None:
    source, path = Goose((tmp_path,), own_state=tmp_path / "state"), tmp_path / "sessions.db"
    with closing(a_morning(path)) as store:
        first = source.read(path, None, budget=BUDGET)
        store.written_anew()
        store.message("user", said("Summary: the pears drop."), shown=False)

        second = source.read(path, first.cursor, budget=BUDGET)

    fresh = [event for event in second.events if event.id not in {each.id for each in first.events}]
    assert [(event.type, event.text) for event in fresh] == [(EventType.RESUME_POINT, "Summary: the pears drop.")]


def test_a_result_is_known_by_its_call_though_read_later(tmp_path: Path) -> None:
    source, path = Goose((tmp_path,), own_state=tmp_path / "state"), tmp_path / "sessions.db"
    with closing(GooseStore(path)) as store:
        store.session()
        store.message("assistant", request("c1", "shell", command="pytest -q"))
        first = source.read(path, None, budget=BUDGET)
        store.message("user", response("c1", "3 passed in 0.1s"))

        second = source.read(path, first.cursor, budget=BUDGET)

    assert [(event.type.name, event.command) for event in second.events] == [("TOOL_RESULT", ""), ("TEST_RESULT", "pytest -q")]


@pytest.mark.parametrize("kind", ["sub_agent", "scheduled", "hidden", "unheard-of"])
def test_in_goose_sessions_of_no_person_no_person_writes(tmp_path: Path, kind: str) -> None:
    store = GooseStore(tmp_path / "sessions.db")
    store.session(kind=kind)
    store.message("user", said("Explore the orchard."))

    events = goose(tmp_path, store)

    assert [event.type for event in events] == [EventType.ASSISTANT_MESSAGE]


def test_sessions_of_goose_side_by_side_are_kept_apart(tmp_path: Path) -> None:
    store = GooseStore(tmp_path / "sessions.db")
    for name in (SESSION, "20260302_2"):
        store.session(name)
    for number in range(3):
        store.message("user", said(f"Graft {number}"))
        store.message("user", said(f"Prune {number}"), session="20260302_2")

    events = goose(tmp_path, store)

    assert {name: [event.text for event in events if event.session == name] for name in (SESSION, "20260302_2")} == {
        SESSION: ["Graft 0", "Graft 1", "Graft 2"],
        "20260302_2": ["Prune 0", "Prune 1", "Prune 2"],
    }


def test_sessions_of_our_own_extractor_are_not_read(tmp_path: Path) -> None:
    prompt = f"{OWN_EXTRACTOR_MARK} Summarize: the pears drop."
    pears, plums, apples = Pi(), Qwen(), Droid()
    pears.user(prompt)
    plums.user(prompt)
    apples.message("user", text(prompt))
    store = GooseStore(tmp_path / "goose" / "sessions.db")
    store.session()
    store.session("in-our-folder", cwd=str(tmp_path / "goose" / "state" / "work"))
    store.message("user", said(prompt))
    store.message("assistant", said("They drop."))
    store.message("user", said("Hello"), session="in-our-folder")

    read = [pi(tmp_path / "pi", pears), qwen(tmp_path / "qwen", plums), droid(tmp_path / "droid", apples)]

    assert [each.events for each in read] == [(), (), ()]
    assert goose(tmp_path / "goose", store) == []


def test_kilo_reads_its_own_database_and_opencode_another(tmp_path: Path) -> None:
    opencode_store.a_morning(tmp_path / "kilo.db").close()

    (path,) = Kilo(tmp_path).transcripts()
    read = Kilo(tmp_path).read(path, None, budget=BUDGET)

    assert list(OpenCode(tmp_path).transcripts()) == []
    assert {event.provider for event in read.events} == {"kilo-code"}
