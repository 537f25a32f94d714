"""Commands for starting, stopping and checking the daemon, and for its page in the browser."""

import itertools
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kite_memory import __version__, paths
from kite_memory import config as configuration
from kite_memory.cli.backend import LocalMemory, alone, daemon_runs, daemon_version, perform, services
from kite_memory.cli.console import finish, is_interactive, print_data, print_error, print_message, print_wrapped, short_path, width
from kite_memory.cli.main import add
from kite_memory.cli.results import print_status
from kite_memory.config import Config, EmbedderConfig, ExtractorConfig
from kite_memory.daemon.protocol import DaemonLock, DaemonRefused, DaemonSilent, call, holder
from kite_memory.errors import ConfigInvalid, DaemonRunning, DaemonUnreachable, KiteError, VaultMissing, VaultReadOnly
from kite_memory.system.private_files import make_private_folder, replace_file
from kite_memory.text.display import age, clip
from kite_memory.wiring.launch import daemon_command, daemon_environment

if TYPE_CHECKING:
    from kite_memory.wiring.services import Services

PANEL = "Everyday"

_OPENS = """<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={link}"><title>Kite Memory</title><a href="{link}">Open the memory</a>
"""

log = logging.getLogger("kite_memory.cli.everyday")


def web(
    port: Annotated[int, typer.Option(metavar="PORT", min=0, max=65_535, help="The port to listen on; 0 picks any free one.")] = 0,
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open a browser; only print the link.")] = False,
) -> None:
    """Read, edit and review the memory in a browser. Ctrl-C ends it.

    The page shows what was read, noted and asked today, all notes, the notes that wait for review, sessions over time, and the
    graph. It can be reached only from this machine and only with the link, which is new each time. It loads nothing from elsewhere.

    Example: kmem web
    """
    import anyio

    from kite_memory.web.server import Access, application, serve

    settings = configuration.load()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    bridge = LocalMemory(settings, makes_vault=False)
    with _listen(port) as listening:
        access = Access(port=int(listening.getsockname()[1]))
        app = application(bridge.ask, access, report=_report)

        def started(stop: Callable[[], None]) -> None:
            signal.signal(signal.SIGTERM, lambda *_: stop())
            threading.Thread(target=bridge.prepare, name="prepare", daemon=True).start()

        async def listen() -> None:
            await serve(app, listening=listening, started=started)

        import webbrowser  # brings much along

        try:
            with _link_file(settings.state, access.link, access.port) as file:
                print_data(access.link)
                finish()  # who reads a pipe would see the link only when the command ends
                print_message("open this link; Ctrl-C ends it")
                if not no_open and is_interactive() and not webbrowser.open(file.as_uri()):
                    print_message("no browser could be opened: open the link yourself")
                anyio.run(listen)
        finally:
            bridge.close()


@contextmanager
def _link_file(state: Path, link: str, port: int) -> Iterator[Path]:
    """Write a private page that leads to the link: as an argument of a browser, other users of this machine could read it.

    Its name has the port, so that one `kmem web` does not open or remove the page of another.
    """
    make_private_folder(state)
    file = state / f"web-{port}.html"
    replace_file(file, _OPENS.format(link=link).encode())
    try:
        yield file
    finally:
        file.unlink(missing_ok=True)


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server(("127.0.0.1", port), backlog=64)
    except OSError as error:
        raise KiteError(
            f"cannot listen at port {port}: {error.strerror or error}", hint="give another --port; 0 takes any that is free"
        ) from error


def _report(error: BaseException) -> None:
    log.error("a page failed", exc_info=error)


Turns = tuple[tuple[str, str], ...]
"""What was said in a session: who, and the words."""

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


def play(*, brief: bool = False) -> None:
    """Print a transcript, its notes and an injection; if ``brief``, one of each. Nothing is kept."""
    from kite_memory.distill.scheduler import ChunkHandled
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
        show = _show_beginning if brief else print_wrapped
        sessions, prompts = ((_FIRST[:2],), _PROMPTS[:1]) if brief else ((_FIRST, _SECOND), _PROMPTS)
        print_data("1. An agent leaves transcripts behind:")
        leave_transcripts(config.claude_root, project, sessions)
        for role, text in itertools.chain(*sessions):
            show(f"   {role:<9}  {text}")
        with open_services(config) as services:
            services.init_vault()
            services.pipeline.ingest_many([(source, path) for source, path, _ in services.pipeline.unread()])
            services.pipeline.open_sessions()
            services.pipeline.form_chunks()
            while isinstance(services.pipeline.distil(), ChunkHandled):
                pass
            show("")
            print_data("2. Notes appear in the vault, each with its evidence:")
            for entry in services.vault.notes.entries():
                note = services.vault.notes.read(entry.path)
                if note is not None and note.evidence:
                    show(f"   {note.path}")
                    show(f"     {note.kind}, evidence {note.evidence[0]}")
            show("")
            print_data("3. Later prompts are given what helps, or nothing:")
            for prompt in prompts:
                answer: dict[str, Any] = services.operations.perform("recall", {"prompt": prompt, "cwd": str(project)})
                print_data(f"   > {prompt}")
                for line in answer["block"].splitlines() or [f"(silence: {answer['reason']})"]:
                    show(f"     {line}")


