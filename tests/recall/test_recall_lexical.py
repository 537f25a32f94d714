import sqlite3
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kite_memory.recall import lexical
from kite_memory.recall.lexical import IndexedWords
from kite_memory.text.stems import edits
from tests.counts import examples

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
        lexical.add(connection, number, IndexedWords(title="", body=text))
    yield connection
    connection.close()


def found(connection: sqlite3.Connection, text: str, total: int | None = None) -> list[int]:
    numbers, scores = lexical.matches(connection, lexical.terms(text), total or len(TEXTS), 100)
    return [number for _, number in sorted(zip((-scores).tolist(), numbers.tolist(), strict=True))]


def test_stop_words_are_not_looked_for() -> None:
    assert lexical.terms("What should I do about the job queue, and why?") == ["job", "queue"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("dans quel format sont dessinés les plans de l'appli ?", ["format", "dessines", "plans", "appli"]),
        ("womit speichert die App ihre Daten?", ["speichert", "app", "daten"]),
        ("トークンはどこに置いているの", ["ト ー", "ー ク", "ク ン", "ン は", "に 置", "置 い"]),
        ("我们的缓存在哪里", ["的 缓", "缓 存", "存 在"]),
        ("これはなに", ["こ れ", "れ は", "は な", "な に"]),
    ],
)
def test_words_of_grammar_are_not_looked_for_in_other_languages_unless_there_are_no_others(text: str, wanted: list[str]) -> None:
    assert lexical.terms(text) == wanted


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
def test_in_a_small_vault_a_telling_word_still_shows(count: int) -> None:
    connection = sqlite3.connect(":memory:")
    connection.executescript(lexical.SCHEMA)
    lexical.add(connection, 1, IndexedWords(title="", body="the job queue"))
    for number in range(2, count + 1):
        lexical.add(connection, number, IndexedWords(title="", body=f"something else, number {number}"))

    numbers, scores = lexical.matches(connection, ["job", "queue"], count, 10)

    assert numbers.tolist() == [1]
    assert scores[0] > 2
    connection.close()


def test_a_vault_that_has_grown_meanwhile_is_reckoned_as_it_is() -> None:
    connection = sqlite3.connect(":memory:")
    connection.executescript(lexical.SCHEMA)
    for number in range(1, 400):
        lexical.add(connection, number, IndexedWords(title="", body="the job queue" if number < 300 else "else"))

    numbers, scores = lexical.matches(connection, ["queue", "else"], 7, 1000)

    assert len(numbers) == 399
    assert scores.min() >= 0
    connection.close()


@given(st.text(max_size=200) | st.sampled_from(['"', '""" OR NEAR(', "a* AND b", "NOT", "{x}:y", "-x ^y", "a\x00b", "(", "\ud800"]))
@settings(max_examples=examples(300), deadline=None)
def test_no_prompt_is_taken_for_a_query_language(text: str) -> None:
    connection = sqlite3.connect(":memory:")
    connection.executescript(lexical.SCHEMA)
    lexical.add(connection, 1, IndexedWords(title="", body=text))
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
    ("text", "meant"),
    [
        ("qeuue", True),
        ("where did the qeuue come from, and why is it never empty?", True),
        ("warteschlange qeuue", True),
        ("warum ist die qeuue abends nicht leer, und wer liest den dritten Eintrag?", False),
    ],
)
def test_a_sentence_in_another_language_is_not_corrected(connection: sqlite3.Connection, text: str, meant: bool) -> None:
    assert ("queue" in lexical.corrected(connection, lexical.terms(text), text).get("qeuue", ())) is meant


@pytest.mark.parametrize(
    ("one", "other", "distance"),
    [("", "", 0), ("a", "a", 0), ("ab", "ba", 1), ("abc", "ac", 1), ("abc", "abxc", 1), ("abc", "axc", 1), ("abcd", "badc", 2)],
)
def test_edits_are_counted(one: str, other: str, distance: int) -> None:
    assert edits(one, other, 3) == distance


@given(st.text("abc", max_size=8), st.text("abc", max_size=8), st.integers(0, 3))
def test_edits_are_the_same_both_ways_and_stop_counting_in_time(one: str, other: str, most: int) -> None:
    assert edits(one, other, most) == edits(other, one, most) == min(edits(one, other, 20), most + 1)


def test_of_many_terms_the_rarest_are_looked_for(connection: sqlite3.Connection) -> None:
    common = [f"{first}{second}mmon" for first in "bcdfghkl" for second in "aeiou"]
    for number in range(100, 140):
        lexical.add(connection, number, IndexedWords(title="", body=" ".join(common)))
    wanted = [*common, "queue", "nowhere"]

    chosen = lexical.rarest_terms(connection, wanted, 1000)

    assert "queue" in chosen
    assert "nowhere" not in chosen
    assert len(chosen) == 24


def test_of_words_that_many_notes_hold_one_is_enough(connection: sqlite3.Connection) -> None:
    """Each of these alone takes as long to rank as a person may wait."""
    words = ["orchard", "meadow", "forest"]
    connection.executemany("INSERT INTO term VALUES (?, ?)", [(word, 30_000 + place) for place, word in enumerate(words)])

    assert lexical.rarest_terms(connection, words[::-1], 100_000) == ["orchard"]


