"""Commands about the past: sessions, the state of one, connected ones, and questions about all of them."""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kite_memory.cli.backend import daemon_runs, perform, services
from kite_memory.cli.console import is_interactive, named_folder, print_data, print_found_json, print_json, print_message, width
from kite_memory.cli.main import add
from kite_memory.cli.results import print_notes_that_name, print_nothing_read, with_short_home
from kite_memory.text.display import clip, counted, local_day, local_time

if TYPE_CHECKING:
    from kite_memory.wiring.services import Services

PANEL = "History"

_BROWSED = 2_000
_OPENING = 60
"""Characters of the first prompt that are shown of a session without a title."""
_FIRST, _ALL = 400, 10_000
"""Limits of events for one answer: a screenful at once and some to scroll, or as many as come in one part."""

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
OfProject = Annotated[str, typer.Option(metavar="NAME", help="Only sessions of this project.")]


def timeline(
    session: Annotated[
        str, typer.Argument(metavar="SESSION", help="The beginning of its id, or a citation; without one, all are listed.")
    ] = "",
    plain: Annotated[bool, typer.Option("--plain", help="Print text, also on a terminal.")] = False,
    project: OfProject = "",
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=10_000, help="List at most this many sessions.")] = 50,
    as_json: AsJson = False,
) -> None:
    """Show what happened in a session, in order. Without a session, list them, newest first.

    On a terminal you can browse. Enter opens and unfolds, and / searches. The keys e, d, t and p go to the next error, decision,
    test and prompt, n to the next note, and f from a failure to its fix. The key y copies a citation, which names one event, r
    shows the brief, v changes the view, ? lists all keys, and q quits.

    Example: kmem timeline --plain
    """
    if not (plain or as_json) and sys.stdout is not None and sys.stdout.isatty() and is_interactive():
        _browse(session, project, max(limit, _BROWSED))
        return
    if not session:
        answer = perform("timeline", project=project, limit=limit)
        if as_json:
            print_json(answer)
            return
        for each in answer["sessions"]:
            print_data(_session_line(each))
        if not answer["sessions"]:
            if project and perform("timeline", limit=1)["sessions"]:
                print_message(f"no session of {project} is known; `kmem timeline` lists all")
            else:
                print_message("no session is known yet")
                print_nothing_read()
        return
    whole = _whole(session, edges=as_json)
    if as_json:
        print_json(whole)
        return
    from kite_memory.tui.rows import rows  # imported here: no other command needs it

    colours = _colours()
    print_data(_heading(whole["session"], whole["events"]))
    for row in rows(whole["events"], whole["notes"], whole["session"]["cwd"]):
        colours(row.kind, row.status, row.text)


def _browse(session: str, project: str, limit: int) -> None:
    """Open the terminal view. Requests go to the daemon, or to services that stay open meanwhile."""
    from kite_memory.tui.app import TimelineApp  # imports Textual, which is slow

    with ExitStack() as closing:
        if daemon_runs():
            ask: Callable[..., Any] = perform
        else:
            here = closing.enter_context(services())
            ask = partial(_asked_here, here)
        TimelineApp(
            sessions=lambda: ask("timeline", project=project, limit=limit)["sessions"],
            pieces=partial(_pieces, ask),
            note=lambda note: ask("show", note=note),
            brief=lambda session: ask("resume", session=session, tokens=1_000),
            became=lambda citation: ask("became", citation=citation)["became"],
            session=session,
        ).run()


def _asked_here(here: "Services", op: str, **arguments: Any) -> Any:
    return here.operations.perform(op, arguments)


def _pieces(ask: Callable[..., Any], session: str, *, edges: bool = False, first: int = _FIRST) -> Iterator[dict[str, Any]]:
    """Yield a session in parts, so that the first part of a long one is soon there."""
    piece = ask("timeline", session=session, most=first, edges=edges)
    yield piece
    while piece["next"] is not None:
        exact = f"{piece['session']['provider']}:{piece['session']['id']}"
        piece = ask("timeline", session=exact, after=piece["next"], edges=edges)
        yield piece


