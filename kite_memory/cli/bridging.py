"""Connecting agents: the MCP servers, and the tokens of agents on the network."""

import contextlib
import logging
import os
import signal
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kite_memory import config as configuration
from kite_memory.agents import instructions
from kite_memory.agents.mcp_entry import AgentFolders, Connection, ServerCommand, connection, connections
from kite_memory.agents.settings_edit import Edit, Plan, SettingsUnreadable, backed_up, diff, read_settings
from kite_memory.cli.console import (
    ask,
    is_interactive,
    named_folder,
    print_as_is,
    print_data,
    print_json,
    print_message,
    short_path,
)
from kite_memory.cli.main import Command, add, group
from kite_memory.cli.setup import agents, backups, change_file
from kite_memory.config import Config, extension_storages, user_folder
from kite_memory.errors import KiteError, UsageError
from kite_memory.paths import asset_folder
from kite_memory.wiring.launch import mcp_command, mcp_environment

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from kite_memory.mcp_server.tokens import StoredToken, Tokens
    from kite_memory.model.note import Scope
    from kite_memory.tools.store import Asker


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Change of one file. ``what`` names it. Folders that it leaves empty are removed too, up to ``below``."""

    what: str
    file: Path
    plan: Plan
    below: Path | None = None


def places(config: Config) -> AgentFolders:
    home, environment = Path.home(), os.environ

    def storages(extension: str) -> tuple[Path, ...]:
        return extension_storages(extension, environment=environment, home=home, platform=sys.platform)

    return AgentFolders(
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
    """Return the changes that connect or disconnect an agent, without making them. Raises `SettingsUnreadable`.

    Where our plugin is installed, it brings the server and the commands: those in the settings are removed.
    """
    remove_doubles = remove or plugin_of(agent, config)
    return [
        _server(agent, config, remove=remove_doubles),
        *_lines(agent, config, remove=remove, lines=lines, project=project),
        *(_commands(agent, config, remove=remove_doubles) if with_commands or remove_doubles else []),
    ]


def plugin_of(agent: Connection, config: Config) -> bool:
    """Return whether an agent has our plugin installed."""
    return any(each.name == agent.name and each.has_plugin() for each in agents(config))


def _commands(agent: Connection, config: Config, *, remove: bool) -> list[Step]:
    here = places(config)
    folders = {"claude-code": here.claude, "codex": here.codex, "gemini-cli": here.gemini}
    found: list[Step] = []
    for each in instructions.files(agent.name):
        file = folders[agent.name] / each.place
        text, name = read_settings(file), each.place
        ours = instructions.written(Path(asset_folder("hooks")) / each.template)
        plan = instructions.plan_remove_file(text, name) if remove else instructions.plan_add_file(text, ours, name)
        found.append(Step(what="command", file=file, plan=plan, below=folders[agent.name]))
    return found


def _server(agent: Connection, config: Config, *, remove: bool) -> Step:
    text = read_settings(agent.settings)
    if remove:
        plan = agent.dialect.plan_remove(text, backed_up(agent.settings, backups(config)))
    else:
        command, *args = mcp_command()
        server = ServerCommand(command=command, args=tuple(args), environment=mcp_environment(config))
        plan = agent.dialect.plan_add(text, server)
    return Step(what="server", file=agent.settings, plan=plan)


def _lines(agent: Connection, config: Config, *, remove: bool, lines: bool, project: Path | None) -> list[Step]:
    file = agent.instructions if project is None else project / agent.in_project
    if file is None or not (lines or remove):
        return []
    text = read_settings(file)
    if remove:
        return [Step(what="lines", file=file, plan=instructions.plan_remove(text, backed_up(file, backups(config))))]
    return [Step(what="lines", file=file, plan=instructions.plan_add(text))]


def show(agent: Connection, todo: list[Step]) -> None:
    """Print the planned changes as data."""
    for step in todo:
        print_message(f"{agent.title}: {step.plan.because}")
        if isinstance(step.plan, Edit):
            print_data(diff(step.plan, step.file).rstrip("\n"))


def carry_out(agent: Connection, todo: list[Step], config: Config, *, yes: bool, brief: bool = False) -> bool:
    """Show all changes (without diffs if ``brief``), ask once unless ``yes``, and make them.

    Return whether everything is now as planned.
    """
    edits = [(step, step.plan) for step in todo if isinstance(step.plan, Edit)]
    for step in todo:
        print_message(f"{agent.title}: {step.plan.because}")
        if isinstance(step.plan, Edit) and not brief:
            print_as_is(diff(step.plan, step.file).rstrip("\n"))
    if edits and not yes and not ask(f"Change {' and '.join(short_path(step.file) for step, _ in edits)}?"):
        return False
    for step, edit in edits:
        change_file(edit, step.file, config)
        if edit.after is None and step.below is not None:
            _remove_empty(step.file.parent, step.below)
    return True


def _remove_empty(folder: Path, below: Path) -> None:
    with contextlib.suppress(OSError):  # the folder is shared with other programs
        while folder != below:
            folder.rmdir()
            folder = folder.parent


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentState:
    agent: Connection
    installed: bool
    connected: bool
    instructed: bool


def standings(config: Config) -> list[AgentState]:
    """Return the state of every agent. One whose settings cannot be read counts as not connected."""
    found: list[AgentState] = []
    for agent in connections(places(config)):
        try:
            connected = agent.dialect.connected(read_settings(agent.settings))
        except SettingsUnreadable:
            connected = False
        try:
            instructed = agent.instructions is not None and instructions.present(read_settings(agent.instructions))
        except SettingsUnreadable:
            instructed = False
        installed = agent.settings.exists() or (agent.settings.parent.is_dir() and agent.settings.parent != Path.home())
        found.append(AgentState(agent=agent, installed=installed, connected=connected, instructed=instructed))
    return found


PANEL = "Agents"

_SESSION = "CLAUDE_CODE_SESSION_ID"
"""Variable in which Claude Code passes a server the session it is started for. No other agent does."""

log = logging.getLogger("kite_memory")


class Tools(StrEnum):
    """Which tools an agent is offered."""

    DAILY = "daily"
    ALL = "all"


_TOOLS_HELP = "Which tools to list: the everyday ones and one that calls the rest, or all."

token = group(help="Create, list and revoke the tokens that `kmem serve` asks for.", example="kmem token list")


def mcp(
    cwd: Annotated[str, typer.Option(metavar="FOLDER", help="The folder the agent works in; default: the current folder.")] = "",
    tools: Annotated[Tools, typer.Option(help=_TOOLS_HELP)] = Tools.DAILY,
) -> None:
    """Serve MCP on standard input and output. Agents start this command; `kmem connect` sets it up.

    It forwards calls to the daemon if one runs, and ends when its input ends.

    Example: kmem mcp < /dev/null
    """
    import anyio

    from kite_memory.cli.backend import LocalMemory
    from kite_memory.mcp_server.http import agent_of
    from kite_memory.mcp_server.server import client_of, server_over
    from kite_memory.mcp_server.stdio import own_ends
    from kite_memory.mcp_server.stdio import serve as serve_lines
    from kite_memory.projects import project_of
    from kite_memory.tools.store import OWNER, Asker

    project = project_of(named_folder(cwd))
    session = os.environ.get(_SESSION, "")
    _only_our_own_words()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a reading thread cannot be interrupted otherwise

    def who(context: "ServerRequestContext") -> "Asker":
        return Asker(grant=OWNER, project=project, session=session, ai=agent_of(client_of(context)))

    bridge = LocalMemory(configuration.load())
    try:
        server = server_over(bridge.perform, who, _report, everything=tools is Tools.ALL)
        with own_ends() as (read_fd, write_fd):
            anyio.run(lambda: serve_lines(server, read_fd=read_fd, write_fd=write_fd))
    finally:
        bridge.close()


def serve(
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="PORT", min=0, max=65_535, help="The port to listen on; 0 picks any free one.")
    ] = 8377,
    store: Annotated[
        str,
        typer.Option(
            metavar="URL",
            envvar="KMEM_STORE",
            show_envvar=False,
            help="A team's memory, as postgresql://…, or `team` for the configured one. Default: KMEM_STORE, else this machine.",
        ),
    ] = "",
    tls_cert: Annotated[Path | None, typer.Option("--tls-cert", metavar="FILE", help="Certificate chain, for https.")] = None,
    tls_key: Annotated[Path | None, typer.Option("--tls-key", metavar="FILE", help="Its private key.")] = None,
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="A proxy of yours is in front, provides TLS and sets X-Forwarded-For.")
    ] = False,
    name: Annotated[
        list[str] | None, typer.Option("--name", metavar="HOST", help="A name that clients call this server by. May be repeated.")
    ] = None,
    origin: Annotated[
        list[str] | None,
        typer.Option("--origin", metavar="URL", help="A web page's origin that may send requests. May be repeated."),
    ] = None,
    prefix: Annotated[
        str, typer.Option(metavar="PATH", help="Put before /mcp; `random` makes one that cannot be guessed, and keeps it.")
    ] = "",
    migrate: Annotated[bool, typer.Option("--migrate", help="Migrate the tables of --store to this version, and exit.")] = False,
    rate: Annotated[
        float, typer.Option(metavar="N", min=0.1, max=1_000_000, help="Requests per second that each token may make.")
    ] = 20.0,
    tools: Annotated[Tools, typer.Option(help=_TOOLS_HELP)] = Tools.DAILY,
) -> None:
    """Serve MCP over HTTP, for several agents or a team. Every request needs a token, on this machine too.

    On loopback, a token for your own agents is created and kept in a file; create others with `kmem token create`. Any other
    address needs TLS, or a proxy that provides it.

    Example: kmem serve --port 8377
    """
    from kite_memory.cli.serving import ServeOptions, run

    if migrate:
        if not store:
            raise UsageError("--migrate is for a team's store", hint="give its --store too, or KMEM_STORE")
        from kite_memory.wiring.team import migrate_store

        migrate_store(configuration.load(), store, print_message)
        print_message("the store is at this version")
        return
    wanted = ServeOptions(
        host=host,
        port=port,
        store=store,
        certificate=tls_cert,
        key=tls_key,
        behind_proxy=behind_proxy,
        names=tuple(name or ()),
        origins=tuple(origin or ()),
        prefix=prefix,
        rate=rate,
        everything=tools is Tools.ALL,
    )
    _only_our_own_words()
    run(configuration.load(), wanted, report=_report, tell=print_message)


def connect(
    agent: Annotated[
        str,
        typer.Option(
            metavar="AGENT",
            help="claude-code, codex, gemini-cli, cursor, cline, roo, vscode or opencode; without it, list all agents.",
        ),
    ] = "",
    remove: Annotated[bool, typer.Option("--remove", help="Remove exactly what was added.")] = False,
    project: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Put the two lines into this project's CLAUDE.md, AGENTS.md or GEMINI.md instead of your own."
        ),
    ] = None,
    no_lines: Annotated[bool, typer.Option("--no-lines", help="Do not add the two lines of instructions.")] = False,
    no_commands: Annotated[
        bool, typer.Option("--no-commands", help="Do not add /remember, /forget, /why and /resume-work.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the change.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the list of agents as JSON.")] = False,
) -> None:
    """Register the MCP server with an agent.

    The server is added to the agent's settings, and two lines to the instructions that it reads. Claude Code, Codex and Gemini
    CLI also get commands such as /remember. The changes are shown first and backups are kept; everything else stays as it is.

    Example: kmem connect --agent claude-code --dry-run
    """
    settings = configuration.load()
    if agent and as_json:
        raise UsageError("--json is for the list of all agents", hint="leave out --agent, or --json")
    if as_json:
        print_json(
            {
                "agents": [
                    {
                        "agent": each.agent.name,
                        "installed": each.installed,
                        "connected": each.connected,
                        "instructed": each.instructed,
                        "settings": str(each.agent.settings),
                    }
                    for each in standings(settings)
                ]
            }
        )
        return
    if not agent:
        for each in standings(settings):
            said = "connected" if each.connected else "not connected" if each.installed else "not found"
            said += ", with instructions" if each.instructed else ""
            print_data(f"{each.agent.name:<12}  {said:<13}  {short_path(each.agent.settings)}")
        print_message("`kmem connect --agent NAME` shows what it would add, and asks")
        return
    chosen = connection(agent, places(settings))
    folder = None if project is None else project.expanduser().absolute()
    if folder is not None and not folder.is_dir():
        raise UsageError(f"there is no folder {folder}")
    if not remove and plugin_of(chosen, settings):
        print_message(f"{chosen.title}: the plugin brings the server and the commands already")
    todo = steps(chosen, settings, remove=remove, lines=not no_lines, project=folder, with_commands=not no_commands)
    if dry_run:
        show(chosen, todo)
    elif not carry_out(chosen, todo, settings, yes=yes):
        raise (
            KiteError("nothing was changed")
            if is_interactive()
            else UsageError("nothing was changed", hint="--yes agrees without asking")
        )
    if not remove and not no_lines and folder is None and chosen.instructions is None:
        print_message(
            f"{chosen.title} has no instructions of your own; --project FOLDER puts the lines into a project's {chosen.in_project}"
        )


@token.command("create", cls=Command)
def create_token(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Who it is for; recorded as the author of what it writes.")],
    scope: Annotated[
        list[str] | None,
        typer.Option("--scope", metavar="SCOPE", help="global, project, session or shared; all without it. May be repeated."),
    ] = None,
    project: Annotated[
        list[str] | None, typer.Option("--project", metavar="PROJECT", help="A name, or a folder; all without it. May be repeated.")
    ] = None,
    person: Annotated[
        str,
        typer.Option(
            metavar="PERSON",
            help="Whose global memories it reaches, the same for all tokens of that person; without it, NAME's.",
        ),
    ] = "",
    read_only: Annotated[bool, typer.Option("--read-only", help="It may read but not write.")] = False,
    expires: Annotated[str, typer.Option(metavar="AGE", help="How long it is valid, such as 90d or 12h; or never.")] = "90d",
) -> None:
    """Create a token for `kmem serve` and print it once. Anything outside its scopes and projects is invisible to it.

    Scopes: global memories belong to a person, shared ones to the team. This machine's vault has only its owner's global
    memories: a token without --person reaches them, and one with --person does not.

    Example: kmem token create laptop --project mycelia --read-only --expires 30d
    """
    from kite_memory.text.display import duration

    ends = None if expires == "never" else datetime.now(UTC) + duration(expires)
    scopes = None if not scope else [_scope(each) for each in scope]
    projects = None if not project else sorted({name for each in project for name in _projects(each)})
    tokens = _tokens()
    try:
        made, kept = tokens.create(name, write=not read_only, scopes=scopes, projects=projects, expires=ends, person=person)
    finally:
        tokens.close()
    print_data(made)
    print_message(f"{kept.name}: {_reach(kept)}, {_end(kept)}")
    for line in _global_and_states(kept):
        print_message(line)
    print_message("it is not shown again; agents send it as `Authorization: Bearer …`")


@token.command("list", cls=Command)
def list_tokens(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the tokens, what each may reach and when it expires. The secrets themselves are not shown.

    Example: kmem token list
    """
    tokens = _tokens()
    try:
        known = tokens.all()
    finally:
        tokens.close()
    if as_json:
        print_json([_token_json(kept) for kept in known])
        return
    for kept in known:
        print_data(f"{kept.name}  {_reach(kept)}, {_end(kept)}")
    if not known:
        print_message("there are no tokens; `kmem token create` creates one")


