"""Under the most careless umask there is, everything the program makes is its owner's alone."""

import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kite_memory.cli.everyday import leave_transcripts
from tests.e2e.kmem import Machine

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="modes mean little there")


@pytest.fixture
def machine() -> Iterator[Machine]:
    with tempfile.TemporaryDirectory(prefix="kmem-") as folder:
        machine = Machine(Path(folder).resolve() / "ada", usual_places=True)
        yield machine
        machine.kmem("down")


def carelessly(machine: Machine, *arguments: str, input: str = "") -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kite_memory", *arguments],
        env=machine.env(),
        cwd=machine.home,
        input=input,
        capture_output=True,
        text=True,
        timeout=120,
        umask=0o000,
    )
    assert done.returncode == 0, done.stderr


def open_to_others(folder: Path, *, known: set[Path]) -> list[str]:
    """What has come into being there, and is not 0600 (a folder: 0700)."""
    found: list[str] = []
    for path in sorted({*folder.rglob("*")} - known):
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):  # a link's own mode means nothing
            continue
        mode, wanted = stat.S_IMODE(status.st_mode), 0o700 if stat.S_ISDIR(status.st_mode) else 0o600
        if mode != wanted:
            found.append(f"{path.relative_to(folder)} {mode:04o}")
    return found


def test_all_that_is_made_is_private(machine: Machine) -> None:
    leave_transcripts(machine.home / ".claude", machine.home / "mycelia")
    known = {*machine.home.rglob("*")}

    carelessly(machine, "keys", "set", "openai", input="sk-invented-0123456789abcdef\n")
    carelessly(machine, "config", "set", "extractor.dollars_per_day", "0.5")
    carelessly(machine, "backfill")
    carelessly(machine, "remember", "The gate code is changed in spring")
    carelessly(machine, "search", "gate code")
    carelessly(machine, "recall", "when is the gate code changed, in spring?")
    carelessly(machine, "hooks", "install", "--yes")
    carelessly(machine, "rebuild", "--timeline")
    carelessly(machine, "up", "--yes")
    machine.hook({"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "when is the gate code changed, in spring?"})
    carelessly(machine, "remember", "The hedge is cut in March")
    carelessly(machine, "forget", "the gate code")

    assert {path.name for path in machine.state.iterdir()} >= {"daemon.sock", "timeline.sqlite", "index", "logs", "backups"}
    assert open_to_others(machine.home, known=known) == []


def test_notes_follow_the_mode_of_a_vault_that_is_shared(machine: Machine) -> None:
    machine.vault.mkdir(parents=True)
    machine.vault.chmod(0o750)
    known = {machine.vault}

    carelessly(machine, "remember", "The gate code is changed in spring")

    made = {*machine.vault.rglob("*")} - known
    assert {stat.S_IMODE(path.stat().st_mode) for path in made if path.is_dir()} == {0o750}
    assert {stat.S_IMODE(path.stat().st_mode) for path in made if path.is_file()} == {0o640}


def test_a_folder_that_stood_open_is_closed(machine: Machine) -> None:
    machine.state.mkdir(parents=True)
    machine.state.chmod(0o777)

    carelessly(machine, "up", "--no-hooks")

    assert stat.S_IMODE(machine.state.stat().st_mode) == 0o700
