"""A note's file: what is written, and what is read from files that people have had their hands on."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.model.note import Note, NoteKind, NoteStatus, Scope
from kite_memory.vault import links
from kite_memory.vault.notefile import UnreadableNote, body_of, parse, render, sheet_of, with_addition
from kite_memory.vault.wording import one_line, text_block
from tests.vault.building import START, later, note


def read(text: str, path: str = "topics/x.md") -> Note:
    found = parse(text, path, created=START, updated=later())
    assert isinstance(found, Note), found
    return found


def test_a_note_looks_as_promised() -> None:
    written = Note(
        id="01JD3V9K5XQ2W8R7T6Y5M4N3B2",
        path="decisions/pears-over-apples-feb26.md",
        kind=NoteKind.DECISION,
        title="Pears over apples: the north field",
        body="You chose [[Pears]] over [[Apples]].\n\n**Rejected:** [[Apples]]: they bloom too early.",
        created=datetime(2026, 2, 26, 15, 3, 11, 999, tzinfo=timezone(timedelta(hours=1))),
        updated=START,
        project="orchard",
        tags=("fruit", "late frost"),
        aliases=("pears over apples",),
        evidence=("claude-code:5e55-0001#00000001",),
        importance=3,
        origin="user",
        supersedes=("apples-everywhere-jan26",),
    )

    assert render(written) == (
        "---\n"
        "id: 01JD3V9K5XQ2W8R7T6Y5M4N3B2\n"
        "kind: decision\n"
        'title: "Pears over apples: the north field"\n'
        "project: orchard\n"
        "scope: project\n"
        "status: accepted\n"
        "origin: user\n"
        "tags: [fruit, late frost]\n"
        "aliases: [pears over apples]\n"
        "created: 2026-02-26T14:03:11Z\n"
        "importance: 3\n"
        'evidence: ["claude-code:5e55-0001#00000001"]\n'
        'supersedes: ["[[apples-everywhere-jan26]]"]\n'
        "---\n"
        "You chose [[Pears]] over [[Apples]].\n"
        "\n"
        "**Rejected:** [[Apples]]: they bloom too early.\n"
    )


def test_other_readers_find_the_types_they_expect() -> None:
    front = yaml.safe_load(sheet_of(render(note())).yaml)

    assert front["created"] == START
    assert front["importance"] == 2
    assert front["evidence"] == ["claude-code:5e55-0001#00000001"]


LINES = st.text(max_size=60).map(one_line)
SOME_LINES = st.lists(LINES.filter(bool), max_size=4).map(tuple)
TARGETS = st.lists(st.text("abcäö -", min_size=1, max_size=12).map(one_line).filter(bool), max_size=3).map(tuple)
MOMENTS = st.datetimes(datetime(1000, 1, 1), datetime(9000, 1, 1)).map(lambda at: at.replace(microsecond=0, tzinfo=UTC))  # noqa: DTZ001 - hypothesis wants them naive
NOTES = st.builds(
    Note,
    id=LINES.filter(bool),
    path=st.just("topics/x.md"),
    kind=st.sampled_from(NoteKind),
    title=LINES.filter(bool),
    body=st.text(max_size=300).map(text_block),
    created=MOMENTS,
    updated=st.just(later()),
    aliases=SOME_LINES,
    tags=st.lists(LINES.filter(lambda tag: tag and not tag.startswith("#")), max_size=4).map(tuple),
    triggers=SOME_LINES,
    entities=SOME_LINES,
    scope=st.sampled_from(Scope),
    project=LINES,
    session=LINES,
    key=LINES,
    valid_from=st.none() | MOMENTS,
    valid_until=st.none() | MOMENTS,
    conflicts=TARGETS,
    anchors=SOME_LINES,
    branch=LINES,
    expires=st.none() | MOMENTS,
    supersedes=TARGETS,
    superseded_by=st.text("abcäö", max_size=12),
    status=st.sampled_from(NoteStatus),
    evidence=SOME_LINES,
    origin=st.sampled_from(["user", "assistant", "tool"]),
    importance=st.integers(1, 3),
)


@given(NOTES)
def test_a_note_is_read_back_as_it_was_written(written: Note) -> None:
    assert read(render(written)) == replace(written, links=links.targets(written.body))


@given(st.text(max_size=300), st.text(max_size=100))
def test_no_body_and_no_title_can_break_out_of_its_place(body: str, title: str) -> None:
    text = render(replace(note(), body=body, title=title or "t"))

    assert text.encode().decode() == text
    assert "\r" not in text and "\0" not in text
    again = read(text)
    assert again.body == text_block(body)
    assert again.id == note().id


@given(st.text(max_size=200))
def test_tidying_twice_is_tidying_once(text: str) -> None:
    assert text_block(text_block(text)) == text_block(text)
    assert one_line(one_line(text)) == one_line(text)


@pytest.mark.parametrize("written", ["2026-12-31", '"2026-12-31"'])
def test_a_day_alone_ends_with_that_day_where_the_person_is(written: str) -> None:
    text = f"---\ntype: fact\nexpires: {written}\n---\nThe fair is on.\n"

    read = parse(text, "facts/fair.md", created=START, updated=START)

    assert isinstance(read, Note)
    assert not read.has_expired(datetime(2026, 12, 31, 23, 59).astimezone())
    assert read.has_expired(datetime(2027, 1, 1).astimezone())


def test_a_persons_own_note_needs_no_properties() -> None:
    found = read("# How to prune\n\nIn winter, says [[Ada]].\n", "topics/pruning.md")

    assert (found.id, found.title, found.kind, found.origin) == ("", "How to prune", NoteKind.INSIGHT, "user")
    assert (found.created, found.updated, found.links) == (START, later(), ("Ada",))
    assert (found.scope, found.status) == (Scope.GLOBAL, NoteStatus.ACCEPTED)


@pytest.mark.parametrize(
    ("front", "name", "value"),
    [
        ("title: 2026", "title", "2026"),
        ("title: [a, b]", "title", "x"),
        ("title:", "title", "x"),
        ("kind: Decision", "kind", NoteKind.DECISION),
        ("kind: recipe", "kind", NoteKind.INSIGHT),
        ("tags: a, b c", "tags", ("a", "b", "c")),
        ("tags: '#a #b'", "tags", ("a", "b")),
        ("tags:\n  - a\n  - '#b'", "tags", ("a", "b")),
        ("tags: {a: b}", "tags", ()),
        ("tag: a", "tags", ("a",)),
        ("aliases: just one", "aliases", ("just one",)),
        ("aliases:\n- 1\n-\n- [x, [y]]", "aliases", ("1", "x", "y")),
        ("created: 2026-03-01", "created", datetime(2026, 3, 1, tzinfo=UTC)),
        ("created: 2026-3-1", "created", datetime(2026, 3, 1, tzinfo=UTC)),
        ("created: 2026-03-01T10:00:00+02:00", "created", datetime(2026, 3, 1, 8, tzinfo=UTC)),
        ("created: 2026-03-01 10:00", "created", datetime(2026, 3, 1, 10, tzinfo=UTC)),
        ("created: 2026-13-45", "created", START),
        ("created: 0001-01-01T00:00:00+14:00", "created", START),
        ("created: yesterday", "created", START),
        ("created: [2026]", "created", START),
        ("importance: 7", "importance", 3),
        ("importance: -2", "importance", 1),
        ("importance: very", "importance", 2),
        ("importance: " + "9" * 5000, "importance", 2),
        ("status: Muted", "status", NoteStatus.MUTED),
        ("status: whatever", "status", NoteStatus.ACCEPTED),
        ("supersedes: [[an old one]]", "supersedes", ("an old one",)),
        ("supersedes: ['[[a|b]]', '[[c#d]]', e]", "supersedes", ("a", "c", "e")),
        ("superseded_by: '[[new]]'", "superseded_by", "new"),
        ("origin: tool", "origin", "tool"),
        ("origin: martian", "origin", "user"),
        ("evidence: 5", "evidence", ("5",)),
        ("project: orchard", "scope", Scope.PROJECT),
    ],
)
def test_what_people_type_costs_one_property_at_most(front: str, name: str, value: object) -> None:
    assert getattr(read(f"---\n{front}\n---\nbody\n"), name) == value


@pytest.mark.parametrize("front", ["title: Foo: bar", "a: [", "a: *x", "- a", "a: !!set {b}"])
def test_broken_frontmatter_is_said_and_the_body_kept(front: str) -> None:
    found = parse(f"---\n{front}\n---\nThe body.\n", "topics/x.md", created=START, updated=START)

    assert isinstance(found, UnreadableNote)
    assert (found.path, found.body) == ("topics/x.md", "The body.")
    assert found.reason.startswith("frontmatter")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("---\na: 1\n---\nbody\n", "---\na: 1\n---\nbody\n\nmore\n"),
        ("---\na: 1\n---\nbody", "---\na: 1\n---\nbody\n\nmore\n"),
        ("---\na: 1\n---\nbody\n\n", "---\na: 1\n---\nbody\n\nmore\n"),
        ("---\na: 1\n---\n", "---\na: 1\n---\nmore\n"),
        ("body\r\n", "body\r\n\r\nmore\r\n"),
        ("", "more\n"),
    ],
)
def test_an_addition_stands_in_a_paragraph_of_its_own(text: str, expected: str) -> None:
    assert with_addition(text, "more") == expected


@given(st.text(max_size=200), st.text(max_size=50))
def test_an_addition_leaves_every_character_before_it(text: str, addition: str) -> None:
    assert with_addition(text, addition).startswith(text)


def test_the_body_is_what_follows_the_fences_to_the_letter() -> None:
    assert body_of("---\na: 1\n---\n\n  body \n\n") == "\n  body \n\n"
