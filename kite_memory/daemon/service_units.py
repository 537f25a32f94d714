"""Service units that let the system start the daemon: a systemd user unit, a launchd agent, or a task of Windows.

Their text is made by pure functions. `install` and `uninstall` write it and call the service manager, in bounded time: a session
without its bus, such as over a bare ssh, must not hang.
"""

import os
import plistlib
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from xml.parsers.expat import ExpatError
from xml.sax.saxutils import escape

from kite_memory.errors import KiteError
from kite_memory.system.private_files import make_folder, replace_file, sync_folder

UNIT = "kite-memory.service"
LABEL = "io.github.kite-memory.daemon"
TASK = "Kite Memory"

_MARK = "# Written by `kmem service install`; `kmem service uninstall` removes it.\n"
_SECONDS = 20.0
_BOOTSTRAPS = 5
_BOOTSTRAP_PAUSE = 0.5
_TEMPORARY = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108 - to know what lies there, not to write there


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """The daemon as a service manager runs it.

    ``writable`` are the only folders it may change: vault, state, configuration, the socket's. ``runs_claude`` is whether it starts
    `claude` for its model, which compiles as it runs and needs more of everything. ``namespaces`` is whether this user may have a
    mount namespace, without which access cannot be limited to the folders.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str]
    writable: tuple[Path, ...]
    runs_claude: bool = False
    namespaces: bool = True


def systemd_unit(service: Service) -> str:
    if any(letter in service.command[0] for letter in "\"'\\"):
        raise KiteError(f"systemd cannot start {service.command[0]}", hint="install kite-memory under a path without quotes")
    lines = [
        "[Unit]",
        "Description=Kite Memory: what your coding agents should remember",
        "StartLimitIntervalSec=300",
        "StartLimitBurst=10",
        "",
        "[Service]",
        f"ExecStart={' '.join(_quoted(word, dollars=number > 0) for number, word in enumerate(service.command))}",
        *(f"Environment={_quoted(f'{name}={value}')}" for name, value in sorted(service.environment.items())),
        "Restart=on-failure",
        "RestartSec=5",
        "TimeoutStopSec=15",
        f"MemoryMax={'2G' if service.runs_claude else '768M'}",
        f"TasksMax={256 if service.runs_claude else 64}",
        "",
        *_confinement(service),
        "",
        "[Install]",
        "WantedBy=default.target",
    ]
    return _MARK + "\n".join(lines) + "\n"


def _confinement(service: Service) -> list[str]:
    always = [
        "NoNewPrivileges=yes",
        "UMask=0077",
        "LimitCORE=0",
        "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6",
        "RestrictNamespaces=yes",
        "RestrictRealtime=yes",
        "RestrictSUIDSGID=yes",
        "LockPersonality=yes",
        "KeyringMode=private",
        "AmbientCapabilities=",
        "SystemCallArchitectures=native",
        "SystemCallFilter=@system-service",
        "SystemCallFilter=~@privileged @resources" if not service.runs_claude else "SystemCallFilter=~@privileged",
        "SystemCallErrorNumber=EPERM",
    ]
    if not service.runs_claude:
        always.append("MemoryDenyWriteExecute=yes")
    if not service.namespaces:
        return [*always, "# Not confined to its folders: user namespaces are switched off here, and systemd needs them for that."]
    apart = [
        "PrivateUsers=yes",  # required by the following ones in a user's manager
        "CapabilityBoundingSet=",
        "PrivateDevices=yes",
        "PrivateIPC=yes",
        "PrivateMounts=yes",
        "ProtectSystem=strict",
        "ProtectHome=read-only",
        *(f"ReadWritePaths={_quoted(f'-{folder}')}" for folder in service.writable),
        "ProtectClock=yes",
        "ProtectControlGroups=yes",
        "ProtectHostname=yes",
        "ProtectKernelLogs=yes",
        "ProtectKernelModules=yes",
        "ProtectKernelTunables=yes",
        "ProtectProc=invisible",
        "RemoveIPC=yes",
    ]
    if shared := {top for folder in service.writable for top in _TEMPORARY if folder.is_relative_to(top)}:
        # Its socket or vault lies where others must find it, and may have to be made again after a restart.
        apart += [f"ReadWritePaths={top}" for top in sorted(shared)]
    else:
        apart.append("PrivateTmp=yes")
    if not service.runs_claude:
        apart.append("ProcSubset=pid")
    return always + apart


def namespaces_allowed(settings: Path = Path("/proc/sys")) -> bool:
    """Return whether an ordinary user may make user namespaces: distributions have three switches against it."""

    def switch(name: str, where_missing: int) -> int:
        try:
            return int((settings / name).read_text(encoding="ascii"))
        except (OSError, ValueError):
            return where_missing

    return (
        switch("user/max_user_namespaces", 0) > 0
        and switch("kernel/unprivileged_userns_clone", 1) == 1
        and switch("kernel/apparmor_restrict_unprivileged_userns", 0) == 0
    )


def launchd_agent(service: Service, log: Path) -> str:
    described = {
        "Label": LABEL,
        "ProgramArguments": [_plain(word) for word in service.command],
        "EnvironmentVariables": {name: _plain(value) for name, value in sorted(service.environment.items())},
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 5,
        "ProcessType": "Standard",  # "Background" would slow down prompts
        "Umask": 0o077,
        "StandardErrorPath": _plain(str(log)),
    }
    return plistlib.dumps(described, sort_keys=False).decode("utf-8")


def scheduled_task(service: Service, user: str) -> str:
    """Return the task that makes Windows start the daemon when ``user`` logs on.

    A task made by options of ``schtasks`` instead would be ended after three days or when a laptop goes on battery, and its command
    may have no more than 261 characters.
    """
    program, *words = (_plain(word) for word in service.command)
    owner = f"<UserId>{escape(_plain(user))}</UserId>"
    return f"""\
