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


def test_control_a_database_that_is_not_purged_is_found(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    taken_in(services, planted(TRIED + 9))
    monkeypatch.setattr(sqlite, "purge", lambda database: True)
    monkeypatch.setattr(sqlite, "rewrite", lambda database: True)

    forgotten(services, planted(TRIED + 9))

    assert holding(services.config.state, planted(TRIED + 9).word)
