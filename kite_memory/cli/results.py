"""What `kmem search`, `kmem status` and `kmem why` print. Loads neither Typer nor what a running daemon has loaded already."""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kite_memory import __version__
from kite_memory.cli.console import print_data, print_json, print_marked, print_message, width
from kite_memory.text.display import clip_end, clip_line, counted, local_day, local_time


def print_status(status: dict[str, Any], *, as_json: bool) -> None:
    """Print the value of the operation ``status``."""
    if as_json:
        print_json(status)
        return
    notes, index, extractor = status["notes"], status["index"], status["extractor"]
    print_data(f"daemon     {_daemon(status['daemon'])}")
    for folder, why in status["daemon"].get("unwatched", {}).items():
        print_data(f"           {folder} is not watched, only compared periodically: {why}")
    used = [source for source in status["sources"] if source["there"] or source["events"]]
    for source in used:
        more = "more than " if source["more"] else ""
        files = f", {source['read']:,} of {more}{counted(source['found'], 'file')} read" if source["read"] < source["found"] else ""
        behind = f", {more}{counted(source['behind_bytes'], 'byte')} behind" if source["behind_bytes"] else ""
        problems = f", {counted(source['problems'], 'problem')}" if source["problems"] else ""
        read = f"{counted(source['sessions'], 'session')}, {counted(source['events'], 'event')}"
        print_data(f"source     {source['provider']}: {read}{files}{behind}{problems}")
    if not used:
        print_data("source     none: no transcripts of any agent were found")
    kinds = ", ".join(counted(count, kind) for kind, count in notes["by_kind"].items() if count)
    print_data(f"notes      {notes['total']}" + (f": {kinds}" if kinds else ""))
    if notes["to_review"]:
        print_data(f"           {notes['to_review']} to review, waiting for you: `kmem review`")
    if notes["keyed"]:
        print_data(f"           {notes['keyed']} under a key")
    stale = f", {index['stale']} pending" if index["stale"] else ""
    print_data(f"search     {counted(index['rows'], 'note')} indexed by words and meaning{stale} (embedder {index['embedder']})")
    waiting = counted(extractor["backlog_chunks"], "chunk") if extractor["backlog_chunks"] else "nothing"
    print_data(f"extractor  {_EXTRACTORS.get(extractor['name'], extractor['name'])}, {waiting} waiting{_because(extractor)}")
    if extractor["waiting_for"] and extractor["hint"]:
        print_data(f"           {extractor['hint']}")
    if batched := extractor["chunks_in_batches"]:
        print_data(f"           {batched} of them in a batch, answered within a day at half the price")
    for reason, count in extractor["set_aside"].items():
        print_data(f"           {counted(count, 'chunk')} set aside ({reason}); `kmem backfill --retry` asks again")
    if extractor["open_sessions"] and not status["daemon"]["running"]:
        print_data(f"           {counted(extractor['open_sessions'], 'session')} without notes yet")
    if passed_over := extractor["passed_over_sessions"]:
        print_data(f"           {counted(passed_over, 'session')} passed over as too old; `kmem backfill` makes notes of them")
    if refused := extractor["refused_items"]:
        most = sorted(refused.items(), key=lambda each: (-each[1], each[0]))[:_REASONS]
        rest = sum(refused.values()) - sum(count for _, count in most)
        reasons = [f"{count} {_REVIEWED.sub('to review: ', reason)}" for reason, count in most]
        print_data(f"held back  {'; '.join([*reasons, *([f'{rest} for other reasons'] if rest else [])])}")
    if extractor["budget_usd"]:
        tokens = f"{extractor['tokens_in']:,} tokens in, {extractor['tokens_out']:,} out"
        dollars = f"${extractor['cost_usd']:.3f} of ${extractor['budget_usd']:.2f}"
        print_data(f"today      {counted(extractor['calls_today'], 'call')}, {tokens}, {dollars}")
    for line in _helping(status["helping"]):
        print_data(line)
    for problem in status["problems"]:
        print_data(f"problem    {problem['reason']} ({problem['count']}), first in {problem['where']}")
    for number, note in enumerate(status["last_notes"]):
        line = f"{'' if number else 'last notes':10} {local_time(note['created'])}  {note['title']}"
        print_data(clip_end(line, width()) if sys.stdout is not None and sys.stdout.isatty() else line)


