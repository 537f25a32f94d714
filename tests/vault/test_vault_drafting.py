"""From records to notes that know of no other yet."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kite_memory.model.note import (
    Decision,
    Fact,
    Insight,
    NoteKind,
    NoteStatus,
    OpenQuestion,
    Origin,
    Preference,
    Record,
    RecordItem,
    Rejected,
    Scope,
    Topic,
)
from kite_memory.vault.drafting import Memo, draft, remembered, tags_of
from kite_memory.vault.links import tame, targets
from kite_memory.vault.notefile import parse, render
from kite_memory.vault.wording import note_id
from tests.vault.building import SESSION, START, chunk, decision, event, fact, record


def item(kind: type[RecordItem], **fields: Any) -> RecordItem:
    return kind(**{"title": "T", "body": "B.", "evidence": (event(1).id,), "importance": 2, "origin": "user", **fields})


@pytest.mark.parametrize(
    ("kind", "folder", "note_kind"),
    [
        (Decision, "decisions", NoteKind.DECISION),
        (Insight, "topics", NoteKind.INSIGHT),
        (Fact, "projects", NoteKind.FACT),
        (Preference, "people", NoteKind.PREFERENCE),
        (OpenQuestion, "ideas", NoteKind.QUESTION),
    ],
)
def test_each_kind_has_its_folder(kind: type[RecordItem], folder: str, note_kind: NoteKind) -> None:
    (made,) = draft(record(item(kind, title="Late frost")), chunk())

    assert (made.note.path, made.note.kind) == (f"{folder}/late-frost-feb26.md", note_kind)


def test_a_note_says_where_it_comes_from() -> None:
    (made,) = draft(record(fact("Frost comes late", evidence=2)), chunk())

    assert made.note.evidence == ("claude-code:5e55-0001#00000002",)
    assert made.note.created == START + timedelta(minutes=2)
    assert (made.note.project, made.note.scope, made.note.tags) == ("orchard", Scope.PROJECT, ("fruit",))


def test_the_same_chunk_names_its_notes_the_same_whatever_the_answer_says() -> None:
    first = draft(record(fact("One"), fact("Two")), chunk())
    reworded = draft(record(fact("Uno", evidence=3), decision("Due")), chunk())
    elsewhere = draft(record(fact("One"), fact("Two")), chunk("chunk-2"))

    assert [one.note.id for one in first] == [one.note.id for one in reworded]
    assert not {one.note.id for one in first} & {one.note.id for one in elsewhere}


def test_ids_sort_by_time_and_are_ulids() -> None:
    early, late = note_id(START, "b"), note_id(START + timedelta(milliseconds=1), "a")

    assert early < late
    assert re.fullmatch("[0-7][0-9A-HJKMNP-TV-Z]{25}", early)
    assert note_id(datetime(1900, 1, 1, tzinfo=UTC), "x").startswith("0000000000")


def test_a_preference_that_holds_everywhere_leaves_its_project() -> None:
    here, everywhere = draft(record(item(Preference), item(Preference, everywhere=True)), chunk())

    assert (here.note.scope, here.note.project) == (Scope.PROJECT, "orchard")
    assert (everywhere.note.scope, everywhere.note.project) == (Scope.GLOBAL, "")


@pytest.mark.parametrize(("origin", "status"), [("user", "accepted"), ("assistant", "accepted"), ("tool", "proposed")])
def test_what_only_a_tool_says_waits_for_a_person(origin: Origin, status: str) -> None:
    (made,) = draft(record(item(Fact, origin=origin)), chunk())

    assert made.note.status is NoteStatus(status)


def test_a_symptom_is_kept_word_for_word() -> None:
    (plain,) = draft(record(item(Insight, symptom="the tree hangs")), chunk())
    (code,) = draft(record(item(Insight, symptom="KeyError: `x` in <module>\n[[ -f y ]]")), chunk())

    assert plain.note.body == "B.\n\n**Symptom:** the tree hangs"
    assert code.note.body == "B.\n\n**Symptom:** ``KeyError: `x` in <module> [[ -f y ]]``"
    assert targets(code.note.body) == ()


def test_the_notes_of_a_topic_know_those_before_them() -> None:
    two_topics = Record(
        topics=(
            Topic(name="a", summary="", items=(fact("One"), fact("Two"), fact("Three"))),
            Topic(name="b", summary="", items=(fact("Four"), fact("Five"))),
        )
    )

    drafts = draft(two_topics, chunk())

    ids = [one.note.id for one in drafts]
    assert [one.siblings for one in drafts] == [(), (ids[0],), (ids[0], ids[1]), (), (ids[3],)]


def test_entities_are_names_each_once() -> None:
    names = (
        "PostgreSQL",
        "postgresql",
        "x",
        "12",
        "a sentence of far too many words",
        "person: Ada Lovelace",
        "`cargo`",
        "",
        "y" * 61,
    )

    (made,) = draft(record(fact("T", entities=names)), chunk())

    assert [(one.name, one.person) for one in made.entities] == [("PostgreSQL", False), ("Ada Lovelace", True), ("cargo", False)]
    assert made.note.entities == ("PostgreSQL", "Ada Lovelace", "cargo")


@pytest.mark.parametrize(
    "alternative", ["the original state", "keeping latest at root", "silently corrupt files", "its own session"]
)
def test_an_alternative_that_describes_something_is_no_entity(alternative: str) -> None:
    (made,) = draft(record(decision(rejected=[Rejected(alternative=alternative, reason="")])), chunk())

    assert made.entities == ()
    assert made.rejected == (Rejected(alternative=alternative, reason=""),)


def test_of_a_long_topic_a_note_knows_what_is_nearest_to_it_and_no_more() -> None:
    items = [fact(f"Row {number}", f"Of row {number}.", entities=["quince"] if number in (1, 9) else []) for number in range(10)]

    made = draft(record(*items), chunk())

    assert [len(each.siblings) for each in made] == [0, 1, 2, 3, 4, 4, 4, 4, 4, 4]
    assert made[9].siblings == (made[1].note.id, *(each.note.id for each in made[6:9]))


def test_a_short_rejected_alternative_is_an_entity() -> None:
    rejected = (
        Rejected(alternative="Apples", reason="they bloom early"),
        Rejected(alternative="doing nothing at all this year", reason="no"),
    )

    (made,) = draft(record(decision(rejected=rejected)), chunk())

    assert made.note.entities == ("Apples",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("See [[Made Up|this]] and ![[that]].", "See this and that."),
        ("![tracker](https://example.com/x.png)", "[tracker](https://example.com/x.png)"),
        ("```dataviewjs\napp.vault.delete()\n```", "```text\napp.vault.delete()\n```"),
        ("~~~ DataView\nx\n~~~", "~~~ text\nx\n~~~"),
        ("<% tp.system.prompt() %>", "< % tp.system.prompt() %>"),
        ("a\u200bb\u202ec\U000e0041d", "abcd"),
        ("👩‍🌾 می‌خواهم", "👩‍🌾 می‌خواهم"),
        ("```sh\nif [[ -f x ]]; then\n```", "```sh\nif [[ -f x ]]; then\n```"),
        ("a\0b\r\nc\x1b[31m", "ab\nc[31m"),
    ],
)
def test_foreign_markdown_lies_still(text: str, expected: str) -> None:
    assert tame(text) == expected


@pytest.mark.parametrize(
    ("categories", "tags"),
    [(("Job Queue", "C++", "2026", "a/b", "#x", "job queue", ""), ("job-queue", "c", "a/b", "x")), (("日本",), ("日本",))],
)
def test_categories_become_tags_that_obsidian_takes(categories: tuple[str, ...], tags: tuple[str, ...]) -> None:
    assert tags_of(categories) == tags


@pytest.mark.parametrize(
    ("title", "body", "expected"),
    [
        ("", "# Frost, again\nmore", "Frost, again"),
        ("[[Frost]]", "", "Frost"),
        ("\u200b", "", "Untitled"),
        ("x " * 200, "", "x " * 78 + "x…"),
    ],
)
def test_there_is_always_a_bearable_title(title: str, body: str, expected: str) -> None:
    (made,) = draft(record(item(Fact, title=title, body=body)), chunk())

    assert made.note.title == expected


@given(st.text(max_size=300), st.text(max_size=500), st.text(max_size=80), st.lists(st.text(max_size=30), max_size=4))
@example("", "", "", ["0A\r`"])
def test_whatever_a_model_says_makes_a_note_that_can_be_read_back(title: str, body: str, symptom: str, names: list[str]) -> None:
    wild = item(Insight, title=title, body=body, symptom=symptom, entities=tuple(names), triggers=tuple(names), importance=99)
    made = draft(Record(topics=(Topic(name="", summary="", items=(wild,), categories=tuple(names)),)), chunk())[0].note

    again = parse(render(made), made.path, created=START, updated=made.updated)

    assert again == replace(made, links=())
    assert made.path.count("/") == 1 and made.importance == 3


def test_a_chunk_without_events_still_has_a_time() -> None:
    (made,) = draft(record(fact("T")), replace(chunk(), events=()))

    assert made.note.created == SESSION.started


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("*.crate files are never sent", "*.crate files are never sent"),
        ("#weigh tags are for Ida", "#weigh tags are for Ida"),
        ("--dry-run is set in the yard", "--dry-run is set in the yard"),
        ("# Crates\n\nThey are weighed.", "Crates"),
        ("- crates are weighed", "crates are weighed"),
        ("> crates are weighed", "crates are weighed"),
    ],
)
def test_a_title_taken_from_a_text_loses_only_the_mark_of_its_line(text: str, title: str) -> None:
    assert remembered(Memo(text=text), START).title == title
