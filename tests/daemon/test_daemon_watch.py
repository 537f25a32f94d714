"""File events are hints: each change rings, whatever exists when watching starts."""

import logging
import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from kite_memory.daemon.daemon import Changes, Wake, Watch


class Ears:
    """Collects what a watch shows, and waits for it."""

    def __init__(self) -> None:
        self.wake = Wake()

    def notice(self, path: str) -> None:
        self.wake.ring(path)

    def lost(self) -> None:
        self.wake.ring(everything=True)

    def hear(self, path: Path) -> bool:
        """Whether ``path`` was named, or everything was, within ten seconds."""
        for _ in range(100):
            roused = self.wake.wait(0.1)
            if str(path) in roused.paths or roused.everything:
                return True
        return False


@pytest.fixture
def ears() -> Ears:
    return Ears()


@pytest.fixture
def started(tmp_path: Path, ears: Ears) -> Iterator[Watch]:
    (tmp_path / "there").mkdir()
    watch = Watch([tmp_path / "there", tmp_path / "later" / "deep"], notice=ears.notice, lost=ears.lost)
    watch.start()
    yield watch
    watch.stop()


def test_a_changed_file_is_named(tmp_path: Path, started: Watch, ears: Ears) -> None:
    (tmp_path / "there" / "a.jsonl").write_text("{}\n")

    assert ears.hear(tmp_path / "there" / "a.jsonl")


def test_a_file_in_a_new_nested_folder_is_heard_of(tmp_path: Path, started: Watch, ears: Ears) -> None:
    (tmp_path / "there" / "x" / "y").mkdir(parents=True)

    assert ears.hear(tmp_path / "there" / "x")


def test_a_root_that_comes_into_being_later_is_watched(tmp_path: Path, started: Watch, ears: Ears) -> None:
    (tmp_path / "later").mkdir()
    assert ears.hear(tmp_path / "later")
    started.arm()
    (tmp_path / "later" / "deep").mkdir()
    assert ears.hear(tmp_path / "later" / "deep")
    started.arm()

    (tmp_path / "later" / "deep" / "b.jsonl").write_text("{}\n")

    assert ears.hear(tmp_path / "later" / "deep" / "b.jsonl")


def test_a_root_deleted_and_made_again_is_watched_again(tmp_path: Path, started: Watch, ears: Ears) -> None:
    (tmp_path / "there").rmdir()
    (tmp_path / "aside").mkdir()
    (tmp_path / "there").mkdir()
    started.arm()

    (tmp_path / "there" / "c.jsonl").write_text("{}\n")

    assert ears.hear(tmp_path / "there" / "c.jsonl")


def test_an_overflown_queue_asks_for_everything(started: Watch, ears: Ears) -> None:
    logging.getLogger("watchdog.observers.inotify_c").warning("Inotify queue overflowed; filesystem events were lost")

    assert ears.wake.wait(30.0).everything


def test_rings_are_collected_until_answered() -> None:
    wake = Wake()
    wake.ring("a")
    wake.ring("b", "a")

    assert wake.wait(0.0) == Changes(paths=frozenset({"a", "b"}))
    assert wake.wait(0.0) == Changes()


def test_a_folder_that_cannot_be_watched_is_reported(tmp_path: Path, ears: Ears, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Watch([tmp_path], notice=ears.notice, lost=ears.lost)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "inotify watch limit reached")

    monkeypatch.setattr(watch._observer, "schedule", full)
    watch.arm()

    assert watch.unwatched == {tmp_path: "inotify watch limit reached"}


def test_after_an_overflow_everything_is_watched_anew_once(tmp_path: Path, ears: Ears, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Watch([tmp_path], notice=ears.notice, lost=ears.lost)
    scheduled: list[object] = []
    monkeypatch.setattr(watch._observer, "schedule", lambda _, folder, **how: scheduled.append(folder))
    monkeypatch.setattr(watch._observer, "unschedule", lambda _: None)
    watch.start()
    try:
        watch.arm()
        before = list(scheduled)
        logging.getLogger("watchdog.observers").warning("Inotify queue overflowed; filesystem events were lost")
        watch.arm()
        watch.arm()
    finally:
        watch.stop()

    assert before == [tmp_path]
    assert scheduled == [tmp_path, tmp_path]


def test_a_folder_made_while_its_parent_is_walked_is_watched_in_silence(
    tmp_path: Path, ears: Ears, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Watch([tmp_path], notice=ears.notice, lost=ears.lost)
    walk = os.walk

    def late(top: bytes, followlinks: bool) -> Iterator[tuple[bytes, list[bytes], list[bytes]]]:
        (tmp_path / "new").mkdir(exist_ok=True)
        return walk(top, followlinks=followlinks)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        monkeypatch.setattr(os, "walk", late)
        watch.start()
        try:
            assert ears.hear(tmp_path / "new")
            (tmp_path / "new" / "a.jsonl").write_text("{}\n")
            assert ears.hear(tmp_path / "new" / "a.jsonl")
        finally:
            watch.stop()
