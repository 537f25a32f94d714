import sqlite3
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kite_memory.recall import lexical

TEXTS = {
    1: "PostgreSQL over SQLite for the job queue: concurrent writers need locking",
    2: "Auth uses JWT and tokens expire after 24 hours",
    3: "The linters run from src and configuration lives in pyproject.toml",
    4: "データベースは日本語で設定する",
    5: "Café crème, naïve façade",
    6: "call pg_advisory_xact_lock before the payout",
}


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:")
    connection.executescript(lexical.SCHEMA)
    for number, text in TEXTS.items():
        lexical.add(connection, number, text)
    yield connection
    connection.close()


def found(connection: sqlite3.Connection, text: str, total: int | None = None) -> list[int]:
    numbers, scores = lexical.matches(connection, lexical.terms(text), total or len(TEXTS), 100)
    return [number for _, number in sorted(zip((-scores).tolist(), numbers.tolist(), strict=True))]


def test_stop_words_are_not_looked_for() -> None:
    assert lexical.terms("What should I do about the job queue, and why?") == ["job", "queue"]


def test_each_term_is_looked_for_once() -> None:
    assert lexical.terms("Queue queue QUEUE") == ["queue"]


@pytest.mark.parametrize(
    ("question", "number"),
    [
        ("which queue", 1),
        ("queues", 1),
        ("token expiry expires", 2),
        ("linter", 3),
        ("pyproject.toml", 3),
        ("日本語", 4),
        ("設定", 4),
        ("cafe", 5),
        ("FAÇADE", 5),
        ("xact_lock", 6),
        ("pg_advisory_xact_lock()", 6),
    ],
)
@pytest.mark.parametrize("total", [6, 1000])
def test_a_note_is_found_by_its_words(connection: sqlite3.Connection, question: str, number: int, total: int) -> None:
    assert found(connection, question, total)[0] == number


def test_a_removed_note_is_not_found(connection: sqlite3.Connection) -> None:
    lexical.remove(connection, 1)

    assert found(connection, "queue") == []
    assert connection.execute("SELECT 1 FROM term WHERE word = 'queue'").fetchone() is None
    assert connection.execute("SELECT notes FROM term WHERE word = 'the'").fetchone() == (2,)


@pytest.mark.parametrize("count", [1, 2, 3, 50])
def test_in_a_small_vault_a_telling_word_still_tells(count: int) -> None:
    connection = sqlite3.connect(":memory:")
    connection.executescript(lexical.SCHEMA)
    lexical.add(connection, 1, "the job queue")
    for number in range(2, count + 1):
        lexical.add(connection, number, f"something else, number {number}")

    numbers, scores = lexical.matches(connection, ["job", "queue"], count, 10)

    assert numbers.tolist() == [1]
    assert scores[0] > 2
    connection.close()


def test_a_vault_that_has_grown_meanwhile_is_reckoned_as_it_is() -> None:
    connection = sqlite3.connect(":memory:")
    connection.executescript(lexical.SCHEMA)
    for number in range(1, 400):
        lexical.add(connection, number, "the job queue" if number < 300 else "else")

    numbers, scores = lexical.matches(connection, ["queue", "else"], 7, 1000)

    assert len(numbers) == 399
    assert scores.min() >= 0
    connection.close()


@given(st.text(max_size=200) | st.sampled_from(['"', '""" OR NEAR(', "a* AND b", "NOT", "{x}:y", "-x ^y", "a\x00b", "(", "\ud800"]))
@settings(max_examples=300, deadline=None)
def test_no_prompt_is_taken_for_a_query_language(text: str) -> None:
    connection = sqlite3.connect(":memory:")
    connection.executescript(lexical.SCHEMA)
    lexical.add(connection, 1, text)
    terms = lexical.terms(text)

    numbers, _ = lexical.matches(connection, terms, 1, 10)
    lexical.corrected(connection, terms)

    assert numbers.tolist() in ([1], [])
    assert lexical.matched_words(connection, terms, [1]) is not None
    lexical.remove(connection, 1)
    assert connection.execute("SELECT count(*) FROM term").fetchone() == (0,)
    connection.close()


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("quue", "queue"),
        ("queu", "queue"),
        ("qeuue", "queue"),
        ("qqueue", "queue"),
        ("postgers", "postgresql"),
        ("postgresqk", "postgresql"),
        ("ostgresql", "postgresql"),
        ("opstgresql", "postgresql"),
        ("xpostgresql", "postgresql"),
        ("bostgresql", "postgresql"),
        ("concurent", "concurrent"),
        ("cnofiguration", "configuration"),
        ("confguratoin", "configuration"),
    ],
)
def test_a_typing_error_is_forgiven(connection: sqlite3.Connection, typed: str, meant: str) -> None:
    assert meant in lexical.corrected(connection, [typed])[typed]


@pytest.mark.parametrize("word", ["queues", "linter", "configure", "zebra", "job", "24", "日 本"])
def test_what_is_found_or_like_nothing_is_not_corrected(connection: sqlite3.Connection, word: str) -> None:
    assert lexical.corrected(connection, [word]) == {}


@pytest.mark.parametrize(
    ("one", "other", "distance"),
    [("", "", 0), ("a", "a", 0), ("ab", "ba", 1), ("abc", "ac", 1), ("abc", "abxc", 1), ("abc", "axc", 1), ("abcd", "badc", 2)],
)
def test_edits_are_counted(one: str, other: str, distance: int) -> None:
    assert lexical.edits(one, other, 3) == distance


@given(st.text("abc", max_size=8), st.text("abc", max_size=8), st.integers(0, 3))
def test_edits_are_the_same_both_ways_and_stop_counting_in_time(one: str, other: str, most: int) -> None:
    assert lexical.edits(one, other, most) == lexical.edits(other, one, most) == min(lexical.edits(one, other, 20), most + 1)


def test_of_many_terms_the_rarest_are_looked_for(connection: sqlite3.Connection) -> None:
    common = [f"{first}{second}mmon" for first in "bcdfghkl" for second in "aeiou"]
    for number in range(100, 140):
        lexical.add(connection, number, " ".join(common))
    wanted = [*common, "queue", "nowhere"]

    chosen = lexical.telling(connection, wanted, 1000)

    assert "queue" in chosen
    assert "nowhere" not in chosen
    assert len(chosen) == 24


def test_words_that_were_found_are_named_as_the_note_has_them(connection: sqlite3.Connection) -> None:
    assert lexical.matched_words(connection, lexical.terms("locks for all queues of jobs"), [1, 2, 6]) == {
        1: ("job", "queue", "locking"),
        6: ("lock",),
    }
