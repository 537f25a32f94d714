"""Printed search results: a line each, best first, ending with the reference that opens it."""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kite_memory.cli.console import say, say_marked, tell, width

_TEXT = 160
_LEAST_TEXT = 24
_AFTER = 60
_WORD = re.compile(r"[^\W_]{2,}")
_SESSION = 8


def print_found(found: dict[str, Any], *, explain: bool, limit: int) -> None:
    """Print notes and passages in one order. If there are only merely near ones, they are printed under a line that says so."""
    lines = [(hit["rank"], hit, True) for hit in found["hits"]] + [(each["rank"], each, False) for each in found["events"]]
    lines.sort(key=lambda line: line[0])
    sure = [(each, is_note) for _, each, is_note in lines if is_note or each["tier"] != "nearest"]
    nearest = [each for _, each, is_note in lines if not is_note and each["tier"] == "nearest"]
    words = [word for word in _WORD.findall(found["query"].lower()) if not word.endswith(":")]
    for each, is_note in sure[:limit]:
        _print(each, words, is_note=is_note, explain=explain)
    if nearest and not sure:
        tell("nothing holds enough of these words; the nearest:")
        for each in nearest[:limit]:
            _print(each, words, is_note=False, explain=explain)


def tell_what_to_try(found: dict[str, Any], *, project: str, since: str) -> None:
    tell("nothing found")
    narrowed = [f"without {option}" for option, given in (("--project", project), ("--since", since)) if given]
    if re.search(r"\b(?:decision|insight|fact|preference|error|test|resume|tool|file|session):", found["query"]):
        narrowed.append("without the prefix")
    tell(f"hint: try {', '.join([*narrowed, 'fewer or other words'])}; `kmem status` says what has been read")


def _print(each: dict[str, Any], words: Sequence[str], *, is_note: bool, explain: bool) -> None:
    kind, at, text, named = _note(each) if is_note else _passage(each)
    head = f"{kind:<10} {at}  "
    shortened = " ".join(text.split())
    if sys.stdout is not None and sys.stdout.isatty():
        most = max(_LEAST_TEXT, width() - len(head) - len(named) - 2)
        shortened = shortened if len(shortened) <= most else shortened[: most - 1].rstrip() + "…"
        said = f"{head}{shortened:<{most}}  {named}"
    else:
        shortened = shortened if len(shortened) <= _TEXT else shortened[: _TEXT - 1].rstrip() + "…"
        said = f"{head}{shortened}  {named}"
    say_marked(said, list(_marks(said, len(head), len(head) + len(shortened), words)))
    if explain:
        for line in _explained(each, is_note=is_note):
            say(f"           {line}")


def _note(hit: dict[str, Any]) -> tuple[str, str, str, str]:
    title, snippet = hit["title"], hit["snippet"]
    said = max(title, snippet, key=len) if snippet.startswith(title[:40]) else f"{title} · {snippet}" if snippet else title
    project = f" ({hit['project']})" if hit["project"] else ""
    superseded = "replaced: " if hit["status"] == "superseded" else ""
    became = _became(hit)
    team = " (the team)" if hit.get("team") else ""
    return hit["kind"], hit["created"][:10], f"{superseded}{said}{project}{became}", f"{hit['path'] or hit['id']}{team}"


def _passage(event: dict[str, Any]) -> tuple[str, str, str, str]:
    said = event["snippet"] or "(no words)"
    failed = "failed: " if event["status"] == "failed" else ""
    where = f" ({event['project']})" if event["project"] else ""
    if "asked" not in event:
        return (
            _KINDS.get(event["type"], event["type"]),
            event["at"][:10],
            f"{failed}{said}{where}{_became(event)}",
            _short(event["reference"]),
        )
    asked = " ".join(event["asked"].split())
    asked = asked if len(asked) <= 60 else asked[:59].rstrip() + "…"
    text = said if said.strip("…").strip()[:30] in event["asked"] else f"“{asked}” → {said}"
    later = f" [said again {event['later_at'][:10]}: {_short(event['later'])}]" if event["later"] else ""
    return "chat", event["at"][:10], f"{text}{where}{later}", _short(event["card"])


def _became(each: dict[str, Any]) -> str:
    """Return the first line of what became of a result, without its citation: ``--explain`` prints it all."""
    said = each["became"][0].partition(" [")[0] if each.get("became") else ""
    return f" [{said if len(said) <= _AFTER else said[: _AFTER - 1].rstrip() + '…'}]" if said else ""


_KINDS = {
    "user_message": "prompt",
    "assistant_message": "answer",
    "tool_call": "call",
    "tool_result": "result",
    "file_action": "file",
    "test_result": "test",
    "resume_point": "summary",
}


def _short(reference: str) -> str:
    """Return a citation with a session id shortened as far as it can still be followed."""
    provider, _, rest = reference.partition(":")
    session, _, event = rest.rpartition("#")
    return f"{provider}:{session[:_SESSION]}#{event}" if event else reference


def _explained(each: dict[str, Any], *, is_note: bool) -> Iterator[str]:
    yield f"score {each['score']:.2f}" + (f": {each['why']}" if is_note and each["why"] else "")
    yield from each.get("became", ())
    if not is_note:
        home = str(Path.home())
        where = each["where"]
        yield f"~{where[len(home) :]}" if where.startswith(home + os.sep) else where


def _marks(text: str, start: int, end: int, words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the places of the query's words in a part of the text, from their beginning to the end of the word."""
    stems = tuple(word[: max(3, len(word) - 3)] for word in words if len(word) > 2)
    for found in _WORD.finditer(text, start, end):
        if stems and found.group().lower().startswith(stems):
            yield found.span()