_EXTRACTORS = {
    "offline": "offline: rules on this machine",
    "claude-cli": "claude-cli: the `claude` command",
    "anthropic": "anthropic: a model, with your key",
    "openai": "openai: a model at the address that you set",
}
_REVIEWED = re.compile(r"^proposed: ")
_REASONS = 4
"""Limit of reasons in a line why notes were not made, or only proposed."""


def _daemon(daemon: dict[str, Any]) -> str:
    if daemon["running"]:
        since = local_time(daemon["since"])
        version = daemon.get("version", "")
        other = "" if version == __version__ else f"; it is of version {version or 'unknown'}, `kmem up` restarts it"
        return f"running, pid {daemon['pid']}, since {since}, {daemon['rss_mb']:.0f} MB{other}"
    if daemon["held_by"] is not None:
        return f"not running; process {daemon['held_by']} is at work here"
    return "not running; `kmem up` starts it"


_MOMENTS = {
    "prompt": "with a prompt",
    "quote": "as a quote",
    "opened": "opened by the agent",
    "action": "with a tool call",
    "late": "later in a turn",
    "team": "from the team",
}


def _helping(report: dict[str, Any]) -> Iterator[str]:
    """Yield a line for each week with prompts or shown notes."""
    weeks = [week for week in report["weeks"] if week["prompts"] or week["shown"]]
    for number, week in enumerate(weeks):
        parts = [counted(week["shown"], "note") + " shown" + _when(week["by_moment"])]
        if week["shown"]:
            parts += [f"{week['used']} used", f"{week['ignored']} ignored"]
            parts += [f"{week[kind]} {said}" for kind, said in (("unknown", "not known"), ("open", "open")) if week[kind]]
        silent = f"; nothing shown for {week['silent']:,} of {counted(week['prompts'], 'prompt')}" if week["prompts"] else ""
        yield f"{'usage' if not number else '':11}{week['week']}: {', '.join(parts)}{silent}"


def _when(moments: dict[str, Any]) -> str:
    """Summarise when notes were shown in full, and how many titles were listed."""
    from kite_memory.recall.uptake import BY_TITLE  # brings numpy along

    full = {moment: words for moment, words in _MOMENTS.items() if moment in moments and moment not in BY_TITLE}
    listed = sum(moments[moment]["shown"] for moment in moments if moment in BY_TITLE)
    came = [f"{moments[moment]['shown']} {words}" for moment, words in full.items()]
    return (f" ({', '.join(came)})" if set(full) - {"prompt"} else "") + (f", {counted(listed, 'title')} listed" if listed else "")


def _because(extractor: dict[str, Any]) -> str:
    if not extractor["waiting_for"]:
        return ""
    until = extractor["waiting_until"]
    when = f" until {datetime.fromtimestamp(until, UTC):%Y-%m-%d %H:%M} UTC" if until else ""
    return f" ({extractor['waiting_for']}{when})"


_TEXT = 160
_LEAST_TEXT, _READABLE_TEXT = 24, 40
_AFTER = 60
_WORD = re.compile(r"[^\W_]{2,}")
_SESSION = 8


