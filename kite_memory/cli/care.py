"""Reading what is there, checking, mending."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import typer

from kite_memory import config as configuration
from kite_memory.cli.backend import daemon_runs, house
from kite_memory.cli.console import say, say_json, tell
from kite_memory.config import Config
from kite_memory.errors import DaemonRunning, FoundSomething, KiteError

PANEL = "Care"

Level = Literal["ok", "note", "problem"]


class Finding(NamedTuple):
    level: Level
    what: str
    hint: str = ""


def backfill(
    source: Annotated[str, typer.Option(metavar="PROVIDER", help="Only this agent's, as claude-code.")] = "",
    since: Annotated[str, typer.Option(metavar="AGE", help="Make notes only from sessions of the last 30d, 12h, 8w.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what there is, and what notes would cost.")] = False,
    distill: Annotated[bool, typer.Option("--distill/--no-distill", help="Make notes, or only read events.")] = True,
) -> None:
    """Read every transcript there is, and make notes of them. What was read before is not read again.

    Example: kmem backfill --dry-run
    """
    from kite_memory.cli.backfilling import backfill as read_all
    from kite_memory.daemon.lock import DaemonLock

    settings = configuration.load()
    if not dry_run and daemon_runs():
        raise DaemonRunning(
            "the daemon is running and reads by itself", hint="`kmem status` shows how far it is; `kmem down` makes room for this"
        )
    with DaemonLock.take(settings.state), house() as here:
        here.outbox.recover()
        found = read_all(here, source=source, since=since, distill=distill, dry_run=dry_run, spend=True)
        if not found:
            tell(f"no transcripts to read in {settings.claude_root}")
            return
        if not dry_run:
            for count in here.timeline.counts():
                problems = f", {count.problems} problems" if count.problems else ""
                tell(f"{count.provider}: {count.sessions} sessions, {count.events:,} events{problems}")
            tell(f"{len(here.vault.known())} notes in {settings.vault}")


def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Look for what could keep Kite Memory from working, and say what to do about it.

    Example: kmem doctor
    """
    settings = configuration.load()
    findings = [*_machine(settings), *_agents(settings), *_parts(settings)]
    if as_json:
        say_json([finding._asdict() for finding in findings])
    else:
        for finding in findings:
            say(f"{finding.level:8} {finding.what}")
            if finding.hint:
                say(f"         {finding.hint}")
    problems = sum(finding.level == "problem" for finding in findings)
    if problems:
        raise FoundSomething(f"{problems} problem{'s' if problems > 1 else ''} found")


def _machine(settings: Config) -> Iterator[Finding]:
    import shutil
    import socket

    yield Finding("ok", f"Python {sys.version.split()[0]} at {sys.executable}")
    yield Finding("ok", f"configuration: {settings.file}" + ("" if settings.file.exists() else " (not there: all defaults)"))
    if not hasattr(socket, "AF_UNIX"):
        yield Finding("note", "no unix sockets here: the daemon listens on 127.0.0.1 with a secret instead")
    if sys.platform == "win32":
        yield Finding("note", "file modes mean little on Windows: keep the vault and the state under your user folder")
    existing = next(folder for folder in (settings.state, *settings.state.parents) if folder.exists())
    free = shutil.disk_usage(existing).free
    if free < 200 << 20:
        yield Finding("problem", f"only {free / 1e6:.0f} MB free for {settings.state}", "make room: notes could not be written")
    if settings.state.exists() and sys.platform != "win32":
        open_to_others = [path for path in (settings.state, *settings.state.iterdir()) if path.stat().st_mode & 0o077]
        if open_to_others:
            yield Finding("problem", f"others can read {open_to_others[0]}", f"chmod -R go= {settings.state}")
    limit = Path("/proc/sys/fs/inotify/max_user_watches")
    if limit.exists() and int(limit.read_text(encoding="ascii")) < 8192:
        yield Finding(
            "note", "few file watches are allowed here", "raise fs.inotify.max_user_watches; until then changes are seen later"
        )


def _agents(settings: Config) -> Iterator[Finding]:
    from kite_memory.agents.registry import agents
    from kite_memory.agents.settings_edit import SettingsUnreadable, read_settings

    for agent in agents(claude_root=settings.claude_root):
        try:
            status = agent.status(read_settings(agent.settings))
        except SettingsUnreadable as error:
            yield Finding("problem", str(error), error.hint)
            continue
        if status.disabled:
            yield Finding(
                "problem", f"{agent.title}: disableAllHooks is set in {agent.settings}", "our hooks cannot run until it is unset"
            )
        elif status.missing:
            yield Finding("note", f"{agent.title}: no hook on {', '.join(status.missing)}", "`kmem hooks install` adds it")
        else:
            yield Finding("ok", f"{agent.title}: hooks are wired in {agent.settings}")
        for command in {hook.command for hook in status.hooks}:
            import shlex

            program = shlex.split(command)[0]
            if not Path(program).exists():
                yield Finding(
                    "problem", f"{agent.title}: the hook starts {program}, which is gone", "`kmem hooks install` mends it"
                )


