"""What came of the notes that were shown, found out from a real timeline once the turn is over."""

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from kite_memory.app.usage_report import QUIET, OutcomeTracker, turns
from kite_memory.extensions.contract.extractor_contract import SESSION, START, event
from kite_memory.model.event import Cursor, Event, EventType, ReadResult, RedactedResult
from kite_memory.model.note import NoteKind
from kite_memory.recall.index import Index
from kite_memory.recall.recall import Recall
from kite_memory.recall.session_memory import Occasion, SessionMemory, ShownNote
from kite_memory.recall.uptake import Moment, Standing, Tally
from kite_memory.timeline.store import Timeline
from kite_memory.vault.drafting import Memo
from tests.fakes.extractors import ScriptedExtractor
from tests.fakes.hashing_embedder import HashingEmbedder
from tests.fakes.services import fake_services
from tests.recall.notes import Pile, note
from tests.sources.transcript import BEGIN, Home, Transcript
from tests.sources.transcript import SESSION as TRANSCRIPT_SESSION

LINT = note("lint", "Lint runs from src", "The linter reads `src/conf/lint_rules.toml` and nothing else.", entities=("Ada Lark",))
PLAIN = note("plain", "Be brief", "", entities=())


def prompt(number: int, text: str = "go on") -> Event:
    return event(number, text)


def said(number: int, text: str = "Well.") -> Event:
    return event(number, text, EventType.ASSISTANT_MESSAGE)


def used(number: int) -> Event:
    return event(number, "", EventType.COMMAND, command="cat src/conf/lint_rules.toml")


@dataclass(slots=True)
class Services:
    """A clock that is set by hand, and starts with the invented session. One event is a second after the other."""

    timeline: Timeline
    recall: Recall
    now: float = START.timestamp()
    settling: OutcomeTracker = field(init=False)

    def __post_init__(self) -> None:
        self.settling = self.again()

    def again(self) -> OutcomeTracker:
        return OutcomeTracker(
            timeline=self.timeline, recall=self.recall, providers=lambda: ("other", SESSION.provider), clock=lambda: self.now
        )

    def show(self, name: str = "lint", *, at: int = 1, moment: Moment = "prompt", session: str = SESSION.id) -> None:
        given = (ShownNote(note=name, score=0.5),)
        when = START + timedelta(seconds=at)
        self.recall.memory.record(
            Occasion(at=when, session=session, project="orchard", head="", reason="why", given=given, moment=moment)
        )

    def happens(self, *events: Event) -> "Services":
        """They are committed, the clock stands a second later, and the daemon looks."""
        cursor = Cursor(position=1, size=1, mtime_ns=events[-1].ordinal)
        look = ReadResult(path="/transcripts/one.jsonl", session=SESSION, events=events, problems=(), cursor=cursor)
        self.timeline.commit([RedactedResult(look)], SESSION.provider)
        self.now = (events[-1].at + timedelta(seconds=1)).timestamp()
        self.settling.settle()
        return self

    def later(self, seconds: float) -> "Services":
        self.now += seconds
        self.settling.settle()
        return self

    @property
    def standings(self) -> list[Standing]:
        return [given.standing for occasion in reversed(self.recall.memory.report.occasions(9)) for given in occasion.given]

    @property
    def why(self) -> str:
        return self.recall.memory.report.occasions(1)[0].given[0].why


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    holder: list[Services] = []
    timeline = Timeline(tmp_path / "timeline.sqlite", clock=lambda: holder[0].now)
    recall = Recall(index=Index(tmp_path / "index", embedder=HashingEmbedder(dim=32)), memory=SessionMemory(tmp_path / "shown.db"))
    recall.refresh(Pile(LINT, PLAIN))
    holder.append(Services(timeline, recall))
    yield holder[0]
    recall.close()
    timeline.close()


def test_nothing_is_settled_while_the_turn_goes_on(services: Services) -> None:
    services.show()

    services.happens(prompt(1), said(2), used(3))

    assert services.standings == ["open"]


def test_a_note_that_was_used_is_settled_with_the_next_prompt(services: Services) -> None:
    services.show()

    services.happens(prompt(1), used(2), prompt(3))

    assert services.standings == ["used"]
    assert services.why == "“src/conf/lint_rules.toml” in a command"
    assert services.recall.memory.tallies()["lint"].used == 1


def test_one_that_was_not_gets_a_second_turn(services: Services) -> None:
    services.show()

    assert services.happens(prompt(1), said(2), prompt(3)).standings == ["open"]
    assert services.happens(used(4)).standings == ["open"]
    assert services.happens(prompt(5)).standings == ["used"]


def test_after_two_turns_it_is_ignored(services: Services) -> None:
    services.show()

    services.happens(prompt(1), said(2), prompt(3), said(4), prompt(5), used(6))

    assert services.standings == ["ignored"]


def test_a_turn_that_no_one_ends_ends_in_quiet(services: Services) -> None:
    services.show()
    services.happens(prompt(1), said(2))

    assert services.later(QUIET - 5).standings == ["open"]
    assert services.later(10).standings == ["ignored"]


def test_a_session_that_was_quiet_until_now_has_not_had_its_turn(services: Services) -> None:
    services.happens(prompt(1), said(2)).later(3_000)
    services.show(at=3_003)

    assert services.later(1).standings == ["open"]
    assert services.happens(prompt(3_004), used(3_005), prompt(3_006)).standings == ["used"]


