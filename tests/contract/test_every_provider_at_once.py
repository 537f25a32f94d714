"""All agents in one memory: what `kmem status` says of each, and that very many sessions are no more than many."""

import json
from collections.abc import Callable
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kite_memory.config import Config
from kite_memory.extensions.contract.source_contract import BadInputContract, watched
from kite_memory.model.event import Event
from kite_memory.wiring.services import open_services
from tests.contract.held_sources import HELD
from tests.counts import examples
from tests.fakes.cursor_store import EditorState
from tests.fakes.goose_store import GooseStore
from tests.fakes.opencode_store import OpenCodeStore

CWD = "/home/ada/orchard"
WATCHED = [provider for provider in HELD if provider != "git"]
"""Repositories are looked at where agents have worked; a folder of their own they have not."""


def held(provider: str) -> BadInputContract:
    module, _, name = HELD[provider].partition(".")
    made = getattr(import_module(f"tests.contract.{module}"), name)()
    assert isinstance(made, BadInputContract)
    return made


def config_with_all(folder: Path) -> Config:
    """Each agent's home is the folder named after it, where what holds its source lays its transcripts."""
    return Config(
        file=folder / "config.toml",
        state=folder / "state",
        vault=folder / "vault",
        claude_root=folder / "claude-code",
        codex_root=folder / "codex",
        gemini_root=folder / "gemini-cli",
        copilot_root=folder / "copilot-cli",
        cline_roots=(folder / "cline",),
        roo_roots=(folder / "roo-code",),
        aider_roots=(folder / "aider" / "orchard",),
        opencode_root=folder / "opencode" / "opencode",
        cursor_root=folder / "cursor" / "User",
        cursor_cli_root=folder / "cursor" / "cli",
        antigravity_root=folder / "antigravity",
        kilo_root=folder / "kilo-code" / "kilo",
        pi_root=folder / "pi",
        qwen_root=folder / "qwen-code",
        goose_roots=(folder / "goose" / "sessions",),
        droid_root=folder / "droid",
    )


def test_status_says_of_each_provider_what_was_found_read_and_passed_over(tmp_path: Path) -> None:
    events: dict[str, list[Event]] = {}
    problems: dict[str, int] = {}
    for provider in WATCHED:
        contract = held(provider)
        path = contract.written(tmp_path / provider)
        looks = contract.read_results(contract.make(tmp_path / provider), path)
        events[provider] = [event for look in looks for event in look.events]
        problems[provider] = sum(len(look.problems) for look in looks)

    with open_services(config_with_all(tmp_path)) as services:
        before = {each["provider"]: each for each in services.operations.perform("status", {})["sources"]}
        services.pipeline.ingest_many([(source, path) for source, path, _ in services.pipeline.unread()])
        after = {each["provider"]: each for each in services.operations.perform("status", {})["sources"]}

    assert {name: (result["there"], result["found"], result["read"]) for name, result in before.items()} == dict.fromkeys(
        WATCHED, (True, 1, 0)
    )
    assert {name: (result["there"], result["found"], result["read"]) for name, result in after.items()} == dict.fromkeys(
        WATCHED, (True, 1, 1)
    )
    assert {name: result["skipped"] for name, result in after.items()} == problems
    assert sum(result["events"] for result in after.values()) == len({event.id for result in events.values() for event in result})
    assert {name: result["sessions"] for name, result in after.items()} == {
        name: len({event.session for event in result}) for name, result in events.items()
    }
    assert {name for name, result in after.items() if result["behind_bytes"]} == set()


def test_where_every_folder_is_a_file_status_says_that_nothing_is_there(tmp_path: Path) -> None:
    for provider in WATCHED:
        for root in watched(held(provider).make(tmp_path / provider)):
            root.parent.mkdir(parents=True, exist_ok=True)
            root.write_text("a file")

    with open_services(config_with_all(tmp_path)) as services:
        services.pipeline.ingest_many([(source, path) for source, path, _ in services.pipeline.unread()])
        sources = services.operations.perform("status", {})["sources"]

    assert [(each["provider"], each["there"], each["found"]) for each in sources] == [
        (provider, False, 0) for provider in sorted(WATCHED)
    ]


