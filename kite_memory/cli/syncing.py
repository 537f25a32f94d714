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
    target: Annotated[str, typer.Argument(metavar="[FOLDER|URL]", help="A folder, or a git repository. Is remembered.")] = "",
    join: Annotated[str, typer.Option(metavar="KEY", help="Join the machines that are in already, with the key of one.")] = "",
    encrypt: Annotated[bool, typer.Option("--encrypt", help="Begin a folder in which all is encrypted, with age.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would come and go.")] = False,
    status: Annotated[bool, typer.Option("--status", help="Only say who takes part, and how far each was read.")] = False,
    show_key: Annotated[bool, typer.Option("--key", help="Only say the key, for --join on another machine.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Exchange this memory with your other machines, through a folder or git.

    The folder is one that Syncthing, Dropbox, iCloud or the like keeps alike on your machines; a git repository is given by its
    address. Notes, conversations, deletions and counts are exchanged, with no server. What two machines wrote without knowing of
    each other is kept, both of it. What you have forgotten on one is forgotten on all. A file that was not signed with your key is
    not read.

    Example: kmem sync --status
    """
    settings = configuration.load()
    target = _absolute(target)
    where = target or settings.sync.target
    if status or show_key:
        told = perform("sync_status", target=where)
        if not show_key:
            told = {name: value for name, value in told.items() if name != "key"}
        if as_json:
            say_json(told)
        elif show_key:
            _say_key(told)
        else:
            _say_status(told)
        return
    if not where:
        raise UsageError("no folder to exchange through", hint="name one: kmem sync ~/Dropbox/kmem")
    told = perform("sync", target=where, join=join, encrypt=encrypt, dry_run=dry_run)
    if target and not dry_run and target != settings.sync.target:
        from kite_memory.cli.setup import change

        change("sync.target", target)
    if as_json:
        say_json(told)
    else:
        _say_exchange(told, dry_run=dry_run)
    if told["problems"]:
        raise FoundSomething(f"{counted(len(told['problems']), 'problem')}; the rest was exchanged", hint="`kmem sync` tries again")


def _absolute(target: str) -> str:
    """Return a folder's whole path: the daemon, and the next call, are in another folder."""
    from kite_memory.sync.git_remote import is_remote

    return target if not target or is_remote(target) else str(Path(target).expanduser().absolute())


def _say_key(told: dict[str, Any]) -> None:
    if not told["key"]:
        raise UsageError("there is no key yet", hint="`kmem sync FOLDER` makes one")
    say(told["key"])
    tell("who has it can read and write this memory; on another machine: kmem sync FOLDER --join KEY")


def _say_status(told: dict[str, Any]) -> None:
    if not told["machine"]:
        tell("this machine has exchanged nothing yet: `kmem sync FOLDER` begins")
        return
    for each in told["machines"]:
        unread = "this machine" if each["this"] else f"{counted(each['unread'], 'segment')} unread"
        say(f"{each['machine']}  {counted(each['segments'], 'segment')}, {each['bytes'] / 1e6:.1f} MB, {unread}")
    tell(f"through {told['target']}")
    if told["waiting"]:
        tell(f"{counted(told['waiting'], 'note')} not sent")


def _say_exchange(told: dict[str, Any], *, dry_run: bool) -> None:
    for path in told["copies"]:
        say(f"both kept   {path}")
    for path in told["trashed"]:
        say(f"in .trash   {path}  (changed here, deleted there)")
    for path in told["held_back"]:
        say(f"stays here  {path}  (it seems to hold a secret, and nothing is encrypted)")
    for problem in told["problems"]:
        tell(f"note: {problem}")
    came, went = _summary(told["came"]), _summary(told["went"])
    tell(f"{'would come' if dry_run else 'came'}: {came}; {'would go' if dry_run else 'went'}: {went}")
    if told["key"]:
        say(told["key"])
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
