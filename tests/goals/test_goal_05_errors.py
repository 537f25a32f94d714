"""Whatever error the system answers with, nothing is said to be done that is not; and a repeat puts all right."""

import itertools
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.counts import how_many
from tests.e2e.kmem import PROJECT
from tests.goals.writing import BEGIN, prepare, untrue
from tests.vault.building import MEMORY_DISK
from tests.vault.test_vault_disks import UNSHARE, may_mount

STRACE = shutil.which("strace")

ERRORS = {
    "write": ("ENOSPC", "EIO", "EINTR"),
    "pwrite64": ("ENOSPC", "EIO"),
    "fsync": ("EIO", "ENOSPC"),
    "fdatasync": ("EIO", "ENOSPC"),
    "openat": ("EMFILE", "EACCES", "EROFS", "EIO", "ENOSPC"),
    "mkdir": ("ENOSPC", "EROFS", "EACCES"),
    "rename": ("EIO", "EACCES", "ENOSPC"),
    "renameat2": ("EIO", "EROFS", "ENOSPC"),
    "link": ("EIO", "ENOSPC"),
    "linkat": ("EIO", "ENOSPC"),
    "unlink": ("EIO", "EROFS"),
    "unlinkat": ("EIO", "EROFS"),
    "ftruncate": ("EIO", "EROFS"),
    "fchmod": ("EIO", "EROFS"),
}
SYNCED = re.compile(r"(?:fsync|fdatasync)\(\d+<([^>]*)>\)\s+= (-?\d+)")
CALL = re.compile(r"(?:\d+\s+)?(\w+)\(")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(PROJECT), "PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    code: int
    said: set[str]
    err: str
    calls: tuple[str, ...] = ()

    def unsynced(self) -> list[str]:
        """What of the vault and the outbox was said to be done although a sync that it took had failed, and was not repeated."""
        failed: set[str] = set()
        listed = []
        for line in self.calls:
            if found := SYNCED.search(line):
                path, result = found.groups()
                (failed.discard if result == "0" else failed.add)(path)
            elif "begin: " in line:
                failed.clear()
            elif "done: " in line:
                listed += [f"{line} without {path}" for path in failed if "/vault/" in path or "outbox" in path]
        return listed


def acted(folder: Path, *options: str, strace: Sequence[str] = (), limit: int = 0) -> Ran:
    trace = folder.parent / f"{folder.name}.trace"
    traced = [str(STRACE), "-f", "-y", "-s", "64", "--seccomp-bpf", "-o", str(trace), *strace] if strace else []

    def small() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    done = subprocess.run(
        [*traced, sys.executable, "-m", "tests.goals.writing", str(folder), *options],
        cwd=PROJECT,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=small if limit else None,
    )
    calls = tuple(trace.read_text(errors="replace").splitlines()) if strace else ()
    return Ran(code=done.returncode, said=set(re.findall(r"done: (\w+)", done.stdout)), err=done.stderr, calls=calls)


@pytest.fixture(scope="module")
def start() -> Iterator[tuple[Path, set[str]]]:
    root = Path(tempfile.mkdtemp(prefix="kmem-errors-", dir=MEMORY_DISK))
    yield root / "home", set(prepare(root / "home").written.values())
    shutil.rmtree(root)


@pytest.fixture
def beside(start: tuple[Path, set[str]]) -> Path:
    return start[0].parent


def copied(start: Path, to: Path) -> Path:
    """Under the same name in the same depth: paths are part of what is known of a transcript."""
    shutil.copytree(start, to, symlinks=True)
    return to


def places_to_fail(start: Path, folder: Path) -> dict[str, tuple[int, int]]:
    """Of each system call, from which number on to which it is one of the work's, not of the interpreter's start."""
    every = ",".join(ERRORS)
    home = copied(start, folder)
    ran = acted(home, strace=["-e", f"trace={every},stat,newfstatat"])
    assert ran.code == 0, ran.err
    lines = [line for line in ran.calls if CALL.match(line)]
    names = [call[1] for line in lines if (call := CALL.match(line))]
    begin = next(number for number, line in enumerate(lines) if BEGIN in line)
    end = max(number for number, line in enumerate(lines) if "done: " in line)
    found: dict[str, tuple[int, int]] = {}
    for name in ERRORS:
        before = names[:begin].count(name)
        within = names[begin:end].count(name)
        if within:
            found[name] = (before + 1, before + within)
    shutil.rmtree(home)
    return found


