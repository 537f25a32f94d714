"""A memory that was lived in: some weeks of invented sessions by three agents, the notes of them, and what was shown."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

from kite_memory.config import Config, EmbedderConfig, ExtractorConfig
from kite_memory.extensions.contract.extractor_contract import START
from kite_memory.model.event import Session, evidence_reference
from kite_memory.model.note import Note, NoteKind, NoteStatus
from kite_memory.recall.session_memory import Occasion, ShownNote
from kite_memory.recall.uptake import Standing
from kite_memory.vault.notefile import render
from kite_memory.wiring.services import Services, open_services
from tests.fakes.work import Work

DECISION, INSIGHT, FACT = NoteKind.DECISION, NoteKind.INSIGHT, NoteKind.FACT
ENTITY, PREFERENCE, QUESTION = NoteKind.ENTITY, NoteKind.PREFERENCE, NoteKind.QUESTION

_NOTES: tuple[tuple[NoteKind, str, str, str, str, float], ...] = (
    (DECISION, "queue-in-postgres", "PostgreSQL over SQLite for the job queue", "orchard",
     "You chose [[postgresql|PostgreSQL]] over SQLite for the job queue: several workers write at once, and row locks keep "
     "them apart. `SKIP LOCKED` hands each worker a row of its own.\n\n"
     "**Rejected:** SQLite. Its single writer stalled the workers in the load "
     "test of March.\n\n| | writes per second | longest wait |\n|---|---|---|\n| SQLite | 210 | 4.1 s |\n| PostgreSQL | 1,900 | "
     "0.2 s |\n\n**Related:** [[worker-retries]], [[load-test-in-march]], [[alembic-migrations]]", 0.1),
    (INSIGHT, "worker-retries", "A worker retries only 429 and 5xx", "orchard",
     "Any other answer of the [[weather-service|weather service]] stays what it is however often it is asked. Retrying them made "
     "the queue grow at night.\n\nSeen in [[queue-in-postgres]] and [[night-run]].", 0.12),
    (FACT, "load-test-in-march", "What the load test showed", "orchard",
     "1,900 writes per second with eight workers on [[postgresql]]; 210 with one file.", 2.3),
    (FACT, "alembic-migrations", "Migrations run before the deploy", "orchard",
     "The [[deploy-pipeline|pipeline]] runs `alembic upgrade head` before the new version takes requests. A migration that locks "
     "a table for more than a second is split.", 3.2),
    (DECISION, "tide-table-cached", "The tide table is computed once a day", "harbor",
     "Computing it for each request took 800 ms. It is made at midnight and kept for [[three-harbours]].\n\n"
     "**Related:** [[night-run]]", 0.2),
    (FACT, "three-harbours", "Three harbours are served", "harbor",
     "Northgate, Sandholm and Old Quay. Each has a [[weather-service|weather station]] of its own.", 6.0),
    (ENTITY, "postgresql", "PostgreSQL", "", "The database of [[queue-in-postgres]] and of the reports.", 9.0),
    (ENTITY, "weather-service", "Weather service", "", "Answers in two seconds at worst; see [[worker-retries]].", 12.0),
    (ENTITY, "deploy-pipeline", "Deploy pipeline", "orchard", "Builds, migrates, deploys. See [[alembic-migrations]].", 14.0),
    (INSIGHT, "night-run", "The night run fails when the clock changes", "orchard",
     "It was scheduled by local time, so on one night in March two o'clock does not exist. Since then it runs by UTC.\n\n"
     "See [[deploy-pipeline]].", 5.1),
    (PREFERENCE, "small-commits", "One change, one commit", "",
     "You want commits that do one thing, with a subject in plain words.", 8.0),
    (PREFERENCE, "tests-first", "A failing test before the fix", "", "You ask for a test that fails before any bug is mended. "
     "See [[small-commits]].", 10.0),
    (QUESTION, "who-reads-reports", "Who reads the weekly report?", "orchard",
     "Nobody has opened it since January. Ask before it moves to [[postgresql]].", 1.4),
    (FACT, "ports", "The API listens on 8123, metrics on 9123", "orchard",
     "Both behind the proxy of the [[deploy-pipeline]].", 7.0),
    (DECISION, "typed-settings", "Settings are checked at the start", "orchard",
     "A wrong setting ends the program with its name, before any job runs. See [[deploy-pipeline]].", 4.0),
    (INSIGHT, "flaky-clock", "The flaky test read the wall clock", "harbor",
     "`test_high_tide` failed at midnight. It is given the time now. See [[tests-first]], [[tide-table-cached]].", 1.2),
    (DECISION, "maps-without-tiles", "Maps are drawn as SVG", "harbor",
     "No tile server: [[three-harbours]] need eleven shapes. Works offline.", 11.0),
    (FACT, "staging", "Staging is reset every Monday", "orchard",
     "At six. What must last goes into a fixture. See [[postgresql]].", 13.0),
)  # fmt: skip
"""Kind, file name, title, project, body, and how many days ago."""

_WAITING: tuple[tuple[NoteKind, str, str, str, str], ...] = (
    (DECISION, "reports-to-parquet", "Weekly reports are written as Parquet", "orchard",
     "The reports moved from CSV to Parquet, since the analysts read only three of forty columns."),
    (INSIGHT, "sandholm-station", "The station of Sandholm reports in knots", "harbor",
     "The other two report metres per second. Wind speeds of Sandholm were twice too high until then."),
    (FACT, "retry-budget", "A job is retried five times", "orchard",
     "After that it is set aside, and named in the morning's mail."),
)  # fmt: skip

_STORIES: tuple[tuple[str, str, str], ...] = (
    ("claude-code", "orchard", "Move the job queue to PostgreSQL"),
    ("codex", "orchard", "Why do the workers retry for ever?"),
    ("claude-code", "harbor", "Tide table takes 800 ms"),
    ("gemini-cli", "harbor", "Draw the three harbours as SVG"),
    ("claude-code", "orchard", "Night run fails once a year"),
    ("codex", "harbor", "Flaky test at midnight"),
    ("claude-code", "mycelia", "Read the sensor log in one pass"),
    ("gemini-cli", "orchard", "Check the settings at the start"),
)

_PROMPTS: tuple[tuple[str, str, str], ...] = (
    ("which database does the job queue use?", "orchard", "queue-in-postgres"),
    ("the workers hammer the weather service again", "orchard", "worker-retries"),
    ("why is the tide table slow on the first request?", "harbor", "tide-table-cached"),
    ("write a migration for the new column", "orchard", "alembic-migrations"),
    ("test_high_tide failed in CI last night", "harbor", "flaky-clock"),
    ("which port does the API listen on?", "orchard", "ports"),
)

_WHY = {"used": "the agent was first to name “SKIP LOCKED”", "ignored": "nothing of it was taken up"}


def note_id(number: int) -> str:
    return f"01JD{number:022d}"


@contextmanager
def lived_in(home: Path, now: datetime) -> Iterator[Services]:
    """Open the services of a memory below ``home`` that was lived in until ``now``."""
    config = Config(
        file=home / "config.toml",
        state=home / "state",
        vault=home / "memory",
        claude_root=home / "claude",
        extractor=ExtractorConfig(name="offline"),
        embedder=EmbedderConfig(name="local"),
    )
    with open_services(config) as services:
        services.init_vault()
        sessions = _sessions(services, now)
        _notes(config.vault, sessions, now)
        services.pipeline.compare_vault()
        _shown(services, now)
        yield services


def _sessions(services: Services, now: datetime) -> list[str]:
    """Commit the sessions, and return a citation of each."""
    cited: list[str] = []
    for number in range(28):
        provider, project, title = _STORIES[number % len(_STORIES)]
        started = now - timedelta(hours=5 + number * 7 + (number % 3) * 2)
        session = Session(
            id=f"{number:04x}a11e-0000-4000-8000-000000000000", provider=provider, started=started, project=project,
            cwd=f"/home/ada/{project}", branch="main", title=title,
        )  # fmt: skip
        work = Work(session)
        work.later(started - START)
        work.asked(f"{title}. Please look at what we decided before.").later(timedelta(minutes=2))
        work.said("I looked at the notes on it, and at the code that is there now.").later(timedelta(minutes=3))
        if number % 3 == 0:
            work.ran("pytest -q tests/test_queue.py", "E   TimeoutError: database is locked\n1 failed, 41 passed", "failed")
        work.later(timedelta(minutes=6)).edited(f"{project}/queue.py", "edited, 24 lines added, 9 removed")
        work.later(timedelta(minutes=4)).ran("pytest -q tests/test_queue.py", "42 passed", tests="ok")
        if number % 2 == 0:
            work.decided("We use PostgreSQL for the queue, since several workers write at once.")
        work.later(timedelta(minutes=40 + 50 * (number % 5))).asked("Good. Commit it, and say what is left.")
        work.later(timedelta(minutes=1)).committed(f"{number:07x}", title).said("Committed. The retries are left.")
        services.timeline.commit([work.look()], provider)
        cited.append(evidence_reference(provider, session.id, work.events[0].id))
    return cited


def _notes(vault: Path, sessions: list[str], now: datetime) -> None:
    folders = {
        DECISION: "decisions",
        INSIGHT: "topics",
        ENTITY: "topics",
        FACT: "projects",
        PREFERENCE: "people",
        QUESTION: "ideas",
    }
    listed = [(*note, NoteStatus.ACCEPTED) for note in _NOTES]
    listed += [(*note, 0.05, NoteStatus.PROPOSED) for note in _WAITING]
    for number, (kind, stem, title, project, body, days, status) in enumerate(listed):
        path = f"{folders[kind]}/{stem}.md"
        at = now - timedelta(days=days)
        note = Note(
            id=note_id(number), path=path, kind=kind, title=title, body=body, project=project, created=at, updated=at,
            status=status, origin="assistant", evidence=(sessions[number % len(sessions)],), importance=2,
            tags=("queue",) if "queue" in body else (),
        )  # fmt: skip
        (vault / path).parent.mkdir(parents=True, exist_ok=True)
        (vault / path).write_text(render(note), encoding="utf-8")
        os.utime(vault / path, (at.timestamp(), at.timestamp()))


def _shown(services: Services, now: datetime) -> None:
    """Record prompts of eleven weeks: some were given a note, some of these were used."""
    ids = {stem: note_id(number) for number, (_, stem, *_) in enumerate(_NOTES)}
    standings: tuple[Standing, ...] = ("used", "ignored", "used", "unknown", "used", "ignored", "used")
    for number in reversed(range(260)):
        at = now - timedelta(hours=0.6 + number * 6.9)
        prompt, project, stem = _PROMPTS[number % len(_PROMPTS)]
        standing: Standing = "open" if number < 2 else standings[number % len(standings)] if number < 170 else "ignored"
        why = _WHY.get(standing, "")
        given = () if number % 3 == 2 else (ShownNote(note=ids[stem], score=0.93 - number % 7 / 20, standing=standing, why=why),)
        services.recall.memory.record(
            Occasion(
                at=at, session=f"{number % 28:04x}a11e-0000-4000-8000-000000000000", project=project, head=prompt, given=given,
                reason="found by meaning and by words" if given else "nothing in memory was near enough",
            )
        )  # fmt: skip
