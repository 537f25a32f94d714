"""What happened in one project leaves no trace in what a token for another one is answered, nor in what is looked at for it."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from kite_memory.app.timeline_queries import EmptyVault, TimelineQueries
from kite_memory.errors import KiteError
from kite_memory.extensions.contract.extractor_contract import SESSION, START, event
from kite_memory.model.event import Event, EventType, Trace
from kite_memory.model.note import Scope
from kite_memory.timeline.rows import StoredEvents
from kite_memory.timeline.schema import TimelineDatabase
from kite_memory.timeline.store import Timeline
from kite_memory.tools import memory_tools
from kite_memory.tools.arguments import LocalContext
from kite_memory.tools.declarations import ToolDispatcher
from kite_memory.tools.local_state import latest_projects, working
from kite_memory.tools.store import OWNER, Asker, Grant
from tests.fakes.memory_store import MemoryStore
from tests.fakes.work import Work
from tests.tools.conversing import QUEUE, tools_over

ORCHARD = Grant(name="orchard", projects=frozenset({"orchard"}))
THEIRS = replace(SESSION, id="5e55e55e-0000-4000-8000-000000000002", project="quarry", cwd="/home/ada/quarry")
HIRED = replace(SESSION, id="a5515e55-0000-4000-8000-000000000003", project="quarry", cwd="/home/ada/quarry", parent=SESSION.id)
WORDS = "The auction of the quarry begins at nine thousand gold coins"


class WatchedEvents(StoredEvents):
    """``read`` are the sessions whose events were looked at."""

    def __init__(self, database: TimelineDatabase) -> None:
        super().__init__(database)
        self.read: list[str] = []

    def last(self, provider: str, session: str, limit: int, *, before: int | None = None) -> list[Event]:
        self.read.append(session)
        return super().last(provider, session, limit, before=before)

    def of_tools(self, provider: str, session: str, tools: Collection[str], *, among: int) -> list[Event]:
        self.read.append(session)
        return super().of_tools(provider, session, tools, among=among)


class Watched(Timeline):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.events: WatchedEvents = WatchedEvents(self._database)


@pytest.fixture
def timeline(tmp_path: Path) -> Iterator[Watched]:
    timeline = Watched(tmp_path / "timeline.sqlite")
    mine = Work().asked("Prune the pears").edited("/home/ada/orchard/pear.py")
    theirs = Work(THEIRS, begins=timedelta(days=1)).asked("Buy the quarry")
    hired = (
        Work(HIRED, begins=timedelta(hours=1))
        .edited("/home/ada/quarry/bid.py")
        .ran("make bid", "1 failed", "failed", tests="failed")
    )
    timeline.commit([mine.look(), theirs.look(), hired.look()], SESSION.provider)
    yield timeline
    timeline.close()


@pytest.fixture
def past(timeline: Timeline) -> TimelineQueries:
    return TimelineQueries(timeline=timeline, notes=EmptyVault())


def briefed(past: TimelineQueries, grant: Grant, **arguments: object) -> str:
    tools = memory_tools.resume_tools(MemoryStore(), LocalContext(timeline=past.timeline, resume=past.resume), clock=lambda: START)
    return str(ToolDispatcher(tools).perform("smart_resume", arguments, Asker(grant=grant))["briefing"])


def test_a_session_is_kept_apart_only_from_those_that_are_seen(past: TimelineQueries) -> None:
    assert "Prune the pears" in briefed(past, ORCHARD, session_id=SESSION.id[:8])


def test_what_a_sub_agent_did_in_another_project_is_no_part_of_a_brief(past: TimelineQueries) -> None:
    result = tools_over(MemoryStore(), LocalContext(timeline=past.timeline, resume=past.resume))
    answer = result.perform("resume_brief", {"session": SESSION.id}, Asker(grant=ORCHARD))

    assert "Prune the pears" in answer["text"]
    assert "bid" not in answer["text"] + briefed(past, ORCHARD, session_id=SESSION.id)
    assert "bid" in past.resume(session=SESSION.id)["text"]


def test_no_event_of_a_session_out_of_sight_is_read_for_anybody(timeline: Watched, past: TimelineQueries) -> None:
    """How long an answer takes would tell of it."""
    near = LocalContext(timeline=past.timeline, resume=past.resume, working=partial(working, timeline))
    tools = memory_tools.resume_tools(MemoryStore(), near, clock=lambda: START)

    for arguments in ({"session_id": THEIRS.id}, {"project_path": "quarry"}, {"session_id": HIRED.id}):
        ToolDispatcher(tools).perform("smart_resume", arguments, Asker(grant=ORCHARD))

    assert timeline.events.read == []


class Listening:
    """What was heard of which projects; a tool has said `WORDS` wherever anything was heard."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, project: str) -> Sequence[Event]:
        self.asked.append(project)
        return [event(1, WORDS, EventType.TOOL_RESULT)]


