import os
import sqlite3
import threading
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kite_memory.errors import StateNewer
from kite_memory.recall.select import Delivery, give
from kite_memory.recall.session_memory import Occasion, SessionMemory, ShownNote

NOW = datetime(2026, 2, 26, 14, 3, 11, tzinfo=UTC)


def occasion(number: int, *, at: datetime = NOW, session: str = "one") -> Occasion:
    given = (ShownNote(note="queue", score=0.5),)
    return Occasion(at=at, session=session, project="mycelia", head=f"prompt {number}", reason="why", given=given)


def test_what_was_shown_outlives_the_process(tmp_path: Path) -> None:
    first = SessionMemory(tmp_path / "state" / "memory.db")
    assert first.claim("one", ["queue", "auth"], NOW)
    first.close()

    second = SessionMemory(tmp_path / "state" / "memory.db")

    assert second.shown("one") == {"queue", "auth"}
    assert second.shown("two") == frozenset()
    second.close()


def test_a_note_is_claimed_once_a_session_and_with_its_company(tmp_path: Path) -> None:
    memory = SessionMemory(tmp_path / "memory.db")
    memory.claim("one", ["queue"], NOW)

    assert not memory.claim("one", ["auth", "queue"], NOW)

    assert memory.shown("one") == {"queue"}
    assert memory.claim("two", ["queue"], NOW)
    memory.close()


