from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kite_memory.model.hit import Hit
from kite_memory.model.note import Note, NoteKind, NoteStatus, Scope
from kite_memory.recall.index import Index
from kite_memory.recall.local_embedder import LocalEmbedder
from kite_memory.recall.search import Mode, Query, search, snippet
from tests.fakes.hashing_embedder import HashingEmbedder
from tests.recall.notes import AUTH, CSS, DAY, QUEUE, VAULT, Pile, note

LOCAL = LocalEmbedder()
NOW = DAY + timedelta(days=1)


class Searched:
    """An index over some notes, closed when the test is over."""

    def __init__(self, folder: Path) -> None:
        self._index = Index(folder, embedder=LOCAL)

    def over(self, *notes: Note) -> "Searched":
        self._index.refresh(Pile(*notes))
        return self

    def hits(self, text: str, **how: Any) -> tuple[Hit, ...]:
        return search(self._index, Query(text=text, **how), NOW)

    def ids(self, text: str, **how: Any) -> list[str]:
        return [hit.note.id for hit in self.hits(text, **how)]

    def close(self) -> None:
        self._index.close()


@pytest.fixture
def vault(tmp_path: Path) -> Iterator[Searched]:
    searched = Searched(tmp_path / "index")
    yield searched
    searched.close()


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "semantic"])
@pytest.mark.parametrize(
    ("text", "id"), [("postgresql job queue", "queue"), ("login tokens expire", "auth"), ("linter configuration", "lint")]
)
def test_the_note_that_says_it_comes_first(vault: Searched, mode: Mode, text: str, id: str) -> None:
    assert vault.over(*VAULT).ids(text, mode=mode)[0] == id


def test_a_note_can_be_found_by_meaning_alone(vault: Searched) -> None:
    vault.over(*VAULT)

    assert vault.ids("relational storage engine", mode="keyword") == []
    assert vault.ids("relational storage engine", mode="semantic")[0] == "queue"
    assert vault.ids("relational storage engine")[0] == "queue"


@pytest.mark.parametrize("mode", ["hybrid", "keyword"])
@pytest.mark.parametrize("text", ["postgers", "qeue", "lniter", "tokns exprie"])
def test_typing_errors_are_forgiven(vault: Searched, mode: Mode, text: str) -> None:
    assert vault.over(*VAULT).ids(text, mode=mode)


def test_a_question_like_nothing_finds_nothing(vault: Searched) -> None:
    assert vault.over(*VAULT).ids("zxqj wvvk") == []


@pytest.mark.parametrize("text", ["", "   ", "the of and", "\x00", "🙂", '"', "*"])
def test_a_question_without_words_finds_nothing(vault: Searched, text: str) -> None:
    assert vault.over(*VAULT).ids(text, mode="keyword") == []


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "semantic"])
def test_nothing_is_found_in_an_empty_vault(vault: Searched, mode: Mode) -> None:
    assert vault.over().ids("job queue", mode=mode) == []


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "semantic"])
def test_the_only_note_is_found(vault: Searched, mode: Mode) -> None:
    assert vault.over(QUEUE).ids("postgresql job queue", mode=mode) == ["queue"]


@pytest.mark.parametrize(
    ("title", "question"),
    [
        ("データベースの設定は日本語です", "データベース"),
        ("قاعدة البيانات تستخدم القفل", "البيانات"),
        ("База данных использует блокировки", "блокировки"),
        ("데이터베이스 설정", "데이터베이스"),
        ("Größe der Schlüssel", "große schlussel"),
        ("🙂 emoji kitchen", "emoji kitchen"),
    ],
)
def test_other_scripts_are_found_by_their_words(vault: Searched, title: str, question: str) -> None:
    assert vault.over(*VAULT, note("other", title)).ids(question, mode="keyword") == ["other"]