def _whole(session: str, *, edges: bool) -> dict[str, Any]:
    joined: dict[str, Any] = {}
    known: set[tuple[str, ...]] = set()
    for piece in _pieces(perform, session, edges=edges, first=_ALL):
        fresh = [edge for edge in piece["edges"] if _edge(edge) not in known]
        known.update(map(_edge, fresh))
        joined = joined or {**piece, "events": [], "edges": []}
        joined["events"] += piece["events"]
        joined["edges"] += fresh
    del joined["next"]
    return joined


def _edge(edge: dict[str, str]) -> tuple[str, ...]:
    return (edge["kind"], edge["from"], edge["to"])


def _session_line(each: dict[str, Any]) -> str:
    parts = [counted(each["prompts"], "prompt")]
    parts += [counted(each["errors"], "error")] if each["errors"] else []
    if each["tests"]:
        parts.append(counted(each["tests"], "test run") + (f" ({each['failed_tests']} failed)" if each["failed_tests"] else ""))
    where = f"{each['project'] or '-'}, {each['provider']}"
    parts = [", ".join(parts), each["title"] or clip(each["opening"], _OPENING)]
    return f"{local_time(each['last'])}  {each['id'][:13]:13}  {where:24}  {'  '.join(filter(None, parts))}"


def _heading(session: dict[str, Any], events: list[dict[str, Any]]) -> str:
    parts = [f"{session['provider']}:{session['id']}", session["project"]]
    parts += [f"on {session['branch']}"] if session["branch"] not in ("", "HEAD") else []
    parts += [session["title"], counted(len(events), "event") if events else ""]
    return " · ".join(filter(None, parts))


_STYLES = {
    "user_message": "bold cyan",
    "assistant_message": "",
    "decision": "bold magenta",
    "error": "red",
    "test_result": "green",
    "note": "yellow",
}


class _Plain:
    def __call__(self, kind: str, status: str, text: str) -> None:
        print_data(text)


class _Coloured:
    """Printer of rows, coloured by kind and status."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)

    def __call__(self, kind: str, status: str, text: str) -> None:
        from kite_memory.text.quoting import plain

        style = "red" if status == "failed" else "dim" if status in ("denied", "interrupted") else _STYLES.get(kind, "dim")
        self._console.print(plain(text)[: width()], style=style or None)


def _colours() -> _Plain | _Coloured:
    return _Coloured() if sys.stdout is not None and sys.stdout.isatty() else _Plain()


def trace(
    session: Annotated[str, typer.Argument(metavar="SESSION", help="The beginning of its id; `kmem timeline` lists them.")],
    requests: Annotated[
        bool, typer.Option("--requests", help="Print every request about it that a model would be sent; nothing is sent.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show what became of each part of a session, and why.

    It follows the session from the lines of its transcript to events, chunks (the parts that notes are made of), notes and the
    index. It changes nothing. With --requests it prints the requests about the session as they would leave this machine: those of
    the extractor, the judge, `kmem ask`, `kmem resume --polish` and the embedder.

    Example: kmem trace d3300000-0000-4000-8000-000000000002
    """
    from kite_memory.app.trace import TASKS
    from kite_memory.wiring.models import requests_of
    from kite_memory.wiring.services import tracer_of

    with services() as here:
        tracer = tracer_of(here)
        if requests:
            with requests_of(here, tracer) as recorded:
                found = recorded.about(session)
            if as_json:
                print_json(found)
                return
            for each in found:
                _print_request(each)
            if missing := [task for task in TASKS if task not in {each["task"] for each in found}]:
                print_message(f"note: nothing would be asked of this session by: {', '.join(missing)}")
            return
        report = tracer.trace(session)
    if as_json:
        print_json(report)
        return
    for line in _trace_lines(report):
        print_data(line)


