"""What happened: sessions, where one stood, which belong together, and questions about it all."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from kite_memory.cli.backend import perform
from kite_memory.cli.console import counted, say, say_json, tell, width
from kite_memory.cli.help import add
from kite_memory.timeline.resume import inside

PANEL = "History"

_SHOWN = 160
_OPEN = frozenset({"user_message", "assistant_message", "decision", "error", "test_result"})
"""What is shown by itself; the rest of a turn is folded into one line for each call of a tool."""

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
OfProject = Annotated[str, typer.Option(metavar="NAME", help="Only of this project.")]


def timeline(
    session: Annotated[
        str, typer.Argument(metavar="SESSION", help="The beginning of its id, or a citation; without one, all are listed.")
    ] = "",
    plain: Annotated[bool, typer.Option("--plain", help="Print text, also on a terminal.")] = False,
    project: OfProject = "",
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=10_000, help="List at most so many sessions.")] = 50,
    as_json: AsJson = False,
) -> None:
    """Show what happened in a session, in order. Without one, list the sessions, newest first.

    Example: kmem timeline --plain
    """
    if not session:
        told = perform("timeline", project=project, limit=limit)
        if as_json:
            say_json(told)
            return
        for each in told["sessions"]:
            say(_session_line(each))
        if not told["sessions"]:
            tell("no session is known yet")
        return
    whole = _whole(session)
    if as_json:
        say_json(whole)
        return
    colours = _colours(plain)
    say(_heading(whole["session"], whole["events"]))
    for line in folded(whole["events"], whole["notes"], whole["session"]["cwd"]):
        colours(*line)


def _whole(session: str) -> dict[str, Any]:
    """A long session comes in several pieces."""
    told: dict[str, Any] = perform("timeline", session=session)
    known = {_edge(edge) for edge in told["edges"]}
    while (after := told.pop("next", None)) is not None:
        exact = f"{told['session']['provider']}:{told['session']['id']}"
        more = perform("timeline", session=exact, after=after)
        told["events"] += more["events"]
        told["edges"] += [edge for edge in more["edges"] if _edge(edge) not in known]
        known |= {_edge(edge) for edge in more["edges"]}
        told["next"] = more["next"]
    return told


def _edge(edge: dict[str, str]) -> tuple[str, ...]:
    return (edge["kind"], edge["from"], edge["to"])


def _session_line(each: dict[str, Any]) -> str:
    parts = [counted(each["prompts"], "prompt")]
    parts += [counted(each["errors"], "error")] if each["errors"] else []
    if each["tests"]:
        parts.append(counted(each["tests"], "test run") + (f" ({each['failed_tests']} failed)" if each["failed_tests"] else ""))
    where = f"{each['project'] or '-'}, {each['provider']}"
    title = f"  {each['title']}" if each["title"] else ""
    return f"{each['last'][:16].replace('T', ' ')}  {each['id'][:13]:13}  {where:24}  {', '.join(parts)}{title}"


def _heading(session: dict[str, Any], events: list[dict[str, Any]]) -> str:
    parts = [f"{session['provider']}:{session['id']}", session["project"]]
    parts += [f"on {session['branch']}"] if session["branch"] not in ("", "HEAD") else []
    parts += [session["title"], counted(len(events), "event")]
    return " · ".join(filter(None, parts))


def folded(events: list[dict[str, Any]], notes: list[dict[str, Any]], cwd: str = "") -> Iterator[tuple[str, str, str]]:
    """Kind, status and text of each line: what people said by itself, what tools did folded to a line for each call."""
    made: dict[str, list[str]] = {}
    for note in notes:
        for reference in note["evidence"]:
            made.setdefault(reference, []).append(note["path"])
    called: dict[str, dict[str, Any]] = {}
    for event in events:
        if event["call"] and event["type"] in ("command", "file_action", "tool_result"):
            kept = called.setdefault(event["call"], {})
            kept["status"] = event["status"] or kept.get("status", "")
            kept["what"] = kept.get("what") or event["command"] or inside(event["path"], cwd)
    for event in events:
        match event["type"]:
            case "tool_call":
                done = called.get(event["call"], {})
                what = done.get("what") or inside(event["path"], cwd) or event["text"]
                yield _line(event, f"{event['tool']}: {_short(what)}", done.get("status", ""))
            case "resume_point":
                yield _line(event, f"— {_short(event['text'])}", event["status"])
            case kind if kind in _OPEN:
                yield _line(event, _short(event["text"]), event["status"])
            case _ if not event["call"]:
                yield _line(event, _short(event["command"] or event["path"] or event["text"]), event["status"])
            case _:
                continue
        for path in made.get(event["reference"], ()):
            yield "note", "", f"{'':26}note: {path}"


_MARKS = {
    "user_message": "you",
    "assistant_message": "agent",
    "tool_call": "  tool",
    "command": "  run",
    "file_action": "  file",
    "tool_result": "  result",
    "error": "  ERROR",
    "test_result": "  TEST",
    "decision": "DECIDED",
    "resume_point": "",
}


def _line(event: dict[str, Any], text: str, status: str) -> tuple[str, str, str]:
    at = event["at"][5:16].replace("T", " ")
    ended = f"  ({status})" if status not in ("", "ok") and event["type"] != "error" else ""
    return event["type"], status, f"{at}  #{event['id'][:8]:8}  {_MARKS.get(event['type'], ''):8} {text}{ended}"


def _short(text: str) -> str:
    line = " ".join(text[: _SHOWN * 8].split())
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"


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
        say(text)


class _Coloured:
    """Colours by kind and by how it ended."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)

    def __call__(self, kind: str, status: str, text: str) -> None:
        from kite_memory.recall.rendering import plain

        style = "red" if status == "failed" else "dim" if status in ("denied", "interrupted") else _STYLES.get(kind, "dim")
        self._console.print(plain(text)[: width()], style=style or None)


