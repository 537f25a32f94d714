"""Without a daemon, what a command answered is kept while nothing changes, and answered anew once anything has."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.kmem import Machine
from tests.fakes.work import leave_work
from tests.sources.transcript import Transcript

LONG_AGO = 1_772_355_600


def kept(machine: Machine, name: str) -> bytes:
    return (machine.state / "answers" / f"{name}.json").read_bytes()


def write_transcript(machine: Machine, number: int) -> None:
    transcript = Transcript(f"5e551011-0000-4000-8000-{number:012d}", first=1 + 10 * number)
    transcript.user("Prune the old plum tree, because its crown shades the young ones below it all summer long.")
    transcript.assistant("Pruned.")
    path = machine.home / ".claude" / "projects" / "-orchard" / f"5e551011-0000-4000-8000-{number:012d}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(transcript.bytes)
    os.utime(path, (LONG_AGO, LONG_AGO))


@pytest.fixture
def machine(machine: Machine) -> Machine:
    leave_work(machine.home / ".claude", machine.home / "orchard")
    for path in (machine.home / ".claude").rglob("*.jsonl"):
        os.utime(path, (LONG_AGO, LONG_AGO))
    assert machine.kmem("backfill").code == 0
    return machine


def status(machine: Machine) -> Any:
    return machine.kmem("status", "--json").json()


def source(machine: Machine) -> Any:
    (claude_code,) = (each for each in status(machine)["sources"] if each["provider"] == "claude-code")
    return claude_code


def test_a_repeated_backfill_says_the_same(machine: Machine) -> None:
    first, before = machine.kmem("backfill"), kept(machine, "backfill")

    again = machine.kmem("backfill")

    assert (again.code, again.err) == (0, first.err)
    assert "claude-code: 2 sessions" in again.err
    assert kept(machine, "backfill") == before


def test_a_new_transcript_is_read(machine: Machine) -> None:
    machine.kmem("backfill")
    write_transcript(machine, 7)

    assert "claude-code: 3 sessions" in machine.kmem("backfill").err


@pytest.mark.parametrize("page", ["MEMORY.md", "Review.md"])
def test_a_page_that_was_deleted_is_written_again(machine: Machine, page: str) -> None:
    machine.kmem("backfill")
    before = (machine.vault / page).read_text() if (machine.vault / page).exists() else None
    (machine.vault / page).unlink(missing_ok=True)

    machine.kmem("backfill")

    assert ((machine.vault / page).read_text() if (machine.vault / page).exists() else None) == before


def test_a_status_counts_what_was_written_since(machine: Machine) -> None:
    before = status(machine)
    assert status(machine) == before

    assert machine.kmem("remember", "Plums are pruned in summer, never in frost").code == 0

    assert status(machine)["notes"]["total"] == before["notes"]["total"] + 1


def test_a_kept_status_compares_transcripts(machine: Machine) -> None:
    before = source(machine)
    write_transcript(machine, 7)

    after = source(machine)

    assert (after["found"], after["read"]) == (before["found"] + 1, before["read"])
    assert after["behind_bytes"] > before["behind_bytes"]


def test_a_damaged_answer_is_not_used(machine: Machine) -> None:
    before = status(machine)

    for damage in (b"", b"{", b"[]", b'{"found": 1, "until": 1e99, "answer": {}}'):
        (machine.state / "answers" / "status.json").write_bytes(damage)
        assert status(machine) == before, damage


def test_a_link_that_leads_nowhere_is_no_trouble(machine: Machine) -> None:
    (machine.vault / ".#note.md").symlink_to("ada@orchard.4711")  # as Emacs makes one beside a file that is not saved

    assert machine.kmem("status").code == 0
    assert kept(machine, "status")


def test_an_answer_of_another_setting_is_not_used(machine: Machine) -> None:
    assert status(machine)["extractor"]["budget_usd"] == 0

    machine.environment["KMEM_EXTRACTOR"] = "openai"

    assert status(machine)["extractor"]["name"] == "openai"


def test_an_edited_note_is_found_by_the_next_search(machine: Machine) -> None:
    written = Path(machine.kmem("remember", "Plums are pruned in summer", "--json").json()["path"])
    machine.kmem("search", "plums")
    note = machine.vault / written
    note.write_text(note.read_text().replace("summer", "zanzibarian spring"))

    assert "zanzibarian" in machine.kmem("search", "zanzibarian").out


_WITH_ALL_SERVICES = """
import json, sys
from kite_memory.cli.backend import _make_cards, catch_up, services
with services() as here:
    catch_up(here)
    _make_cards(here.timeline)
    print(json.dumps(here.operations.perform(sys.argv[1], json.loads(sys.argv[2]))))
"""


def with_all_services(machine: Machine, op: str, **arguments: object) -> Any:
    command = [sys.executable, "-c", _WITH_ALL_SERVICES, op, json.dumps(arguments)]
    return json.loads(subprocess.run(command, env=machine.env(), cwd=machine.home, capture_output=True, check=True).stdout)


def test_a_status_from_parts_is_that_of_all_services(machine: Machine) -> None:
    assert machine.kmem("remember", "Plums are pruned in summer").code == 0
    (machine.state / "answers" / "status.json").unlink(missing_ok=True)
    write_transcript(machine, 7)

    assert status(machine) == with_all_services(machine, "status")


def test_an_answer_from_parts_is_that_of_all_services(machine: Machine) -> None:
    assert machine.kmem("remember", "Plums are pruned in summer, never in frost").code == 0
    question = "when are plums pruned?"

    answer = machine.kmem("ask", question, "--json").json()

    assert answer["sentences"]
    whole = with_all_services(machine, "ask", question=question, cwd=str(machine.home))
    assert answer == {**whole, "took_ms": answer["took_ms"]}
