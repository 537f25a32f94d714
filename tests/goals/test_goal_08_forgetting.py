"""Goal 8, once more: what is forgotten with its evidence stands in no byte of the state folder, its open databases included."""

import json
import random
import string
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from kite_memory.distill.budget import Budget
from kite_memory.distill.condense import Span
from kite_memory.distill.extractor import Usage
from kite_memory.extensions.contract.extractor_contract import SESSION
from kite_memory.model.event import Event
from kite_memory.model.note import Decision, Fact, Insight, Record, Rejected, Topic
from kite_memory.redaction import redact_result
from kite_memory.sources.claude_code.source import ClaudeCode
from kite_memory.system import sqlite
from kite_memory.tools.store import OWNER, Asker
from kite_memory.wiring.services import Services, open_services
from tests.app.test_app_operations import config_in
from tests.counts import how_many
from tests.fakes.work import Work

TRIED = how_many(100)
WINDOW = 8
"""Letters of a word in a row that are a leak."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A note about one made-up word, and the session whose lines it rests on."""

    word: str
    title: str
    events: tuple[Event, ...]
    work: Work


def planted(number: int) -> Planted:
    """The word stands in a prompt, an answer, a command, a file's name and a failure."""
    chance = random.Random(f"forgotten {number}")
    word = "".join(chance.choices(string.ascii_lowercase, k=12))
    work = Work().asked(f"Which {word} opens the gate of the orchard in row {number}, and when was it last oiled?")
    work.said(f"The {word} hangs behind the pump; it was oiled in March.").edited(f"{SESSION.cwd}/{word}.py")
    work.ran(f"make {word}", f"Error: no rule to make target '{word}'", "failed").said(f"So {word} it is, from now on.")
    work.session = replace(work.session, id=f"{number:08x}-0000-4000-8000-000000000001", title=f"The {word}")
    work.events = [
        replace(event, session=work.session.id, id=f"{number:04x}{place:04x}-0000") for place, event in enumerate(work.events)
    ]
    return Planted(word=word, title=f"The {word} opens gate {number}", events=tuple(work.events), work=work)


def taken_in(services: Services, one: Planted) -> None:
    """By every way that keeps something: the timeline, the outbox, the vault and its pages, the index, what was shown."""
    services.timeline.commit([one.work.look()], SESSION.provider)
    session = one.work.session
    ids = tuple(event.id for event in one.events)
    body = f"The {one.word} opens the gate. It hangs behind the pump, and {one.word} wants oil every March."
    items = (
        Decision(
            title=one.title,
            body=body,
            evidence=ids,
            importance=3,
            origin="user",
            rejected=(Rejected(alternative=f"a {one.word} lock", reason=f"{one.word} rusts"),),
        ),
        Insight(title=f"No rule for {one.word}", body=body, evidence=ids, importance=2, origin="user", symptom=one.word),
        Fact(title=f"Where {one.word} hangs", body=f"Behind the pump hangs {one.word}.", evidence=ids, importance=2, origin="user"),
    )
    record = Record(topics=(Topic(name=f"the {one.word}", summary=body, items=items, entities=(one.word,)),))
    chunk = f"chunk-{session.id}"
    services.outbox.formed.add([Span(id=chunk, provider=SESSION.provider, session=session.id, first=0, last=99, weight=9)])
    services.outbox.reserve(chunk, Usage(), Budget(dollars=1.0, calls=9), day="2026-03-01")
    services.outbox.answer(chunk, record, Usage(), extractor="invented")
    services.pipeline.publish()
    services.pipeline.compare_vault()
    perform(services, "synthesize")
    for asking in (session.id, "another-session"):
        prompt = {"hook_event_name": "UserPromptSubmit", "session_id": asking, "cwd": SESSION.cwd, "prompt": one.events[0].text}
        services.hooks.answer(json.dumps(prompt).encode())
    services.bridge.perform("search_notes", {"query": f"which {one.word} opens the gate"}, Asker(grant=OWNER))
    while services.timeline.vectors.embed(services.meaning):
        pass


def perform(services: Services, op: str, **arguments: Any) -> dict[str, Any]:
    answered: dict[str, Any] = json.loads(json.dumps(services.operations.perform(op, arguments)))
    return answered


def holding(folder: Path, word: str) -> dict[str, str]:
    """By file, a piece of the word that stands in it, whatever case it is in."""
    pieces = [word[at : at + WINDOW].encode() for at in range(len(word) - WINDOW + 1)]
    contents = {path.name: path.read_bytes().lower() for path in folder.rglob("*") if path.is_file()}
    return {name: piece.decode() for name, content in contents.items() for piece in pieces if piece in content}


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    with open_services(config_in(tmp_path_factory.mktemp("forgetting"))) as services:
        services.init_vault()
        yield services


