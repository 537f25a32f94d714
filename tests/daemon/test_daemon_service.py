import os
import plistlib
import re
import shutil
import stat
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from xml.etree.ElementTree import Element, fromstring

import pytest

from kite_memory import config as configuration
from kite_memory.cli import everyday
from kite_memory.daemon.service_units import (
    LABEL,
    UNIT,
    Manager,
    Outcome,
    Service,
    install,
    launchd_agent,
    namespaces_allowed,
    outdated,
    refresh,
    runs,
    scheduled_task,
    show,
    start_again,
    systemd_unit,
    this_manager,
    uninstall,
    windows_user,
)
from kite_memory.errors import KiteError
from tests.e2e.kmem import Machine, eventually

SERVICE = Service(
    command=("/opt/py/bin/python3", "-m", "kite_memory.cli.main", "daemon"),
    environment={"KMEM_HOME": "/home/mara/kite"},
    writable=(Path("/home/mara/kite/memory"), Path("/home/mara/kite/state")),
)


def lines(unit: str, setting: str) -> list[str]:
    return [line.removeprefix(f"{setting}=") for line in unit.splitlines() if line.startswith(f"{setting}=")]


def test_a_unit_starts_the_daemon_and_confines_it_to_its_folders() -> None:
    unit = systemd_unit(SERVICE)

    assert lines(unit, "ExecStart") == ['"/opt/py/bin/python3" "-m" "kite_memory.cli.main" "daemon"']
    assert lines(unit, "Environment") == ['"KMEM_HOME=/home/mara/kite"']
    assert lines(unit, "ReadWritePaths") == ['"-/home/mara/kite/memory"', '"-/home/mara/kite/state"']
    for setting, value in {
        "Restart": "on-failure",
        "NoNewPrivileges": "yes",
        "ProtectSystem": "strict",
        "PrivateTmp": "yes",
        "UMask": "0077",
        "LimitCORE": "0",
        "RestrictAddressFamilies": "AF_UNIX AF_INET AF_INET6",
        "MemoryDenyWriteExecute": "yes",
        "WantedBy": "default.target",
    }.items():
        assert lines(unit, setting) == [value], setting


def test_signs_that_mean_something_to_systemd_are_taken_literally() -> None:
    awkward = Service(
        command=("/opt/a b/50%/$py", "$HOME", 'say "hi" \\ 100%'),
        environment={"KMEM_HOME": '/x y/$z/%h/"q"'},
        writable=(Path("/x y/%h"),),
    )

    unit = systemd_unit(awkward)

    assert lines(unit, "ExecStart") == [r'"/opt/a b/50%%/$py" "$$HOME" "say \"hi\" \\ 100%%"']
    assert lines(unit, "Environment") == [r'"KMEM_HOME=/x y/$z/%%h/\"q\""']
    assert lines(unit, "ReadWritePaths") == ['"-/x y/%%h"']


@pytest.mark.parametrize("word", ["/a\nExecStartPre=/bin/evil", "/a\x00", "/a\x1b[0m"])
def test_a_path_cannot_add_a_line_to_a_unit(word: str) -> None:
    for service in (
        replace(SERVICE, command=("/bin/true", word)),
        replace(SERVICE, environment={"KMEM_HOME": word}),
        replace(SERVICE, writable=(Path(word),)),
    ):
        with pytest.raises(KiteError, match="cannot name"):
            systemd_unit(service)


@pytest.mark.parametrize("program", ['/a"b', "/a'b", "/a\\b"])
def test_a_program_that_systemd_would_not_start_is_refused(program: str) -> None:
    with pytest.raises(KiteError, match="systemd cannot start"):
        systemd_unit(replace(SERVICE, command=(program,)))


@pytest.mark.parametrize(("folder", "shared"), [("/tmp/x/state", "/tmp"), ("/var/tmp/state", "/var/tmp"), ("/tmp", "/tmp")])
def test_a_folder_that_others_must_find_in_tmp_keeps_tmp_shared(folder: str, shared: str) -> None:
    unit = systemd_unit(replace(SERVICE, writable=(Path(folder),)))

    assert lines(unit, "PrivateTmp") == []
    assert lines(unit, "ReadWritePaths") == [f'"-{folder}"', shared]


