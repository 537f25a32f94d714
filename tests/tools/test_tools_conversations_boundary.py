"""Tokens, scopes and questions drawn by chance, against a model of forty lines: nothing is read across a boundary.

Everything that is written holds a word of its own that is never asked for; wherever it shows up, its place must be in sight.
`KMEM_BOUNDARY=50000` draws so many instead of some hundred.
"""

import json
import os
import random
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kite_memory.distill.offline import OfflineExtractor
from kite_memory.distill.saving import SaveChecker
from kite_memory.errors import KiteError
from kite_memory.model.note import Scope
from kite_memory.text.display import age
from kite_memory.tools.arguments import LocalContext
from kite_memory.tools.declarations import ToolDispatcher
from kite_memory.tools.note_tools import all_tools
from kite_memory.tools.store import OWNER, Asker, Grant
from tests.tools.conversing import conversing
from tests.vault.building import MEMORY_DISK

TRIPLES = int(os.environ.get("KMEM_BOUNDARY", "400"))
PROJECTS = ("mycelia", "orchard", "quarry")
SESSIONS = ("s1", "s2")
TOPICS = ("queue", "valve", "harvest", "lock", "migration", "gate")
MARK = re.compile(r"zz\d+x")


@dataclass(frozen=True)
class Written:
    """``project`` is empty for what belongs to none."""

    scope: Scope
    project: str

    def seen_by(self, grant: Grant) -> bool:
        if grant.person and self.scope is Scope.GLOBAL:  # a vault's are its owner's
            return False
        if grant.scopes is not None and self.scope not in grant.scopes:
            return False
        if grant.projects is None or self.project in grant.projects:
            return True
        return self.project == "" and self.scope in (Scope.GLOBAL, Scope.SHARED)


class World:
    """Notes, conversations, keyed memories and states of all places, each with its mark."""

    def __init__(self, bridge: ToolDispatcher, chance: random.Random) -> None:
        self.written: dict[str, Written] = {}
        self.names: list[str] = ["nowhere", "projects/nowhere.md"]
        self._bridge = bridge
        self._chance = chance

    def fill(self, count: int) -> None:
        for number in range(count):
            scope = self._chance.choice([*Scope])
            project = self._chance.choice(PROJECTS)
            mark, topic = f"zz{number}x", self._chance.choice(TOPICS)
            place: dict[str, Any] = {"scope": scope.value, "session_id": self._chance.choice(SESSIONS)}
            place |= {} if scope is Scope.GLOBAL else {"project": project}
            self.written[mark] = Written(scope, "" if scope is Scope.GLOBAL else project)
            text = f"The {topic} of number{number} is {mark} since it was measured"
            match self._chance.choice(["note", "memory", "state", "conversation", "conversation"]):
                case "note":
                    self._name(self._call("remember", text=text, title=f"The {topic} {mark}", **place))
                case "memory":
                    self._call("write_memory", key=f"project.{topic}.{number}", value={"said": text}, tags=[topic], **place)
                case "state":
                    self.written[mark] = Written(Scope.SESSION, project)
                    at = {"ai_id": "claude", "session_id": place["session_id"], "project": project}
                    self._call("ai_state_save", working_notes=text, todos=[f"mend {mark}"], **at)
                case _:
                    kept = Scope.PROJECT if scope is Scope.SESSION else scope
                    self.written[mark] = Written(kept, "" if kept is Scope.GLOBAL else project)
                    self._converse(mark, topic, number, place | {"scope": kept.value})

    def _converse(self, mark: str, topic: str, number: int, place: dict[str, Any]) -> None:
        """One uuid for several: distinguished by their owners."""
        uuid = str(UUID(int=number // 3, version=4))
        record = {
            "claude_conversation_uuid": uuid,
            "topic": f"The {topic} {mark}",
            "summary": f"All about the {topic}, which is {mark}.",
            "decisions": [{"decision": f"Mend the {topic} with {mark}", "reasoning": "it stalls every worker of the yard"}],
            "related_entities": [f"Entity{mark}", "PostgreSQL"],
            "full_transcript": f"User: what of {mark}?",
        }
        by = Grant(name="", scopes=frozenset({Scope(place["scope"])}), projects=frozenset({place.get("project", "")}))
        place.pop("session_id")
        saved = self._call("save-conversation", by=by, **record, **place)
        self.names += [uuid, saved["journal"], *saved["notes"]]

    def _name(self, note: dict[str, Any]) -> None:
        self.names += [note["id"], note["path"]]

    def _call(self, tool: str, by: Grant = OWNER, **arguments: Any) -> dict[str, Any]:
        return self._bridge.perform(tool, arguments, Asker(grant=by))


@pytest.fixture(scope="module")
def drawn() -> Iterator[tuple[ToolDispatcher, World, random.Random]]:
    chance = random.Random(7)
    saving = SaveChecker(rules=OfflineExtractor())
    with tempfile.TemporaryDirectory(dir=MEMORY_DISK) as folder, conversing(Path(folder)) as services:
        bridge = ToolDispatcher(all_tools(services.store, LocalContext(), saving=saving, age=age))
        world = World(bridge, chance)
        world.fill(90)
        services.vault.scanner.compare()
        services.recall.refresh(services.vault.notes)
        yield bridge, world, chance


def grant(chance: random.Random) -> Grant:
    scopes = frozenset(chance.sample([*Scope], chance.randint(0, 4)))
    projects = frozenset(chance.sample(PROJECTS, chance.randint(0, 3)))
    return Grant(
        name="token",
        write=False,
        scopes=None if chance.random() < 0.3 else scopes,
        projects=None if chance.random() < 0.2 else projects,
    )


def question(world: World, chance: random.Random) -> tuple[str, dict[str, Any]]:
    words = " ".join(chance.sample([*TOPICS, "measured", "stalls", "worker", "PostgreSQL", "number4"], 3))
    project = {"project": chance.choice(PROJECTS)} if chance.random() < 0.4 else {}
    session = {"session_id": chance.choice(SESSIONS)} if chance.random() < 0.5 else {}
    pattern = chance.choice(["*", "project.*", f"project.{chance.choice(TOPICS)}.*", f"project.queue.{chance.randrange(90)}"])
    asked: list[tuple[str, dict[str, Any]]] = [
        ("search_notes", {"query": words, "limit": 50, **project}),
        ("get-context", {"query": words, "limit": 10, "token_budget": 4_000, **project}),
        ("get_note", {"note": chance.choice(world.names), "transcript": chance.random() < 0.5}),
        ("recent_notes", {"limit": 100, **project}),
        ("read_memory", {"key": pattern, **project, **session}),
        ("list_memories", {"pattern": pattern, "limit": 100, **project, **session}),
        ("smart_resume", {**session}),
        ("ai_state_get", {"ai_id": "claude", **session}),
        ("ai_state_list", {"limit": 50, **project, **session}),
    ]
    return chance.choice(asked)


def test_nothing_is_read_across_a_boundary(drawn: tuple[ToolDispatcher, World, random.Random]) -> None:
    bridge, world, chance = drawn
    read = strays = 0
    for _ in range(TRIPLES):
        held = grant(chance)
        tool, arguments = question(world, chance)
        try:
            answer = json.dumps(bridge.perform(tool, arguments, Asker(grant=held, project=chance.choice(("", *PROJECTS)))))
        except KiteError as error:
            answer = f"{error} {error.hint}"
        for mark in set(MARK.findall(answer)):
            read += 1
            if not world.written[mark].seen_by(held):
                strays += 1
                print(tool, arguments, held, mark, world.written[mark])

    assert read > TRIPLES
    assert strays == 0
