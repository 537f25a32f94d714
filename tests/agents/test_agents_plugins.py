"""Whether an agent has our plugin, and the agents whose hooks are a file of ours."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from kite_memory.agents import registry
from kite_memory.agents.settings_edit import Edit, Nothing

COMMAND = "/usr/bin/python3 -I -S '/opt/a \"b\"\\c/kite_memory/hook_client.py'"


@pytest.mark.parametrize(
    ("enabled", "found"),
    [
        ({"kite-memory@kite-memory": True}, True),
        ({"kite-memory@another": True}, True),
        ({"kite-memory@kite-memory": False}, False),
        ({"kite-memory-of-others@kite-memory": True}, False),
        ([], False),
    ],
)
def test_claude_code_lists_what_it_has_enabled(tmp_path: Path, enabled: object, found: bool) -> None:
    (tmp_path / "settings.json").write_text(json.dumps({"enabledPlugins": enabled}), encoding="utf-8")

    assert registry.in_claude_code(tmp_path) is found


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ('[plugins."kite-memory@kite-memory"]\nenabled = true\n', True),
        ('[plugins."kite-memory@kite-memory"]\nenabled = false\n', False),
        ("plugins = 7\n", False),
        ("[plugins", False),
    ],
)
def test_codex_lists_what_it_has_enabled(tmp_path: Path, settings: str, found: bool) -> None:
    (tmp_path / "config.toml").write_text(settings, encoding="utf-8")

    assert registry.in_codex(tmp_path) is found


@pytest.mark.parametrize("text", ["", "[]", "{", "\ufeff{}", "7"])
def test_settings_that_say_nothing_have_no_plugin(tmp_path: Path, text: str) -> None:
    (tmp_path / "settings.json").write_text(text, encoding="utf-8")

    assert not registry.in_claude_code(tmp_path)
    assert not registry.in_codex(tmp_path)
    assert not registry.in_gemini_cli(tmp_path)


def test_opencodes_plugin_comes_updates_and_goes() -> None:
    first = registry.plan_opencode_install(None, "kmem-hook")
    assert isinstance(first, Edit)
    second = registry.plan_opencode_install(first.after, COMMAND)
    assert isinstance(second, Edit)

    assert [hook.command for hook in registry.opencode_status(second.after).hooks] == [f"{COMMAND} --agent opencode"]
    assert isinstance(registry.plan_opencode_install(second.after, COMMAND), Nothing)
    gone = registry.plan_opencode_uninstall(second.after)
    assert isinstance(gone, Edit)
    assert gone.after is None


def test_a_plugin_that_its_owner_has_changed_stays() -> None:
    ours = registry.plan_opencode_install(None, COMMAND)
    assert isinstance(ours, Edit)
    theirs = (ours.after or "").replace("5000", "9000")

    assert isinstance(registry.plan_opencode_install(theirs, COMMAND), Nothing)
    assert isinstance(registry.plan_opencode_uninstall(theirs), Nothing)
    assert registry.opencode_status(theirs).missing == ("chat.message",)


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
def test_the_file_is_javascript_whatever_the_path(tmp_path: Path) -> None:
    file = tmp_path / "kite-memory.mjs"
    file.write_text(registry.opencode_plugin(COMMAND), encoding="utf-8")

    assert subprocess.run(["node", "--check", str(file)], capture_output=True, timeout=60, check=False).returncode == 0


def test_copilots_hooks_come_update_and_go() -> None:
    first = registry.plan_copilot_install(None, "kmem-hook")
    assert isinstance(first, Edit)
    second = registry.plan_copilot_install(first.after, COMMAND)
    assert isinstance(second, Edit)

    assert {hook.command for hook in registry.copilot_status(second.after).hooks} == {f"{COMMAND} --agent copilot-cli"}
    assert registry.copilot_status(second.after).missing == ()
    assert isinstance(registry.plan_copilot_install(second.after, COMMAND), Nothing)
    gone = registry.plan_copilot_uninstall(second.after)
    assert isinstance(gone, Edit)
    assert gone.after is None


@pytest.mark.parametrize(
    "theirs",
    [
        "",
        "{",
        "[]",
        '{"hooks": 7}',
        '{"hooks": {"Stop": 7}}',
        '{"hooks": {"Stop": [{"command": "beep"}], "SessionStart": [{"command": "kmem-hook"}]}}',
    ],
)
def test_a_hooks_file_with_anything_else_in_it_stays(theirs: str) -> None:
    assert isinstance(registry.plan_copilot_install(theirs, COMMAND), Nothing)
    assert isinstance(registry.plan_copilot_uninstall(theirs), Nothing)
    assert registry.copilot_status(theirs).hooks == ()