def test_a_daemon_that_runs_claude_may_compile_as_it_runs() -> None:
    unit = systemd_unit(replace(SERVICE, runs_claude=True))

    assert lines(unit, "MemoryDenyWriteExecute") == []
    assert lines(unit, "ProtectSystem") == ["strict"]


def test_without_namespaces_nothing_is_asked_for_that_needs_them() -> None:
    """A user's manager ends such a unit with 218 or 226 instead of starting it."""
    unit = systemd_unit(replace(SERVICE, namespaces=False))

    for prefix in ("Private", "Protect", "ReadWritePaths", "CapabilityBoundingSet", "ProcSubset"):
        assert [line for line in unit.splitlines() if line.startswith(prefix)] == []
    assert lines(unit, "NoNewPrivileges") == ["yes"]
    assert "user namespaces are switched off" in unit


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd here")
@pytest.mark.parametrize(("runs_claude", "namespaces", "bearable"), [(False, True, 2.0), (True, True, 2.0), (False, False, 6.5)])
def test_systemd_finds_the_unit_valid_and_safe(tmp_path: Path, runs_claude: bool, namespaces: bool, bearable: float) -> None:
    folder = tmp_path / "a b%c"
    folder.mkdir()
    program = shutil.copy("/bin/true", folder / "$true")
    awkward = Service(
        command=(str(program), "$HOME", 'say "hi" \\ 100%'),
        environment={"KMEM_HOME": '/x y/$z/%h/"q"'},
        writable=(Path("/x y/%h"),),
        runs_claude=runs_claude,
        namespaces=namespaces,
    )
    unit = tmp_path / UNIT
    unit.write_text(systemd_unit(awkward), encoding="utf-8")

    checked = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    rated = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", str(unit)], capture_output=True, text=True, check=False
    ).stdout

    assert (checked.returncode, checked.stderr) == (0, "")
    assert float(rated.rpartition("service: ")[2].split()[0]) <= bearable


@pytest.mark.parametrize(
    ("switches", "allowed"),
    [
        ({"user/max_user_namespaces": "63000\n"}, True),
        ({"user/max_user_namespaces": "63000\n", "kernel/unprivileged_userns_clone": "1\n"}, True),
        ({}, False),
        ({"user/max_user_namespaces": "0\n"}, False),
        ({"user/max_user_namespaces": "63000\n", "kernel/unprivileged_userns_clone": "0\n"}, False),
        ({"user/max_user_namespaces": "63000\n", "kernel/apparmor_restrict_unprivileged_userns": "1\n"}, False),
        ({"user/max_user_namespaces": "many\n"}, False),
    ],
)
def test_every_switch_against_user_namespaces_is_looked_at(tmp_path: Path, switches: dict[str, str], allowed: bool) -> None:
    for name, value in switches.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(value, encoding="ascii")

    assert namespaces_allowed(tmp_path) is allowed


def test_an_agent_says_the_same_to_launchd() -> None:
    awkward = replace(SERVICE, command=("/opt/a & b/py<3>", "daemon"), environment={"KMEM_HOME": '/x "y"'})

    agent = plistlib.loads(launchd_agent(awkward, Path("/Users/mara/kite & co/daemon.log")).encode())

    assert agent["ProgramArguments"] == ["/opt/a & b/py<3>", "daemon"]
    assert agent["EnvironmentVariables"] == {"KMEM_HOME": '/x "y"'}
    assert agent["StandardErrorPath"] == "/Users/mara/kite & co/daemon.log"
    assert (agent["RunAtLoad"], agent["KeepAlive"], agent["Umask"]) == (True, {"SuccessfulExit": False}, 0o077)