def _trace_lines(report: dict[str, Any]) -> Iterator[str]:
    yield _heading(report["session"], [])
    for file in report["files"]:
        yield f"file    {file['path']}: {_reading(file)}"
        if lines := file["lines"]:
            kinds = ", ".join(f"{count} {kind}" for kind, count in lines["without_events"].items())
            yield f"        {counted(lines['with_events'], 'line')} with events of this session" + (
                f"; without: {kinds}" if kinds else ""
            )
        for problem in file["problems"]:
            yield f"        {counted(problem['count'], 'problem')}: {problem['reason']}, first at {problem['first_position']}"
    events = report["events"]
    kinds = ", ".join(f"{count} {kind}" for kind, count in events["by_type"].items())
    yield f"events  {events['total']}: {kinds}" + (f"; {events['let_go']} forgotten with a note" if events["let_go"] else "")
    for number, part in enumerate(report["parts"], 1):
        extractor = f" by {part['extractor']}" if part["extractor"] else ""
        tried = f", {counted(part['attempts'], 'attempt')}" if part["attempts"] > 1 else ""
        yield f"part {number}  {counted(part['events'], 'event')}, {part['where'] or 'gone from the timeline'}"
        yield f"        {part['state']}{extractor}{tried}" + (f": {part['why']}" if part["why"] else "")
        yield from _note_lines(part["notes"])
    if report["other_notes"]:
        yield "other notes that rest on this session"
        yield from _note_lines(report["other_notes"])
    if stale := report["index"]["stale"]:
        yield f"index   {counted(stale, 'passage')} of all notes wait for a vector; they are found by their words until then"


def _note_lines(notes: list[dict[str, Any]]) -> Iterator[str]:
    for note in notes:
        if not note["path"]:
            yield f"  note  {note['id']}: {note['fate']}"
            continue
        yield f"  note  {note['path']}: {note['kind']}, {note['status']}, {note['fate']}, {note['index']}"
        for each in note["evidence"][:_EVIDENCE]:
            yield f"        from {each['where']}: {each['type']} {each['reference']}"
        if (rest := len(note["evidence"]) - _EVIDENCE) > 0:
            yield f"        and {rest} more"


_EVIDENCE = 3


def _reading(file: dict[str, Any]) -> str:
    if not file["there"]:
        return f"gone; {counted(file['read_to'], 'byte')} of it were read"
    if behind := max(0, file["size"] - file["read_to"]):
        return f"{file['read_to']:,} of {counted(file['size'], 'byte')} read, {behind:,} to do"
    return f"{counted(file['read_to'], 'byte')} read, all of it"


def _print_request(request: dict[str, Any]) -> None:
    print_data(f"=== {request['task']}: {request['when']} (to: {request['to']})")
    for part in ("system", "user"):
        if text := request.get(part):
            print_data(f"--- {part}\n{text}")
    if "schema" in request:
        import json

        print_data(
            f"--- schema, at most {request['max_tokens']:,} tokens\n{json.dumps(request['schema'], indent=2, ensure_ascii=False)}"
        )
    for text in request.get("texts", ()):
        print_data(f"--- text\n{text}")
    print_data()


