"""Our logs, read back: levels, tracebacks, and a rotation while somebody follows."""

import logging
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from logging.handlers import RotatingFileHandler
from pathlib import Path

import pytest

from kite_memory.log_lines import BACKUPS, LogEntry, LogFile, dated, last


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "daemon.log"


@pytest.fixture
def log(file: Path) -> Iterator[logging.Logger]:
    handler = RotatingFileHandler(file, maxBytes=400, backupCount=BACKUPS, encoding="utf-8")
    handler.setFormatter(dated())
    logger = logging.Logger("kite_memory.test")
    logger.addHandler(handler)
    yield logger
    handler.close()


def messages(entries: list[LogEntry]) -> list[str]:
    return [entry.text for entry in entries]


def failure(message: str) -> BaseException:
    try:
        raise ValueError(message)
    except ValueError as error:
        return error


def test_what_is_logged_is_read_back_with_its_level_and_time(file: Path, log: logging.Logger) -> None:
    log.info("started, pid %d", 7)
    log.warning("the vault is gone")

    first, second = LogFile(file).entries()

    assert (first.level, first.logger, first.text) == ("info", "kite_memory.test", "started, pid 7")
    assert (second.level, second.text) == ("warning", "the vault is gone")
    assert abs(first.at - datetime.now(UTC)) < timedelta(minutes=5)


def test_a_traceback_belongs_to_its_entry_and_cannot_begin_another(file: Path, log: logging.Logger) -> None:
    log.error("a request failed", exc_info=failure("odd\n2026-03-02T09:00:00Z ERROR kite_memory forged"))

    (entry,) = LogFile(file).entries()

    assert entry.level == "error"
    assert "forged" in entry.text


def test_the_newest_of_a_level_and_an_age_are_chosen() -> None:
    start = datetime(2026, 3, 2, tzinfo=UTC)
    entries = [
        LogEntry(at=start + timedelta(hours=hour), level=level, logger="x", text=f"{level} {hour}")
        for hour in range(3)
        for level in ("debug", "info", "warning", "error")
    ]

    chosen = last(entries, level="warning", since=start + timedelta(hours=1), most=3)

    assert messages(chosen) == ["error 1", "warning 2", "error 2"]
    assert last(entries, level="debug", since=None, most=0) == []


def test_rotated_files_are_read_in_order(file: Path, log: logging.Logger) -> None:
    for number in range(12):
        log.info("entry %02d %s", number, "x" * 60)

    found = [text[:8] for text in messages(LogFile(file).entries())]

    assert found == [f"entry {number:02d}" for number in range(12)][-len(found) :]
    assert len(found) > 3, "only the current file was read"


@pytest.mark.skipif(sys.platform == "win32", reason="file identities differ there")
def test_nothing_is_missed_or_repeated_while_a_log_is_rotated(file: Path, log: logging.Logger) -> None:
    log.info("before")
    following = LogFile(file)
    seen = messages(following.entries())

    for number in range(9):
        log.info("entry %d %s", number, "x" * 80)
        seen += messages(following.new())

    assert [text[:7] for text in seen] == ["before", *(f"entry {number}" for number in range(9))]
    assert following.new() == []
    assert file.with_name("daemon.log.1").exists(), "nothing was rotated"


def test_a_line_is_reported_once_it_is_whole(file: Path) -> None:
    file.write_text("2026-03-02T09:00:00Z INFO kite_memory half", encoding="utf-8")
    following = LogFile(file)

    assert following.entries() == []
    with file.open("a", encoding="utf-8") as opened:
        opened.write(" and whole\n")
    assert messages(following.new()) == ["half and whole"]


def test_a_log_may_come_into_being_later(file: Path) -> None:
    following = LogFile(file)

    assert following.entries() == []
    file.write_text("2026-03-02T09:00:00Z INFO kite_memory started\n", encoding="utf-8")
    assert messages(following.new()) == ["started"]


def test_a_date_that_is_invalid_is_passed_over(file: Path) -> None:
    file.write_text("2026-99-02T09:00:00Z INFO kite_memory odd\nrubbish\n2026-03-02T09:00:00Z INFO kite_memory well\n")

    assert messages(LogFile(file).entries()) == ["well"]
