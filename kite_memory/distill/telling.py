"""What a person would read of a tool's output: the few lines that tell."""

import re

from kite_memory.distill.prose import clean, clip

_TELLING = re.compile(
    r"error|fail|panic|exception|traceback|fatal|cannot|can't|could not|unable|not found|no such|undefined|unexpected|expected"
    r"|assert|denied|refused|invalid|missing|timed? ?out|conflict|killed|warning: |exit code|rejected|✗|✘|❌",
    re.IGNORECASE,
)
_RULE = re.compile(r"^[\s=\-_*#~.+|·─━═]*$")
_READ = 12_000
"""Characters of an output that are looked at: its beginning and its end."""


def bounded(text: str, limit: int) -> str:
    """Head and tail of a text that may be huge, so that all that follows is cheap."""
    if len(text) <= limit:
        return text
    tail = limit // 3
    return text[: limit - tail] + "\n…\n" + text[-tail:]


def telling_lines(text: str, limit: int, *, lines: int = 6) -> str:
    """At most ``lines`` lines and ``limit`` characters of an output, those that name what went wrong first.

    Where none does, its first and last lines. Joined by `` / ``.
    """
    rows = [row.strip() for row in clean(bounded(text, _READ)).split("\n")]
    rows = [clip(row, max(40, limit // 2)) for row in rows if row and not _RULE.match(row[:200])]
    chosen = [at for at, row in enumerate(rows) if _TELLING.search(row)][:lines]
    if not chosen:
        chosen = list(range(min(2, len(rows)))) + list(range(max(2, len(rows) - 2), len(rows)))
    distinct = list(dict.fromkeys(rows[at] for at in sorted(chosen)))
    return clip(" / ".join(distinct), limit)
