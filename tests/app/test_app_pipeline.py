"""The way from transcript to note and back: everything once, in order, and nothing that should not be there."""

import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kite_memory.app.forgetting import Forgetting, Ground
from kite_memory.distill.condense import ChunkPolicy
from kite_memory.distill.extractor import Answer, Usage
from kite_memory.distill.offline import OfflineExtractor
from kite_memory.distill.scheduler import ChunkHandled, Idle
from kite_memory.model.note import Chunk, Fact, NoteStatus, Record, Topic
from kite_memory.recall.select import Prompt
from tests.fakes.extractors import ScriptedExtractor, plain_answer
from tests.fakes.services import FakeServices, fake_services
from tests.sources.aider_log import Log, Project
from tests.sources.transcript import SESSION, Transcript

SAID = "We graft the old pear on quince stock, because the orchard floods every spring and pear roots drown there."


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "claude" / "projects" / "-orchard").mkdir(parents=True)
    return tmp_path


@pytest.fixture
def extractor() -> ScriptedExtractor:
    return ScriptedExtractor()


@pytest.fixture
def services(home: Path, extractor: ScriptedExtractor) -> Iterator[FakeServices]:
    with fake_services(home, extractor) as opened:
        yield opened


def transcript(home: Path, *said: str, session: str = SESSION, first: int = 1) -> Path:
    written = Transcript(session, first=first)
    for text in said:
        written.user(text)
        written.assistant(f"Understood: {text}")
    path = home / "claude" / "projects" / "-orchard" / f"{session}.jsonl"
    path.write_bytes(written.bytes)
    return path


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def notes(services: FakeServices) -> list[str]:
    return [entry.path for entry in services.vault.notes.entries()]


def test_what_was_said_becomes_a_note_that_the_next_prompt_is_given(home: Path, services: FakeServices) -> None:
    transcript(home, SAID)

    services.run_until_idle()

    (path,) = notes(services)
    note = services.vault.notes.read(path)
    assert note is not None
    assert note.project == "orchard"
    assert note.evidence == (f"claude-code:{SESSION}#00000001",)
    asked = Prompt(text=f"{note.title}: {note.body}", session="next", project="orchard")
    assert [hit.note.id for hit in services.recall.answer(asked).hits] == [note.id]


def test_a_long_transcript_keeps_no_one_from_stopping(home: Path, services: FakeServices) -> None:
    file = transcript(home, *(f"{number} {'pears and plums ' * 4_000}" for number in range(50)))

    count = services.pipeline.ingest(services.source, file, stop=lambda: True)
    unread = [path for _, path, _ in services.pipeline.unread()]
    more = services.pipeline.ingest(services.source, file)

    assert unread == [file]
    assert count + more == services.timeline.files.counts()[0].events
    assert more > 0
    assert services.pipeline.unread() == []


def test_what_is_erased_while_a_model_reads_it_is_not_written(home: Path) -> None:
    def erased_meanwhile(chunk: Chunk) -> Answer:
        said = tuple(event for event in chunk.events if SAID in event.text)
        forgetting.forget_events([Ground(events=said, others=())], blank=True)
        return plain_answer(chunk, "Pear on quince", body=SAID)

    read_again: list[Chunk] = []

    def again(chunk: Chunk) -> Answer:
        read_again.append(chunk)
        return plain_answer(chunk, "Mulch in March")

    transcript(home, SAID, "We mulch the young plums in March, when the ground has thawed and before it is dry.")
    with fake_services(home, ScriptedExtractor([erased_meanwhile, again])) as services:
        forgetting = Forgetting(
            timeline=services.timeline,
            outbox=services.outbox,
            vault=services.vault,
            recall=services.recall,
            indexer=services.indexer,
        )
        services.run_until_idle()
        titles = [note.title for path in notes(services) if (note := services.vault.notes.read(path))]

    assert titles == ["Mulch in March"]
    assert [SAID in event.text for chunk in read_again for event in chunk.events if event.text] == [False] * 2


def test_a_file_dated_past_what_can_be_kept_is_read_once(home: Path, services: FakeServices) -> None:
    file = transcript(home, SAID)
    os.utime(file, (2**34, 2**34))  # the year 2514

    services.run_until_idle()

    assert services.timeline.files.counts()[0].events > 0
    assert services.pipeline.unread() == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of unix")
