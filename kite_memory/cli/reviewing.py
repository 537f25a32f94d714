"""Review of waiting notes, one after the other."""

import difflib
import sys
import textwrap
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import typer

from kite_memory.cli import memory
from kite_memory.cli.backend import perform
from kite_memory.cli.console import is_interactive, print_data, print_json, print_message, print_warning, stderr_console, width
from kite_memory.cli.main import add
from kite_memory.errors import KiteError
from kite_memory.text.display import counted, local_day

PANEL = "Vault"

_NONE = ("", "")
_WIDTH = 100
_MOST_LINES = 60
_WHOSE = {"user": "your own word", "assistant": "an agent's word", "tool": "only a tool's word"}
_KEYS = {"a": "accept", "m": "merge", "p": "replace", "b": "both", "d": "divide", "w": "whole", "r": "reject"}
_SORTS = {"k": "keep", "a": "archive", "r": "reject"}
_SORTED = {"keep": "kept", "archive": "archived", "reject": "rejected"}
_VERDICT_HELP = {
    "accept": "[a]ccept",
    "merge": "[m]erge into the nearest",
    "replace": "the newer re[p]laces the older",
    "both": "[b]oth hold",
    "divide": "[d]ivide it at its headings",
    "whole": "leave it [w]hole",
    "reject": "[r]eject",
}
_DONE = {
    "accept": "accepted",
    "merge": "merged",
    "replace": "replaced",
    "both": "both hold",
    "divide": "divided",
    "whole": "left whole",
    "reject": "rejected",
}


def review(
    accept: Annotated[list[str] | None, typer.Option("--accept", metavar="NOTE", help="Accept this one. May be repeated.")] = None,
    reject: Annotated[
        list[str] | None, typer.Option("--reject", metavar="NOTE", help="Reject this one, for good. May be repeated.")
    ] = None,
    merge: Annotated[tuple[str, str], typer.Option("--merge", metavar="NOTE INTO", help="Merge NOTE into another.")] = _NONE,
    replace: Annotated[
        tuple[str, str],
        typer.Option("--replace", metavar="NOTE OTHER", help="Of two that contradict each other, the newer replaces the older."),
    ] = _NONE,
    both: Annotated[
        tuple[str, str], typer.Option("--both", metavar="NOTE OTHER", help="They do not contradict each other.")
    ] = _NONE,
    divide: Annotated[
        list[str] | None, typer.Option("--divide", metavar="NOTE", help="Split a long one into several, at its headings.")
    ] = None,
    whole: Annotated[list[str] | None, typer.Option("--whole", metavar="NOTE", help="Keep a long one as it is.")] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Go through accepted notes instead, those never shown first, with one key for each.")
    ] = False,
    reject_older: Annotated[
        int | None, typer.Option("--reject-older", metavar="DAYS", min=1, help="Reject notes that have waited longer than this.")
    ] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=500, help="At most this many.")] = 200,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Review notes that wait for you: doubtful, contradictory or overlong ones.

    On a terminal they are shown one by one, each with its evidence and how it differs from the nearest note. Elsewhere they are
    listed. Review.md in your vault has the same notes, with boxes to tick.

    Example: kmem review --json
    """
    verdicts = [
        *((note, "accept", "") for note in accept or []),
        *((note, "reject", "") for note in reject or []),
        *((note, "divide", "") for note in divide or []),
        *((note, "whole", "") for note in whole or []),
        *((note, verdict, other) for verdict, (note, other) in (("merge", merge), ("replace", replace), ("both", both)) if note),
    ]
    if verdicts:
        _judge(verdicts, as_json=as_json)
        return
    if reject_older:
        swept = perform("sweep", days=reject_older)
        if as_json:
            print_json(swept)
        else:
            for each in swept["done"]:
                print_data(each["path"])
            print_message(f"{counted(len(swept['done']), 'note')} rejected, or closed without a decision")
        return
    if everything:
        _sort(perform("triage", limit=limit), as_json=as_json)
        return
    queue = perform("review", limit=limit)
    if as_json:
        print_json(queue)
    elif not queue["notes"]:
        print_message("nothing waits for review")
    elif is_interactive():
        _walk(queue["notes"], queue["waiting"])
    else:
        _list(queue)


def _judge(verdicts: list[tuple[str, str, str]], *, as_json: bool) -> None:
    """Carry out verdicts, and print those that were, even if the next one fails."""
    done: list[dict[str, Any]] = []
    try:
        for note, verdict, other in verdicts:
            done.append(perform("judge", note=note, verdict=verdict, into=other))
            if not as_json:
                print_data(f"{_DONE[verdict]:8} {done[-1]['path']}")
    finally:
        if as_json and done:
            print_json({"done": done})


def _list(queue: dict[str, Any]) -> None:
    for each in queue["notes"]:
        for line, _ in _shown(each):
            print_data(line)
        print_data()
    print_message(
        f"{counted(queue['waiting'], 'note')} to review; run in a terminal to be asked, or use --accept, --reject, --merge …"
    )


def _sort(queue: dict[str, Any], *, as_json: bool) -> None:
    """Ask for one key for each note; the last answer can be undone."""
    if as_json:
        print_json(queue)
        return
    if not is_interactive():
        for each in queue["notes"]:
            print_data(f"{'shown' if each['shown'] else '-':5} {each['kind']:10} {each['path']}")
        print_message(f"{counted(queue['left'], 'note')}, those never shown first; run in a terminal to be asked about each")
        return
    done: list[tuple[dict[str, Any], str]] = []
    at = 0
    while at < len(queue["notes"]):
        each = queue["notes"][at]
        stderr_console().rule(f"{at + 1} of {queue['left']}")
        for line in (
            each["title"],
            f"  {each['kind']} · {each['project'] or 'everywhere'} · {each['path']}",
            *_wrapped(each["body"])[:12],
        ):
            stderr_console().print(line, markup=False, soft_wrap=True)
        stderr_console().print("[k]eep, [a]rchive, [r]eject, [u]ndo, [q]uit: ", end="", markup=False)
        key = (sys.stdin.readline() or "q").strip()[:1].lower()
        if key == "q":
            break
        if key == "u" and done:
            last, _ = done.pop()
            perform("sort", note=last["id"], verdict="stand")
            at -= 1
        elif key in _SORTS:
            perform("sort", note=each["id"], verdict=_SORTS[key])
            done.append((each, _SORTS[key]))
            at += 1
    counts = {verdict: sum(said == verdict for _, said in done) for verdict in _SORTS.values()}
    print_message(", ".join(f"{count} {_SORTED[verdict]}" for verdict, count in counts.items() if count) or "nothing was decided")


def _walk(notes: list[dict[str, Any]], waiting: int) -> None:
    done: dict[str, int] = {}
    for at, each in enumerate(notes, 1):
        verdict = _decide(each, f"{at} of {waiting}")
        if verdict == "quit":
            break
        done[verdict] = done.get(verdict, 0) + 1
    counts = ", ".join(f"{count:,} {verdict}" for verdict, count in done.items())
    print_message(counts or "nothing was decided")


def _decide(each: dict[str, Any], place: str) -> str:
    """Ask about one note, and return the outcome as a word."""
    shown: dict[str, Any] | None = each
    while shown is not None:
        _show(shown, place)
        key = _asked(shown)
        if key == "q":
            return "quit"
        if key == "s":
            return "skipped"
        try:
            if key == "e":
                memory.edit(shown["id"] or shown["path"])
            else:
                return _judged(shown, _KEYS[key])
        except KiteError as error:
            print_warning(error)
        shown = _again(shown)
    return "no longer waiting"


def _judged(shown: dict[str, Any], verdict: str) -> str:
    other = shown["nearest"] if verdict == "merge" else shown["contested"] if verdict in ("replace", "both") else None
    perform(
        "judge",
        note=shown["id"] or shown["path"],
        verdict=verdict,
        into=(other["id"] or other["path"]) if other else "",
        seen=shown["version"],
    )
    return _DONE[verdict]


def _again(each: dict[str, Any]) -> dict[str, Any] | None:
    """Return the note's current state, or ``None`` if it does not wait any more."""
    for one in perform("review", limit=500)["notes"]:
        if (one["id"] or one["path"]) == (each["id"] or each["path"]):
            found: dict[str, Any] = one
            return found
    return None