<?xml version="1.0" encoding="UTF-16"?>
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <RegistrationInfo>
    <Description>Kite Memory: what your coding agents should remember</Description>
  </RegistrationInfo>
  <Triggers>
    <LogonTrigger>
      <Enabled>true</Enabled>
      {owner}
    </LogonTrigger>
  </Triggers>
  <Principals>
    <Principal id="Author">
      {owner}
      <LogonType>InteractiveToken</LogonType>
      <RunLevel>LeastPrivilege</RunLevel>
    </Principal>
  </Principals>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <StartWhenAvailable>true</StartWhenAvailable>
    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>
    <Priority>5</Priority>
    <RestartOnFailure>
      <Interval>PT1M</Interval>
      <Count>10</Count>
    </RestartOnFailure>
  </Settings>
  <Actions Context="Author">
    <Exec>
      <Command>{escape(program)}</Command>
      <Arguments>{escape(subprocess.list2cmdline(words))}</Arguments>
    </Exec>
  </Actions>
</Task>
"""


def _task_commands(service: Service, file: Path) -> tuple[str, ...]:
    """Return what the user types: a task sees the user's lasting variables only, and none of this shell's."""
    lasting = tuple(f"setx {name} {_typed(value)}" for name, value in sorted(service.environment.items()))
    return (*lasting, f"schtasks /Create /F /TN {_typed(TASK)} /XML {_typed(str(file))}")


def _typed(word: str) -> str:
    """Quote a word for cmd and PowerShell alike."""
    if any(sign in word for sign in '"%$`'):
        raise KiteError(f"a command line of Windows cannot name {word}", hint="keep kite-memory's folders under plainer paths")
    slashes = word[len(word.rstrip("\\")) :]
    return f'"{word}{slashes}"'


def _quoted(word: str, *, dollars: bool = False) -> str:
    """Quote a word for a unit file, where ``%`` begins a specifier everywhere, and ``$`` a variable in arguments."""
    escaped = _plain(word).replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped.replace("$", "$$") if dollars else escaped}"'


def _plain(word: str) -> str:
    if not word.isprintable():
        raise KiteError(f"a service cannot name {word!r}", hint="install kite-memory and keep its folders under plainer paths")
    return word


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Result of installing or removing. ``done`` is false if the user has something left to do; ``lines`` describe it."""

    done: bool
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Manager:
    """The service manager of one kind of system, and the paths of its files.

    ``units`` is systemd's folder if not the usual one; ``log`` is where launchd puts stderr. ``user`` is the name by which Windows
    knows the user.
    """

    platform: str
    home: Path
    log: Path
    uid: int = 0
    units: Path | None = None
    user: str = ""

    @property
    def file(self) -> Path:
        if self.platform == "win32":
            return self.log.parent / "kite-memory-task.xml"
        if self.platform == "darwin":
            return self.home / "Library" / "LaunchAgents" / f"{LABEL}.plist"
        return (self.units or self.home / ".config" / "systemd" / "user") / UNIT


def this_manager(*, home: Path, log: Path, units: Path | None = None) -> Manager:
    if sys.platform == "win32":
        return Manager(platform="win32", home=home, log=log, user=windows_user(os.environ))
    return Manager(platform=sys.platform, home=home, log=log, units=units, uid=os.getuid())


