"""Hooks in the settings of Codex, Gemini CLI and Cursor, and in Cline's folder: put in, kept up to date, taken out to the byte."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kite_memory.agents import registry
from kite_memory.agents.claude_code import HookDialect
from kite_memory.agents.registry import (
    CLINE_EVENT,
    AgentRoots,
    agent,
    cline_status,
    plan_cline_install,
    plan_cline_uninstall,
)
from kite_memory.agents.settings_edit import Edit, Nothing, SettingsUnreadable, apply, read_settings

COMMAND = "/usr/bin/python3 -I -S /opt/kite_memory/hook_client.py"
ALL = pytest.mark.parametrize(
    "hooks", [registry.CODEX_HOOKS, registry.GEMINI_HOOKS, registry.CURSOR_HOOKS], ids=lambda hooks: hooks.name
)
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


@ALL
@pytest.mark.parametrize("before", [None, "", "{}", THEIRS])
def test_with_its_backup_a_file_becomes_what_it_was(hooks: HookDialect, before: str | None) -> None:
    text = installed(hooks, before)

    plan = hooks.plan_uninstall(text, [before])

    assert isinstance(plan, Edit)
    assert plan.after == before


def test_powershell_calls_a_quoted_program_of_gemini_cli_only() -> None:
    spaced = '"C:/Users/Jane Doe/python.exe" -I -S "C:/Users/Jane Doe/kite_memory/hook_client.py"'
    texts = {hooks.name: hooks.plan_install(THEIRS, spaced) for hooks in (registry.GEMINI_HOOKS, registry.CODEX_HOOKS)}
    gemini = texts["gemini-cli"]
    assert isinstance(gemini, Edit) and gemini.after is not None

    commands = {hook.command for hook in registry.GEMINI_HOOKS.status(gemini.after).hooks}

    assert commands == {f"& {spaced} --agent gemini-cli"}
    assert isinstance(texts["codex"], Edit) and "& " not in (texts["codex"].after or "")
    assert isinstance(registry.GEMINI_HOOKS.plan_install(gemini.after, spaced), Nothing)
    removed = registry.GEMINI_HOOKS.plan_uninstall(gemini.after, [THEIRS])
    assert isinstance(removed, Edit) and removed.after == THEIRS


@ALL
def test_a_second_time_there_is_nothing_to_do(hooks: HookDialect) -> None:
    text = installed(hooks, THEIRS)

    assert isinstance(hooks.plan_install(text, COMMAND), Nothing)
    assert hooks.status(text).missing == ()
    assert {hook.event for hook in hooks.status(text).hooks} == set(hooks.events)


@ALL
def test_an_older_command_and_a_wrong_limit_are_brought_up_to_date(hooks: HookDialect) -> None:
    text = installed(hooks, None)
    old = text.replace("/opt/kite_memory", "/old/kite_memory").replace(f'"timeout": {hooks.timeout}', '"timeout": 7')

    assert installed(hooks, old) == text


@ALL
def test_without_our_hooks_there_is_nothing_to_take_out(hooks: HookDialect) -> None:
    assert isinstance(hooks.plan_uninstall(None), Nothing)
    assert isinstance(hooks.plan_uninstall(THEIRS), Nothing)
    assert hooks.status(THEIRS).missing == hooks.events


@ALL
@pytest.mark.parametrize("text", ["{", "[]", '{"hooks": 7}', '{"hooks": {"AfterTool": 7, "PostToolUse": 7, "sessionStart": 7}}'])
def test_what_is_not_understood_is_refused_in_the_agents_name(hooks: HookDialect, text: str) -> None:
    with pytest.raises(SettingsUnreadable) as raised:
        hooks.plan_install(text, COMMAND)

    assert hooks.title in str(raised.value)
    assert "Claude" not in str(raised.value) + raised.value.hint
    assert hooks.file in raised.value.hint


def test_gemini_gets_nothing_as_a_session_starts() -> None:
    """What its start hook says goes in front of the first prompt, which a resumed client then takes for no prompt."""
    assert "SessionStart" not in registry.GEMINI_HOOKS.events


CURSORS = """{
  "version": 1,
  "hooks": {
    "beforeSubmitPrompt": [{"command": "./log.sh"}],
    "stop": [{"command": "./bell.sh", "timeout": 5}]
  }
}
"""


def test_cursor_lists_commands_without_groups() -> None:
    written = json.loads(installed(registry.CURSOR_HOOKS, None))

    ours = [{"command": f"{COMMAND} --agent cursor"}]
    assert written == {"version": 1, "hooks": {"sessionStart": ours, "beforeSubmitPrompt": ours, "postToolUse": ours}}


def test_cursors_other_hooks_stay_to_the_byte() -> None:
    text = installed(registry.CURSOR_HOOKS, CURSORS)

    plan = registry.CURSOR_HOOKS.plan_uninstall(text)

    assert [each["command"] for each in json.loads(text)["hooks"]["beforeSubmitPrompt"]] == [
        "./log.sh",
        f"{COMMAND} --agent cursor",
    ]
    assert isinstance(plan, Edit)
    assert plan.after == CURSORS


def test_clines_hook_comes_is_updated_and_goes(tmp_path: Path) -> None:
    file = tmp_path / "Hooks" / CLINE_EVENT
    for command in ("kmem-hook", COMMAND):
        plan = plan_cline_install(read_settings(file), command)
        assert isinstance(plan, Edit)
        apply(plan, file, tmp_path / "backups")

    text = read_settings(file)

    assert os.access(file, os.X_OK)
    assert [hook.command for hook in cline_status(text).hooks] == [f"{COMMAND} --agent cline"]
    assert cline_status(text).missing == ()
    assert isinstance(plan_cline_install(text, COMMAND), Nothing)
    gone = plan_cline_uninstall(text)
    assert isinstance(gone, Edit)
    assert gone.after is None


def test_the_command_line_tool_of_cline_has_a_hook_after_each_tool(tmp_path: Path) -> None:
    cline = agent("cline-cli", AgentRoots(claude=tmp_path, cline_cli=tmp_path / "hooks"))
    plan = cline.plan_install(None, COMMAND)
    assert isinstance(plan, Edit)

    apply(plan, cline.settings, tmp_path / "backups")

    assert cline.settings == tmp_path / "hooks" / "PostToolUse"
    assert cline.status(read_settings(cline.settings)).missing == ()
    assert isinstance(cline.plan_uninstall(plan.after, ()), Edit)


def test_a_hook_of_ones_own_stays_in_clines_folder() -> None:
    theirs = "#!/bin/sh\nexec ./mine\n"

    assert isinstance(plan_cline_install(theirs, COMMAND), Nothing)
    assert isinstance(plan_cline_uninstall(theirs), Nothing)
    assert cline_status(theirs).missing == (CLINE_EVENT,)


@pytest.mark.skipif(sys.platform == "win32", reason="Cline's hooks are shell scripts elsewhere")
def test_clines_hook_runs_our_command_with_what_cline_gives_it(tmp_path: Path) -> None:
    client = tmp_path / "kmem-hook"
    client.write_text('#!/bin/sh\necho "$@"; cat\n', encoding="ascii")
    client.chmod(0o700)
    plan = plan_cline_install(None, str(client))
    assert isinstance(plan, Edit)
    file = tmp_path / CLINE_EVENT
    apply(plan, file, tmp_path / "backups")

    ran = subprocess.run([file], input="{}", capture_output=True, text=True, timeout=60, check=True)

    assert ran.stdout == "--agent cline\n{}"