def test_a_hit_says_what_spoke_for_it(vault: Searched) -> None:
    (best, *_) = vault.over(*VAULT).hits("postgresql queue", project="mycelia")

    assert best.why.startswith("meaning 0.")
    assert best.why.endswith(", words: postgresql queue, this project")
    assert best.snippet.startswith("You chose PostgreSQL over SQLite for the job queue")
    assert 0 < best.score <= 1
    assert best.note == QUEUE


def test_the_snippet_is_the_line_with_the_words() -> None:
    assert snippet(QUEUE, ("workers", "stalled")) == "**Rejected:** SQLite: its single-writer lock stalled the workers."
    assert snippet(QUEUE, ()).startswith("You chose PostgreSQL")
    assert snippet(note("n", "Title", ""), ("word",)) == ""
    far = snippet(note("n", "Title", "padding " * 200 + "needle " + "padding " * 200), ("needle",))
    assert "needle" in far
    assert len(far) <= 241


def test_only_so_many_as_asked_for(vault: Searched) -> None:
    vault.over(*(note(f"n{number}", f"The queue, part {number}") for number in range(30)))

    assert len(vault.ids("queue part", limit=7)) == 7
    assert len(vault.ids("queue part", limit=100)) == 30


def test_kinds_and_time_are_filters(vault: Searched) -> None:
    vault.over(QUEUE, replace(AUTH, title="The queue of logins"))

    assert vault.ids("queue", kinds=frozenset({NoteKind.FACT})) == ["auth"]
    assert vault.ids("queue", since=DAY - timedelta(days=1)) == ["queue"]
    assert vault.ids("queue", since=datetime(2030, 1, 1, tzinfo=UTC)) == []


def test_another_project_s_note_needs_to_fit_better(vault: Searched) -> None:
    here = note("here", "The cache is kept in memory", "Entries of the cache are kept in memory.", project="orchard")
    there = note("there", "The cache lives in memory", "Entries of the cache live in memory.", project="mycelia")
    vault.over(here, there)

    assert vault.ids("the cache in memory", project="orchard") == ["here", "there"]
    assert vault.ids("the cache in memory", project="mycelia") == ["there", "here"]
    (first, second) = vault.hits("the cache in memory", project="mycelia")
    assert "this project" in first.why
    assert "another project" in second.why


def test_a_note_in_a_third_language_needs_to_fit_better_but_not_one_in_english(vault: Searched) -> None:
    said = {
        "pt": "Guardamos o cache em memória, não no disco, para que fique rápido.",
        "es": "Guardamos la caché en memoria, no en el disco, para que sea rápida.",
        "en": "We keep the cache in memory and not on disk so that it is fast.",
    }
    vault.over(*(note(code, text, text) for code, text in said.items()))

    asked = {hit.note.id: hit.score for hit in vault.hits("¿por qué guardamos la cache en memoria?")}
    unknown = {hit.note.id: hit.score for hit in vault.hits("guardamos cache memoria")}

    assert asked["pt"] < unknown["pt"]
    assert max(asked, key=asked.__getitem__) == "es"


def test_within_a_project_only_its_own_notes_and_those_of_none_are_found(vault: Searched) -> None:
    everywhere = note("everywhere", "Tokens of colour", "Tokens everywhere.", scope=Scope.GLOBAL, project="elsewhere")
    vault.over(AUTH, CSS, everywhere)

    assert set(vault.ids("tokens", within="mycelia")) == {"auth", "everywhere"}
    assert set(vault.ids("tokens", within="no such project")) == {"everywhere"}


STATUSES = {
    NoteStatus.ACCEPTED: True,
    NoteStatus.PROPOSED: True,
    NoteStatus.MUTED: True,
    NoteStatus.SUPERSEDED: True,
    NoteStatus.REJECTED: False,
}


@pytest.mark.parametrize(("status", "expected"), STATUSES.items())
def test_a_status_decides_whether_a_note_is_found(vault: Searched, status: NoteStatus, expected: bool) -> None:
    vault.over(replace(QUEUE, status=status), AUTH)

    assert ("queue" in vault.ids("postgresql job queue")) is expected


