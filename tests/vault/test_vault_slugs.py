"""File names from any title."""

import re
import unicodedata
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.vault.wording import MAX_STEM, note_stem, page_stem, slug, stem_key, unique
from tests.vault.building import START

DEVICES = ["CON", "con", "PRN", "aux.md", "NUL", "COM1", "lpt9", "com¹", "CONIN$", "nul.txt", "Aux"]
TITLES = [
    "../../x", "/etc/passwd", "..", ".", "", "   ", "x" * 300, "a " * 200, "🍐", "👩‍🌾👨‍🌾", "العربية", "日本語の題", "name.",
    "name. . .", "a\0b",
    "a\nb", ".hidden", "-dash", "~", "C:\\windows", "a:b", "a|b?c*d<e>f\"g", "\ud800", "e\u0301te\u0301", "ÉTÉ", "Straße",
    "%2e%2e%2f", "$(rm)",
    *DEVICES,
]  # fmt: skip
SAFE = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@pytest.mark.parametrize("title", TITLES)
def test_a_slug_is_plain_and_bounded(title: str) -> None:
    stem = note_stem(title, START)

    assert SAFE.fullmatch(slug(title))
    assert stem == f"{slug(title)}-feb26"
    assert len(stem) <= MAX_STEM


@given(st.text(max_size=400))
def test_any_title_at_all_gives_a_plain_slug(title: str) -> None:
    assert SAFE.fullmatch(slug(title))
    assert len(note_stem(title, START)) <= MAX_STEM


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("PostgreSQL over SQLite for the job queue", "postgresql-over-sqlite-for-the-job-queue"),
        ("Crème brûlée, s'il vous plaît!", "creme-brulee-s-il-vous-plait"),
        ("Straße nach Łódź", "strasse-nach-lodz"),
        ("../../x", "x"),
        ("CON", "con"),
        ("word " * 30, "word-word-word-word-word-word-word-word-word"),
    ],
)
def test_a_title_can_be_distinguished_from_its_slug(title: str, expected: str) -> None:
    assert slug(title) == expected


def test_titles_whose_letters_are_lost_stay_apart() -> None:
    lost = ["東京 API", "大阪 API", "🍐", "🍎", "العربية", "עברית"]

    assert len({slug(title) for title in lost}) == len(lost)
    assert slug("東京 API").startswith("api-")


def test_composed_and_decomposed_titles_have_one_slug() -> None:
    for title in ("Zoë's café", "が", "각"):
        assert slug(unicodedata.normalize("NFC", title)) == slug(unicodedata.normalize("NFD", title))


def test_the_month_is_that_of_utc() -> None:
    new_year = datetime(2027, 1, 1, 0, 30, tzinfo=timezone(timedelta(hours=2)))

    assert note_stem("x", new_year) == "x-dec26"
    assert note_stem("x", datetime(2009, 9, 9, tzinfo=UTC)) == "x-sep09"


@pytest.mark.parametrize(
    "name", ["PostgreSQL", "Node.js", "C++", "late frost", "Ada Lovelace", "Zoë", "日本語", "R&D", "v1.2", "foo_bar"]
)
def test_an_entity_keeps_its_name_where_that_is_a_file_name(name: str) -> None:
    assert page_stem(name) == name


@pytest.mark.parametrize(
    "name", [*DEVICES, "C#", "a/b", "..", "x" * 61, "日" * 61, "README.md", "[x]", "a|b", "a#b", "x^y", ".net", "name.", "🍐"]
)
def test_an_entity_that_no_file_can_be_called_gets_another_name(name: str) -> None:
    assert re.fullmatch(r"[a-z0-9-]+-[0-9a-f]{6}", page_stem(name))


@given(st.text(max_size=80))
def test_no_entity_name_makes_an_unsafe_file_name(name: str) -> None:
    stem = page_stem(name)

    assert not re.search(r'[\\/:*?"<>|#^\[\]\0-\x1f]', stem)
    assert stem == stem.strip(" .") != ""
    assert len(stem) <= MAX_STEM
    assert unicodedata.is_normalized("NFC", stem)


def test_c_and_its_kin_are_three_pages() -> None:
    assert len({stem_key(page_stem(name)) for name in ("C", "C++", "C#")}) == 3


def test_a_taken_name_is_counted_on() -> None:
    taken = {"pears-feb26", "pears-feb26-2"}

    assert unique("pears-feb26", taken.__contains__) == "pears-feb26-3"


@pytest.mark.parametrize(("mine", "theirs"), [("zoë", "zoe\u0308"), ("pears", "PEARS"), ("straße", "STRASSE")])
def test_names_that_some_disk_takes_for_one_are_one(mine: str, theirs: str) -> None:
    assert unique(mine, {stem_key(theirs)}.__contains__) == f"{mine}-2"


@given(st.text("ab -", min_size=1, max_size=60), st.integers(1, 30))
def test_counting_never_makes_a_name_too_long(stem: str, others: int) -> None:
    taken: set[str] = set()
    for _ in range(others):
        name = unique(stem, taken.__contains__)
        assert len(name) <= MAX_STEM
        taken.add(stem_key(name))

    assert len(taken) == others
