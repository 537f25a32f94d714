"""Transcripts that are not a file each: databases with their logs, repositories."""

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from kite_memory.app.note_indexer import NoteIndexer
from kite_memory.app.pipeline import Pipeline
from kite_memory.daemon.daemon import Watch
from kite_memory.distill.condense import ChunkPolicy
from kite_memory.distill.outbox import Outbox
from kite_memory.distill.scheduler import Scheduler
from kite_memory.model.event import EventType, RedactedResult
from kite_memory.recall.index import Index
from kite_memory.recall.recall import Recall
from kite_memory.recall.session_memory import SessionMemory
from kite_memory.sources import Source
from kite_memory.sources.git_history import GitLog
from kite_memory.sources.opencode.source import OpenCode
from kite_memory.timeline.store import Timeline
from kite_memory.vault import Vault
from tests.fakes.extractors import ScriptedExtractor
from tests.fakes.hashing_embedder import HashingEmbedder
from tests.fakes.opencode_store import OpenCodeStore, a_morning, call
from tests.fakes.repositories import FakeRepository, environment
from tests.fakes.services import ROOMY


@contextmanager
def pipeline_of(home: Path, *sources: Source, timeline: Timeline) -> Iterator[Pipeline]:
    outbox = Outbox(home / "outbox.sqlite")
    vault = Vault(home / "vault", home / "vault.sqlite")
    recall = Recall(index=Index(home / "index", embedder=HashingEmbedder(dim=32)), memory=SessionMemory(home / "shown.sqlite"))
    try:
        yield Pipeline(
            sources=sources,
            timeline=timeline,
            outbox=outbox,
            scheduler=Scheduler(outbox=outbox, extractor=ScriptedExtractor(), budget=ROOMY),
            vault=vault,
            recall=recall,
            indexer=NoteIndexer(notes=vault.notes, events=timeline.events, recall=recall),
            policy=ChunkPolicy(idle=0.0),
        )
    finally:
        recall.close()
        vault.close()
        outbox.close()


def test_a_change_that_stands_only_in_the_log_is_found_and_followed(tmp_path: Path) -> None:
    path = tmp_path / "agent" / "opencode.db"
    with closing(Timeline(tmp_path / "t.sqlite")) as timeline, closing(a_morning(path)) as store:
        with pipeline_of(tmp_path, OpenCode(tmp_path / "agent"), timeline=timeline) as pipeline:
            pipeline.ingest_many([(source, found) for source, found, _ in pipeline.unread()])
            rested = pipeline.unread()
            store.prompt("ses_orchard", "And now?")
            woken = [found for _, found, _ in pipeline.unread()]
            noticed = pipeline.sources_of([path.with_name("opencode.db-wal"), path, tmp_path / "elsewhere"])
            pipeline.ingest_many(noticed)

        said = [
            event.text for event in timeline.events.of_session("opencode", "ses_orchard") if event.type is EventType.USER_MESSAGE
        ]
    assert (rested, woken, [found for _, found in noticed]) == ([], [path], [path])
    assert said == ["Why does the pump test fail?", "And now?"]


def test_a_reading_that_was_broken_off_is_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "agent" / "opencode.db"
    source = OpenCode(tmp_path / "agent")
    with closing(OpenCodeStore(path)) as store:
        for number in range(3):
            store.answer(store.session(f"ses_{number}"), call("bash", f"c{number}", {"command": "make"}))
    with closing(Timeline(tmp_path / "t.sqlite")) as timeline:
        with pipeline_of(tmp_path, source, timeline=timeline) as pipeline:
            timeline.commit([RedactedResult(source.read(path, None, budget=1))], "opencode")  # and then the power went

            pipeline.ingest_many([(source, found) for source, found, _ in pipeline.unread()])

        assert sorted(state.session.id for state in timeline.sessions.states()) == ["ses_0", "ses_1", "ses_2"]


def test_the_history_of_a_repository_is_found_once_an_agent_worked_in_it(tmp_path: Path) -> None:
    orchard = FakeRepository(tmp_path / "orchard")
    name = orchard.commit("Take a ball valve")
    with closing(Timeline(tmp_path / "t.sqlite")) as timeline:
        sources = (
            OpenCode(tmp_path / "agent"),
            GitLog(timeline.sessions.folders, environment=environment(tmp_path), home=tmp_path),
        )
        with closing(OpenCodeStore(tmp_path / "agent" / "opencode.db")) as store:
            store.prompt(store.session("ses_1", directory=str(orchard.folder)), "Which valve?")
        with pipeline_of(tmp_path, *sources, timeline=timeline) as pipeline:
            for _ in range(2):
                pipeline.ingest_many([(source, path) for source, path, _ in pipeline.unread()])
            left = pipeline.unread()
            pipeline.open_sessions()
            pipeline.form_chunks()

        found = {state.session.provider: state.session for state in timeline.sessions.states()}
        commits = timeline.events.of_session("git", found["git"].id)
    assert left == []
    assert commits[0].id == name
    assert found["git"].project == found["opencode"].project == "orchard"


def test_a_flat_root_is_watched_without_what_is_below_it(tmp_path: Path) -> None:
    noticed: list[str] = []
    heard = threading.Event()

    def notice(path: str) -> None:
        noticed.append(Path(path).name)
        if path.endswith("opencode.db-wal"):
            heard.set()

    (tmp_path / "snapshot").mkdir()
    watch = Watch([], flat=[tmp_path], notice=notice, lost=lambda: None)
    watch.start()
    try:
        (tmp_path / "snapshot" / "object").write_text("x")
        (tmp_path / "opencode.db-wal").write_text("x")
        assert heard.wait(60)
    finally:
        watch.stop()

    assert "object" not in noticed
