import os
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kite_memory.errors import EmbedderUnavailable, VaultMissing
from kite_memory.model.note import Entry, Note, Scope
from kite_memory.recall.embedder import Embedder, Purpose, Space, Vectors
from kite_memory.recall.index import Index, Refreshed
from tests.fakes.hashing_embedder import HashingEmbedder
from tests.recall.notes import AUTH, CSS, LINT, QUEUE, VAULT, Pile, note

LATER = 10**18
"""A clock at which no file of a `Pile` was changed just now."""


def index_at(folder: Path, embedder: Embedder | None = None, beside: Embedder | None = None) -> Index:
    return Index(folder, embedder=embedder or HashingEmbedder(), beside=beside, clock=lambda: LATER)


def found(index: Index, text: str, **how: Any) -> dict[str, tuple[bool, bool]]:
    """Notes by id: whether they were found by their words, and by their meaning."""
    signals = index.signals(text, **how)
    notes = index.notes(signals.columns.notes["number"].tolist())
    ids = [notes[int(number)].id for number in signals.columns.notes["number"]]
    seen = zip((signals.bm25 > 0).tolist(), (signals.cosine > 0.2).tolist(), strict=True)
    return {id: (words, meaning) for id, (words, meaning) in zip(ids, seen, strict=True) if words or meaning}


class Failing:
    """An embedder of another space whose service is away until reported otherwise."""

    def __init__(self) -> None:
        self.works = False
        self.texts: list[str] = []
        self._inner = HashingEmbedder(32)

    @property
    def space(self) -> Space:
        return replace(self._inner.space, name="remote")

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        if not self.works:
            raise EmbedderUnavailable("the service is away")
        self.texts += texts
        return self._inner.embed(texts, purpose)


def test_a_refresh_takes_up_the_whole_vault(tmp_path: Path) -> None:
    index = index_at(tmp_path)

    refreshed = index.refresh(Pile(*VAULT))

    assert refreshed == Refreshed(added=4, embedded=4)
    assert found(index, "job queue")["queue"] == (True, True)
    index.close()


def test_an_index_is_in_step_with_the_vault_it_was_refreshed_from(tmp_path: Path) -> None:
    index = index_at(tmp_path)
    assert not index.is_in_step(Pile(*VAULT))

    index.refresh(Pile(*VAULT))

    assert index.is_in_step(Pile(*VAULT))
    assert not index.is_in_step(Pile(*VAULT[1:]))
    index.close()


def test_a_second_refresh_reads_nothing_and_changes_nothing(tmp_path: Path) -> None:
    pile = Pile(*VAULT)
    index = index_at(tmp_path)
    index.refresh(pile)
    pile.read_paths.clear()
    before = {path.name: path.read_bytes() for path in index._spaces[0][1].folder.iterdir()}

    assert index.refresh(pile) == Refreshed()

    assert pile.read_paths == []
    assert {path.name: path.read_bytes() for path in index._spaces[0][1].folder.iterdir()} == before
    index.close()


def test_only_what_differs_is_read_and_only_new_texts_are_embedded(tmp_path: Path) -> None:
    pile = Pile(*VAULT)
    index = index_at(tmp_path)
    index.refresh(pile)
    pile.read_paths.clear()
    pile.change(QUEUE.path, body="Now it is about bananas.")
    pile.change(LINT.path, importance=3)
    pile.remove(CSS.path)
    pile.put(note("new", "A new one"))

    refreshed = index.refresh(pile)

    assert refreshed == Refreshed(added=1, changed=2, removed=1, embedded=2)
    assert sorted(pile.read_paths) == sorted([QUEUE.path, LINT.path, "facts/new.md", CSS.path])
    assert "queue" in found(index, "bananas")
    assert "css" not in found(index, "colour design variable tokens")
    index.close()


def test_a_renamed_note_keeps_its_vector(tmp_path: Path) -> None:
    pile = Pile(*VAULT)
    index = index_at(tmp_path)
    index.refresh(pile)
    pile.remove(QUEUE.path)
    pile.put(replace(QUEUE, path="elsewhere/renamed.md"))

    refreshed = index.refresh(pile)

    assert (refreshed.added, refreshed.removed, refreshed.embedded) == (1, 1, 0)
    assert found(index, "job queue")["queue"] == (True, True)
    index.close()