def test_a_file_that_cannot_be_read_is_one_problem_however_often_it_is_looked_at(home: Path, services: FakeServices) -> None:
    once_readable = transcript(home, SAID)
    services.run_until_idle()
    once_readable.unlink()
    for pipe in (once_readable, once_readable.with_name("f1f0f1f0-0000-4000-8000-000000000003.jsonl")):
        os.mkfifo(pipe)

    counts = []
    for _ in range(3):
        services.run_until_idle()
        counts.append(services.timeline.files.counts()[0].problems)

    assert counts == [2, 2, 2]


def test_a_second_walk_adds_nothing_and_asks_no_one(home: Path, services: FakeServices, extractor: ScriptedExtractor) -> None:
    transcript(home, SAID)
    services.run_until_idle()
    before, asked = bytes_of(home / "vault"), list(extractor.asked)

    services.run_until_idle()

    assert bytes_of(home / "vault") == before
    assert extractor.asked == asked
    assert services.pipeline.unread() == []


def test_reading_everything_anew_from_a_lost_timeline_asks_no_one(home: Path, extractor: ScriptedExtractor) -> None:
    transcript(home, SAID)
    with fake_services(home, extractor) as first:
        first.run_until_idle()
    before, asked = bytes_of(home / "vault"), list(extractor.asked)
    for path in (home / "state").glob("timeline.sqlite*"):
        path.unlink()

    with fake_services(home, extractor) as second:
        second.run_until_idle()

        assert second.timeline.files.counts()[0].events == 2
    assert bytes_of(home / "vault") == before
    assert extractor.asked == asked


def test_a_fork_is_not_distilled_a_second_time(home: Path, services: FakeServices, extractor: ScriptedExtractor) -> None:
    original = transcript(home, SAID)
    services.run_until_idle()
    fork = original.with_name("f0f0f0f0-0000-4000-8000-000000000002.jsonl")
    fork.write_bytes(original.read_bytes().replace(SESSION.encode(), fork.stem.encode()))

    services.run_until_idle()

    assert len(extractor.asked) == 1
    assert len(notes(services)) == 1


def test_no_secret_passes_the_door(home: Path, services: FakeServices) -> None:
    secret = "ghp_" + "Zx9" * 12
    transcript(home, f"Use the token {secret} to fetch the orchard's weather, and never write it anywhere else, please.")

    services.run_until_idle()

    assert not [name for name, content in bytes_of(home / "state").items() if secret.encode() in content]
    assert not [name for name, content in bytes_of(home / "vault").items() if secret.encode() in content]
    (event, *_) = services.timeline.events.of_session("claude-code", SESSION)
    assert "[redacted:" in event.text


def test_no_secret_in_an_id_is_kept(home: Path, services: FakeServices) -> None:
    secret = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0iL3oR6"
    written = Transcript()
    name = written.user("Fetch the weather of the orchard for me, would you?")
    written.call("Bash", f"toolu_{secret}", command="curl weather.example")
    written.result(f"toolu_{secret}", "Rain, and more of it until Thursday.")
    file = home / "claude" / "projects" / "-orchard" / f"{SESSION}.jsonl"
    file.write_bytes(written.bytes.replace(name.encode(), f"{name}-{secret}".encode()))

    services.run_until_idle()

    calls = {event.call for event in services.timeline.events.of_session("claude-code", SESSION) if event.call}
    assert len(calls) == 1
    assert [name for name, content in bytes_of(home / "state").items() if secret.encode() in content] == []


def test_no_secret_of_a_call_still_open_is_kept(home: Path, services: FakeServices) -> None:
    secret = "ghp_" + "Zx9" * 12
    written = Transcript()
    written.user("Fetch the weather of the orchard for me, would you?")
    written.call("Bash", "toolu_1", command=f"curl -H 'Authorization: Bearer {secret}' weather.example")
    (home / "claude" / "projects" / "-orchard" / f"{SESSION}.jsonl").write_bytes(written.bytes)

    services.run_until_idle()

    assert not [name for name, content in bytes_of(home / "state").items() if secret.encode() in content]


def test_a_lost_timeline_does_not_cost_an_answer_its_notes(home: Path) -> None:
    transcript(home, SAID)
    with fake_services(home, ScriptedExtractor()) as first:
        first.pipeline.ingest_many([(source, path) for source, path, _ in first.pipeline.unread()])
        first.pipeline.open_sessions()
        first.pipeline.form_chunks()
    for path in (home / "state").glob("timeline.sqlite*"):
        path.unlink()

    with fake_services(home, ScriptedExtractor()) as second:
        second.run_until_idle()

        assert second.outbox.states() == {"written": 1}
        assert len(notes(second)) == 1


