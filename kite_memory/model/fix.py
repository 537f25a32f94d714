"""How a failure went away the last time."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """The same failure earlier, and the same command succeeding after it.

    ``failed`` and ``worked`` are the two command lines; ``steps`` are the commands run between them and ``files`` those
    changed between them, both in order. ``evidence`` refers to the success, which was ``at``.
    """

    signature: str
    failed: str
    worked: str
    at: datetime
    evidence: str
    steps: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


class Fixes(Protocol):
    def fix(self, *, project: str, session: str, signatures: Sequence[str], command: str) -> Fix | None:
        """The latest fix in ``project`` of one of these failures of such a ``command``, in a session other than ``session``.

        Answers in milliseconds, from what is known; ``None`` if it is known of none.
        """
        ...