def test_a_hint_looks_at_nothing_else_and_is_found_when_it_returns(tmp_path: Path) -> None:
    pile = Pile(*VAULT)
    index = index_at(tmp_path)
    index.refresh(pile)
    pile.read_paths.clear()
    pile.put(note("new", "Ports", "The gateway listens on port 4711."))
    pile.put(note("unseen", "Unseen", "This one is not hinted at."))

    refreshed = index.refresh(pile, hint=["facts/new.md"])

    assert refreshed == Refreshed(added=1, embedded=1)
    assert pile.read_paths == ["facts/new.md"]
    assert found(index, "gateway port 4711")["new"] == (True, True)
    assert index.refresh(pile) == Refreshed(added=1, embedded=1)
    index.close()


@pytest.mark.parametrize("hint", [{QUEUE.path}, None], ids=["a hint", "all"])
def test_without_meaning_a_note_is_found_by_words_and_by_meaning_once_it_is_embedded(tmp_path: Path, hint: set[str] | None) -> None:
    index, pile = index_at(tmp_path), Pile(AUTH)
    index.refresh(pile)
    pile.put(QUEUE)

    refreshed = index.refresh(pile, hint=hint, embed=False)

    assert (refreshed.added, refreshed.embedded, index.status().stale) == (1, 0, 1)
    assert QUEUE.id in found(index, QUEUE.title)
    assert (index.embed(), index.status().stale, index.embed()) == (1, 0, 0)


def test_a_hint_at_a_note_that_is_gone_takes_it_out_at_once(tmp_path: Path) -> None:
    pile = Pile(*VAULT)
    index = index_at(tmp_path)
    index.refresh(pile)
    pile.remove(QUEUE.path)

    assert index.refresh(pile, hint=[QUEUE.path, "never/was.md"]) == Refreshed(removed=1)

    assert "queue" not in found(index, "job queue")
    index.close()


def test_a_file_that_is_no_note_is_read_once(tmp_path: Path) -> None:
    pile = Pile(*VAULT)
    pile.strange.add("README.md")
    index = index_at(tmp_path)

    assert index.refresh(pile).added == 4
    index.refresh(pile)

    assert pile.read_paths.count("README.md") == 1
    pile.strange.clear()
    assert index.refresh(pile) == Refreshed()
    index.close()


def test_a_file_changed_a_moment_ago_is_looked_at_once_more(tmp_path: Path) -> None:
    clock = [1_000_000_000]
    pile = Pile(QUEUE)
    index = Index(tmp_path, embedder=HashingEmbedder(), clock=lambda: clock[0])
    index.refresh(pile)
    clock[0] = LATER

    index.refresh(pile)
    index.refresh(pile)

    assert pile.read_paths == [QUEUE.path, QUEUE.path]
    index.close()


def test_a_name_that_is_not_text_is_counted_and_passed_over(tmp_path: Path) -> None:
    class Odd(Pile):
        def entries(self) -> list[Entry]:
            return [*super().entries(), Entry(path="facts/\udcff.md", size=1, mtime_ns=1)]

    index = index_at(tmp_path)

    refreshed = index.refresh(Odd(*VAULT))

    assert refreshed.added == 4
    assert [problem.reason for problem in refreshed.problems] == ["a file's name is not text"]
    assert index.refresh(Odd(*VAULT), hint=["facts/\udcff.md"]) == Refreshed()
    index.close()


def test_half_a_surrogate_in_a_note_hurts_no_one(tmp_path: Path) -> None:
    index = index_at(tmp_path)

    index.refresh(Pile(note("odd", "Half \ud800 a pair", "and \udfff another", project="p\ud800", aliases=("\ud800",))))

    assert "odd" in found(index, "half a pair")
    assert index.project_number("p\ud800") > 0
    index.close()


def test_a_vault_that_is_not_there_empties_nothing(tmp_path: Path) -> None:
    class Unmounted(Pile):
        def entries(self) -> list[Entry]:
            raise VaultMissing("no vault")

    index = index_at(tmp_path)
    index.refresh(Pile(*VAULT))

    with pytest.raises(VaultMissing):
        index.refresh(Unmounted())

    assert index.status().notes == 4
    index.close()


def test_an_empty_vault_answers_nothing(tmp_path: Path) -> None:
    index = index_at(tmp_path)

    assert found(index, "anything") == {}
    assert index.refresh(Pile()) == Refreshed()
    assert found(index, "anything") == {}
    assert index.status().notes == 0
    index.close()