def resume(
    named: Annotated[str, typer.Argument(metavar="SESSION", help="The beginning of its id; without one, the project's last.")] = "",
    cwd: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="A folder of the project; default: the current folder.")
    ] = None,
    session: Annotated[str, typer.Option(metavar="ID", help="A session, by its id or the beginning of it.")] = "",
    tokens: Annotated[int, typer.Option(metavar="N", min=60, max=4_000, help="At most about this many tokens.")] = 500,
    polish: Annotated[bool, typer.Option("--polish", help="Let a model rephrase its lines, within the day's budget.")] = False,
    in_agent: Annotated[
        bool, typer.Option("--in-agent", help="Continue the session in its agent; without a terminal, print the command that does.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Summarise where the last session stopped. Every line cites the event it rests on.

    The brief is made from events alone, without a model: what changed, what failed, what to verify next, the last stable point,
    and what is open. With --polish a model may rephrase a line; a line that does not keep the meaning is discarded.
    A citation such as #4fe3ad32 is of the session named in the first line: kmem timeline SESSION#4fe3ad32 shows it.

    Example: kmem resume --cwd mycelia
    """
    brief = perform("resume", cwd=named_folder(cwd), session=named or session, tokens=tokens, polish=polish and not in_agent)
    if in_agent:
        _go_on(brief["session"])
        return
    if as_json:
        print_json(brief)
        return
    print_data(brief["text"])
    for problem in brief["problems"]:
        print_message(f"note: {problem}")
    if polish and brief["refused"]:
        print_message(f"note: {counted(brief['refused'], 'line')} stayed as it was: the model's version changed its meaning")
    if brief["left_out"]:
        print_message(f"{counted(brief['left_out'], 'line')} left out; `--tokens 1000` shows more")


def _go_on(session: dict[str, Any]) -> None:
    """Continue a session in the folder where it ran: some agents find their sessions by it."""
    import os
    import shlex
    import shutil

    from kite_memory.agents.registry import CannotGoOn, command_for

    command = command_for(session["provider"], session["id"])
    folder = Path(session["cwd"]) if session["cwd"] else Path.cwd()
    line = f"cd {shlex.quote(str(folder))} && {shlex.join(command)}"
    if not (sys.stdout is not None and sys.stdout.isatty() and sys.stdin is not None and sys.stdin.isatty()):
        print_data(line)
        return
    if not folder.is_dir():
        raise CannotGoOn(
            f"the session ran in {folder}, which is gone", hint=f"in the project's present folder, run: {shlex.join(command)}"
        )
    program = shutil.which(command[0])
    if program is None:
        raise CannotGoOn(f"{command[0]} is not installed here", hint=f"install it, then run: {line}")
    print_message(line)
    os.chdir(folder)
    os.execv(program, command)  # noqa: S606 - the agent takes our place, with the terminal


def handoff(
    to: Annotated[
        str,
        typer.Option("--to", metavar="AGENT", help="The agent that continues: codex, claude-code, gemini-cli, cursor, opencode…"),
    ],
    session: Annotated[str, typer.Argument(metavar="SESSION", help="The beginning of its id; else the project's last.")] = "",
    cwd: Annotated[Path | None, typer.Option(metavar="FOLDER", help="The project's folder; default: the current folder.")] = None,
    tokens: Annotated[int, typer.Option(metavar="N", min=60, max=4_000, help="At most about this many tokens.")] = 700,
    done: Annotated[bool, typer.Option("--done", help="Remove the brief from that file.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the change.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask; required without a terminal.")] = False,
) -> None:
    """Write a session's brief into the file that the next agent reads.

    That is the project's AGENTS.md, CLAUDE.md or GEMINI.md. The brief stands between two marks and replaces an earlier one;
    nothing else in the file changes. --done removes it.

    Example: kmem handoff --to codex --cwd mycelia --yes
    """
    from kite_memory import config
    from kite_memory.agents import instructions
    from kite_memory.agents.mcp_entry import connections
    from kite_memory.agents.settings_edit import read_settings
    from kite_memory.cli.bridging import Step, carry_out, places, show
    from kite_memory.errors import UsageError

    settings = config.load()
    known = {each.name: each for each in connections(places(settings))}
    if to not in known:
        raise UsageError(f"unknown agent {to!r:.80}", hint=f"known ones are: {', '.join(known)}")
    folder = Path(named_folder(cwd))
    file = folder / known[to].in_project
    text = read_settings(file)
    if done:
        plan = instructions.plan_take_back(text)
    else:
        brief = perform("resume", cwd=str(folder), session=session, tokens=tokens)
        plan = instructions.plan_hand_over(text, brief["text"])
    todo = [Step(what="handoff", file=file, plan=plan)]
    if dry_run:
        show(known[to], todo)
    elif not carry_out(known[to], todo, settings, yes=yes):
        raise typer.Exit(1)


def how(
    tool: Annotated[list[str], typer.Argument(metavar="TOOL", help="A program, such as pytest or git rebase, or an agent's tool.")],
    project: OfProject = "",
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=100, help="At most this many.")] = 8,
    as_json: AsJson = False,
) -> None:
    """Show how a tool was used here, and with what result. Successful uses come first, the most frequent at the top.

    Example: kmem how pytest
    """
    answer = perform("how", tool=" ".join(tool), project=project, limit=limit)
    if as_json:
        print_found_json(answer, found=bool(answer["uses"]))
        return
    for each in answer["uses"]:
        ended = {"ok": "went well", "failed": "FAILED"}.get(each["outcome"], "outcome unknown")
        print_data(each["what"] or "(nothing was said)")
        when = f"{counted(each['times'], 'time')}, last {local_day(each['last'])}"
        print_data(f"    {when}: {ended}{_because(each)}  [{_short(each['evidence'])}]")
        _print_fix(each["fix"])
    if not answer["uses"]:
        print_message(f"no use of {' '.join(tool)} is known; `kmem search` looks for it in transcripts")
        raise typer.Exit(1)


def fix(
    error: Annotated[list[str], typer.Argument(metavar="ERROR", help="The error message, or words of it.")],
    project: OfProject = "",
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=100, help="At most this many.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Show where an error occurred before, and how it was fixed.

    Example: kmem fix "AssertionError: the lease is 0"
    """
    answer = perform("fix", error=" ".join(error), project=project, limit=limit)
    if as_json:
        print_found_json(answer, found=bool(answer["failures"]))
        return
    for each in answer["failures"]:
        print_data(each["failure"])
        command = f" in `{each['command']}`" if each["command"] else ""
        print_data(
            f"    met {counted(each['times'], 'time')}, last {local_day(each['last'])}{command}  [{_short(each['evidence'])}]"
        )
        if each["fix"] is None:
            print_data("    no fix is known")
        _print_fix(each["fix"])
    if not answer["failures"] and not print_notes_that_name(
        " ".join(error), perform("search", query=" ".join(error), project=project, limit=3)["hits"]
    ):
        print_message("no such failure is known; try fewer words")
        raise typer.Exit(1)


def blame(
    path: Annotated[str, typer.Argument(metavar="PATH", help="A file's name, optionally with parent folders.")],
    project: OfProject = "",
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=100, help="At most this many.")] = 12,
    as_json: AsJson = False,
) -> None:
    """Show which prompts changed a file, newest first, and their commits.

    Example: kmem blame orchard/sweeper.py
    """
    answer = perform("blame", path=path, project=project, limit=limit)
    if as_json:
        print_found_json(answer, found=bool(answer["changes"]))
        return
    for each in answer["changes"]:
        times = f" {each['times']} times" if each["times"] > 1 else ""
        commit = f"; committed {each['commit']['hash'][:8]} {each['commit']['subject']}" if each["commit"] else ""
        print_data(f"{local_day(each['last'])}  {each['session']['provider']}  {each['action']}{times} {_path_in(each)}{commit}")
        unknown = "(by no session that is known)" if each["session"]["provider"] == "git" else "(before any prompt that is known)"
        asked = f'"{each["prompt"]}"' if each["prompt"] else unknown
        print_data(f"    {asked}  [{_short(each['evidence'])}]")
    if not answer["changes"]:
        print_message(f"no change of {path} is known; `kmem search file:{path}` looks for mentions of it")
        raise typer.Exit(1)


