"""Commands for hooks, service, keys and configuration."""

import os
import stat
import sys
import tomllib
from collections.abc import MutableMapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kite_memory import config as configuration
from kite_memory import paths
from kite_memory.agents import registry
from kite_memory.agents.claude_code import fast_command
from kite_memory.agents.registry import Agent
from kite_memory.agents.settings_edit import Edit, Nothing, Plan, apply, backed_up, diff, read_settings
from kite_memory.cli.console import (
    ask,
    is_interactive,
    print_as_is,
    print_data,
    print_error,
    print_json,
    print_message,
    read_all,
    short_path,
)
from kite_memory.cli.main import Command, add, group
from kite_memory.config import Config
from kite_memory.errors import ConfigInvalid, KiteError, UsageError
from kite_memory.system.private_files import PRIVATE, make_folder, replace_file
from kite_memory.wiring.launch import voyage_command

if TYPE_CHECKING:
    from kite_memory.daemon.service_units import Outcome


def backups(config: Config) -> Path:
    return config.state / "backups"


def agents(config: Config) -> tuple[Agent, ...]:
    """Return the agents on this machine: Claude Code always, the others if their folder exists."""
    roots = _roots(config)
    signs = {
        "codex": roots.codex,
        "gemini": roots.gemini and roots.gemini / "tmp",
        "copilot": roots.copilot,
        "opencode": roots.opencode,
        "cursor": roots.cursor,
        "cline": roots.cline and roots.cline.parent,
        "cline_cli": roots.cline_cli and roots.cline_cli.parent,
    }
    absent: dict[str, Any] = {name: None for name, folder in signs.items() if folder is None or not folder.is_dir()}
    return registry.agents(replace(roots, **absent))


def hooked_agents(config: Config) -> tuple[Agent, ...]:
    """Return the agents on this machine, and any other whose settings hold our hooks."""
    here = {agent.name for agent in agents(config)}
    return tuple(agent for agent in registry.agents(_roots(config)) if agent.name in here or _is_hooked(agent))


def _is_hooked(agent: Agent) -> bool:
    try:
        return bool(agent.status(read_settings(agent.settings)).hooks)
    except KiteError:
        return False


def _roots(config: Config) -> registry.AgentRoots:
    """Return the folders of all agents, whether or not they exist."""
    return registry.AgentRoots(
        claude=config.claude_root,
        codex=config.codex_root,
        gemini=config.gemini_root,
        copilot=config.copilot_root,
        opencode=opencode_folder(),
        cursor=config.cursor_cli_root,
        cline=cline_folder(),
        cline_cli=cline_cli_folder(),
    )


def opencode_folder() -> Path:
    """Return the folder of OpenCode's settings, whether or not it exists."""
    named = Path(os.environ.get("XDG_CONFIG_HOME") or "")
    return (named if named.is_absolute() else Path.home() / ".config") / "opencode"


def cline_folder() -> Path | None:
    """Return the folder of Cline's hooks, whether or not it exists; ``None`` on Windows, where they are PowerShell scripts."""
    return None if sys.platform == "win32" else Path.home() / "Documents" / "Cline" / "Hooks"


def cline_cli_folder() -> Path | None:
    """Return the folder of the hooks of Cline's command line tool, whether or not it exists; ``None`` on Windows."""
    return None if sys.platform == "win32" else Path(os.environ.get("CLINE_DIR") or Path.home() / ".cline").expanduser() / "hooks"


def plan_install(agent: Agent, config: Config) -> Plan:
    """Plan the hooks in an agent's settings; no hooks if our plugin runs them."""
    if agent.has_plugin():
        match plan_uninstall(agent, config):
            case Nothing():
                return Nothing(because="the plugin runs the hooks already")
            case Edit() as edit:
                return replace(edit, because="the plugin runs the hooks; removes those in the settings")
    return agent.plan_install(read_settings(agent.settings), fast_command())


def plan_uninstall(agent: Agent, config: Config) -> Plan:
    return agent.plan_uninstall(read_settings(agent.settings), backed_up(agent.settings, backups(config)))


