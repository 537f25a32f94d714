import os
import shlex
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kite_memory.agents import registry
from kite_memory.agents.claude_code import fast_command, plan_install, plan_uninstall, shell_line
from kite_memory.agents.settings_edit import Edit, SettingsNotWritable, SettingsUnreadable, apply, backed_up, diff, read_settings
from kite_memory.errors import KiteError, UsageError

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
COMMAND = "kmem-hook"


def install(path: Path, backups: Path, now: datetime = NOON) -> None:
    plan = plan_install(read_settings(path), COMMAND)
    assert isinstance(plan, Edit)
    apply(plan, path, backups, now)


def uninstall(path: Path, backups: Path, now: datetime = NOON + timedelta(hours=1)) -> None:
    plan = plan_uninstall(read_settings(path), backed_up(path, backups))
    assert isinstance(plan, Edit)
    apply(plan, path, backups, now)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b'{ "hooks": { } }', b'\xef\xbb\xbf{\r\n\t"model": "\xc3\xa9"\r\n}', b'{"hooks":{"SessionStart":[]}}'],
)
def test_a_file_is_byte_for_byte_what_it_was_after_uninstall(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(content)
    path.chmod(0o644)

    install(path, tmp_path / "backups")
    between = path.read_bytes()
    uninstall(path, tmp_path / "backups")

    assert between != content
    assert path.read_bytes() == content
    assert mode(path) == 0o644


def test_a_file_that_was_not_there_is_gone_again(tmp_path: Path) -> None:
    path = tmp_path / "claude" / "settings.json"

    install(path, tmp_path / "backups")
    assert mode(path) == 0o600
    assert mode(path.parent) == 0o700
    uninstall(path, tmp_path / "backups")

    assert not path.exists()


def test_an_empty_object_that_was_there_stays(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text("{}\n", encoding="utf-8")

    install(path, tmp_path / "backups")
    uninstall(path, tmp_path / "backups")

    assert path.read_text(encoding="utf-8") == "{}\n"


def test_every_change_keeps_a_backup_that_only_its_owner_can_read(tmp_path: Path) -> None:
    path, backups = tmp_path / ".claude" / "settings.json", tmp_path / "state" / "backups"
    path.parent.mkdir()
    path.write_text('{"env": {"SOME_TOKEN": "t"}}', encoding="utf-8")

    install(path, backups)

    (backup,) = backups.iterdir()
    assert backup.name == "claude-settings.json.20260301T120000.000000Z"
    assert backup.read_text(encoding="utf-8") == '{"env": {"SOME_TOKEN": "t"}}'
    assert (mode(backup), mode(backups)) == (0o600, 0o700)


def test_backups_do_not_pile_up(tmp_path: Path) -> None:
    path, backups = tmp_path / "settings.json", tmp_path / "backups"
    for day in range(30):
        before = read_settings(path)
        apply(Edit(before=before, after=f"{{{' ' * day}}}", because=""), path, backups, NOON + timedelta(days=day))

    assert len(list(backups.iterdir())) == 20
    assert backed_up(path, backups)[0] == "{" + " " * 28 + "}"


def test_a_link_is_kept_and_what_it_points_to_is_changed(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    target, link = tmp_path / "dotfiles" / "claude.json", tmp_path / "settings.json"
    target.write_text("{}", encoding="utf-8")
    link.symlink_to(target)

    install(link, tmp_path / "backups")

    assert link.is_symlink()
    assert "kmem-hook" in target.read_text(encoding="utf-8")


def test_a_file_changed_since_the_plan_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text("{}", encoding="utf-8")
    plan = plan_install(read_settings(path), COMMAND)
    path.write_text('{"model": "opus"}', encoding="utf-8")

    assert isinstance(plan, Edit)
    with pytest.raises(SettingsNotWritable, match="changed by somebody else"):
        apply(plan, path, tmp_path / "backups")

    assert path.read_text(encoding="utf-8") == '{"model": "opus"}'
    assert not (tmp_path / "backups").exists()


def test_a_place_that_cannot_be_written_is_an_error_with_a_hint(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.symlink_to("/proc/sys/kernel/no-such-folder/settings.json")

    with pytest.raises(SettingsNotWritable, match=r"cannot write .* \(a link to /proc/") as refusal:
        install(path, tmp_path / "backups")

    assert "--dry-run" in refusal.value.hint


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can make a file of another user's")
def test_root_does_not_take_over_somebody_elses_settings(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text("{}", encoding="utf-8")
    os.chown(path, 65534, 65534)

    with pytest.raises(SettingsNotWritable, match="belongs to another user"):
        install(path, tmp_path / "backups")

    assert path.read_text(encoding="utf-8") == "{}"


@pytest.mark.parametrize("content", [b"\xff{}", b" " * (5 << 20)])
def test_what_is_not_text_of_a_sane_length_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(content)

    with pytest.raises(SettingsUnreadable) as refusal:
        read_settings(path)

    assert refusal.value.hint == "nothing was changed"


def test_a_folder_in_its_place_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsUnreadable, match="cannot read"):
        read_settings(tmp_path)


def test_the_diff_shows_what_is_added(tmp_path: Path) -> None:
    edit = Edit(before='{\n  "a": 1\n}', after='{\n  "a": 1,\n  "b": "\u2028"\n}', because="")

    shown = diff(edit, Path("/home/mara/.claude/settings.json"))

    assert shown.splitlines(keepends=False)[:2] == ["--- /home/mara/.claude/settings.json", "+++ /home/mara/.claude/settings.json"]
    assert '-  "a": 1\n+  "a": 1,\n+  "b": "\u2028"\n' in shown


def test_the_diff_of_a_new_file_starts_from_nothing() -> None:
    shown = diff(Edit(before=None, after="{}\n", because=""), Path("settings.json"))

    assert shown == "--- /dev/null\n+++ settings.json\n@@ -0,0 +1 @@\n+{}\n"


@pytest.mark.parametrize("folder", ["plain", "two words", "quo'te", 'dou"ble', "dol$lar", "back\\slash", "ünï"])
def test_the_command_survives_a_shell_from_a_folder_of_any_name(tmp_path: Path, folder: str) -> None:
    script = tmp_path / folder / "kite_memory" / "hook_client.py"
    script.parent.mkdir(parents=True)
    script.write_text("print('it ran')", encoding="utf-8")

    ran = subprocess.run(["sh", "-c", fast_command(script)], capture_output=True, text=True, check=True)

    assert ran.stdout == "it ran\n"


def test_the_command_names_an_interpreter_that_is_neither_a_shim_nor_a_launcher_of_an_environment() -> None:
    interpreter, *options, client = shlex.split(fast_command())

    asked = [interpreter, "-c", "import sys; print(sys.prefix == sys.base_prefix)"]
    result = subprocess.run(asked, capture_output=True, text=True, check=True)
    assert result.stdout == "True\n"
    assert options == ["-I", "-S"]
    assert Path(client).is_file()
    assert Path(interpreter) != Path(sys.executable) or sys.prefix == sys.base_prefix


@pytest.mark.parametrize("path", ["C:\\100%\\python.exe", 'C:\\a"b\\python.exe', "C:\\$x\\python.exe", "C:\\new\nline"])
def test_a_windows_path_that_no_quoting_saves_is_refused(path: str) -> None:
    with pytest.raises(KiteError, match="cannot name the path"):
        shell_line((path,), windows=True)


def test_a_path_with_a_line_break_is_refused_everywhere() -> None:
    with pytest.raises(KiteError, match="cannot name the path"):
        shell_line(("/a\nb",), windows=False)


def test_an_unknown_agent_learns_which_ones_are_known(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown agent 'cursor'") as refusal:
        registry.agent("cursor", registry.AgentRoots(claude=tmp_path))

    assert refusal.value.hint == "known ones are: claude-code"
    assert registry.agent("claude-code", registry.AgentRoots(claude=tmp_path)).settings == tmp_path / "settings.json"
