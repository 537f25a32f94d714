"""Starting, stopping, looking after."""

import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from kite_memory import config as configuration
from kite_memory.cli import hooking
from kite_memory.cli.backend import daemon_runs, house, perform
from kite_memory.cli.console import say, say_json, tell
from kite_memory.config import Config
from kite_memory.errors import DaemonUnreachable, KiteError

PANEL = "Everyday"

_START_SECONDS = 20.0


def up(
    foreground: Annotated[bool, typer.Option("--foreground", help="Stay, and run the daemon here.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Agree to the hooks without being asked.")] = False,
    no_hooks: Annotated[bool, typer.Option("--no-hooks", help="Leave agents' settings alone.")] = False,
    since: Annotated[str, typer.Option(metavar="AGE", help="Make notes only from sessions of the last 30d, 12h, 8w.")] = "",
) -> None:
    """Set everything up and start: vault, hooks, what your agents have left so far, daemon. Again does no harm.

    Example: kmem up --since 30d
    """
    from kite_memory.agents import registry
    from kite_memory.cli.backfilling import backfill
    from kite_memory.wiring import run_daemon

    settings = configuration.load()
    if daemon_runs():
        _install_hooks(settings, registry.agents(claude_root=settings.claude_root), yes=yes, no_hooks=no_hooks)
        tell("the daemon is running")
        return
    with house() as here:
        tell(f"vault: {settings.vault}")
        _install_hooks(settings, registry.agents(claude_root=settings.claude_root), yes=yes, no_hooks=no_hooks)
        found = backfill(here, since=since)
    if not found:
        tell(f"no transcripts in {settings.claude_root} yet: notes will come with your agent's first session")
        tell("meanwhile, `kmem demo` shows what it will be like:")
        from kite_memory.cli.demo import play

        play()
    if foreground:
        tell("watching; Ctrl-C stops")
        raise typer.Exit(run_daemon(settings))
    _start(settings)
    tell("the daemon is running; `kmem service install` starts it at every log-in")


def _install_hooks(settings: Config, agents: Any, *, yes: bool, no_hooks: bool) -> None:
    if no_hooks:
        return
    for agent in agents:
        hooking.carry_out(agent, hooking.plan_install(agent), settings, yes=yes, dry_run=False)


def _start(settings: Config) -> None:
    """The daemon as a process of its own, which outlives this one; waits until it answers."""
    log = settings.state / "logs" / "start.log"
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    detached: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        detached = {"creationflags": subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP}
    with log.open("wb") as output:
        started = subprocess.Popen(
            [sys.executable, "-m", "kite_memory", "daemon"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=Path.home() if Path.home().is_dir() else "/",
            **detached,
        )
    deadline = time.monotonic() + _START_SECONDS
    while not daemon_runs():
        if started.poll() is not None or time.monotonic() > deadline:
            told = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            raise KiteError(
                f"the daemon did not start: {told[-1] if told else f'it ended with exit code {started.poll()}'}",
                hint=f"{log} says more; `kmem up --foreground` shows it as it happens",
            )
        time.sleep(0.05)


def down() -> None:
    """Stop the daemon. What has not been read yet is read when it starts again.

    Example: kmem down
    """
    from kite_memory.daemon import client

    settings = configuration.load()
    try:
        client.call(settings.state, "stop", b"", 5.0)
    except DaemonUnreachable:
        tell("no daemon is running")
        return
    deadline = time.monotonic() + 15.0
    while time.monotonic() < deadline:
        if not _held(settings.state):
            tell("the daemon has stopped")
            return
        time.sleep(0.05)
    raise KiteError("the daemon is taking long to stop", hint="it may be waiting for the model; `kmem status` tells")


def _held(state: Path) -> bool:
    from kite_memory.daemon.lock import holder

    return holder(state) is not None


def status(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show the daemon, what was read and what waits, the notes, the index, and today's costs.

    Example: kmem status
    """
    told = perform("status")
    if as_json:
        say_json(told)
        return
    daemon, notes, index, extractor = told["daemon"], told["notes"], told["index"], told["extractor"]
    if daemon["running"]:
        since = daemon["since"][:16].replace("T", " ")
        say(f"daemon     running, pid {daemon['pid']}, since {since} UTC, {daemon['rss_mb']:.0f} MB")
    else:
        say("daemon     not running; `kmem up` starts it")
    for source in told["sources"]:
        behind = f", {source['behind_bytes']:,} bytes behind" if source["behind_bytes"] else ""
        problems = f", {source['problems']} problems" if source["problems"] else ""
        say(f"source     {source['provider']}: {source['sessions']} sessions, {source['events']:,} events{behind}{problems}")
    kinds = ", ".join(f"{count} {kind}" for kind, count in notes["by_kind"].items() if count)
    say(f"notes      {notes['total']}" + (f": {kinds}" if kinds else ""))
    if notes["proposed"]:
        say(f"           {notes['proposed']} proposed, waiting for you")
    stale = f", {index['stale']} to do" if index["stale"] else ""
    say(f"index      {index['rows']} rows, {index['embedder']}{stale}")
    say(f"extractor  {extractor['name']}, {extractor['backlog_chunks']} chunks waiting{_because(extractor)}")
    if extractor["budget_usd"]:
        say(
            f"today      {extractor['calls_today']} calls, {extractor['tokens_in']:,} tokens in, {extractor['tokens_out']:,} out,"
            f" ${extractor['cost_usd']:.3f} of ${extractor['budget_usd']:.2f}"
        )
    for problem in told["problems"]:
        say(f"problem    {problem['reason']} ({problem['count']}), first in {problem['where']}")
    for note in told["last_notes"]:
        say(f"last note  {note['created'][:16].replace('T', ' ')}  {note['title']}")


def _because(extractor: dict[str, Any]) -> str:
    if not extractor["waiting_for"]:
        return ""
    until = extractor["waiting_until"]
    when = f" until {datetime.fromtimestamp(until, UTC):%Y-%m-%d %H:%M} UTC" if until else ""
    return f" ({extractor['waiting_for']}{when})"


def add_to(app: typer.Typer) -> None:
    for command in (up, down, status):
        app.command(rich_help_panel=PANEL)(command)
