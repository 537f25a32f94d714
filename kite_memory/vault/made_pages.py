"""Pages at the top of the vault that are generated from notes, and settings kept about them."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from kite_memory.errors import KiteError
from kite_memory.vault.files import CannotRead, Files
from kite_memory.vault.ledger import Ledger
from kite_memory.vault.listing import GENERATED
from kite_memory.vault.wording import digest
from kite_memory.vault.writing import Writer


class MadePages:
    """The generated pages of one vault. ``writing`` holds the vault's lock."""

    def __init__(self, root: Path, files: Files, ledger: Ledger, writing: Callable[[], AbstractContextManager[Writer]]) -> None:
        self._root = root
        self._files = files
        self._ledger = ledger
        self._writing = writing

    def read(self, name: str) -> str:
        """Return the text of a generated page; empty where none exists. Raises `KiteError` where it is not text."""
        try:
            return self._files.read(name).data.decode()
        except FileNotFoundError:
            return ""
        except (CannotRead, UnicodeDecodeError) as error:
            raise KiteError(f"{self._root / name} cannot be read: {error}", hint="mend it in an editor, or move it away") from error

    def put(self, name: str, text: str, *, before: str) -> bool:
        """Write a page, and return whether it was written: not where the page is no longer what it was ``before``."""
        if name.casefold() not in GENERATED:
            raise ValueError(name)
        with self._writing():
            if self._files.is_protected(name):
                raise KiteError(f"{self._root / name} is write-protected", hint="allow writing to it, or move it away")
            if before:
                return self._files.replace(name, text.encode(), expected=digest(before)) is not None
            filled = self._files.fill(name, text.encode())
            try:
                self._files.publish(filled)
            except FileExistsError:  # also an empty page
                self._files.discard(filled.temporary)
                return self._files.replace(name, text.encode(), expected=digest("")) is not None
            return True

    def drop(self, name: str, text: str) -> bool:
        """Move a page to the trash if its text is exactly ``text``; return whether it was moved."""
        if name.casefold() not in GENERATED:
            raise ValueError(name)
        with self._writing():
            if self.read(name) != text:
                return False
            self._files.to_trash(name)
            return True

    def noted(self, name: str) -> str:
        """Return what was kept under this name with `note_down`; empty where nothing was."""
        return self._ledger.setting(f"noted: {name}")

    def note_down(self, name: str, text: str) -> None:
        self._ledger.set(f"noted: {name}", text)
