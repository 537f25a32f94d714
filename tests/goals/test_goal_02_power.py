"""The power goes at any moment: what was said to be kept is there, nothing is torn, and a repeat puts the rest right."""

import hashlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from tests.counts import how_many
from tests.e2e.kmem import PROJECT
from tests.goals.power import CALLS, Disk, Loss
from tests.goals.writing import prepare, untrue
from tests.vault.building import MEMORY_DISK

STRACE = shutil.which("strace")

pytestmark = [pytest.mark.skipif(STRACE is None, reason="strace is not installed here"), pytest.mark.timeout(900)]

READ_AGAIN = {"read"}
"""Events may be read again: a commit of them waits for no disk, for the transcripts are there."""


@pytest.fixture(scope="module")
def recorded() -> Iterator[tuple[Path, Path, list[str], set[str]]]:
    """A home, a copy of it as it was before the run, the calls of the run, and what was there to be noted."""
    root = Path(tempfile.mkdtemp(prefix="kmem-power-", dir=MEMORY_DISK))
    home, before, trace = root / "home", root / "before", root / "calls"
    tokens = set(prepare(home).written.values())
    shutil.copytree(home, before)
    command = [str(STRACE), "-f", "-y", "-xx", "-s", "10000000", "-e", f"trace={CALLS}", "-o", str(trace)]
    done = subprocess.run(
        [*command, sys.executable, "-m", "tests.goals.writing", str(home)],
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": str(PROJECT), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "refused" not in done.stderr, done.stderr
    shutil.copytree(home, root / "after")
    yield home, before, trace.read_text().splitlines(), tokens
    shutil.rmtree(root)


def replaced(home: Path, before: Path) -> None:
    shutil.rmtree(home)
    shutil.copytree(before, home)


def laid_out(home: Path, found: dict[str, bytes | None]) -> None:
    shutil.rmtree(home)
    home.mkdir(0o700)
    for path, data in sorted(found.items()):
        place = Path(path)
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if data is None:
            place.mkdir(0o700, exist_ok=True)
        else:
            place.write_bytes(data)
            place.chmod(0o600)


def states(home: Path, before: Path, calls: list[str], wanted: int, *, deaf: bool = False) -> Iterator[dict[str, bytes | None]]:
    """``wanted`` distinct ones, spread over the run; each comes with what had been said by then, under ``said``."""
    chance, seen = random.Random(2), set[str]()
    replaced(home, before)
    count = sum(Disk.follow(disk, line) for disk in [Disk(home)] for line in calls)
    picked = sorted(chance.sample(range(count), min(count, wanted)))
    each = -(-wanted // len(picked)) + 1
    replaced(home, before)
    disk, number, due = Disk(home, deaf=deaf), 0, set(picked)
    for line in calls:
        if not disk.follow(line):
            continue
        number += 1
        if number - 1 not in due:
            continue
        losses: tuple[Loss, ...] = get_args(Loss)
        for loss in chance.sample(losses, len(losses))[: max(1, each)]:
            found = disk.after_the_cut(loss, chance)
            mark = hashlib.sha256(repr(sorted(found.items())).encode()).hexdigest()
            if mark not in seen and len(seen) < wanted:
                seen.add(mark)
                yield {**found, "said": "\n".join(disk.said).encode()}


def violations(recorded: tuple[Path, Path, list[str], set[str]], wanted: int, *, deaf: bool = False) -> tuple[int, list[str]]:
    home, before, calls, tokens = recorded
    count, wrong = 0, []
    for state in states(home, before, calls, wanted, deaf=deaf):
        said = (state.pop("said") or b"").decode()
        laid_out(home, state)
        listed = {line.removeprefix("done: ") for line in said.splitlines() if line.startswith("done: ")} - READ_AGAIN
        begun = said.splitlines()[-1].partition(": ")[2] if said else ""
        wrong += [f"{count} ({begun}): {line}" for line in untrue(home, listed, tokens)]
        count += 1
    return count, wrong


def test_no_power_cut_takes_what_was_said_to_be_kept(recorded: tuple[Path, Path, list[str], set[str]]) -> None:
    count, wrong = violations(recorded, how_many(1_000))

    assert wrong == []
    assert count == how_many(1_000)


def test_with_the_power_on_the_modelled_disk_is_the_real_one(recorded: tuple[Path, Path, list[str], set[str]]) -> None:
    home, before, calls, _ = recorded
    replaced(home, before)
    disk = Disk(home)

    for line in calls:
        disk.follow(line)

    after = home.parent / "after"
    modelled = {path: data for path, data in disk.after_the_cut("none", random.Random(0)).items() if not path.endswith("-shm")}
    real = {str(home / path.relative_to(after)): path.read_bytes() if path.is_file() else None for path in after.rglob("*")}
    assert modelled.keys() == real.keys()
    assert [path for path in real if modelled[path] != real[path]] == []


def test_control_a_disk_that_syncs_nothing_is_caught(recorded: tuple[Path, Path, list[str], set[str]]) -> None:
    _, wrong = violations(recorded, 20, deaf=True)

    assert any("said to be" in line for line in wrong)
