"""What one person's `kmem serve` knows reaches another's prompt: real processes on both sides, and the real hook between."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.kmem import Machine, eventually
from tests.e2e.test_e2e_mcp import serving

FACT = "The kettle service is descaled on Mondays at noon by the night shift, with vinegar."
ASKS = "when is the kettle service descaled, and by whom?"
UNRELATED = "rename the parser's visitor classes to walkers everywhere"
TRIES = 15


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[tuple[Machine, Machine]]:
    """The team's, and Ada's."""
    team, ada = (Machine(tmp_path / name, {"KMEM_EXTRACTOR": "offline"}) for name in ("team", "ada"))
    (ada.home / "mycelia" / ".git").mkdir(parents=True)
    yield team, ada
    ada.kmem("down")


def prompted(machine: Machine, prompt: str, session: str) -> str:
    payload = {"hook_event_name": "UserPromptSubmit", "session_id": session, "cwd": str(machine.home / "mycelia"), "prompt": prompt}
    ran = machine.hook(payload)
    assert ran.code == 0
    return ran.out


def test_a_note_of_the_team_s_reaches_a_prompt_once(machines: tuple[Machine, Machine]) -> None:
    team, ada = machines
    assert team.kmem("remember", FACT, "--project", "mycelia").code == 0
    token = team.kmem("token", "create", "ada", "--project", "mycelia", "--read-only").out.strip()
    ada.environment["KMEM_TEAM_TOKEN"] = token
    with serving(team) as url:
        ada.configure(f'[team]\nbridge = "{url}"\nask = "search"\n')
        assert ada.kmem("up", "--yes", "--no-hooks").code == 0
        while_searches_ask = prompted(ada, ASKS, "before")
        # A busy machine may take longer than a search waits for the team.
        found = eventually(lambda: ada.kmem("search", "kettle", "--json").code == 0)
        ada.configure(f'[team]\nbridge = "{url}"\nask = "prompt"\n')
        shown, session = "", ""
        for number in range(TRIES):  # a busy machine may take longer than a prompt has, and three times in a row is too often
            if number % 3 == 0:
                ada.kmem("down")
                assert ada.kmem("up", "--yes", "--no-hooks").code == 0
            session = f"session-{number}"
            if shown := prompted(ada, ASKS, session):
                break
        audited = (team.state / "logs" / "audit.log").read_text()
        again = prompted(ada, ASKS, session)
        unrelated = prompted(ada, UNRELATED, "other")
        confirmed = prompted(ada, "yes, go ahead", "third")
        given = ada.kmem("why", "--last", "20", "--json").json()["prompts"]

    assert while_searches_ask == again == unrelated == confirmed == ""
    assert found
    assert "this user's team" in shown and FACT in shown
    assert [json.loads(line)["what"] for line in audited.splitlines()][-2:] == ["search_notes", "get_note"]
    assert "kettle" not in audited
    assert token not in (ada.state / "logs" / "daemon.log").read_text()
    assert [note["title"] for each in given if each["moment"] == "team" for note in each["notes"]] == ["(the team's)"]
