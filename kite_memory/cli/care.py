"""Commands for reading, checking and repairing, and `kmem uninstall`."""

from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kite_memory import config as configuration
from kite_memory.cli.backend import alone, catch_up, daemon_runs, keep_answer, keys_at_hand, services
from kite_memory.cli.console import (
    ask,
    finish,
    is_interactive,
    print_data,
    print_error,
    print_json,
    print_json_line,
    print_message,
    print_warning,
    short_path,
    working,
)
from kite_memory.cli.main import Command, add, group
from kite_memory.config import Config
from kite_memory.errors import (
    ConfigInvalid,
    FoundSomething,
    KiteError,
    StateDamaged,
    StateNewer,
    UsageError,
    VaultMissing,
    VaultReadOnly,
)
from kite_memory.text.display import age, counted
from kite_memory.wiring.launch import unlink_commands

if TYPE_CHECKING:
    from kite_memory.wiring.services import Services

SETUP_PANEL = "Set-up"


def uninstall(yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False) -> None:
    """Remove Kite Memory from your agents and stop its daemon.

    This removes hooks, MCP servers, instructions, commands, the service and the link on the PATH. Notes and settings stay.

    Example: kmem uninstall --yes
    """
    from kite_memory.cli.everyday import down

    try:
        settings = configuration.load()
    except ConfigInvalid as error:
        settings = configuration.load_or_default()
        print_warning(KiteError(f"{error}; the default folders are taken", hint="what is in others, as your notes may be, stays"))
    if not yes and not ask("Remove Kite Memory from your agents and stop its daemon?"):
        raise (
            KiteError("nothing was changed")
            if is_interactive()
            else UsageError("nothing was changed", hint="--yes agrees without asking")
        )
    well = all([_unhook(settings), _disconnect(settings), _remove_service(settings)])
    for link in unlink_commands(Path.home()):
        print_message(f"removed {short_path(link)}")
    if daemon_runs(settings.state):
        down()
    for file, folder in _files_of_projects(settings):
        print_message(
            f"the lines in {file} of a project folder {folder} may be there still:"
            f" `kmem connect --agent {_READERS[file]} --remove --project FOLDER` removes them"
        )
    print_message(
        f"your notes stay in {short_path(settings.vault)}, the timeline and the index in {short_path(settings.state)},"
        f" settings in {short_path(settings.file)}"
    )
    if not well:
        raise typer.Exit(1)


def _unhook(settings: Config) -> bool:
    from kite_memory.agents.settings_edit import Edit
    from kite_memory.cli import setup

    well = True
    for agent in setup.hooked_agents(settings):
        try:
            if isinstance(plan := setup.plan_uninstall(agent, settings), Edit):
                setup.carry_out(agent, plan, settings, yes=True, brief=True)
        except KiteError as error:
            print_error(error)
            well = False
    return well


def _disconnect(settings: Config) -> bool:
    from kite_memory.agents.settings_edit import Edit
    from kite_memory.cli import bridging

    well = True
    for each in bridging.standings(settings):
        try:
            todo = bridging.steps(each.agent, settings, remove=True, lines=True, project=None)
            if changes := [step for step in todo if isinstance(step.plan, Edit)]:
                bridging.carry_out(each.agent, changes, settings, yes=True, brief=True)
        except KiteError as error:
            print_error(error)
            well = False
    return well


_READERS = {"CLAUDE.md": "claude-code", "AGENTS.md": "codex", "GEMINI.md": "gemini-cli"}


def _files_of_projects(settings: Config) -> list[tuple[str, str]]:
    """Return the instructions of projects to which we have ever added lines, by name and folder's name: backups hold no more."""
    from kite_memory.agents.settings_edit import names_backed_up
    from kite_memory.cli import bridging, setup

    own = {each.agent.instructions.parent.name for each in bridging.standings(settings) if each.agent.instructions is not None}
    found = (name.rpartition("-") for name in names_backed_up(setup.backups(settings)))
    return sorted((file, folder) for folder, _, file in found if file in _READERS and f".{folder}" not in own and folder not in own)


def _remove_service(settings: Config) -> bool:
    from kite_memory.daemon import service_units
    from kite_memory.wiring.daemon import service_of

    outcome = service_units.uninstall(service_of(settings)[1])
    for line in outcome.lines:
        print_message(line)
    return outcome.done


PANEL = "Care"

