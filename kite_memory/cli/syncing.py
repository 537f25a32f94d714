"""The command that exchanges the memory with a person's other machines."""

from pathlib import Path
from typing import Annotated, Any

import typer

from kite_memory import config as configuration
from kite_memory.cli.backend import perform
from kite_memory.cli.console import counted, say, say_json, tell
from kite_memory.cli.help import add
from kite_memory.errors import FoundSomething, UsageError

PANEL = "Vault"


def sync(
    target: Annotated[str, typer.Argument(metavar="[FOLDER|URL]", help="A folder, or a git repository. It is remembered.")] = "",
    join: Annotated[
        str, typer.Option(metavar="KEY", help="Join machines that exchange already, with the key of one of them.")
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

    Example: kmem sync --status
    """
    settings = configuration.load()
    target = _absolute(target)
    where = target or settings.sync.target
    if status or show_key:
        shown = perform("sync_status", target=where)
        if not show_key:
            shown = {name: value for name, value in shown.items() if name != "key"}
        if as_json:
            say_json(shown)
        elif show_key:
            _say_key(shown)
        else:
            _say_status(shown)
        return
    if not where:
        raise UsageError("no folder to exchange through", hint="name one: kmem sync ~/Dropbox/kmem")
    shown = perform("sync", target=where, join=join, encrypt=encrypt, dry_run=dry_run)
    if target and not dry_run and target != settings.sync.target:
        from kite_memory.cli.setup import change

        change("sync.target", target)
    if as_json:
        say_json(shown)
    else:
        _say_exchange(shown, dry_run=dry_run)
    if shown["problems"]:
        raise FoundSomething(
            f"{counted(len(shown['problems']), 'problem')}; the rest was exchanged", hint="`kmem sync` tries again"
        )


def _absolute(target: str) -> str:
    """Return a folder's whole path: the daemon, and the next call, are in another folder."""
    from kite_memory.sync.git_remote import is_remote

    return target if not target or is_remote(target) else str(Path(target).expanduser().absolute())


def _say_key(report: dict[str, Any]) -> None:
    if not report["key"]:
        raise UsageError("there is no key yet", hint="`kmem sync FOLDER` makes one")
    say(report["key"])
    tell("who has it can read and write this memory; on another machine: kmem sync FOLDER --join KEY")


def _say_status(status: dict[str, Any]) -> None:
    if not status["machine"]:
        tell("this machine has exchanged nothing yet: `kmem sync FOLDER` begins")
        return
    for each in status["machines"]:
        unread = "this machine" if each["this"] else f"{counted(each['unread'], 'segment')} unread"
        say(f"{each['machine']}  {counted(each['segments'], 'segment')}, {each['bytes'] / 1e6:.1f} MB, {unread}")
    tell(f"through {status['target']}")
    if status["waiting"]:
        tell(f"{counted(status['waiting'], 'note')} not sent")


def _say_exchange(report: dict[str, Any], *, dry_run: bool) -> None:
    for path in report["copies"]:
        say(f"both kept   {path}")
    for path in report["trashed"]:
        say(f"in .trash   {path}  (changed here, deleted there)")
    for path in report["held_back"]:
        say(f"stays here  {path}  (it seems to hold a secret, and nothing is encrypted)")
    for problem in report["problems"]:
        tell(f"note: {problem}")
    came, went = _summary(report["came"]), _summary(report["went"])
    tell(f"{'would come' if dry_run else 'came'}: {came}; {'would go' if dry_run else 'went'}: {went}")
    if report["key"]:
        say(report["key"])
        tell("this is the key for your other machines: kmem sync FOLDER --join KEY")


_NAMES = {
    "notes": "note",
    "renamed": "new name",
    "gone": "deletion",
    "events": "event",
    "forgotten": "forgotten line",
}


def _summary(counts: dict[str, int]) -> str:
    return ", ".join(counted(counts[name], called) for name, called in _NAMES.items() if counts[name]) or "nothing"


def add_to(app: typer.Typer) -> None:
    add(app, sync, panel=PANEL)