def _show_beginning(line: str) -> None:
    if line.strip():
        print_data(clip(line, width()))


def leave_transcripts(root: Path, project: Path, sessions: Sequence[Turns] = (_FIRST, _SECOND)) -> None:
    """Write transcripts as Claude Code would after these sessions in ``project``."""
    for number, turns in enumerate(sessions):
        _write(root, project, number, turns)


def _write(root: Path, project: Path, number: int, turns: Turns) -> None:
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
_COMPARING_SECONDS = 5.0
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
    _wait_for_the_vault(settings.state)


def _wait_for_the_vault(state: Path) -> None:
    """Wait some seconds until prompts get notes: the daemon compares the vault first, which takes longer if it is large."""
    deadline = time.monotonic() + _COMPARING_SECONDS
    with suppress(DaemonSilent, DaemonUnreachable, DaemonRefused):
        while not call(state, "compared", b"", 5.0) and time.monotonic() < deadline:
            time.sleep(0.05)


def _answers() -> bool:
    try:
        return daemon_runs()
    except DaemonSilent:  # running, but not ready yet
        return False


def _failure(log: Path, code: int | None) -> KiteError:
    with log.open("rb") as file:
        log_lines = file.read(_LOG_SHOWN).decode("utf-8", "replace").splitlines()
    said = {word: line.partition(": ")[2] for line in log_lines for word in ("error", "hint") if line.startswith(f"{word}: ")}
    reason = said.get("error") or ("it takes too long" if code is None else f"it ended with exit code {code}")
    return KiteError(f"the daemon did not start: {reason}", hint=said.get("hint") or f"`kmem up --foreground` says more, and {log}")


_STOP_SECONDS = 15.0
_ENDING = "taskkill /F /PID" if sys.platform == "win32" else "kill"


def up(
    foreground: Annotated[bool, typer.Option("--foreground", help="Run the daemon in the foreground.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Add the hooks without asking.")] = False,
    no_hooks: Annotated[bool, typer.Option("--no-hooks", help="Do not change agents' settings.")] = False,
    since: Annotated[
        str, typer.Option(metavar="AGE", help="Make notes only from sessions of the last 30d, 12h or 8w; others are passed over.")
    ] = "",
) -> None:
    """Set everything up and start. This creates the vault, adds hooks, reads existing transcripts, and starts the daemon.

    It is safe to run again.

    Example: kmem up --since 30d
    """
    from kite_memory.cli.first_run import choose_model, hook_agents, link_kmem
    from kite_memory.daemon.service_units import is_installed
    from kite_memory.wiring.daemon import service_of

    settings = configuration.load()
    warn_of_a_relative_home()
    start_at = age(since, datetime.now(UTC))
    if (version := daemon_version()) is not None:
        if foreground or since:
            reason = "the daemon is running already" if foreground else "the daemon is running, and reads without --since"
            raise DaemonRunning(reason, hint="`kmem down` stops it")
        whole = no_hooks or hook_agents(settings, yes=yes)
        link_kmem()
        if version != __version__:
            print_message(f"the daemon is of version {version or 'unknown'}, this is {__version__}: restarting it")
            restart(settings)
        print_message("the daemon is running")
    else:
        with alone(settings, instead=""), services() as here:
            vault_is_ready = _laid_out(here)
            whole = vault_is_ready & (no_hooks or hook_agents(settings, yes=yes))
            summary = None if choose_model(here, yes=yes) else _read_and_summarise(here, start_at, shows=vault_is_ready)
        if summary is None:
            settings = configuration.load()
            with alone(settings, instead=""), services() as here:
                summary = _read_and_summarise(here, start_at, shows=vault_is_ready)
        link_kmem()
        if foreground:
            from kite_memory.wiring.daemon import run_daemon

            print_message("watching; Ctrl-C stops" + summary)
            with DaemonLock.take(settings.state) as lock:
                raise typer.Exit(run_daemon(settings, lock))

        manager = service_of(settings)[1]
        begin(settings, by_service=is_installed(manager))
        advice = "" if is_installed(manager) else "; `kmem service install` starts it at every log-in"
        print_message(f"the daemon is running{advice}{summary}")
    if not whole:
        raise typer.Exit(1)


def warn_of_a_relative_home() -> None:
    home = os.environ.get("KMEM_HOME", "")
    if home and not os.path.isabs(home):  # noqa: PTH117 - as `paths` reads it
        print_message(f"note: KMEM_HOME is {home}, so another folder has another memory; better: KMEM_HOME={os.path.abspath(home)}")  # noqa: PTH100


def restart(settings: Config) -> None:
    """Stop the running daemon and start it again: by its service manager, if that ran it."""
    from kite_memory.daemon.service_units import runs
    from kite_memory.wiring.daemon import service_of

    by_service = runs(service_of(settings)[1], holder(settings.state) or 0)
    _stop(settings.state)
    begin(settings, by_service=by_service)