@pytest.mark.parametrize("link", [False, True])
def test_one_wrong_folder_of_the_vault_stops_no_note_of_another_kind(home: Path, link: bool) -> None:
    transcript(home, SAID)
    transcript(home, f"{BEES} So they are out of the frost as well.", session="f0f0f0f0-0000-4000-8000-000000000003", first=50)

    def both(chunk: Chunk) -> Answer:
        answer = plain_answer(chunk, f"Chosen in {chunk.session.id[:4]}")
        (decision,) = answer.record.items()
        fact = Fact(title=f"Known in {chunk.session.id[:4]}", body=f"{chunk.session.id} stands.", evidence=decision.evidence,
                    importance=2, origin="user")  # fmt: skip
        return replace(answer, record=Record(topics=(Topic(name="t", summary="", items=(decision, fact)),)))

    clock = [time.time() + 3_600.0]
    with fake_services(home, ScriptedExtractor([both] * 2), clock=lambda: clock[0]) as services:
        decisions = home / "vault" / "decisions"
        shutil.rmtree(decisions)
        if link:
            decisions.symlink_to(home, target_is_directory=True)
        else:
            decisions.write_text("Not a folder.")
        services.run_until_idle()

        waits = services.pipeline.distil()
        assert [path.partition("/")[0] for path in notes(services)] == ["projects", "projects"]
        assert services.outbox.states() == {"answered": 2}
        assert services.vault.notes.wrong_folders() == ["decisions"]
        assert isinstance(waits, Idle)
        assert waits.until == clock[0] + 60.0

        decisions.unlink()
        clock[0] += 61.0
        services.run_until_idle()

        assert services.outbox.states() == {"written": 2}
        assert len(notes(services)) == 4


BEES = "The bees winter behind the south wall from this year on, out of the wind."
OLD_TURNS = [SAID, *(f"Row {number} of the orchard is pruned in the last week of March, after the frost." for number in range(6))]


@pytest.mark.parametrize("old", [False, True])
def test_a_timeline_read_anew_does_not_leave_a_live_session_deaf(home: Path, extractor: ScriptedExtractor, old: bool) -> None:
    path = transcript(home, *OLD_TURNS)
    with fake_services(home, extractor) as first:
        first.run_until_idle()
        later = Transcript(first=100)
        later.user(BEES)
        later.assistant("Understood: the bees stand behind the south wall.")
        path.write_bytes(later.bytes)  # as a compaction rewrites it: from now on its events have higher ordinals
        first.run_until_idle()
        asked = list(extractor.asked)
    if old:
        forget_event_ids(home / "state" / "outbox.sqlite")
    for file in (home / "state").glob("timeline.sqlite*"):
        file.unlink()

    with fake_services(home, extractor) as second:
        second.run_until_idle()
        assert extractor.asked == asked
        later.user("The cider press moves to the south barn in October, next to the well.")
        later.assistant("Understood: it moves to the south barn.")
        path.write_bytes(later.bytes)
        second.run_until_idle()

    assert len(extractor.asked) == len(asked) + 1


def forget_event_ids(file: Path) -> None:
    """As an outbox of an earlier version has none."""
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("UPDATE sessions SET event = ''")


def test_a_chunk_that_waits_follows_its_events_to_their_new_places(home: Path, extractor: ScriptedExtractor) -> None:
    path = transcript(home, *OLD_TURNS)
    heard: list[str] = []

    def listening(chunk: Chunk) -> Answer:
        heard.extend(event.text for event in chunk.events if event.role == "user")
        return plain_answer(chunk, "The bees")

    with fake_services(home, ScriptedExtractor([listening] * 2)) as services:
        services.run_until_idle()
        later = Transcript(first=100)
        later.user(BEES)
        later.assistant("Understood: the bees stand behind the south wall.")
        path.write_bytes(later.bytes)
        services.pipeline.ingest_many([(source, file) for source, file, _ in services.pipeline.unread()])
        services.pipeline.open_sessions()
        services.pipeline.form_chunks()
    for file in (home / "state").glob("timeline.sqlite*"):
        file.unlink()
    heard.clear()

    with fake_services(home, ScriptedExtractor([listening])) as second:
        second.run_until_idle()

    assert heard == [BEES]


