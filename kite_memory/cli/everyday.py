"""Commands for starting, stopping and checking the daemon."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kite_memory import __version__, paths
from kite_memory import config as configuration
from kite_memory.app.launch import daemon_command, daemon_environment
from kite_memory.cli.backend import alone, daemon_runs, daemon_version, perform, services
from kite_memory.cli.console import complain, counted, say, say_json, tell
from kite_memory.cli.first_run import hook_agents, link_kmem, show_first_notes
from kite_memory.cli.help import add
from kite_memory.config import Config, EmbedderConfig, ExtractorConfig
from kite_memory.daemon.client import DaemonSilent
from kite_memory.distill.scheduler import Asked
from kite_memory.errors import ConfigInvalid, DaemonRunning, DaemonUnreachable, KiteError, VaultMissing, VaultReadOnly
from kite_memory.system.private_files import make_private_folder
from kite_memory.text.ages import age

if TYPE_CHECKING:
    from kite_memory.wiring.services import Services


_SESSION = "d3300000-0000-4000-8000-{:012d}"
_START = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)

_FIRST = (
    (
        "user",
        "Let's use PostgreSQL instead of SQLite for the job queue, because SQLite's single-writer lock stalls the workers.",
    ),
    (
        "assistant",
        "Decided: the job queue moves to PostgreSQL, because its row-level locks let the workers write side by side."
        " I rejected SQLite since its single-writer lock stalled them.",
    ),
    ("user", "And always run the linter from the src folder, never from the repository root: the config is only found there."),
    ("assistant", "Understood. I will run the linter from src from now on."),
)
_SECOND = (
    ("user", "The worker tests hang in CI. Find out why."),
    (
        "assistant",
        "The root cause was the connection pool: its size was 1, so the second worker waited for ever in `acquire()`."
        " Raising `POOL_SIZE` to 8 fixed the hanging tests.",
    ),
)

_PROMPTS = (
    "which database should the job queue migration target?",
    "the worker tests hang again, in acquire",
    "write a haiku about the sea",
)


def play() -> None:
    """Print a transcript, its notes and an injection. Nothing is kept."""
    from kite_memory.wiring.services import open_services

    with tempfile.TemporaryDirectory(prefix="kmem-demo-", ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        project = home / "mycelia"
        (project / ".git").mkdir(parents=True)
        config = Config(
            file=home / "config.toml",
            state=home / "state",
            vault=home / "memory",
            claude_root=home / "claude",
            extractor=ExtractorConfig(name="offline"),
            embedder=EmbedderConfig(name="local"),
        )
        say("1. An agent leaves transcripts behind:")
        leave_transcripts(config.claude_root, project)
        for role, text in (*_FIRST, *_SECOND):
            say(f"   {role:>9}: {text}")
        with open_services(config) as services:
            services.init_vault()
            services.pipeline.ingest_many([(source, path) for source, path, _ in services.pipeline.unread()])
            services.pipeline.open_sessions()
            services.pipeline.form_chunks()
            while isinstance(services.pipeline.distil(), Asked):
                pass
            say()
            say("2. Notes appear in the vault, each with its evidence:")
            for entry in services.vault.entries():
                note = services.vault.read(entry.path)
                if note is not None and note.evidence:
                    say(f"   {note.path}  ({note.kind}, evidence {note.evidence[0]})")
            say()
            say("3. Later prompts are given what helps, or nothing:")
            for prompt in _PROMPTS:
                answer: dict[str, Any] = services.operations.recall(prompt=prompt, cwd=str(project))
                say(f"   > {prompt}")
                for line in answer["block"].splitlines() or [f"(silence: {answer['reason']})"]:
                    say(f"     {line}")


def leave_transcripts(root: Path, project: Path) -> None:
    """Write transcripts as Claude Code would after two sessions in ``project``."""
    for number, turns in enumerate((_FIRST, _SECOND)):
        _write(root, project, number, turns)


def _write(root: Path, project: Path, number: int, turns: tuple[tuple[str, str], ...]) -> None:
    session = _SESSION.format(number + 1)
    lines = []
    for turn, (role, text) in enumerate(turns):
        lines.append(
            json.dumps(
                {
                    "type": role,
                    "uuid": f"{number + 1:04x}{turn + 1:04x}-0000-4000-8000-000000000000",
                    "parentUuid": None,
                    "sessionId": session,
                    "cwd": str(project),
                    "gitBranch": "main",
                    "version": "2.1.328",
                    "isSidechain": False,
                    "userType": "external",
                    "timestamp": (_START + timedelta(days=number, minutes=turn)).isoformat().replace("+00:00", "Z"),
                    "message": {
                        "role": role,
                        "content": text if role == "user" else [{"type": "text", "text": text}],
                    },
                }
            )
        )
    folder = root / "projects" / "-mycelia"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{session}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


_SECONDS = 20.0
_LOG_SHOWN = 1 << 16


def start(settings: Config) -> None:
    """Start the daemon, and return when it answers. Raises `KiteError` with its last output if it does not."""
    log = settings.state / "logs" / "start.log"
    make_private_folder(log.parent)
    detached: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        detached = {"creationflags": subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP}
    with os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as output:
        started = subprocess.Popen(
            daemon_command(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, **daemon_environment(settings)},
            cwd=Path.home() if Path.home().is_dir() else "/",  # keeps no folder of the user in use
            **detached,
        )
    deadline = time.monotonic() + _SECONDS
    while not _answers():
        if started.poll() is not None or time.monotonic() > deadline:
            raise _failure(log, started.poll())
        time.sleep(0.05)


def _answers() -> bool:
    try:
        return daemon_runs()
    except DaemonSilent:  # running, but not ready yet
        return False


def _failure(log: Path, code: int | None) -> KiteError:
    with log.open("rb") as file:
        told = file.read(_LOG_SHOWN).decode("utf-8", "replace").splitlines()
    said = {word: line.partition(": ")[2] for line in told for word in ("error", "hint") if line.startswith(f"{word}: ")}
    reason = said.get("error") or ("it takes too long" if code is None else f"it ended with exit code {code}")
    return KiteError(f"the daemon did not start: {reason}", hint=said.get("hint") or f"`kmem up --foreground` says more, and {log}")


PANEL = "Everyday"

_STOP_SECONDS = 15.0
_ENDING = "taskkill /F /PID" if sys.platform == "win32" else "kill"


def up(
    foreground: Annotated[bool, typer.Option("--foreground", help="Stay, and run the daemon here.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Agree to the hooks without being asked.")] = False,
    no_hooks: Annotated[bool, typer.Option("--no-hooks", help="Leave agents' settings alone.")] = False,
    since: Annotated[
        str, typer.Option(metavar="AGE", help="Make notes only from sessions of the last 30d, 12h or 8w; others are passed over.")
    ] = "",
) -> None:
    """Set everything up and start. That is vault, hooks, what your agents have left so far, and the daemon.

    Again does no harm.

    Example: kmem up --since 30d
    """
    from kite_memory.cli.choosing import choose_model

    settings = configuration.load()
    start_at = age(since, datetime.now(UTC))
    if (version := daemon_version()) is not None:
        if foreground:
            raise DaemonRunning("the daemon is running already", hint="`kmem down` stops it")
        whole = no_hooks or hook_agents(settings, yes=yes)
        if version != __version__:
            tell(f"the daemon is of version {version or 'unknown'}, this is {__version__}: restarting it")
            restart(settings)
        tell("the daemon is running")
    else:
        with alone(settings, instead=""), services() as here:
            whole = _laid_out(here)
            whole &= no_hooks or hook_agents(settings, yes=yes)
            if not (chosen := choose_model(here, yes=yes)):
                _take_in(here, start_at)
        if chosen:
            settings = configuration.load()
            with alone(settings, instead=""), services() as here:
                _take_in(here, start_at)
        if foreground:
            from kite_memory.daemon.lock import DaemonLock
            from kite_memory.wiring.daemon import run_daemon

            tell("watching; Ctrl-C stops")
            with DaemonLock.take(settings.state) as lock:
                raise typer.Exit(run_daemon(settings, lock))

        start(settings)
        tell("the daemon is running; `kmem service install` starts it at every log-in")
    if not whole:
        raise typer.Exit(1)


def restart(settings: Config) -> None:
    """Stop the running daemon and start it again."""
    _stop(settings.state)
    if daemon_version() is None:  # otherwise its service manager has started it
        start(settings)


def _laid_out(here: "Services") -> bool:
    """Make the vault. Without one everything else works: what is read waits."""
    from kite_memory.cli.examining import unwritable

    try:
        here.init_vault()
        if refusal := unwritable(here.config.vault):
            raise refusal
    except (VaultMissing, VaultReadOnly) as error:
        complain(error)
        return False
    tell(f"vault: {here.config.vault}")
    return True


def _take_in(here: "Services", since: datetime | None) -> None:
    if _read_what_is_there(here, since):
        show_first_notes(here)
    link_kmem()


def _read_what_is_there(here: "Services", since: datetime | None) -> bool:
    """Read existing transcripts, and return whether these are the first."""
    from kite_memory.cli.backfilling import backfill, sum_up

    first = not any(count.sessions for count in here.timeline.counts())
    backfill(here, since=since, take_up=since is not None)  # otherwise a new start would undo --since
    if sum_up(here):
        return first
    tell(f"no transcripts in {here.config.claude_root} yet: notes will come with your agent's first session")
    tell("meanwhile, `kmem demo` shows what it will be like:")
    play()
    return False


def down() -> None:
    """Stop the daemon. What has not been read yet is read when it starts again.

    Example: kmem down
    """
    from kite_memory.daemon import client
    from kite_memory.daemon.lock import holder

    state = _state()
    try:
        _stop(state)
    except (DaemonUnreachable, client.DaemonSilent):
        pid = holder(state)
        if pid is not None:
            raise KiteError(
                f"process {pid} is at work here and takes no requests",
                hint=f"it is another kmem command, or a daemon that hangs; `{_ENDING} {pid}` ends it, and nothing is lost",
            ) from None
        tell("no daemon is running")
        return
    tell("the daemon has stopped")


def _stop(state: Path) -> None:
    """Stop the daemon, and wait until it has ended."""
    from kite_memory.daemon import client
    from kite_memory.daemon.lock import holder

    client.call(state, "stop", b"", 5.0)
    deadline = time.monotonic() + _STOP_SECONDS
    while time.monotonic() < deadline:
        if holder(state) is None:
            return
        time.sleep(0.05)
    raise KiteError("the daemon is taking long to stop", hint="it may be waiting for the model; `kmem status` tells")


def _state() -> Path:
    """Return the state folder even if the configuration is invalid: only the environment sets it."""
    try:
        return configuration.load().state
    except ConfigInvalid:
        return Path(paths.state_dir()).absolute()


def status(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show the daemon, what was read and what waits, the notes, and today's costs.

    Example: kmem status
    """
    told = perform("status")
    if as_json:
        say_json(told)
        return
    notes, index, extractor = told["notes"], told["index"], told["extractor"]
    say(f"daemon     {_daemon(told['daemon'])}")
    for folder, why in told["daemon"].get("unwatched", {}).items():
        say(f"           {folder} is looked at now and then only: {why}")
    used = [source for source in told["sources"] if source["there"] or source["events"]]
    for source in used:
        more = "more than " if source["more"] else ""
        files = f", {source['read']:,} of {more}{counted(source['found'], 'file')} read" if source["read"] < source["found"] else ""
        behind = f", {more}{counted(source['behind_bytes'], 'byte')} behind" if source["behind_bytes"] else ""
        problems = f", {counted(source['problems'], 'problem')}" if source["problems"] else ""
        read = f"{counted(source['sessions'], 'session')}, {counted(source['events'], 'event')}"
        say(f"source     {source['provider']}: {read}{files}{behind}{problems}")
    if not used:
        say("source     none: no agent has left transcripts here")
    kinds = ", ".join(f"{count} {kind}" for kind, count in notes["by_kind"].items() if count)
    say(f"notes      {notes['total']}" + (f": {kinds}" if kinds else ""))
    if notes["to_review"]:
        say(f"           {notes['to_review']} to review, waiting for you: `kmem review`")
    if notes["keyed"]:
        say(f"           {notes['keyed']} under a key")
    stale = f", {index['stale']} to do" if index["stale"] else ""
    say(f"index      {counted(index['rows'], 'row')}, {index['embedder']}{stale}")
    say(f"extractor  {extractor['name']}, {counted(extractor['backlog_chunks'], 'chunk')} waiting{_because(extractor)}")
    if extractor["waiting_for"] and extractor["hint"]:
        say(f"           {extractor['hint']}")
    for reason, count in extractor["set_aside"].items():
        say(f"           {counted(count, 'chunk')} set aside ({reason}); `kmem backfill --retry` asks again")
    if extractor["open_sessions"] and not told["daemon"]["running"]:
        say(f"           {counted(extractor['open_sessions'], 'session')} that notes are still to be made of")
    if passed_over := extractor["passed_over_sessions"]:
        say(f"           {counted(passed_over, 'session')} passed over as too old; `kmem backfill` makes notes of them")
    if refused := extractor["refused_items"]:
        most = sorted(refused.items(), key=lambda each: (-each[1], each[0]))[:_REASONS]
        rest = sum(refused.values()) - sum(count for _, count in most)
        told_of = [f"{count} {reason}" for reason, count in most] + ([f"{rest} for other reasons"] if rest else [])
        say(f"gate       {', '.join(told_of)}")
    if extractor["budget_usd"]:
        tokens = f"{extractor['tokens_in']:,} tokens in, {extractor['tokens_out']:,} out"
        dollars = f"${extractor['cost_usd']:.3f} of ${extractor['budget_usd']:.2f}"
        say(f"today      {counted(extractor['calls_today'], 'call')}, {tokens}, {dollars}")
    for line in _usage_lines(told["helping"]):
        say(line)
    for problem in told["problems"]:
        say(f"problem    {problem['reason']} ({problem['count']}), first in {problem['where']}")
    for note in told["last_notes"]:
        say(f"last note  {note['created'][:16].replace('T', ' ')}  {note['title']}")


