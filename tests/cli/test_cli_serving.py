"""What `kmem serve` does before it listens: a store that comes up late, a password that others could read, what a token reaches."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from kite_memory.cli.bridging import _global_and_states
from kite_memory.cli.serving import STORE_VARIABLE, _password_in
from kite_memory.errors import UsageError
from kite_memory.mcp_server.tokens import StoredToken
from kite_memory.model.note import Scope
from kite_memory.tools.store import OWNER, Asker, StoreUnavailable
from kite_memory.wiring.team import RetryingTeamStore, TeamBridge

ASKER = Asker(grant=OWNER)
NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


def kept(**fields: Any) -> StoredToken:
    content: dict[str, Any] = {"id": "0", "write": True, "scopes": None, "projects": None, "created": NOW, "expires": None}
    return StoredToken(**{**content, **fields})


def opening(*outcomes: Exception | TeamBridge) -> Callable[[], TeamBridge]:
    left = list(outcomes)

    def open() -> TeamBridge:
        outcome = left.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return open


def away() -> StoreUnavailable:
    """The message of `wiring` for the person who starts a server: with the address, which callers do not see."""
    error = StoreUnavailable("the team's store does not answer, at db.example.org: Connection refused")
    error.__cause__ = StoreUnavailable("the team's store does not answer")
    return error


def answered(tool: str, arguments: dict[str, Any], asker: Asker) -> dict[str, Any]:
    return {"tool": tool}


THERE = TeamBridge(perform=answered, health=lambda: "", close=lambda: None)


def test_a_server_starts_while_its_store_is_late_says_so_and_answers_once_it_is_there() -> None:
    said: list[str] = []
    there = threading.Event()

    def tell(line: str) -> None:
        said.append(line)
        if "from now on" in line:
            there.set()

    late = RetryingTeamStore(opening(away(), away(), THERE), tell=tell, first=0.01)
    reason = late.starting()
    with pytest.raises(StoreUnavailable):
        late.perform("read_memory", {"key": "k"}, ASKER)
    assert there.wait(30)

    assert reason == "the team's store does not answer; trying again until it does"
    assert [line.partition(";")[0] for line in said] == [
        "the team's store does not answer, at db.example.org: Connection refused",
        "the team's store answers",
    ]
    assert (late.starting(), late.health()) == ("", "")
    assert late.perform("read_memory", {"key": "k"}, ASKER) == {"tool": "read_memory"}
    late.close()


def test_a_store_that_fails_in_an_unforeseen_way_is_tried_again() -> None:
    there = threading.Event()
    late = RetryingTeamStore(
        opening(away(), RuntimeError("a bug"), THERE), tell=lambda line: there.set() if "from now on" in line else None, first=0.01
    )

    assert there.wait(30)
    late.close()


def test_a_server_whose_store_is_named_wrongly_does_not_start() -> None:
    with pytest.raises(UsageError):
        RetryingTeamStore(opening(UsageError("invalid store URL")), tell=lambda line: None)


def test_health_is_that_of_the_store_now() -> None:
    late = RetryingTeamStore(
        opening(TeamBridge(perform=answered, health=lambda: "it is away", close=lambda: None)), tell=lambda line: None
    )

    assert (late.starting(), late.health()) == ("", "it is away")


@pytest.mark.parametrize(
    ("url", "is_seen"),
    [
        ("postgresql://kite:s3cret@db.example.org/kite", True),
        ("postgresql://kite@db.example.org/kite?password=s3cret", True),
        ("postgresql://kite@db.example.org/kite", False),
        ("team", False),
    ],
)
def test_a_password_on_the_command_line_is_noticed_and_one_in_the_environment_is_not(
    monkeypatch: pytest.MonkeyPatch, url: str, is_seen: bool
) -> None:
    assert _password_in(url) is is_seen

    monkeypatch.setenv(STORE_VARIABLE, url)
    assert not _password_in(url)


def test_what_a_new_token_reaches_is_said_exactly() -> None:
    assert _global_and_states(kept(name="ada")) == [
        "global memories: ada's own on a team's store, the owner's on this machine's vault"
    ]
    assert _global_and_states(kept(name="laptop", person="ada")) == [
        "global memories: ada's own on a team's store, none on this machine's vault"
    ]
    assert _global_and_states(kept(name="ci", scopes=frozenset({Scope.PROJECT}))) == [
        "global memories: none (that takes --scope global)",
        "no AI state and no session memories (that takes --scope session)",
        "no shared memories (that takes --scope shared)",
    ]
