"""Whatever an agent sends as a record is either read or refused, and what is read can be kept, reported and reported again."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kite_memory.errors import UsageError
from kite_memory.model.note import Note
from kite_memory.tools.conversation_notes import as_text, chunk_of, drafts_of, journal_id, journal_of, merged, name_of, turns
from kite_memory.tools.local_conversations import from_json, to_json
from kite_memory.tools.record_reading import ParsedRecord, read_record
from kite_memory.tools.store import SavedConversation
from kite_memory.vault.notefile import parse, render
from tests.counts import examples
from tests.tools.conversing import QUEUE, SEVERAL, UUID

AT = datetime(2026, 11, 20, tzinfo=UTC)
FIELDS = [*QUEUE, *SEVERAL, "rejected", "insights", "facts", "name", "entities", "scope", "mood"]
KEYS = [
    "decision",
    "reasoning",
    "rejected",
    "status",
    "question",
    "name",
    "topic",
    "decisions",
    "summary",
    "role",
    "content",
    "alternative",
]

words = st.one_of(
    st.sampled_from(
        ["PostgreSQL for the queue", "it locks rows", "rejected", "multi_topic", "", "  ", "[[x]]", "a\nb", "- **x**", "\x00\ud800"]
    ),
    st.text(max_size=30),
)
leaves = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), words)
wild = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | words, inner, max_size=3)
)
topics = st.lists(
    st.dictionaries(st.sampled_from(FIELDS), words | st.lists(words | st.dictionaries(st.sampled_from(KEYS), words)), max_size=5)
)


def conversation(result: ParsedRecord) -> SavedConversation:
    return SavedConversation(
        uuid=result.uuid,
        source=result.source or "mcp",
        project="mycelia",
        record=result.record,
        overall=result.overall,
        created=AT,
        updated=AT,
        has_transcript=bool(result.transcript),
    )


def read(arguments: dict[str, Any]) -> ParsedRecord | None:
    try:
        return read_record({"claude_conversation_uuid": UUID} | arguments)
    except UsageError as error:
        assert error.hint
        return None


@settings(max_examples=examples(150), deadline=None)
@given(arguments=st.dictionaries(st.sampled_from(FIELDS) | words, wild, max_size=6))
def test_any_json_is_read_or_refused_with_what_to_do(arguments: dict[str, Any]) -> None:
    read_or_refused = read(arguments)

    assert read_or_refused is None or read_or_refused.record.topics or read_or_refused.transcript


@settings(max_examples=examples(150), deadline=None)
@given(summary=words, decisions=st.lists(words | st.dictionaries(st.sampled_from(KEYS), words), max_size=4), topics=topics)
def test_what_is_read_becomes_notes_that_can_be_read(summary: str, decisions: list[Any], topics: list[Any]) -> None:
    record = read({"summary": summary, "decisions": decisions, "topics": topics})
    if record is None:
        return

    made = conversation(record)
    notes = [journal_of(made, ["a-note-nov26"]), *(draft.note for draft in drafts_of(made, everywhere=True))]

    assert len({note.id for note in notes}) == len(notes)
    for note in notes:
        parsed = parse(render(note), note.path, created=AT, updated=AT)
        assert isinstance(parsed, Note) and (parsed.id, parsed.body) == (note.id, note.body)
    assert notes[0].links == ("a-note-nov26",)
    kept = from_json(to_json(made))
    assert kept == made and journal_id(kept) == notes[0].id


def test_two_saves_are_one() -> None:
    listed = [read(QUEUE), read(SEVERAL | {"claude_conversation_uuid": UUID})]
    first, second = (conversation(each) for each in listed if each is not None)

    both = merged(first, second)

    assert (
        merged(first, first) == first and merged(both, both) == both and merged(both, second).record.items() == both.record.items()
    )
    assert {name_of(item) for item in both.record.items()} == {
        name_of(item) for one in (first, second) for item in one.record.items()
    }
    assert both.overall == second.overall and [topic.name for topic in both.record.topics][-1] == "Job queue storage"


def test_a_topic_under_another_name_takes_its_items_with_it() -> None:
    record = read(QUEUE)
    assert record is not None
    first = conversation(record)
    (topic,) = first.record.topics
    renamed = replace(first, record=replace(first.record, topics=(replace(topic, name="Where jobs wait"),)))

    assert [each.name for each in merged(first, renamed).record.topics] == ["Where jobs wait"]


@settings(max_examples=examples(100), deadline=None)
@given(
    text=st.lists(
        st.sampled_from(["User:", "**Assistant:**", "## Human\n", "Claude Code: ", "hello", "\n", " ", "tool:", "[AI]:"])
    ).map("".join)
)
def test_turns_hold_every_word_but_the_names(text: str) -> None:
    said = turns(text)

    assert sum(each.count("hello") for _, each in said) == text.count("hello")
    assert len(chunk_of(UUID, "mcp", "", text, AT).events) == len(said)


def test_turns_are_kept_apart_by_who_speaks() -> None:
    text = "Preface.\nUser: which port?\n**Assistant:** 5433, I think.\n### Human\nsure?\nClaude Code: yes\nNote: user: none"

    assert turns(text) == [
        ("assistant", "Preface."),
        ("user", "which port?"),
        ("assistant", "5433, I think."),
        ("user", "sure?"),
        ("assistant", "yes\nNote: user: none"),
    ]


def test_messages_are_read_as_turns() -> None:
    messages: list[object] = [
        {"role": "user", "content": "which port?"},
        {"role": "model", "content": [{"type": "text", "text": "5433"}]},
    ]

    assert turns(as_text(messages) or "") == [("user", "which port?"), ("assistant", "5433")]
