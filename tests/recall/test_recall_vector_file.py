import json
import os
import shutil
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kite_memory.recall.embedder import Space, Vectors
from kite_memory.recall.vector_file import Row, Rows, VectorFile, key_of
from tests.counts import examples

Damage = Callable[[Path], object]

SPACE = Space(name="tiny", dim=4, version="1", threshold=0.4)


def vectors_of(keys: list[int]) -> Vectors:
    """Rows that tell which key they belong to, and that 255 steps can tell exactly."""
    return np.array([[key % 97, key % 89, key % 83, 127] for key in keys], np.float32).reshape(-1, 4)


def rows_of(keys: list[int]) -> list[Row]:
    return [Row(key=key, note=f"note-{key}") for key in keys]


def append(sidecar: VectorFile, *keys: int) -> None:
    sidecar.append(rows_of(list(keys)), vectors_of(list(keys)))


def held(sidecar: VectorFile) -> dict[int, list[float]]:
    rows = sidecar.rows()
    return {int(key): row.tolist() for key, row in zip(rows.keys, matrix_of(rows), strict=True)}


def matrix_of(rows: Rows) -> Vectors:
    """Column by column, as the products with unit vectors tell it."""
    return np.stack([rows.cosines(unit) for unit in np.eye(4, dtype=np.float32)], axis=1)


def expected(*keys: int) -> dict[int, list[float]]:
    return {key: row.tolist() for key, row in zip(keys, vectors_of(list(keys)), strict=True)}


def test_what_was_appended_is_read_back_by_another(tmp_path: Path) -> None:
    append(VectorFile(tmp_path, SPACE), 1, 2, -3)

    assert held(VectorFile(tmp_path, SPACE)) == expected(1, 2, -3)


def test_the_manifest_names_the_space_and_a_list_of_each_row_s_note_and_hash(tmp_path: Path) -> None:
    sidecar = VectorFile(tmp_path, SPACE)

    append(sidecar, key_of("tea"))

    manifest = json.loads((sidecar.folder / "manifest.json").read_text())
    assert manifest["format"] == 2
    assert manifest["space"] == {"name": "tiny", "dim": 4, "version": "1"}
    segment = manifest["segments"][0]
    rows = json.loads((sidecar.folder / segment["rows"]["file"]).read_text())
    assert rows == {"keys": [f"{key_of('tea') % 2**64:016x}"], "notes": [f"note-{key_of('tea')}"]}
    assert segment["vectors"]["size"] == (sidecar.folder / segment["vectors"]["file"]).stat().st_size


def test_a_reader_sees_what_another_writes_later(tmp_path: Path) -> None:
    reader, writer = VectorFile(tmp_path, SPACE), VectorFile(tmp_path, SPACE)
    append(writer, 1)
    before = reader.rows()

    append(writer, 2)

    assert held(reader) == expected(1, 2)
    assert before.keys.tolist() == [1]
    assert matrix_of(before).tolist() == vectors_of([1]).tolist()


def test_nothing_is_read_again_while_nothing_changes(tmp_path: Path) -> None:
    sidecar = VectorFile(tmp_path, SPACE)
    append(sidecar, 1)

    assert sidecar.rows() is sidecar.rows()


def test_known_keys_are_not_written_twice(tmp_path: Path) -> None:
    sidecar = VectorFile(tmp_path, SPACE)
    append(sidecar, 1, 2)

    append(sidecar, 2, 3, 3)

    assert sorted(sidecar.rows().keys.tolist()) == [1, 2, 3]


def test_one_row_more_does_not_rewrite_a_large_matrix(tmp_path: Path) -> None:
    sidecar = VectorFile(tmp_path, SPACE)
    append(sidecar, *range(1000))
    large = sorted(sidecar.folder.glob("*-1.*"))
    before = [(path.stat().st_ino, path.stat().st_mtime_ns) for path in large]

    for key in range(1000, 1030):
        append(sidecar, key)

    assert [path.name for path in large] == ["rows-1.json", "vectors-1.npy"]
    assert [(path.stat().st_ino, path.stat().st_mtime_ns) for path in large] == before
    assert len(sidecar.rows().segments) <= 9
    assert held(sidecar) == expected(*range(1030))