def test_a_long_note_is_found_by_its_end(tmp_path: Path) -> None:
    long = note("long", "A long talk", "We spoke about the weather. " * 200 + "\n\n" + "Kangaroos prefer groves. " * 90)
    index = index_at(tmp_path, HashingEmbedder(512))
    index.refresh(Pile(long, *VAULT))

    signals = index.signals("kangaroos prefer groves", words=False)

    assert signals.cosine.max() > 0.8
    assert index.status().rows > 5
    index.close()


class Alike:
    """All texts mean the same, so that a cosine says nothing but that the two were compared."""

    space = Space(name="alike", dim=4, version="1", threshold=0.4)

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        return np.full((len(texts), 4), 0.5, np.float32)


@pytest.mark.parametrize(
    ("text", "project", "compared"),
    [
        ("which linter", "mycelia", {"queue", "auth", "lint", "tabs"}),
        ("which linter for colours", "mycelia", {"queue", "auth", "lint", "tabs", "css"}),
        ("which linter", "orchard", {"css", "tabs", "lint"}),
        ("which pear", "a new one", {"tabs"}),
        ("which pear", "", {"queue", "auth", "lint", "tabs", "css"}),
    ],
)
def test_in_a_large_vault_other_projects_notes_must_share_a_word(
    tmp_path: Path, text: str, project: str, compared: set[str]
) -> None:
    everywhere = note("tabs", "Indent with tabs", "Tabs, never blanks.", scope=Scope.GLOBAL)
    index = Index(tmp_path, embedder=Alike(), compared=3, clock=lambda: LATER)
    index.refresh(Pile(*VAULT, everywhere))

    signals = index.signals(text, project=project)

    notes = index.notes(signals.columns.notes["number"][signals.cosine > 0].tolist())
    assert {each.id for each in notes.values()} == compared
    index.close()


def test_two_notes_of_the_same_words_share_a_row_and_are_both_found(tmp_path: Path) -> None:
    index = index_at(tmp_path)
    index.refresh(Pile(note("one", "Same words"), note("two", "Same words")))

    assert index.status().rows == 1
    assert found(index, "same words") == {"one": (True, True), "two": (True, True)}
    index.close()


def test_a_rebuilt_index_answers_as_the_one_that_grew(tmp_path: Path) -> None:
    pile = Pile(CSS)
    grown = index_at(tmp_path / "grown")
    for each in (QUEUE, note("gone", "Soon gone", "job queue"), LINT, AUTH):
        pile.put(each)
        grown.refresh(pile)
    pile.change(LINT.path, title="Lint")
    pile.remove("facts/gone.md")
    grown.refresh(pile)
    rebuilt = index_at(tmp_path / "rebuilt")
    rebuilt.refresh(pile)

    for text in ("job queue", "lint src", "tokens expire"):
        assert _answers(grown, text) == _answers(rebuilt, text)
    grown.clear()
    grown.refresh(pile)
    assert _answers(grown, "job queue") == _answers(rebuilt, "job queue")
    grown.close()
    rebuilt.close()


def _answers(index: Index, text: str) -> dict[str, tuple[float, float]]:
    signals = index.signals(text)
    notes = index.notes(signals.columns.notes["number"].tolist())
    ids = [notes[int(number)].id for number in signals.columns.notes["number"]]
    return {id: (round(float(b), 6), round(float(c), 5)) for id, b, c in zip(ids, signals.bm25, signals.cosine, strict=True)}


# Two spaces


def test_both_spaces_are_filled_and_lie_apart(tmp_path: Path) -> None:
    remote = Failing()
    remote.works = True
    index = index_at(tmp_path, beside=remote)

    assert index.refresh(Pile(*VAULT)).embedded == 8

    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {"hashing-64-1", "remote-32-1"}
    assert index.signals("job queue").space.name == "hashing"
    assert index.signals("job queue", beside=True).space.name == "remote"
    index.close()


