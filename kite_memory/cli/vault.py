"""Commands for the whole vault: its page, its graph, import, export, and exchange with a person's other machines."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kite_memory import config as configuration
from kite_memory.cli.backend import perform, services
from kite_memory.cli.console import ask, is_interactive, print_data, print_json, print_message, print_written_json
from kite_memory.cli.main import add
from kite_memory.errors import FoundSomething, KiteError, UsageError
from kite_memory.exchange import ImportFormat
from kite_memory.model.note import Note
from kite_memory.system.private_files import replace_file
from kite_memory.text.display import counted, local_day

if TYPE_CHECKING:
    from kite_memory.web.drawing import ExportedPage
    from kite_memory.wiring.services import Services

PANEL = "Vault"


def sync(
    target: Annotated[str, typer.Argument(metavar="[FOLDER|URL]", help="A folder, or a git repository. It is remembered.")] = "",
    join: Annotated[
        str, typer.Option(metavar="KEY", help="Join machines that already exchange, with the key of one of them.")
    ] = "",
    encrypt: Annotated[bool, typer.Option("--encrypt", help="Create a folder in which everything is encrypted, with age.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be exchanged.")] = False,
    status: Annotated[bool, typer.Option("--status", help="Only show the machines, and how far each was read.")] = False,
    show_key: Annotated[bool, typer.Option("--key", help="Only print the key, for --join on another machine.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Exchange this memory with your other machines.

    The exchange uses a folder that Syncthing, Dropbox, iCloud or the like synchronises, or a git repository, given by its
    address. No server is needed. Notes, conversations, deletions and counts are exchanged. If two machines changed the same note
    independently, both versions are kept. What you forget on one machine is forgotten on all. A file that was not signed with
    your key is not read.

    Without --encrypt, a note that seems to hold a secret stays here. The line is named, so that you can take the secret out.

    Example: kmem sync --status
    """
    settings = configuration.load()
    target = whole_target(target)
    where = target or settings.sync.target
    if status or show_key:
        shown = perform("sync_status", target=where)
        if not show_key:
            shown = {name: value for name, value in shown.items() if name != "key"}
        if as_json:
            print_json(shown)
        elif show_key:
            _print_key(shown)
        else:
            _print_status(shown)
        return
    if not where:
        raise UsageError("no folder to exchange through", hint="name one: kmem sync ~/Dropbox/kmem")
    shown = perform("sync", target=where, join=join, encrypt=encrypt, dry_run=dry_run)
    if target and not dry_run and target != settings.sync.target:
        from kite_memory.cli.everyday import take_effect
        from kite_memory.cli.setup import change

        change("sync.target", target)
        take_effect(configuration.load())
    if as_json:
        print_json(shown)
    else:
        _print_exchange(shown, dry_run=dry_run)
    if shown["problems"]:
        raise FoundSomething(
            f"{counted(len(shown['problems']), 'problem')}; the rest was exchanged", hint="`kmem sync` tries again"
        )


def whole_target(target: str) -> str:
    """Return a folder's whole path: the daemon, and the next call, are in another folder."""
    from kite_memory.sync.segments import is_remote

    return target if not target or is_remote(target) else str(Path(target).expanduser().absolute())


def _print_key(report: dict[str, Any]) -> None:
    if not report["key"]:
        raise UsageError("there is no key yet", hint="`kmem sync FOLDER` makes one")
    print_data(report["key"])
    print_message("anyone who has this key can read and write this memory; on another machine: kmem sync FOLDER --join KEY")


def _print_status(status: dict[str, Any]) -> None:
    if not status["machine"]:
        print_message("this machine has exchanged nothing yet: `kmem sync FOLDER` begins")
        return
    for each in status["machines"]:
        unread = "this machine" if each["this"] else f"{counted(each['unread'], 'segment')} unread"
        print_data(f"{each['machine']}  {counted(each['segments'], 'segment')}, {each['bytes'] / 1e6:.1f} MB, {unread}")
    print_message(f"through {status['target']}")
    if status["waiting"]:
        print_message(f"{counted(status['waiting'], 'note')} not sent")


