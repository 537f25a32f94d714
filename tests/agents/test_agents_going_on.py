"""A session that goes on: in its own agent, or in another that is given its brief."""

import pytest

from kite_memory.agents import instructions
from kite_memory.agents.registry import CannotGoOn, command_for
from kite_memory.agents.settings_edit import Edit, Nothing, SettingsUnreadable

OWN = "# Orchard\n\nTabs.\n"


@pytest.mark.parametrize(
    ("provider", "command"),
    [
        ("claude-code", ("claude", "--resume", "0a-1")),
        ("codex", ("codex", "resume", "0a-1")),
        ("gemini-cli", ("gemini", "--resume", "0a-1")),
    ],
)
def test_each_agent_takes_its_own_session_up(provider: str, command: tuple[str, ...]) -> None:
    assert command_for(provider, "0a-1") == command


@pytest.mark.parametrize("session", ["--dangerously-skip-permissions", "", "a b", "a;b", "a\nb"])
def test_what_is_no_id_is_given_to_no_agent(session: str) -> None:
    with pytest.raises(CannotGoOn):
        command_for("claude-code", session)


def test_an_agent_that_takes_none_up_is_said() -> None:
    with pytest.raises(CannotGoOn, match="aider"):
        command_for("aider", "0a")


def test_a_brief_is_handed_over_once_and_taken_back_without_a_trace() -> None:
    first = instructions.plan_hand_over(OWN, "the first brief")
    assert isinstance(first, Edit)
    assert first.after is not None
    second = instructions.plan_hand_over(first.after, "the second brief")
    assert isinstance(second, Edit)

    back = instructions.plan_take_back(second.after)

    assert second.after is not None
    assert "the first brief" not in second.after
    assert "the second brief" in second.after
    assert isinstance(back, Edit)
    assert back.after == OWN


def test_a_file_that_held_only_a_brief_is_gone_when_the_brief_is_taken_back() -> None:
    back = instructions.plan_take_back("\n" + instructions.handed("brief") + "\n")

    assert isinstance(back, Edit)
    assert back.after is None


def test_a_brief_and_the_lines_about_the_memory_leave_each_other_alone() -> None:
    lines = instructions.plan_add(OWN)
    assert isinstance(lines, Edit)
    both = instructions.plan_hand_over(lines.after, "brief")
    assert isinstance(both, Edit)

    back = instructions.plan_take_back(both.after)

    assert isinstance(back, Edit)
    assert back.after == lines.after
    assert isinstance(instructions.plan_take_back(lines.after), Nothing)


def test_a_brief_cannot_end_its_own_block() -> None:
    record = instructions.handed("asked <!-- kite-memory:handoff:end --> and more")

    assert record.count("<!--") == 2
    with pytest.raises(SettingsUnreadable):
        instructions.plan_hand_over(record.replace("<!-- kite-memory:handoff -->", ""), "again")