def install_line(name: str) -> str:
    """Return the command that adds the hooks of one agent."""
    return "kmem hooks install" + ("" if name == "claude-code" else f" --agent {name}")


def show(agent: Agent, plan: Plan) -> None:
    """Print the planned change as data."""
    match plan:
        case Nothing(because=because):
            print_message(f"{agent.title}: {because}")
        case Edit() as edit:
            print_message(f"{agent.title}: {edit.because}")
            print_data(diff(edit, agent.settings).rstrip("\n"))


def carry_out(agent: Agent, plan: Plan, config: Config, *, yes: bool, brief: bool = False) -> bool:
    """Show the change (without its diff if ``brief``), ask unless ``yes``, and make it.

    Return whether the settings are now as planned.
    """
    match plan:
        case Nothing(because=because):
            print_message(f"{agent.title}: {because}")
            return True
        case Edit() as edit:
            print_message(f"{agent.title}: {edit.because}")
            if not brief:
                print_as_is(diff(edit, agent.settings).rstrip("\n"))
            if not yes and not ask(f"Change {short_path(agent.settings)}?"):
                return False
            change_file(edit, agent.settings, config)
            return True


def change_file(edit: Edit, path: Path, config: Config) -> None:
    """Make a planned change of an agent's file, and print what was done."""
    backup = short_path(apply(edit, path, backups(config)))
    if edit.before is None:
        print_message(f"made {short_path(path)}")
    else:
        done = "removed" if edit.after is None else "changed"
        print_message(f"{done} {short_path(path)}; the version before is kept in {backup}")


_SAID = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def change(name: str, value: str) -> str:
    """Change a setting, and return a message about it.

    Raises `ConfigInvalid` for an invalid setting or value, and leaves the file as it was.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    settings = _settings()
    file = settings.file
    before = file.read_bytes() if file.exists() else None
    section, _, key = name.rpartition(".")
    try:
        document = tomlkit.parse((before or b"").decode("utf-8-sig"))
        if section == "vault" and isinstance(document.get("vault"), str):  # the short form holds only the path
            whole = tomlkit.inline_table()
            whole["path"] = document["vault"]
            document["vault"] = whole
        if name == "vault" and isinstance(document.get("vault"), MutableMapping):
            section, key = "vault", "path"
        table = document.setdefault(section, tomlkit.table()) if section else document
        if not isinstance(table, MutableMapping) or not key:
            configuration.check(before or b"", file)  # the existing value may not be a section
            raise UsageError(f"there is no setting {name!r}", hint="`kmem config show` lists them")
        parsed = _typed(value, _in_force(settings, section, key))
        table[key] = parsed
        after = tomlkit.dumps(document).encode("utf-8", "replace")
    except TOMLKitError as error:
        raise ConfigInvalid(f"{name!r} cannot be set in {file}: {error}", hint="write it there by hand") from error
    now = _in_force(configuration.check(after, file), section, key)
    target = file.resolve()  # dotfiles are often links
    try:
        make_folder(target.parent)
        replace_file(target, after, mode=PRIVATE if before is None else stat.S_IMODE(target.stat().st_mode))
    except OSError as error:
        raise KiteError(f"cannot write {file}: {error.strerror}") from error
    if value and now != parsed and str(now) != str(Path(value).expanduser()):
        return f"{name} is set in {file}, but the environment says otherwise, and goes before: {now}"
    return f"{name} is set in {file}"


def _settings() -> configuration.Config:
    """Return the settings in force; the defaults if the file is TOML with an invalid value, maybe the one to be set."""
    try:
        return configuration.load()
    except ConfigInvalid as error:
        file = Path(paths.config_file())
        try:
            tomllib.loads(file.read_bytes().decode("utf-8-sig"))
        except (OSError, ValueError, RecursionError):
            raise error from None
        return configuration.check(b"", file)


def _in_force(settings: configuration.Config, section: str, key: str) -> object:
    if section == "vault":
        return {"path": settings.vault, "git": settings.vault_git, "journal": settings.vault_journal}.get(key, "")
    if section == "judge":
        return settings.judge if key == "mode" else ""
    return getattr(getattr(settings, section, None), key, "") if section else getattr(settings, key, "")


def _typed(value: str, now: object) -> object:
    """Return the value converted to the setting's type. What does not fit is left to `config.check`, which has better messages."""
    if isinstance(now, bool) and value in _SAID:
        return _SAID[value]
    if now is None or isinstance(now, int | float):
        for kind in (int, float):
            try:
                return kind(value)
            except ValueError:
                continue
    return value