def test_what_a_rewritten_transcript_says_anew_is_distilled(
    home: Path, services: FakeServices, extractor: ScriptedExtractor
) -> None:
    path = transcript(home, SAID, "The cider press stands in the north barn, next to the old cart.")
    services.run_until_idle()
    later = Transcript(first=100)
    later.user("The bees winter behind the south wall from this year on, out of the wind.")
    later.assistant("Understood: the bees stand behind the south wall.")
    path.write_bytes(later.bytes)

    services.run_until_idle()

    assert len(extractor.asked) == 2


def test_an_answer_that_cannot_be_read_stops_nothing(home: Path, services: FakeServices) -> None:
    transcript(home, SAID)
    services.run_until_idle()
    services.outbox._database.writer.execute("UPDATE chunks SET state = 'answered', record = '{\"topics\": [{}]}'")

    services.run_until_idle()

    assert services.outbox.states() == {"refused": 1}


def test_private_words_are_not_kept(home: Path, services: FakeServices) -> None:
    transcript(home, f"{SAID} <private>The neighbour pays for the quinces.</private>")

    services.run_until_idle()

    assert not [name for name, content in bytes_of(home / "state").items() if b"neighbour pays" in content]


def test_a_growing_session_is_cut_only_when_it_falls_silent(home: Path, extractor: ScriptedExtractor) -> None:
    transcript(home, SAID)
    with fake_services(home, extractor, policy=ChunkPolicy(idle=1e12)) as services:
        services.run_until_idle()

        assert extractor.asked == []
        assert notes(services) == []


def test_an_old_run_of_aider_that_is_still_in_use_is_not_silent(tmp_path: Path) -> None:
    """A history has only the times at which runs started."""
    project = Project(tmp_path)
    log = Log().run("2026-03-02 09:00:00")
    now = datetime(2026, 3, 2, 10, 0).astimezone().timestamp()
    with fake_services(
        tmp_path / "home", ScriptedExtractor([]), policy=ChunkPolicy(idle=900.0), clock=lambda: now, source=project.source
    ) as live:
        for number in range(3):
            log.said(f"Prune pear {number} please, it is dry.").answered(f"Pear {number} is pruned, and it was very dry.")
            project.path.write_bytes(log.bytes)
            os.utime(project.path, (now, now))
            live.pipeline.ingest(project.source, project.path)
            now += 20
            live.pipeline.form_chunks()
        in_use = live.outbox.states()
        now += 900
        live.pipeline.form_chunks()

        assert (in_use, sum(live.outbox.states().values())) == ({}, 1)


@pytest.mark.parametrize(
    ("later", "wrong", "status"),
    [
        (
            ("no, that's wrong, the labels are still late", "the belt of the label printer was not the cause"),
            "You're right, the worn belt of the label printer was not the root cause.",
            NoteStatus.ARCHIVED,
        ),
        (
            ("no, that's wrong, they are still late", "have another look"),
            "The label printer was not the cause, with its belt, driver, cable, ribbon, socket and tray.",
            NoteStatus.PROPOSED,
        ),
        (("thanks, and the scale?", "have a look"), "The empty battery of the scale was not the cause.", NoteStatus.ACCEPTED),
        (("thanks, and the scale?", "have a look"), "The battery of the scale is full now.", NoteStatus.ACCEPTED),
    ],
)
def test_a_cause_that_the_next_chunk_takes_back_does_not_stand(
    home: Path, later: tuple[str, str], wrong: str, status: NoteStatus
) -> None:
    path = home / "claude" / "projects" / "-orchard" / f"{SESSION}.jsonl"
    said = Transcript()
    said.user("why are the crate labels printed so late since last week?")
    said.assistant(
        "The root cause is the worn belt of the label printer, so each label is fed twice. I fixed it with a new belt, and the"
        " labels come in time again."
    )
    path.write_bytes(said.bytes)
    with fake_services(home, OfflineExtractor(), policy=ChunkPolicy(idle=0.0)) as services:
        services.run_until_idle()
        (before,) = [note for each in notes(services) if (note := services.vault.notes.read(each)) is not None]
        said.user(", ".join(later))
        said.assistant(
            f"{wrong} The ink is frozen each morning, and I moved the printer into the warm hall, where it prints in time."
        )
        path.write_bytes(said.bytes)
        services.run_until_idle()
        found = services.vault.notes.find(before.path)

    assert (before.status, found.status) == (NoteStatus.ACCEPTED, status)


