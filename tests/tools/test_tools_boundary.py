"""The whole way from a token to an answer, drawn by chance: nothing is read, counted or distinguished across a boundary.

The world and the model of forty lines are those of `test_bridge_conversations_boundary`; here every question is asked with a
token, over the wire, and what is hidden must be as if it had never been.
"""

import json
import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kite_memory.distill.offline import OfflineExtractor
from kite_memory.distill.saving import SaveChecker
from kite_memory.errors import KiteError
from kite_memory.mcp_server.tokens import StoredToken, Tokens
from kite_memory.text.display import age
from kite_memory.tools import declarations
from kite_memory.tools.arguments import LocalContext
from kite_memory.tools.declarations import ToolDispatcher
from kite_memory.tools.note_tools import all_tools
from kite_memory.tools.store import Asker, Grant
from tests.tools.conversing import conversing
from tests.tools.test_tools_conversations_boundary import MARK, PROJECTS, World, grant, question
from tests.vault.building import MEMORY_DISK

TOKENS = 80


@dataclass(frozen=True, slots=True)
class Guarded:
    """A bridge that is only asked with a token."""

    bridge: ToolDispatcher
    tokens: Tokens
    world: World
    chance: random.Random
    held: tuple[str, ...]

    def ask(self, token: str, tool: str, arguments: declarations.Json, project: str = "") -> str:
        kept = self.tokens.find(token, loopback=False)
        assert isinstance(kept, StoredToken)
        asked = json.loads(declarations.request_body(tool, arguments, Asker(grant=kept.grant, project=project)))
        answer = json.loads(
            json.dumps(declarations.perform(self.bridge.perform, asked["tool"], asked["arguments"], asked["asker"]))
        )
        try:
            result = declarations.result_of(answer)
            result.pop("took_ms", None)
            return json.dumps(result, sort_keys=True)
        except KiteError as error:
            return f"{type(error).__name__}: {error} ({error.hint})"


@pytest.fixture(scope="module")
def guarded() -> Iterator[Guarded]:
    chance = random.Random(11)
    with tempfile.TemporaryDirectory(dir=MEMORY_DISK) as folder, conversing(Path(folder)) as services:
        bridge = ToolDispatcher(all_tools(services.store, LocalContext(), saving=SaveChecker(rules=OfflineExtractor()), age=age))
        world = World(bridge, chance)
        world.fill(90)
        services.vault.scanner.compare()
        services.recall.refresh(services.vault.notes)
        tokens = Tokens(Path(folder) / "tokens")
        held = []
        for number in range(TOKENS):
            drawn = grant(chance)
            person = "" if number % 4 else f"person{number % 3}"
            token, _ = tokens.create(f"t{number}", write=False, scopes=drawn.scopes, projects=drawn.projects, person=person)
            held.append(token)
        yield Guarded(bridge, tokens, world, chance, tuple(held))
        tokens.close()


def strays(guarded: Guarded, triples: int) -> tuple[int, list[tuple[str, declarations.Json, Grant, str]]]:
    """How much was read at all, and what of it lay outside the token's bounds."""
    read, outside = 0, list[tuple[str, declarations.Json, Grant, str]]()
    for _ in range(triples):
        token = guarded.chance.choice(guarded.held)
        tool, arguments = question(guarded.world, guarded.chance)
        answer = guarded.ask(token, tool, arguments, guarded.chance.choice(("", *PROJECTS)))
        kept = guarded.tokens.find(token, loopback=False)
        assert isinstance(kept, StoredToken)
        for mark in set(MARK.findall(answer)):
            read += 1
            if not guarded.world.written[mark].seen_by(kept.grant):
                outside.append((tool, arguments, kept.grant, mark))
    return read, outside


def test_of_2000_triples_none_reads_across_a_boundary(guarded: Guarded) -> None:
    read, outside = strays(guarded, 2_000)

    assert read > 2_000
    assert outside == []


@pytest.mark.moonshot
@pytest.mark.timeout(3_600)
def test_of_50000_triples_none_reads_across_a_boundary(guarded: Guarded) -> None:
    read, outside = strays(guarded, 50_000)

    assert read > 50_000
    assert outside == []


def test_what_is_hidden_answers_as_what_was_never_there(guarded: Guarded) -> None:
    nothing = "00000000-0000-4000-8000-00000000dead"
    hidden = 0
    for token in guarded.held[::2]:
        none = guarded.ask(token, "get_note", {"note": nothing})
        for name in guarded.world.names:
            answer = guarded.ask(token, "get_note", {"note": name})
            if not MARK.search(answer):
                hidden += 1
                assert answer == none, name

    assert hidden > 1_000


def test_a_token_that_may_only_read_learns_nothing_from_trying_to_write(guarded: Guarded) -> None:
    refusals = set()
    for token in guarded.held[:20]:
        for name in (*guarded.world.names[:40], "00000000-0000-4000-8000-00000000dead"):
            refusals.add(guarded.ask(token, "forget", {"note": name}))
        for key in ("project.queue.1", "project.nowhere"):
            for expected in (0, 1, 7):
                asked = {"key": key, "value": 1, "project": "mycelia", "expected_version": expected}
                refusals.add(guarded.ask(token, "write_memory", asked))

    assert len(refusals) == 1
    assert "may only read" in refusals.pop()