def _print_exchange(report: dict[str, Any], *, dry_run: bool) -> None:
    for path in report["copies"]:
        print_data(f"both kept   {path}")
    for path in report["trashed"]:
        print_data(f"in .trash   {path}  (changed here, deleted there)")
    for each in report.get("secrets", ()):  # an earlier daemon does not say it
        why = f"seems to hold a secret: {each['kind']}" if each["kind"] else "holds invisible characters, which may hide text"
        print_data(f"stays here  {each['path']}  (line {each['line']} {why})")
    if any(each["kind"] for each in report.get("secrets", ())):
        print_message("take the secret out of the note, or exchange through a new folder, made with --encrypt")
    for path in report.get("odd_names", ()):
        print_data(f"stays here  {path}  (not every system allows its name: rename it)")
    for problem in report["problems"]:
        print_message(f"note: {problem}")
    came, went = _summary(report["came"]), _summary(report["went"])
    print_message(f"{'would come' if dry_run else 'came'}: {came}; {'would go' if dry_run else 'went'}: {went}")
    if report["key"]:
        print_data(report["key"])
        print_message("this is the key for your other machines: kmem sync FOLDER --join KEY")


_NAMES = {
    "notes": "note",
    "renamed": "new name",
    "gone": "deletion",
    "events": "event",
    "forgotten": "forgotten line",
}


def _summary(counts: dict[str, int]) -> str:
    return ", ".join(counted(counts[name], called) for name, called in _NAMES.items() if counts[name]) or "nothing"


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


class Format(StrEnum):
    MERMAID = "mermaid"
    DOT = "dot"
    JSON = "json"


