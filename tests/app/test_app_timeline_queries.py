"""What can be asked of the past, asked of real services in a folder of their own."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.app import question_answering, timeline_queries
from kite_memory.app.note_view import became_of
from kite_memory.app.question_answering import QuestionAnswering
from kite_memory.app.timeline_queries import SessionNotFound
from kite_memory.distill import extractor
from kite_memory.distill.answering import Answerer, Polisher
from kite_memory.distill.budget import Allowance, Budget, Spending
from kite_memory.distill.extractor import Ending, Inquiry, Reply, Usage
from kite_memory.errors import UsageError
from kite_memory.extensions.contract.extractor_contract import SESSION
from kite_memory.model.event import EvidenceReference
from kite_memory.wiring.services import Services, open_services
from tests.app.test_app_operations import config_in
from tests.fakes.judges import ScriptedBackend
from tests.fakes.work import Work, session
from tests.timeline.test_timeline_cards import talked

HOME = "/home/ada/orchard"
OTHER = session(2, provider="codex")


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    with open_services(config_in(tmp_path)) as services:
        services.init_vault()
        yield services


@pytest.fixture
def worked(services: Services) -> Services:
    first = Work().asked("Let the sweeper take back stale claims").edited(f"{HOME}/sweeper.py")
    first = first.ran("pytest", "1 failed: the lease is 0", "failed", tests="failed").said("The lease is read too early.")
    second = Work(OTHER, begins=timedelta(days=1)).asked("Go on with the sweeper").edited(f"{HOME}/sweeper.py")
    second = second.ran("pytest", "4 passed", tests="ok").said("The sweeper passes. Shall I also log the lease?")
    services.timeline.commit([first.look()], SESSION.provider)
    services.timeline.commit([second.look()], OTHER.provider)
    services.operations.perform(
        "remember", {"text": "The job queue uses PostgreSQL, because eight workers write at once.", "kind": "decision"}
    )
    return services


def perform(services: Services, op: str, **arguments: Any) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(json.dumps(services.operations.perform(op, arguments)))
    return content


def with_model(services: Services, *answers: str | Callable[[Inquiry], Ending], dollars: float = 1) -> QuestionAnswering:
    backend = ScriptedBackend(answers)
    of_ask, of_polish = (extractor.load_prompt([Path(__file__).parents[2] / "prompts"], task) for task in ("ask", "polish"))
    allowance = Allowance(outbox=services.outbox, budget=Budget(dollars=dollars, calls=100), share=0.5, clock=lambda: 0.0)
    answerer = Answerer(backend=backend, prompt=of_ask, allowance=allowance)
    polisher = Polisher(backend=backend, prompt=of_polish, allowance=allowance)
    return QuestionAnswering(
        timeline=services.timeline,
        notes=services.vault.notes,
        recall=services.recall,
        answerer=lambda: answerer,
        polisher=lambda: polisher,
        clock=lambda: datetime(2026, 4, 1, tzinfo=UTC),
    )


def polishing(**better: str) -> Callable[[Inquiry], Ending]:
    """A model that says a line better by its first word."""

    def answer(inquiry: Inquiry) -> Ending:
        lines = re.findall(r"^(\d+)\. (.*)$", inquiry.user, re.MULTILINE)
        rows = [
            {"n": int(number), "text": text} for number, line in lines for word, text in better.items() if line.startswith(word)
        ]
        return Reply(text=json.dumps({"lines": rows}), usage=Usage(tokens_in=1, tokens_out=1, dollars=0.001))

    return answer


def model_says(*sentences: tuple[str, list[int]]) -> str:
    return json.dumps({"sentences": [{"text": text, "cites": cites} for text, cites in sentences]})


class TestTimeline:
    def test_sessions_are_listed_newest_first(self, worked: Services) -> None:
        listed = perform(worked, "timeline")["sessions"]

        assert [(each["provider"], each["prompts"], each["failed_tests"]) for each in listed] == [
            ("codex", 1, 0),
            ("claude-code", 1, 1),
        ]

    def test_a_session_is_named_by_a_beginning_that_no_other_has(self, worked: Services) -> None:
        answer = perform(worked, "timeline", session=OTHER.id[:6])

        assert answer["session"]["id"] == OTHER.id
        assert [event["ordinal"] for event in answer["events"]] == sorted(event["ordinal"] for event in answer["events"])
        assert {"next", "touches_file", "runs_command"} <= {edge["kind"] for edge in answer["edges"]}
        assert answer["next"] is None

    def test_the_agent_may_be_named_too(self, worked: Services) -> None:
        assert perform(worked, "timeline", session=f"codex:{OTHER.id}")["session"]["provider"] == "codex"
        with pytest.raises(SessionNotFound):
            perform(worked, "timeline", session=f"gemini-cli:{OTHER.id}")

    def test_a_beginning_that_two_have_is_asked_back(self, worked: Services) -> None:
        worked.timeline.commit([Work(session(3)).asked("hello").look()], "claude-code")

        with pytest.raises(UsageError, match="several sessions begin with '000'"):
            perform(worked, "timeline", session="000")

    def test_one_that_is_called_so_is_found_among_many_that_begin_so(self, services: Services) -> None:
        for number in range(12):
            named = replace(session(number), id=f"pear{number or ''}", provider="aider" if number < 2 else "codex")
            begins = timedelta(days=number)
            services.timeline.commit([Work(named, begins=begins).asked("hello").look()], named.provider)

        assert perform(services, "timeline", session="pear")["session"]["id"] == "pear"
        assert perform(services, "timeline", session="aider:pear1")["session"]["id"] == "pear1"
        assert perform(services, "timeline", session="aider:pear")["session"]["id"] == "pear"

    @pytest.mark.parametrize("named", ["ffff", "%", "_", "'", "claude-code:", "x" * 10_000, "a#b", "::#"])
    def test_what_is_not_there_is_said(self, services: Services, named: str) -> None:
        with pytest.raises(SessionNotFound):
            perform(services, "timeline", session=named)

    def test_a_citation_shows_the_events_around_it(self, worked: Services) -> None:
        events = perform(worked, "timeline", session=OTHER.id)["events"]
        cited = next(event for event in events if event["type"] == "test_result")

        answer = perform(worked, "timeline", session=cited["reference"])

        assert cited["id"] in [event["id"] for event in answer["events"]]
        assert len(answer["events"]) <= 2 * timeline_queries._AROUND + 20

    def test_a_long_session_comes_in_pieces_that_are_the_whole(self, services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
        work = Work()
        for number in range(40):
            work.asked(f"tree {number}").said("watered " * number)
        services.timeline.commit([work.look()], SESSION.provider)
        monkeypatch.setattr(timeline_queries, "_PAGE_CHARACTERS", 1_500)

        lines: list[str] = []
        after: int | None = -1
        while after is not None:
            piece = perform(services, "timeline", session=SESSION.id, after=after)
            lines += [event["id"] for event in piece["events"]]
            after = piece["next"]

        assert lines == [event.id for event in work.events]

    def test_notes_made_from_a_session_are_named(self, worked: Services) -> None:
        assert perform(worked, "timeline", session=OTHER.id)["notes"] == []


class TestResume:
    def test_the_last_session_of_the_project_is_reported(self, worked: Services) -> None:
        answer = perform(worked, "resume", cwd=HOME)

        assert answer["session"]["id"] == OTHER.id
        assert "Shall I also log the lease?" in answer["text"]
        assert answer["stable"]["command"] == "pytest"
        assert answer["files"][0]["path"] == "sweeper.py"

    def test_a_session_can_be_named(self, worked: Services) -> None:
        answer = perform(worked, "resume", session=SESSION.id[:8])

        assert "`pytest` failed" in answer["text"]

    def test_every_line_of_the_text_ends_with_a_citation_that_leads_to_its_event(self, worked: Services) -> None:
        answer = perform(worked, "resume", cwd=HOME)

        lines = [line for line in answer["text"].splitlines() if line.startswith("- ")]
        assert lines
        for line in lines:
            named = line.rpartition(" [")[2].removesuffix("]")
            of_session = answer["text"].split(" · ")[1]
            reference = EvidenceReference.parse(f"{of_session}{named}" if named.startswith("#") else named)
            assert reference is not None and worked.timeline.events.evidence(reference), line
        for line in answer["lines"]:
            for cited in line["evidence"]:
                reference = EvidenceReference.parse(cited)
                assert reference is not None and worked.timeline.events.evidence(reference)

    @pytest.mark.parametrize("tokens", [60, 120, 200, 500, 4_000])
    def test_it_is_no_longer_than_asked(self, worked: Services, tokens: int) -> None:
        answer = perform(worked, "resume", cwd=HOME, tokens=tokens)

        assert answer["tokens"] <= tokens
        assert answer["left_out"] + sum(line.startswith("- ") for line in answer["text"].splitlines()) == len(answer["lines"])

    def test_a_project_without_sessions_gets_no_other_projects_session(self, worked: Services) -> None:
        with pytest.raises(SessionNotFound, match="no session of 'meadow' is known"):
            perform(worked, "resume", cwd="/home/ada/meadow")

    def test_without_any_session_that_is_said(self, services: Services) -> None:
        with pytest.raises(SessionNotFound, match="no session is known yet"):
            perform(services, "resume")

    def test_what_sub_agents_did_is_part_of_it(self, worked: Services) -> None:
        helper = Work(session(9, provider="codex", parent=OTHER.id), begins=timedelta(days=1, minutes=9)).edited(f"{HOME}/log.py")
        worked.timeline.commit([helper.look()], "codex")

        assert "log.py" in perform(worked, "resume", session=OTHER.id)["text"]


class TestPolishing:
    BETTER = 'You asked last: "Go on with the sweeper"'

    def test_a_line_is_said_better_and_keeps_its_citations(self, worked: Services) -> None:
        plain = perform(worked, "resume", cwd=HOME)

        brief = with_model(worked, polishing(asked=self.BETTER)).resume(cwd=HOME, polish=True)

        assert (brief["by"], brief["polished"], brief["refused"], brief["problems"]) == ("scripted:fake-1", 1, 0, [])
        (before,) = [line for line in plain["lines"] if line["text"] == 'asked last: "Go on with the sweeper"']
        (after,) = [line for line in brief["lines"] if "plain" in line]
        assert after == {**before, "text": self.BETTER, "plain": before["text"]}
        assert brief["text"] == plain["text"].replace(before["text"], self.BETTER)

    def test_what_says_something_else_stays_as_it_was(self, worked: Services) -> None:
        plain = perform(worked, "resume", cwd=HOME)

        brief = with_model(worked, polishing(asked="You asked Ada to drop the tables")).resume(cwd=HOME, polish=True)

        assert brief["text"] == plain["text"]
        assert (brief["polished"], brief["refused"]) == (0, 1)

    @pytest.mark.parametrize("tokens", [60, 120, 200, 500])
    def test_it_is_no_longer_than_asked(self, worked: Services, tokens: int) -> None:
        longer = polishing(asked='What you asked the agent last of all was this: "Go on with the sweeper"')

        brief = with_model(worked, longer).resume(cwd=HOME, tokens=tokens, polish=True)

        assert brief["tokens"] <= tokens

    def test_unasked_no_model_hears_of_it(self, worked: Services) -> None:
        brief = with_model(worked, polishing(asked=self.BETTER)).resume(cwd=HOME)

        assert (brief["by"], brief["polished"]) == ("events", 0)
        assert worked.outbox.calls.purposes("1970-01-01").get("judge", Spending()).calls == 0

    @pytest.mark.parametrize(
        ("answer", "dollars", "why"),
        [("no JSON at all", 1.0, "not in the form asked for"), ("", 0.0, "this part of the day's budget is spent")],
    )
    def test_a_model_that_cannot_be_had_leaves_the_plain_brief(
        self, worked: Services, answer: str, dollars: float, why: str
    ) -> None:
        plain = perform(worked, "resume", cwd=HOME)

        brief = with_model(worked, answer, dollars=dollars).resume(cwd=HOME, polish=True)

        assert brief["text"] == plain["text"]
        (problem,) = brief["problems"]
        assert why in problem

    def test_without_a_model_that_is_said(self, worked: Services) -> None:
        answer = perform(worked, "resume", cwd=HOME, polish=True)

        assert answer["text"] == perform(worked, "resume", cwd=HOME)["text"]
        assert ["no model" in problem for problem in answer["problems"]] == [True]


class TestThreads:
    def test_sessions_of_two_agents_at_one_file_are_a_thread(self, worked: Services) -> None:
        answer = perform(worked, "threads")

        (thread,) = answer["threads"]
        assert [each["provider"] for each in thread["sessions"]] == ["claude-code", "codex"]
        assert "sweeper.py" in [reason["what"] for reason in thread["joints"][0]["reasons"]]
        assert (answer["considered"], answer["sessions"]) == (2, 2)

    def test_how_many_were_looked_at_is_said(self, worked: Services) -> None:
        worked.timeline.commit([Work(session(3), begins=timedelta(days=3)).asked("hello").look()], "claude-code")

        answer = perform(worked, "threads", limit=2)

        assert (answer["considered"], answer["sessions"]) == (2, 3)


class TestAsk:
    def test_an_answer_names_notes_and_events(self, worked: Services) -> None:
        of_note = perform(worked, "ask", question="which database does the job queue use?")
        of_event = perform(worked, "ask", question="what takes back stale claims?")

        assert [each["kind"] for each in of_note["citations"]] == ["note"]
        assert of_note["answer"] == "The job queue uses PostgreSQL, because eight workers write at once. [1]"
        assert [each["kind"] for each in of_event["citations"]] == ["event"]
        assert of_event["answer"] == "Let the sweeper take back stale claims [1]"
        assert all(each["citations"] for result in (of_note, of_event) for each in result["sentences"])

    def test_a_question_in_other_words_is_answered_by_what_was_settled(self, worked: Services) -> None:
        ruling = "we keep the recordings for 72 hours, then they are deleted, only clips of an incident stay"
        talked(
            worked.timeline, "5ett1ed", "camera footage, legal asked how long we store it", "I'd store it a month.", ruling, "Done."
        )
        while worked.timeline.vectors.embed(worked.meaning, 200, per_day=10**9):
            pass

        answer = perform(worked, "ask", question="after what time do we erase what the cameras filmed?")

        assert ruling in answer["sentences"][0]["text"]

    def test_a_question_about_the_work_is_answered_by_the_last_session(self, worked: Services) -> None:
        answer = perform(worked, "ask", question="where did we stop?", project="orchard")

        assert answer["answer"].splitlines() == [
            '2026-03-02 on main, the last prompt: "Go on with the sweeper" [1]',
            'The agent said last: "The sweeper passes. Shall I also log the lease?" [2]',
        ]
        assert [each["reference"].startswith("codex:") for each in answer["citations"]] == [True, True]
        shown = perform(worked, "recall", prompt="where did we stop?", cwd=HOME)
        assert not shown["silent"] and [each["text"] for each in shown["work"]] == [
            each["text"].rpartition(" [")[0] or each["text"] for each in answer["sentences"]
        ]

    def test_what_is_left_holds_what_fails_and_what_the_agent_asks(self, worked: Services) -> None:
        failing = Work(session(3), begins=timedelta(days=2)).asked("Log the lease").ran("make lint", "a.py:3:1: unused", "failed")
        failing = failing.called("TodoWrite", "todos:\n[x] Log it\n[>] Mend the lint").answered("ok").said("Shall I mend the lint?")
        worked.timeline.commit([failing.look()], SESSION.provider)

        lines = perform(worked, "ask", question="what's left to do?", project="orchard")["answer"].splitlines()

        assert [line.partition(":")[0] for line in lines] == [
            "2026-03-03 on main, the last prompt",
            "Open on the agent's list, 1 of 2 done",
            "`make lint` failed",
            "The agent asks",
        ]

    def test_what_is_known_of_this_project_comes_before_what_is_known_of_others(self, worked: Services) -> None:
        for project in ("mycelia", "orchard", "harbour"):
            text = f"The cache of {project} is Redis, because its cache must outlive a restart."
            perform(worked, "remember", text=text, kind="decision", project=project)

        for here in ("orchard", "harbour"):
            (first, *others) = perform(worked, "ask", question="which cache do we use, and why Redis?", cwd=f"/home/ada/{here}")[
                "sentences"
            ]
            assert here in first["text"] and len(others) == 2

    def test_what_no_one_knows_has_no_answer(self, worked: Services) -> None:
        answer = perform(worked, "ask", question="who painted the zeppelin?")

        assert (answer["answer"], answer["sentences"], answer["citations"]) == ("", [], [])

    @pytest.mark.parametrize("question", ["", "   ", "<private>everything</private>"])
    def test_no_question_is_no_question(self, services: Services, question: str) -> None:
        with pytest.raises(UsageError, match="there is no question"):
            perform(services, "ask", question=question)

    def test_a_model_writes_it_where_there_is_one(self, worked: Services) -> None:
        asked = with_model(worked, model_says(("It runs on PostgreSQL.", [1]), ("Elephants run it.", [1]), ("So I guess.", [])))

        answer = asked.ask(question="which database does the job queue use?")

        assert answer["answer"] == "It runs on PostgreSQL. [1]"
        assert answer["by"] == "scripted:fake-1"
        assert answer["dropped"] == 2

    def test_a_model_that_fails_leaves_the_answer_that_was_found(self, worked: Services) -> None:
        answer = with_model(worked, "no JSON at all").ask(question="which database does the job queue use?")

        assert answer["by"] == "offline"
        assert "PostgreSQL" in answer["answer"]
        assert answer["problems"] == ["the model was of no help: the model's answer is not in the form asked for"]

    def test_asked_to_do_without_it_is_not_asked(self, worked: Services) -> None:
        answer = with_model(worked).ask(question="which database does the job queue use?", offline=True)

        assert answer["by"] == "offline"

    def test_a_sentence_whose_note_has_gone_is_dropped(self, worked: Services) -> None:
        evidence = worked.operations._named["ask"](question="which database does the job queue use?")["citations"]
        (note,) = [each for each in evidence if each["kind"] == "note"]
        (worked.vault.root / note["reference"]).unlink()
        worked.vault.scanner.compare()

        answer = perform(worked, "ask", question="which database does the job queue use?")

        assert note["reference"] not in [each["reference"] for each in answer["citations"]]
        assert answer["dropped"] >= 1

    def test_what_is_asked_leaves_without_its_secrets(self, worked: Services) -> None:
        token = "ghp_" + "a1B2c3D4e5F6" * 3

        assert token not in json.dumps(perform(worked, "ask", question=f"which queue does {token} use for its job?"))


class TestExtracting:
    AT = datetime(2026, 3, 1, tzinfo=UTC)

    def piece(self, text: str, *, kind: str = "note", title: str = "", score: float = 0.3) -> question_answering.Evidence:
        named = title or ("fact: the orchard" if kind == "note" else "user message in orchard")
        note = kind == "note"
        return question_answering.Evidence(
            kind="note" if note else "event", reference="facts/a.md", title=named, at=self.AT, text=text, score=score, name="a"
        )

    def test_the_sentence_that_says_it_is_picked(self) -> None:
        outcome = question_answering.extract(
            "which stock bears the pear?", [self.piece("The gate is green. The pear stands on a quince stock. Water weekly.")]
        )

        assert [each.text for each in outcome] == ["The pear stands on a quince stock."]

    def test_what_several_say_is_reported_once_and_names_them_all(self) -> None:
        pieces = [self.piece("The pear stands on a quince stock."), self.piece("The pear stands on a quince stock.", kind="event")]

        (sentence,) = question_answering.extract("which stock bears the pear?", pieces)

        assert set(sentence.rests_on) == {0, 1}

    @pytest.mark.parametrize(
        "chatter", ["Good question!", "Thanks a lot for that!", "Hi Claude, the lease again.", "You're right, the lease is it."]
    )
    def test_a_greeting_or_praise_is_no_answer(self, chatter: str) -> None:
        said = self.piece(f"{chatter} The lease is read late since the sweeper holds it.")

        (sentence,) = question_answering.extract("why is the lease read late?", [said])

        assert sentence.text == "The lease is read late since the sweeper holds it."

    @pytest.mark.parametrize(
        "said", ["Sure, the pear stands on quince.", "Perfect, never graft the pear in May.", "Okay so we keep the pear."]
    )
    def test_what_is_stated_after_a_yes_is_an_answer(self, said: str) -> None:
        (sentence,) = question_answering.extract("what about the pear?", [self.piece(f"{said} The gate is green.")])

        assert sentence.text == said

    def test_a_question_is_no_answer(self) -> None:
        assert question_answering.extract("which stock bears the pear?", [self.piece("Which stock does the pear stand on?")]) == ()

    def test_what_a_tool_printed_is_no_answer(self) -> None:
        printed = self.piece("The pear stands on a quince stock.", kind="event", title="tool result in orchard")

        assert question_answering.extract("which stock bears the pear?", [printed]) == ()

    def test_a_note_that_is_near_in_meaning_answers_without_a_shared_word(self) -> None:
        near, far = self.piece("Quince bears it well.", score=0.8), self.piece("Quince bears it well.", score=0.2)

        assert [each.rests_on for each in question_answering.extract("unterlage der birne", [far, near])] == [(1,)]
        assert question_answering.extract("unterlage der birne", [far]) == ()

    def test_a_question_about_nothing_that_is_known_has_no_answer(self) -> None:
        pieces = [
            self.piece("That would not appear in the life of the orchard."),
            self.piece("Mean while, water it.", kind="event"),
        ]

        assert question_answering.extract("what is the meaning of life?", pieces) == ()

    def test_a_note_that_is_about_it_needs_to_say_less_of_it_again(self) -> None:
        question = "which stock bears the old pear where it floods?"
        near, far = self.piece("Pears are on quince here.", score=0.5), self.piece("Pears are on quince here.", score=0.3)

        assert [each.rests_on for each in question_answering.extract(question.replace("pear", "pears"), [far, near])] == [(1,)]

    @pytest.mark.parametrize("asked", ["leave", "drop", "move away from", "abandon", "get rid of", "replace", "switch from"])
    @pytest.mark.parametrize(
        ("title", "text"),
        [
            ("Quince over pear for the stock", "It bears wet feet."),
            ("Quince for the stock", "Quince was chosen instead of pear. It bears wet feet."),
            ("Moved the orchard from pear to quince", "Wet feet kill the other."),
            ("Stocks", "The pear stock was dropped: it rots where it floods."),
            ("Stocks of the orchard", "**Rejected:** [[pear]]: it rots where it floods."),
        ],
    )
    def test_what_was_left_for_something_else_is_told_by_a_note_in_other_words(self, asked: str, title: str, text: str) -> None:
        note = self.piece(text, title=f"decision: {title}", score=0.3)

        assert question_answering.extract(f"why did we {asked} pear?", [note])
        assert question_answering.extract(f"why did we {asked} plum?", [note]) == ()

    def test_what_was_taken_is_not_what_was_left(self) -> None:
        note = self.piece("It bears wet feet.", title="decision: Quince over pear for the stock", score=0.3)

        assert question_answering.extract("why did we leave quince?", [note]) == ()

    @given(st.text(max_size=80), st.lists(st.text(max_size=400), max_size=6))
    def test_whatever_is_asked_of_whatever_there_is(self, question: str, texts: list[str]) -> None:
        outcome = question_answering.extract(question, [self.piece(text) for text in texts])

        assert len(outcome) <= 5
        assert all(each.rests_on and max(each.rests_on) < len(texts) for each in outcome)


@pytest.mark.parametrize("room", range(1, 70, 5))
def test_a_page_never_tears_events_of_one_ordinal_apart(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    events = [replace(event, ordinal=event.ordinal // 2, text="x" * 10) for event in Work().asked("a").ran("b").ran("c").events]
    monkeypatch.setattr(timeline_queries, "_PAGE_CHARACTERS", room)

    page = timeline_queries._page(events)

    assert page
    assert len(page) in (1, len(events)) or page[-1].ordinal != events[len(page)].ordinal


def test_what_became_of_an_event_is_reported_by_its_citation(worked: Services) -> None:
    failure = next(event for event in worked.timeline.events.of_session(SESSION.provider, SESSION.id) if event.status == "failed")

    answer = perform(worked, "became", citation=failure.reference)

    assert answer["became"] == ["no fix is known in its session"]
    assert perform(worked, "became", citation="nonsense") == {"became": []}


def test_a_search_shows_what_became_of_each_passage(worked: Services) -> None:
    found = perform(worked, "search", query="test: failed")["events"]

    assert [each["became"] for each in found if each["status"] == "failed"] == [["no fix is known in its session"]]
    assert all(each["became"] == [] for each in found if each["status"] != "failed")


def test_what_became_of_a_note_is_reported_with_it(worked: Services) -> None:
    (entry,) = worked.vault.notes.entries()
    note = worked.vault.notes.read(entry.path)
    assert note is not None
    assert perform(worked, "show", note=note.id)["became"] == []
    when = datetime(2026, 4, 1, tzinfo=UTC)
    old = replace(note, superseded_by="redis", valid_until=when, drifted=when, anchors=("queue.py@0a0a",), conflicts=("kafka",))

    assert became_of(old) == [
        "superseded on 2026-04-01 by redis",
        "the code it rests on has changed since, as seen on 2026-04-01: queue.py",
        "may contradict kafka; `kmem review` asks which holds",
    ]


def test_looking_back_waits_for_nothing_that_finds_by_meaning() -> None:
    heavy = ("numpy", "yaml", "kite_memory.wiring", "kite_memory.redaction", "kite_memory.vault", "kite_memory.distill")
    asked = f"import sys, kite_memory.app.timeline_queries; print([name for name in {heavy!r} if name in sys.modules])"

    result = subprocess.run(
        [sys.executable, "-c", asked], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2]
    )

    assert result.stdout.strip() == "[]"