_TASK = "{http://schemas.microsoft.com/windows/2004/02/mit/task}"
_BOOLEAN, _DURATION, _TEXT = "true|false", r"P(?:T?\d+[DHMS])+", ".+"
_TASK_SCHEMA: dict[str, dict[str, str]] = {
    "Task": dict.fromkeys(("RegistrationInfo", "Triggers", "Principals", "Settings", "Actions"), ""),
    "RegistrationInfo": {"Description": _TEXT},
    "Triggers": {"LogonTrigger": ""},
    "LogonTrigger": {"Enabled": _BOOLEAN, "UserId": _TEXT},
    "Principals": {"Principal": ""},
    "Principal": {"UserId": _TEXT, "LogonType": "S4U|Password|InteractiveToken", "RunLevel": "LeastPrivilege|HighestAvailable"},
    "Settings": {
        "MultipleInstancesPolicy": "Parallel|Queue|IgnoreNew|StopExisting",
        **dict.fromkeys(("DisallowStartIfOnBatteries", "StopIfGoingOnBatteries", "StartWhenAvailable"), _BOOLEAN),
        "ExecutionTimeLimit": _DURATION,
        "Priority": r"\d|10",
        "RestartOnFailure": "",
    },
    "RestartOnFailure": {"Interval": _DURATION, "Count": r"[1-9]\d*"},
    "Actions": {"Exec": ""},
    "Exec": {"Command": _TEXT, "Arguments": _TEXT},
}
"""What Microsoft's schema of tasks allows of what we write, in the order that it asks for in triggers and restarts."""


def check_against_schema(element: Element) -> None:
    allowed = _TASK_SCHEMA[element.tag.removeprefix(_TASK)]
    names = [child.tag.removeprefix(_TASK) for child in element]
    assert names == [name for name in allowed if name in names], element.tag
    for child, name in zip(element, names, strict=True):
        if name in _TASK_SCHEMA:
            check_against_schema(child)
        else:
            assert re.fullmatch(allowed[name], child.text or ""), name


def test_a_task_of_windows_fits_its_schema_and_runs_without_limits() -> None:
    task = fromstring(scheduled_task(SERVICE, "DESKTOP-1\\mara").encode("utf-16"))

    check_against_schema(task)
    assert task.get("version") == "1.2"
    assert task.find(f".//{_TASK}Principal").get("id") == task.find(f"{_TASK}Actions").get("Context")  # type: ignore[union-attr]
    for name, value in {
        "ExecutionTimeLimit": "PT0S",
        "DisallowStartIfOnBatteries": "false",
        "StopIfGoingOnBatteries": "false",
        "UserId": "DESKTOP-1\\mara",
    }.items():
        assert {found.text for found in task.iter(f"{_TASK}{name}")} == {value}


@pytest.mark.parametrize(
    ("environment", "user"),
    [({"USERNAME": "mara", "USERDOMAIN": "DESKTOP-1"}, "DESKTOP-1\\mara"), ({"USERNAME": "mara"}, "mara")],
)
def test_windows_names_the_user_by_domain(environment: dict[str, str], user: str) -> None:
    assert windows_user(environment) == user


def test_a_user_without_a_name_is_an_error() -> None:
    with pytest.raises(KiteError, match="USERNAME"):
        windows_user({})


@pytest.mark.parametrize(
    "command",
    [
        (r"C:\Program Files\Python\pythonw.exe", "-m", "kite_memory.cli.main", "daemon"),
        (r"C:\Users\José & Ana\py.exe", "daemon"),
        (r"C:\ends with a backslash\\", "-m", "x"),
        (r"C:\a\py.exe", ""),
    ],
)
def test_what_windows_starts_at_log_on_are_the_words_of_the_command(command: tuple[str, ...]) -> None:
    task = fromstring(scheduled_task(replace(SERVICE, command=command), "mara").encode("utf-16"))

    assert task.findtext(f".//{_TASK}Command") == command[0]
    assert words_on_windows(task.findtext(f".//{_TASK}Arguments") or "") == list(command[1:])


