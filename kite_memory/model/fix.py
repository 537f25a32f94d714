"""How a failure was fixed in an earlier session."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """An earlier occurrence of a failure, and a later success of the same command.

    ``failed`` and ``worked`` are the two command lines. ``steps`` are the commands run between them and ``files`` the files changed
    between them, both in order. ``evidence`` refers to the success, which happened at ``at``.
    """

    signature: str
    failed: str
    worked: str
    at: datetime
    evidence: str
    steps: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


class Fixes(Protocol):
    """Lookup of earlier fixes."""

    def fix(self, *, project: str, session: str, signatures: Sequence[str], command: str) -> Fix | None:
        """Return the latest fix in ``project`` of one of these failures, from a session other than ``session``.

        The failed command must share a purpose with ``command`` (`text.shell.purposes`). Answers in milliseconds, from stored data;
        returns ``None`` if no fix is known.
        """
        ...
