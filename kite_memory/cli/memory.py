"""Commands for finding, storing and forgetting."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kite_memory import config as configuration
from kite_memory.cli.backend import daemon_runs, perform
from kite_memory.cli.console import (
    ask,
    is_interactive,
    named_folder,
    print_data,
    print_found_json,
    print_json,
    print_message,
    read_all,
    width,
)
from kite_memory.cli.main import add
from kite_memory.cli.results import print_evidence, print_prompts
from kite_memory.config import Config
from kite_memory.errors import KiteError, NoteNotFound, UsageError
from kite_memory.text.display import clip_line, counted, duration, local_time

if TYPE_CHECKING:
    from kite_memory.team.search import Team

Hits = list[dict[str, Any]]

SECONDS = 0.15
"""Longest wait for a team's answer."""


def team_search(config: Config, query: str, *, project: str, limit: int, seconds: float = SECONDS) -> Callable[[Hits], Hits]:
    """Start a search at the team's server. The returned function adds the results that arrived in time to local hits."""
    team = _team(config)
    if team is None:
        return lambda hits: hits
    from kite_memory.app.searching import searched_for
    from kite_memory.projects import project_of
    from kite_memory.protected import protect_process
    from kite_memory.redaction import drop_private, redact
    from kite_memory.team.search import Asking, together

    wanted = searched_for(query)
    if not wanted.notes or not wanted.words:
        return lambda hits: hits
    protect_process(config.file)  # the daemon's protection does not cover this process
    asking = Asking(
        team,
        redact(drop_private(wanted.words)),
        kinds=sorted(wanted.kinds),
        project=project_of(project) if project else "",
        limit=limit,
        seconds=seconds,
    )
    return lambda hits: together(hits, asking.hits(), limit)


def _team(config: Config) -> "Team | None":
    """Return the team's server; ``None`` unless a person's searches are to ask it and there is a token for it."""
    if config.team.ask == "off" or not config.team.bridge:
        return None
    from kite_memory.keys import keys_beside
    from kite_memory.team.search import Team

    token = keys_beside(config.file).find("team-token")
    return Team(address=config.team.bridge, token=token.value) if token is not None else None


def _of_the_team(called: str, tokens: int) -> dict[str, Any] | None:
    """Return the team's note of this id, which `search` may have listed. Nothing but an id is sent."""
    if not _ID.fullmatch(called) or (team := _team(configuration.load())) is None:
        return None
    from kite_memory.recall.rendering import shortened
    from kite_memory.team.search import note_at

    text = note_at(team, called, seconds=_OPENING_SECONDS)
    if not text:
        return None
    return {
        "id": called,
        "path": "",
        "team": True,
        "text": shortened(text, tokens=tokens, characters=len(text)) if tokens else text,
    }


_OPENING_SECONDS = 5.0
_ID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
PANEL = "Memory"

_LONGEST_TEXT = 1 << 20
_LONGEST_NOTE = 20_000
"""Limit of a note in characters, the same as for agents."""
_LINE_LENGTH = 120
_COLUMNS = {
    "score": "how near it is in all",
    "margin": "how far ahead of the next note",
    "rank": "its place among the notes",
    "meaning": "likeness in meaning",
    "words": "words in common",
    "around": "what the session was about",
    "title": "words of its title",
    "named": "names in common",
    "covered": "share of its title that the prompt says",
    "importance": "how important it was said to be",
    "question": "the prompt is a question",
    "short": "the prompt is short",
    "first": "the session has just begun",
    "paste": "the prompt is mostly pasted",
}
_SURROUNDINGS = {
    "exchange": "the agent had said",
    "prompts": "asked before",
    "files": "files in play",
    "commands": "commands run",
    "errors": "what failed",
}

