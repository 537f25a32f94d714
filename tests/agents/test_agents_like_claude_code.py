"""Hooks in the settings of Codex and Gemini CLI: put in, kept up to date, taken out to the byte."""

import json

import pytest

from kite_memory.agents import registry
from kite_memory.agents.other_agents import HookDialect
from kite_memory.agents.settings_edit import Edit, Nothing, SettingsUnreadable

COMMAND = "/usr/bin/python3 -I -S /opt/kite_memory/hook_client.py"
BOTH = pytest.mark.parametrize("hooks", [registry.CODEX_HOOKS, registry.GEMINI_HOOKS], ids=lambda hooks: hooks.name)

THEIRS = """{
  "theme": "dark",
  "hooks": {
    "AfterTool": [
      {"matcher": "write_file", "hooks": [{"type": "command", "command": "./format.sh", "timeout": 5}]}
    ]
  }
}
"""


def installed(hooks: HookDialect, text: str | None) -> str:
    plan = hooks.plan_install(text, COMMAND)
    assert isinstance(plan, Edit)
    assert plan.before == text
    assert plan.after is not None
    return plan.after


@BOTH
def test_each_event_runs_our_command_in_the_agents_own_name_and_unit(hooks: HookDialect) -> None:
    content = json.loads(installed(hooks, None))

    expected = {"type": "command", "command": f"{COMMAND} --agent {hooks.name}", "timeout": hooks.timeout}
    assert content == {"hooks": {event: [{"hooks": [expected]}] for event in hooks.events}}


@BOTH
def test_what_a_person_wrote_stays_to_the_byte(hooks: HookDialect) -> None:
    text = installed(hooks, THEIRS)

    plan = hooks.plan_uninstall(text)

    assert '{"matcher": "write_file", "hooks": [{"type": "command", "command": "./format.sh", "timeout": 5}]}' in text
    assert isinstance(plan, Edit)
    assert plan.after == THEIRS


REMARKED = """// mine, see https://example.org
{
  "theme": "dark", // as at work
  "hooks": {
    // "AfterTool": [],
    "BeforeTool": [
      {"matcher": "write_file", "hooks": [{"type": "command", "command": "./format.sh"},]}, /* slow */
    ],
  },
}
"""


@pytest.mark.parametrize("before", [REMARKED, '{\n  "hooks": {\n    // "AfterTool": []\n  }\n}\n', "{} // nothing yet\n"])
def test_gemini_cli_reads_remarks_and_they_stay(before: str) -> None:
    hooks = registry.GEMINI_HOOKS
    text = installed(hooks, before)

    again = hooks.plan_install(text, COMMAND)
    without = hooks.plan_uninstall(text)

    assert hooks.status(text).missing == () and isinstance(again, Nothing)
    assert isinstance(without, Edit) and without.after == before


def test_codex_reads_none() -> None:
    with pytest.raises(SettingsUnreadable):
        registry.CODEX_HOOKS.plan_install(REMARKED, COMMAND)


@BOTH
@pytest.mark.parametrize("before", [None, "", "{}", THEIRS])
def test_with_its_backup_a_file_becomes_what_it_was(hooks: HookDialect, before: str | None) -> None:
    text = installed(hooks, before)

    plan = hooks.plan_uninstall(text, [before])

    assert isinstance(plan, Edit)
    assert plan.after == before


@BOTH
def test_a_second_time_there_is_nothing_to_do(hooks: HookDialect) -> None:
    text = installed(hooks, THEIRS)

    assert isinstance(hooks.plan_install(text, COMMAND), Nothing)
    assert hooks.status(text).missing == ()
    assert {hook.event for hook in hooks.status(text).hooks} == set(hooks.events)


@BOTH
def test_an_older_command_and_a_wrong_limit_are_brought_up_to_date(hooks: HookDialect) -> None:
    text = installed(hooks, None)
    old = text.replace("/opt/kite_memory", "/old/kite_memory").replace(f'"timeout": {hooks.timeout}', '"timeout": 7')

    assert installed(hooks, old) == text


@BOTH
def test_without_our_hooks_there_is_nothing_to_take_out(hooks: HookDialect) -> None:
    assert isinstance(hooks.plan_uninstall(None), Nothing)
    assert isinstance(hooks.plan_uninstall(THEIRS), Nothing)
    assert hooks.status(THEIRS).missing == hooks.events


@BOTH
@pytest.mark.parametrize("text", ["{", "[]", '{"hooks": 7}', '{"hooks": {"AfterTool": 7, "PostToolUse": 7}}'])
def test_what_is_not_understood_is_refused_in_the_agents_name(hooks: HookDialect, text: str) -> None:
    with pytest.raises(SettingsUnreadable) as raised:
        hooks.plan_install(text, COMMAND)

    assert hooks.title in str(raised.value)
    assert "Claude" not in str(raised.value) + raised.value.hint
    assert hooks.file in raised.value.hint


def test_gemini_gets_nothing_as_a_session_starts() -> None:
    """What its start hook says goes in front of the first prompt, which a resumed client then takes for no prompt."""
    assert "SessionStart" not in registry.GEMINI_HOOKS.events
