import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kite_memory.recall.lexical import IndexedWords
from kite_memory.recall.prose import passages, prose, searchable, unlinked
from tests.counts import examples
from tests.recall.notes import QUEUE, note


@pytest.mark.parametrize(
    ("markdown", "read"),
    [
        ("[[PostgreSQL]]", "PostgreSQL"),
        ("[[PostgreSQL|the database]]", "the database"),
        ("[[people/ada]]", "ada"),
        ("[[Page#Heading]]", "Page"),
        ("[[Page#Heading|there]]", "there"),
        ("![[picture.png]]", "picture.png"),
        ("[[]] [[a", " [[a"),
        ("a[0][1] and [[x]][[y]]", "a[0][1] and xy"),
    ],
)
def test_links_are_read_as_their_words(markdown: str, read: str) -> None:
    assert unlinked(markdown) == read


def test_lines_of_mere_links_say_nothing() -> None:
    assert prose("A body.\n\n**Related:** [[PostgreSQL]], [[mycelia-job-queue-feb26]]\n") == "A body."


def test_all_that_names_a_note_can_be_searched() -> None:
    named = note("n", "Title", "Body", aliases=("other",), triggers=("when it burns",), tags=("fire",), entities=("Ada", "kiln"))

    assert searchable(named, "we said so") == IndexedWords(
        title="Title", named="other\nwhen it burns\nfire\nAda, kiln", body="Body", said="we said so"
    )


def test_what_a_note_speaks_about_without_naming_it_is_embedded_with_it() -> None:
    assert passages(note("n", "Title", "The kiln is hot.", entities=("kiln", "Ada"))) == ("Title\nThe kiln is hot.\nAda",)


def test_a_short_note_is_one_passage_that_begins_with_its_title() -> None:
    (passage,) = passages(QUEUE)

    assert passage.startswith("PostgreSQL over SQLite for the job queue\nYou chose PostgreSQL over SQLite")


def test_what_says_when_a_note_is_useful_is_part_of_its_first_passage() -> None:
    assert passages(note("n", "Title", "Body", triggers=("workers stall",))) == ("Title\nworkers stall\nBody",)


def test_a_note_without_words_still_has_a_passage() -> None:
    assert passages(note("n", "", "")) == ("facts/n.md",)
    assert passages(note("n", "Title only", "")) == ("Title only",)


def test_a_long_note_is_cut_into_passages_at_sentences() -> None:
    sentences = [f"Sentence number {number} tells one thing about the queue." for number in range(100)]

    found = passages(note("n", "Title", " ".join(sentences)))

    assert 3 < len(found) < 8
    assert all(passage.startswith("Title\n") for passage in found)
    assert all(len(passage.split()) < 200 for passage in found)
    assert [line for passage in found for line in passage.splitlines()[1:]] == sentences


@given(st.text(max_size=5000) | st.just("x" * 100_000) | st.just("日本語" * 5000) | st.just("a. " * 50_000))
@settings(deadline=None, max_examples=examples(80))
def test_passages_are_bounded_whatever_the_text(body: str) -> None:
    found = passages(note("n", "Title", body))

    assert 1 <= len(found) <= 32
    assert all(len(passage) <= 2 * 1200 + 2 for passage in found)


def test_what_the_vault_shows_as_a_box_reads_as_a_line() -> None:
    assert prose("A body.\n\n> [!failure] Rejected: [[SQLite]]: one writer\n") == "A body.\n\n**Rejected:** SQLite: one writer"


def test_what_is_private_or_a_key_is_in_no_passage_however_many_it_would_reach_over() -> None:
    private = "The willow story is for nobody. " * 120
    key = "\n".join(("-----BEGIN PRIVATE KEY-----", *["Tm9ib2R5IG93bnMgdGhpcyBrZXksIHdoaWNoIG9wZW5zIG5vIGRvb3I0"] * 60))

    result = passages(note("n", "Title", f"Prune.\n\n<private>{private}</private>\n\n{key}\n-----END PRIVATE KEY-----\n\nGraft."))

    assert "Prune." in result[0]
    assert "Graft." in result[-1]
    assert not any("willow" in passage or "Tm9ib2R5" in passage for passage in result)
