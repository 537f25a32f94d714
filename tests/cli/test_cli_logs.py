"""`kmem logs`: what a person sees of the daemon's log."""

import json
import sys
import time

import pytest

from tests.cli.transcript import in_this_process
from tests.e2e.kmem import Machine

LOG = """2026-03-02T09:00:00Z INFO kite_memory started, pid 7
2026-03-02T09:00:01Z DEBUG kite_memory.app.pipeline read a.jsonl to 80: 2 new events, 0 problems
2026-03-02T09:00:02Z ERROR kite_memory a request failed
  Traceback (most recent call last):
  ValueError: odd \x1b[31m
2026-03-02T09:00:03Z WARNING kite_memory the vault is gone
"""


@pytest.fixture
def logged(machine: Machine) -> Machine:
    folder = machine.state / "logs"
    folder.mkdir(parents=True)
    (folder / "daemon.log").write_text(LOG, encoding="utf-8")
    return machine


def test_a_level_leaves_out_what_is_below_it(logged: Machine) -> None:
    shown = in_this_process(logged, ["logs", "--level", "WARNING"], cwd=logged.home)

    assert shown.code == 0
    assert shown.out.splitlines()[0] == "2026-03-02T09:00:02Z ERROR kite_memory a request failed"
    assert shown.out.splitlines()[-1] == "2026-03-02T09:00:03Z WARNING kite_memory the vault is gone"
    assert "started" not in shown.out
    assert "\x1b" not in shown.out


def test_entries_are_json_lines(logged: Machine) -> None:
    shown = in_this_process(logged, ["logs", "--json", "--since", "2026-03-02T09:00:02", "--lines", "2"], cwd=logged.home)

    first, second = map(json.loads, shown.out.splitlines())
    assert (first["level"], second["level"]) == ("error", "warning")
    assert first["text"].startswith("a request failed\n  Traceback")


def test_a_wrong_level_is_a_wrong_use(logged: Machine) -> None:
    shown = in_this_process(logged, ["logs", "--level", "loud"], cwd=logged.home)

    assert shown.code == 2
    assert "debug, info, warning, error" in shown.err


def test_without_a_log_it_says_so(machine: Machine) -> None:
    shown = in_this_process(machine, ["logs"], cwd=machine.home)

    assert (shown.code, shown.out) == (0, "")
    assert "nothing was logged yet" in shown.err


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C ends it otherwise there")
def test_following_goes_on_with_what_is_logged_later(logged: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = iter(["2026-03-02T09:01:00Z INFO kite_memory started again\n", "2026-03-02T09:02:00Z ERROR kite_memory later\n"])

    def wait(seconds: float) -> None:
        if (line := next(waits, None)) is None:
            raise KeyboardInterrupt
        with (logged.state / "logs" / "daemon.log").open("a", encoding="utf-8") as file:
            file.write(line)

    monkeypatch.setattr(time, "sleep", wait)
    shown = in_this_process(logged, ["logs", "-f", "--level", "error", "--lines", "0"], cwd=logged.home)

    assert shown.out == "2026-03-02T09:02:00Z ERROR kite_memory later\n"
    assert "Traceback" not in shown.err