def synthesize(
    check: Annotated[bool, typer.Option("--check", help="Change nothing; exit code 3 if the page is out of date.")] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Discard what was written between the page's two marks.")] = False,
    polish: Annotated[
        bool | None,
        typer.Option("--polish/--no-polish", help="Let a model rephrase its sentences, or restore the plain ones."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Rewrite MEMORY.md, a summary of the vault on one page of at most 200 lines.

    It lists main topics, current decisions, insights, open questions and preferences. What you write above or below its two marks
    stays. With --polish a model may rephrase a sentence, within the day's budget; one that does not keep the meaning is
    discarded. Each sentence is sent once, and the page stays polished until --no-polish.

    Example: kmem synthesize
    """
    result = perform("synthesize", check=check, replace=replace, polish=polish)
    if as_json:
        print_json(result)
    elif not check:
        print_data(result["path"])
        print_message("MEMORY.md rewritten" if result["changed"] else "MEMORY.md is up to date")
        for problem in result["problems"]:
            print_message(f"note: {problem}")
        if result["refused"]:
            print_message(
                f"note: {counted(result['refused'], 'sentence')} stayed as it was: the model's version changed its meaning"
            )
    if check and result["changed"]:
        raise FoundSomething(f"{result['path']} is out of date", hint="`kmem synthesize` rewrites it")


def graph(
    note: Annotated[str, typer.Argument(metavar="NOTE", help="Only notes around this one.")] = "",
    format: Annotated[Format, typer.Option("--format", metavar="FORMAT", help="mermaid, dot or json.")] = Format.MERMAID,
    hops: Annotated[int, typer.Option(metavar="N", min=1, max=6, help="With a note: at most this many links away.")] = 1,
    project: Annotated[str, typer.Option(metavar="NAME", help="Only this project, and notes that are global.")] = "",
    limit: Annotated[
        int, typer.Option(metavar="N", min=1, max=20_000, help="At most this many notes, the most central ones.")
    ] = 200,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write to this file.")] = None,
) -> None:
    """Show which notes link to which. `kmem web` shows it in a browser.

    Example: kmem graph --format dot --out memory.dot
    """
    result = perform("graph", format=format.value, note=note, hops=hops, project=project, most=limit)
    if out is None:
        print_data(result["text"])
    else:
        try:
            out.write_text(result["text"] + "\n", encoding="utf-8")
        except OSError as error:
            raise KiteError(f"cannot write to {out}: {error.strerror}", hint="name another file with --out") from error
        print_data(str(out))
    if result["left_out"]:
        print_message(f"{counted(result['left_out'], 'note')} less central left out: --limit shows more")


def import_memory(
    path: Annotated[str, typer.Argument(metavar="PATH", help="A file or a folder of another memory; it is only read.")],
    source: Annotated[
        ImportFormat | None,
        typer.Option("--from", metavar="FORMAT", help="Its format, if the path does not show it: " + ", ".join(ImportFormat) + "."),
    ] = None,
    project: Annotated[str, typer.Option(metavar="NAME", help="The project of notes that name none.")] = "",
    trust: Annotated[
        bool, typer.Option("--trust", "--accept", help="Trust it: nothing waits for review, and notes keep the author they name.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")] = False,
    as_json: AsJson = False,
) -> None:
    """Import another memory, or a folder of notes.

    Supported are Claude Code's own memory, CLAUDE.md and similar files, claude-mem, basic-memory, mem0 and plain markdown. All
    imported notes wait for review, even those that `kmem export` wrote, since a file can claim anything about itself. Importing
    the same notes twice adds nothing.

    Example: kmem import ~/.claude/CLAUDE.md --dry-run
    """
    if not path:  # such as from an empty variable: the current folder is `.`
        raise UsageError("the path is empty", hint="name a file or a folder; `.` is the current folder")
    sort = source.value if source else ""
    actions: list[dict[str, Any]] = []
    passed: Counter[str] = Counter()
    start: int | None = 0
    while start is not None:
        batch = perform(
            "import", path=str(Path(path).absolute()), sort=sort, project=project, accepted=trust, dry_run=dry_run, start=start
        )
        actions += batch["actions"]
        passed.update({each["reason"]: each["count"] for each in batch["passed_over"]})
        start = batch["next"]
    if as_json:
        print_json({"from": batch["from"], "actions": actions, "passed_over": dict(sorted(passed.items()))})
        return
    for action in actions:
        if action["doing"] == "skip":
            passed[action["because"]] += 1
        else:
            waits = "  (waits for review)" if action["status"] == "proposed" else ""
            print_data(f"{action['doing']:7} {action['path']}{waits}")
    for reason, count in sorted(passed.items()):
        print_message(f"{count:,} passed over: {reason}")
    made = sum(action["doing"] != "skip" for action in actions)
    print_message(f"{counted(made, 'note')} {'would be ' if dry_run else ''}taken in")


def export(
    named: Annotated[Path | None, typer.Argument(metavar="FILE", hidden=True, help="The same as --out.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write to this file, whose name ends in .zip (markdown), .jsonl or .html (a page to read); - is standard output.",
        ),
    ] = None,
    project: Annotated[str, typer.Option(metavar="NAME", help="Only this project, and notes that are global.")] = "",
    html: Annotated[bool, typer.Option("--html", help="Write a page to read in a browser, whatever the name ends in.")] = False,
) -> None:
    """Write every note into one file that other programs can read.

    The page format holds the newest notes, at most 8 MB of them, with the latest sessions and the graph, and loads nothing from
    elsewhere. Whatever cannot be exported is listed, and the exit code is then 1.

    Example: kmem export --out memory.zip
    """
    from kite_memory.app.note_view import project_with_notes
    from kite_memory.exchange.foreign import jsonl, zipped

    file = out or named
    if file is None or (out is not None and named is not None):
        raise UsageError(
            "name the file to write" if file is None else "two files are named", hint="as in: kmem export --out memory.zip"
        )
    html = html or file.suffix == ".html"
    if html and str(file) == "-":
        raise UsageError("a page goes into a file", hint="as in: kmem export --html --out memory.html")
    if not html and str(file) != "-" and file.suffix not in (".zip", ".jsonl"):
        raise UsageError(f"cannot tell what {file} should be", hint="give it a name that ends in .zip, .jsonl or .html")
    notes: list[Note] = []
    files: list[tuple[str, datetime, bytes]] = []
    as_it_is = file.suffix == ".zip" and not project
    good: set[str] = set()
    taken_unread: set[str] = set()
    with services() as here:
        if here.has_a_vault:
            here.vault.scanner.compare()  # otherwise newer files would be unknown
        if project:
            project = project_with_notes(here.vault.known, project)
        for entry in here.vault.notes.entries():
            note, data = here.vault.notes.read(entry.path), here.vault.notes.raw(entry.path)
            if data is None or (note is None and not as_it_is):
                continue
            (taken_unread if note is None else good).add(entry.path)
            if project and (note is None or note.project not in ("", project)):
                continue
            files.append((entry.path, datetime.fromtimestamp(entry.mtime_ns / 1e9, UTC), data))
            notes += [note] if note is not None else []
        problems = [problem for problem in here.vault.notes.problems() if problem.file not in good]
        page = _page(here, notes, project) if html else None
    if str(file) == "-":
        if notes:
            print_written_json(jsonl(notes).decode().rstrip("\n"))
    else:
        try:
            data = page.data if page else zipped(files) if file.suffix == ".zip" else jsonl(notes)
            replace_file(file.absolute(), data)
        except OSError as error:
            raise KiteError(f"cannot write to {file}: {error.strerror}", hint="name another file with --out") from error
        print_data(str(file))
        print_message(counted(page.notes if page else len(notes), "note"))
        if page and page.left_out:
            print_message(f"{counted(page.left_out, 'older note')} left out of the page: .zip takes them all")
    for problem in problems:
        what = "in it as it is" if problem.file in taken_unread else "left out"
        print_message(f"{what}: {problem.file}: {problem.reason}")
    if left_out := {problem.file for problem in problems} - taken_unread:
        what = f"the export is incomplete: {counted(len(left_out), 'file')} could not be read"
        raise KiteError(what, hint="repair or move them, then export again")


def _page(here: "Services", notes: Sequence[Note], project: str) -> "ExportedPage":
    from kite_memory.text.quoting import plain, plain_line
    from kite_memory.web.drawing import document  # imports Jinja

    sessions = here.operations.perform("timeline", {"project": project, "limit": 300})["sessions"]
    listed = [
        {
            "id": note.id,
            "path": note.path,
            "kind": note.kind.value,
            "title": plain_line(note.title),
            "project": plain_line(note.project),
            "status": note.status.value,
            "created": note.created.isoformat(),
            "body": plain(note.body),
        }
        for note in notes
    ]
    return document(listed, sessions=sessions, around=here.operations.perform("around", {"limit": 40}), now=datetime.now(UTC))


def consolidate(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")] = False,
    months: Annotated[int, typer.Option(metavar="N", min=1, max=1_200, help="Fold journals older than this many months.")] = 6,
    as_json: AsJson = False,
) -> None:
    """Tidy up the vault; `kmem undo` reverts it.

    It merges notes that repeat each other, archives outdated ones, folds old journals, links notes about the same thing, and asks
    in review about notes that have become long. Archived notes are no longer given or listed, but a search still finds them.
    Notes that you have edited are only added to. MEMORY.md is rewritten at the end. The daemon does the same once a day when it
    is idle.

    Example: kmem consolidate --dry-run
    """
    report = perform("consolidate", dry_run=dry_run, months=months)
    if as_json:
        print_json(report)
        return
    for step in report["steps"]:
        print_data(f"{step['doing']:8} {step['path']}  ({step['why']})")
    for path in report["left_alone"]:
        print_message(f"left alone, since it has just been changed: {path}")
    page = "MEMORY.md is out of date" if dry_run else "MEMORY.md is written anew"
    if report["page"]:
        print_message(page)
    if dry_run:
        for each in report["weak"]:
            print_data(f"weak     {each['path']}")
        print_message(f"{counted(len(report['steps']), 'step')} would be done")
        if report["weak"]:
            print_message(f"{counted(len(report['weak']), 'note')} of little worth: `kmem review --all` goes through them first")
    else:
        asks = any(step["doing"] == "split" for step in report["steps"])
        print_message(
            f"{counted(report['done'], 'step')} done"
            + ("; `kmem undo` takes it back" if report["done"] else "")
            + ("; `kmem review` divides what is long" if asks else "")
        )
    if report["git"]:
        print_message(f"git: {report['git']}")


def undo(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be reverted.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Revert the last consolidation, except where you have written since.

    On a terminal you are shown what that is, and asked. Run it again to revert the one before it, up to a month back.

    Example: kmem undo --dry-run
    """
    if dry_run or (is_interactive() and not (yes or as_json)):
        planned = perform("undo", dry_run=True)
        if dry_run and as_json:
            print_json(planned)
            return
        reverts = planned["steps"] or planned["page"]
        if dry_run or reverts or not planned["at"]:
            _print_to_undo(planned)
        if dry_run or not planned["at"]:
            return
        if reverts and not ask("Revert this?"):
            raise KiteError("nothing was reverted")
    report = perform("undo")
    if as_json:
        print_json(report)
        return
    for path in report["left_alone"]:
        print_message(f"left alone, since it has been changed meanwhile: {path}")
    if report["page"]:
        print_message("MEMORY.md is as it was")
    print_message(
        f"{counted(report['undone'], 'step')} taken back" if report["undone"] or report["page"] else "there is nothing to take back"
    )
    if report["git"]:
        print_message(f"git: {report['git']}")


def _print_to_undo(planned: dict[str, Any]) -> None:
    for step in planned["steps"]:
        for change in step:
            print_data(f"{'remove' if change['removed'] else 'revert':8} {change['path']}")
    for path in planned["left_alone"]:
        print_message(f"would be left alone, since it has been changed meanwhile: {path}")
    if planned["page"]:
        print_message("MEMORY.md would be as it was")
    if planned["steps"] or planned["page"]:
        print_message(f"{counted(len(planned['steps']), 'step')} of {local_day(planned['at'])} would be taken back")
    else:
        print_message("there is nothing to take back")


def add_to(app: typer.Typer) -> None:
    add(app, synthesize, graph, consolidate, undo, export, panel=PANEL)
    add(app, import_memory, panel=PANEL, name="import")
    add(app, sync, panel=PANEL)