NoteName = Annotated[
    str, typer.Argument(metavar="NOTE", help="Id, path or title of a note; the beginning is enough if it is unique.")
]
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
    query: Annotated[list[str], typer.Argument(metavar="QUERY", help="Words; a prefix such as decision: selects one kind.")],
    mode: Annotated[Mode, typer.Option(metavar="MODE", help="By words: keyword; by meaning: semantic; or hybrid.")] = Mode.HYBRID,
    project: Annotated[str, typer.Option(metavar="NAME", help="Only this project, and notes that are global.")] = "",
    since: Annotated[str, typer.Option(metavar="AGE", help="Only results of the last 30d, 12h, 2w, or since 2026-03-01.")] = "",
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=200, help="At most this many.")] = 10,
    explain: Annotated[bool, typer.Option("--explain", help="Show scores, and the place in the transcript.")] = False,
    as_json: AsJson = False,
) -> None:
    """Search notes and transcripts, by meaning and by words. Typing mistakes are tolerated.

    Each result is one line that ends with what opens it: `kmem show` for a note, `kmem why` for a citation. The prefixes
    decision:, insight:, fact: and preference: select notes; error:, test:, resume:, tool:NAME, file:NAME and session:ID select
    events.

    Example: kmem search "why postgres"
    """
    settings = configuration.load()
    # A team's store searches in this mode alone.
    with_the_team = team_search(settings, " ".join(query), project=project, limit=limit) if mode is Mode.HYBRID else list
    found = perform("search", query=" ".join(query), mode=mode.value, project=project, since=since, limit=limit, cwd=named_folder())
    found["hits"] = with_the_team(found["hits"])
    if any(hit.get("team") for hit in found["hits"]):
        from kite_memory.team.search import is_since, ranked

        found["hits"] = [hit for hit in found["hits"] if not since or not hit.get("team") or is_since(hit, since)]
        ranked(found["hits"], found["events"])
    if as_json:
        print_found_json(found, found=bool(found["hits"] or found["events"]))
        return
    from kite_memory.cli.results import print_found, print_search_hint

    print_found(found, explain=explain, limit=limit)
    for problem in found["problems"]:
        print_message(f"note: {problem}")
    if not (found["hits"] or found["events"]):
        print_search_hint(found, project=project, since=since)
        raise typer.Exit(1)


def recall(
    prompt: Annotated[list[str], typer.Argument(metavar="PROMPT", help="What you would type to the agent; - reads it from stdin.")],
    session: Annotated[
        str,
        typer.Option(
            metavar="ID",
            help="Treat it as the next prompt of this session: leave out notes already shown there, and consider its subject.",
        ),
    ] = "",
    cwd: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="The folder the agent works in; default: the current folder.")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show the candidates, and what each part adds to their scores.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show exactly what the prompt hook would give the agent, and why. The prompt is not recorded.

    Example: kmem recall "which database does the job queue use?" --explain
    """
    folder = named_folder(cwd)
    answer = perform("recall", prompt=_words(prompt), session=session, cwd=folder, explain=explain)
    if as_json:
        print_json(answer)
        return
    if answer["block"]:
        print_data(answer["block"])
    print_message(answer["reason"])
    if answer["for_the_judge"]:
        print_message(
            f"the judge would be asked about {counted(answer['for_the_judge'], 'note')}; its answer arrives later in the turn"
        )
    if explain:
        _print_explained(answer)
    for problem in answer["problems"]:
        print_message(f"note: {problem}")
    if not daemon_runs():
        print_message("note: no daemon is running, so the hook itself gives nothing; `kmem up` starts it")


def _print_explained(answer: dict[str, Any]) -> None:
    """Print what each part adds to the logit of each candidate's probability. Parts that add nothing are left out."""
    surroundings = answer["explained"]["query"]["surroundings"]
    for part, called in _SURROUNDINGS.items():
        parts_text = surroundings[part] if isinstance(surroundings[part], str) else " · ".join(surroundings[part])
        if parts_text:
            print_message(f"{called}: {clip_line(parts_text, _LINE_LENGTH)}")
    parts = {parts_text["id"]: parts_text["parts"] for parts_text in answer["explained"]["candidates"]}
    columns = [name for name in next(iter(parts.values()), {}) if any(round(added[name], 2) for added in parts.values())]
    if columns:
        print_message("  ".join(["    ", *(f"{name:>6}" for name in columns)]))
    for candidate in answer["candidates"]:
        added = (f"{parts[candidate['id']][name]:+{max(6, len(name))}.2f}" for name in columns if candidate["id"] in parts)
        print_message("  ".join([f"{candidate['score']:.2f}", *added, candidate["title"]]))
        print_message(f"      {candidate['why']}")
    if columns:
        known = {**_COLUMNS, "bias": "what the gate starts with"}
        meant = (f"{name}: {known[name]}" for name in columns if name in known)
        print_message("The first number is the probability that the note helps; the others are what raised (+) or lowered it (-):")
        for line in wrap("; ".join(meant), max(40, width() - 4)):
            print_message(f"    {line}")


