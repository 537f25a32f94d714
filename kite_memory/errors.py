"""Errors that a user can act on."""


class KiteError(Exception):
    """Base of all errors shown to users: printed as ``error: …`` and ``hint: …``; the process ends with ``exit_code``."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class UsageError(KiteError):
    exit_code = 2


class FoundSomething(KiteError):
    """Raised by ``doctor``, ``verify`` and ``--check`` when they found a problem."""

    exit_code = 3


class VaultMissing(KiteError):
    """The vault folder is missing at the configured path, or is empty although it held notes."""


class VaultReadOnly(KiteError):
    """The vault cannot be written to: permissions, a read-only mount, or no space left."""


class VaultFolderWrong(VaultReadOnly):
    """One folder of the vault is a file or a link; the others can still be written to."""


class StateNewer(KiteError):
    """A state file was written by a newer version of Kite Memory."""


class StateNotWritten(KiteError):
    """A store could not be changed: no space left, or a failing disk. The whole change was rolled back."""


class StateTakenAway(KiteError):
    """State files were moved or replaced while open. Continuing would write a second copy beside the one now in use."""


class StateDamaged(KiteError):
    """A state file has invalid content; ``kmem rebuild`` writes it again."""


class ConfigInvalid(KiteError):
    exit_code = 2


class DaemonUnreachable(KiteError):
    """No daemon answers at the socket."""


class DaemonRunning(KiteError):
    """Another process holds the daemon's lock."""


class NotFound(KiteError):
    """The named thing does not exist, or the caller may not see it."""


class NoteNotFound(NotFound):
    """No note has that id, path or title."""


class EmbedderUnavailable(KiteError):
    """The embedding service did not answer; local embeddings still work."""