def _colours(plain: bool) -> _Plain | _Coloured:
    return _Plain() if plain or sys.stdout is None or not sys.stdout.isatty() else _Coloured()


def resume(
    cwd: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Of the project there; here, unless said.")] = None,
    session: Annotated[str, typer.Option(metavar="ID", help="Of this session; the beginning of its id will do.")] = "",
    tokens: Annotated[
        int, typer.Option(metavar="N", min=60, max=4_000, help="At most so many tokens, estimated from above.")
    ] = 500,
    as_json: AsJson = False,
) -> None:
    """Say where the last session stood, for whoever goes on with it. Every line names the event it rests on.

    It is told from events alone, no model is asked. What changed, what failed, what to verify next, the last stable point, and
    what is open.

    Example: kmem resume --cwd mycelia
    """
    told = perform("resume", cwd=_folder(cwd), session=session, tokens=tokens)
    if as_json:
        say_json(told)
        return
    say(told["text"])
    if told["left_out"]:
        tell(f"{counted(told['left_out'], 'line')} left out; `--tokens 1000` shows more")


def threads(project: OfProject = "", as_json: AsJson = False) -> None:
    """List work threads: sessions, of whatever agents, that went on with one another's work, and what says so.

    Example: kmem threads
    """
    told = perform("threads", project=project)
    if as_json:
        say_json(told)
        return
    for number, thread in enumerate(told["threads"]):
        if number:
            say()
        span = f"{thread['from'][:10]} to {thread['last'][:10]}"
        say(f"{thread['project'] or '(no project)'}: {counted(len(thread['sessions']), 'session')}, {span}")
        joints = {joint["to"]: joint for joint in thread["joints"]}
        for session in thread["sessions"]:
            title = f"  {session['title']}" if session["title"] else f"  on {session['branch']}" if session["branch"] else ""
            say(f"  {session['started'][:10]}  {session['provider']}:{session['id'][:13]}{title}")
            if (joint := joints.get(f"{session['provider']}:{session['id']}")) is not None:
                reasons = "; ".join(f"{each['tie']} {_short_reason(each['what'])}" for each in joint["reasons"][:3])
                say(f"              {joint['strength']:.2f} with {_short_id(joint['from'])}: {reasons}")
    if not told["threads"]:
        tell("no sessions belong together, as far as can be told")
    if told["considered"] < told["sessions"]:
        tell(f"note: only the last {told['considered']:,} of {told['sessions']:,} sessions were looked at")


def _short_reason(what: str) -> str:
    return what if len(what) <= 60 else f"{what[:28]}…{what[-30:]}"


def _short_id(reference: str) -> str:
    provider, _, session = reference.partition(":")
    return f"{provider}:{session[:13]}"


def ask(
    question: Annotated[list[str], typer.Argument(metavar="QUESTION", help="What you want to know of what was done.")],
    project: OfProject = "",
    since: Annotated[str, typer.Option(metavar="AGE", help="Only from the last 30d, 12h or 2w, or since 2026-03-01.")] = "",
    offline: Annotated[bool, typer.Option("--offline", help="Without the model, where there is one.")] = False,
    as_json: AsJson = False,
) -> None:
    """Answer a question from notes and events. Every sentence names what it rests on.

    With a model the answer is written, within the day's budget; without one it is made of sentences that were found.

    Example: kmem ask "which database does the job queue use?"
    """
    told = perform("ask", question=" ".join(question), project=project, since=since, cwd=_folder(None), offline=offline)
    if as_json:
        say_json(told)
        return
    if told["answer"]:
        say(told["answer"])
        say()
    for citation in told["citations"]:
        say(f"[{citation['number']}] {citation['reference']}  ({re.sub(': .*', '', citation['title'])}, {citation['at'][:10]})")
    for problem in told["problems"]:
        tell(f"note: {problem}")
    if not told["answer"]:
        tell("nothing that is known says")


def _folder(given: Path | None) -> str:
    try:
        return str(given.absolute() if given is not None else Path.cwd())
    except FileNotFoundError:  # deleted while the shell stood in it
        return ""


def add_to(app: typer.Typer) -> None:
    add(app, timeline, resume, threads, ask, panel=PANEL)
