"""How often one may ask, and what is written down of it."""

import json
import os
import stat
import threading
from pathlib import Path

import pytest

from kite_memory.mcp_server.auth_middleware import Audit, Buckets


def test_a_bucket_gives_what_it_holds_and_fills_up_again() -> None:
    now = [0.0]
    buckets = Buckets(rate=2, burst=3, clock=lambda: now[0])

    at_once = [buckets.take("a") for _ in range(5)]
    now[0] = 1.0
    later = [buckets.take("a") for _ in range(3)]
    now[0] = 100.0
    much_later = [buckets.take("a") for _ in range(4)]

    assert at_once == [True, True, True, False, False]
    assert later == [True, True, False]
    assert much_later == [True, True, True, False]


def test_one_name_does_not_take_from_anothers() -> None:
    buckets = Buckets(rate=1, burst=1, clock=lambda: 0.0)

    assert [buckets.take(name) for name in "aabab"] == [True, False, True, False, False]


def test_any_number_of_names_takes_bounded_room_and_frees_no_one_who_keeps_asking() -> None:
    buckets = Buckets(rate=0, burst=1, clock=lambda: 0.0, most=10)
    buckets.take("busy")

    for number in range(1_000):
        buckets.take(str(number))
        assert not buckets.take("busy")


def test_a_line_says_who_what_and_how_it_ended(tmp_path: Path) -> None:
    audit = Audit(tmp_path / "logs" / "audit.log")

    audit.note(token="ci", address="10.0.0.7", what="read_memory", outcome="ok", took_ms=1.26)
    audit.note(token="", address="10.0.0.8", what="request", outcome="token: expired\nfalse line")

    first, second = map(json.loads, (tmp_path / "logs" / "audit.log").read_text().splitlines())
    assert {**first, "at": ""} == {
        "at": "",
        "token": "ci",
        "address": "10.0.0.7",
        "what": "read_memory",
        "outcome": "ok",
        "took_ms": 1.3,
    }
    assert second["outcome"] == "token: expired\nfalse line"
    assert stat.S_IMODE((tmp_path / "logs" / "audit.log").stat().st_mode) == 0o600


def test_the_log_stays_within_its_size_no_matter_who_writes(tmp_path: Path) -> None:
    audit = Audit(tmp_path / "audit.log", longest=10_000)

    def write() -> None:
        for _ in range(200):
            audit.note(token="ci", address="10.0.0.7", what="x" * 5_000, outcome="ok")

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert {path.name for path in tmp_path.iterdir()} == {"audit.log", "audit.log.1"}
    for path in tmp_path.iterdir():
        assert path.stat().st_size <= 10_000
        assert all(json.loads(line)["token"] == "ci" for line in path.read_text().splitlines())


def test_half_a_line_is_counted_as_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    audit = Audit(tmp_path / "audit.log")
    write = os.write
    monkeypatch.setattr(os, "write", lambda handle, line: write(handle, line[:10]))  # as on a disk that is nearly full
    audit.note(token="ci", address="10.0.0.7", what="request", outcome="ok")
    monkeypatch.undo()

    audit.note(token="ci", address="10.0.0.7", what="request", outcome="ok")

    assert '"lost_before": 1' in (tmp_path / "audit.log").read_text()


def test_what_could_not_be_written_is_counted(tmp_path: Path) -> None:
    audit = Audit(tmp_path / "logs" / "audit.log")
    (tmp_path / "logs").rmdir()

    audit.note(token="ci", address="", what="a", outcome="ok")
    audit.note(token="ci", address="", what="b", outcome="ok")
    (tmp_path / "logs").mkdir(mode=0o700)
    audit.note(token="ci", address="", what="c", outcome="ok")

    (line,) = map(json.loads, (tmp_path / "logs" / "audit.log").read_text().splitlines())
    assert (line["what"], line["lost_before"]) == ("c", 2)
