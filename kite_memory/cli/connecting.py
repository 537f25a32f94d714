"""Planning, showing and making the changes of `kmem connect`."""

import contextlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from kite_memory import assets
from kite_memory.agents import commands, instruction_lines
from kite_memory.agents.connections import Connection, Places, connections
from kite_memory.agents.mcp_entry import Server
from kite_memory.agents.settings_edit import Edit, Plan, SettingsUnreadable, apply, backed_up, diff, read_settings
from kite_memory.app.launch import mcp_command, mcp_environment
from kite_memory.cli.console import ask, say, tell
from kite_memory.cli.hooking import backups
from kite_memory.config import Config
from kite_memory.system.editors import extension_storages, user_folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One file's change. ``what`` names it. What it leaves empty goes with it, up to the folder it stands ``below``."""

    what: str
    file: Path
    plan: Plan
    below: Path | None = None


def places(config: Config) -> Places:
    home, environment = Path.home(), os.environ

    def storages(extension: str) -> tuple[Path, ...]:
        return extension_storages(extension, environment=environment, home=home, platform=sys.platform)

    return Places(
        home=home,
        claude=config.claude_root,
        claude_apart=bool(environment.get("CLAUDE_CONFIG_DIR")),
        codex=config.codex_root or home / ".codex",
        gemini=config.gemini_root or home / ".gemini",
        cline=config.cline_roots,
        roo=storages("rooveterinaryinc.roo-cline"),
        vscode=user_folder("Code", environment=environment, home=home, platform=sys.platform),
        environment=environment,
    )


def steps(
    agent: Connection, config: Config, *, remove: bool, lines: bool, project: Path | None, with_commands: bool = True
) -> list[Step]:
    """Nothing is touched. Raises `SettingsUnreadable`."""
    return [
        _server(agent, config, remove=remove),
        *_lines(agent, config, remove=remove, lines=lines, project=project),
        *(_commands(agent, config, remove=remove) if with_commands or remove else []),
    ]


def _commands(agent: Connection, config: Config, *, remove: bool) -> list[Step]:
    here = places(config)
    folders = {"claude-code": here.claude, "codex": here.codex, "gemini-cli": here.gemini}
    found: list[Step] = []
    for each in commands.files(agent.name):
        file = folders[agent.name] / each.place
        text, name = read_settings(file), each.place
        ours = commands.written(assets.folder("hooks") / each.template)
        plan = commands.plan_remove(text, name) if remove else commands.plan_add(text, ours, name)
        found.append(Step(what="command", file=file, plan=plan, below=folders[agent.name]))
    return found


def _server(agent: Connection, config: Config, *, remove: bool) -> Step:
    text = read_settings(agent.settings)
    if remove:
        plan = agent.dialect.plan_remove(text, backed_up(agent.settings, backups(config)))
    else:
        command, *args = mcp_command()
        server = Server(command=command, args=tuple(args), environment=mcp_environment(config))
        plan = agent.dialect.plan_add(text, server)
    return Step(what="server", file=agent.settings, plan=plan)


def _lines(agent: Connection, config: Config, *, remove: bool, lines: bool, project: Path | None) -> list[Step]:
    file = agent.instructions if project is None else project / agent.in_project
    if file is None or not (lines or remove):
        return []
    text = read_settings(file)
    if remove:
        return [Step(what="lines", file=file, plan=instruction_lines.plan_remove(text, backed_up(file, backups(config))))]
    return [Step(what="lines", file=file, plan=instruction_lines.plan_add(text))]


def show(agent: Connection, todo: list[Step]) -> None:
    """What would be done, as data."""
    for step in todo:
        tell(f"{agent.title}: {step.plan.because}")
        if isinstance(step.plan, Edit):
            say(diff(step.plan, step.file).rstrip("\n"))


def carry_out(agent: Connection, todo: list[Step], config: Config, *, yes: bool) -> bool:
    """Show all changes, ask once where nobody has agreed yet, make them. Whether everything is now as planned."""
    edits = [(step, step.plan) for step in todo if isinstance(step.plan, Edit)]
    for step in todo:
        tell(f"{agent.title}: {step.plan.because}")
        if isinstance(step.plan, Edit):
            tell(diff(step.plan, step.file).rstrip("\n"))
    if edits and not yes and not ask(f"Change {' and '.join(str(step.file) for step, _ in edits)}?"):
        return False
    for step, edit in edits:
        backup = apply(edit, step.file, backups(config))
        if edit.after is None and step.below is not None:
            _remove_empty(step.file.parent, step.below)
        tell(f"changed {step.file}; what it was is kept in {backup}")
    return True


def _remove_empty(folder: Path, below: Path) -> None:
    with contextlib.suppress(OSError):  # it is somebody else's, too
        while folder != below:
            folder.rmdir()
            folder = folder.parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    agent: Connection
    installed: bool
    connected: bool
    instructed: bool


def standings(config: Config) -> list[Standing]:
    """Of every agent. One whose settings cannot be read is not connected."""
    found: list[Standing] = []
    for agent in connections(places(config)):
        try:
            connected = agent.dialect.connected(read_settings(agent.settings))
        except SettingsUnreadable:
            connected = False
        try:
            instructed = agent.instructions is not None and instruction_lines.present(read_settings(agent.instructions))
        except SettingsUnreadable:
            instructed = False
        installed = agent.settings.exists() or (agent.settings.parent.is_dir() and agent.settings.parent != Path.home())
        found.append(Standing(agent=agent, installed=installed, connected=connected, instructed=instructed))
    return found