def words_on_windows(line: str) -> list[str]:
    """Take a command line apart as Microsoft's C runtime does: 2n backslashes before a quote are n, an odd one escapes it."""
    words: list[str] = []
    word, quoted, there = "", False, False
    for slashes, sign in re.findall(r"(\\*)([^\\]|$)", line):
        word += slashes if sign != '"' else "\\" * (len(slashes) // 2)
        there = there or bool(slashes)
        if sign == '"' and len(slashes) % 2 == 0:
            quoted, there = not quoted, True
        elif sign in (" ", "") and not quoted:
            words += [word] if there else []
            word, there = "", False
        else:
            word, there = word + sign, True
    assert not quoted
    return words


def test_an_agent_has_the_keys_that_launchd_knows_with_the_types_it_wants() -> None:
    """As `launchd.plist(5)` has them; launchd refuses an agent without a label, and ignores a key of another type."""
    known = {
        "Label": str,
        "ProgramArguments": list,
        "EnvironmentVariables": dict,
        "RunAtLoad": bool,
        "KeepAlive": dict,
        "ThrottleInterval": int,
        "ProcessType": str,
        "Umask": int,
        "StandardErrorPath": str,
    }

    agent = plistlib.loads(launchd_agent(SERVICE, Path("/Users/mara/daemon.log")).encode())

    assert {key: type(value) for key, value in agent.items()} == known
    assert {type(value) for value in agent["EnvironmentVariables"].values()} == {str}
    assert agent["ProcessType"] in {"Background", "Standard", "Adaptive", "Interactive"}
    assert "/" not in agent["Label"]


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with nothing on it but what a test puts there."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def put(programs: Path, name: str, *, code: int = 0, says: str = "", prints: Path = Path("/dev/null")) -> None:
    program = programs / name
    log = programs.parent / "asked"
    shell = (
        f"echo {name} \"$@\" >> '{log}'\necho '{says}' >&2\nwhile read -r line; do echo \"$line\"; done < '{prints}'\nexit {code}\n"
    )
    program.write_text(f"#!/bin/sh\n{shell}", encoding="ascii")
    program.chmod(0o755)


def asked(programs: Path) -> list[str]:
    return (programs.parent / "asked").read_text(encoding="utf-8").splitlines()


def linux(tmp_path: Path) -> Manager:
    return Manager(platform="linux", home=tmp_path / "home", log=tmp_path / "log")


needs_shell = pytest.mark.skipif(sys.platform == "win32", reason="its fake programs are shell scripts")


@needs_shell
@pytest.mark.parametrize(
    ("platform", "program", "says", "question", "step"),
    [
        ("linux", "systemctl", "77", f"--user show --property=MainPID --value {UNIT}", f"--user start {UNIT}"),
        ("darwin", "launchctl", "\tstate = running\n\tpid = 77", f"print gui/501/{LABEL}", f"kickstart gui/501/{LABEL}"),
    ],
)
def test_the_process_that_the_service_manager_runs_is_known_and_started_by_it(
    tmp_path: Path, programs: Path, platform: str, program: str, says: str, question: str, step: str
) -> None:
    manager = Manager(platform=platform, home=tmp_path / "home", log=tmp_path / "log", uid=501)
    put(programs, program)
    not_installed = runs(manager, 77)
    install(SERVICE, manager)
    (programs.parent / "asked").unlink()
    (programs.parent / "says").write_text(f"{says}\n", encoding="ascii")
    put(programs, program, prints=programs.parent / "says")

    known = [runs(manager, pid) for pid in (77, 7, 0)]

    assert (not_installed, known) == (False, [True, False, False])
    assert start_again(manager) == ""
    assert asked(programs) == [f"{program} {question}", f"{program} {question}", f"{program} {step}"]


@needs_shell
def test_installing_writes_the_unit_and_starts_it(tmp_path: Path, programs: Path) -> None:
    put(programs, "systemctl")
    manager = linux(tmp_path)

    outcome = install(SERVICE, manager)

    assert outcome.done
    assert manager.file == tmp_path / "home/.config/systemd/user/kite-memory.service"
    assert manager.file.read_text(encoding="utf-8") == systemd_unit(SERVICE) == show(SERVICE, manager)
    assert stat.S_IMODE(manager.file.stat().st_mode) == 0o600
    assert asked(programs) == [f"systemctl --user {step}" for step in ("daemon-reload", f"enable {UNIT}", f"restart {UNIT}")]


@needs_shell
def test_installing_makes_the_folders_at_home_and_no_others(tmp_path: Path, programs: Path) -> None:
    put(programs, "systemctl")
    at_home, elsewhere = tmp_path / "home" / "kite" / "state", tmp_path / "unmounted" / "vault"

    install(replace(SERVICE, writable=(at_home, elsewhere)), linux(tmp_path))

    assert stat.S_IMODE(at_home.stat().st_mode) == 0o700
    assert not elsewhere.exists()


@needs_shell
def test_uninstalling_stops_it_and_leaves_nothing(tmp_path: Path, programs: Path) -> None:
    put(programs, "systemctl")
    manager = linux(tmp_path)
    install(SERVICE, manager)

    first, second = uninstall(manager), uninstall(manager)

    assert first.done
    assert second.lines == ("the service is not installed",)
    assert list(manager.file.parent.iterdir()) == []
    assert asked(programs)[3:] == [f"systemctl --user disable --now {UNIT}", "systemctl --user daemon-reload"]


@needs_shell
def test_without_a_bus_it_says_what_is_left_to_do(tmp_path: Path, programs: Path) -> None:
    put(programs, "systemctl", code=1, says="Failed to connect to bus: No medium found")

    outcome = install(SERVICE, linux(tmp_path))

    assert not outcome.done
    assert outcome.lines[1:] == (
        "systemctl could not be asked: Failed to connect to bus: No medium found; in a session of yours run:",
        "  systemctl --user daemon-reload",
        f"  systemctl --user enable {UNIT}",
        f"  systemctl --user restart {UNIT}",
    )


def test_without_a_service_manager_it_says_what_is_left_to_do(tmp_path: Path, programs: Path) -> None:
    assert programs.is_dir()

    outcome = install(SERVICE, linux(tmp_path))

    assert not outcome.done
    assert "systemctl could not be asked: it is not installed" in outcome.lines[1]


def test_a_unit_that_somebody_else_wrote_is_left_alone(tmp_path: Path) -> None:
    manager = linux(tmp_path)
    manager.file.parent.mkdir(parents=True)
    manager.file.write_text("[Service]\nExecStart=/mine\n", encoding="ascii")

    with pytest.raises(KiteError, match="is not ours to change"):
        install(SERVICE, manager)

    assert uninstall(manager).lines == ("the service is not installed",)
    assert manager.file.read_text(encoding="ascii") == "[Service]\nExecStart=/mine\n"


@needs_shell
def test_a_mac_is_asked_through_launchctl(tmp_path: Path, programs: Path) -> None:
    put(programs, "launchctl")
    manager = Manager(platform="darwin", home=tmp_path / "home", log=tmp_path / "log", uid=501)

    installed, again, removed = install(SERVICE, manager), install(SERVICE, manager), uninstall(manager)

    name, file = "io.github.kite-memory.daemon", tmp_path / "home/Library/LaunchAgents/io.github.kite-memory.daemon.plist"
    assert (installed.done, again.done, removed.done) == (True, True, True)
    started = [f"launchctl bootout gui/501/{name}", f"launchctl bootstrap gui/501 {file}", f"launchctl kickstart gui/501/{name}"]
    assert asked(programs) == [*started, *started, f"launchctl bootout gui/501/{name}"]
    assert not file.exists()


def test_windows_learns_what_to_run(tmp_path: Path) -> None:
    manager = Manager(platform="win32", home=tmp_path, log=tmp_path / "logs" / "log", user="mara")

    outcome = install(SERVICE, manager)

    file = tmp_path / "logs" / "kite-memory-task.xml"
    assert not outcome.done
    assert file.read_bytes().decode("utf-16") == scheduled_task(SERVICE, "mara") == show(SERVICE, manager)
    assert [words_on_windows(line.strip()) for line in outcome.lines[2:]] == [
        ["setx", "KMEM_HOME", "/home/mara/kite"],
        ["schtasks", "/Create", "/F", "/TN", "Kite Memory", "/XML", str(file)],
    ]
    with_file, without = uninstall(manager), uninstall(manager)
    assert not with_file.done
    assert without == Outcome(done=True, lines=("the service is not installed",))
    assert with_file.lines[1] == 'schtasks /Delete /F /TN "Kite Memory"'
    assert list(file.parent.iterdir()) == []


def test_what_windows_users_type_is_quoted_for_cmd_and_powershell(tmp_path: Path) -> None:
    manager = Manager(platform="win32", home=tmp_path, log=tmp_path / "logs" / "log", user="mara")

    outcome = install(replace(SERVICE, environment={"KMEM_HOME": "C:\\a&b\\"}), manager)

    assert outcome.lines[2] == '  setx KMEM_HOME "C:\\a&b\\\\"'
    manager.file.unlink()
    with pytest.raises(KiteError, match="cannot name"):
        install(replace(SERVICE, environment={"KMEM_HOME": "C:\\50%off\\"}), manager)
    assert not manager.file.exists()


@needs_shell
def test_a_mac_that_is_still_ending_the_older_service_is_asked_again(
    tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    put(programs, "launchctl")
    program, refused = programs / "launchctl", tmp_path / "refused"
    refusal = f'if [ "$1" = bootstrap ] && [ ! -e {refused} ]; then : > {refused}; echo "5: Input/output error" >&2; exit 5; fi\n'
    program.write_text(program.read_text(encoding="ascii").replace("echo ''", f"{refusal}echo ''"), encoding="ascii")
    manager = Manager(platform="darwin", home=tmp_path / "home", log=tmp_path / "log", uid=501)

    outcome = install(SERVICE, manager)

    assert outcome.done
    assert [line.split()[1] for line in asked(programs)] == ["bootout", "bootstrap", "bootstrap", "kickstart"]


AWKWARD = {"KMEM_HOME": '/x y/$z/%h/"q"', "KMEM_JUDGE": "off"}


@needs_shell
@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_an_installed_unit_follows_the_settings_and_keeps_its_program_and_its_variables(
    tmp_path: Path, programs: Path, platform: str
) -> None:
    put(programs, "systemctl")
    put(programs, "launchctl")
    program = programs / "py$thon 50%"
    program.touch()
    manager = Manager(platform=platform, home=tmp_path / "home", log=tmp_path / "log", uid=501)
    before = replace(SERVICE, command=(str(program), "$x", "100%", "daemon"), environment=AWKWARD)
    nothing_installed = outdated(before, manager)
    install(before, manager)
    elsewhere = replace(SERVICE, environment={"KMEM_HOME": "/other"}, writable=before.writable)

    unchanged = outdated(elsewhere, manager)
    changed = replace(elsewhere, writable=(Path("/mnt/new"),), runs_claude=True, environment={"PATH": "/opt/claude", "X": "y"})
    refreshed = refresh(changed, manager)

    assert (nothing_installed, unchanged, refreshed, refresh(changed, manager)) == ("", "", True, False)
    needed = replace(changed, command=before.command, environment={"PATH": "/opt/claude", **AWKWARD})
    assert manager.file.read_text(encoding="utf-8") == show(needed, manager)


@needs_shell
@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_a_unit_whose_program_is_gone_is_outdated(tmp_path: Path, programs: Path, platform: str) -> None:
    manager = Manager(platform=platform, home=tmp_path / "home", log=tmp_path / "log", uid=501)
    install(replace(SERVICE, command=(str(programs / "gone"), "daemon")), manager)

    assert outdated(SERVICE, manager) == show(SERVICE, manager)


def test_this_manager_is_the_one_we_run_on(tmp_path: Path) -> None:
    manager = this_manager(home=tmp_path, log=tmp_path / "log", units=tmp_path / "units")

    assert manager.platform == sys.platform
    assert manager.uid == (os.getuid() if hasattr(os, "getuid") else 0)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="systemd runs on Linux alone")
def test_a_daemon_that_systemd_runs_is_started_again_by_systemd(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "ada")
    unit = machine.home / ".config/systemd/user" / UNIT
    unit.parent.mkdir(parents=True)
    unit.write_text(machine.kmem("service", "show").out)
    assert machine.kmem("up", "--no-hooks").code == 0
    first = machine.kmem("status", "--json").json()["daemon"]["pid"]
    systemctl = machine.home / "bin/systemctl"
    systemctl.parent.mkdir()
    daemon = f"'{sys.executable}' -m kite_memory daemon </dev/null >/dev/null 2>&1 &"
    systemctl.write_text(f'#!/bin/sh\necho "$@" >> "$HOME/asked"\ncase "$*" in *show*) echo {first};; *start*) {daemon}\nesac\n')
    systemctl.chmod(0o755)

    changed = machine.kmem("config", "set", "recall.dial", "quiet")

    second = machine.kmem("status", "--json").json()["daemon"]["pid"]
    stopped = machine.kmem("down")
    assert (changed.code, stopped.code) == (0, 0), changed.err + stopped.err
    assert second not in (None, first)
    assert (machine.home / "asked").read_text().splitlines()[-1] == f"--user start {UNIT}"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="systemd runs on Linux alone")