def show(
    note: Annotated[
        list[str],
        typer.Argument(metavar="NOTE", help="A note's id or the end of it, its path or title; or the citation of a conversation."),
    ],
    tokens: Annotated[
        int, typer.Option(metavar="N", min=0, help="At most this many tokens of each; 0 shows the whole file.")
    ] = 400,
    history: Annotated[
        bool, typer.Option("--history", help="Show earlier versions of a note that has a key, newest first.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show notes as an agent sees them when it opens one.

    Example: kmem show "postgres over sqlite"
    """
    if len(note) > 1 or not (history or as_json or tokens == 0):
        if history:
            raise UsageError("one note's history at a time", hint="name one note")
        opened = perform("open", notes=note, tokens=tokens)
        theirs = {each["note"]: found for each in opened["missing"] if (found := _of_the_team(each["note"], tokens))}
        opened["notes"] += theirs.values()
        opened["missing"] = [each for each in opened["missing"] if each["note"] not in theirs]
        opened["text"] = "\n\n".join(each["text"] for each in opened["notes"])
        if as_json:
            print_json(opened)
        elif opened["text"]:
            print_data(opened["text"])
        for each in opened["missing"][:-1] if not opened["notes"] else opened["missing"]:
            print_message(f"error: {each['reason']}")
        if not opened["notes"]:
            raise NoteNotFound(opened["missing"][-1]["reason"], hint=opened["missing"][-1]["hint"])
        return
    try:
        shown = perform("show", note=note[0], history=history)
    except KiteError:
        if history or (of_team := _of_the_team(note[0], 0)) is None:
            raise
        shown = of_team | {"became": []}
    if as_json:
        print_json(shown)
    elif history:
        for version in shown["versions"]:
            print_data(f"version {version['version']}, {local_time(version['at'])}, {version['by'] or 'edited in the vault'}")
            print_data("".join(f"    {line}\n" for line in version["text"].splitlines()))
        if not shown["versions"]:
            print_message("only notes under a key keep what they said before: kmem remember --key NAME")
    else:
        print_data(shown["text"].rstrip("\n"))
        for line in shown.get("became", []):  # an older daemon does not say it
            print_message(f"note: {line}")


def edit(note: NoteName) -> None:
    """Open a note in $VISUAL or $EDITOR. Your changes are never overwritten.

    Example: EDITOR=cat kmem edit "postgres over sqlite"
    """
    path = perform("show", note=note, expired=True)["file"]
    editor = (os.environ.get("VISUAL") or os.environ.get("EDITOR") or "").strip()
    if not editor:
        raise UsageError("neither VISUAL nor EDITOR is set", hint=f"the note is {path}")
    try:
        words = editor_words(editor, windows=sys.platform == "win32")
    except ValueError as error:
        raise UsageError(f"the editor {editor!r} cannot be started: {error}", hint=f"the note is {path}") from error
    _run([*words, path])


def editor_words(editor: str, *, windows: bool) -> list[str]:
    """Split a command as a shell does. On Windows ``\\`` separates folders, and a program's whole path needs no quotes.

    Raises `ValueError` for an unclosed quote.
    """
    import shlex

    if not windows:
        return shlex.split(editor)
    if Path(editor).is_file():
        return [editor]
    program, *words = (word.strip("\"'") for word in shlex.split(editor, posix=False))
    return [shutil.which(program) or program, *words]


def open_note(note: NoteName) -> None:
    """Open a note in your desktop's markdown program.

    Example: kmem open "postgres over sqlite"
    """
    path = perform("show", note=note, expired=True)["file"]
    if sys.platform == "win32":
        os.startfile(path)  # noqa: S606 - the person's own note, by the person's own choice of program
    else:
        _run(["open" if sys.platform == "darwin" else "xdg-open", path])


def remember(
    text: Annotated[list[str], typer.Argument(metavar="TEXT", help="What to remember; - reads it from stdin.")],
    kind: Annotated[Kind, typer.Option(metavar="KIND", help="decision, insight, fact, preference or question.")] = Kind.FACT,
    project: Annotated[str, typer.Option(metavar="NAME", help="Its project; default: the project of this folder.")] = "",
    everywhere: Annotated[bool, typer.Option("--global", help="It applies to all projects.")] = False,
    key: Annotated[str, typer.Option(metavar="NAME", help="A name: the next text under the same name replaces this one.")] = "",
    ttl: Annotated[str, typer.Option(metavar="AGE", help="Stop using it after 12h, 30d or 8w.")] = "",
    tag: Annotated[list[str] | None, typer.Option(metavar="TAG", help="A tag; may be given more than once.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write a note at once. It can be found when the command returns.

    Example: kmem remember "The staging database is reset every Monday" --kind fact
    """
    if everywhere and project:
        raise UsageError("a note is --global or of a --project, not both", hint="leave one of them out")
    from kite_memory.redaction import drop_private

    words = _words(text)
    if ttl:
        duration(ttl)  # raises for an invalid duration before a vault is made
    if not drop_private(words).strip():
        raise UsageError("there is nothing to remember", hint="give the text as an argument, or - to read it from standard input")
    if len(words) > _LONGEST_NOTE:
        raise UsageError(
            f"the note is too long: {len(words):,} characters", hint=f"a note has at most {_LONGEST_NOTE:,} characters: split it"
        )
    folder = named_folder()
    if not (folder or project or everywhere):
        raise KiteError(
            "the folder you are in was deleted, so the note has no project", hint="name one with --project, or use --global"
        )
    written = perform(
        "remember",
        text=words,
        kind=kind.value,
        project=project,
        everywhere=everywhere,
        key=key,
        ttl=ttl,
        tags=tag or [],
        cwd=folder,
    )
    if as_json:
        print_json(written)
        return
    print_data(written["path"])
    article = "an" if kind.value.startswith("i") else "a"
    of = f"of {written['project']}" if written["project"] else "for every project"
    print_message(f"kept as {article} {kind.value} {of}" + ("; a secret was left out" if written["redacted"] else ""))


def forget(
    note: Annotated[
        str,
        typer.Argument(
            metavar="NOTE", help="Any id that `search --json` prints, a path, a title or a citation; without one, give filters."
        ),
    ] = "",
    session: Annotated[str, typer.Option(metavar="ID", help="Every note whose evidence is from this session.")] = "",
    since: Annotated[str, typer.Option(metavar="AGE", help="Every note of the last 12h or 30d, or since 2026-03-01.")] = "",
    matching: Annotated[str, typer.Option(metavar="TEXT", help="Every note whose title or text contains this.")] = "",
    with_evidence: Annotated[
        bool, typer.Option("--with-evidence", help="Also erase the words of the events that they rest on. Asks first.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be forgotten.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Move notes to the vault's trash, and out of every index at once. They are never written again.

    Events that no other note rests on are no longer used by search, answers, briefs or threads, though `kmem timeline` still
    shows them. With --with-evidence the words of these events are erased for good, and reading the transcript again does not bring
    them back. The transcript itself belongs to your agent and stays, as does anything said about the same subject elsewhere.

    With only one word of a title you are asked. NOTE may also be a citation, as `kmem why` and `kmem resume` show it. Then that
    line is no longer used, or erased.

    Example: kmem forget "postgres over sqlite"
    """
    filtered = bool(session or since or matching)
    if not (note or filtered):
        raise UsageError("nothing to forget was named", hint="give a note, or filters: --session, --since or --matching")
    if note and filtered:
        raise UsageError("give either a note or filters (--session, --since, --matching)", hint="do one after the other")
    planned = perform(
        "forget", note=note, session=session, since=since, matching=matching, with_evidence=with_evidence, dry_run=True
    )
    chosen, evidence = planned["notes"], planned["evidence"]
    if dry_run and as_json:
        print_json(planned)
        return
    guessed = planned.get("guessed")  # an older daemon does not say it
    ask_first = (planned.get("session") or filtered or with_evidence or guessed) and bool(chosen or evidence) and not yes
    if dry_run or ask_first:
        for each in chosen:
            print_message(f"{each['title']}  ({each['path']})")
        for line in evidence if dry_run or with_evidence else []:
            _print_ground(line)
    if dry_run:
        if not (chosen or evidence):
            print_message("nothing to forget")
        return
    if ask_first:
        if not is_interactive():
            raise UsageError(
                "nothing was forgotten", hint="name it in full, or agree with --yes" if guessed else "--yes agrees without asking"
            )
        if not ask(_question(len(chosen), len(evidence) if with_evidence else 0)):
            raise KiteError("nothing was forgotten")
    if chosen:
        planned = perform("forget", ids=[each["id"] or each["path"] for each in chosen], with_evidence=with_evidence)
    elif evidence:
        planned = perform("forget", note=note, with_evidence=with_evidence)
    if as_json:
        print_json(planned)
    else:
        _print_forgotten(planned)
    if evidence and not (chosen or with_evidence):
        resting = sorted({other for line in evidence if not line["lets_go"] for other in line["others"]})
        if resting:
            hint = f"forget {resting[0]} first, or erase the line's words with --with-evidence"
            raise KiteError(f"that line is still used, since a note rests on it: {', '.join(resting)}", hint=hint)
        if not as_json:
            print_message("that line is no longer used")


def _print_forgotten(forgotten: dict[str, Any]) -> None:
    for each in forgotten["notes"]:
        print_data(each["trash"])
    match forgotten["notes"] if not any(line["blank"] for line in forgotten["evidence"]) else []:
        case [only]:
            print_message(f"forgotten: {only['title']}; moved back to {only['path']}, the file is a note again")
        case [_, *_] as notes:
            print_message(f"forgotten: {len(notes):,} notes; a file that is moved back to its folder is a note again")
    if not (forgotten["notes"] or forgotten["evidence"]):
        print_message("nothing to forget")
    for remark in forgotten.get("problems", []):
        print_message(remark)
    _print_what_is_left(forgotten["evidence"])


def _question(notes: int, lines: int) -> str:
    these = "this note" if notes == 1 else f"these {notes} notes"
    erase = f"erase the words of {'this line' if lines == 1 else f'these {lines} lines'} for good"
    return f"Forget {these}, and {erase}?" if notes and lines else f"Forget {these}?" if notes else f"{erase.capitalize()}?"


def _print_ground(line: dict[str, Any]) -> None:
    what = "erased" if line["blank"] else "no longer offered" if line["lets_go"] else "left as it is"
    print_message(f"  {local_time(line['at'])}  {line['type'].replace('_', ' ')}, {what}: {line['text']}")
    for other in line["others"]:
        print_message(f"      {other} rests on it too")


def _print_what_is_left(evidence: list[dict[str, Any]]) -> None:
    """Print the files that still hold erased text, which only the user may change."""
    if erased := [line for line in evidence if line["blank"]]:
        words = f"the words of {counted(len(erased), 'line')} are erased"
        print_message(f"{words}; copies remain for you to delete: a note in the trash, and")
        for file in dict.fromkeys(line["where"].rpartition(":")[0] for line in erased):
            print_message(f"  {file}")
        for other in dict.fromkeys(other for line in erased for other in line["others"]):
            print_message(f"  {other}, a note that rests on it too: `kmem forget {other}`")
        for kept in sorted(configuration.load().state.glob("timeline.*.sqlite")):
            print_message(f"  {kept}, put aside by `kmem rebuild`, if it is older")


_MOST_MUTED = 1_000


def mute(
    note: Annotated[
        str, typer.Argument(metavar="NOTE", help="Id, path or title of a note, or a beginning; without one, lists what is muted.")
    ] = "",
    undo: Annotated[bool, typer.Option("--undo", help="Let it be shown again.")] = False,
    as_json: AsJson = False,
) -> None:
    """Never give a note to an agent again. Searching still finds it.

    Example: kmem mute "postgres over sqlite"
    """
    if not note and undo:
        raise UsageError("nothing named to give again", hint="`kmem mute` lists what is muted")
    muted = perform("mute", note=note, undo=undo) if note else perform("notes", status="muted", limit=_MOST_MUTED)["notes"]
    if as_json:
        print_json(muted)
    elif note:
        print_data(muted["path"])
        print_message("agents may be given it again" if undo else "agents are not given it any more; `kmem mute` lists such notes")
    else:
        for each in muted:
            print_data(f"{each['path']}  {each['title']}")
        if not muted:
            print_message("no note is muted")


def why(
    note: Annotated[str, typer.Argument(metavar="NOTE", help="A note; without one, what the last prompts were given.")] = "",
    last: Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="The last N prompts.")] = 10,
    silent: Annotated[bool, typer.Option("--silent", help="Also prompts that were given nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the lines of the transcript that a note rests on.

    Without a note, show the last prompts that were given one, why, and whether the agent used it.

    Example: kmem why --last 5
    """
    report = perform("why", note=note, last=last, silent=silent)
    if as_json:
        print_json(report)
    elif note:
        print_evidence(report)
    else:
        print_prompts(report)


def _words(given: list[str]) -> str:
    return read_all(_LONGEST_TEXT) if given == ["-"] else " ".join(given)


def _run(command: list[str]) -> None:
    try:
        subprocess.run(command, check=True)
    except OSError as error:
        raise KiteError(f"cannot start {command[0]}: {error.strerror}", hint=f"the note is {command[-1]}") from error
    except subprocess.CalledProcessError as error:
        raise KiteError(f"{command[0]} ended with exit code {error.returncode}", hint=f"the note is {command[-1]}") from error


def add_to(app: typer.Typer) -> None:
    add(app, search, recall, show, edit, remember, forget, mute, why, panel=PANEL)
    add(app, open_note, panel=PANEL, name="open")