def test_a_former_space_answers_until_the_new_one_is_filled(tmp_path: Path) -> None:
    former, chosen = HashingEmbedder(32, version="old"), HashingEmbedder(64)
    index = Index(tmp_path, embedder=former, clock=lambda: LATER)
    index.refresh(Pile(*VAULT))
    index.close()
    index = Index(tmp_path, embedder=chosen, former=former, clock=lambda: LATER)

    assert index.signals("job queue").space == former.space
    assert index.signals("job queue").cosine.max() > 0.2
    assert index.embed() == 4
    assert index.signals("job queue").space == chosen.space
    assert index.embed() == 0
    index.close()
    assert not list((tmp_path / former.space.tag).glob("vectors-*"))


def test_a_service_that_is_away_leaves_the_local_space_to_answer(tmp_path: Path) -> None:
    remote = Failing()
    index = index_at(tmp_path, beside=remote)

    refreshed = index.refresh(Pile(*VAULT))

    assert refreshed.embedded == 4
    assert [problem.reason for problem in refreshed.problems] == ["the service is away"]
    assert index.signals("job queue", beside=True).space.name == "hashing"
    assert [problem.reason for problem in index.status().problems] == ["the service is away"]
    remote.works = True
    assert index.refresh(Pile(*VAULT)) == Refreshed(embedded=4)
    assert index.status().problems == ()
    index.close()


def test_a_service_that_fails_at_the_question_is_replaced_for_it(tmp_path: Path) -> None:
    remote = Failing()
    remote.works = True
    index = index_at(tmp_path, beside=remote)
    index.refresh(Pile(*VAULT))
    remote.works = False

    signals = index.signals("job queue", beside=True)

    assert signals.space.name == "hashing"
    assert signals.cosine.max() > 0.2
    assert [problem.reason for problem in signals.problems] == ["the service is away"]
    index.close()


def test_a_note_just_written_waits_for_no_network(tmp_path: Path) -> None:
    remote = Failing()
    remote.works = True
    index = index_at(tmp_path, beside=remote)
    pile = Pile(*VAULT)
    index.refresh(pile)
    remote.texts.clear()
    pile.put(note("new", "Ports", "The gateway listens on port 4711."))

    index.refresh(pile, hint=["facts/new.md"])

    assert remote.texts == []
    assert index.signals("port", beside=True).space.name == "hashing"
    index.refresh(pile)
    assert index.signals("port", beside=True).space.name == "remote"
    index.close()


def test_another_dimension_or_version_is_another_space(tmp_path: Path) -> None:
    for embedder in (HashingEmbedder(64), HashingEmbedder(128), HashingEmbedder(64, version="2")):
        index = index_at(tmp_path, embedder)

        assert index.refresh(Pile(*VAULT)).embedded == 4
        assert found(index, "job queue")["queue"] == (True, True)
        index.close()

    index = index_at(tmp_path, HashingEmbedder(64))
    assert index.refresh(Pile(*VAULT)).embedded == 0
    index.close()


# What may happen to the folder


def overwrite_catalogue(folder: Path) -> None:
    for suffix in ("-wal", "-shm"):
        (folder / f"catalogue.db{suffix}").unlink(missing_ok=True)
    (folder / "catalogue.db").write_bytes(b"this is not a database, and long enough to be taken for one" * 200)


def cut_catalogue(folder: Path) -> None:
    os.truncate(folder / "catalogue.db", 5000)


def drop_table(folder: Path) -> None:
    connection = sqlite3.connect(folder / "catalogue.db")
    connection.execute("DROP TABLE passage")
    connection.commit()
    connection.close()


def garble_schema(folder: Path) -> None:
    data = (folder / "catalogue.db").read_bytes()
    (folder / "catalogue.db").write_bytes(data.replace(b"CREATE TABLE", b"CREATE TAB\xeeE"))


def garble_name(folder: Path) -> None:
    connection = sqlite3.connect(folder / "catalogue.db")
    connection.execute("UPDATE note SET path = CAST(x'70ee' AS TEXT) WHERE number = (SELECT min(number) FROM note)")
    connection.commit()
    connection.close()


def from_the_future(folder: Path) -> None:
    connection = sqlite3.connect(folder / "catalogue.db")
    connection.execute("PRAGMA user_version = 99")
    connection.commit()
    connection.close()


def remove_catalogue(folder: Path) -> None:
    for path in folder.glob("catalogue.db*"):
        path.unlink()


def cut_matrix(folder: Path) -> None:
    path = next(folder.glob("*/vectors-*.npy"))
    os.truncate(path, path.stat().st_size - 3)


def remove_manifest(folder: Path) -> None:
    next(folder.glob("*/manifest.json")).unlink()


