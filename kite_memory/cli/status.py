"""What `kmem status` prints. Loads neither Typer nor anything that a running daemon has loaded already."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from kite_memory import __version__
from kite_memory.cli.console import counted, say, say_json


def say_status(status: dict[str, Any], *, as_json: bool) -> None:
    """Print the value of the operation ``status``."""
    if as_json:
        say_json(status)
        return
    notes, index, extractor = status["notes"], status["index"], status["extractor"]
    say(f"daemon     {_daemon(status['daemon'])}")
    for folder, why in status["daemon"].get("unwatched", {}).items():
        say(f"           {folder} is looked at now and then only: {why}")
    used = [source for source in status["sources"] if source["there"] or source["events"]]
    for source in used:
        more = "more than " if source["more"] else ""
        files = f", {source['read']:,} of {more}{counted(source['found'], 'file')} read" if source["read"] < source["found"] else ""
        behind = f", {more}{counted(source['behind_bytes'], 'byte')} behind" if source["behind_bytes"] else ""
        problems = f", {counted(source['problems'], 'problem')}" if source["problems"] else ""
        read = f"{counted(source['sessions'], 'session')}, {counted(source['events'], 'event')}"
        say(f"source     {source['provider']}: {read}{files}{behind}{problems}")
    if not used:
        say("source     none: no agent has left transcripts here")
    kinds = ", ".join(f"{count} {kind}" for kind, count in notes["by_kind"].items() if count)
    say(f"notes      {notes['total']}" + (f": {kinds}" if kinds else ""))
    if notes["to_review"]:
        say(f"           {notes['to_review']} to review, waiting for you: `kmem review`")
    if notes["keyed"]:
        say(f"           {notes['keyed']} under a key")
    stale = f", {index['stale']} to do" if index["stale"] else ""
    say(f"index      {counted(index['rows'], 'row')}, {index['embedder']}{stale}")
    say(f"extractor  {extractor['name']}, {counted(extractor['backlog_chunks'], 'chunk')} waiting{_because(extractor)}")
    if extractor["waiting_for"] and extractor["hint"]:
        say(f"           {extractor['hint']}")
    if batched := extractor["chunks_in_batches"]:
        say(f"           {batched} of them in a batch, answered within a day at half the price")
    for reason, count in extractor["set_aside"].items():
        say(f"           {counted(count, 'chunk')} set aside ({reason}); `kmem backfill --retry` asks again")
    if extractor["open_sessions"] and not status["daemon"]["running"]:
        say(f"           {counted(extractor['open_sessions'], 'session')} that notes are still to be made of")
    if passed_over := extractor["passed_over_sessions"]:
        say(f"           {counted(passed_over, 'session')} passed over as too old; `kmem backfill` makes notes of them")
    if refused := extractor["refused_items"]:
        most = sorted(refused.items(), key=lambda each: (-each[1], each[0]))[:_REASONS]
        rest = sum(refused.values()) - sum(count for _, count in most)
        reasons = [f"{count} {reason}" for reason, count in most] + ([f"{rest} for other reasons"] if rest else [])
        say(f"gate       {', '.join(reasons)}")
    if extractor["budget_usd"]:
        tokens = f"{extractor['tokens_in']:,} tokens in, {extractor['tokens_out']:,} out"
        dollars = f"${extractor['cost_usd']:.3f} of ${extractor['budget_usd']:.2f}"
        say(f"today      {counted(extractor['calls_today'], 'call')}, {tokens}, {dollars}")
    for line in _helping(status["helping"]):
        say(line)
    for problem in status["problems"]:
        say(f"problem    {problem['reason']} ({problem['count']}), first in {problem['where']}")
    for note in status["last_notes"]:
        say(f"last note  {note['created'][:16].replace('T', ' ')}  {note['title']}")


_REASONS = 4
"""Limit of reasons in a line why notes were not made, or only proposed."""


def _daemon(daemon: dict[str, Any]) -> str:
    if daemon["running"]:
        since = daemon["since"][:16].replace("T", " ")
        version = daemon.get("version", "")
        other = "" if version == __version__ else f"; it is of version {version or 'unknown'}, `kmem up` restarts it"
        return f"running, pid {daemon['pid']}, since {since} UTC, {daemon['rss_mb']:.0f} MB{other}"
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
        silent = f"; silent on {week['silent']:,} of {counted(week['prompts'], 'prompt')}" if week["prompts"] else ""
        yield f"{'helping' if not number else '':11}{week['week']}: {', '.join(parts)}{silent}"


def _when(moments: dict[str, Any]) -> str:
    """How the notes that were given in full came, and how many titles were listed besides."""
    from kite_memory.recall.tallies import BY_TITLE  # brings numpy along

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
