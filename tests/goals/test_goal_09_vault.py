"""Goal 9 in the vault: whatever anybody but its owner writes, no way in leaves in it what Obsidian or a plugin would load or run.

`tests/vault/test_vault_taming.py` holds the attacks, and reads each text as CommonMark does.
"""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kite_memory.errors import KiteError
from kite_memory.model.note import Decision, Fact, Insight, Preference, Record, Rejected, Topic
from kite_memory.tools.store import OWNER, Asker
from kite_memory.vault import links
from kite_memory.vault.drafting import draft
from kite_memory.vault.notefile import body_of
from kite_memory.wiring.services import Services, open_services
from tests.app.test_app_operations import config_in
from tests.counts import how_many
from tests.vault.building import chunk, event
from tests.vault.test_vault_taming import PIECES, acting

TRIED = how_many(200)


def mixture(number: int) -> str:
    chance = random.Random(f"vault {number}")
    return "".join(chance.choices(PIECES, k=chance.randrange(1, 8)))


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    with open_services(config_in(tmp_path / "house")) as services:
        services.init_vault()
        yield services


def distilled(services: Services, number: int) -> None:
    """Every text of a record, the names of its entities too; and again, so that what is new is added to a note that is there."""
    text = mixture(number)
    for turn in range(2):
        evidence, plain = (event(turn + 1).id,), f"Row {number} is pruned in March, turn {turn}."
        title, names = f"Row {number} {text}", (f"R{number}{text[:30]}", "Marcheweg")
        body = f"{text}\n\n{plain}" if turn else f"{plain} {text}"
        common: dict[str, Any] = {"title": title, "evidence": evidence, "importance": 2, "entities": names}
        items = (
            Decision(**common, body=body, origin="user", rejected=(Rejected(alternative=text, reason=text),)),
            Insight(**common, body=body, origin="assistant", symptom=text, triggers=(text,)),
            Fact(**common, body=text, origin="tool"),
            Preference(**common, body=body, origin="user"),
        )
        record = Record(topics=(Topic(name=text, summary=text, items=items, categories=(text,)),))
        made = draft(record, chunk(f"c{number}-{turn}", session=f"5e55-{number:04}-{turn}"))
        with services.vault.undisturbed():
            services.vault.planner.carry_out(services.vault.planner.plan(made))


def through_mcp(services: Services, number: int) -> None:
    text, agent = mixture(number), Asker(grant=OWNER, project="orchard")
    calls = (
        ("remember", {"text": f"Row {number} {text}"}),
        ("write_memory", {"key": f"row.{number}", "value": f"{text} pears", "tags": ["pears"]}),
        ("write_memory", {"key": f"row.{number}.more", "value": {"said": text}}),
    )
    for tool, arguments in calls:
        try:
            services.bridge.perform(tool, arguments, agent)
        except KiteError:  # the gate refuses some: those leave nothing
            continue
    saved = services.bridge.perform("generate-conversation-id", {}, agent)
    record = {
        "claude_conversation_uuid": saved["claude_conversation_uuid"],
        "topic": f"Row {number} {text}",
        "summary": f"{text} Row {number} was pruned in March, because frost comes late there.",
        "full_transcript": f"A: {text}",
    }
    services.bridge.perform("save-conversation", record, agent)


def imported(services: Services, number: int, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    text = mixture(number)
    (folder / f"{number}.md").write_text(f"# Row {number}\n\n{text}\n\nPruned in March.\n")
    front = f"---\nid: 01KJD4AZ1RD807VZNSA8{number:06}\nkind: fact\ntitle: Row {number}\nstatus: accepted\norigin: user\n---\n"
    (folder / f"ours-{number}.md").write_text(f"{front}{text}\n")


def wrong(services: Services) -> list[str]:
    """Of every page of the vault that is not of the template, what acts in it."""
    found: list[str] = []
    for path in sorted(services.vault.root.rglob("*.md")):
        if {"templates", ".trash"} & set(path.parts) or path.stem in ("Home", "README"):
            continue
        text = path.read_text(encoding="utf-8")
        acts = acting(body_of(text), linked=True) + ["a template in a property"] * ("<%" in text)
        found += [f"{path.name}: {each}" for each in acts if "<!-- kmem:" not in each]
    return found


def test_no_way_in_leaves_anything_that_acts(services: Services, tmp_path: Path) -> None:
    for number in range(TRIED):
        distilled(services, number)
        through_mcp(services, TRIED + number)
        imported(services, 2 * TRIED + number, tmp_path / "theirs")
    services.operations.perform("import", {"path": str(tmp_path / "theirs")})
    services.pipeline.compare_vault()
    services.operations.perform("synthesize", {})
    services.operations.perform("review_page", {})

    kept = list(services.vault.root.rglob("*.md"))
    assert len(kept) > 3 * TRIED
    assert (services.vault.pages.read("MEMORY.md"), services.vault.pages.read("Review.md")) != ("", "")
    assert wrong(services) == []


def test_control_without_taming_the_vault_is_full_of_it(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "_paragraph", lambda text, *, linked=False: text)

    for number in range(10):
        distilled(services, number)

    assert wrong(services)