def print_found(found: dict[str, Any], *, explain: bool, limit: int) -> None:
    """Print notes and passages in one order. If there are only merely near ones, they are printed under a line that says so."""
    lines = [(hit["rank"], hit, True) for hit in found["hits"]] + [(each["rank"], each, False) for each in found["events"]]
    lines.sort(key=lambda line: line[0])
    sure = [(each, is_note) for _, each, is_note in lines if each.get("tier") != "nearest"]
    nearest = [(each, is_note) for _, each, is_note in lines if each.get("tier") == "nearest"]
    words = [word for word in _WORD.findall(found["query"].lower()) if not word.endswith(":")]
    for each, is_note in sure[:limit]:
        _print(each, words, is_note=is_note, explain=explain)
    if nearest and not sure:
        print_message("no close match; nearest:")
        for each, is_note in nearest[:limit]:
            _print(each, words, is_note=is_note, explain=explain)


def print_nothing_read() -> None:
    print_message("hint: no transcript has been read yet: `kmem up` reads and watches them; `kmem demo` shows what comes of it")


_NAMES_IT = 0.8


def print_notes_that_name(error: str, hits: Sequence[dict[str, Any]]) -> bool:
    """Print those of the notes found that hold nearly all words of an error; return whether there are any."""
    wanted = set(re.findall(r"\w+", error.casefold()))
    said = ((each, set(re.findall(r"\w+", f"{each['title']} {each['snippet']}".casefold()))) for each in hits)
    notes = [each for each, words in said if len(wanted & words) >= max(1, _NAMES_IT * len(wanted))]
    for note in notes:
        print_data(note["title"])
        print_data(f"    noted {local_day(note['created'])}  [{note['path']}]")
    return bool(notes)


def print_search_hint(found: dict[str, Any], *, project: str, since: str) -> None:
    print_message("nothing found")
    narrowed = [f"without {option}" for option, given in (("--project", project), ("--since", since)) if given]
    if re.search(r"\b(?:decision|insight|fact|preference|error|test|resume|tool|file|session):", found["query"]):
        narrowed.append("without the prefix")
    if found.get("nothing_read") and not narrowed:  # a daemon of the version before does not say it
        print_nothing_read()
        return
    print_message(f"hint: try {', '.join([*narrowed, 'fewer or other words'])}; `kmem status` says what has been read")


def _print(each: dict[str, Any], words: Sequence[str], *, is_note: bool, explain: bool) -> None:
    kind, at, text, named = _note(each) if is_note else _passage(each)
    from kite_memory.recall.rendering import handle

    head = f"{kind:<10} {at}  "
    shown = with_short_home(" ".join(text.split()))
    if sys.stdout is not None and sys.stdout.isatty():
        if is_note and not each.get("team") and width() - len(head) - len(named) < _READABLE_TEXT:
            named = handle(each["id"]) or named
        most = max(_LEAST_TEXT, width() - len(head) - len(named) - 2)
        shown = clip_end(shown, most)
        line = f"{head}{shown:<{most}}  {named}"
    else:
        shown = clip_end(shown, _TEXT)
        line = f"{head}{shown}  {named}"
    print_marked(line, list(_marks(line, len(head), len(head) + len(shown), words)))
    if explain:
        for line in _explained(each, is_note=is_note):
            print_data(f"           {line}")


def _note(hit: dict[str, Any]) -> tuple[str, str, str, str]:
    title, snippet = hit["title"], hit["snippet"]
    said = max(title, snippet, key=len) if snippet.startswith(title[:40]) else f"{title} · {snippet}" if snippet else title
    project = f" ({hit['project']})" if hit["project"] else ""
    superseded = "replaced: " if hit["status"] == "superseded" else ""
    became = _became(hit)
    team = " (the team)" if hit.get("team") else ""
    return hit["kind"], local_day(hit["created"]), f"{superseded}{said}{project}{became}", f"{hit['path'] or hit['id']}{team}"