def test_an_expired_note_is_found_nowhere(vault: Searched) -> None:
    vault.over(replace(QUEUE, expires=NOW), replace(AUTH, expires=NOW + timedelta(seconds=1)))

    assert vault.ids("postgresql job queue login tokens") == ["auth"]


OLD = note("old", "SQLite for the job queue", "The job queue is kept in SQLite.", age=30, path="decisions/sqlite-queue-jan26.md")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (replace(OLD, status=NoteStatus.SUPERSEDED, superseded_by="queue"), QUEUE),
        (replace(OLD, status=NoteStatus.SUPERSEDED, superseded_by="[[postgres-over-sqlite-feb26]]"), QUEUE),
        (replace(OLD, superseded_by="decisions/postgres-over-sqlite-feb26.md"), QUEUE),
        (OLD, replace(QUEUE, supersedes=("old",))),
        (OLD, replace(QUEUE, supersedes=("[[sqlite-queue-jan26]]",))),
        (OLD, replace(QUEUE, supersedes=("[[decisions/SQLite-queue-jan26|the old one]]",))),
        (replace(OLD, path="decisions/Übergabe der Queue.md"), replace(QUEUE, supersedes=("[[Übergabe der Queue]]",))),
        (replace(OLD, path="decisions/Éviter SQLite.md"), replace(QUEUE, supersedes=("[[E\u0301viter SQLite]]",))),
    ],
)
@pytest.mark.parametrize("mode", ["hybrid", "keyword", "semantic"])
def test_a_replaced_note_stands_behind_its_successor(vault: Searched, mode: Mode, old: Note, new: Note) -> None:
    vault.over(old, new, *VAULT[1:])

    found = vault.ids("SQLite job queue kept in SQLite", mode=mode)

    assert found[:2] == ["queue", "old"]


def test_a_successor_is_found_by_what_its_predecessor_said(vault: Searched) -> None:
    successor = note("successor", "We moved on", "Nothing of that sort any more.", supersedes=("old",))

    first, second = vault.over(OLD, successor, AUTH).hits("SQLite job queue")

    assert (first.note.id, second.note.id) == ("successor", "old")
    assert "replaces a note that fits better" in first.why


def test_a_proposal_replaces_nothing_yet(vault: Searched) -> None:
    vault.over(OLD, replace(QUEUE, supersedes=("old",), status=NoteStatus.PROPOSED))

    assert vault.ids("SQLite job queue kept in SQLite")[0] == "old"


def test_copies_of_a_note_are_found_once(vault: Searched) -> None:
    vault.over(QUEUE, replace(QUEUE, path="decisions/postgres (conflicted copy).md"))

    assert vault.ids("postgresql job queue") == ["queue"]


def test_a_note_without_an_id_is_known_by_its_path(vault: Searched) -> None:
    vault.over(replace(QUEUE, id=""), replace(QUEUE, id="", path="decisions/other.md"))

    assert len(vault.hits("postgresql job queue")) == 2


def test_of_equals_the_newer_comes_first(vault: Searched) -> None:
    vault.over(note("old", "Same words", age=9), note("new", "Same words", age=1), note("middle", "Same words", age=5))

    assert vault.ids("same words") == ["new", "middle", "old"]


def test_two_spaces_are_never_mixed(tmp_path: Path) -> None:
    """The second space's vectors are of another length, and of another embedder: comparing them would raise or mislead."""
    index = Index(tmp_path, embedder=LOCAL, beside=HashingEmbedder(32))
    index.refresh(Pile(*VAULT))

    beside = index.signals("relational storage engine", beside=True)
    local = index.signals("relational storage engine")

    assert (beside.space.dim, local.space.dim) == (32, 384)
    assert beside.cosine.tolist() != local.cosine.tolist()
    index.close()