def windows_user(environment: Mapping[str, str]) -> str:
    """Return the user's name with their domain or machine in front, as Windows sets both for every session."""
    name, domain = environment.get("USERNAME", ""), environment.get("USERDOMAIN", "")
    if not name:
        raise KiteError("Windows does not say who you are: USERNAME is not set", hint="run this in a session of yours")
    return f"{domain}\\{name}" if domain else name


def show(service: Service, manager: Manager) -> str:
    """Return what `install` would write."""
    match manager.platform:
        case "darwin":
            return launchd_agent(service, manager.log)
        case "win32":
            return scheduled_task(service, manager.user)
        case _:
            return systemd_unit(service)


def install(service: Service, manager: Manager) -> Outcome:
    """Write the unit, and start the service now and at every log-in. Can be repeated, which updates an older unit.

    Missing folders in the user's home are made first: the daemon, once confined to them, could not.
    """
    if manager.platform == "win32":
        commands = _task_commands(service, manager.file)
        _make(manager.file.parent)
        replace_file(manager.file, scheduled_task(service, manager.user).encode("utf-16"))
        return Outcome(
            done=False,
            lines=(
                f"wrote {manager.file}",
                "Windows starts it with the Task Scheduler; run this once:",
                *(f"  {line}" for line in commands),
            ),
        )
    for folder in service.writable:
        if folder.is_relative_to(manager.home):
            _make(folder)
    _write(manager.file, show(service, manager))
    steps: tuple[Sequence[str], ...]
    if manager.platform == "darwin":
        domain = f"gui/{manager.uid}"
        _ran(("launchctl", "bootout", f"{domain}/{LABEL}"))  # an older one, if there is any
        steps = (("launchctl", "bootstrap", domain, str(manager.file)), ("launchctl", "kickstart", f"{domain}/{LABEL}"))
    else:
        systemctl = ("systemctl", "--user")
        steps = ((*systemctl, "daemon-reload"), (*systemctl, "enable", UNIT), (*systemctl, "restart", UNIT))
    for number, step in enumerate(steps):
        if problem := _ran_in_time(step):
            asked = f"{step[0]} could not be asked: {problem}; in a session of yours run:"
            return Outcome(done=False, lines=(f"wrote {manager.file}", asked, *(f"  {' '.join(left)}" for left in steps[number:])))
    return Outcome(done=True, lines=(f"wrote {manager.file}", "the daemon runs, and will start whenever you log in"))


def uninstall(manager: Manager) -> Outcome:
    """Stop the service and remove what `install` wrote. Can be repeated."""
    if manager.platform == "win32":
        if not manager.file.exists():
            return Outcome(done=True, lines=("the service is not installed",))
        manager.file.unlink()
        return Outcome(done=False, lines=("To undo it, run:", f'schtasks /Delete /F /TN "{TASK}"'))
    if not _is_ours(manager.file):
        return Outcome(done=True, lines=("the service is not installed",))
    if manager.platform == "darwin":
        problem = _ran(("launchctl", "bootout", f"gui/{manager.uid}/{LABEL}"))
    else:
        problem = _ran(("systemctl", "--user", "disable", "--now", UNIT))
        (manager.file.parent / "default.target.wants" / UNIT).unlink(missing_ok=True)
    manager.file.unlink()
    sync_folder(manager.file.parent)
    if manager.platform != "darwin":
        _ran(("systemctl", "--user", "daemon-reload"))
    if problem:
        return Outcome(done=False, lines=(f"removed {manager.file}", f"it may still run ({problem}); `kmem down` stops it"))
    return Outcome(done=True, lines=(f"removed {manager.file}", "the daemon is stopped"))


def runs(manager: Manager, pid: int) -> bool:
    """Return whether the service manager runs this process as our service."""
    if manager.platform == "win32" or not pid or not _is_ours(manager.file):
        return False
    if manager.platform == "darwin":
        said = _asked(("launchctl", "print", f"gui/{manager.uid}/{LABEL}"))
        return re.search(rf"^\s*pid = {pid}$", said, re.MULTILINE) is not None
    return _asked(("systemctl", "--user", "show", "--property=MainPID", "--value", UNIT)).strip() == str(pid)


def is_installed(manager: Manager) -> bool:
    return manager.platform != "win32" and _is_ours(manager.file)


def outdated(service: Service, manager: Manager) -> str:
    """Return what an installed unit should be by now, empty if it is that. Its variables stay, and its program if it exists."""
    if not is_installed(manager):
        return ""
    text = manager.file.read_text(encoding="utf-8", errors="replace")
    command, environment = _of_agent(text) if manager.platform == "darwin" else _of_unit(text)
    gone = not command or any(Path(word).is_absolute() and not Path(word).exists() for word in command)
    path = {"PATH": service.environment["PATH"]} if "PATH" in service.environment else {}
    needed = replace(service, command=service.command if gone else command, environment=path | environment)
    due = show(needed, manager)
    return "" if due == text else due


