"""The measurement of extraction, over one invented session."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench.extraction.extract_gold import live, main
from kite_memory.distill.condense import ChunkPolicy
from kite_memory.extensions.contract.extractor_contract import DECIDED, EXPLAINED, answer_to, event
from kite_memory.model.event import EventType
from tests.sources.transcript import SESSION, Transcript


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    """A folder of labels for a project, with its transcript beside it."""
    written = Transcript(SESSION)
    written.user(DECIDED)
    written.assistant(EXPLAINED)
    (tmp_path / "transcripts").mkdir()
    (tmp_path / "transcripts" / f"{SESSION}.jsonl").write_bytes(written.bytes)
    gold = tmp_path / "gold" / "orchard"
    gold.mkdir(parents=True)
    (gold / "sessions.tsv").write_text(f"01\t2026-03-01T09:00:00Z\t{SESSION}.jsonl\t1\n", encoding="utf-8")
    (gold / "prompts.jsonl").write_text("", encoding="utf-8")
    first = json.loads(written.bytes.splitlines()[0])["uuid"][:8]
    label = {
        "session": "01", "kind": "decision", "title": "PostgreSQL for the job queue", "body": DECIDED, "rejected": [],
        "entities": ["PostgreSQL"], "evidence": [first], "importance": 3, "supersedes": [],
    }  # fmt: skip
    (gold / "notes.jsonl").write_text(json.dumps(label) + "\n", encoding="utf-8")
    return tmp_path


def measured(folder: Path, extractor: str) -> list[dict[str, Any]]:
    folders = {"--gold": "gold", "--transcripts": "transcripts", "--out": "out"}
    main(["--extractor", extractor, *(part for flag, name in folders.items() for part in (flag, str(folder / name)))])
    return rows(folder / "out" / "orchard" / "notes.jsonl")


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_notes_and_order_come_in_the_scorers_form(labels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    notes = measured(labels, "offline")

    (order,) = rows(labels / "out" / "orchard" / "order.jsonl")
    assert {note["session"] for note in notes} == {order["session"]} == {"01"}
    assert any("PostgreSQL" in note["body"] and note["kind"] == "decision" for note in notes)
    assert {event for note in notes for event in note["evidence"]} <= set(order["events"])
    assert "with its own evidence: 1 let through, 0 proposed, 0 refused" in capsys.readouterr().out


def test_a_missing_answer_is_counted_and_its_question_kept_until_somebody_answers(
    labels: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = labels / "answers"
    answers.mkdir()

    assert measured(labels, f"recorded:{answers}") == []

    assert "answers: 0 of 1 were there, 1 missing" in capsys.readouterr().out
    (asked,) = (labels / "out" / "missing").iterdir()
    question = json.loads(asked.read_text(encoding="utf-8"))["user"]
    (answers / asked.name).write_text(json.dumps(answer_to(question)), encoding="utf-8")
    assert measured(labels, f"recorded:{answers}") != []
    assert "answers: 1 of 1 were there, 0 missing" in capsys.readouterr().out


def test_a_session_as_it_ran_is_cut_where_there_was_silence_and_nothing_is_lost() -> None:
    events = [event(number, EXPLAINED, EventType.ASSISTANT_MESSAGE) for number in (1, 2, 60, 61, 200)]

    spans = list(live(events, ChunkPolicy(idle=10.0)))

    assert [(span.first, span.last) for span in spans] == [(1, 2), (60, 61), (200, 200)]
