"""`kmem verify` finds every bit that has turned over in what we keep, and `kmem rebuild` gives the index that there was."""

import json
import os
import random
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kite_memory.cli.everyday import leave_transcripts
from kite_memory.recall.local_embedder import LocalEmbedder
from kite_memory.recall.vector_file import VectorFile
from kite_memory.system import sqlite
from tests.cli.transcript import in_this_process
from tests.counts import how_many
from tests.e2e.kmem import Machine


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    """With sessions read, notes made, one kept under a key in two versions, one forgotten, and an AI's state saved."""
    folder = Path(tempfile.mkdtemp(prefix="kmem-")).resolve()
    machine = Machine(folder / "ada", usual_places=True)
    leave_transcripts(machine.home / ".claude", machine.home / "mycelia")
    run(machine, "backfill")
    run(machine, "remember", "The sluice opens at six.", "--key", "sluice", "--global")
    run(machine, "remember", "The sluice opens at seven.", "--key", "sluice", "--global")
    run(machine, "remember", "The kiln is fired on Mondays.", "--global")
    run(machine, "forget", str(machine.notes()[0].relative_to(machine.vault)), "--yes")
    run(machine, "search", "kiln")
    yield machine
    shutil.rmtree(folder)


def run(machine: Machine, *arguments: str) -> str:
    ran = in_this_process(machine, list(arguments), cwd=machine.home)
    assert ran.code == 0, ran.err
    return ran.out


def kept(state: Path) -> list[Path]:
    """All that is more than a log or a lock."""
    names = (
        *state.glob("*.sqlite"),
        *state.glob("*.let-go"),
        *state.glob("*.key"),
        *(state / "index").rglob("*"),
        state / "seals.json",
    )
    return sorted(path for path in names if path.is_file() and not path.name.endswith((".lock", "-wal", "-shm")))


def turn_over(path: Path, chance: random.Random) -> int:
    """One bit, as a disk does it: the file's time stays."""
    before = path.stat()
    data = bytearray(path.read_bytes())
    bit = chance.randrange(len(data) * 8)
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    return bit


def test_there_is_something_to_lose(machine: Machine) -> None:
    names = {path.name for path in kept(machine.state)}

    assert {"timeline.sqlite", "outbox.sqlite", "vault.sqlite", "bridge.sqlite", "catalogue.db", "shown.sqlite"} <= names
    assert any(name.startswith("vectors-") for name in names)
    assert in_this_process(machine, ["verify", "--json"], cwd=machine.home).out.strip() == "[]"


def test_every_bit_that_turned_over_is_found_by_the_seals(machine: Machine) -> None:
    chance = random.Random(16)
    files = kept(machine.state)
    missed = []

    for number in range(how_many(1_000)):
        path = files[number % len(files)]
        whole, before = path.read_bytes(), path.stat()
        bit = turn_over(path, chance)
        if path.name not in {Path(name).name for name in sqlite.broken(machine.state)}:
            missed.append((path.name, bit))
        path.write_bytes(whole)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert missed == []
    assert sqlite.broken(machine.state) == []


def found_by_verify(machine: Machine, copies: Path, flips: int, *, sealed: bool = True) -> int:
    """Of so many bits, each in a state of its own, how many the whole command finds."""
    chance, found = random.Random(61), 0
    pristine = copies / "pristine"
    shutil.copytree(machine.state, pristine)
    try:
        for number in range(flips):
            files = [path for path in kept(machine.state) if sealed or path.suffix == ".sqlite"]
            turn_over(files[number % len(files)], chance)
            if not sealed:
                (machine.state / "seals.json").unlink()
            ran = in_this_process(machine, ["verify", "--json"], cwd=machine.home)
            assert ran.code in (0, 1, 3), ran.err
            found += ran.code != 0
            shutil.rmtree(machine.state)
            shutil.copytree(pristine, machine.state)
    finally:
        shutil.rmtree(pristine)
    return found


def test_the_whole_command_shows_for_them(machine: Machine, tmp_path: Path) -> None:
    flips = how_many(1_000)

    assert found_by_verify(machine, tmp_path, flips) == flips


def test_control_without_seals_bits_in_words_are_missed(machine: Machine, tmp_path: Path) -> None:
    assert found_by_verify(machine, tmp_path, 10, sealed=False) < 10


def index_of(machine: Machine) -> tuple[list[tuple[object, ...]], dict[int, Any]]:
    """What is catalogued of every note, and its vectors by what they were made of."""
    folder = machine.state / "index"
    with closing(sqlite3.connect(folder / "catalogue.db")) as database:
        notes = database.execute(
            "SELECT n.path, size, digest, n.name, stem, kind, status, scope, p.name, created, expires, importance, document"
            " FROM note AS n LEFT JOIN project AS p ON p.number = n.project ORDER BY path"
        ).fetchall()
        passages = database.execute(
            "SELECT n.path, p.number, p.key FROM passage AS p JOIN note AS n ON n.number = p.note ORDER BY 1, 2"
        ).fetchall()
    rows = VectorFile(folder, LocalEmbedder().space).rows()
    vectors = np.concatenate([np.asarray(segment.matrix) for segment in rows.segments])
    return [*notes, *passages], {int(key): vector for key, vector in zip(rows.keys, vectors, strict=True)}


def test_a_rebuilt_index_is_the_one_there_was(machine: Machine) -> None:
    """To the last bit, but for a row's scale: how many texts are embedded at once moves it by some millionths of itself."""
    notes, vectors = index_of(machine)

    run(machine, "rebuild")

    notes_now, vectors_now = index_of(machine)
    assert notes_now == notes
    assert vectors_now.keys() == vectors.keys()
    for key, vector in vectors.items():
        assert np.isclose(vectors_now[key]["scale"], vector["scale"], rtol=1e-5)
        assert np.array_equal(vectors_now[key]["codes"], vector["codes"])
    assert len(notes) > 5 and len(vectors) > 3


def test_control_an_index_of_other_words_is_not_taken_for_the_same(machine: Machine) -> None:
    before, _ = index_of(machine)
    note = next(note for note in machine.notes() if "kiln" in note.read_text())
    note.write_text(note.read_text().replace("Mondays", "Tuesdays"))

    run(machine, "rebuild")

    assert index_of(machine)[0] != before


def test_a_rebuilt_timeline_lets_go_again_what_was_let_go(machine: Machine) -> None:
    run(machine, "rebuild", "--timeline")

    assert json.loads(run(machine, "verify", "--json")) == []