def _asked(each: dict[str, Any]) -> str:
    choices = [_VERDICT_HELP[verdict] for verdict in each["choices"]]
    keys = {key for key, verdict in _KEYS.items() if verdict in each["choices"]} | set("esq")
    while True:
        stderr_console().print(", ".join([*choices[:1], "[e]dit", *choices[1:], "[s]kip", "[q]uit"]) + ": ", end="", markup=False)
        line = sys.stdin.readline()
        if not line:
            return "q"
        key = line.strip()[:1].lower()
        if key in keys:
            return key


def _show(each: dict[str, Any], place: str) -> None:
    from rich.text import Text

    from kite_memory.text.quoting import plain

    screen = stderr_console()
    screen.rule(place)
    for line, style in _shown(each):
        screen.print(Text(plain(line), style=style), soft_wrap=True)
    screen.print()


def _shown(each: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield lines and their styles. Their text was made safe for a terminal before."""
    yield each["title"], "bold"
    of = each["project"] or "everywhere"
    yield f"  {each['kind']} · {of} · {_WHOSE[each['origin']]} · {local_day(each['created'])} · {each['id'] or each['path']}", "dim"
    if each.get("because"):  # an older daemon does not say it
        yield f"  waits because {each['because']}", "dim"
    for line in each["evidence"][:3]:
        yield f"  rests on {line['reference']}" + (f": “{line['text']}”" if line["text"] else ""), "dim"
    if each["contested"]:
        yield f"  may contradict {each['contested']['title']} ({each['contested']['path']})", "yellow"
    if each["long"]:
        advice = (
            f"could be {len(each['parts'])} notes: {' · '.join(each['parts'])}"
            if each["parts"]
            else "has no headings to divide it at"
        )
        yield f"  is long, {len(each['body']):,} characters, and {advice}", "yellow"
    other = each["contested"] or each["nearest"]
    if other is None:
        for line in _wrapped(each["body"]):
            yield f"    {line}", ""
        return
    yield f"  against {other['title']} ({other['path']}):", "dim"
    yield from _difference(other["body"], each["body"])


def _difference(old: str, new: str) -> Iterator[tuple[str, str]]:
    styles = {"+": "green", "-": "red"}
    lines = [line for line in difflib.ndiff(_wrapped(old), _wrapped(new)) if not line.startswith("?")]
    for line in lines[:_MOST_LINES]:
        yield f"    {line.rstrip()}", styles.get(line[:1], "")
    if len(lines) > _MOST_LINES:
        yield f"    … and {counted(len(lines) - _MOST_LINES, 'line')} more", "dim"


def _wrapped(body: str) -> list[str]:
    room = max(30, min(width(), _WIDTH) - 8)
    lines: Iterable[str] = (line for line in body.splitlines() if line.strip() and not line.startswith("**Related:**"))
    return [part for line in lines for part in textwrap.wrap(line, room)][: 4 * _MOST_LINES]


def add_to(app: typer.Typer) -> None:
    add(app, review, panel=PANEL)
