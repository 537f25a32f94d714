"""What agents have heard in a project, to decide whose word something is."""

from datetime import timedelta
from pathlib import Path

from kite_memory.timeline.store import Timeline
from kite_memory.tools.local_state import heard
from tests.fakes.work import Work, session


def test_it_is_of_a_projects_last_sessions(tmp_path: Path) -> None:
    timeline = Timeline(tmp_path / "timeline.sqlite")
    for number in range(5):
        work = Work(session(number), begins=timedelta(hours=number)).asked(f"prompt {number}").ran("cat notes", f"notes {number}")
        timeline.commit([work.look()], "claude-code")
    other = Work(session(9, project="mycelia"), begins=timedelta(hours=9)).asked("elsewhere")
    timeline.commit([other.look()], "claude-code")

    texts = [event.text for event in heard(timeline, "orchard")]

    assert {f"notes {number}" for number in (2, 3, 4)} <= set(texts)
    assert not {"notes 0", "notes 1", "elsewhere"} & set(texts)
    timeline.close()