def test_the_segments_that_stay_are_not_read_again(tmp_path: Path) -> None:
    sidecar = VectorFile(tmp_path, SPACE)
    append(sidecar, *range(100))
    before = sidecar.rows()

    append(sidecar, 100)

    assert sidecar.rows().segments[0] is before.segments[0]


@given(st.lists(st.floats(-1, 1, width=32), min_size=4, max_size=4))
def test_a_vector_keeps_its_direction(numbers: list[float]) -> None:
    import tempfile

    vector = np.array([numbers], np.float32)
    if (length := float(np.linalg.norm(vector))) < 1e-6:
        vector[:] = 0
    else:
        vector /= length
    with tempfile.TemporaryDirectory() as folder:
        sidecar = VectorFile(Path(folder), SPACE)
        sidecar.append(rows_of([1]), vector)

        assert np.allclose(matrix_of(sidecar.rows()), vector, atol=1 / 254 + 1e-6)


def test_what_is_no_number_becomes_nothing(tmp_path: Path) -> None:
    sidecar = VectorFile(tmp_path, SPACE)

    sidecar.append(rows_of([1]), np.array([[np.nan, np.inf, -np.inf, 1]], np.float32))

    assert held(sidecar) == {1: [0, 0, 0, 1]}


KEYS = st.integers(0, 60)


