"""An index may be gone, stale, of another dimension or cut short: an answer, or silence, and a line in the status."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kite_memory.recall.index import Index
from kite_memory.recall.recall import Recall
from kite_memory.recall.search import Query
from kite_memory.recall.select import Prompt
from kite_memory.recall.session_memory import SessionMemory
from tests.fakes.hashing_embedder import HashingEmbedder
from tests.recall.notes import VAULT, Pile

ASKED = "PostgreSQL over SQLite for the job queue"


def no_folder(folder: Path) -> None:
    shutil.rmtree(folder)


def no_vectors(folder: Path) -> None:
    shutil.rmtree(next(folder.glob("hashing-*")))


def no_manifest(folder: Path) -> None:
    next(folder.glob("*/manifest.json")).unlink()


def no_rows(folder: Path) -> None:
    next(folder.glob("*/rows-*.json")).unlink()


def cut_manifest(folder: Path) -> None:
    path = next(folder.glob("*/manifest.json"))
    os.truncate(path, path.stat().st_size // 2)


def cut_vectors(folder: Path) -> None:
    path = next(folder.glob("*/vectors-*.npy"))
    os.truncate(path, path.stat().st_size // 2)


def another_dimension(folder: Path) -> None:
    path = next(folder.glob("*/manifest.json"))
    manifest = json.loads(path.read_text())
    manifest["space"]["dim"] = 1024
    path.write_text(json.dumps(manifest))


def cut_catalogue(folder: Path) -> None:
    for path in folder.glob("catalogue.db-*"):
        path.unlink()
    os.truncate(folder / "catalogue.db", 7000)


def no_catalogue(folder: Path) -> None:
    for path in folder.glob("catalogue.db*"):
        path.unlink()


WITHOUT_VECTORS = [no_vectors, no_manifest, no_rows, cut_manifest, cut_vectors, another_dimension]
WITHOUT_NOTES = [no_folder, no_catalogue, cut_catalogue]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[[], Recall]]:
    """As the next process finds it; what was opened before is closed."""
    there: list[Recall] = []

    def open_recall() -> Recall:
        for before in there:
            before.close()
        index = Index(tmp_path / "index", embedder=HashingEmbedder(), clock=lambda: 10**18)
        there[:] = [Recall(index=index, memory=SessionMemory(tmp_path / "shown.sqlite"))]
        return there[0]

    first = open_recall()
    first.refresh(Pile(*VAULT))
    first.close()
    yield open_recall
    there[0].close()


@pytest.mark.parametrize("damage", WITHOUT_VECTORS)
def test_without_vectors_words_still_answer_and_the_status_shows(
    tmp_path: Path, opened: Callable[[], Recall], damage: Callable[[Path], None]
) -> None:
    damage(tmp_path / "index")
    recall = opened()

    hits = recall.search(Query(text=ASKED))
    recall.answer(Prompt(text=ASKED, session="one"))

    status = recall.index.status()
    assert hits[0].note.id == "queue"
    assert status.stale == status.notes == 4
    assert damage is no_vectors or [problem.reason for problem in status.problems if problem.reason.startswith("index: ")]


@pytest.mark.parametrize("damage", WITHOUT_NOTES)
def test_without_a_catalogue_there_is_silence_and_the_status_shows(
    tmp_path: Path, opened: Callable[[], Recall], damage: Callable[[Path], None]
) -> None:
    damage(tmp_path / "index")
    recall = opened()

    injection = recall.answer(Prompt(text=ASKED, session="one"))

    assert (injection.block, injection.hits) == ("", ())
    assert injection.reason
    assert recall.search(Query(text=ASKED)) == ()
    assert recall.index.status().notes == 0
    assert damage is not cut_catalogue or "catalogue" in recall.index.status().problems[0].reason


@pytest.mark.parametrize("damage", [*WITHOUT_VECTORS, *WITHOUT_NOTES])
def test_the_next_refresh_makes_it_whole(tmp_path: Path, opened: Callable[[], Recall], damage: Callable[[Path], None]) -> None:
    damage(tmp_path / "index")
    recall = opened()
    recall.answer(Prompt(text=ASKED, session="one"))

    recall.refresh(Pile(*VAULT))
    recall.refresh(Pile(*VAULT))

    status = recall.index.status()
    assert (status.notes, status.stale, status.problems) == (4, 0, ())
    assert recall.search(Query(text=ASKED))[0].note.id == "queue"
    assert recall.index.verify() == ()


def test_a_note_without_its_vector_yet_is_found_by_its_words_and_counted(tmp_path: Path, opened: Callable[[], Recall]) -> None:
    """As after a refresh that was cut short between the catalogue and the vectors."""
    shutil.copytree(next((tmp_path / "index").glob("hashing-*")), tmp_path / "before")
    recall = opened()
    changed = Pile(*VAULT)
    changed.change("decisions/postgres-over-sqlite-feb26.md", title="PostgreSQL over SQLite for the mail queue")
    recall.refresh(changed)
    shutil.rmtree(next((tmp_path / "index").glob("hashing-*")))
    shutil.copytree(tmp_path / "before", tmp_path / "index" / "hashing-64-1")
    recall = opened()

    hits = recall.search(Query(text="PostgreSQL mail queue"))

    assert hits[0].note.title.endswith("mail queue")
    assert recall.index.status().stale == 1