def test_prompts_that_follow_each_other_are_one(services: Services) -> None:
    services.show(at=0)

    services.happens(prompt(1), prompt(2), prompt(3), said(4), prompt(5), prompt(6))

    assert services.standings == ["open"]


@pytest.mark.parametrize("moment", ["late", "action"])
def test_what_is_shown_in_the_middle_of_a_turn_is_read_from_there(services: Services, moment: Moment) -> None:
    services.show(at=3, moment=moment)

    services.happens(prompt(1), used(2), said(3), said(4), prompt(5), said(6), prompt(7))

    assert services.standings == ["ignored"]


@pytest.mark.parametrize("moment", ["start", "pointer"])
def test_a_title_that_no_one_opened_was_of_no_use_whatever_was_said(services: Services, moment: Moment) -> None:
    services.show(at=0, moment=moment)

    assert services.happens(prompt(1)).standings == ["open"]
    assert services.happens(used(2), prompt(3), said(4), prompt(5)).standings == ["ignored"]


def test_what_the_session_knew_before_is_no_evidence(services: Services) -> None:
    services.show(at=3)

    services.happens(used(1), said(2), prompt(3), used(4), prompt(5), said(6), prompt(7))

    assert services.standings == ["ignored"]


def test_a_restart_goes_on_where_it_was(services: Services) -> None:
    services.show()
    services.happens(prompt(1), said(2), prompt(3))

    services.settling = services.again()
    services.happens(used(4), prompt(5))

    assert services.standings == ["used"]


@pytest.mark.parametrize(("name", "why"), [("gone", "the note is gone"), ("plain", "nothing in it is distinctive")])
def test_of_such_a_note_no_one_can_tell(services: Services, name: str, why: str) -> None:
    services.show(name)

    services.happens(prompt(1), said(2), prompt(3), said(4), prompt(5))

    assert (services.standings, services.why) == (["unknown"], why)


def test_of_a_note_of_the_team_s_no_one_here_can_tell(services: Services) -> None:
    services.show("team:q1", moment="team")

    services.happens(prompt(1), said(2), prompt(3), said(4), prompt(5))

    assert (services.standings, services.why) == (["unknown"], "the note is the team's")


def test_a_session_that_never_comes_is_waited_for_a_day(services: Services) -> None:
    services.show(session="never")

    assert services.later(80_000).standings == ["open"]
    assert services.later(10_000).standings == ["unknown"]


def test_what_was_shown_to_no_session_is_not_waited_for(services: Services) -> None:
    services.show(session="")

    assert services.later(5).standings == ["unknown"]


def test_each_showing_is_settled_by_itself(services: Services) -> None:
    services.show(at=1)
    services.show("plain", at=1)
    services.happens(prompt(1), used(2), prompt(3))
    services.show("plain", at=3)

    services.happens(said(4), prompt(5), said(6))

    assert services.standings == ["used", "unknown", "open"]


def test_another_session_s_prompts_end_nothing_here(services: Services) -> None:
    other = replace(SESSION, id="0e55e55e-0000-4000-8000-000000000002")
    services.show(session=other.id)

    services.happens(prompt(1), said(2), prompt(3), said(4), prompt(5))

    assert services.standings == ["open"]


def test_a_memory_that_cannot_be_used_stops_no_one(services: Services, tmp_path: Path) -> None:
    services.show()
    other = sqlite3.connect(tmp_path / "shown.db", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")

    services.happens(prompt(1), used(2), prompt(3))
    other.execute("ROLLBACK")
    other.close()

    assert services.standings == ["open"]
    assert services.later(5).standings == ["used"]


def test_the_walk_settles_what_it_reads(tmp_path: Path) -> None:
    written = Transcript()
    written.user("Which roots do the pears stand on?")
    written.call("Bash", "toolu_1", command="cat grafts/quince_stock.toml")
    written.user("Thanks, and now the apples.")
    Home(tmp_path).write(written)
    with fake_services(tmp_path, ScriptedExtractor()) as services:
        pears = services.vault.edits.remember(
            Memo(text="Pears stand on quince, see `grafts/quince_stock.toml`.", kind=NoteKind.FACT, project="orchard")
        )
        services.recall.refresh(services.vault.notes)
        given = (ShownNote(note=pears.id, score=0.5),)
        services.recall.memory.record(
            Occasion(at=BEGIN, session=TRANSCRIPT_SESSION, project="orchard", head="", reason="", given=given)
        )

        services.run_until_idle()

        assert services.recall.memory.tallies()[pears.id] == Tally(shown=1, used=1)


def at(number: int) -> datetime:
    return START + timedelta(seconds=number)


def test_an_event_out_of_order_does_not_move_what_was_before() -> None:
    early = replace(said(2), at=at(90))

    result = turns([prompt(1), early, prompt(3), said(4), prompt(5)], at(3))

    assert (len(result.before), result.ends) == (3, (1,))


def test_a_session_begun_after_the_showing_has_no_before() -> None:
    assert turns([prompt(5), said(6)], at(1)).before == []
    assert turns([], at(1)).ends == ()


def test_a_look_at_many_open_showings_asks_the_timeline_once(services: Services) -> None:
    services.happens(prompt(0), said(1))
    for number in range(200):
        services.show(session=f"s{number}")
    services.show()
    asked: list[str] = []
    services.timeline._database._reader.set_trace_callback(asked.append)

    services.happens(prompt(3))

    assert len(asked) <= 4