def _path_in(change: dict[str, Any]) -> str:
    """Return a changed file relative to the session's folder, or with ``~`` for the user's home."""
    path, folder = change["path"], change["session"]["cwd"].rstrip("/\\")
    inside = bool(folder) and path.startswith((f"{folder}/", f"{folder}\\"))
    return str(path[len(folder) + 1 :]) if inside else with_short_home(path)


def _because(use: dict[str, Any]) -> str:
    return f": {use['failure']}" if use["failure"] else ""


def _print_fix(fix: dict[str, Any] | None) -> None:
    if fix is None:
        return
    files = f" after changes to {', '.join(file.rpartition('/')[2] for file in fix['files'][:3])}" if fix["files"] else ""
    said = f" after you wrote “{clip(fix['said'], 120)}”" if fix.get("said") else ""
    print_data(f"    fixed {local_day(fix['at'])}: `{fix['command'][:120]}` succeeded{files}{said}  [{_short(fix['evidence'])}]")


def _short(citation: str) -> str:
    """Return the citation with a shortened session id; `kmem timeline` accepts it for the same event."""
    session, _, event = citation.rpartition("#")
    return f"{session[: session.find(':') + 9]}#{event}"


def threads(
    project: OfProject = "",
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=500, help="At most this many.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List work threads: sessions that continued one another's work, and the reasons.

    The sessions may be of different agents.

    Example: kmem threads
    """
    answer = perform("threads", project=project)
    left_out = max(0, len(answer["threads"]) - limit)
    answer = {**answer, "threads": answer["threads"][:limit], "unsure": answer["unsure"][:limit]}
    if as_json:
        print_json(answer)
        return
    for number, thread in enumerate(answer["threads"]):
        if number:
            print_data()
        span = f"{local_day(thread['from'])} to {local_day(thread['last'])}"
        print_data(f"{thread['project'] or '(no project)'}: {counted(len(thread['sessions']), 'session')}, {span}")
        joints = {joint["to"]: joint for joint in thread["joints"]}
        for session in thread["sessions"]:
            title = session["title"] or clip(session.get("opening", ""), _OPENING)
            print_data(
                f"  {local_day(session['started'])}  {session['provider']}:{session['id'][:13]}{f'  {title}' if title else ''}"
            )
            if (joint := joints.get(f"{session['provider']}:{session['id']}")) is not None:
                reasons = "; ".join(map(_reason, joint["reasons"][:3]))
                print_data(f"              {joint['strength']:.2f} with {_short_id(joint['from'])}: {reasons}")
    if answer["unsure"]:
        if answer["threads"]:
            print_data()
        print_data("perhaps, but not surely:")
    for joint in answer["unsure"]:
        reasons = "; ".join(map(_reason, joint["reasons"][:2]))
        print_data(f"  {_short_id(joint['to'])} with {_short_id(joint['from'])}: {reasons}")
    if not (answer["threads"] or answer["unsure"]):
        print_message("no sessions seem to belong together")
    if left_out:
        print_message(f"{counted(left_out, 'thread')} left out; `--limit {limit + left_out}` shows all")
    if answer["considered"] < answer["sessions"]:
        print_message(f"note: only the last {answer['considered']:,} of {answer['sessions']:,} sessions were looked at")


def _reason(reason: dict[str, Any]) -> str:
    if reason["tie"] == "reference back":
        return "its first prompt points back"
    what = reason["what"]
    return f"{reason['tie']} {what if len(what) <= 60 else f'{what[:28]}…{what[-30:]}'}"


def _short_id(reference: str) -> str:
    provider, _, session = reference.partition(":")
    return f"{provider}:{session[:13]}"


def ask(
    question: Annotated[list[str], typer.Argument(metavar="QUESTION", help="Your question about past work.")],
    project: OfProject = "",
    since: Annotated[str, typer.Option(metavar="AGE", help="Only from the last 30d, 12h or 2w, or since 2026-03-01.")] = "",
    offline: Annotated[bool, typer.Option("--offline", help="Do not use a model.")] = False,
    as_json: AsJson = False,
) -> None:
    """Answer a question from notes and events. Every sentence cites its sources.

    With a model the answer is written, within the day's budget; without one it consists of sentences that were found.

    Example: kmem ask "which database does the job queue use?"
    """
    answer = perform("ask", question=" ".join(question), project=project, since=since, cwd=named_folder(), offline=offline)
    if as_json:
        print_found_json(answer, found=bool(answer["answer"]))
        return
    if answer["answer"]:
        print_data(answer["answer"])
        print_data()
    for citation in answer["citations"]:
        what = f"{re.sub(': .*', '', citation['title'])}, {local_day(citation['at'])}"
        print_data(f"[{citation['number']}] {citation['reference']}  ({what})")
    for problem in answer["problems"]:
        print_message(f"note: {problem}")
    if not answer["answer"]:
        if answer.get("nothing_read"):
            print_message("nothing found")
            print_nothing_read()
        else:
            print_message("nothing was found; `kmem search` lists what is nearest")
        raise typer.Exit(1)


def add_to(app: typer.Typer) -> None:
    add(app, timeline, trace, resume, handoff, threads, how, fix, blame, ask, panel=PANEL)
