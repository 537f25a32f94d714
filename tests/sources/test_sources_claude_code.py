"""Whole files: found, damaged, forked, cut into looks, bent out of shape."""

import copy
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kite_memory.model.event import Cursor, Event, Problem
from kite_memory.sources.claude_code.source import ClaudeCode
from tests.counts import examples
from tests.sources.transcript import SESSION, Home, Transcript, a_day, reasons, said


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def greeting(words: str = "prune the pear", *, session: str = SESSION) -> bytes:
    transcript = Transcript(session)
    transcript.user(words)
    return transcript.bytes


# Discovery


def test_main_files_and_sub_agents_of_both_layouts_are_found_in_a_stable_order(home: Home) -> None:
    names = ["b.jsonl", "a.jsonl", "agent-0a1b2c3d.jsonl", "a/subagents/agent-1.jsonl", "a/subagents/workflows/wf/agent-2.jsonl"]
    written = {home.write(greeting(), name) for name in names}
    other = home.root / "projects" / "-home-ada-letters" / "c.jsonl"
    other.parent.mkdir()
    other.write_bytes(greeting())

    found = list(home.source.transcripts())

    assert set(found) == written | {other}
    assert found == list(home.source.transcripts())
    assert all(home.source.owns(path) for path in found)


def test_sub_agents_come_after_the_sessions_they_may_have_inherited_from(home: Home) -> None:
    names = ["agent-0a1b2c3d.jsonl", "b.jsonl", "b/subagents/agent-1.jsonl", "0.jsonl"]
    for name in names:
        home.write(greeting(), name)

    found = [path.relative_to(home.project).as_posix() for path in home.source.transcripts()]

    assert found == ["0.jsonl", "b.jsonl", "agent-0a1b2c3d.jsonl", "b/subagents/agent-1.jsonl"]


def test_a_home_below_a_folder_of_that_name_makes_no_session_a_sub_agents(tmp_path: Path) -> None:
    session = Home(tmp_path / "subagents").look(greeting()).session

    assert session is not None
    assert session.parent == ""


@pytest.mark.parametrize("path", ["projects/../x/a.jsonl", "projects/x/../../a.jsonl", "a.jsonl", "projects/x/a.json"])
def test_a_path_that_leads_elsewhere_is_not_owned(home: Home, path: str) -> None:
    assert not home.source.owns(home.root / path)


def test_a_relative_path_of_another_root_is_not_owned(home: Home) -> None:
    assert not home.source.owns(Path("projects/x/a.jsonl"))