def test_a_transcript_that_cannot_be_read_is_not_said_to_have_been(tmp_path: Path) -> None:
    """Its folder is where it should be; its files are there."""
    for provider in WATCHED:
        held(provider).place(tmp_path / provider).mkdir(parents=True)

    with open_services(config_with_all(tmp_path)) as services:
        for source, path, _ in list(services.pipeline.unread()):
            services.pipeline.ingest(source, path)
        sources = services.operations.perform("status", {})["sources"]

    assert {each["provider"] for each in sources if each["read"] or each["events"] or each["sessions"]} == set()


Laid = Callable[[Path, int], None]


def name_of(number: int) -> str:
    return str(UUID(int=(number << 96) | (4 << 76) | (8 << 60)))


def rows(path: Path, *content: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in content), encoding="utf-8")


AT = "2026-03-02T09:00:00.000Z"
MS = 1_772_442_000_000


def claude(home: Path, number: int) -> None:
    name = name_of(number)
    row = {"type": "user", "uuid": name, "parentUuid": None, "sessionId": name, "cwd": CWD, "timestamp": AT, "version": "2.1.0"}
    rows(
        home / "projects" / "-home-ada-orchard" / f"{name}.jsonl",
        {**row, "message": {"role": "user", "content": f"Graft {number}"}},
    )


def codex(home: Path, number: int) -> None:
    name = name_of(number)
    head = {"id": name, "timestamp": AT, "cwd": CWD, "originator": "codex_cli", "cli_version": "0.140.0", "source": "cli"}
    rows(
        home / "sessions" / "2026" / "03" / "02" / f"rollout-2026-03-02T09-00-00-{name}.jsonl",
        {"timestamp": AT, "type": "session_meta", "payload": head},
        {"timestamp": AT, "type": "event_msg", "payload": {"type": "user_message", "message": f"Graft {number}"}},
    )


def gemini(home: Path, number: int) -> None:
    name = name_of(number)
    rows(
        home / "tmp" / "orchard" / "chats" / f"session-2026-03-02T09-00-{number:08x}.jsonl",
        {"sessionId": name, "projectHash": "orchard", "startTime": AT, "kind": "main"},
        {"id": name, "type": "user", "timestamp": AT, "content": f"Graft {number}"},
    )


def copilot(home: Path, number: int) -> None:
    name = name_of(number)
    rows(
        home / "session-state" / name / "events.jsonl",
        {"type": "session.start", "id": f"s{number}", "timestamp": AT, "data": {"context": {"cwd": CWD}}},
        {"type": "user.message", "id": name, "timestamp": AT, "data": {"content": f"Graft {number}"}},
    )


def task(home: Path, number: int) -> None:
    path = home / "tasks" / str(MS + number) / "api_conversation_history.json"
    path.parent.mkdir(parents=True)
    text = {"type": "text", "text": f"<task>\nGraft {number}\n</task>"}
    path.write_text(json.dumps([{"role": "user", "content": [text], "ts": MS + number}]), encoding="utf-8")


def antigravity(home: Path, number: int) -> None:
    rows(
        home / "antigravity-cli" / "brain" / name_of(number) / ".system_generated" / "logs" / "transcript_full.jsonl",
        {"step_index": 0, "source": "USER_EXPLICIT", "type": "USER_INPUT", "created_at": AT, "content": f"Graft {number}"},
    )