@token.command("revoke", cls=Command)
def revoke_token(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name or id, as `kmem token list` shows them.")],
) -> None:
    """Revoke a token. A running server refuses it from the next request on.

    Example: kmem token revoke ci
    """
    tokens = _tokens()
    try:
        kept = tokens.revoke(name)
    finally:
        tokens.close()
    print_message(f"{kept.name} is revoked")


def _tokens() -> "Tokens":
    from kite_memory.mcp_server.tokens import Tokens

    return Tokens(configuration.load().state)


def _scope(name: str) -> "Scope":
    from kite_memory.model.note import Scope

    try:
        return Scope(name)
    except ValueError:
        raise UsageError(f"unknown scope {name!r}", hint=f"choose from: {', '.join(Scope)}") from None


def _projects(name: str) -> list[str]:
    """Return the folder's project for a path, else the project of that name, as notes name it.

    A team's notes may have the name as it is given, or as it is derived from the folder of that name: without a vault, both.
    """
    from kite_memory.app.note_view import known_project
    from kite_memory.projects import project_of
    from kite_memory.vault import Vault

    name = name.strip()
    if name.startswith((".", "~")) or "/" in name or "\\" in name:
        folder = named_folder(name)
        if not Path(folder).is_dir():
            raise UsageError(
                f"there is no folder {folder}", hint="name an existing folder, or the project by the name of its folder"
            )
        if not (project := project_of(folder)):
            raise UsageError(f"{name!r} names no project", hint="give the name of its folder")
        return [project]
    settings = configuration.load()
    ledger = settings.state / "vault.sqlite"
    if not ledger.exists():  # as on a team's server
        return list(filter(None, (name, project_of(name))))
    with Vault(settings.vault, ledger) as vault:
        return [known_project(vault.known, name)]