def refresh(service: Service, manager: Manager) -> bool:
    """Write an outdated unit anew for its next start, and return whether that was needed."""
    if not (due := outdated(service, manager)):
        return False
    _write(manager.file, due)
    if manager.platform == "darwin":
        domain = f"gui/{manager.uid}"
        _ran(("launchctl", "bootout", f"{domain}/{LABEL}"))
        _ran_in_time(("launchctl", "bootstrap", domain, str(manager.file)))
    else:
        _ran(("systemctl", "--user", "daemon-reload"))
    return True


def _of_agent(text: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the command and the variables in an agent of ours; nothing if it cannot be read."""
    try:
        match plistlib.loads(text.encode()):
            case {"ProgramArguments": [*words], "EnvironmentVariables": {**variables}}:
                return tuple(map(str, words)), {str(name): str(value) for name, value in variables.items()}
    except (ValueError, plistlib.InvalidFileException, ExpatError):
        pass
    return (), {}


_QUOTED_WORD = re.compile(r"\"((?:[^\"\\]|\\.)*)\"")
_ESCAPED_SIGN = re.compile(r"\\(.)|(%)%")


def _of_unit(text: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the command and the variables in a unit of ours."""
    found: dict[str, list[str]] = {"ExecStart": [], "Environment": []}
    for line in text.splitlines():
        name, _, value = line.partition("=")
        if name in found:
            found[name] += [_ESCAPED_SIGN.sub(r"\1\2", word) for word in _QUOTED_WORD.findall(value)]
    command = tuple(word.replace("$$", "$") if number else word for number, word in enumerate(found["ExecStart"]))
    return command, dict(variable.split("=", 1) for variable in found["Environment"] if "=" in variable)


def start_again(manager: Manager) -> str:
    """Have the service manager start the installed service. Return an empty string, or why it does not."""
    if manager.platform == "darwin":
        return _ran(("launchctl", "kickstart", f"gui/{manager.uid}/{LABEL}"))
    return _ran(("systemctl", "--user", "start", UNIT))


def _make(folder: Path) -> None:
    try:
        make_folder(folder)
    except OSError as error:
        raise KiteError(f"cannot make {folder}: {error.strerror}", hint="it must be a folder that you can write to") from error


def _write(file: Path, text: str) -> None:
    if file.exists() and not _is_ours(file):
        raise KiteError(f"{file} is not ours to change", hint="move it away, or put what `kmem service show` prints into it")
    _make(file.parent)
    try:
        replace_file(file, text.encode())
    except OSError as error:
        raise KiteError(f"cannot write {file}: {error.strerror}", hint="`kmem service show` prints what belongs there") from error


def _is_ours(file: Path) -> bool:
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return False
    return text.startswith(_MARK) or f"<string>{LABEL}</string>" in text


def _ran_in_time(command: Sequence[str]) -> str:
    """Run a command as `_ran` does; launchd refuses a service for a moment after an older one was asked to end."""
    problem = _ran(command)
    for _ in range(_BOOTSTRAPS if command[:2] == ("launchctl", "bootstrap") else 0):
        if not problem:
            break
        time.sleep(_BOOTSTRAP_PAUSE)
        problem = _ran(command)
    return problem


def _asked(command: Sequence[str]) -> str:
    """Return what a command prints; empty if it fails."""
    ran = _run(command)
    return ran.stdout.decode("utf-8", "replace") if not isinstance(ran, str) and ran.returncode == 0 else ""


def _run(command: Sequence[str]) -> "subprocess.CompletedProcess[bytes] | str":
    """Run a command, and return how it ended, or why it could not be run."""
    if not (program := shutil.which(command[0])):
        return "it is not installed"
    try:
        return subprocess.run([program, *command[1:]], stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"it did not answer within {_SECONDS:g} s"
    except OSError as error:
        return error.strerror or str(error)


def _ran(command: Sequence[str]) -> str:
    """Run a command. Return an empty string if it succeeded, else the reason on one line."""
    ran = _run(command)
    if isinstance(ran, str):
        return ran
    if ran.returncode == 0:
        return ""
    line = (ran.stderr or ran.stdout).decode("utf-8", "replace").split("\n")[0].strip()
    return "".join(letter for letter in line if letter.isprintable()) or f"it ended with {ran.returncode}"