def take_effect(settings: Config) -> bool:
    """Restart a running daemon with changed settings, else prepare an installed service for them. Return whether it was running."""
    from kite_memory.daemon.service_units import refresh
    from kite_memory.wiring.daemon import service_of

    if daemon_version() is not None:
        restart(settings)
        return True
    if sys.platform == "linux":  # launchd would start it at once, and does with what it has until `kmem up`
        refresh(*service_of(settings))
    return False


def begin(settings: Config, *, by_service: bool) -> None:
    """Start the daemon: by the service manager with what the settings now need, or without it if it does not start it."""
    from kite_memory.daemon.service_units import refresh, start_again
    from kite_memory.wiring.daemon import service_of

    if by_service:
        service, manager = service_of(settings)
        try:
            refresh(service, manager)
            if not (problem := start_again(manager)):
                _wait_until_it_answers(settings)
                return
        except KiteError as error:
            problem = str(error)
        print_message(f"note: the service manager does not start it ({problem}); `kmem service install` repairs that")
    if daemon_version() is None:  # otherwise its service manager has started it
        start(settings)


def make_room(settings: Config) -> bool:
    """Stop a daemon that the service manager does not run, since it could not start its own. Return whether there was one."""
    from kite_memory.daemon.service_units import runs
    from kite_memory.wiring.daemon import service_of

    if sys.platform == "win32" or daemon_version() is None or runs(service_of(settings)[1], holder(settings.state) or 0):
        return False
    _stop(settings.state)
    return True


def _wait_until_it_answers(settings: Config) -> None:
    deadline = time.monotonic() + _SECONDS
    while not _answers():
        if time.monotonic() > deadline:
            raise KiteError("the daemon does not answer yet", hint="`kmem logs` says why")
        time.sleep(0.05)
    _wait_for_the_vault(settings.state)


def _laid_out(here: "Services") -> bool:
    """Make the vault. Without one everything else works: what is read waits."""
    from kite_memory.cli.examining import unwritable

    try:
        here.init_vault()
        if refusal := unwritable(here.config.vault):
            raise refusal
    except (VaultMissing, VaultReadOnly) as error:
        print_error(error)
        return False
    print_message(f"vault: {short_path(here.config.vault)}")
    return True


def _read_and_summarise(here: "Services", since: datetime | None, *, shows: bool) -> str:
    """Read what is there, and return a summary of the notes if they are the first, and ``shows``."""
    from kite_memory.cli.first_run import first_summary

    return f"\n\n{first_summary(here)}" if _read_what_is_there(here, since) and shows else ""


def _read_what_is_there(here: "Services", since: datetime | None) -> bool:
    """Read existing transcripts, and return whether none had been read before."""
    from kite_memory.cli.backfilling import backfill, sum_up

    first = not any(count.sessions for count in here.timeline.files.counts())
    backfill(here, since=since, queue_skipped=since is not None)  # otherwise a new start would undo --since
    if sum_up(here):
        return first
    print_message("no transcripts yet: notes will come with your agent's first session")
    print_message("this is what it will be like, shortened; `kmem demo` plays all of it:")
    play(brief=True)
    return True


def down() -> None:
    """Stop the daemon. Transcripts written meanwhile are read when it starts again.

    Example: kmem down
    """
    from kite_memory.daemon import protocol

    state = _state()
    try:
        _stop(state)
    except (DaemonUnreachable, protocol.DaemonSilent):
        pid = holder(state)
        if pid is not None:
            raise KiteError(
                f"another kmem process (pid {pid}) is using the memory and answers no requests",
                hint=f"it is another command, or a daemon that hangs; `{_ENDING} {pid}` ends it, and nothing is lost",
            ) from None
        print_message("no daemon is running")
        return
    print_message("the daemon has stopped")


def _stop(state: Path) -> None:
    """Stop the daemon, and wait until it has ended."""
    deadline = time.monotonic() + _STOP_SECONDS
    ask_to_stop(state, deadline)
    while time.monotonic() < deadline:
        if holder(state) is None:
            return
        time.sleep(0.05)
    raise KiteError("the daemon has not stopped yet", hint="it may be waiting for the model; see `kmem status`")


def ask_to_stop(state: Path, deadline: float, *, patience: float = 5.0) -> None:
    """Ask again until the deadline if a busy daemon does not answer, since it drops requests whose callers have gone."""
    asked = False
    while True:
        try:
            call(state, "stop", b"", patience)
            return
        except DaemonSilent:
            if time.monotonic() >= deadline:
                raise
            asked = True
        except DaemonUnreachable:
            if asked and holder(state) is None:
                return
            raise


def _state() -> Path:
    """Return the state folder even if the configuration is invalid: only the environment sets it."""
    try:
        return configuration.load().state
    except ConfigInvalid:
        return Path(paths.state_dir()).absolute()


def status(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show whether the daemon runs, what is read and what waits, and today's costs.

    Example: kmem status
    """
    print_status(perform("status"), as_json=as_json)


def add_to(app: typer.Typer) -> None:
    add(app, up, down, status, web, panel=PANEL)
