"""Conversations beside a prompt: quoted where an opening stands out among its project's own, else pointed at."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Literal, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.app.question_answering import (
    Evidence,
    QuestionAnswering,
    Settled,
    extract,
    quoted_turns,
    rulings_in,
    sentences_of_evidence,
)
from kite_memory.app.searching import TimelineConversations, answers, is_an_answer, nearness_of_turns
from kite_memory.app.session_context import conversation
from kite_memory.model.event import Event, EventType, Where
from kite_memory.recall.embedder import Vectors
from kite_memory.recall.lexical import essence
from kite_memory.recall.recall import Recall
from kite_memory.recall.rendering import estimated_tokens
from kite_memory.recall.rendering import render_prompt_block as rendered
from kite_memory.timeline.conversations import ConversationEmbedder
from kite_memory.timeline.store import Timeline
from kite_memory.vault.known import StoredNotes
from tests.timeline.test_timeline_cards import MONDAY, chat, keep, talked

SETTLED = "an hour and not a minute less, the smith sleeps badly"
CHATS = (
    ("How long may the sluice jam before we page the smith?", "I could page him after ten minutes.", SETTLED, "Set to an hour."),
    ("Is the pump on tonight?", "It runs until six in the morning."),
    ("Who oils the hinge of the gate?", "The miller does, on the first of each month."),
    ("Where is the key to the mill?", "Under the third stone from the door."),
    ("What does the wheel weigh?", "About four tons, with the shaft."),
    ("Is the pump on, and until when does the pump run tonight?", "It is on, and runs until six in the morning."),
)
REPORT = "The smith was paged at night because the sluice was in a jam for some minutes. Can we page nobody before morning?"


@pytest.fixture
def timeline(tmp_path: Path) -> Iterator[Timeline]:
    store = Timeline(tmp_path / "timeline.sqlite", clock=lambda: MONDAY.timestamp() + 90 * 86_400)
    for number, said in enumerate(CHATS):
        talked(store, f"s{number}", *said, days=number)
    yield store
    store.close()


@pytest.fixture
def voices(timeline: Timeline) -> TimelineConversations:
    return TimelineConversations(cards=timeline.cards, meaning=None)


def test_a_prompt_is_compared_by_the_one_vector_that_notes_are_compared_with(timeline: Timeline) -> None:
    asked: list[str] = []

    def of_question(text: str) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
        asked.append(text)
        return np.array([1.0, 0.0], np.float32)

    meaning = ConversationEmbedder(
        space="test", of_texts=lambda texts: np.ones((len(texts), 2), np.float32) / 2**0.5, of_question=of_question
    )
    while timeline.vectors.embed(meaning, 200, per_day=10**9):
        pass
    misspelled = "How long may the sluise jam?"
    pasted = f"{misspelled} {'The wheel stood still. ' * 400}And then?"
    voices = TimelineConversations(cards=timeline.cards, meaning=meaning)
    for prompt in (misspelled, pasted):
        voices.opening(prompt, project="orchard", session="now")

    assert asked == [misspelled, essence(pasted)]


def test_an_opening_that_stands_out_is_given_how_the_conversation_ended(voices: TimelineConversations) -> None:
    quotes, _ = voices.opening(REPORT, project="orchard", session="now")

    assert quotes[0].session == "s0"
    assert SETTLED in quotes[0].text and CHATS[0][0] in quotes[0].text
    assert all(estimated_tokens(quote.text) <= 200 for quote in quotes)


def test_one_that_does_not_is_only_pointed_at_conversations_and_never_at_its_own(voices: TimelineConversations) -> None:
    quotes, pointers = voices.opening("And the key?", project="orchard", session="now")
    of_its_own = voices.opening("And the key?", project="orchard", session="s3")

    assert not quotes
    assert [pointer.session for pointer in pointers] == ["s3"]
    assert len(pointers[0].title) <= 100 and not pointers[0].is_note
    assert of_its_own == ([], [])


def test_a_plan_is_quoted_no_conversation(voices: TimelineConversations) -> None:
    plan = (
        REPORT + "\n\n" + "\n".join(f"{step}. Grease the {part} of the mill." for step in range(40) for part in ("hoist", "sieve"))
    )

    assert len(plan) > 2_000
    assert voices.opening(plan, project="orchard", session="now")[0] == []


def test_a_pointed_at_conversation_opens_by_its_citation_and_by_the_handle_in_its_line(tmp_path: Path) -> None:
    store = Timeline(tmp_path / "timeline.sqlite", clock=lambda: MONDAY.timestamp() + 90 * 86_400)
    asked, answered = chat("s0", CHATS[0][0], SETTLED)
    asked = replace(asked, id="77aa01bc-1111-4222-8333-444455556666")
    keep(store, [asked, answered])
    while store.cards.rebuild():
        pass
    citation = asked.reference
    _, (pointer,) = TimelineConversations(cards=store.cards, meaning=None).opening(CHATS[0][0], project="orchard", session="now")

    opened = conversation(store, citation)

    assert rendered([], [], [pointer]).text.splitlines()[2].startswith("- 77aa01bc conversation: ")
    assert CHATS[0][0] in opened and SETTLED in opened
    assert conversation(store, "77aa01bc") == opened
    assert conversation(store, "ffffffff") == conversation(store, "77aa") == conversation(store, "the sluice") == ""
    store.close()


def test_a_conversation_opens_with_what_its_title_says_was_settled(timeline: Timeline) -> None:
    rule = "right. and never let the barge pass the weir in fog again"
    said = "Shall the barge pass the weir by rope or by pole?", "By rope it needs two men.", "rope, two men are here", "Roped."
    talked(timeline, "s9", *said, rule, "Understood, not in fog.", days=9)
    voices = TimelineConversations(cards=timeline.cards, meaning=None)
    pointer = voices.near("May the barge pass the weir by rope?", project="orchard", session="now", least=-1.0)[0]

    opened = conversation(timeline, pointer.id)

    assert pointer.title.endswith("settled: never let the barge pass the weir in fog…")
    assert "rope, two men are here" in opened
    assert rule in opened
    assert opened.endswith("It ended: Understood, not in fog.")


def test_a_plain_question_about_the_past_is_told_what_was_said(voices: TimelineConversations) -> None:
    question = "How long may the sluice jam before we page the smith, did we say?"

    (quote,) = voices.answer(question, project="orchard", session="now", of_the_past=True)

    assert CHATS[0][0] in quote.text
    assert SETTLED in quote.text
    assert voices.answer(question, project="orchard", session="now", of_the_past=False) == []
    assert voices.answer("Did we ever say who paints the boat?", project="orchard", session="now", of_the_past=True) == []


def test_an_opening_about_nothing_that_was_said_points_at_no_conversation(asking: QuestionAnswering, timeline: Timeline) -> None:
    voices = TimelineConversations(cards=timeline.cards, meaning=asking._meaning)

    assert voices.opening("Is there a boat in a haiku?", project="orchard", session="now") == ([], [])
    assert voices.opening("Does the sluice jam in a haiku?", project="orchard", session="now")[1]


def test_a_conversation_has_no_handle_where_another_begins_alike(tmp_path: Path) -> None:
    store = Timeline(tmp_path / "timeline.sqlite", clock=lambda: MONDAY.timestamp() + 90 * 86_400)
    for number in range(2):
        asked, answered = chat(f"s{number}", CHATS[number][0], SETTLED, days=number)
        keep(store, [replace(asked, id=f"77aa01bc-{number}"), answered], days=number)
    while store.cards.rebuild():
        pass
    _, pointers = TimelineConversations(cards=store.cards, meaning=None).opening(CHATS[0][0], project="orchard", session="now")

    assert pointers and not pointers[0].handle
    assert conversation(store, "77aa01bc") == ""
    store.close()


def piece(text: str, *, by_agent: bool) -> Evidence:
    return Evidence(kind="event", reference="r", title="user message", at=MONDAY, text=text, score=0.5, by_agent=by_agent)


def said(number: int, text: str, *, role: Literal["user", "assistant"]) -> Event:
    type = EventType.USER_MESSAGE if role == "user" else EventType.ASSISTANT_MESSAGE
    where = Where(file="/t", start=number, end=number)
    return Event(id=str(number), session="s", provider="p", ordinal=number, at=MONDAY, role=role, type=type, text=text, where=where)


def note_piece(title: str, *more: str, days: int) -> Evidence:
    text = "\n\n".join((f"{title}.", *more))
    at = MONDAY + timedelta(days=days)
    return Evidence(kind="note", reference=title, title=f"decision: {title}", at=at, text=text, score=0.5, name=title)


def quoted(*talk: Event, question: str, matched: int = 0) -> list[str]:
    """Return how a conversation answers the question, given the place of the prompt that a search found."""
    turns = quoted_turns(talk, talk[matched].id, question)
    pieces = [piece(event.text, by_agent=event.role == "assistant") for turn in turns for event in turn]
    starts = [sum(map(len, turns[:at])) for at in range(len(turns))]
    found = [Settled(said=start, recap=start + 1 if len(turn) > 1 else None) for start, turn in zip(starts, turns, strict=True)]
    return [sentence.text.removeprefix("On 2026-03-02: ") for sentence in sentences_of_evidence(found, pieces, question)]


def test_an_answer_is_what_a_person_ruled_and_the_recap_after_it_not_an_offer() -> None:
    talk = [
        said(0, "How long until we page?", role="user"),
        said(1, "I could page after ten minutes.", role="assistant"),
        said(2, SETTLED, role="user"),
        said(3, "Set to an hour. I'll watch the log. Shall I deploy it?", role="assistant"),
        said(4, "ship it", role="user"),
    ]

    assert quoted(*talk, question="what delay is there?") == [f"“{SETTLED}”", "Set to an hour."]


def test_a_short_answer_to_what_was_offered_is_quoted_and_not_the_request_after_it() -> None:
    talk = [
        said(0, "which grease for the sluice, tallow or oil?", role="user"),
        said(1, "Do you want tallow or oil?", role="assistant"),
        said(2, "tallow.", role="user"),
        said(3, "Greased with it.", role="assistant"),
        said(4, "now please paint the boathouse green like the mill", role="user"),
        said(5, "Painted.", role="assistant"),
    ]

    found = quoted(*talk, question="what is the sluice greased with?")

    assert "“tallow.”" in found and "boathouse" not in " ".join(found)


SLUICES = (
    said(0, "let the sluice be greased with tallow, the oil is gone by noon", role="user"),
    said(1, "Tallow it is, the sluice is greased each morning.", role="assistant"),
    said(2, "is a ladder kept at the weir?", role="user"),
    said(3, "Yes. A ladder of nine rungs hangs at the weir, under the eaves.", role="assistant"),
    said(4, "paint the boathouse green like the shutters of the mill", role="user"),
    said(5, "The boathouse is green now, two coats.", role="assistant"),
)


def test_the_turn_that_the_question_is_about_is_quoted_not_the_end_of_its_conversation() -> None:
    tallow, rungs = (
        quoted(*SLUICES, question="what is the sluice greased with?"),
        quoted(*SLUICES, question="is a ladder at the weir?"),
    )

    assert tallow[0] == "“let the sluice be greased with tallow, the oil is gone by noon”"
    assert rungs[:2] == ["“is a ladder kept at the weir?”", "A ladder of nine rungs hangs at the weir, under the eaves."]


def test_what_was_said_after_a_long_silence_about_something_else_is_not_quoted() -> None:
    later = [replace(each, at=each.at + timedelta(hours=2)) for each in SLUICES[4:]]

    assert "boathouse" not in " ".join(quoted(*SLUICES[:2], *later, question="what is the sluice greased with?"))
    assert "boathouse" in " ".join(quoted(*SLUICES[:2], *later, question="which colour for the boathouse?"))


def test_the_last_ruling_is_quoted_too_if_it_is_about_the_question() -> None:
    talk = [
        *SLUICES[:2],
        said(2, "the smith wants the keys of the forge", role="user"),
        said(3, "He has them now.", role="assistant"),
    ]
    ruling = "no, on Sundays nobody greases the sluice at all"

    found = quoted(*talk, said(4, ruling, role="user"), question="who greases the sluice with tallow?")

    assert f"“{ruling}”" in found and "“let the sluice be greased with tallow, the oil is gone by noon”" in found


def test_of_two_opposite_notes_the_newer_comes_first_with_its_date_and_is_no_proof_of_the_older() -> None:
    older = note_piece("Barges at the lock must always be weighed before noon", days=0)
    newer = note_piece("Barges at the lock must never be weighed before noon", days=9)

    found = extract("are barges weighed at the lock?", [older, newer])

    assert [(each.text, each.rests_on) for each in found] == [
        ("2026-03-11: Barges at the lock must never be weighed before noon.", (1,)),
        ("2026-03-02: Barges at the lock must always be weighed before noon.", (0,)),
    ]


def test_an_option_that_was_turned_down_answers_only_a_question_about_it() -> None:
    chosen = note_piece(
        "The lock gate is hung on hinges of bronze", "**Rejected:** The lock gate on hinges of iron, which rust.", days=0
    )

    assert all("iron" not in each.text for each in extract("on which hinges is the lock gate hung?", [chosen]))
    assert any("iron" in each.text for each in extract("why did we not hang the lock gate on iron hinges?", [chosen]))


def test_a_ruling_is_a_reply_of_some_length_with_the_words_after_it() -> None:
    talk = [
        said(0, "How long may the sluice jam before we page the smith?", role="user"),
        said(1, "I could page him after ten minutes.", role="assistant"),
        said(2, "and would he then get up at night for that?", role="user"),
        said(3, "Yes.", role="assistant"),
        said(4, SETTLED, role="user"),
        said(5, "Set to an hour.", role="assistant"),
        said(6, "ship it", role="user"),
    ]

    assert rulings_in(talk) == {talk[4].id: f"{SETTLED} Set to an hour."}
    assert rulings_in(talk[4:]) == rulings_in([]) == {}


@given(about=st.floats(0, 1), settled=st.floats(0, 1), more=st.floats(0, 1))
def test_a_nearer_conversation_is_no_less_likely_and_one_that_settled_something_more_so(
    about: float, settled: float, more: float
) -> None:
    assert 0 < answers(about, None) < 1
    assert answers(about, settled) > answers(about, None)
    assert answers(about + more, settled) >= answers(about, settled)
    assert answers(about, settled + more) >= answers(about, settled)


def toward(text: str) -> list[float]:
    """A vector that only shows whether a text is about the sluice, a little less with a child, and whether about the boat."""
    about = 0.9 if "child" in text else 1.0
    return [about * ("sluice" in text or "smith" in text), float("boat" in text)]


class NoNotes:
    def search(self, query: object) -> tuple[()]:
        return ()


@pytest.fixture
def asking(timeline: Timeline) -> QuestionAnswering:
    asking = about(timeline, [])
    _embed(asking)
    return asking


def about(timeline: Timeline, embedded: list[str]) -> QuestionAnswering:
    """Return what answers questions, and adds every text that it embeds to ``embedded``."""

    def of_texts(texts: Sequence[str]) -> Vectors:
        embedded.extend(texts)
        return np.array([toward(text) for text in texts], np.float32)

    nothing = NoNotes()
    return QuestionAnswering(
        timeline=timeline,
        notes=cast(StoredNotes, nothing),
        recall=cast(Recall, nothing),
        answerer=lambda: None,
        clock=lambda: MONDAY,
        meaning=ConversationEmbedder(space="test", of_texts=of_texts, of_question=lambda text: np.array(toward(text), np.float32)),
    )


def _embed(asking: QuestionAnswering) -> None:
    assert asking._meaning is not None
    while asking._timeline.vectors.embed(asking._meaning, 200, per_day=10**9):
        pass


def test_a_question_embeds_only_conversations_whose_turns_have_no_vectors_and_few_of_them(timeline: Timeline) -> None:
    ruling = "guests may have the boat on Sundays only, and never after dark"
    answers = "I'd allow the boat on any day of the week, but in winter.", "Set: the boat may be had on Sundays, until it is dark."
    for number in range(3):
        talked(timeline, f"t{number}", "When may the boat be borrowed by guests?", answers[0], ruling, answers[1], days=9 - number)
    embedded: list[str] = []
    asking = about(timeline, embedded)

    anew = asking.ask(question="when may guests borrow the boat?", project="orchard")["sentences"]
    texts = len(embedded)
    _embed(asking)
    embedded.clear()
    stored = asking.ask(question="when may guests borrow the boat?", project="orchard")["sentences"]

    assert ruling in anew[0]["text"] and ruling in stored[0]["text"]
    assert texts == 4  # of two conversations how they began, and the ruling
    assert not any("boat" in text for text in embedded)  # a chat with short answers alone has no vector


def test_a_conversation_is_as_near_as_its_turns_together_the_first_most() -> None:
    near, far = np.array([1.0, 0.0], np.float32), np.array([0.0, 1.0], np.float32)

    assert nearness_of_turns([near, near], near) == pytest.approx(1.0)
    assert nearness_of_turns([near, far], near) > nearness_of_turns([far, near], near) > nearness_of_turns([far], near) == 0.0
    assert nearness_of_turns([], near) == 0.0


def test_the_newer_ruling_answers_a_question_in_other_words_before_the_older(asking: QuestionAnswering, timeline: Timeline) -> None:
    question = "what delay before anybody wakes because of the sluice?"
    before = asking.ask(question=question, project="orchard")
    changed = "two hours from now on, the smith has a child that sleeps worse"
    talked(timeline, "s9", "The sluice and the smith again?", "I could page him later.", changed, "Set.", days=9)

    after = asking.ask(question=question, project="orchard")

    assert [each["text"] for each in before["sentences"]] == [f"On 2026-03-02: “{SETTLED}”", "Set to an hour."]
    assert changed in after["sentences"][0]["text"] and any(SETTLED in each["text"] for each in after["sentences"][1:])


def test_a_later_conversation_that_opens_with_the_change_answers_first(asking: QuestionAnswering, timeline: Timeline) -> None:
    talked(timeline, "t1", "When may the boat be borrowed by guests?", "I'd allow the boat on Sundays only.", "fine")
    changed = "Guests borrow the boat on weekdays from now on, no longer on Sundays: the boat was gone twice."
    talked(timeline, "t2", changed, "Changed: the boat is lent to guests on weekdays.", days=9)
    _embed(asking)

    answer = asking.ask(question="when may guests borrow the boat?", project="orchard")

    assert changed in answer["sentences"][0]["text"]


def test_a_conversation_that_settles_nothing_never_goes_before_a_ruling(asking: QuestionAnswering, timeline: Timeline) -> None:
    ruling = "guests may have the boat on Sundays only, and never after dark"
    talked(timeline, "t1", "When may the boat be borrowed by guests?", "I'd allow the boat any day.", ruling, "Set: Sundays.")
    talked(timeline, "t2", "When may guests borrow the boat, did we change that?", "The boat: on Sundays.", days=9)
    _embed(asking)

    answer = asking.ask(question="when may guests borrow the boat?", project="orchard")

    assert ruling in answer["sentences"][0]["text"]


@pytest.mark.parametrize(
    ("likely", "score", "covered", "answers_it"),
    [
        (0.6, 0.4, 0.0, True),
        (0.6, 0.2, 0.0, False),
        (0.45, 0.9, 0.0, False),
        (0.2, 0.1, 0.5, True),
        (0.01, 0.1, 0.5, False),  # "what is the capital of France?"
        (0.01, 0.1, 0.7, True),
        (None, 0.1, 0.5, True),
    ],
)
def test_a_conversation_answers_if_it_is_likely_and_found_or_repeats_the_question(
    likely: float | None, score: float, covered: float, answers_it: bool
) -> None:
    assert is_an_answer(likely, settles=True, score=score, covered=covered) is answers_it


def test_a_question_that_is_near_to_nothing_settled_has_no_answer(asking: QuestionAnswering) -> None:
    assert asking.ask(question="which colour has the new boat?", project="orchard")["sentences"] == []


def test_a_quotation_loses_markup_but_nothing_that_only_looks_like_it() -> None:
    (sentence,) = extract("buffer size limit", [piece("The **buffer size** limit is 1024**2 in `__init__`.", by_agent=True)])

    assert sentence.text == "The buffer size limit is 1024**2 in `__init__`."