def test_a_service_takes_over_from_a_daemon_that_runs_already(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "ada")
    assert machine.kmem("up", "--no-hooks").code == 0
    systemctl = machine.home / "bin/systemctl"
    systemctl.parent.mkdir()
    daemon = f"'{sys.executable}' -m kite_memory daemon </dev/null >/dev/null 2>\"$HOME/said\" &"
    systemctl.write_text(f'#!/bin/sh\necho "$@" >> "$HOME/asked"\ncase "$*" in *restart*|*\\ start\\ *) {daemon}\nesac\n')
    systemctl.chmod(0o755)

    installed = machine.kmem("service", "install")
    assert eventually(lambda: machine.kmem("status", "--json").json()["daemon"]["running"])
    stopped = machine.kmem("down")
    up = machine.kmem("up", "--no-hooks")
    moved = machine.kmem("config", "set", "vault", str(machine.home / "notes"))
    stopped_again = machine.kmem("down")

    assert (installed.code, stopped.code, up.code, moved.code, stopped_again.code) == (0, 0, 0, 0, 0), installed.err + stopped.err
    assert (machine.home / "said").read_text() == ""
    assert [line.split()[1] for line in (machine.home / "asked").read_text().splitlines() if "show" not in line] == [
        "daemon-reload",
        "enable",
        "restart",
        "start",
    ]
    systemctl.write_text("#!/bin/sh\nexit 1\n")
    assert machine.kmem("up", "--no-hooks").code == 0
    assert machine.kmem("service", "install").code == 1
    assert machine.kmem("status", "--json").json()["daemon"]["running"]
    assert machine.kmem("down").code == 0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="systemd runs on Linux alone")
