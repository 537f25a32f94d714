"""Hooks, service, keys and configuration."""

import sys
from typing import Annotated, Any

import typer

from kite_memory import config as configuration
from kite_memory.cli import hooking
from kite_memory.cli.console import say, say_json, tell
from kite_memory.errors import ConfigInvalid, UsageError

PANEL = "Set-up"

hooks = typer.Typer(no_args_is_help=True, help="The hooks in your agents' settings: add them, take them out, look at them.")
service = typer.Typer(no_args_is_help=True, help="Have the system start the daemon when you log in.")
keys = typer.Typer(no_args_is_help=True, help="Keys for the model and for embeddings; both are optional.")
config = typer.Typer(no_args_is_help=True, help="Settings: show them, change one.")

AgentName = Annotated[str, typer.Option("--agent", help="Which agent.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show the change.")]


@hooks.command("install")
def install_hooks(agent: AgentName = "claude-code", dry_run: DryRun = False, yes: Yes = False) -> None:
    """Add our hooks to an agent's settings. Shows the change first and keeps a backup; everything else stays as it is.

    Example: kmem hooks install --dry-run
    """
    from kite_memory.agents import registry

    settings = configuration.load()
    chosen = registry.agent(agent, claude_root=settings.claude_root)
    done = hooking.carry_out(chosen, hooking.plan_install(chosen), settings, yes=yes, dry_run=dry_run)
    if not done and not dry_run:
        raise UsageError("nothing was changed", hint="--yes agrees without asking")


@hooks.command("uninstall")
def uninstall_hooks(agent: AgentName = "claude-code", dry_run: DryRun = False, yes: Yes = False) -> None:
    """Remove our hooks from an agent's settings, and nothing else.

    Example: kmem hooks uninstall --dry-run
    """
    from kite_memory.agents import registry

    settings = configuration.load()
    chosen = registry.agent(agent, claude_root=settings.claude_root)
    done = hooking.carry_out(chosen, hooking.plan_uninstall(chosen, settings), settings, yes=yes, dry_run=dry_run)
    if not done and not dry_run:
        raise UsageError("nothing was changed", hint="--yes agrees without asking")