@pytest.mark.parametrize(
    ("grant", "place"),
    [
        (ORCHARD, {"scope": "global"}),
        (ORCHARD, {"project": "quarry"}),
        (Grant(name="shared", scopes=frozenset({Scope.SHARED})), {"scope": "shared", "project": "quarry"}),
    ],
)
def test_no_one_is_heard_whom_the_token_does_not_see(grant: Grant, place: dict[str, str]) -> None:
    """Else the status of what is remembered would tell whether a tool said the same elsewhere."""
    heard = Listening()
    tools = tools_over(MemoryStore(), LocalContext(heard=heard))

    for tool, result in (("remember", {"text": WORDS}), ("save-conversation", {**QUEUE, "summary": WORDS})):
        arguments: dict[str, object] = {**{name: value for name, value in result.items() if name != "project"}, **place}
        try:
            tools.perform(tool, arguments, Asker(grant=grant))
        except KiteError:
            assert place == {"project": "quarry"}

    assert heard.asked == []


def test_who_is_seen_is_heard() -> None:
    heard = Listening()
    tools = tools_over(MemoryStore(), LocalContext(heard=heard))

    answer = tools.perform("remember", {"text": WORDS, "project": "orchard"}, Asker(grant=ORCHARD))

    assert heard.asked == ["orchard"]
    assert answer["status"] == "proposed"


@pytest.mark.parametrize("near", [{"asker": "orchard"}, {"latest": "orchard"}])
@pytest.mark.parametrize("place", [{"scope": "shared"}, {"scope": "global"}, {"project": "quarry"}])
def test_a_tool_is_heard_where_the_caller_works_wherever_the_note_is_kept(place: dict[str, str], near: dict[str, str]) -> None:
    """``latest``: it is not known where the caller works."""

    def heard(project: str) -> Sequence[Event]:
        return [event(1, WORDS, EventType.TOOL_RESULT)] if project == "orchard" else ()

    store = MemoryStore()
    latest = tuple(filter(None, [near.get("latest")]))
    tools = tools_over(store, LocalContext(heard=heard, latest_projects=lambda: latest))
    asker = Asker(grant=OWNER, project=near.get("asker", ""))

    remembered = tools.perform("remember", {"text": WORDS, **place}, asker)
    saved = tools.perform("save-conversation", {**QUEUE, "project": None, "facts": [WORDS], **place}, asker)

    notes = [store.note(OWNER, id) for id in (remembered["id"], *saved["notes"])]
    assert [note.origin for note in notes if note is not None and WORDS in note.body] == ["tool", "tool"]


def test_who_said_it_first_is_looked_up_where_the_caller_works() -> None:
    class Known:
        def traces(self, texts: Sequence[str]) -> Sequence[Trace]:
            return [Trace(pairs=9, foreign=1.0) for _ in texts]

    def status(**place: str) -> str:
        tools = tools_over(MemoryStore(), LocalContext(known_of=lambda project: Known() if project == "orchard" else None))
        asker = Asker(grant=OWNER, project=place.pop("at", "orchard"))
        return str(tools.perform("remember", {"text": WORDS, **place}, asker)["status"])

    assert status(scope="global") == status(scope="shared") == status(project="quarry") == "proposed"
    assert status(project="quarry", at="quarry") == "accepted"


def test_the_project_of_the_last_session_is_known(timeline: Watched) -> None:
    assert list(latest_projects(timeline)) == ["quarry", "orchard"]