def test_a_service_may_write_to_the_vault_of_the_settings(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "ada", usual_places=True)
    unit = machine.home / ".config/systemd/user" / UNIT
    unit.parent.mkdir(parents=True)
    unit.write_text(machine.kmem("service", "show").out)
    before = machine.kmem("doctor").out
    machine.configure(f'vault = "{machine.home / "notes"}"\n')

    assert "the service starts" not in before
    assert "`kmem service install` corrects it" in machine.kmem("doctor").out
    assert machine.kmem("config", "set", "vault", str(machine.home / "letters")).code == 0
    assert f'ReadWritePaths="-{machine.home / "letters"}"' in unit.read_text()
    assert "the service starts" not in machine.kmem("doctor").out


def test_a_daemon_that_its_service_manager_does_not_bring_back_is_started_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KMEM_HOME", str(tmp_path))
    settings = configuration.load()
    started: list[object] = []
    monkeypatch.setattr("kite_memory.daemon.service_units.runs", lambda manager, pid: True)
    monkeypatch.setattr("kite_memory.daemon.service_units.start_again", lambda manager: "")
    monkeypatch.setattr(everyday, "_SECONDS", 0.1)
    monkeypatch.setattr(everyday, "_stop", lambda state: None)
    monkeypatch.setattr(everyday, "start", started.append)

    everyday.restart(settings)

    assert started == [settings]
    assert "`kmem service install` repairs that" in capsys.readouterr().err