PANEL = "Set-up"

_BY_THE_PLUGIN = "  the plugin runs the hooks"

AgentName = Annotated[
    str,
    typer.Option(
        "--agent", metavar="AGENT", help="claude-code, codex, gemini-cli, copilot-cli, opencode, cursor, cline or cline-cli."
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show the change.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

hooks = group(help="Add, remove and show hooks in your agents' settings.", example="kmem hooks status")
service = group(help="Start the daemon whenever you log in.", example="kmem service show")
keys = group(help="Manage API keys, which are optional, and values to redact.", example="kmem keys list")
config = group(help="Show and change settings.", example="kmem config show")


@hooks.command("install", cls=Command)
def install_hooks(agent: AgentName = "claude-code", dry_run: DryRun = False, yes: Yes = False) -> None:
    """Add our hooks to an agent's settings. Shows the change first and keeps a backup; everything else stays as it is.

    Example: kmem hooks install --dry-run
    """

    chosen, settings = _agent(agent)
    _change(chosen, plan_install(chosen, settings), settings, dry_run=dry_run, yes=yes)


@hooks.command("uninstall", cls=Command)
def uninstall_hooks(agent: AgentName = "claude-code", dry_run: DryRun = False, yes: Yes = False) -> None:
    """Remove our hooks from an agent's settings, and nothing else.

    Example: kmem hooks uninstall --dry-run
    """

    chosen, settings = _agent(agent)
    _change(chosen, plan_uninstall(chosen, settings), settings, dry_run=dry_run, yes=yes)


def _agent(name: str) -> "tuple[Agent, Config]":
    settings = configuration.load()
    return registry.agent(name, _roots(settings)), settings


def _change(agent: "Agent", plan: "Plan", settings: "Config", *, dry_run: bool, yes: bool) -> None:

    if dry_run:
        show(agent, plan)
    elif not carry_out(agent, plan, settings, yes=yes):
        raise (
            KiteError("nothing was changed")
            if is_interactive()
            else UsageError("nothing was changed", hint="--yes agrees without asking")
        )


@hooks.command("status", cls=Command)
def hooks_status(as_json: AsJson = False) -> None:
    """Show which hooks are installed, and in which settings file.

    Example: kmem hooks status
    """
    settings = configuration.load()
    statuses: list[dict[str, Any]] = []
    unread: list[KiteError] = []
    for agent in hooked_agents(settings):
        try:
            status = agent.status(read_settings(agent.settings))
        except KiteError as error:  # the others can still be shown
            unread.append(error)
            continue
        statuses.append(
            {
                "agent": agent.name,
                "settings": str(agent.settings),
                "hooks": [{"event": hook.event, "command": hook.command} for hook in status.hooks],
                "missing": status.missing,
                "disabled": status.disabled,
                "plugin": agent.has_plugin(),
            }
        )
    if as_json:
        print_json(statuses)
    for each in statuses if not as_json else ():
        print_data(f"{each['agent']}  {each['settings']}")
        for hook in each["hooks"]:
            print_data(f"  {hook['event']}: {hook['command']}")
        for event in each["missing"] if not each["plugin"] else ():
            print_data(f"  {event}: hook not installed")
        if each["plugin"]:
            print_data(
                _BY_THE_PLUGIN + (f"; `{install_line(each['agent'])}` removes those in the settings" if each["hooks"] else "")
            )
        if each["disabled"]:
            print_data("  disableAllHooks switches every hook off")
    for problem in unread:
        print_error(problem)
    if unread:
        raise typer.Exit(unread[0].exit_code)


@service.command("show", cls=Command)
def show_service() -> None:
    """Print the unit that `install` writes.

    Example: kmem service show
    """
    from kite_memory.daemon import service_units
    from kite_memory.wiring.daemon import service_of

    print_data(service_units.show(*service_of(configuration.load())).rstrip("\n"))


@service.command("install", cls=Command)
def install_service() -> None:
    """Start the daemon now and whenever you log in.

    Example: kmem service install
    """
    from kite_memory.cli.everyday import make_room, start
    from kite_memory.daemon import service_units
    from kite_memory.keys import keys_beside
    from kite_memory.wiring.daemon import service_of

    settings = configuration.load()
    found = keys_beside(settings.file)
    for name in ("anthropic", "voyage"):
        if found.where(name) == "environment":
            print_message(f"note: the service will not see this shell's {name} key; `kmem keys set {name}` keeps it where it does")
    stopped, runs = make_room(settings), False
    try:
        outcome = service_units.install(*service_of(settings))
        runs = outcome.done
    finally:
        if stopped and not runs:
            start(settings)
    _report(outcome)


@service.command("uninstall", cls=Command)
def uninstall_service() -> None:
    """Stop the service and remove its unit.

    Example: kmem service uninstall
    """
    from kite_memory.daemon import service_units
    from kite_memory.wiring.daemon import service_of

    _report(service_units.uninstall(service_of(configuration.load())[1]))


def _report(outcome: "Outcome") -> None:
    for line in outcome.lines:
        print_message(line)
    if not outcome.done:
        raise typer.Exit(1)


KeyArgument = Annotated[str, typer.Argument(metavar="NAME", help="anthropic, voyage, openai, team or team-token.")]


@keys.command("set", cls=Command)
def set_key(name: KeyArgument) -> None:
    """Store a key. It is read from standard input, or typed without echo, and kept in the keyring, else in a private file.

    Example: echo "$MY_KEY" | kmem keys set anthropic
    """
    from kite_memory import keys as kept

    settings = configuration.load()
    known = kept.key_name(name)
    if sys.stdin is not None and sys.stdin.isatty():
        import getpass

        value = getpass.getpass(f"{known} key: ")
    else:
        value = read_all(1 << 16)
    print_message(kept.put(known, value, settings.file))
    if known == "voyage" and (command := voyage_command()):
        print_message(f"one package is missing for it: `{command}`")
    print_message("a running daemon uses it after `kmem down` and `kmem up`")


@keys.command("remove", cls=Command)
def remove_key(name: KeyArgument) -> None:
    """Remove a stored key.

    Example: kmem keys remove voyage
    """
    from kite_memory import keys as kept

    print_message(kept.remove(name, configuration.load().file))


@keys.command("protect", cls=Command)
def protect_literals(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .env or .netrc file, or a file with one literal per line.")],
    forget: Annotated[bool, typer.Option("--forget", help="Stop protecting the values of FILE.")] = False,
) -> None:
    """Redact the values in a file, such as .env, wherever they occur. Only keyed hashes of the values are stored.

    Example: kmem keys protect ~/orchard/.env
    """
    from kite_memory.protected import protect_file

    print_message(protect_file(file, configuration.load().file, forget=forget))
    print_message("a running daemon uses it after `kmem down` and `kmem up`")


@keys.command("list", cls=Command)
def list_keys(as_json: AsJson = False) -> None:
    """Show which keys are found, and where; never the keys themselves.

    Example: kmem keys list
    """
    from kite_memory import keys as kept

    settings = configuration.load()
    if not as_json:
        for line in kept.listing(settings.file):
            print_data(line)
        return
    found = kept.keys_beside(settings.file)
    print_json([{"name": name, "place": found.where(name) or "", "variable": kept.VARIABLES[name]} for name in kept.VARIABLES])


@config.command("show", cls=Command)
def show_config(as_json: AsJson = False) -> None:
    """Show every setting in force and where it comes from.

    A setting comes from the file, the environment or the defaults. Only agents' folders that exist are shown; --json shows all.

    Example: kmem config show
    """
    import dataclasses

    shown = dataclasses.asdict(configuration.load())
    if as_json:
        print_json(shown)
        return
    for name, value in shown.items():
        if name.endswith(("_root", "_roots", "_histories")) and name != "claude_root":
            for place in value if isinstance(value, tuple) else (value,):
                if place is not None and place.exists():
                    print_data(f"{name} = {place}")
        elif isinstance(value, dict):
            for key, inner in value.items():
                print_data(f"{name}.{key} = {_UNSET.get(key, '') if inner is None else inner}")
        else:
            print_data(f"{name.replace('vault_', 'vault.', 1)} = {value}")


_UNSET = {
    "threshold": "(the dial's)",
    "dollars_per_million_in": "(the model's)",
    "dollars_per_million_out": "(the model's)",
}


@config.command("get", cls=Command)
def get_config(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name in `kmem config show`.")],
    as_json: AsJson = False,
) -> None:
    """Show one setting in force. What it does is explained on standard error.

    Example: kmem config get recall.dial
    """
    if name not in configuration.DESCRIPTIONS:
        raise UsageError(f"there is no setting {name!r}", hint="`kmem config show` lists them")
    settings = configuration.load()
    section, _, key = name.rpartition(".")
    fields = {"vault": ("vault", "path"), "projects": ("", "aider_roots")}
    value = _in_force(settings, *fields.get(name, (section, key)))
    if as_json:
        print_json({"name": name, "value": value, "description": configuration.DESCRIPTIONS[name]})
        return
    print_message(f"{name}: {configuration.DESCRIPTIONS[name]}")
    for line in value if isinstance(value, tuple) else (value,):
        print_data(_UNSET.get(name.rpartition(".")[2], "") if line is None else str(line))


@config.command("set", cls=Command)
def set_config(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name in `kmem config show`.")],
    value: Annotated[str, typer.Argument(metavar="VALUE", help="The new value.")],
) -> None:
    """Change one setting in the configuration file. Comments and order stay. A running daemon is restarted.

    Example: kmem config set extractor.dollars_per_day 0.5
    """
    from kite_memory.cli.everyday import take_effect
    from kite_memory.cli.vault import whole_target

    print_message(change(name, whole_target(value) if name == "sync.target" else value))
    if missing := _without_key(name, value):
        print_message(f"note: there is no key for {value} yet, so nothing is asked of it: `kmem keys set {missing}`")
    if take_effect(configuration.load()):
        print_message("the daemon was restarted with it")


def _without_key(name: str, value: str) -> str:
    """Return the name of the key that a chosen service needs and does not have; empty if nothing is missing."""
    from kite_memory import keys as kept

    needed = {("extractor.name", "anthropic"): "anthropic", ("embedder.name", "voyage"): "voyage"}.get((name, value), "")
    if not needed:
        return ""
    found = kept.keys_beside(configuration.load().file).find(kept.key_name(needed))
    return "" if found is not None else needed


def statusline(
    program: Annotated[
        str, typer.Option("--for", metavar="PROGRAM", help="Print the setting for claude-code, starship or tmux instead.")
    ] = "",
) -> None:
    """Print a segment for a status line.

    It shows the notes given, how long the last answer took, today's costs, and whether making notes is paused. Claude Code's JSON
    on standard input names the session; without it, the last session is used. Prints nothing without a daemon.

    Example: kmem statusline --for tmux
    """
    from kite_memory.cli import opening

    if program:
        print_data(opening.snippet(program, fast_command()))
    else:
        opening.print_segment()


def daemon() -> None:
    """Run the daemon in this process. This is what systemd and launchd start.

    Example: kmem daemon
    """
    from kite_memory.daemon.protocol import DaemonLock

    settings = configuration.load()
    with DaemonLock.take(settings.state) as lock:
        from kite_memory.wiring.daemon import run_daemon

        raise typer.Exit(run_daemon(settings, lock))


def add_to(app: typer.Typer) -> None:
    app.add_typer(hooks, name="hooks", rich_help_panel=PANEL)
    app.add_typer(service, name="service", rich_help_panel=PANEL)
    app.add_typer(keys, name="keys", rich_help_panel=PANEL)
    app.add_typer(config, name="config", rich_help_panel=PANEL)
    add(app, statusline, daemon, panel=PANEL)