def _reach(kept: "StoredToken") -> str:
    scopes = "all scopes" if kept.scopes is None else ", ".join(sorted(kept.scopes))
    projects = "all projects" if kept.projects is None else ", ".join(sorted(kept.projects))
    local = "; on this machine alone" if kept.local else ""
    person = f" for {kept.person}" if kept.person else ""
    return f"{'reads and writes' if kept.write else 'reads'} {scopes} of {projects}{person}{local}"


def _global_and_states(kept: "StoredToken") -> list[str]:
    from kite_memory.model.note import Scope

    def reaches(scope: Scope) -> bool:
        return kept.scopes is None or scope in kept.scopes

    person = kept.person or kept.name
    in_the_vault = "none on this machine's vault" if kept.person else "the owner's on this machine's vault"
    whose = f"{person}'s own on a team's store, {in_the_vault}" if reaches(Scope.GLOBAL) else "none (that takes --scope global)"
    states = "" if reaches(Scope.SESSION) else "no AI state and no session memories (that takes --scope session)"
    team = "" if reaches(Scope.SHARED) else "no shared memories (that takes --scope shared)"
    return [f"global memories: {whose}", *filter(None, [states, team])]


def _end(kept: "StoredToken") -> str:
    if kept.expires is None:
        return "without end"
    return f"{'ended' if kept.expires <= datetime.now(UTC) else 'until'} {kept.expires:%Y-%m-%d %H:%M} UTC"


def _token_json(kept: "StoredToken") -> dict[str, Any]:
    return {
        "id": kept.id,
        "name": kept.name,
        "write": kept.write,
        "scopes": None if kept.scopes is None else sorted(kept.scopes),
        "projects": None if kept.projects is None else sorted(kept.projects),
        "person": kept.person,
        "local": kept.local,
        "created": kept.created.isoformat(),
        "expires": None if kept.expires is None else kept.expires.isoformat(),
        "expired": kept.expires is not None and kept.expires <= datetime.now(UTC),
    }


def _only_our_own_words() -> None:
    """Log only own messages, on stderr, where agents keep logs: messages of the SDK may quote conversations."""
    logging.getLogger().addHandler(logging.NullHandler())
    from kite_memory.log_lines import OneLine

    ours = logging.StreamHandler(sys.stderr)
    ours.setFormatter(OneLine("%(levelname)s %(name)s %(message)s"))
    log.addHandler(ours)
    log.propagate = False


def _report(error: BaseException) -> None:
    log.error("a call failed", exc_info=error)


def add_to(app: typer.Typer) -> None:
    add(app, connect, mcp, serve, panel=PANEL)
    app.add_typer(token, name="token", rich_help_panel=PANEL)
