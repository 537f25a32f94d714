"""Return an accepted or proposed note with exactly this text, unread."""

from pathlib import Path

from kite_memory.errors import VaultFolderWrong
from kite_memory.system.locks import WriterLock
from kite_memory.vault.files import Files
from kite_memory.vault.ledger import Ledger
from kite_memory.vault.listing import leftovers
from kite_memory.vault.scanning import Scanner


def init_vault(template: Path, *, files: Files, ledger: Ledger, lock: WriterLock, scanner: Scanner) -> None:
    """Lay out the vault: folders, Home note, Obsidian's settings.

    Nothing is overwritten, nothing that was removed is restored, and existing Obsidian settings are left entirely alone.
    """
    with lock.held():
        if not files.is_there() and ledger.is_empty():
            files.make_root()
        scanner.must_be_there()
        if not ledger.setting("laid out"):
            ledger.set("laid out", "not .obsidian" if files.exists(".obsidian") else "all")
        theirs = ledger.setting("laid out") == "not .obsidian"
        for folder in (".obsidian", "templates"):
            files.sweep(leftovers(files, folder))
        wrong: VaultFolderWrong | None = None
        for source in sorted(path for path in template.rglob("*") if path.is_file()):
            path = source.relative_to(template).as_posix()
            if ledger.gave(path) or (theirs and path.startswith(".obsidian/")):
                continue
            try:
                _put(files, source, path)
            except VaultFolderWrong as error:
                wrong = error
                continue
            ledger.give(path)
        if wrong:
            raise wrong


def _put(files: Files, source: Path, path: str) -> None:
    if source.name == ".gitkeep":
        files.make_folder(path.rpartition("/")[0])
        return
    if files.exists(path):
        return
    filled = files.fill(path, source.read_bytes())
    try:
        files.publish(filled)
    except FileExistsError:
        files.discard(filled.temporary)
