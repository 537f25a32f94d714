"""From what a model sent to a record."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.distill.condense import condense
from kite_memory.distill.parse_answer import BODY_CHARS, TITLE_CHARS, Flaw, ParsedAnswer, bounded_title, parse, read_answer
from kite_memory.extensions.contract.extractor_contract import about_the_queue, answer, chunk, event, item, plain_item, stretches
from kite_memory.model.event import EventType
from kite_memory.model.note import Change, Decision, Fact, Insight, OpenQuestion, Preference, Rejected

CHUNK = about_the_queue()
IDS = condense(CHUNK, limit_chars=40_000).ids
NUMBERS = {id: number for number, id in IDS.items()}
FIRST = NUMBERS[event(1).id]


def read(sent: object) -> ParsedAnswer:
    found = read_answer(sent, CHUNK, IDS)
    assert found is not None
    return found


def only_item(**changes: object) -> Any:
    (found,) = read(answer(item(**changes))).record.items()
    return found


GOOD = json.dumps(answer(item()))


@pytest.mark.parametrize(
    "sent",
    [
        GOOD,
        f"```json\n{GOOD}\n```",
        f"Here is what I found:\n\n{GOOD}\n\nLet me know if you want more!",
        f"I looked at {{}} and [] first.\n{GOOD}",
        json.dumps(json.loads(GOOD), indent=2),
        GOOD.replace("]}", "],}").replace('"]', '" , ]'),
        json.dumps({"record": json.loads(GOOD)}),
        json.dumps(json.loads(GOOD)["topics"]),
        json.dumps(json.loads(GOOD)["topics"][0]),
        json.dumps([item()]),
    ],
    ids=["raw", "fenced", "in prose", "after braces", "indented", "commas too many", "wrapped", "topics", "one topic", "items"],
)
def test_an_answer_is_found_however_it_is_wrapped(sent: str) -> None:
    (found,) = read(sent).record.items()

    assert found.title == "PostgreSQL over SQLite for the job queue"
    assert found.evidence == (event(1).id,)


@pytest.mark.parametrize(
    "sent",
    [
        "",
        "I am sorry, I cannot help with that.",
        "{",
        "[[[[",
        "null",
        "42",
        '"topics"',
        '{"topics": "none"}',
        '{"note": 1}',
        "[1, 2]",
        "{}" * 50,
    ],
)
def test_what_has_no_form_is_no_answer(sent: str) -> None:
    assert read_answer(sent, CHUNK, IDS) is None


def test_an_empty_answer_is_an_answer() -> None:
    assert read('{"topics": [], "cross_topic_insights": []}').record.topics == ()


@pytest.mark.parametrize("cut", range(len(GOOD)))
def test_an_answer_cut_anywhere_yields_whole_items_or_none(cut: int) -> None:
    whole = read(GOOD).record.items()

    found = read_answer(GOOD[:cut], CHUNK, IDS)

    assert found is None or found.record.items() in ((), whole)


def test_a_cut_answer_keeps_the_items_that_are_whole() -> None:
    several = json.dumps(answer(item(), item(title="Workers wait for the migration"), item(title="The third")))
    cut = several[: several.index("The third")]

    found = read(cut)

    assert [each.title for each in found.record.items()] == [
        "PostgreSQL over SQLite for the job queue",
        "Workers wait for the migration",
    ]


@pytest.mark.timeout(60)  # in quadratic time, each would take hours
@pytest.mark.parametrize(
    "bomb",
    [
        "[" * 200_000,
        '{"a":' * 100_000,
        '"' * 300_000,
        '\\"' * 200_000,
        '{"topics": ["' + '\\"' * 150_000,
        "{" * 9 + ' "' * 150_000,
        '{"evidence": 1}' * 20_000,
        "{" + ", " * 150_000,
    ],
)
def test_nothing_a_model_sends_is_costly_to_read(bomb: str) -> None:
    assert read_answer(bomb, CHUNK, IDS) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)
MANGLED_ITEM = st.fixed_dictionaries({}, optional={name: st.just(value) | JSON for name, value in item().items()})


@given(st.lists(MANGLED_ITEM | JSON, max_size=6), JSON)
def test_values_of_any_type_anywhere_are_survived(items: list[Any], insights: Any) -> None:
    sent = {"topics": [{"name": insights, "summary": insights, "items": items}], "cross_topic_insights": insights}

    found = read(sent)

    assert len(found.record.items()) + len(found.refused) == len(items)
    for each in found.record.items():
        assert 0 < len(each.title) <= TITLE_CHARS
        assert 0 < len(each.body) <= BODY_CHARS
        assert each.importance in (1, 2, 3)
        assert set(each.evidence) <= {known.id for known in CHUNK.events}


@given(st.text(max_size=400))
def test_text_of_any_kind_is_survived(sent: str) -> None:
    read_answer(sent, CHUNK, IDS)
    read_answer(GOOD[: len(sent)] + sent, CHUNK, IDS)


@pytest.mark.parametrize(
    ("changes", "flaw"),
    [
        ({"evidence": []}, Flaw.NO_EVIDENCE),
        ({"evidence": ["deadbeef"]}, Flaw.NO_EVIDENCE),
        ({"evidence": "deadbeef"}, Flaw.NO_EVIDENCE),
        ({"evidence": [1, None, {}]}, Flaw.NO_EVIDENCE),
        ({"evidence": ["0000"]}, Flaw.NO_EVIDENCE),
        ({"kind": "poem"}, Flaw.UNKNOWN_KIND),
        ({"kind": None}, Flaw.UNKNOWN_KIND),
        ({"title": ""}, Flaw.NO_TITLE),
        ({"title": ["PostgreSQL"]}, Flaw.NO_TITLE),
        ({"body": " \n"}, Flaw.NO_BODY),
        ({"body": {"text": "PostgreSQL"}}, Flaw.NO_BODY),
        ({"kind": "preference", "evidence": [event(2).id]}, Flaw.NOT_THE_PERSONS),
    ],
)
def test_a_flawed_item_is_refused_with_its_reason(changes: dict[str, object], flaw: Flaw) -> None:
    found = read(answer(item(**changes), item()))

    assert found.refused == (flaw,)
    assert len(found.record.items()) == 1


@pytest.mark.parametrize("named", [FIRST, f"[{FIRST}]", f" `{FIRST}` ", event(1).id, f"claude-code:5e55#{FIRST}", f"#{FIRST}"])
def test_evidence_is_understood_however_it_is_written(named: str) -> None:
    assert only_item(evidence=[named, named, "deadbeef"]).evidence == (event(1).id,)


def test_numbers_that_are_not_quoted_are_evidence_too() -> None:
    found = read_answer(answer(item(evidence=[4821, 10**5_000, 4822])), CHUNK, {"4821": event(1).id})

    assert found is not None
    assert [each.evidence for each in found.record.items()] == [(event(1).id,)]


def test_evidence_that_was_not_shown_does_not_count() -> None:
    shown = {FIRST: event(1).id}

    found = read_answer(answer(item(evidence=[event(2).id])), CHUNK, shown)

    assert found is not None
    assert found.refused == (Flaw.NO_EVIDENCE,)


@pytest.mark.parametrize(
    ("kind", "type"),
    [
        ("decision", Decision),
        ("Insight", Insight),
        ("FACT", Fact),
        ("preference", Preference),
        ("question", OpenQuestion),
        ("open_question", OpenQuestion),
        ("open question", OpenQuestion),
    ],
)
def test_every_kind_is_read(kind: str, type: type) -> None:
    assert isinstance(only_item(kind=kind), type)


@pytest.mark.parametrize(
    ("sent", "taken"),
    [
        (0, 1),
        (1, 1),
        (3, 3),
        (99, 3),
        (-5, 1),
        (2.9, 2),
        ("3", 3),
        ("2 - useful", 2),
        ("high", 2),
        (None, 2),
        (True, 2),
        (float("nan"), 2),
        (float("inf"), 2),
        (10**400, 3),
        (-(10**400), 1),
    ],
)
def test_importance_is_clamped(sent: object, taken: int) -> None:
    assert only_item(importance=sent).importance == taken


def test_a_number_too_large_for_any_computer_is_only_text() -> None:
    assert only_item(title=10**400).title == "1" + "0" * (TITLE_CHARS - 2) + "…"


@pytest.mark.parametrize(
    ("claimed", "evidence", "taken"),
    [
        ("user", [event(1).id], "user"),
        ("user", [event(2).id], "assistant"),
        ("user", [event(4).id], "tool"),
        ("assistant", [event(4).id], "tool"),
        ("assistant", [event(1).id], "assistant"),
        ("tool", [event(1).id], "tool"),
        ("god", [event(1).id], "assistant"),
        (None, [event(2).id], "assistant"),
    ],
)
def test_no_one_lends_a_persons_voice_to_what_they_did_not_say(claimed: object, evidence: list[str], taken: str) -> None:
    assert only_item(origin=claimed, evidence=evidence).origin == taken


@pytest.mark.parametrize(
    ("said", "persons"), [("The user doesn't want to proceed", True), ("Permission to use Bash was denied by a rule", False)]
)
def test_a_refusal_by_the_person_carries_a_preference_and_one_by_a_policy_does_not(said: str, persons: bool) -> None:
    refusal = event(1, said, EventType.TOOL_RESULT, status="denied")

    found = read_answer(answer(item(kind="preference")), chunk([refusal]), {FIRST: refusal.id})

    assert found is not None
    assert bool(found.record.items()) is persons


def test_lengths_are_bounded() -> None:
    found = only_item(
        title="word " * 60,
        body="A sentence. " * 400,
        entities=["x" * 300] * 2 + [f"e{n}" for n in range(50)],
        triggers=["t" * 900] * 9,
    )

    assert len(found.title) <= TITLE_CHARS
    assert len(found.title.split()) <= 12
    assert len(found.body) <= BODY_CHARS
    assert len(found.entities) == 12
    assert len(found.triggers) == 1


def test_more_items_than_a_chunk_can_hold_are_refused() -> None:
    found = read(answer(*[item(title=f"Choice number {n}") for n in range(40)]))

    assert len(found.record.items()) == 30
    assert found.refused == (Flaw.TOO_MANY,) * 10


def test_rejected_alternatives_keep_their_reasons() -> None:
    found = only_item(rejected=[{"alternative": "SQLite", "reason": "one writer"}, "Redis: not durable", {"reason": "none"}, 7])

    assert found.rejected == (
        Rejected(alternative="SQLite", reason="one writer"),
        Rejected(alternative="Redis", reason="not durable"),
    )


def test_what_an_insight_ruled_out_is_reported_in_its_body() -> None:
    found = only_item(kind="insight", symptom="workers wait", rejected=[{"alternative": "slow disk", "reason": "iostat idle"}])

    assert found.body.endswith("Ruled out: slow disk (iostat idle).")
    assert found.symptom == "workers wait"


def test_angle_brackets_come_back_as_they_were() -> None:
    assert only_item(body="Use ‹Vec‹T›› for the job queue.").body == "Use <Vec<T>> for the job queue."


def test_control_characters_are_gone() -> None:
    found = only_item(title="Post\x00greSQL\nover \u202eSQLite", body="a\x1b[31m b\r\n\u200bc\ud800 locks")

    assert found.title == "PostgreSQL over SQLite"
    assert found.body == "a b\nc locks"


def test_unknown_fields_are_ignored() -> None:
    assert read(answer(item(confidence=0.9)) | {"thoughts": "…"}).record.items() == read(GOOD).record.items()


def test_cross_topic_insights_need_a_topic() -> None:
    assert read({"topics": [], "cross_topic_insights": ["All is one."]}).record.cross_topic_insights == ()
    assert read(answer(item()) | {"cross_topic_insights": ["Both wait on locks.", 3, ""]}).record.cross_topic_insights == (
        "Both wait on locks.",
        "3",
    )


def test_text_without_any_json_parses_to_nothing() -> None:
    assert parse("no braces here") is None


def test_what_a_shared_call_says_goes_to_the_stretch_it_names() -> None:
    sent = stretches(A=[plain_item(title="Pears over plums")], b=[plain_item(title="Quinces over pears")], C=[])

    listed = [read_answer(sent, CHUNK, IDS, label=label) for label in "ABCD"]

    assert [[each.title for each in one.record.items()] if one else None for one in listed] == [
        ["Pears over plums"],
        ["Quinces over pears"],
        [],
        None,
    ]


def test_what_names_no_stretch_is_about_none_of_several() -> None:
    assert read_answer(answer(item()), CHUNK, IDS, label="A") is None


def test_items_of_one_topic_are_reported_together() -> None:
    sent = stretches(A=[plain_item(topic="press", tags=["tooling"]), plain_item(topic="queue"), plain_item(topic="press")])

    found = read_answer(sent, CHUNK, IDS)

    assert found is not None
    assert [(topic.name, len(topic.items), topic.categories) for topic in found.record.topics] == [
        ("press", 2, ("tooling",)),
        ("queue", 1, ()),
    ]


@pytest.mark.parametrize(
    ("said", "change"),
    [
        ({"replaces": "N2", "because": "moved"}, Change(note="01OLD", does="replaces", because="moved")),
        ({"amends": " [n2] "}, Change(note="01OLD", does="amends")),
        ({"amends": "N2", "replaces": "N1"}, Change(note="01OLD", does="amends")),
        ({"replaces": "N9"}, None),
        ({"replaces": "01OLD"}, None),
        ({"replaces": 2}, None),
        ({"amends": ""}, None),
    ],
)
def test_only_a_note_that_was_offered_is_changed(said: dict[str, Any], change: Change | None) -> None:
    found = read_answer(stretches(A=[plain_item(**said)]), CHUNK, IDS, offered={"N1": "01OLDER", "N2": "01OLD"})

    assert found is not None
    assert [each.change for each in found.record.items()] == [change]


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ('"retry" is never set to true', '"retry" is never set to true'),
        ('Never say "done" or "fixed"', 'Never say "done" or "fixed"'),
        ('"Retries stop at the gateway"', "Retries stop at the gateway"),
        ("# **Retries stop at the gateway.**", "Retries stop at the gateway"),
    ],
)
def test_a_title_keeps_the_quotation_marks_within_it(said: str, kept: str) -> None:
    assert only_item(title=said).title == kept


@pytest.mark.parametrize(("evidence", "origin"), [([event(1).id], "user"), ([event(2).id], "assistant")])
def test_whose_word_it_is_need_not_be_said(evidence: list[str], origin: str) -> None:
    found = read_answer(stretches(A=[plain_item(evidence=evidence)]), CHUNK, IDS)

    assert found is not None
    assert [each.origin for each in found.record.items()] == [origin]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Write the grafting service in C#", "Write the grafting service in C#"),
        ("Never write SELECT *", "Never write SELECT *"),
        ("*.bak files are never committed.", "*.bak files are never committed"),
        ("__main__ stays empty", "__main__ stays empty"),
        ("Prefix helpers with _", "Prefix helpers with _"),
        ("## **Deep roots** need room", "Deep roots need room"),
        ("- **A whole title**", "A whole title"),
    ],
)
def test_a_title_loses_its_marks_but_not_its_names(text: str, title: str) -> None:
    assert bounded_title(text) == title