_REASONS = 4
"""Limit of reasons in a line why notes were not made, or only proposed."""


def _daemon(told: dict[str, Any]) -> str:
    if told["running"]:
        since = told["since"][:16].replace("T", " ")
        version = told.get("version", "")
        other = "" if version == __version__ else f"; it is of version {version or 'unknown'}, `kmem up` restarts it"
        return f"running, pid {told['pid']}, since {since} UTC, {told['rss_mb']:.0f} MB{other}"
    if told["held_by"] is not None:
        return f"not running; process {told['held_by']} is at work here"
    return "not running; `kmem up` starts it"


_MOMENTS = {
    "prompt": "with a prompt",
    "quote": "as a quote",
    "opened": "opened by the agent",
    "action": "with a tool call",
    "late": "later in a turn",
    "team": "from the team",
}


def _usage_lines(told: dict[str, Any]) -> Iterator[str]:
    """Yield a line for each week with prompts or shown notes."""
    weeks = [week for week in told["weeks"] if week["prompts"] or week["shown"]]
    for number, week in enumerate(weeks):
        parts = [counted(week["shown"], "note") + " shown" + _when(week["by_moment"])]
        if week["shown"]:
            parts += [f"{week['used']} used", f"{week['ignored']} ignored"]
            parts += [f"{week[kind]} {said}" for kind, said in (("unknown", "not known"), ("open", "open")) if week[kind]]
        silent = f"; silent on {week['silent']:,} of {counted(week['prompts'], 'prompt')}" if week["prompts"] else ""
        yield f"{'helping' if not number else '':11}{week['week']}: {', '.join(parts)}{silent}"


def _when(moments: dict[str, Any]) -> str:
    """How the notes that were given in full came, and how many titles were listed besides."""
    from kite_memory.recall.tallies import BY_TITLE  # brings numpy along

    full = {moment: words for moment, words in _MOMENTS.items() if moment in moments and moment not in BY_TITLE}
    listed = sum(moments[moment]["shown"] for moment in moments if moment in BY_TITLE)
    came = [f"{moments[moment]['shown']} {words}" for moment, words in full.items()]
    return (f" ({', '.join(came)})" if set(full) - {"prompt"} else "") + (f", {counted(listed, 'title')} listed" if listed else "")


def _because(extractor: dict[str, Any]) -> str:
    if not extractor["waiting_for"]:
        return ""
    until = extractor["waiting_until"]
    when = f" until {datetime.fromtimestamp(until, UTC):%Y-%m-%d %H:%M} UTC" if until else ""
    return f" ({extractor['waiting_for']}{when})"


def add_to(app: typer.Typer) -> None:
    add(app, up, down, status, panel=PANEL)