def _passage(event: dict[str, Any]) -> tuple[str, str, str, str]:
    said = event["snippet"] or "(no words)"
    failed = "failed: " if event["status"] == "failed" else ""
    where = f" ({event['project']})" if event["project"] else ""
    if "asked" not in event:
        return (
            _KINDS.get(event["type"], event["type"]),
            local_day(event["at"]),
            f"{failed}{said}{where}{_became(event)}",
            _short(event["reference"]),
        )
    asked = clip_line(event["asked"], 60)
    text = said if said.strip("…").strip()[:30] in event["asked"] else f"“{asked}” → {said}"
    later = f" [said again {local_day(event['later_at'])}: {_short(event['later'])}]" if event["later"] else ""
    return "chat", local_day(event["at"]), f"{text}{where}{later}", _short(event["card"])


def _became(each: dict[str, Any]) -> str:
    """Return the first line of what became of a result, without its citation: ``--explain`` prints it all."""
    said = each["became"][0].partition(" [")[0] if each.get("became") else ""
    return f" [{clip_end(said, _AFTER)}]" if said else ""


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
        yield with_short_home(each["where"])


def with_short_home(text: str) -> str:
    """Write ``~`` for the home folder where a path begins with it."""
    home = str(Path.home())
    return re.sub(rf"(?<![\w/.~-]){re.escape(home + os.sep)}", lambda _: f"~{os.sep}", text) if len(home) > 1 else text


def _marks(text: str, start: int, end: int, words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the places of the query's words in a part of the text, from their beginning to the end of the word."""
    stems = tuple(word[: max(3, len(word) - 3)] for word in words if len(word) > 2)
    for found in _WORD.finditer(text, start, end):
        if stems and found.group().lower().startswith(stems):
            yield found.span()


def print_evidence(report: dict[str, Any]) -> None:
    if report["title"] or report["path"]:
        print_data(f"{report['title']}  ({report['path']})")
    for line in report.get("became", ()):
        print_data(f"  {line}")
    if not report["evidence"]:
        print_data("no evidence: a person wrote it")
    for piece in report["evidence"]:
        print_data()
        print_data(piece["reference"])
        if not piece["events"]:
            print_data("  its transcript is gone, and the timeline does not hold it")
        for event in piece["events"]:
            print_data(f"  {event['at'][:19].replace('T', ' ')}  {event['role']}  {event['where']}")
            for line in event["text"].splitlines():
                print_data(f"    {line}")
        for line in piece["became"]:
            print_data(f"  {line}")


def print_prompts(report: dict[str, Any]) -> None:
    if not report["prompts"]:
        print_message(
            "no prompt was given a note yet"
            if report["silent"]
            else "no prompt has been answered yet; `kmem hooks status` shows which agents ask"
        )
    for prompt in report["prompts"]:
        moment = f" ({_OCCASIONS[prompt['moment']]})" if prompt["moment"] in _OCCASIONS else ""
        said = prompt["prompt"] or ("" if moment else "(nothing that may be kept)")
        print_data(f"{local_time(prompt['at'])}  {said}{moment}")
        for shown in prompt["notes"]:
            print_data(f"                  {shown['score']:.2f}  {shown['title']}" + _place(shown))
            print_data(f"                        {_outcome(shown)}")
        print_data(f"                  {prompt['reason']}")
    if report["silent"]:
        print_message(f"{counted(report['silent'], 'other prompt')} since then, given nothing: --silent shows them, too")
    if any(shown["outcome"] == "ignored" for prompt in report["prompts"] for shown in prompt["notes"]):
        print_message("`kmem mute NOTE` keeps a note from being shown again; searching still finds it")


_OCCASIONS = {"start": "as the session started", "action": "with a tool call", "late": "later in the turn", "team": "from the team"}
_OUTCOMES = {"unknown": "used or not is unknown", "open": "the turn is not over yet"}


def _outcome(shown: dict[str, Any]) -> str:
    said = _OUTCOMES.get(shown["outcome"], shown["outcome"])
    return f"{said}: {shown['because']}" if shown["because"] else said


def _place(shown: dict[str, Any]) -> str:
    """Return the note's path, or a conversation's citation, which `kmem show` opens."""
    place = shown["path"] or (shown["id"] if "#" in shown["id"] else "")
    return f"  ({place})" if place else ""
