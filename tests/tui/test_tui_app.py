"""The timeline to browse in, with a person's keys."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from textual.pilot import Pilot
from textual.widgets import Input

from kite_memory.app.timeline_queries import SessionNotFound, _event, _session
from kite_memory.tui.app import NoteScreen, RowList, TextScreen, TimelineApp
from tests.fakes.work import Work, session

Json = dict[str, Any]
HOME = "/home/ada/orchard"
WORK = Work().asked("Graft the pear").edited(f"{HOME}/pear.py").ran("pytest", "1 failed", "failed", tests="failed").said("No.")
WORK = (
    WORK.asked("again")
    .ran("water", "error: no can", "failed")
    .decided("Quince")
    .ran("pytest", "4 passed", tests="ok")
    .said("Done.")
)
RESULT = next(each for each in WORK.events if each.text == "error: no can")
MADE_FROM = _event(WORK.events[-1])["reference"]
FAILED = next(_event(each)["reference"] for each in WORK.events if each.type.value == "test_result")
FIXED = next(_event(each)["reference"] for each in WORK.events if each.text == "4 passed" and each.type.value == "test_result")
NOTE = {"path": "decisions/quince.md", "title": "Quince", "evidence": [MADE_FROM]}
MOWED = Work(session(2, provider="codex", project="meadow", title="Mow [the] meadow")).asked("Mow").ran("mow")


class Past:
    """What the app is given, with what it asked for."""

    def __init__(self, *works: Work) -> None:
        self.works = works or (WORK, MOWED)
        self.piece = 10_000

    def sessions(self) -> list[Json]:
        counted = {"last": "2026-03-01T09:00:00", "prompts": 1, "errors": 1, "tests": 2, "failed_tests": 1, "events": 9}
        return [{**_session(each.session), **counted, "opening": each.events[0].text} for each in self.works]

    def pieces(self, named: str) -> Iterator[Json]:
        found = next(
            (each for each in self.works if named in (f"{each.session.provider}:{each.session.id}", each.session.id)), None
        )
        if found is None:
            raise SessionNotFound(f"no session is called {named!r}", hint="look again")
        events = [_event(event) for event in found.events]
        notes = [NOTE] if found is WORK else []
        for start in range(0, len(events), self.piece):
            yield {"session": _session(found.session), "events": events[start : start + self.piece], "edges": [], "notes": notes}

    def note(self, path: str) -> Json:
        return {**NOTE, "path": path, "text": "Quince it is. [b]not markup[/b] \x1b[31m"}

    def brief(self, session: str) -> Json:
        return {"text": f"Where {session} stood"}

    def became(self, citation: str) -> list[str]:
        return [f"fixed by `pytest` [{FIXED}]"] if citation == FAILED else []


def walk(
    steps: Callable[[TimelineApp, Pilot[None]], Awaitable[None]],
    past: Past | None = None,
    session: str = "",
    size: tuple[int, int] = (140, 30),
) -> None:
    past = past or Past()

    async def run() -> None:
        app = TimelineApp(
            sessions=past.sessions, pieces=past.pieces, note=past.note, brief=past.brief, became=past.became, session=session
        )
        async with app.run_test(size=size) as pilot:
            await settled(app, pilot)
            await steps(app, pilot)

    asyncio.run(run())


async def settled(app: TimelineApp, pilot: Pilot[None]) -> None:
    await app.workers.wait_for_complete()
    await pilot.pause()


def here(app: TimelineApp) -> str:
    row = app.timeline.row
    return "" if row is None else row.text


def reading_a_note(app: TimelineApp) -> bool:
    return isinstance(app.screen, NoteScreen)


def test_the_newest_session_is_there_at_once() -> None:
    async def steps(app: TimelineApp, pilot: Pilot[None]) -> None:
        assert len(app.query_one("#sessions", RowList).rows) == 2
        assert "Graft the pear" in here(app)

    walk(steps)


def test_typing_filters_and_enter_opens() -> None:
    async def steps(app: TimelineApp, pilot: Pilot[None]) -> None:
        await pilot.press("slash", *"meadow")
        assert [row.reference for row in app.query_one("#sessions", RowList).rows] == [f"codex:{MOWED.session.id}"]

        await pilot.press("enter", "enter")
        await settled(app, pilot)

        assert app.query_one(Input).value == "meadow"
        assert "Mow" in here(app)
        assert app.timeline.has_focus

    walk(steps)


def test_a_call_unfolds_and_folds_again() -> None:
    async def steps(app: TimelineApp, pilot: Pilot[None]) -> None:
        folded = len(app.timeline.rows)
        await pilot.press("tab", "down", "enter")
        assert len(app.timeline.rows) > folded
        assert "pear.py" in here(app)

        await pilot.press("enter")

        assert len(app.timeline.rows) == folded

    walk(steps)


def test_a_click_is_for_the_row_under_it() -> None:
    async def steps(app: TimelineApp, pilot: Pilot[None]) -> None:
        for row, name in ((2, "Mow"), (1, "Graft the pear"), (9, "Graft the pear"), (0, "Graft the pear")):
            await pilot.click("#sessions", offset=(5, row))
            await settled(app, pilot)
            assert name in app.timeline.rows[0].text

        await pilot.click("#timeline", offset=(5, 3))
        assert app.timeline.cursor == 2

    walk(steps)


def test_keys_jump_between_errors_decisions_tests_and_prompts() -> None:
    async def steps(app: TimelineApp, pilot: Pilot[None]) -> None:
        found = []
        for key in ("t", "e", "d", "t", "T", "P", "D"):
            await pilot.press(key)
            found.append(here(app).split()[3])

        assert found == ["TEST", "ERROR", "DECIDED", "TEST", "TEST", "you", "you"]

    walk(steps)


def test_from_an_event_to_its_note_and_back() -> None:
    async def steps(app: TimelineApp, pilot: Pilot[None]) -> None:
        await pilot.press("n")
        assert "decisions/quince.md" in here(app)

        await pilot.press("n")
        await settled(app, pilot)
        assert reading_a_note(app)

        await pilot.press("escape")
        assert not reading_a_note(app)
        assert "decisions/quince.md" in here(app)

        await pilot.press("enter")
        await settled(app, pilot)
        await pilot.press("e")
        assert app.timeline.row is not None and app.timeline.row.reference == MADE_FROM

    walk(steps)


def test_from_a_note_to_a_result_that_is_folded() -> None:
    class Folded(Past):
        def note(self, path: str) -> Json:
            return {**super().note(path), "evidence": [_event(RESULT)["reference"]]}

    async def steps(app: TimelineApp, pilot: Pilot[None]) -> None:
        await pilot.press("n", "n")
        await settled(app, pilot)
        await pilot.press("e")
        await settled(app, pilot)

        assert "water" in here(app)

    walk(steps, Folded())


def test_a_citation_is_opened_at_its_event() -> None:
    class Cited(Past):
        def pieces(self, named: str) -> Iterator[Json]:
            return super().pieces(named.rpartition("#")[0])

    cited = _event(RESULT)["reference"]

    async def steps(app: TimelineApp, pilot: Pilot[None]) -> None:
        assert "water" in here(app)
        assert app.timeline.has_focus

    walk(steps, Cited(), session=cited)


def test_a_named_session_is_opened_instead() -> None:
    async def steps(app: TimelineApp, pilot: Pilot[None]) -> None:
        assert "Mow" in here(app)

    walk(steps, session=MOWED.session.id)


def test_a_session_that_is_not_there_is_said_and_the_rest_goes_on() -> None:
    async def steps(app: TimelineApp, pilot: Pilot[None]) -> None:
        assert len(app.query_one("#sessions", RowList).rows) == 2
        assert here(app) == ""

    walk(steps, session="ffff")


def test_a_long_session_comes_in_pieces() -> None:
    long = Work()
    for number in range(2_500):
        long.asked(f"tree {number}").ran(f"water {number}")
    past = Past(long)
    past.piece = 900

    async def steps(app: TimelineApp, pilot: Pilot[None]) -> None:
        assert len(app.timeline.rows) == 5_000

        await pilot.press("tab", "end")
        assert "water 2499" in here(app)

    walk(steps, past)


def test_without_sessions_it_is_empty_and_every_key_does_no_harm() -> None:
    class Empty(Past):
        def sessions(self) -> list[Json]:
            return []

    async def steps(app: TimelineApp, pilot: Pilot[None]) -> None:
        for key in ("down", "enter", "e", "n", "tab", "end", "enter", "t", "slash", "x", "enter", "pagedown"):
            await pilot.press(key)
        assert here(app) == ""

    walk(steps, Empty())


def test_the_session_named_in_the_border_is_no_markup() -> None:
    async def steps(app: TimelineApp, pilot: Pilot[None]) -> None:
        shown = app.export_screenshot().replace("&#160;", " ")
        assert "Mow [the] meadow" in shown

    walk(steps, session=MOWED.session.id)


def test_a_failure_leads_to_its_fix() -> None:
    async def steps(app: TimelineApp, pilot: Pilot[None]) -> None:
        await pilot.press("t")
        assert "1 failed" in here(app)

        await pilot.press("f")
        await settled(app, pilot)

        assert "4 passed" in here(app)

    walk(steps)


def test_of_what_nothing_came_the_cursor_stays() -> None:
    async def steps(app: TimelineApp, pilot: Pilot[None]) -> None:
        await pilot.press("f")
        await settled(app, pilot)

        assert "Graft the pear" in here(app)

    walk(steps)


def test_the_citation_of_a_row_is_copied() -> None:
    async def steps(app: TimelineApp, pilot: Pilot[None]) -> None:
        await pilot.press("t", "y")

        assert app.clipboard == FAILED

    walk(steps)


def test_the_brief_and_the_keys_are_laid_over_it_and_leave_again() -> None:
    async def steps(app: TimelineApp, pilot: Pilot[None]) -> None:
        for key in ("r", "question_mark"):
            await pilot.press(key)
            await settled(app, pilot)
            assert isinstance(app.screen, TextScreen)

            await pilot.press("escape")
            assert not isinstance(app.screen, TextScreen)

    walk(steps)


def test_words_are_searched_for_inside_a_session_wherever_they_are_folded() -> None:
    async def steps(app: TimelineApp, pilot: Pilot[None]) -> None:
        await pilot.press("tab", "slash", *"pytest", "enter")
        assert app.timeline.has_focus
        places = [app.timeline.cursor]
        for key in ("full_stop", "full_stop", "comma"):
            await pilot.press(key)
            places.append(app.timeline.cursor)

        assert places[0] < places[1] < places[2]
        assert places[3] == places[1]

    walk(steps)


def test_what_is_shown_alone_is_of_its_kind_and_the_cursor_stays_there() -> None:
    async def steps(app: TimelineApp, pilot: Pilot[None]) -> None:
        everything = len(app.timeline.rows)
        await pilot.press("d", "v")
        assert {row.kind for row in app.timeline.rows} == {"user_message", "assistant_message", "decision"}
        assert "Quince" in here(app)

        await pilot.press("v")
        assert all(row.kind in ("error", "test_result") or row.status == "failed" for row in app.timeline.rows)

        await pilot.press("v", "v", "v")
        assert len(app.timeline.rows) == everything

    walk(steps)


def test_what_is_selected_follows_the_filter() -> None:
    async def steps(app: TimelineApp, pilot: Pilot[None]) -> None:
        await pilot.press("slash", *"mow")
        await settled(app, pilot)

        assert "Mow" in app.timeline.rows[0].text

    walk(steps)


def test_on_a_narrow_terminal_one_side_is_shown_at_a_time() -> None:
    async def steps(app: TimelineApp, pilot: Pilot[None]) -> None:
        left, right = app.query_one("#left"), app.query_one("#right")
        assert (left.size.width, right.size.width) == (80, 0)

        await pilot.press("enter")
        await settled(app, pilot)
        assert (left.size.width, right.size.width) == (0, 80)
        assert "#" not in here(app)

        await pilot.press("escape")
        await settled(app, pilot)
        assert app.query_one("#sessions").has_focus
        assert left.size.width == 80

    walk(steps, size=(80, 24))


def test_made_wider_both_sides_are_there() -> None:
    async def steps(app: TimelineApp, pilot: Pilot[None]) -> None:
        await pilot.press("enter")
        await pilot.resize_terminal(140, 30)
        await settled(app, pilot)

        assert app.query_one("#left").size.width > 0
        assert "#5e55" in here(app)

    walk(steps, size=(80, 24))