def test_a_linked_folder_is_not_walked_into(home: Home, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.jsonl").write_bytes(greeting())
    (home.root / "projects" / "-link").symlink_to(tmp_path / "elsewhere")

    assert list(home.source.transcripts()) == []


# Damage


def test_a_line_without_its_newline_is_read_once_it_is_whole(home: Home) -> None:
    transcript = Transcript()
    transcript.user("one")
    transcript.user("two")
    whole = transcript.bytes
    path = home.write(whole[:-20])
    first = home.read(path)
    path.write_bytes(whole[:-1])
    second = home.read(path, first.cursor)
    path.write_bytes(whole)

    third = home.read(path, second.cursor)

    assert [said(look) for look in (first, second, third)] == [["one"], [], ["two"]]
    assert not any(look.problems for look in (first, second, third))


def test_glued_records_are_both_read(home: Home) -> None:
    transcript = Transcript()
    transcript.user("one")
    transcript.user("two")

    look = home.look(transcript.bytes.replace(b"}\n{", b"}{"))

    assert said(look) == ["one", "two"]
    assert reasons(look) == ["glued objects"]
    assert look.events[0].where.end == look.events[1].where.start


def test_a_record_that_was_cut_off_by_the_next_costs_itself(home: Home) -> None:
    transcript = Transcript()
    transcript.user("one")
    transcript.user("two")
    transcript.user("three")
    first, second, third = transcript.bytes.splitlines(keepends=True)

    look = home.look(first + second[: len(second) // 2] + third)

    assert said(look) == ["one", "three"]
    assert [(problem.reason, problem.position) for problem in look.problems] == [("damaged line", len(first))]


def test_runs_of_nul_bytes_are_passed_over(home: Home) -> None:
    look = home.look(b"\0" * 5000 + greeting("one") + b"\0" * 300 + b"\n")

    assert said(look) == ["one"]
    assert reasons(look) == ["NUL bytes", "NUL bytes"]


def test_odd_bytes_and_half_pairs_are_read_with_replacements(home: Home) -> None:
    look = home.look(greeting("a pear").replace(b"a pear", b"a \xff pear") + greeting("half").replace(b"half", rb"half \ud83c"))

    assert said(look) == ["a \ufffd pear", "half \ufffd"]
    assert reasons(look) == ["invalid UTF-8", "lone surrogate"]
    str(look).encode()


def test_blank_lines_and_carriage_returns_are_no_problem(home: Home) -> None:
    look = home.look(b"\n\n" + greeting("one").replace(b"\n", b"\r\n") + b"\n")

    assert (said(look), reasons(look)) == (["one"], [])


def test_an_over_long_line_is_passed_over_and_counted(tmp_path: Path) -> None:
    home = Home(tmp_path, line_limit=2_000)
    content = greeting("one") + greeting("long " * 1000) + greeting("two")

    for budget in (10, 700, 100_000):
        looks = home.read_on(home.write(content), budget=budget)

        assert [words for look in looks for words in said(look)] == ["one", "two"]
        assert [reason for look in looks for reason in reasons(look)] == ["line too long"]
        assert looks[-1].cursor.position == len(content)


def test_an_over_long_line_is_counted_once_its_end_is_there(tmp_path: Path) -> None:
    home = Home(tmp_path, line_limit=2_000)
    path = home.write(b"x" * 5_000)
    first = home.read(path)
    path.write_bytes(b"x" * 9_000 + b"\n" + greeting("two"))

    looks = home.read_on(path, first.cursor, budget=4_000_000)

    assert (first.cursor.position, first.problems) == (0, ())
    assert [reason for look in looks for reason in reasons(look)] == ["line too long"]
    assert said(looks[-1]) == ["two"]


def test_a_line_of_fifty_megabytes_is_passed_over(home: Home) -> None:
    path = home.write(greeting("one"))
    with path.open("ab") as file:
        file.write(b'{"type":"user","message":{"role":"user","content":"')
        for _ in range(50):
            file.write(b"x" * 1_000_000)
        file.write(b'"}}\n' + greeting("two"))

    looks = home.read_on(path, budget=4 * 1024 * 1024)

    assert [words for look in looks for words in said(look)] == ["one", "two"]
    assert [reason for look in looks for reason in reasons(look)] == ["line too long"]


def test_a_hostile_file_of_problems_takes_more_looks(home: Home) -> None:
    path = home.write(b"1\n" * 5_000)

    looks = home.read_on(path, budget=4 * 1024 * 1024)

    assert sum(len(look.problems) for look in looks) == 5_000
    assert max(len(look.problems) for look in looks) <= 1_001
    assert len(looks) > 1


def test_a_damaged_file_is_read_again_after_it_was_replaced_by_a_good_one(home: Home) -> None:
    path = home.write(b"{broken\n" * 3)
    first = home.read(path)
    home.write(greeting("one"))

    second = home.read(path, first.cursor)

    assert reasons(first) == ["damaged line"] * 3
    assert said(second) == ["one"]


def test_a_file_that_became_empty_begins_anew(home: Home) -> None:
    path = home.write(greeting("one"))
    first = home.read(path)
    home.write(b"")
    emptied = home.read(path, first.cursor)
    home.write(greeting("two"))

    assert (reasons(emptied), emptied.cursor.position) == (["file truncated"], 0)
    assert said(home.read(path, emptied.cursor)) == ["two"]


def test_a_cursor_before_the_first_line_reads_everything(home: Home) -> None:
    path = home.write(greeting("one"))

    assert said(home.read(path, Cursor(position=0, size=0, mtime_ns=0))) == ["one"]


# Cut into looks


@settings(max_examples=examples(60), deadline=None)
@given(cuts=st.lists(st.integers(0, 5_000), max_size=8), budget=st.integers(1, 3_000))
def test_however_a_file_grows_it_reads_the_same(tmp_path_factory: pytest.TempPathFactory, cuts: list[int], budget: int) -> None:
    home = Home(tmp_path_factory.mktemp("home"))
    content = a_day().bytes
    path = home.write(content)
    whole = home.read(path)
    cursor: Cursor | None = None
    events: list[Event] = []
    problems: list[Problem] = []

    for cut in [*sorted(cuts), len(content)]:
        path.write_bytes(content[:cut])
        for look in home.read_on(path, cursor, budget=budget):
            cursor = look.cursor
            events += look.events
            problems += look.problems

    assert (tuple(events), tuple(problems)) == (whole.events, whole.problems)


def test_a_day_has_something_of_everything(home: Home) -> None:
    look = home.look(a_day())

    assert {event.type for event in look.events} >= {
        "user_message",
        "assistant_message",
        "tool_call",
        "tool_result",
        "command",
        "file_action",
        "test_result",
        "error",
        "resume_point",
    }
    assert said(look) == ["Graft the pear onto the quince — schön langsam 🍐", "and water it"]
    assert reasons(look) == ["unknown type surprise"]


# Bent out of shape


ODD: list[Any] = [None, True, -1, 1e300, "", "odd\0", [], [[]], [None], {}, {"type": []}, {"type": "text", "text": []}]


def bent(value: Any) -> Iterator[Any]:
    """``value`` with each of its parts in turn made odd."""
    yield from ODD
    if isinstance(value, dict):
        for key in value:
            for part in bent(value[key]):
                yield {**value, key: part}
            yield {other: value[other] for other in value if other != key}
    elif isinstance(value, list):
        for index in range(len(value)):
            for part in bent(value[index]):
                yield [*value[:index], part, *value[index + 1 :]]


def rich() -> Transcript:
    result = a_day()
    result.call("AskUserQuestion", "toolu_3", questions=[])
    result.result(
        "toolu_3",
        [{"type": "text", "text": "answered"}],
        toolUseResult={
            "questions": [{"question": "Which?", "options": [{"label": "Quince"}]}],
            "answers": {"Which?": ["Quince"]},
            "annotations": {"Which?": {"notes": "small"}},
        },
    )
    result.call("ExitPlanMode", "toolu_4", plan="dig")
    result.result("toolu_4", "approved", toolUseResult={"plan": "dig"})
    result.call("Edit", "toolu_5", file_path="a")
    result.result(
        "toolu_5", "edited", toolUseResult={"filePath": "a", "structuredPatch": [{"lines": ["+a"]}], "file": {"filePath": "b"}}
    )
    result.attachment(
        "queued_command", prompt=[{"type": "text", "text": "and mulch"}], commandMode="prompt", origin={"kind": "human"}
    )
    result.user([{"type": "text", "text": "thanks"}], forkedFrom={"sessionId": "x"}, isCompactSummary=False)
    return result


def test_no_bent_line_costs_more_than_itself(home: Home) -> None:
    result = rich()
    lines = [json.dumps(row).encode() + b"\n" for row in result.rows]
    after = Transcript(first=1000)
    after.user("still here")

    for index, row in enumerate(result.rows):
        for shape in bent(copy.deepcopy(row)):
            content = b"".join(lines[:index]) + json.dumps(shape).encode() + b"\n" + b"".join(lines[index + 1 :]) + after.bytes
            look = home.look(content)
            assert "still here" in said(look), shape
            assert all(isinstance(event.text, str) and len(event.id) <= 70 for event in look.events), shape


def test_two_sources_over_one_home_read_alike(home: Home) -> None:
    path = home.write(a_day())

    assert ClaudeCode(home.root, own_state=home.own_state).read(path, None, budget=1000) == home.read(path, budget=1000)


def at_rest(path: Path) -> Path:
    os.utime(path, (1_772_442_000, 1_772_442_000))
    return path


def test_the_last_line_of_a_file_at_rest_is_read_without_its_newline(home: Home) -> None:
    transcript = Transcript()
    transcript.user("one")
    transcript.user("two")
    path = home.write(transcript.bytes.removesuffix(b"\n"))
    before = home.read(path)

    look = home.read(at_rest(path), before.cursor)
    transcript.user("three")
    path.write_bytes(transcript.bytes)
    grown = home.read(path, look.cursor)

    assert (said(before), said(look), said(grown)) == (["one"], ["two"], ["three"])
    assert reasons(look) == reasons(grown) == []
    assert (look.cursor.position, look.cursor.mtime_ns) == (look.cursor.size, 1_772_442_000 * 10**9)


def test_a_file_that_ends_amid_a_line_is_looked_at_until_it_is_at_rest(home: Home) -> None:
    transcript = Transcript()
    transcript.user("one")
    transcript.user("two")
    path = home.write(transcript.bytes[:-40])
    before = home.read(path)

    look = home.read(at_rest(path), before.cursor)
    path.write_bytes(transcript.bytes)
    grown = home.read(path, look.cursor)

    assert before.cursor.mtime_ns == 0
    assert (reasons(before), reasons(look)) == ([], ["unfinished line"])
    assert look.cursor.mtime_ns == 1_772_442_000 * 10**9
    assert (said(look), said(grown)) == ([], ["two"])


@pytest.mark.parametrize("budget", [1, 4 * 1024 * 1024])
def test_a_file_with_carriage_returns_only_is_read(home: Home, budget: int) -> None:
    transcript = Transcript()
    transcript.user("one")
    transcript.user("two")

    look = home.read(at_rest(home.write(transcript.bytes.replace(b"\n", b"\r"))), budget=budget)

    assert said(look) == ["one", "two"]
    assert look.cursor.position == look.cursor.size