def aider(home: Path, count: int) -> None:
    path = home / "orchard" / ".aider.chat.history.md"
    path.parent.mkdir(parents=True)
    minutes = ((number // 60 % 24, number % 60, number // 1_440) for number in range(count))
    path.write_text(
        "".join(
            f"\n# aider chat started at 2026-{day // 28 + 1:02}-{day % 28 + 1:02} {hour:02}:{minute:02}:00\n\n"
            "#### Graft  \n\nDone.\n\n"
            for hour, minute, day in minutes
        ),
        encoding="utf-8",
    )


def opencode(home: Path, count: int, place: str = "opencode/opencode.db") -> None:
    with closing(OpenCodeStore(home / place)) as store:
        store.connection.execute("BEGIN")
        for number in range(count):
            store.session(f"ses_{number}")
            store.prompt(f"ses_{number}", f"Graft {number}")
        store.connection.execute("COMMIT")


def cursor(home: Path, count: int) -> None:
    with closing(EditorState(home / "User" / "globalStorage" / "state.vscdb")) as state:
        state.connection.execute("BEGIN")
        for number in range(count):
            state.bubble(name_of(number), 1, f"Graft {number}", name=name_of(number))
            state.order[name_of(number)] = [{"bubbleId": name_of(number), "type": 1}]
            state.conversation(name_of(number))
        state.connection.execute("COMMIT")


def pi(home: Path, number: int) -> None:
    name = name_of(number)
    rows(
        home / "sessions" / "--home-ada-orchard--" / f"2026-03-02T09-00-00-000Z_{name}.jsonl",
        {"type": "session", "version": 3, "id": name, "timestamp": AT, "cwd": CWD},
        {"type": "message", "id": f"{number:08x}", "timestamp": AT, "message": {"role": "user", "content": f"Graft {number}"}},
    )


def qwen(home: Path, number: int) -> None:
    name = name_of(number)
    row = {"type": "user", "uuid": name, "sessionId": name, "timestamp": AT, "cwd": CWD}
    rows(
        home / "projects" / "-home-ada-orchard" / "chats" / f"{name}.jsonl",
        {**row, "message": {"role": "user", "parts": [{"text": f"Graft {number}"}]}},
    )


def droid(home: Path, number: int) -> None:
    name = name_of(number)
    rows(
        home / "sessions" / "-home-ada-orchard" / f"{name}.jsonl",
        {"type": "session_start", "id": name, "cwd": CWD},
        {"type": "message", "id": name, "timestamp": AT, "message": {"role": "user", "content": f"Graft {number}"}},
    )


def kilo(home: Path, count: int) -> None:
    opencode(home, count, "kilo/kilo.db")


def goose(home: Path, count: int) -> None:
    with closing(GooseStore(home / "sessions" / "sessions.db")) as store:
        store.connection.execute("BEGIN")
        for number in range(count):
            store.session(f"20260302_{number}")
            store.message("user", {"type": "text", "text": f"Graft {number}"}, session=f"20260302_{number}")
        store.connection.execute("COMMIT")


ONE_BY_ONE: dict[str, Laid] = {
    "claude-code": claude,
    "codex": codex,
    "gemini-cli": gemini,
    "copilot-cli": copilot,
    "cline": task,
    "roo-code": task,
    "antigravity": antigravity,
    "pi": pi,
    "qwen-code": qwen,
    "droid": droid,
}
TOGETHER: dict[str, Laid] = {"aider": aider, "opencode": opencode, "cursor": cursor, "kilo-code": kilo, "goose": goose}


@pytest.mark.parametrize("count", [examples(1_000), pytest.param(10_000, marks=[pytest.mark.moonshot, pytest.mark.timeout(7_200)])])
def test_every_agent_with_very_many_sessions_each(tmp_path: Path, count: int) -> None:
    for provider, lay in ONE_BY_ONE.items():
        for number in range(count):
            lay(tmp_path / provider, number)
    for provider, lay in TOGETHER.items():
        lay(tmp_path / provider, count)

    with open_services(config_with_all(tmp_path)) as services:
        found = services.pipeline.unread()
        services.pipeline.ingest_many((source, path) for source, path, _ in found)
        by_name = {each["provider"]: each for each in services.operations.perform("status", {})["sources"]}
        left = services.pipeline.unread()

    assert len(found) == len(ONE_BY_ONE) * count + len(TOGETHER)
    assert {name: each["sessions"] for name, each in by_name.items()} == dict.fromkeys(WATCHED, count)
    assert {name: each["found"] - each["read"] for name, each in by_name.items()} == dict.fromkeys(WATCHED, 0)
    assert {name: each["skipped"] for name, each in by_name.items()} == dict.fromkeys(WATCHED, 0)
    assert left == []
