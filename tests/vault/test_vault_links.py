"""Wikilinks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.vault import links
from kite_memory.vault.links import Resolver, find, name_entities, note_prose, targets, unlinked, unlisted, write
from tests.vault.building import note


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[[a]]", [("a", "", "", False)]),
        ("[[a|b]] and [[c#d|e]]", [("a", "", "b", False), ("c", "d", "e", False)]),
        ("![[picture.png]]", [("picture.png", "", "", True)]),
        ("[[#below]]", [("", "below", "", False)]),
        ("[[a#^block]]", [("a", "^block", "", False)]),
        ("[[folder/a.md]]", [("folder/a.md", "", "", False)]),
        ("| [[a\\|b]] |", [("a", "", "b", False)]),
        ("[[a b ]]", [("a b", "", "", False)]),
        ("[[a]", []),
        ("[[]]", []),
        ("[[a\nb]]", []),
        ("\\[[a]]", []),
        ("`[[a]]` ``[[b]] ` [[c]]`` [[d]]", [("d", "", "", False)]),
        ("`open [[a]]\n\nnext` [[b]]", [("a", "", "", False), ("b", "", "", False)]),
        ("```\n[[a]]\n```\n[[b]]", [("b", "", "", False)]),
        ("~~~ x\n[[a]]\n```\n[[b]]\n~~~\n[[c]]", [("c", "", "", False)]),
        ("````\n```\n[[a]]\n````\n[[b]]", [("b", "", "", False)]),
        ("```never closed\n[[a]]", []),
        ("``` not ` a fence\n[[a]]", [("a", "", "", False)]),
        ("[[[a]]]", [("a", "", "", False)]),
    ],
)
def test_links_are_found_where_obsidian_finds_them(text: str, found: list[tuple[str, str, str, bool]]) -> None:
    assert [(link.target, link.heading, link.label, link.embed) for link in find(text)] == found


def test_each_target_is_named_once() -> None:
    assert targets("[[a]] [[b|x]] [[a#h]] [[#own]]") == ("a", "b")


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("", "[[t]]"),
        ("t", "[[t]]"),
        ("a|b", "[[t|a/b]]"),
        ("a]]b[[c", "[[t|a))b((c]]"),
        ("C#", "[[t|C#]]"),
        ("x^y", "[[t|x^y]]"),
        ("a\nb", "[[t|a b]]"),
    ],
)
def test_a_label_cannot_end_its_link(label: str, expected: str) -> None:
    assert write("t", label) == expected
    assert [link.target for link in find(write("t", label))] == ["t"]


@given(st.text(max_size=40))
def test_any_label_makes_one_link_to_one_place(label: str) -> None:
    assert [(link.target, link.start, link.end) for link in find(write("t", label))] == [("t", 0, len(write("t", label)))]


@given(st.text("[]|#!a`\\\n", max_size=80))
def test_text_freed_of_links_has_none_left(text: str) -> None:
    assert targets(unlinked(text)) == ()


@pytest.mark.parametrize("name", ["", "C# tabs", "a|b", "x^2", "[a]", "two  blanks", " a"])
def test_what_no_link_can_say_is_known(name: str) -> None:
    assert not links.holds(name)


@given(st.text(max_size=40))
def test_a_name_that_a_link_holds_is_read_back_from_it(name: str) -> None:
    if links.holds(name):
        assert links.target_of(write(name)[2:-2]) == name
        assert [link.target for link in find(write(name))] == [name]


def test_a_freed_link_leaves_its_words() -> None:
    assert unlinked("See [[a|the pear]], [[b/c#d]] and `[[code]]`.") == "See the pear, c > d and `[[code]]`."


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("A [[gone|pear]].\n\n**Related:** [[gone]], [[a]], [[b]]\n", "A pear.\n\n**Related:** [[a]], [[b]]\n"),
        ("A.\n\n**Related:** [[a]], [[gone]], [[b]]", "A.\n\n**Related:** [[a]], [[b]]"),
        ("A.\n\n**Related:** [[a]], [[gone]]\n\nB.\n", "A.\n\n**Related:** [[a]]\n\nB.\n"),
        ("A.\n\n**Related:** [[gone]]\n", "A.\n"),
        ("A.\n\n**Related:** [[gone]]\n\nB.\n", "A.\n\nB.\n"),
        ("**Related:** [[gone]], [[gone|g]]", ""),
        ("**Related:** [[a]], and as told before", "**Related:** [[a]], and as told before"),
    ],
)
def test_a_link_that_goes_leaves_no_word_in_a_line_of_related_notes(text: str, left: str) -> None:
    assert unlisted(text, lambda link: link.target == "gone") == left


def test_nested_links_do_not_survive_their_undoing() -> None:
    assert targets(unlinked("[[x|[[y]]]] [[[[z]]]]")) == ()
    assert targets(unlinked("[[" * 50 + "a" + "]]" * 50)) == ()


PAGES = {"postgresql": "PostgreSQL", "job queue": "job queue", "queue": "queue", "c++": "C++", "c#": "c-123456", "node": "node"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PostgreSQL, then PostgreSQL.", "[[PostgreSQL]], then PostgreSQL."),
        ("postgresql", "[[PostgreSQL|postgresql]]"),
        ("the job queue", "the [[job queue]]"),
        ("job queue and queue", "[[job queue]] and [[queue]]"),
        ("C++ and C#.", "[[C++]] and [[c-123456|C#]]."),
        ("PostgreSQLite requeue", "PostgreSQLite requeue"),
        ("Node.js is no node.", "Node.js is no [[node]]."),
        ("https://postgresql.org/queue", "https://postgresql.org/queue"),
        ("`queue` and\n```\nqueue\n```", "`queue` and\n```\nqueue\n```"),
        ("[queue](there) <queue> [[queue]]", "[queue](there) <queue> [[queue]]"),
        ("| queue |", "| queue |"),
        ("src/queue/x.py @queue #queue", "src/queue/x.py @queue #queue"),
        ("(queue)", "([[queue]])"),
    ],
)
def test_the_first_mention_of_an_entity_becomes_its_link(text: str, expected: str) -> None:
    assert name_entities(text, PAGES)[0] == expected


def test_which_entities_were_found_is_said() -> None:
    assert name_entities("The job queue in C#.", PAGES)[1] == {"job queue", "c#"}


@given(st.text("queC+# `[]\n.|", max_size=80))
def test_naming_entities_changes_no_word(text: str) -> None:
    named, _ = name_entities(text, {"queue": "queue", "c++": "C++", "c#": "c-1", "q": "q"})
    before = [link.target for link in find(text)]

    assert unlinked(named, lambda link: link.target not in before).replace("[ [", "[[") == text.replace("[ [", "[[")


@pytest.mark.parametrize(
    "text", ["`" * 20_000, "[[" * 20_000, "[a](" * 20_000, "<" * 20_000, "```\n" * 10_000, "`a``b" * 10_000, "!" * 20_000 + "[[a]]"]
)
def test_hostile_texts_end(text: str) -> None:
    name_entities(unlinked(text), PAGES)

    assert list(note_prose(text)) is not None


def test_links_are_followed_by_path_name_title_and_alias() -> None:
    from dataclasses import replace

    pears = replace(note("Pears over apples", path="decisions/pears-feb26.md"), aliases=("the pear question",))
    twin = note("Other pears", path="topics/deep/pears-feb26.md", number=2)
    resolver = Resolver([twin, pears], ["attachments/map.png"])

    for target in (
        "decisions/pears-feb26",
        "pears-feb26",
        "PEARS-feb26",
        "pears-feb26.md",
        "Pears over apples!",
        "The pear question",
    ):
        assert resolver.follow(target) == pears.path, target
    assert resolver.follow("deep/pears-feb26") == twin.path
    assert resolver.follow("map.png") == "attachments/map.png"
    assert resolver.follow("nowhere") is None
    assert resolver.follow("Pears over apples", by_file_only=True) is None


def test_a_link_says_what_it_shows() -> None:
    assert [link.shown for link in links.find("[[a/b]] [[a|b c]] [[a#b]] [[#b]]")] == ["b", "b c", "a > b", "b"]