@given(st.lists(st.sets(KEYS, min_size=1), min_size=1, max_size=14), st.lists(KEYS, max_size=30), st.data())
@settings(deadline=None, max_examples=examples(60))
def test_places_found_from_earlier_ones_are_those_found_anew(
    batches: list[set[int]], asked: list[int], data: st.DataObject
) -> None:
    """Over appends that merge segments, for keys that were known, missing, or not asked for before."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        sidecar = VectorFile(Path(folder), SPACE)
        turn = data.draw(st.integers(0, len(batches) - 1))
        for batch in batches[:turn]:
            append(sidecar, *batch)
        before = sidecar.rows()
        keys = np.array(asked, np.int64)
        unasked = np.array(data.draw(st.lists(st.booleans(), min_size=len(asked), max_size=len(asked))), np.bool_)
        places = np.where(unasked, -1, before.places(keys))
        for batch in batches[turn:]:
            append(sidecar, *batch)

        after = sidecar.rows()

        assert after.places_after(before, keys, places).tolist() == after.places(keys).tolist()
        there = after.places(keys)[after.places(keys) < len(after)]
        assert after.keys[there].tolist() == [key for key in asked if key in set().union(*batches)]


@pytest.mark.parametrize("count", [1, 512, 1300])
def test_some_rows_are_compared_as_all_are(tmp_path: Path, count: int) -> None:
    sidecar = VectorFile(tmp_path, SPACE)
    append(sidecar, *range(count))
    append(sidecar, count, count + 1)
    query = np.array([0.1, 0.5, -0.3, 0.8], np.float32)
    some = np.arange(len(sidecar.rows()) - 1, -1, -2)

    cosines = sidecar.rows().cosines(query, some)

    assert np.allclose(cosines, sidecar.rows().cosines(query)[some], rtol=1e-6)


@given(st.lists(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=12), max_size=30))
@settings(deadline=None, max_examples=examples(40))
def test_however_rows_arrive_each_is_there_once(batches: list[list[int]]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        sidecar = VectorFile(Path(folder), SPACE)
        for batch in batches:
            append(sidecar, *batch)

        assert held(VectorFile(Path(folder), SPACE)) == expected(*dict.fromkeys(key for batch in batches for key in batch))
        assert sidecar.verify() == ()


def test_only_wanted_rows_are_kept_once_many_are_not(tmp_path: Path) -> None:
    sidecar = VectorFile(tmp_path, SPACE)
    append(sidecar, *range(6000))
    append(sidecar, *range(6000, 6010))

    sidecar.keep(lambda: np.arange(5000, 6005))

    assert held(sidecar) == expected(*range(5000, 6005))
    assert len(list(sidecar.folder.glob("vectors-*.npy"))) == 1


def test_a_few_unwanted_rows_are_not_worth_a_rewrite(tmp_path: Path) -> None:
    sidecar = VectorFile(tmp_path, SPACE)
    append(sidecar, *range(100))

    sidecar.keep(lambda: np.arange(90))

    assert len(sidecar.rows()) == 100


def test_no_row_wanted_leaves_no_matrix(tmp_path: Path) -> None:
    sidecar = VectorFile(tmp_path, SPACE)
    append(sidecar, 1, 2)

    sidecar.keep(lambda: np.zeros(0, np.int64))

    assert len(sidecar.rows()) == 0
    assert list(sidecar.folder.glob("*.npy")) == []


def test_spaces_lie_apart(tmp_path: Path) -> None:
    other = Space(name="tiny", dim=4, version="2", threshold=0.4)
    append(VectorFile(tmp_path, SPACE), 1)

    append(VectorFile(tmp_path, other), 2)

    assert held(VectorFile(tmp_path, SPACE)) == expected(1)
    assert held(VectorFile(tmp_path, other)) == expected(2)


def test_a_model_s_name_cannot_lead_out_of_the_folder(tmp_path: Path) -> None:
    sidecar = VectorFile(tmp_path / "index", Space(name="../../evil/model", dim=4, version="1", threshold=0.4))

    append(sidecar, 1)

    assert sidecar.folder.parent == tmp_path / "index"
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


def test_files_are_the_owner_s_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        sidecar = VectorFile(tmp_path / "state" / "index", SPACE)
        append(sidecar, 1)
    finally:
        os.umask(before)

    assert {path.stat().st_mode & 0o777 for path in sidecar.folder.iterdir()} == {0o600}
    assert {path.stat().st_mode & 0o777 for path in (sidecar.folder, tmp_path / "state", tmp_path / "state" / "index")} == {0o700}


def damage_manifest(change: Callable[[dict[str, object]], object]) -> Damage:
    def damage(folder: Path) -> None:
        manifest = json.loads((folder / "manifest.json").read_text())
        change(manifest)
        (folder / "manifest.json").write_text(json.dumps(manifest))

    return damage


def cut(name: str, to: int) -> Damage:
    def damage(folder: Path) -> None:
        path = next(folder.glob(name))
        os.truncate(path, to if to >= 0 else path.stat().st_size + to)

    return damage


def flip(name: str, what: bytes, into: bytes) -> Damage:
    def damage(folder: Path) -> None:
        path = next(folder.glob(name))
        content = path.read_bytes()
        assert what in content
        path.write_bytes(content.replace(what, into)[: len(content)])

    return damage


def replace_matrix(vectors: object, dtype: npt.DTypeLike = np.int64) -> Damage:
    def damage(folder: Path) -> None:
        path = next(folder.glob("vectors-*.npy"))
        np.save(path, np.array(vectors, dtype))
        damage_manifest(lambda manifest: _file(manifest, "vectors").update(size=path.stat().st_size))(folder)

    return damage


def replace_rows(rows: object) -> Damage:
    def damage(folder: Path) -> None:
        path = next(folder.glob("rows-*.json"))
        path.write_text(json.dumps(rows))
        damage_manifest(lambda manifest: _file(manifest, "rows").update(size=path.stat().st_size))(folder)

    return damage


def _file(manifest: dict[str, object], which: str) -> dict[str, object]:
    segments = manifest["segments"]
    assert isinstance(segments, list)
    file: dict[str, object] = segments[0][which]
    return file


def _space(manifest: dict[str, object]) -> dict[str, object]:
    space = manifest["space"]
    assert isinstance(space, dict)
    return space


DAMAGES: dict[str, tuple[Damage, str]] = {
    "manifest missing": (lambda folder: (folder / "manifest.json").unlink(), "manifest is missing"),
    "manifest empty": (cut("manifest.json", 0), "manifest cannot be read"),
    "manifest cut": (cut("manifest.json", -1), "manifest cannot be read"),
    "manifest a list": (lambda folder: (folder / "manifest.json").write_text("[]"), "manifest cannot be read"),
    "manifest binary": (lambda folder: (folder / "manifest.json").write_bytes(b"\xff\x00"), "manifest cannot be read"),
    "manifest without segments": (damage_manifest(lambda manifest: manifest.pop("segments")), "manifest cannot be read"),
    "segment of the wrong shape": (damage_manifest(lambda manifest: manifest.update(segments=[7])), "manifest cannot be read"),
    "newer format": (damage_manifest(lambda manifest: manifest.update(format=3)), "newer version"),
    "older format": (damage_manifest(lambda manifest: manifest.update(format=1)), "older version"),
    "another model": (damage_manifest(lambda manifest: _space(manifest).update(name="x")), "another space"),
    "another dimension": (damage_manifest(lambda manifest: _space(manifest).update(dim=3)), "another space"),
    "another version": (damage_manifest(lambda manifest: _space(manifest).update(version="2")), "another space"),
    "matrix missing": (lambda folder: next(folder.glob("vectors-*.npy")).unlink(), "file is missing"),
    "matrix empty": (cut("vectors-*.npy", 0), "cut short"),
    "matrix cut in its header": (cut("vectors-*.npy", 50), "cut short"),
    "matrix cut": (cut("vectors-*.npy", -1), "cut short"),
    "matrix of another dimension": (replace_matrix([(1, [1, 2, 3])] * 3, [("scale", "<f4"), ("codes", "i1", 3)]), "another shape"),
    "matrix of another type": (replace_matrix([[1, 2, 3, 4]] * 3), "another shape"),
    "matrix with fewer rows": (replace_matrix([(1, [1, 2, 3, 4])], [("scale", "<f4"), ("codes", "i1", 4)]), "another shape"),
    "matrix that would run code": (replace_matrix([[object()] * 4] * 3, object), "another shape"),
    "matrix whose header never ends": (flip("vectors-*.npy", b"{'descr': [", b"{'descr': (("), "another shape"),
    "rows missing": (lambda folder: next(folder.glob("rows-*.json")).unlink(), "file is missing"),
    "rows cut": (cut("rows-*.json", -1), "cut short"),
    "rows that are none": (replace_rows([1, 2]), "cannot be read"),
    "keys that are none": (replace_rows({"keys": ["z" * 16] * 3, "notes": ["a"] * 3}), "cannot be read"),
    "keys too long": (replace_rows({"keys": ["f" * 17] * 3, "notes": ["a"] * 3}), "cannot be read"),
    "keys that are numbers": (replace_rows({"keys": [1, 2, 3], "notes": ["a"] * 3}), "cannot be read"),
    "fewer keys than rows": (replace_rows({"keys": ["f" * 16], "notes": ["a"]}), "another shape"),
    "fewer notes than rows": (replace_rows({"keys": [f"{key:016x}" for key in (1, 2, 3)], "notes": []}), "another shape"),
    "a matrix outside": (damage_manifest(lambda manifest: _file(manifest, "vectors").update(file="../../etc/passwd")), "missing"),
    "rows outside": (damage_manifest(lambda manifest: _file(manifest, "rows").update(file="../../etc/passwd")), "missing"),
}


@pytest.mark.parametrize(("damage", "reason"), DAMAGES.values(), ids=DAMAGES)
def test_what_cannot_be_used_is_missing_and_reported(tmp_path: Path, damage: Damage, reason: str) -> None:
    append(VectorFile(tmp_path, SPACE), 1, 2, 3)
    damage(VectorFile(tmp_path, SPACE).folder)
    sidecar = VectorFile(tmp_path, SPACE)

    rows = sidecar.rows()

    assert len(rows) == 0
    assert [problem.reason for problem in sidecar.problems if reason in problem.reason]


@pytest.mark.parametrize(("damage", "reason"), DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_folder_is_whole_after_the_next_append(tmp_path: Path, damage: Damage, reason: str) -> None:
    append(VectorFile(tmp_path, SPACE), 1, 2, 3)
    damage(VectorFile(tmp_path, SPACE).folder)

    append(VectorFile(tmp_path, SPACE), 1, 2, 3)

    healed = VectorFile(tmp_path, SPACE)
    assert held(healed) == expected(1, 2, 3)
    assert healed.problems == ()
    assert healed.verify() == ()
    assert {path.name.partition("-")[0] for path in healed.folder.iterdir()} == {".lock", "manifest.json", "vectors", "rows"}
    assert len(list(healed.folder.iterdir())) == 4


def test_a_matrix_cut_while_it_is_in_use_is_let_go(tmp_path: Path) -> None:
    sidecar = VectorFile(tmp_path, SPACE)
    append(sidecar, 1, 2, 3)
    sidecar.rows()
    cut("vectors-*.npy", -1)(sidecar.folder)

    rows = sidecar.rows()

    assert len(rows) == 0
    assert "cut short" in sidecar.problems[0].reason


def test_a_folder_that_vanishes_in_use_is_empty(tmp_path: Path) -> None:
    sidecar = VectorFile(tmp_path, SPACE)
    append(sidecar, 1)
    sidecar.rows()
    shutil.rmtree(sidecar.folder)

    assert len(sidecar.rows()) == 0


@pytest.mark.parametrize("name", ["vectors-*.npy", "rows-*.json"])
def test_verify_finds_a_flipped_bit(tmp_path: Path, name: str) -> None:
    sidecar = VectorFile(tmp_path, SPACE)
    append(sidecar, 1, 2, 3)
    path = next(sidecar.folder.glob(name))
    content = bytearray(path.read_bytes())
    content[-4] ^= 1
    path.write_bytes(content)

    assert [problem.reason for problem in sidecar.verify()] == ["index: a file is not what was written"]


def test_what_cannot_be_read_again_is_not_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A manifest with the hash of nothing would call a good file a damaged one for ever."""
    sidecar = VectorFile(tmp_path, SPACE)
    append(sidecar, 1)
    opened = Path.open

    def refuses(path: Path, mode: str = "r", *more: Any) -> Any:
        if mode == "rb" and path.name.startswith(".kmem-"):
            raise PermissionError(13, "Permission denied")
        return opened(path, mode, *more)

    monkeypatch.setattr(Path, "open", refuses)
    with pytest.raises(PermissionError):
        append(sidecar, 2)
    monkeypatch.undo()

    append(sidecar, 2)
    assert sidecar.verify() == ()
    assert held(sidecar) == expected(1, 2)


STEPS = ["matrix written", "matrix named", "rows named", "manifest written", "manifest named", "old ones removed"]


@pytest.mark.parametrize("done", range(len(STEPS) + 1))
def test_an_append_that_ends_between_two_steps_leaves_the_folder_whole(tmp_path: Path, done: int) -> None:
    """Nine segments, so that this append also merges. The steps' own files stay where they are, as after a crash."""
    sidecar = VectorFile(tmp_path, SPACE)
    for key in range(8):
        append(sidecar, key)
    steps = sidecar.appending(rows_of([8]), vectors_of([8]))

    assert list(islice(steps, done)) == STEPS[:done]

    found = VectorFile(tmp_path, SPACE)
    assert held(found) == (expected(*range(9)) if done >= STEPS.index("manifest named") + 1 else expected(*range(8)))
    assert found.problems == ()
    append(found, 8, 9)
    assert held(found) == expected(*range(10))
    segments = json.loads((found.folder / "manifest.json").read_text())["segments"]
    named = {file["file"] for segment in segments for file in segment.values()}
    assert {path.name for path in found.folder.iterdir()} == {"manifest.json", ".lock", *named}