_READS_BY_ITSELF = "it reads by itself: `kmem status` shows how far it is; `kmem down` makes room for this"

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def backfill(
    source: Annotated[str, typer.Option(metavar="PROVIDER", help="Only transcripts of this agent, such as claude-code.")] = "",
    since: Annotated[
        str,
        typer.Option(metavar="AGE", help="Make notes only of sessions of the last 30d, 12h or 8w; others are passed over for now."),
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be read, and what notes would cost.")] = False,
    distill: Annotated[bool, typer.Option("--distill/--no-distill", help="Make notes, or only read events.")] = True,
    retry: Annotated[bool, typer.Option("--retry", help="Send chunks again that were set aside.")] = False,
    batch: Annotated[bool, typer.Option("--batch", help="Send waiting chunks in batches: half the price, within a day.")] = False,
) -> None:
    """Read every existing transcript and make notes of it. What was read before is not read again.

    Sessions that an earlier --since passed over get notes too, as far back as --since now reaches. With --retry, chunks that were
    set aside, because calls got no answer or cost too much, are sent again; this needs a running daemon. With --batch,
    Anthropic's API answers within a day, usually within an hour, at half the price; the daemon collects the answers.

    Example: kmem backfill --dry-run
    """
    settings = configuration.load()
    start = age(since, datetime.now(UTC))
    of_everything = not (source or since or dry_run or retry or batch)
    if of_everything and _nothing_is_new(settings, distill=distill):
        return
    from kite_memory.cli import backfilling

    with services() as here:
        providers = here.pipeline.providers()
        if source not in ("", *providers):
            raise UsageError(f"unknown source {source!r}", hint=f"known ones are: {', '.join(providers)}")
        if batch and not backfilling.has_batches(here):
            raise UsageError(
                f"batches need a model of Anthropic's, and the notes are written by `{here.extractor.name}`",
                hint="`kmem config set extractor.name anthropic`, and a key: `kmem keys set anthropic`",
            )
        if dry_run:
            found = backfilling.unread(here, source=source)
            backfilling.announce(here, found, distill=distill, batch=batch)
            if not found:
                print_message("all transcripts have been read" if here.timeline.files.counts() else _nothing(here))
            if distill:
                backfilling.announce_passed_over(here, here.pipeline.passed_over(since=start, provider=source), batch=batch)
                backfilling.announce_the_rest(here, found, source=source, since=start)
            return
        if retry:
            print_message(f"retrying {counted(here.outbox.retry(), 'chunk')} set aside before")
            if daemon_runs():
                _wake_daemon()
                return
        if batch and daemon_runs():
            print_message(f"{counted(here.outbox.batches.mark(), 'chunk')} will be sent in batches")
            _wake_daemon()
            return
        with alone(settings, instead=_READS_BY_ITSELF):
            whole = True
            try:
                here.init_vault()
            except (VaultMissing, VaultReadOnly) as error:
                print_warning(error)
                whole = False
            whole &= backfilling.backfill(here, source=source, since=start, distill=distill, spend=True, batch=batch)
            if not backfilling.sum_up(here):
                print_message(_nothing(here))
            answer = backfilling.answer_to_keep(here, distilled=distill) if of_everything and whole else None
    if answer is not None:  # only now that the databases are closed
        keep_answer(settings, _answer_of(distill), *answer)


def _nothing_is_new(settings: Config, *, distill: bool) -> bool:
    """Return whether a backfill would change nothing, and print then what it would print."""
    from kite_memory.app.kept_answers import kept_answer
    from kite_memory.app.survey import TranscriptSurvey
    from kite_memory.timeline.rows import ReadFiles
    from kite_memory.timeline.schema import TimelineDatabase
    from kite_memory.timeline.summaries import Sessions
    from kite_memory.wiring import sources_of

    with alone(settings, instead=_READS_BY_ITSELF):
        summary = kept_answer(settings, _answer_of(distill), datetime.now(UTC), keys=keys_at_hand(settings))
        if not summary:
            return False
        with closing(TimelineDatabase(settings.state / "timeline.sqlite")) as database:
            sources = sources_of(settings, projects=Sessions(database).folders)
            survey = TranscriptSurvey(sources=sources, files=ReadFiles(database), passed_over=tuple)
            if any(behind is not None for _, _, behind in survey.compared()):
                return False
    for line in summary:
        print_message(line)
    return True


def _answer_of(distill: bool) -> str:
    return "backfill" if distill else "backfill-without-notes"


def _nothing(here: "Services") -> str:
    return f"no transcripts found, neither in {here.config.claude_root} nor of another agent"


def doctor(
    repairs: Annotated[
        bool,
        typer.Option("--repair", help="First put `kmem` on the PATH, and correct hooks and MCP servers whose program is gone."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check for problems that keep Kite Memory from working, and suggest fixes.

    Example: kmem doctor
    """
    from kite_memory.cli.examining import examine, repair

    if repairs:
        repair()
    findings = list(examine())
    if as_json:
        print_json([finding._asdict() for finding in findings])
    else:
        for finding in findings:
            print_data(f"{finding.level:8} {finding.what}")
            if finding.hint:
                print_data(f"         {finding.hint}")
    if problems := sum(finding.level == "problem" for finding in findings):
        raise FoundSomething(f"{counted(problems, 'problem')} found")


def verify(
    accept_missing: Annotated[
        bool, typer.Option("--accept-missing", help="Accept that the missing notes were deleted on purpose.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check timeline, index and vault against each other. Finds damage, dead links, and evidence that does not exist.

    Files that were not written to since they were closed are compared with their checksums.

    Example: kmem verify
    """
    import sqlite3

    from kite_memory.cli.examining import Verifier, damaged_databases, unlike_their_checksums

    state = configuration.load().state
    found = unlike_their_checksums(state)
    try:
        with services() as here:
            if accept_missing:
                for path in here.vault.scanner.accept_disappearance().deleted:
                    print_message(f"gone for good: {path}")
                here.init_vault()
            catch_up(here)
            _wake_daemon()
            verifier = Verifier(timeline=here.timeline, recall=here.recall, vault=here.vault, saved=here.saved)
            more, hint = verifier.findings()
            found += [*damaged_databases(state), *more]
    except StateDamaged as error:
        found.append({"where": str(state), "what": str(error)})
        hint = error.hint
    except sqlite3.DatabaseError as error:
        found += [{"where": str(state), "what": str(error)}, *damaged_databases(state)]
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        closed = code in (sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)
        hint = f"see who owns it: ls -la {state}" if closed else "bring the damaged file back from a backup, or move it aside"
    if as_json:
        print_json(found)
    else:
        for each in found:
            print_data(f"{each['where']}: {each['what']}")
    if found:
        raise FoundSomething(counted(len(found), "finding"), hint=hint)
    if not as_json:
        print_message("all is well")


def _wake_daemon() -> None:
    from kite_memory.daemon import protocol

    try:
        protocol.call(configuration.load().state, "look", b"", 2.0)
    except KiteError:
        pass  # the daemon compares by itself later


def rebuild(
    timeline: Annotated[bool, typer.Option("--timeline", help="Also read every existing transcript again.")] = False,
) -> None:
    """Rebuild the index from the vault. With --timeline also the events, from the transcripts.

    The old timeline is kept beside the new one, since it alone holds transcripts that your agent has deleted meanwhile. If the
    new one cannot be built, the old one stays.

    Example: kmem rebuild
    """
    from kite_memory.cli.backfilling import read_events, unread

    settings = configuration.load()
    database = settings.state / "timeline.sqlite"
    with alone(settings, instead="`kmem down` stops it; `kmem up` starts it again afterwards"), ExitStack() as otherwise:
        damaged = timeline and not _is_whole()
        kept = _put_aside(database) if timeline else None
        if kept:
            otherwise.callback(_put_back, kept, database)
        with services() as here:
            if timeline:
                read_events(here, unread(here))
                here.pipeline.follow_timeline()
                if kept:
                    print_message(f"the old timeline is kept as {kept}")
                for count in here.timeline.files.counts():
                    print_message(f"{count.provider}: {counted(count.sessions, 'session')}, {counted(count.events, 'event')}")
            if damaged:  # the old one is unusable, whether or not the index succeeds
                otherwise.pop_all()
            _must_have_notes(here)
            with working("indexing") as progress:
                done = here.indexer.rebuild(progress=progress)
            print_message(f"{counted(done.added, 'note')} indexed")
            for problem in done.problems:
                print_message(f"note: {problem.file}: {problem.reason}")
        otherwise.pop_all()


def _is_whole() -> bool:
    """Return whether the timeline can be used as it is. Raises other errors that would prevent a rebuild before it begins."""
    import sqlite3

    try:
        with services() as here:
            if here.timeline.damage():
                return False
            _must_have_notes(here)
    except (StateDamaged, StateNewer, sqlite3.DatabaseError):  # if another database is at fault, the error is raised again later
        return False
    return True


def _must_have_notes(here: "Services") -> None:
    from kite_memory.cli.examining import BRING_BACK

    if not here.has_a_vault:
        raise VaultMissing(f"there is no vault at {here.config.vault}", hint="`kmem up` makes one")
    if frozen := here.vault.scanner.compare().frozen:  # there would be nothing to index
        raise VaultMissing(f"the index was left alone: {frozen}", hint=BRING_BACK)


def _put_back(kept: Path, database: Path) -> None:
    for suffix in ("-wal", "-shm"):  # these belong to the unfinished database
        database.with_name(database.name + suffix).unlink(missing_ok=True)
    for suffix in ("", "-wal", "-shm"):
        part = kept.with_name(kept.name + suffix)
        if part.exists():
            part.replace(database.with_name(database.name + suffix))
    print_message("the timeline was left as it was")


def _put_aside(database: Path) -> Path | None:
    """Rename the database with the files that SQLite keeps beside it, since the file alone may be incomplete."""
    if not database.exists():
        return None
    kept = database.with_name(f"{database.stem}.{datetime.now(UTC):%Y%m%dT%H%M%SZ}{database.suffix}")
    for suffix in ("", "-wal", "-shm"):
        part = database.with_name(database.name + suffix)
        if part.exists():
            part.replace(kept.with_name(kept.name + suffix))
    return kept


def logs(
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep printing new entries, until Ctrl-C.")] = False,
    level: Annotated[str, typer.Option(metavar="LEVEL", help="This level and above: debug, info, warning or error.")] = "debug",
    since: Annotated[str, typer.Option(metavar="AGE", help="Entries of the last 2h, 30d or 8w, or since a date.")] = "",
    lines: Annotated[int, typer.Option(metavar="N", min=0, help="At most this many entries, the newest.")] = 200,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object for each entry.")] = False,
) -> None:
    """Print the daemon's log. It records actions and failures, never the words of a transcript, a prompt or a note.

    Set how much is logged with `kmem config set daemon.log_level debug` (or info, warning, error).

    Example: kmem logs --level warning --since 2h
    """
    import time

    from kite_memory.log_lines import LEVELS, LogEntry, LogFile, last
    from kite_memory.wiring.daemon import daemon_log

    least = next((each for each in LEVELS if each == level.lower()), None)
    if least is None:
        raise UsageError(f"unknown level {level!r}", hint=f"choose one of: {', '.join(LEVELS)}")
    start = age(since, datetime.now(UTC))
    file = daemon_log(configuration.load())
    log = LogFile(file)

    def show(entries: list[LogEntry]) -> None:
        for entry in entries:
            if as_json:
                value = {"at": entry.at.isoformat(), "level": entry.level, "logger": entry.logger, "text": entry.text}
                print_json_line(value)
            else:
                print_data(str(entry))

    show(last(log.entries(), level=least, since=start, most=lines))
    if not file.exists():
        print_message(f"nothing was logged yet: {file} is made when a daemon starts")
    while follow:
        finish()
        time.sleep(_LOOK_AGAIN)
        show([entry for entry in log.new() if entry.is_at_least(least)])


_LOOK_AGAIN = 0.25
"""Seconds between two reads of a log that is followed."""


def demo() -> None:
    """Show two invented sessions, their notes, and what the agent is then given.

    It needs no key, network or agent, and keeps nothing.

    Example: kmem demo
    """
    from kite_memory.cli.everyday import play

    play()


extensions = group(
    help="List sources, extractors and embedders that other packages add, and check them.", example="kmem extensions list"
)


@extensions.command("list", cls=Command)
def list_extensions(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List installed extensions, and why one is not used.

    Example: kmem extensions list
    """
    import dataclasses

    from kite_memory import extensions
    from kite_memory.wiring import PROVIDERS

    found = extensions.every(Path.home(), own_state=configuration.load().state, taken=PROVIDERS)
    if as_json:
        print_json([dataclasses.asdict(each) for each in found])
        return
    for each in found:
        print_data(
            f"{each.kind} {each.name}, from {each.package} {each.version}" + (f": not used, {each.problem}" if each.problem else "")
        )
    if not found:
        print_message("no extensions are installed; docs/extending.md shows how one is made")


@extensions.command("check", cls=Command)
def check_extensions(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Only the contract of this name.")] = "",
) -> None:
    """Run the contract tests of installed extensions. Needs pytest.

    Example: kmem extensions check
    """
    from importlib.util import find_spec

    from kite_memory import extensions

    chosen = [each for each in extensions.found("contract") if name in ("", each.name)]
    if name and not chosen:
        raise UsageError(f"no extension names a contract {name!r}", hint="`kmem extensions list` shows those that are there")
    if not chosen:
        print_message("no installed extension names a contract")
        return
    if find_spec("pytest") is None:
        raise UsageError("pytest is not installed", hint="install it beside this package: `pip install pytest`")
    import pytest

    modules = sorted({each.module for each in chosen})
    raise typer.Exit(int(pytest.main(["-q", "-p", "no:cacheprovider", "--pyargs", *modules])))


def add_to(app: typer.Typer) -> None:
    add(app, uninstall, panel=SETUP_PANEL)
    add(app, backfill, logs, doctor, verify, rebuild, demo, panel=PANEL)
    app.add_typer(extensions, name="extensions", rich_help_panel=PANEL)