def forgotten(services: Services, one: Planted) -> dict[str, Any]:
    return perform(services, "forget", session=one.work.session.id, with_evidence=True)


def test_no_byte_of_the_state_folder_shows_what_was_forgotten(services: Services) -> None:
    left: dict[str, dict[str, str]] = {}
    tried = [planted(number) for number in range(TRIED)]
    for one in tried:
        taken_in(services, one)
    kept = {name.removesuffix("-wal") for one in tried for name in holding(services.config.state, one.word)}

    for number, one in enumerate(tried):
        assert len(forgotten(services, one)["notes"]) >= 3
        if number % 10 == 0 or number == len(tried) - 1:
            left |= {each.word: found for each in tried[: number + 1] if (found := holding(services.config.state, each.word))}

    assert {"timeline.sqlite", "outbox.sqlite", "vault.sqlite", "shown.sqlite", "catalogue.db"} <= kept
    assert left == {}
    assert [one.word for one in tried if one.word in services.vault.pages.read("MEMORY.md")] == []


def test_nor_does_the_vault_outside_of_its_trash(services: Services) -> None:
    for number in range(TRIED, TRIED + 3):
        taken_in(services, planted(number))
    forgotten(services, planted(TRIED))

    kept = [path for path in services.vault.root.rglob("*") if path.is_file() and ".trash" not in path.parts]

    assert [path.name for path in kept if planted(TRIED).word in f"{path.name} {path.read_text()}".casefold()] == []
    assert any(planted(TRIED + 1).word in path.read_text().casefold() for path in kept)


def transcript(word: str, session: str) -> list[str]:
    """Claude Code's lines of a session whose title, background command and open call hold the word; the last are their results."""

    def row(number: int, role: str, content: object, **more: object) -> str:
        line = {"type": role, "uuid": f"{number:08x}-{session[9:]}", "sessionId": session, "cwd": "/home/u/orchard", **more}
        at = f"2026-03-02T10:00:{number:02d}.000Z"
        return json.dumps({**line, "timestamp": at, "message": {"role": role, "content": content}})

    def call(name: str, tool: str, **given: object) -> list[dict[str, object]]:
        return [{"type": "tool_use", "id": name, "name": tool, "input": given}]

    def result(name: str, text: str) -> list[dict[str, object]]:
        return [{"type": "tool_result", "tool_use_id": name, "content": text}]

    started = "Command running in background with ID: abc123"
    return [
        row(1, "user", f"Please ask the {word} about the pump in the orchard."),
        json.dumps({"type": "ai-title", "aiTitle": f"The {word} and the pump", "sessionId": session}),
        row(2, "assistant", call("t1", "Bash", command=f"pytest tests/{word}", run_in_background=True)),
        row(3, "user", result("t1", started), toolUseResult={"backgroundTaskId": "abc123"}),
        row(4, "assistant", call("t2", "Bash", command=f"make {word} --watch")),
        row(5, "assistant", call("t3", "BashOutput", bash_id="abc123")),
        row(6, "user", result("t3", "<status>completed</status>\n<exit_code>0</exit_code>\n==== 3 passed in 0.1s ====")),
        row(7, "user", result("t2", "The pump runs.")),
    ]


def test_what_a_reader_carries_on_is_erased_and_does_not_bring_it_back(services: Services, tmp_path: Path) -> None:
    word, session = "zanderfisch", "5e55e55e-0000-4000-8000-000000000001"
    file = tmp_path / "claude" / "projects" / "-home-u-orchard" / f"{session}.jsonl"
    file.parent.mkdir(parents=True)
    source = ClaudeCode(tmp_path / "claude", own_state=tmp_path / "own")

    def read(lines: list[str]) -> list[Event]:
        with file.open("a") as transcript:
            transcript.write("".join(f"{line}\n" for line in lines))
        found = source.read(file, services.timeline.files.cursor(str(file)), budget=1 << 20)
        services.timeline.commit([redact_result(found)], "claude-code")
        return services.timeline.events.of_session("claude-code", session)

    lines = transcript(word, session)
    first = read(lines[:5])
    before = services.timeline.files.cursor(str(file))
    for each in first:
        perform(services, "forget", note=each.reference, with_evidence=True)

    assert before is not None and before.carry.count(word) == 3
    assert holding(services.config.state, word) == {}
    assert len(read(lines[5:])) > len(first)
    assert holding(services.config.state, word) == {}


def test_control_a_database_that_is_not_purged_is_found(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    taken_in(services, planted(TRIED + 9))
    monkeypatch.setattr(sqlite, "purge", lambda database: True)
    monkeypatch.setattr(sqlite, "rewrite", lambda database: True)

    forgotten(services, planted(TRIED + 9))

    assert holding(services.config.state, planted(TRIED + 9).word)
