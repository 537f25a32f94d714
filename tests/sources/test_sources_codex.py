"""Where Codex's rollouts lie, how they are read on, and that nothing is reported twice over forks, archives and resumes."""

from collections import Counter
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from backports import zstd

from kite_memory.model.event import Event, EventType, ReadResult, RedactedResult
from kite_memory.sources.common.words import OWN_EXTRACTOR_MARK
from kite_memory.timeline.store import Timeline
from tests.sources.rollout import BEGIN, THREAD, Home, Rollout, a_day, uuid7

LATER = BEGIN + timedelta(hours=1)
FORK = uuid7(LATER, 2)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def events_of(looks: list[ReadResult]) -> list[Event]:
    return [event for look in looks for event in look.events]


def said(events: list[Event], *types: str) -> list[str]:
    return [event.text for event in events if event.type in (types or ("user_message", "assistant_message"))]


def parent_and_fork(**meta: Any) -> tuple[Rollout, Rollout]:
    parent = Rollout()
    parent.ask("Which pear?", "The Conference.")
    parent.begin_turn()
    parent.prompt("Then graft it")
    parent.run("call_1", "make graft", "done")
    fork = parent.forked(FORK, LATER, **meta)
    parent.answer("Grafted.")
    fork.ask("Which plum?", "The Mirabelle.")
    return parent, fork


def in_timeline(home: Home, *paths: Path) -> dict[str, list[Event]]:
    """What a timeline holds of each session after all were read."""
    with closing(Timeline(home.own_state / "timeline.sqlite")) as timeline:
        for path in paths:
            timeline.commit(map(RedactedResult, home.read_on(path)), "codex")
        return {state.session.id: timeline.events.of_session("codex", state.session.id) for state in timeline.sessions.states()}


