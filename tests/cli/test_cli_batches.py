"""A backlog sent in batches: what a person sees, from the command to the notes."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.cli.transcript import in_this_process
from tests.e2e.kmem import Machine, Ran
from tests.fakes.anthropic_server import Json, anthropic_server, text_message
from tests.fakes.work import leave_work

SAID = "Claims of the sweeper are taken back once they are older than their lease, and a lock was rejected since it runs alone."


def _answer(asked: Json) -> Json:
    text = asked["messages"][0]["content"]
    (event,) = [line[1:].partition("]")[0] for line in text.splitlines() if "AGENT: The lease is read" in line]
    item = {
        "evidence": [event],
        "kind": "decision",
        "title": "The sweeper runs alone, without a lock",
        "body": SAID,
        "importance": 2,
    }
    labels = ["A", "B"] if 'stretch="B"' in text else ["A"]
    shown = text.find('stretch="B"')
    holder = "B" if 0 <= shown < text.find(event) else "A"
    rows = [{"stretch": label, "items": [item] if label == holder else []} for label in labels]
    return text_message(json.dumps({"stretches": rows}), usage={"input_tokens": 10_000, "output_tokens": 1_000})


def test_a_backlog_becomes_notes_at_half_the_price(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "home")
    project = tmp_path / "orchard"
    project.mkdir()
    leave_work(machine.home / ".claude", project)
    with anthropic_server(_answer) as server:
        environment = {"ANTHROPIC_API_KEY": "sk-ant-invented", "ANTHROPIC_BASE_URL": server.url}

        def kmem(*arguments: str) -> Ran:
            return in_this_process(machine, list(arguments), cwd=project, environment=environment)

        sent = kmem("backfill", "--batch")
        assert sent.code == 0
        assert "in a batch; the daemon takes the answers" in sent.err
        ((request,),) = server.batches.values()
        assert "in a batch, answered within a day at half the price" in kmem("status").out
        assert not list(machine.vault.glob("decisions/*.md"))

        server.batches_over = True
        with closing(sqlite3.connect(machine.state / "outbox.sqlite")) as outbox, outbox:
            outbox.execute("UPDATE batches SET check_at = 0")
        assert kmem("backfill").code == 0

        status = kmem("status", "--json").json()["extractor"]
        assert (status["chunks_in_batches"], status["backlog_chunks"], status["calls_today"]) == (0, 0, 1)
        assert status["cost_usd"] == 0.00075
        assert server.requests == []
        assert request["custom_id"] and len(server.batches) == 1
        assert SAID in next(machine.vault.glob("decisions/*.md")).read_text()
