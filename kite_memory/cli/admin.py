"""`kmem admin`: for administrators of a team's server."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kite_memory import config as configuration
from kite_memory.cli.console import say, say_json, tell
from kite_memory.cli.help import Command, group

if TYPE_CHECKING:
    from kite_memory.team.postgres import PostgresStore

PANEL = "Agents"

admin = group(
    help="Administer a team's store: audit, usage, undelete, backup and restore.",
    example="kmem admin audit --since 7d",
)

Store = Annotated[
    str,
    typer.Option(
        metavar="URL",
        envvar="KMEM_STORE",
        show_envvar=False,
        help="The team's store, as postgresql://…; default: KMEM_STORE, else the configuration.",
    ),
]
Since = Annotated[str, typer.Option(metavar="AGE", help="How far back, as 7d or 12h.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@admin.command("audit", cls=Command)
def audit(
    since: Since = "7d",
    person: Annotated[str, typer.Option(metavar="PERSON", help="Only this person's calls.")] = "",
    tool: Annotated[str, typer.Option(metavar="TOOL", help="Only calls of this tool, such as write_memory.")] = "",
    key: Annotated[str, typer.Option(metavar="KEY", help="Only calls on this key or note.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="At most this many.")] = 100,
    as_json: AsJson = False,
    store: Store = "team",
) -> None:
    """List who called which tool of the team's server, on what and when, newest first.

    The content of calls is not kept. The audit goes back as far as `keep_days` in [team] allows.

    Example: kmem admin audit --since 7d --person ada
    """
    with _opened(store) as opened:
        found = opened.audited(since=_since(since), person=person, tool=tool, key=key, limit=limit)
    if as_json:
        say_json([{**asdict(entry), "at": entry.at.isoformat()} for entry in found])
        return
    for entry in found:
        about = f"  {_shown(entry.key)}" if entry.key else ""
        by = ", ".join(filter(None, (_shown(entry.token), _shown(entry.ai))))
        ended = "" if entry.outcome == "ok" else f"  ({_shown(entry.outcome)})"
        say(f"{entry.at:%Y-%m-%d %H:%M:%S}  {_person(entry.person)}{f' [{by}]' if by else ''}  {_shown(entry.tool)}{about}{ended}")
    if not found:
        tell("no calls in that time")


@admin.command("usage", cls=Command)
def usage(since: Since = "30d", as_json: AsJson = False, store: Store = "team") -> None:
    """Count each person's calls, writes and refusals, the busiest first.

    Example: kmem admin usage --since 30d
    """
    with _opened(store) as opened:
        found = opened.usage(since=_since(since))
    if as_json:
        say_json([{**asdict(each), "last": each.last.isoformat()} for each in found])
        return
    for each in found:
        say(
            f"{_person(each.person)}  {each.calls:,} calls on {each.days} days, {each.writes:,} writes, {each.refused:,} refused;"
            f" last {each.last:%Y-%m-%d %H:%M} UTC"
        )
    if not found:
        tell("no calls in that time")


@admin.command("undelete", cls=Command)
def undelete(
    key: Annotated[str, typer.Argument(metavar="KEY", help="A memory's key, or a note's id, path or title.")],
    person: Annotated[str, typer.Option(metavar="PERSON", help="The person whose global memory it is.")] = "",
    project: Annotated[str, typer.Option(metavar="PROJECT", help="The project it belongs to.")] = "",
    store: Store = "team",
) -> None:
    """Restore a deleted memory or a forgotten note while its words are kept.

    They are kept for `keep_days` of [team]. A memory comes back as a new version. A forgotten journal comes back without its
    conversation.

    Example: kmem admin undelete project.port --project orchard
    """
    with _opened(store) as opened:
        found = opened.undelete(key, by="admin", person=person, project=project)
    tell(f"{_shown(found.name)} is back ({_shown(found.place)}); it was deleted {found.at:%Y-%m-%d %H:%M} UTC")


@admin.command("backup", cls=Command)
def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A new file.")],
    store: Store = "team",
) -> None:
    """Write everything that the team's store holds for this tenant to a file.

    The backup is a snapshot of one moment; the server can keep running. Long transcripts in object storage are not included: back
    up the bucket too, afterwards.

    Example: kmem admin backup orchard.kite.gz
    """
    with _opened(store) as opened:
        counts = opened.back_up(file)
    tell(f"{file} holds {_counted(counts)}")


@admin.command("restore", cls=Command)
def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that `kmem admin backup` wrote.")],
    store: Store = "team",
) -> None:
    """Read a backup into an empty tenant, all of it or nothing.

    Its notes are embedded again, so that they can be found.

    Example: kmem admin restore orchard.kite.gz
    """
    with _opened(store) as opened:
        counts = opened.restore(file)
        tell(f"restored {_counted(counts)}")
        while opened.catch_up(500):
            pass
    tell("all notes are found again")


@contextmanager
def _opened(store: str) -> Iterator["PostgresStore"]:
    from kite_memory.wiring.team import team_store

    opened = team_store(configuration.load(), store)
    try:
        yield opened
    finally:
        opened.close()


def _since(age: str) -> datetime:
    from kite_memory.text.ages import duration

    return datetime.now(UTC) - duration(age)


def _person(name: str) -> str:
    return _shown(name) or "the server's owner"


def _shown(text: str) -> str:
    """Return the text without what could move a terminal's cursor."""
    from kite_memory.recall.rendering import plain_line

    return plain_line(text, 200)


def _counted(counts: dict[str, int]) -> str:
    named = {"note": "notes and memories", "conversation": "conversations", "state": "AI states", "audit": "lines of the audit"}
    return ", ".join(f"{counts[table]:,} {name}" for table, name in named.items())


def add_to(app: typer.Typer) -> None:
    app.add_typer(admin, name="admin", rich_help_panel=PANEL)