def remove_everything(folder: Path) -> None:
    shutil.rmtree(folder)


DAMAGES = [
    overwrite_catalogue,
    cut_catalogue,
    drop_table,
    garble_schema,
    garble_name,
    from_the_future,
    remove_catalogue,
    cut_matrix,
    remove_manifest,
    remove_everything,
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_index_answers_without_raising_and_is_made_anew(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    pile = Pile(*VAULT)
    index = index_at(tmp_path / "index")
    index.refresh(pile)
    index.close()
    damage(tmp_path / "index")
    index = index_at(tmp_path / "index")

    found(index, "job queue")
    index.status()
    refreshed = index.refresh(pile)

    assert found(index, "job queue")["queue"] == (True, True)
    assert index.status().stale == 0
    assert refreshed.added + refreshed.embedded > 0
    assert index.verify() == ()
    assert index.refresh(pile) == Refreshed()
    index.close()


@pytest.mark.parametrize("damage", [cut_matrix, remove_manifest, remove_catalogue, remove_everything])
def test_an_index_damaged_in_use_answers_without_raising_and_is_made_anew(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    pile = Pile(*VAULT)
    index = index_at(tmp_path / "index")
    index.refresh(pile)
    found(index, "job queue")
    damage(tmp_path / "index")

    found(index, "job queue")
    index.refresh(pile)

    assert found(index, "job queue")["queue"] == (True, True)
    assert index.status().stale == 0
    index.close()


@pytest.mark.parametrize("damage", [overwrite_catalogue, garble_schema, from_the_future, cut_matrix, remove_manifest])
def test_damage_is_reported(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    index = index_at(tmp_path)
    index.refresh(Pile(*VAULT))
    index.close()
    damage(tmp_path)
    index = index_at(tmp_path)

    assert index.verify() or index.status().problems
    assert index.refresh(Pile(*VAULT)).problems
    index.close()


def test_an_index_that_cannot_be_written_is_a_problem_and_no_error(tmp_path: Path) -> None:
    (tmp_path / "index").write_text("a file where the folder should be")
    index = index_at(tmp_path / "index")

    assert index.refresh(Pile(*VAULT)).problems
    assert found(index, "job queue") == {}
    assert index.status().notes == 0
    index.close()


class Crash(BaseException):
    """Nothing of ours catches this."""


class Crashing(HashingEmbedder):
    def __init__(self, after: int) -> None:
        super().__init__()
        self._left = after

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        if not self._left:
            raise Crash
        self._left -= 1
        return super().embed(texts, purpose)


class CrashingPile(Pile):
    def __init__(self, after: int, *notes: Note) -> None:
        super().__init__(*notes)
        self._left = after

    def read(self, path: str) -> Note | None:
        if not self._left:
            raise Crash
        self._left -= 1
        return super().read(path)


MANY = [note(f"n{number}", f"Note number {number}", f"It tells of thing {number}.") for number in range(450)]


@pytest.mark.parametrize("after", [0, 1, 199, 200, 201, 449])
def test_an_end_while_notes_are_read_costs_only_a_repeat(tmp_path: Path, after: int) -> None:
    index = index_at(tmp_path)
    with pytest.raises(Crash):
        index.refresh(CrashingPile(after, *MANY))
    index.close()
    index = index_at(tmp_path)

    refreshed = index.refresh(Pile(*MANY))

    assert refreshed.added == 450 - after // 200 * 200
    assert index.status().notes == 450
    assert index.status().stale == 0
    assert index.refresh(Pile(*MANY)) == Refreshed()
    index.close()


@pytest.mark.parametrize("after", range(4))
def test_an_end_while_texts_are_embedded_costs_only_a_repeat(tmp_path: Path, after: int) -> None:
    index = index_at(tmp_path, Crashing(after))
    with pytest.raises(Crash):
        index.refresh(Pile(*MANY))
    assert index.status().notes == 450
    index.close()
    index = index_at(tmp_path)

    refreshed = index.refresh(Pile(*MANY))

    assert (refreshed.added, refreshed.embedded) == (0, 450)
    assert index.status().stale == 0
    index.close()


def test_a_refresh_that_is_asked_to_stop_keeps_what_it_has(tmp_path: Path) -> None:
    index = index_at(tmp_path)
    asked = [0]

    def stop() -> bool:
        asked[0] += 1
        return asked[0] > 5

    index.refresh(Pile(*MANY), stop=stop)

    status = index.status()
    assert status.notes == 450
    assert 0 < status.rows < 450
    assert status.stale == 450 - status.rows
    assert index.refresh(Pile(*MANY)).embedded == status.stale
    index.close()


def test_a_refresh_that_is_asked_to_stop_throws_no_vector_away(tmp_path: Path) -> None:
    index = index_at(tmp_path)
    index.refresh(Pile(*MANY))
    index.close()
    remove_catalogue(tmp_path)
    index = index_at(tmp_path)
    asked = [0]

    def stop() -> bool:
        asked[0] += 1
        return asked[0] > 1

    index.refresh(Pile(*MANY), stop=stop)

    assert index.status().notes == 200
    assert index.refresh(Pile(*MANY)).embedded == 0
    index.close()


def test_after_it_is_closed_nothing_is_found_and_nothing_raised(tmp_path: Path) -> None:
    index = index_at(tmp_path)
    index.refresh(Pile(*VAULT))
    index.close()

    assert found(index, "job queue") == {}
    assert index.refresh(Pile(*VAULT)).problems
    again = index_at(tmp_path)
    assert again.status().notes == 4
    again.close()


def test_the_end_of_a_book_is_not_taken_up(tmp_path: Path) -> None:
    index = index_at(tmp_path)

    index.refresh(Pile(note("book", "A book", "word " * 100_000 + "epilogue")))

    assert "book" not in found(index, "epilogue", meaning=False)
    assert "book" in found(index, "word", meaning=False)
    index.close()


def test_progress_is_reported(tmp_path: Path) -> None:
    index = index_at(tmp_path)
    listed: list[tuple[int, int]] = []

    index.refresh(Pile(*MANY), progress=lambda done, total: listed.append((done, total)))

    assert listed[-1] == (450, 450)
    assert listed == sorted(listed)
    index.close()


# Others at work


def test_another_process_s_changes_are_seen(tmp_path: Path) -> None:
    reader, writer = index_at(tmp_path), index_at(tmp_path)
    pile = Pile(*VAULT)
    writer.refresh(pile)
    assert found(reader, "job queue")["queue"] == (True, True)
    pile.put(note("new", "Ports", "The gateway listens on port 4711."))

    writer.refresh(pile, hint=["facts/new.md"])

    assert found(reader, "port 4711")["new"] == (True, True)
    writer.clear()
    writer.refresh(Pile(AUTH))
    assert found(reader, "job queue") == {}
    assert found(reader, "login tokens")["auth"] == (True, True)
    reader.close()
    writer.close()


def test_threads_may_write_and_ask_at_once(tmp_path: Path) -> None:
    index = index_at(tmp_path)
    pile = Pile(*MANY[:210])
    seen: list[tuple[bool, bool]] = []

    def remember(number: int) -> None:
        index.refresh(pile, hint=[MANY[number].path])
        seen.append(found(index, MANY[number].title)[f"n{number}"])

    def ask() -> None:
        for _ in range(20):
            found(index, "thing 7")

    with ThreadPoolExecutor(15) as pool:
        work: list[Future[Any]] = [pool.submit(index.refresh, pile), *(pool.submit(remember, number) for number in range(200, 210))]
        work += [pool.submit(ask) for _ in range(4)]
    for done in work:
        done.result()

    assert seen == [(True, True)] * 10
    assert index.status().stale == 0
    assert index.verify() == ()
    index.close()


def test_a_note_written_after_the_vault_was_listed_stays(tmp_path: Path) -> None:
    class Growing(Pile):
        def entries(self) -> list[Entry]:
            listed = list(super().entries())
            if QUEUE.path not in self.notes:
                self.put(QUEUE)
                index.refresh(self, hint=[QUEUE.path])
            return listed

    index = index_at(tmp_path)

    refreshed = index.refresh(Growing(AUTH))

    assert refreshed.removed == 0
    assert found(index, "job queue")["queue"] == (True, True)
    index.close()


def test_files_are_the_owner_s_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        index = index_at(tmp_path / "state" / "index")
        index.refresh(Pile(*VAULT))
        modes = {path: path.stat().st_mode & 0o777 for path in (tmp_path / "state").rglob("*")}
        index.close()
    finally:
        os.umask(before)

    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