def test_a_rare_word_finds_the_oldest_note_beside_words_that_all_hold() -> None:
    connection = sqlite3.connect(":memory:")
    connection.executescript(lexical.SCHEMA)
    lexical.add(connection, 1, IndexedWords(title="Quince jelly"))
    for number in range(2, 9_002):
        lexical.add(connection, number, IndexedWords(title="orchard meadow"))

    wanted = lexical.rarest_terms(connection, ["orchard", "meadow", "quince"], 9_001)
    numbers, _ = lexical.matches(connection, wanted, 9_001, 1000)
    common, _ = lexical.matches(connection, ["orchard"], 9_001, 10_000)

    assert numbers.tolist() == [1]
    assert set(common.tolist()) == set(range(1_002, 9_002))
    connection.close()


def test_the_best_matches_come_first_and_no_more_than_asked(connection: sqlite3.Connection) -> None:
    for number in range(100, 300):
        lexical.add(connection, number, IndexedWords(title="", body="plum " * (number % 7 + 1) + "jam " * 20))

    numbers, scores = lexical.matches(connection, ["plum"], 200, 50)

    assert len(numbers) == 50
    assert scores.tolist() == sorted(scores.tolist(), reverse=True)
    assert {int(number) % 7 for number in numbers[:20]} == {6}


def test_words_that_were_found_are_named_as_the_note_has_them(connection: sqlite3.Connection) -> None:
    assert lexical.matched_words(connection, lexical.terms("locks for all queues of jobs"), [1, 2, 6]) == {
        1: ("job", "queue", "locking"),
        6: ("lock",),
    }


def in_names(connection: sqlite3.Connection, text: str, total: int) -> dict[int, tuple[float, float]]:
    return lexical.in_names(connection, lexical.terms(text), [1, 2], total)


@pytest.mark.parametrize("total", [1, 2, 5, 50, 100, 1_000])
def test_titles_and_names_are_measured_apart_however_small_the_vault(total: int) -> None:
    connection = sqlite3.connect(":memory:")
    connection.executescript(lexical.SCHEMA)
    lexical.add(connection, 1, IndexedWords(title="The quince hedge", named="Ada", body="It is cut in spring."))
    for number in range(2, total + 1):
        lexical.add(connection, number, IndexedWords(title=f"Something else {number}", body="It is cut in autumn."))

    of_title, of_name = in_names(connection, "quince hedges", total)[1], in_names(connection, "Ada", total)[1]
    of_body = in_names(connection, "cut in spring", total).get(1, (0.0, 0.0))
    connection.close()

    assert of_title[0] > 1 and of_title[1] == 0
    assert of_name[1] > 1 and of_name[0] == 0
    assert of_body == pytest.approx((0, 0))


def test_a_title_s_words_tell_less_where_all_titles_have_them() -> None:
    connection = sqlite3.connect(":memory:")
    connection.executescript(lexical.SCHEMA)
    for number in range(1, 11):
        lexical.add(connection, number, IndexedWords(title=f"hedge {'quince' if number == 1 else 'privet'}"))

    rare, common = in_names(connection, "quince", 10)[1][0], in_names(connection, "hedge", 10)[1][0]
    connection.close()

    assert rare > 3 * common


def test_in_a_small_vault_and_in_a_large_one_titles_are_measured_alike(connection: sqlite3.Connection) -> None:
    for number in range(10, 130):
        lexical.add(connection, number, IndexedWords(title=f"hedge {number}", named="Ada" if number % 9 == 0 else ""))
    numbers = [10, 18, 27]

    small, large = (lexical.in_names(connection, ["18", "ada", "27"], numbers, total) for total in (99, 100))

    assert {number: pytest.approx(measured) for number, measured in large.items()} == {
        number: measured for number, measured in small.items() if any(measured)
    }


def test_what_was_said_about_a_note_leads_to_it_and_counts_less_than_its_own_words(connection: sqlite3.Connection) -> None:
    lexical.add(connection, 10, IndexedWords(title="Frost", body="the espalier is covered", said=""))
    lexical.add(connection, 11, IndexedWords(title="Frost", body="", said="the espalier is covered"))

    numbers, scores = lexical.matches(connection, ["espalier"], 1_000, 10)

    assert numbers.tolist() == [10, 11]
    assert scores[0] > scores[1] > 0


def test_words_of_what_was_said_are_not_named(connection: sqlite3.Connection) -> None:
    lexical.add(connection, 10, IndexedWords(title="Frost", body="cover the trees", said="the espalier froze"))

    assert lexical.matched_words(connection, ["espalier", "froze"], [10]) == {10: ()}
    assert lexical.matched_words(connection, ["espalier", "trees"], [10]) == {10: ("trees",)}


def test_who_removes_a_note_removes_what_was_said_about_it(connection: sqlite3.Connection) -> None:
    lexical.add(connection, 10, IndexedWords(title="Frost", said="the espalier froze"))

    lexical.remove(connection, 10)

    assert connection.execute("SELECT count(*) FROM term WHERE word IN ('espalier', 'froze', 'frost')").fetchone() == (0,)
    assert found(connection, "espalier") == []