def test_an_answer_brings_the_next_look_forward(home: Path, extractor: ScriptedExtractor) -> None:
    question = Transcript()
    question.user(SAID)
    path = home / "claude" / "projects" / "-orchard" / f"{SESSION}.jsonl"
    path.write_bytes(question.bytes)
    with fake_services(home, extractor, policy=ChunkPolicy(idle=0.0, stalled=1e12)) as services:
        services.run_until_idle()
        waiting = services.pipeline.form_chunks()
        question.assistant("Understood: the pear goes on quince.")
        path.write_bytes(question.bytes)

        services.pipeline.ingest_many([(source, path) for source, path, _ in services.pipeline.unread()])
        soon = services.pipeline.form_chunks()

        assert waiting is not None and waiting > 1e11
        assert soon is not None and soon < 1e11


def test_an_unmounted_vault_waits_and_is_written_to_when_it_is_back(home: Path, services: FakeServices) -> None:
    transcript(home, SAID)
    services.run_until_idle()
    services.pipeline.compare_vault()
    (home / "vault").rename(home / "unplugged")
    (home / "vault").mkdir()
    transcript(home, SAID, "The cider press stands in the north barn, next to the old cart.")

    services.run_until_idle()
    step = services.pipeline.distil()
    assert isinstance(step, Idle)
    assert "not complete" in step.reason
    assert list((home / "vault").iterdir()) == []
    (home / "vault").rmdir()
    (home / "unplugged").rename(home / "vault")
    services.pipeline.compare_vault()
    services.run_until_idle()

    assert len(notes(services)) == 2


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="a mode that keeps us out: not for root")
def test_a_read_only_vault_waits(home: Path, services: FakeServices) -> None:
    transcript(home, SAID)
    folder = home / "vault" / "decisions"
    folder.chmod(0o500)

    services.run_until_idle()
    blocked = services.pipeline.distil()
    folder.chmod(0o700)
    services.run_until_idle()

    assert isinstance(blocked, Idle)
    assert len(notes(services)) == 1


def test_a_full_disk_waits_and_asks_no_one_meanwhile(home: Path, extractor: ScriptedExtractor) -> None:
    full = True

    def step(doing: str) -> None:
        if full and doing.startswith("write"):
            raise OSError(28, "No space left on device")

    transcript(home, SAID)
    with fake_services(home, extractor) as services:
        services.run_until_idle()
    transcript(home, SAID, "The cider press stands in the north barn, next to the old cart.")
    with fake_services(home, extractor, step=step) as services:
        services.run_until_idle()
        asked = len(extractor.asked)
        blocked = services.pipeline.distil()
        full = False
        services.run_until_idle()

        assert isinstance(blocked, Idle)
        assert "no space left" in blocked.reason.lower()
        assert len(extractor.asked) == asked == 2
        assert len(notes(services)) == 2


def test_a_chunk_answered_with_nothing_leaves_the_vault_alone(home: Path) -> None:
    transcript(home, SAID)
    with fake_services(home, ScriptedExtractor([Answer(record=Record(topics=()), usage=Usage())])) as services:
        before = bytes_of(home / "vault")

        services.run_until_idle()

        assert bytes_of(home / "vault") == before
        assert services.outbox.states() == {"nothing": 1}


def test_sessions_from_before_a_date_are_read_but_not_distilled(
    home: Path, services: FakeServices, extractor: ScriptedExtractor
) -> None:
    transcript(home, SAID)
    services.pipeline.ingest_many([(source, path) for source, path, _ in services.pipeline.unread()])

    services.pipeline.open_sessions(skip_before=datetime(2026, 6, 1, tzinfo=UTC))
    services.pipeline.form_chunks()
    while isinstance(services.pipeline.distil(), ChunkHandled):
        pass

    assert extractor.asked == []
    assert services.timeline.files.counts()[0].events == 2


def read_all(services: FakeServices) -> None:
    services.pipeline.ingest_many([(source, path) for source, path, _ in services.pipeline.unread()])


def distil_all(services: FakeServices) -> None:
    services.pipeline.form_chunks()
    while isinstance(services.pipeline.distil(), ChunkHandled):
        pass


def test_what_was_passed_over_gets_its_notes_when_it_is_asked_for_and_only_once(
    home: Path, services: FakeServices, extractor: ScriptedExtractor
) -> None:
    transcript(home, SAID)
    read_all(services)
    services.pipeline.open_sessions(skip_before=datetime(2026, 6, 1, tzinfo=UTC))
    distil_all(services)
    passed_over = services.pipeline.passed_over()

    services.pipeline.queue_skipped(passed_over)
    services.pipeline.queue_skipped(services.pipeline.passed_over())
    services.run_until_idle()

    assert len(passed_over) == 1
    assert len(extractor.asked) == len(notes(services)) == 1
    assert services.pipeline.passed_over() == []