def _parts(settings: Config) -> Iterator[Finding]:
    if daemon_runs():
        yield Finding("ok", "the daemon answers")
    else:
        yield Finding("note", "the daemon is not running: prompts are given nothing", "`kmem up` starts it")
    try:
        with house() as here:
            told = here.operations.status()
            extractor = told["extractor"]
            yield Finding("ok", f"extractor: {extractor['name']}")
            if extractor["waiting_for"]:
                yield Finding("problem", f"extractor: {extractor['waiting_for']}", extractor["hint"])
            here.embedder.embed(["a"], "query")
            yield Finding("ok", f"embedder: {told['index']['embedder']}, {told['index']['rows']} rows")
            if told["index"]["stale"]:
                yield Finding("note", f"{told['index']['stale']} passages wait to be embedded", "the daemon does that")
            for source in told["sources"]:
                yield Finding("ok", f"{source['provider']}: {source['sessions']} sessions, {source['events']:,} events")
            for problem in told["problems"]:
                yield Finding("note", f"{problem['reason']} ({problem['count']}), first in {problem['where']}")
            if here.vault.frozen:
                yield Finding(
                    "problem", f"the vault is frozen: {here.vault.frozen}", "bring the notes back, or accept that they are gone"
                )
            elif not settings.vault.is_dir():
                yield Finding("problem", f"no vault at {settings.vault}", "`kmem up` makes one")
    except KiteError as error:
        yield Finding("problem", str(error), error.hint)


def verify(
    accept_missing: Annotated[
        bool, typer.Option("--accept-missing", help="Notes that are missing were deleted on purpose.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check timeline, index and vault against each other: damage, dead links, evidence that leads nowhere.

    Example: kmem verify
    """
    from kite_memory.model.event import EvidenceReference

    found: list[dict[str, str]] = []
    with house() as here:
        if accept_missing:
            for path in here.vault.accept_disappearance().deleted:
                tell(f"gone for good: {path}")
        else:
            here.pipeline.compare_vault()
        found += [{"where": "timeline", "what": line} for line in here.timeline.damage()]
        found += [{"where": problem.file, "what": problem.reason} for problem in (*here.recall.verify(), *here.vault.problems())]
        found += [{"where": link.path, "what": f"[[{link.target}]] leads nowhere"} for link in here.vault.unresolved_links()]
        for entry in here.vault.entries():
            note = here.vault.read(entry.path)
            for text in note.evidence if note is not None else ():
                reference = EvidenceReference.parse(text)
                if reference is None or not here.timeline.evidence(reference):
                    found.append({"where": entry.path, "what": f"evidence {text} is not in the timeline"})
    if as_json:
        say_json(found)
    else:
        for each in found:
            say(f"{each['where']}: {each['what']}")
    if found:
        raise FoundSomething(
            f"{len(found)} finding{'s' if len(found) > 1 else ''}",
            hint="`kmem rebuild` makes the index anew; notes are yours to mend",
        )
    if not as_json:
        tell("all is well")


def rebuild(
    timeline: Annotated[bool, typer.Option("--timeline", help="Also read every transcript that still exists anew.")] = False,
) -> None:
    """Throw the index away and make it anew from the vault; with --timeline also the events, from the transcripts.

    Example: kmem rebuild
    """
    from kite_memory.cli.backfilling import read_events, working
    from kite_memory.daemon.lock import DaemonLock

    settings = configuration.load()
    with DaemonLock.take(settings.state):
        if timeline:
            for suffix in ("", "-wal", "-shm"):
                settings.state.joinpath(f"timeline.sqlite{suffix}").unlink(missing_ok=True)
        with house() as here:
            if timeline:
                read_events(here)
            here.vault.compare()
            with working("embedding") as progress:
                done = here.recall.rebuild(here.vault, progress=progress)
            tell(f"{done.added} notes indexed")
            for problem in done.problems:
                tell(f"note: {problem.file}: {problem.reason}")


def demo() -> None:
    """Show transcript, notes and injection on two invented sessions. Needs no key, no network, no agent, and keeps nothing.

    Example: kmem demo
    """
    from kite_memory.cli.demo import play

    play()


def add_to(app: typer.Typer) -> None:
    for command in (backfill, doctor, verify, rebuild, demo):
        app.command(rich_help_panel=PANEL)(command)
