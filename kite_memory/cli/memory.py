"""Finding, keeping and letting go."""

import os
import subprocess
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from kite_memory.cli.backend import perform
from kite_memory.cli.console import ask, page, say, say_json, tell
from kite_memory.errors import KiteError, UsageError

PANEL = "Memory"

NoteName = Annotated[str, typer.Argument(metavar="NOTE", help="Id, path or title of a note; a beginning will do if only one fits.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


class Mode(StrEnum):
    HYBRID = "hybrid"
    KEYWORD = "keyword"
    SEMANTIC = "semantic"


class Kind(StrEnum):
    DECISION = "decision"
    INSIGHT = "insight"
    FACT = "fact"
    PREFERENCE = "preference"
    QUESTION = "question"


def search(
    query: Annotated[list[str], typer.Argument(metavar="QUERY", help="Words, or a prefix such as decision: before them.")],
    mode: Annotated[Mode, typer.Option(help="By meaning, by words, or both.")] = Mode.HYBRID,
    project: Annotated[str, typer.Option(help="Only notes of this project, and global ones.")] = "",
    since: Annotated[str, typer.Option(metavar="AGE", help="Only notes of the last 30d, 12h or 2w, or since 2026-03-01.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=200, help="At most so many.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Find notes by meaning and by words; typing mistakes are forgiven.

    Example: kmem search "why postgres"
    """
    found = perform(
        "search", query=" ".join(query), mode=mode.value, project=project, since=since, limit=limit, cwd=str(Path.cwd())
    )
    if as_json:
        say_json(found)
        return
    for hit in found["hits"]:
        say(f"{hit['score']:.2f}  {hit['title']}  ({hit['kind']}, {hit['created'][:10]}{_of(hit['project'])})")
        say(f"      {hit['snippet']}")
        say(f"      {hit['path']}")
    for problem in found.get("problems", []):
        tell(f"note: {problem}")
    if not found["hits"]:
        tell("nothing found")


def recall(
    prompt: Annotated[str, typer.Argument(metavar="PROMPT", help="What you would type to the agent.")],
    session: Annotated[str, typer.Option(help="The agent's session: what it has been shown is not shown again.")] = "",
    cwd: Annotated[Path | None, typer.Option(help="The folder the agent works in; here, unless said.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show the candidates and what spoke for each.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show exactly what the prompt hook would give the agent, and why. Nothing is remembered of the asking.

    Example: kmem recall "which database does the job queue use?" --explain
    """
    answer = perform("recall", prompt=prompt, session=session, cwd=str((cwd or Path.cwd()).absolute()), explain=explain)
    if as_json:
        say_json(answer)
        return
    if answer["block"]:
        say(answer["block"])
    tell(answer["reason"])
    if explain:
        for candidate in answer.get("candidates", []):
            tell(f"{candidate['score']:.2f}  {candidate['title']}: {candidate['why']}")


def show(note: NoteName, as_json: AsJson = False) -> None:
    """Show a note.

    Example: kmem show "postgres over sqlite"
    """
    shown = perform("show", note=note)
    if as_json:
        say_json(shown)
        return
    say(shown["text"])


def edit(note: NoteName) -> None:
    """Open a note in $VISUAL or $EDITOR; what you write there is never overwritten.

    Example: EDITOR=nano kmem edit "postgres over sqlite"
    """
    path = perform("show", note=note)["file"]
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        raise UsageError("neither VISUAL nor EDITOR is set", hint=f"the note is {path}")
    import shlex

    _run([*shlex.split(editor), path])


def open_note(note: NoteName) -> None:
    """Open a note with whatever your desktop opens markdown with; Obsidian, if that is what you chose.

    Example: kmem open "postgres over sqlite"
    """
    path = perform("show", note=note)["file"]
    if sys.platform == "win32":
        os.startfile(path)  # noqa: S606 - the person's own note, by the person's own choice of program
    else:
        _run(["open" if sys.platform == "darwin" else "xdg-open", path])


def remember(
    text: Annotated[list[str], typer.Argument(metavar="TEXT", help="What to remember; - reads it from standard input.")],
    kind: Annotated[Kind, typer.Option(help="What sort of note it becomes.")] = Kind.FACT,
    project: Annotated[str, typer.Option(help="The project it belongs to; the one of this folder, unless said.")] = "",
    everywhere: Annotated[bool, typer.Option("--global", help="It belongs to no one project.")] = False,
    key: Annotated[str, typer.Option(help="A name to find and replace it by.")] = "",
    ttl: Annotated[str, typer.Option(metavar="AGE", help="Forget it by itself after 12h, 30d or 8w.")] = "",
    tag: Annotated[list[str] | None, typer.Option(help="A tag; may be given more than once.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write a note at once. It can be found when the command returns.

    Example: kmem remember "The staging database is reset every Monday" --kind fact
    """
    words = " ".join(text)
    if words == "-":
        words = sys.stdin.read(1 << 20)
    written = perform(
        "remember",
        text=words,
        kind=kind.value,
        project=project,
        everywhere=everywhere,
        key=key,
        ttl=ttl,
        tags=tag or [],
        cwd=str(Path.cwd()),
    )
    if as_json:
        say_json(written)
    else:
        say(written["path"])


def forget(
    note: Annotated[str, typer.Argument(metavar="NOTE", help="Id, path or title; nothing for a sweep.")] = "",
    session: Annotated[str, typer.Option(metavar="ID", help="Every note whose evidence is from this session.")] = "",
    since: Annotated[str, typer.Option(metavar="AGE", help="Every note of the last 12h, 30d, or since a date.")] = "",
    matching: Annotated[str, typer.Option(metavar="TEXT", help="Every note whose title or text holds this.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Move notes into the vault's trash, out of every index at once. They are never written again.

    Example: kmem forget "postgres over sqlite" --yes
    """
    if not (note or session or since or matching):
        raise UsageError("nothing named to forget", hint="name a note, or sweep with --session, --since or --matching")
    chosen = perform("forget", note=note, session=session, since=since, matching=matching, dry_run=True)["notes"]
    if not chosen:
        tell("nothing to forget")
        return
    sweep = len(chosen) > 1 or not note
    if sweep and not yes:
        for each in chosen:
            tell(f"{each['title']}  ({each['path']})")
        if not ask(f"Forget these {len(chosen)} notes?"):
            raise UsageError("nothing was forgotten", hint="--yes agrees without asking")
    for each in perform("forget", ids=[each["id"] or each["path"] for each in chosen])["notes"]:
        say(each["trash"])


def mute(note: NoteName, undo: Annotated[bool, typer.Option("--undo", help="Let it be shown again.")] = False) -> None:
    """Never give a note to an agent again; searching still finds it.

    Example: kmem mute "postgres over sqlite"
    """
    say(perform("mute", note=note, undo=undo)["path"])


def why(
    note: Annotated[str, typer.Argument(metavar="NOTE", help="A note; without one, what the last prompts were given.")] = "",
    last: Annotated[int, typer.Option(min=1, max=1000, help="So many prompts.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Show the lines of the transcript that a note rests on; or what the last prompts were given, and why.

    Example: kmem why --last 5
    """
    told = perform("why", note=note, last=last)
    if as_json:
        say_json(told)
    elif note:
        _print_evidence(told)
    else:
        _print_prompts(told)


def _print_evidence(told: dict[str, Any]) -> None:
    say(f"{told['title']}  ({told['path']})")
    if not told["evidence"]:
        say("no evidence: a person wrote it")
    for piece in told["evidence"]:
        say()
        say(piece["reference"])
        if not piece["events"]:
            say("  its transcript is gone, and the timeline does not hold it")
        for event in piece["events"]:
            say(f"  {event['at'][:19].replace('T', ' ')}  {event['role']}  {event['where']}")
            for line in event["text"].splitlines():
                say(f"    {line}")


def _print_prompts(told: dict[str, Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    if not told["prompts"]:
        tell("no prompt has been answered yet")
        return
    table = Table("when", "prompt", "given", "because", box=None)
    for prompt in told["prompts"]:
        given = "\n".join(f"{shown['title']} ({shown['score']:.2f})" for shown in prompt["notes"]) or "nothing"
        table.add_row(prompt["at"][:16].replace("T", " "), Text(prompt["prompt"]), Text(given), Text(prompt["reason"]))
    page().print(table)


def _of(project: str) -> str:
    return f", {project}" if project else ""


def _run(command: list[str]) -> None:
    try:
        subprocess.run(command, check=True, umask=0o022 if sys.platform != "win32" else -1)
    except FileNotFoundError as error:
        raise KiteError(f"cannot start {command[0]}", hint=f"the note is {command[-1]}") from error
    except subprocess.CalledProcessError as error:
        raise KiteError(f"{command[0]} ended with exit code {error.returncode}") from error


def add_to(app: typer.Typer) -> None:
    for command in (search, recall, show, edit, remember, forget, mute, why):
        app.command(rich_help_panel=PANEL)(command)
    app.command("open", rich_help_panel=PANEL)(open_note)