def test_a_session_that_went_on_after_it_was_passed_over_is_taken_up_by_what_was_left(
    home: Path, services: FakeServices, extractor: ScriptedExtractor
) -> None:
    transcript(home, SAID)
    read_all(services)
    services.pipeline.open_sessions(skip_before=datetime(2026, 6, 1, tzinfo=UTC))
    transcript(home, SAID, "The quinces flower late, so the frost of April does not reach the blossoms of the pears on them.")
    services.run_until_idle()
    before = [note.evidence for path in notes(services) if (note := services.vault.notes.read(path))]

    services.pipeline.queue_skipped(services.pipeline.passed_over())
    services.run_until_idle()

    after = {note.evidence for path in notes(services) if (note := services.vault.notes.read(path))}
    assert before == [(f"claude-code:{SESSION}#00000003",)]
    assert after == {*before, (f"claude-code:{SESSION}#00000001",)}
    assert len(extractor.asked) == 2
    assert services.pipeline.passed_over() == []


def test_only_what_went_on_since_then_and_of_the_agent_named_is_reported_as_passed_over(home: Path, services: FakeServices) -> None:
    transcript(home, SAID)
    read_all(services)
    services.pipeline.open_sessions(skip_before=datetime(2026, 6, 1, tzinfo=UTC), provider="codex")
    untouched = services.pipeline.open_count(), services.pipeline.passed_over()
    services.pipeline.open_sessions(skip_before=datetime(2026, 6, 1, tzinfo=UTC), provider="claude-code")

    assert untouched == (1, [])
    assert services.pipeline.open_count() == 0
    assert len(services.pipeline.passed_over(since=datetime(2020, 1, 1, tzinfo=UTC), provider="claude-code")) == 1
    assert services.pipeline.passed_over(since=datetime(2026, 6, 1, tzinfo=UTC)) == []
    assert services.pipeline.passed_over(provider="codex") == []


def test_a_title_full_of_tricks_stays_inside_the_vault(home: Path) -> None:
    titles = ["../../outside", "CON", "x" * 300, "🐛🐛🐛", "a/b\\c:d", ".", "nul.md", "Ünïcödé", "日本語の題"]
    for number, _ in enumerate(titles):
        transcript(home, f"{SAID} Number {number}.", session=f"{number:08d}-0000-4000-8000-000000000000", first=number * 10 + 1)
    outcomes = [lambda chunk, title=title: plain_answer(chunk, title, body=chunk.events[0].text) for title in titles]

    with fake_services(home, ScriptedExtractor(outcomes)) as services:
        services.run_until_idle()

        assert len(notes(services)) == len(titles)
        assert {path.name for path in home.iterdir()} == {"claude", "state", "vault"}
        assert all(len(path) < 120 and ".." not in path for path in notes(services))


def test_a_line_of_the_year_9999_does_not_make_the_last_session(home: Path, services: FakeServices) -> None:
    dated = Transcript("5e551011-0000-4000-8000-00000000000a", first=100)
    dated.user(SAID)
    dated.user(SAID, timestamp="9999-12-31T23:59:59Z")
    (home / "claude" / "projects" / "-orchard" / "5e551011-0000-4000-8000-00000000000a.jsonl").write_bytes(dated.bytes)
    later = Transcript(first=1)
    later.user(SAID, timestamp="2026-03-03T09:00:00Z")
    (home / "claude" / "projects" / "-orchard" / f"{SESSION}.jsonl").write_bytes(later.bytes)

    services.run_until_idle()

    last = services.timeline.sessions.last("orchard")
    assert last is not None
    assert last.id == SESSION
    assert [(problem.reason, problem.count) for problem in services.timeline.files.problems()] == [("impossible time", 1)]


def test_a_transcript_that_is_a_link_out_of_its_folder_is_named_as_a_problem(home: Path, services: FakeServices) -> None:
    path = transcript(home, SAID)
    elsewhere = path.rename(home / "elsewhere.jsonl")
    path.symlink_to(elsewhere)

    services.run_until_idle()

    assert [(each.file, each.reason) for each in services.timeline.files.problems()] == [(str(path), "outside its root")]