@hooks.command("status")
def hooks_status(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show which hooks are wired, in which settings file.

    Example: kmem hooks status
    """
    from kite_memory.agents import registry
    from kite_memory.agents.settings_edit import read_settings

    settings = configuration.load()
    told: list[dict[str, Any]] = []
    for agent in registry.agents(claude_root=settings.claude_root):
        status = agent.status(read_settings(agent.settings))
        told.append(
            {
                "agent": agent.name,
                "settings": str(agent.settings),
                "hooks": [{"event": hook.event, "command": hook.command} for hook in status.hooks],
                "missing": status.missing,
                "disabled": status.disabled,
            }
        )
    if as_json:
        say_json(told)
        return
    for each in told:
        say(f"{each['agent']}  {each['settings']}")
        for hook in each["hooks"]:
            say(f"  {hook['event']}: {hook['command']}")
        for event in each["missing"]:
            say(f"  {event}: not wired")
        if each["disabled"]:
            say("  disableAllHooks switches every hook off")


def _manager_and_service() -> Any:
    from kite_memory.daemon import service_units
    from kite_memory.wiring import service_of

    settings = configuration.load()
    return service_units, service_of(settings)


@service.command("show")
def show_service() -> None:
    """Print the unit that `install` writes.

    Example: kmem service show
    """
    units, (described, manager) = _manager_and_service()
    say(units.show(described, manager).rstrip("\n"))


@service.command("install")
def install_service() -> None:
    """Start the daemon now and whenever you log in.

    Example: kmem service install
    """
    units, (described, manager) = _manager_and_service()
    _report(units.install(described, manager))


@service.command("uninstall")
def uninstall_service() -> None:
    """Stop the service and remove its unit.

    Example: kmem service uninstall
    """
    units, (_, manager) = _manager_and_service()
    _report(units.uninstall(manager))


def _report(outcome: Any) -> None:
    for line in outcome.lines:
        tell(line)
    if not outcome.done:
        raise typer.Exit(1)


KeyName = Annotated[str, typer.Argument(metavar="NAME", help="anthropic, voyage or openai.")]


@keys.command("set")
def set_key(name: KeyName) -> None:
    """Store a key, read from standard input or asked for without echo: in the system's keyring, else in a file of its own.

    Example: echo "$MY_KEY" | kmem keys set anthropic
    """
    from kite_memory.keys import key_name
    from kite_memory.wiring import keys_of

    known = key_name(name)
    if sys.stdin.isatty():
        import getpass

        value = getpass.getpass(f"{known} key: ")
    else:
        value = sys.stdin.readline()
    key = keys_of(configuration.load()).set(known, value)
    tell(f"{known} key {key.shown} is kept in the {key.place}; `kmem down` and `kmem up` make a running daemon use it")


@keys.command("remove")
def remove_key(name: KeyName) -> None:
    """Remove a stored key.

    Example: kmem keys remove voyage
    """
    from kite_memory.keys import VARIABLES, key_name
    from kite_memory.wiring import keys_of

    known = key_name(name)
    found = keys_of(configuration.load())
    removed = found.remove(known)
    tell(f"removed from the {' and the '.join(removed)}" if removed else f"there is no stored {known} key")
    if found.where(known) == "environment":
        tell(f"note: {VARIABLES[known]} in the environment still holds one")


@keys.command("list")
def list_keys() -> None:
    """Show which keys are found, and where; never the keys themselves.

    Example: kmem keys list
    """
    from kite_memory.keys import VARIABLES
    from kite_memory.wiring import keys_of

    found = keys_of(configuration.load())
    for name in VARIABLES:
        key = found.find(name)
        say(f"{name}: {f'{key.shown}, from the {key.place}' if key else 'none'}")


@config.command("show")
def show_config(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show every setting as it is in force: the file's, the environment's, or the default.

    Example: kmem config show
    """
    import dataclasses

    shown = dataclasses.asdict(configuration.load())
    if as_json:
        say_json(shown)
        return
    for name, value in shown.items():
        if isinstance(value, dict):
            for key, inner in value.items():
                say(f"{name}.{key} = {inner}")
        else:
            say(f"{name} = {value}")


@config.command("set")
def set_config(
    name: Annotated[str, typer.Argument(metavar="NAME", help="As `kmem config show` names it.")],
    value: Annotated[str, typer.Argument(metavar="VALUE")],
) -> None:
    """Change one setting in the configuration file; comments and order stay.

    Example: kmem config set extractor.dollars_per_day 0.5
    """
    import tomlkit

    from kite_memory.private_files import make_private_folder, replace_file

    settings = configuration.load()
    before = settings.file.read_text(encoding="utf-8") if settings.file.exists() else ""
    document = tomlkit.parse(before)
    section, dot, key = name.rpartition(".")
    table: Any = document
    if dot:
        if section not in document:
            document[section] = tomlkit.table()
        table = document[section]
    table[key] = _typed(value)
    after = tomlkit.dumps(document)
    make_private_folder(settings.file.parent)
    replace_file(settings.file, after.encode("utf-8"))
    try:
        configuration.load()
    except ConfigInvalid:
        if before:
            replace_file(settings.file, before.encode("utf-8"))
        else:
            settings.file.unlink()
        raise
    tell(f"set in {settings.file}; `kmem down` and `kmem up` make a running daemon see it")


def _typed(value: str) -> object:
    if value in ("true", "false"):
        return value == "true"
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value


def daemon() -> None:
    """Run the service process itself: what systemd and launchd start.

    Example: kmem daemon
    """
    from kite_memory.wiring import run_daemon

    raise typer.Exit(run_daemon(configuration.load()))


def add_to(app: typer.Typer) -> None:
    app.add_typer(hooks, name="hooks", rich_help_panel=PANEL)
    app.add_typer(service, name="service", rich_help_panel=PANEL)
    app.add_typer(keys, name="keys", rich_help_panel=PANEL)
    app.add_typer(config, name="config", rich_help_panel=PANEL)
    app.command(rich_help_panel=PANEL)(daemon)