def test_a_fork_repeats_what_its_parent_said_under_the_same_ids(home: Home) -> None:
    parent, fork = parent_and_fork()

    result = events_of(home.read_on(home.write(parent)))
    repeated, own = home.read_on(home.write(fork))

    assert repeated.session is not None
    assert repeated.session.id == THREAD
    assert [event.id for event in repeated.events] == [event.id for event in result[:-1]]
    assert own.session is not None
    assert (own.session.id, own.session.parent) == (FORK, THREAD)
    assert said(list(own.events)) == ["Which plum?", "The Mirabelle."]


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.zst"])
def test_the_folder_of_sessions_may_be_a_link(home: Home, tmp_path: Path, ending: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    home.root.mkdir()
    (home.root / "sessions").symlink_to(tmp_path / "elsewhere")
    result = a_day().bytes
    home.write(zstd.compress(result) if ending == ".jsonl.zst" else result, home.place().with_suffix(ending))

    (path,) = home.source.transcripts()

    assert home.read(path).events


def test_a_forks_first_turn_may_be_glued_to_the_last_line_that_it_repeats(home: Home) -> None:
    _, fork = parent_and_fork()
    last = next(number for number, row in enumerate(fork.rows) if row["payload"].get("type") == "function_call_output")
    lines = fork.bytes.splitlines(keepends=True)
    path = home.write(b"".join([*lines[:last], lines[last].rstrip(b"\n"), *lines[last + 1 :]]))

    repeated = home.read(path)
    own = home.read(path, repeated.cursor)

    assert (repeated.more, own.more) == (True, False)
    assert [event.type for event in repeated.events].count(EventType.TOOL_RESULT) == 1
    assert said(list(own.events)) == ["Which plum?", "The Mirabelle."]


def test_over_forks_nothing_is_reported_twice_and_each_word_stays_in_its_session(home: Home) -> None:
    parent, fork = parent_and_fork()
    other = parent.forked(uuid7(LATER + timedelta(minutes=1), 3), LATER + timedelta(minutes=1))
    other.ask("Which cherry?", "The Morello.")
    paths = [home.write(rollout) for rollout in (parent, fork, other)]

    sessions = in_timeline(home, *paths)

    assert [said(events) for events in sessions.values()] == [
        ["Which pear?", "The Conference.", "Then graft it", "Grafted."],
        ["Which plum?", "The Mirabelle."],
        ["Which cherry?", "The Morello."],
    ]
    assert max(Counter(event.call for event in sessions[THREAD] if event.type == "tool_call").values()) == 1


def test_of_a_fork_whose_parent_is_gone_the_parents_words_are_kept_as_the_parents(home: Home) -> None:
    _, fork = parent_and_fork()

    sessions = in_timeline(home, home.write(fork))

    assert said(sessions[THREAD]) == ["Which pear?", "The Conference.", "Then graft it"]
    assert all(BEGIN <= event.at < BEGIN + timedelta(minutes=1) for event in sessions[THREAD])
    assert said(sessions[FORK]) == ["Which plum?", "The Mirabelle."]


def test_a_fork_of_a_fork_keeps_three_sessions_apart(home: Home) -> None:
    _, fork = parent_and_fork()
    latest = uuid7(LATER + timedelta(hours=1), 4)
    again = fork.forked(latest, LATER + timedelta(hours=1))
    again.ask("Which quince?", "The Vranja.")

    looks = home.read_on(home.write(again))

    assert [look.session.id for look in looks if look.session] == [THREAD, FORK, latest]
    assert [said(list(look.events))[-1] for look in looks] == ["Then graft it", "The Mirabelle.", "The Vranja."]


@pytest.mark.parametrize("budget", [1, 300, 1000, 5000])
def test_a_fork_read_in_small_steps_shows_the_same(home: Home, budget: int) -> None:
    _, fork = parent_and_fork()
    path = home.write(fork)

    steps, whole = home.read_on(path, budget=budget), home.read_on(path)

    assert events_of(steps) == events_of(whole)


def test_a_paginated_fork_holds_only_its_own_part(home: Home) -> None:
    fork = Rollout(FORK, begin=LATER, paginated=True, forked_from_id=THREAD, history_base={"thread_id": THREAD})
    fork.ask("Which plum?", "The Mirabelle.")

    (look,) = home.read_on(home.write(fork))

    assert look.session is not None
    assert (look.session.id, look.session.parent) == (FORK, THREAD)
    assert said(list(look.events)) == ["Which plum?", "The Mirabelle."]


def test_a_header_that_comes_again_changes_nothing(home: Home) -> None:
    rollout = Rollout()
    rollout.ask("Which pear?", "The Conference.")
    rollout.row("session_meta", rollout.rows[0]["payload"])
    rollout.row("session_meta", {**rollout.rows[0]["payload"], "id": FORK})
    rollout.ask("Which plum?", "The Mirabelle.")

    (look,) = home.read_on(home.write(rollout))

    assert look.session is not None
    assert look.session.id == THREAD
    assert len(look.events) == 4


@pytest.mark.parametrize(
    "meta",
    [
        {"source": {"subagent": {"thread_spawn": {"parent_thread_id": THREAD, "depth": 1}}}},
        {"source": {"subagent": "review"}, "parent_thread_id": THREAD},
        {"thread_source": "subagent", "parent_thread_id": THREAD},
    ],
)
def test_a_sub_agents_prompts_are_no_persons(home: Home, meta: dict[str, Any]) -> None:
    rollout = Rollout(FORK, begin=LATER, **meta)
    rollout.ask("Review the graft.", "It holds.")

    look = home.look(rollout)

    assert look.session is not None
    assert look.session.parent == THREAD
    assert said(list(look.events), "user_message") == []
    assert said(list(look.events), "assistant_message") == ["Review the graft.", "It holds."]


def test_a_forked_sub_agent_repeats_a_persons_prompts_as_a_persons(home: Home) -> None:
    _, fork = parent_and_fork(source={"subagent": {"thread_spawn": {"parent_thread_id": THREAD}}})

    repeated, own = home.read_on(home.write(fork))

    assert said(list(repeated.events), "user_message") == ["Which pear?", "Then graft it"]
    assert said(list(own.events), "user_message") == []


def compressed(path: Path, content: bytes, *, frames: int = 1) -> Path:
    """The same rollout as the client leaves it after a week."""
    path = path.with_name(path.name + ".zst")
    path.parent.mkdir(parents=True, exist_ok=True)
    cut = len(content) // frames + 1
    path.write_bytes(b"".join(zstd.compress(content[n : n + cut]) for n in range(0, len(content), cut)))
    return path


@pytest.mark.parametrize("budget", [7, 1000, 1 << 20])
@pytest.mark.parametrize("frames", [1, 3])
def test_a_compressed_rollout_shows_what_it_reported_before(home: Home, budget: int, frames: int) -> None:
    plain = home.look(a_day())
    path = compressed(home.place(), a_day().bytes, frames=frames)

    looks = home.read_on(path, budget=budget)

    listed = [(event.id, event.text, event.where.start, event.where.end) for event in events_of(looks)]
    assert listed == [(event.id, event.text, event.where.start, event.where.end) for event in plain.events]
    assert [problem.reason for look in looks for problem in look.problems] == ["unknown type surprise"]
    assert looks[-1].cursor.position == looks[-1].cursor.size == path.stat().st_size


@pytest.mark.parametrize("budget", [7, 1000, 1 << 20])
def test_the_last_line_of_a_compressed_rollout_needs_no_end(home: Home, budget: int) -> None:
    rollout = Rollout()
    rollout.ask("Which pear?", "The Conference.")
    rollout.prompt("And which plum?")
    path = compressed(home.place(), rollout.bytes.rstrip(b"\n"))

    looks = home.read_on(path, budget=budget)

    assert said(events_of(looks)) == ["Which pear?", "The Conference.", "And which plum?"]
    assert looks[-1].cursor.position == path.stat().st_size


def test_what_was_read_plain_is_not_taken_again_when_compressed(home: Home) -> None:
    plain = home.write(a_day())
    path = compressed(plain, a_day().bytes)
    with closing(Timeline(home.own_state / "timeline.sqlite")) as timeline:
        timeline.commit(map(RedactedResult, home.read_on(plain)), "codex")

        assert timeline.commit(map(RedactedResult, home.read_on(path)), "codex") == 0


def test_a_compressed_rollout_that_was_read_is_left_alone(home: Home) -> None:
    path = compressed(home.place(), a_day().bytes)
    last = home.read_on(path)[-1]

    again = home.read(path, last.cursor)

    assert (again.events, again.problems, again.cursor, again.more) == ((), (), last.cursor, False)
    assert again.session == last.session


def test_reading_of_a_compressed_rollout_goes_on_in_another_process(home: Home, tmp_path: Path) -> None:
    path = compressed(home.place(), a_day().bytes)
    first = home.read(path, budget=1500)

    rest = Home(tmp_path).read_on(path, first.cursor)

    assert events_of([first, *rest]) == events_of(home.read_on(path))


@pytest.mark.parametrize("keep", [0, 1, 20, 300])
def test_a_damaged_archive_costs_its_damaged_part(home: Home, keep: int) -> None:
    path = compressed(home.place(), a_day().bytes)
    path.write_bytes(path.read_bytes()[:keep])

    looks = home.read_on(path)

    assert [problem.reason for look in looks for problem in look.problems if problem.reason != "unknown type surprise"] == (
        ["damaged archive"] if keep else []
    )
    assert looks[-1].cursor.size == looks[-1].cursor.position == keep


def test_what_is_no_archive_is_a_problem(home: Home) -> None:
    path = home.place().with_name(home.place().name + ".zst")
    home.write(b"nothing of the kind, but long enough to be looked at", path)

    look = home.read(path)

    assert (look.events, [problem.reason for problem in look.problems]) == ((), ["damaged archive"])


def test_an_archive_of_one_endless_line_does_not_fill_the_memory(tmp_path: Path) -> None:
    home = Home(tmp_path, line_limit=100_000)
    rollout = Rollout()
    rollout.ask("Which pear?", "The Conference.")
    path = compressed(home.place(), rollout.bytes + b'{"x":"' + b" " * 30_000_000 + b'"}\n' + rollout.bytes.splitlines()[0] + b"\n")
    assert path.stat().st_size < 20_000

    looks = home.read_on(path)

    assert len(events_of(looks)) == 2
    assert [problem.reason for look in looks for problem in look.problems] == ["line too long"]


def test_archived_sessions_are_read_too_and_taken_once(home: Home) -> None:
    path = home.write(a_day())
    moved = home.root / "archived_sessions" / path.name
    moved.parent.mkdir()
    before = home.read_on(path)
    path.rename(moved)

    assert list(home.source.transcripts()) == [moved]
    assert [event.id for event in events_of(home.read_on(moved))] == [event.id for event in events_of(before)]


def test_parents_are_read_before_their_forks(home: Home) -> None:
    parent, fork = parent_and_fork()
    forked, first = home.write(fork), home.write(parent)

    assert list(home.source.transcripts()) == [first, forked]
    assert home.source.in_order([forked, first]) == [first, forked]


def test_sessions_of_our_own_extractor_are_never_read(home: Home) -> None:
    marked, inside = Rollout(), Rollout(cwd=str(home.own_state / "extractor"))
    marked.ask(f"{OWN_EXTRACTOR_MARK} What was decided?", "Nothing.")
    inside.ask("What was decided?", "Nothing.")

    for rollout in (marked, inside):
        look = home.look(rollout)

        assert (look.session, look.events, look.problems) == (None, (), ())
        assert look.cursor.position == len(rollout.bytes)


def test_talk_about_our_mark_is_talk(home: Home) -> None:
    rollout = Rollout()
    rollout.ask("Which pear?", "The Conference.")
    rollout.ask(f"What does {OWN_EXTRACTOR_MARK} mean?", "It marks our own sessions.")

    assert len(home.events(rollout)) == 4


def test_a_folder_that_is_a_file_holds_nothing(home: Home) -> None:
    home.root.mkdir()
    (home.root / "sessions").write_text("not a folder")

    assert list(home.source.transcripts()) == []


def test_a_clock_that_jumps_changes_no_order(home: Home) -> None:
    rollout = Rollout()
    rollout.ask("Which pear?", "The Conference.")
    rollout.begin -= timedelta(days=400)
    rollout.ask("Which plum?", "The Mirabelle.")

    events = home.events(rollout)

    assert said(list(events)) == ["Which pear?", "The Conference.", "Which plum?", "The Mirabelle."]
    assert events[2].at < events[0].at


def test_a_large_rollout_is_read_in_bounded_steps(home: Home) -> None:
    rollout = Rollout()
    for n in range(200):
        rollout.ask(f"Question {n}", "x" * 2000)
    path = home.write(rollout)

    looks = home.read_on(path, budget=50_000)

    assert len(looks) > 5
    assert len(events_of(looks)) == 400
    assert all(len(look.cursor.carry) + len(look.cursor.identity) < 8_000 for look in looks)


def test_a_forks_title_is_its_own(home: Home) -> None:
    parent = Rollout()
    parent.begin_turn()
    parent.event("thread_name_updated", thread_name="Pears")
    parent.prompt("Which pear?")
    fork = parent.forked(FORK, LATER)
    fork.ask("Which plum?", "The Mirabelle.")

    looks = home.read_on(home.write(fork))

    assert [look.session.title for look in looks if look.session] == ["", ""]


@pytest.mark.parametrize("budget", [1, 1000, 1 << 20])
def test_without_turns_a_strange_header_amid_the_lines_changes_nothing(home: Home, budget: int) -> None:
    rollout = Rollout(FORK, begin=LATER)
    rollout.prompt("Which pear?")
    rollout.row("session_meta", {**rollout.rows[0]["payload"], "id": THREAD})
    rollout.prompt("Which plum?")

    looks = home.read_on(home.write(rollout), budget=budget)

    assert {look.session.id for look in looks if look.session} == {FORK}
    assert said(events_of(looks)) == ["Which pear?", "Which plum?"]