@pytest.mark.skipif(STRACE is None, reason="strace is not installed here")
def test_no_error_of_a_system_call_makes_us_say_what_is_not_so(start: tuple[Path, set[str]], beside: Path) -> None:
    began, tokens = start
    places = places_to_fail(began, beside / "counted")
    assert {"pwrite64", "fsync", "openat"} <= set(places)
    chance = random.Random(7)
    kinds = itertools.cycle((call, error) for call in places for error in ERRORS[call])
    refused = 0
    wrong: list[str] = []

    for number, (call, error) in zip(range(how_many(300, share=30)), kinds, strict=False):
        folder = copied(began, beside / f"at-{number}")
        at = chance.randint(*places[call])
        ran = acted(folder, strace=["-e", f"trace={call},write,fsync,fdatasync", "-e", f"inject={call}:error={error}:when={at}"])
        assert ran.code in (0, 1), (call, error, at, ran.err)
        refused += "refused" in ran.err
        listed = [*ran.unsynced(), *untrue(folder, ran.said, tokens)]
        wrong += [f"{call} {error} at {at}: {line}" for line in listed]
        shutil.rmtree(folder)

    assert wrong == []
    assert refused > 0


def test_no_file_that_may_not_grow_makes_us_say_what_is_not_so(start: tuple[Path, set[str]], beside: Path) -> None:
    """A write beyond the limit is short, and the next one fails."""
    began, tokens = start
    chance = random.Random(8)
    wrong: list[str] = []

    for number in range(how_many(25, share=5)):
        folder = copied(began, beside / f"small-{number}")
        ran = acted(folder, limit=chance.choice([500, 1_500, 10_000, 50_000, 100_000, 200_000]))
        assert ran.code in (0, 1), ran.err
        wrong += untrue(folder, ran.said, tokens)
        shutil.rmtree(folder)

    assert wrong == []


ON_A_SMALL_DISK = """
import json, shutil, subprocess, sys
from pathlib import Path
from tests.goals.test_goal_05_errors import acted
from tests.goals.writing import untrue

began, disk, tokens = Path(sys.argv[1]), Path(sys.argv[2]), set(json.loads(sys.argv[3]))
wrong, refused = [], 0
for number in range(int(sys.argv[4])):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "none", str(disk)], check=True)
    shutil.copytree(began, disk / "home")
    used = int(subprocess.run(["du", "-sk", str(disk)], capture_output=True, text=True, check=True).stdout.split()[0])
    subprocess.run(["mount", "-o", f"remount,size={used + int(sys.argv[5]) + 83 * number % 1500}k", str(disk)], check=True)
    ran = acted(disk / "home", *sys.argv[6:])
    assert ran.code in (0, 1), ran.err
    refused += "refused" in ran.err
    subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
    wrong += [f"{number}: {line}" for line in untrue(disk / "home", ran.said, tokens)]
    subprocess.run(["umount", "--lazy", str(disk)], check=True)
print(json.dumps([wrong, refused]))
"""


def on_small_disks(start: tuple[Path, set[str]], disk: Path, count: int, *options: str, room: int) -> tuple[list[str], int]:
    """``room`` is how many kilobytes the first of them leaves."""
    began, tokens = start
    disk.mkdir()
    done = subprocess.run(
        [
            *UNSHARE,
            sys.executable,
            "-c",
            ON_A_SMALL_DISK,
            str(began),
            str(disk),
            json.dumps(sorted(tokens)),
            str(count),
            str(room),
            *options,
        ],
        cwd=PROJECT,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    wrong, refused = json.loads(done.stdout)
    return wrong, refused


@pytest.mark.skipif(not may_mount(), reason="no mount namespaces here")
def test_no_disk_that_is_full_makes_us_say_what_is_not_so(start: tuple[Path, set[str]], tmp_path: Path) -> None:
    wrong, refused = on_small_disks(start, tmp_path / "disk", how_many(25, share=5), room=50)

    assert wrong == []
    assert refused > 0


@pytest.mark.skipif(not may_mount(), reason="no mount namespaces here")
def test_control_a_write_that_no_one_looks_at_is_caught(start: tuple[Path, set[str]], tmp_path: Path) -> None:
    wrong, _ = on_small_disks(start, tmp_path / "disk", 1, "--careless", room=900)

    assert any("said to be remembered" in line for line in wrong)
