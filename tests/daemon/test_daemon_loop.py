"""The daemon's threads: woken by changes, idle without changes, and ended together."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kite_memory.daemon.daemon import Changes, Daemon
from kite_memory.errors import StateDamaged, StateNotWritten
from kite_memory.vault.drafting import Memo
from tests.e2e.kmem import eventually
from tests.fakes.extractors import ScriptedExtractor
from tests.fakes.services import FakeServices, fake_services
from tests.sources.transcript import SESSION, Transcript

SAID = "We graft the old pear on quince stock, because the orchard floods every spring and pear roots drown there."


@pytest.fixture
def services(tmp_path: Path) -> Iterator[FakeServices]:
    with fake_services(tmp_path, ScriptedExtractor()) as opened:
        yield opened


@contextmanager
def running(
    services: FakeServices, home: Path, *, bundles: Callable[[], int] = lambda: 0, warm: Callable[[], object] = lambda: None
) -> Iterator[tuple[Daemon, list[int]]]:
    """The daemon in a thread of its own, without its signals, which only a main thread may take."""
    daemon = Daemon(
        pipeline=services.pipeline,
        sources=(services.source,),
        vault=home / "vault",
        compare_seconds=300.0,
        embed_bundles=bundles,
        warm=warm,
    )
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(daemon.work()))
    thread.start()
    try:
        yield daemon, codes
    finally:
        daemon.stop()
        thread.join(20)
        assert not thread.is_alive()


def test_a_transcript_that_appears_in_a_new_folder_becomes_a_note(tmp_path: Path, services: FakeServices) -> None:
    with running(services, tmp_path):
        folder = tmp_path / "claude" / "projects" / "-orchard"
        folder.mkdir(parents=True)
        written = Transcript()
        written.user(SAID)
        (folder / f"{SESSION}.jsonl").write_bytes(written.bytes)

        assert eventually(lambda: len(list(services.vault.notes.entries())) == 1)


def test_a_note_that_a_person_writes_can_be_found(tmp_path: Path, services: FakeServices) -> None:
    with running(services, tmp_path):
        (tmp_path / "vault" / "ideas" / "mulch.md").write_text("# Mulch\n\nBark keeps the roots cool.\n")

        assert eventually(lambda: services.recall.index.status().notes == 1)


def test_a_daemon_says_when_it_has_compared_the_vault(tmp_path: Path, services: FakeServices) -> None:
    warmed = threading.Event()
    with running(services, tmp_path, warm=warmed.wait) as (daemon, _):
        before = daemon.has_compared()
        warmed.set()

        assert not before
        assert eventually(daemon.has_compared)


def test_what_obsidian_and_git_write_for_themselves_is_no_reason_to_compare_the_vault(
    tmp_path: Path, services: FakeServices
) -> None:
    vault = tmp_path / "vault"
    for folder in (".obsidian", ".git/objects", ".trash"):
        (vault / folder).mkdir(parents=True, exist_ok=True)
    daemon = Daemon(pipeline=services.pipeline, sources=(), vault=vault, compare_seconds=300.0)
    daemon._vault_watch.start()
    try:
        (vault / ".obsidian" / "workspace.json").write_text("{}")
        (vault / ".git" / "objects" / "ab").mkdir()
        (vault / ".trash" / "old.md").write_text("# Old\n")
        (vault / "ideas" / "mulch.md").write_text("# Mulch\n")
        heard = daemon._notes.wait(60.0)
    finally:
        daemon._vault_watch.stop()

    assert heard == Changes(paths=frozenset({str(vault / "ideas" / "mulch.md")}))


def test_a_note_that_is_moved_to_the_trash_and_a_folder_that_becomes_another_vault_are_noticed(
    tmp_path: Path, services: FakeServices
) -> None:
    vault = tmp_path / "vault"
    (vault / ".trash").mkdir(exist_ok=True)
    note = vault / "ideas" / "mulch.md"
    note.write_text("# Mulch\n")
    daemon = Daemon(pipeline=services.pipeline, sources=(), vault=vault, compare_seconds=300.0)
    daemon._vault_watch.start()
    try:
        note.rename(vault / ".trash" / "mulch.md")
        moved = daemon._notes.wait(60.0)
        (vault / "ideas" / ".obsidian").mkdir()
        another = daemon._notes.wait(60.0)
    finally:
        daemon._vault_watch.stop()

    assert moved == Changes(paths=frozenset({str(note)}))
    assert another.everything


def test_an_embedder_that_fails_does_not_end_the_daemon(tmp_path: Path, services: FakeServices) -> None:
    def fails() -> int:
        raise StateDamaged("the local embedder's weights cannot be read", hint="install kite-memory again")

    with running(services, tmp_path, bundles=fails, warm=fails) as (_, codes):
        (tmp_path / "vault" / "ideas" / "mulch.md").write_text("# Mulch\n\nBark keeps the roots cool.\n")

        assert eventually(lambda: services.recall.index.status().notes == 1)

    assert codes == [0]


def test_bundles_are_embedded_a_few_at_a_time(tmp_path: Path, services: FakeServices) -> None:
    asked: list[int] = []

    def always_more() -> int:
        asked.append(1)
        return 16

    with running(services, tmp_path, bundles=always_more):
        (tmp_path / "vault" / "ideas" / "mulch.md").write_text("# Mulch\n\nBark keeps the roots cool.\n")

        assert eventually(lambda: services.recall.index.status().notes == 1)
        assert eventually(lambda: len(asked) >= 4)
        assert len(asked) < 100  # with each comparison some, never without end


def test_a_full_disk_keeps_bundles_waiting_and_the_daemon_running(tmp_path: Path, services: FakeServices) -> None:
    def full() -> int:
        raise StateNotWritten("the timeline cannot be written: database or disk is full")

    with running(services, tmp_path, bundles=full) as (_, codes):
        (tmp_path / "vault" / "ideas" / "mulch.md").write_text("# Mulch\n\nBark keeps the roots cool.\n")

        assert eventually(lambda: services.recall.index.status().notes == 1)
        assert codes == []


def test_an_unexpected_error_in_any_thread_ends_the_process_with_a_failure(tmp_path: Path, services: FakeServices) -> None:
    services.timeline.close()

    with running(services, tmp_path) as (_, codes):
        assert eventually(lambda: codes == [1])


def test_what_ends_outside_of_its_threads_ends_the_process_with_a_failure_too(tmp_path: Path, services: FakeServices) -> None:
    with running(services, tmp_path) as (daemon, codes):
        daemon.fail()

        assert eventually(lambda: codes == [1])


def test_stopping_is_clean(tmp_path: Path, services: FakeServices) -> None:
    with running(services, tmp_path) as (daemon, codes):
        daemon.stop()

        assert eventually(lambda: codes == [0])


class WithoutHandlers(Daemon):
    """As if a signal's handler never ran: it would run in the main thread."""

    def stop(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            super().stop()


@pytest.mark.skipif(sys.platform == "win32", reason="os.kill ends a process there")
@pytest.mark.timeout(60)
def test_a_signal_whose_handler_does_not_run_ends_it_all_the_same(tmp_path: Path, services: FakeServices) -> None:
    daemon = WithoutHandlers(pipeline=services.pipeline, sources=(), vault=tmp_path / "vault", compare_seconds=300.0)
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    sends = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM))
    sends.start()
    try:
        code = daemon.run()
    finally:
        sends.join()
        for number, handler in before.items():
            signal.signal(number, handler)

    assert code == 0
    assert signal.set_wakeup_fd(-1) == -1


def test_a_note_of_ours_that_was_taken_up_by_its_words_gets_its_vector(tmp_path: Path, services: FakeServices) -> None:
    with running(services, tmp_path):
        assert eventually(lambda: services.recall.index.status().notes >= 0)
        note = services.vault.edits.remember(Memo(text="The walnut tree is older than the house."))
        services.recall.refresh(services.vault.notes, hint={note.path}, embed=False)

        assert eventually(lambda: services.recall.index.status().notes == 1 and services.recall.index.status().stale == 0)


def test_files_as_we_left_them_are_distinguished_from_those_that_somebody_has_changed(services: FakeServices) -> None:
    note = services.vault.edits.remember(Memo(text="The walnut tree is older than the house."))
    file = services.vault.root / note.path

    assert services.pipeline.unchanged_since_written([file, file.with_name(".kmem-fill-0123")])
    assert not services.pipeline.unchanged_since_written([file, file.with_name("by-hand.md")])
    file.write_text(file.read_text() + "By hand.\n")
    assert not services.pipeline.unchanged_since_written([file])
    services.vault.scanner.compare()
    assert services.pipeline.unchanged_since_written([file])
    file.unlink()
    assert not services.pipeline.unchanged_since_written([file])