def test_of_many_who_claim_at_once_one_gets_it(tmp_path: Path) -> None:
    memory = SessionMemory(tmp_path / "memory.db")
    won: list[bool] = []

    threads = [threading.Thread(target=lambda: won.append(memory.claim("one", ["queue"], NOW))) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(won) == [False] * 11 + [True]
    memory.close()


class TestDelivery:
    def test_a_note_counts_as_shown_once_its_reply_has_arrived(self, tmp_path: Path) -> None:
        memory, delivery = SessionMemory(tmp_path / "memory.db"), Delivery()

        assert give(memory, ["queue"], occasion(1), delivery)
        assert (memory.report.occasions(5), dict(memory.tallies())) == ((), {})
        delivery.arrived()
        delivery.lost()

        memory.close()
        memory = SessionMemory(tmp_path / "memory.db")
        assert memory.shown("one") == {"queue"}
        assert [each.head for each in memory.report.occasions(5)] == ["prompt 1"]
        memory.close()

    def test_what_is_on_its_way_is_given_to_no_one_else_until_it_is_lost(self, tmp_path: Path) -> None:
        memory, first, second = SessionMemory(tmp_path / "memory.db"), Delivery(), Delivery()
        assert give(memory, ["queue", "auth"], occasion(1), first)

        assert not give(memory, ["auth"], occasion(2), second)
        assert not second
        assert memory.shown("one") == {"queue", "auth"}
        assert give(memory, ["auth"], occasion(3, session="two"), second)
        first.lost()

        assert memory.shown("one") == frozenset()
        assert give(memory, ["auth"], occasion(4))
        assert [each.head for each in memory.report.occasions(5)] == ["prompt 4"]
        memory.close()

    def test_of_many_prompts_at_once_one_is_given_the_note(self, tmp_path: Path) -> None:
        memory = SessionMemory(tmp_path / "memory.db")
        won: list[bool] = []

        def ask() -> None:
            won.append(give(memory, ["queue"], occasion(1), delivery := Delivery()))
            delivery.arrived()

        threads = [threading.Thread(target=ask) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert sorted(won) == [False] * 11 + [True]
        memory.close()

    def test_a_compaction_lets_go_of_what_is_on_its_way(self, tmp_path: Path) -> None:
        memory, delivery = SessionMemory(tmp_path / "memory.db"), Delivery()
        give(memory, ["queue"], occasion(1), delivery)

        memory.forget_session("one")

        assert memory.shown("one") == frozenset()
        memory.close()

    def test_what_cannot_be_written_down_counts_as_shown_as_long_as_the_process_lives(self, tmp_path: Path) -> None:
        memory, delivery = SessionMemory(tmp_path / "memory.db"), Delivery()
        steps: list[str] = []
        delivery.add_callbacks(arrived=lambda: steps.append("first"))
        give(memory, ["queue"], occasion(1), delivery)
        delivery.add_callbacks(arrived=lambda: steps.append("last"))
        with closing(sqlite3.connect(tmp_path / "memory.db", isolation_level=None)) as another:
            another.execute("BEGIN IMMEDIATE")

            with pytest.raises(sqlite3.OperationalError, match="locked"):
                delivery.arrived()

        assert steps == ["first", "last"]
        assert memory.shown("one") == {"queue"}
        memory.close()


def test_a_forgotten_session_may_be_shown_everything_again(tmp_path: Path) -> None:
    memory = SessionMemory(tmp_path / "memory.db")
    memory.claim("one", ["queue"], NOW)
    memory.claim("two", ["queue"], NOW)

    memory.forget_session("one")

    assert memory.shown("one") == frozenset()
    assert memory.shown("two") == {"queue"}
    memory.close()


def test_what_a_session_was_shown_counts_for_one_that_goes_on_from_it(tmp_path: Path) -> None:
    memory = SessionMemory(tmp_path / "memory.db")
    memory.claim("origin", ["queue", "lint"], NOW)
    memory.claim("fork", ["lint"], NOW)

    memory.take_over("fork", "origin")
    memory.claim("origin", ["auth"], NOW)

    assert memory.shown("fork") == {"queue", "lint"}
    assert memory.shown("origin") == {"queue", "lint", "auth"}
    memory.close()


def test_the_latest_prompts_come_back_as_they_were(tmp_path: Path) -> None:
    memory = SessionMemory(tmp_path / "memory.db")
    for number in range(5):
        memory.record(occasion(number))

    assert memory.report.occasions(2) == (occasion(4), occasion(3))
    assert len(memory.report.occasions(100)) == 5
    memory.close()


def test_only_the_beginning_of_a_prompt_is_kept(tmp_path: Path) -> None:
    memory = SessionMemory(tmp_path / "memory.db")

    memory.record(Occasion(at=NOW, session="one\ud800", project="", head="x" * 1_000_000, reason="why"))

    assert memory.report.occasions(1)[0].head == "x" * 200
    memory.close()


def test_after_thirty_days_it_is_as_if_nothing_had_been(tmp_path: Path) -> None:
    memory = SessionMemory(tmp_path / "memory.db")
    memory.claim("old", ["queue"], NOW - timedelta(days=31))
    memory.claim("new", ["queue"], NOW - timedelta(days=29))
    memory.record(occasion(1, at=NOW - timedelta(days=31)))
    memory.record(occasion(2, at=NOW - timedelta(days=29)))

    memory.prune(NOW)

    assert memory.shown("old") == frozenset()
    assert memory.shown("new") == {"queue"}
    assert [each.head for each in memory.report.occasions(9)] == ["prompt 2"]
    memory.close()


def test_a_file_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()

    with pytest.raises(StateNewer):
        SessionMemory(path)


def test_a_file_that_is_no_database_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    path.write_bytes(b"something else entirely" * 100)

    memory = SessionMemory(path)

    assert memory.shown("any") == frozenset()
    assert memory.report.occasions(5) == ()
    memory.close()


def test_files_are_the_owner_s_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        memory = SessionMemory(tmp_path / "state" / "memory.db")
        memory.record(occasion(1))
        modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "state").iterdir()}
        memory.close()
    finally:
        os.umask(before)

    assert set(modes.values()) == {0o600}
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700


def test_prompts_that_were_given_a_note_are_reported_without_the_silent_ones(tmp_path: Path) -> None:
    with closing(SessionMemory(tmp_path / "memory.db")) as memory:
        for number in range(20):
            given = (ShownNote(note=f"n{number}", score=0.9),) if number % 9 == 0 else ()
            at = datetime(2026, 3, 1, 9, number, tzinfo=UTC)
            memory.record(Occasion(at=at, session="s", project="p", head=f"prompt {number}", reason="", given=given))

        last = memory.report.occasions(2, silent=False)

        assert [occasion.head for occasion in last] == ["prompt 18", "prompt 9"]
        assert memory.report.silent_since(last[-1].at) == 9
        assert [occasion.head for occasion in memory.report.occasions(2)] == ["prompt 19", "prompt 18"]
