"""Errors that a person can act on."""


class KiteError(Exception):
    """Printed as ``error: …`` and ``hint: …``; the process ends with ``exit_code``."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class UsageError(KiteError):
    exit_code = 2


class FoundSomething(KiteError):
    """``doctor``, ``verify`` and ``--check`` say with this that all is not well."""

    exit_code = 3


class VaultMissing(KiteError):
    """The vault folder is not where the configuration says, or is empty where it held notes."""


class VaultReadOnly(KiteError):
    """The vault cannot be written to: permissions, a read-only mount, or no space left."""


class VaultFolderWrong(VaultReadOnly):
    """One folder of the vault is a file or a link; the others can be written to."""


class StateNewer(KiteError):
    """A file of ours was written by a newer version than this one."""


class StateNotWritten(KiteError):
    """A store of ours could not be changed: no space left, or a disk that fails. Nothing of the change was kept."""


class StateTakenAway(KiteError):
    """Our files are no longer where we opened them: going on would mean a second truth beside whoever comes next."""


class StateDamaged(KiteError):
    """A file of ours is not what it should be; ``kmem rebuild`` makes it anew."""


class ConfigInvalid(KiteError):
    exit_code = 2


class DaemonUnreachable(KiteError):
    """No daemon answers at the socket."""


class DaemonRunning(KiteError):
    """Another process holds the daemon's lock."""


class NotFound(KiteError):
    """What was named is not there, or not for who asks."""


class NoteNotFound(NotFound):
    """No note has that id, path or title."""


class EmbedderUnavailable(KiteError):
    """The embedding service did not answer; the local space still does."""
