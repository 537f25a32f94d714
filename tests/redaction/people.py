"""Cases of ``people.txt``: secrets of people, written down before the redactor was read, and innocents that look alike."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kite_memory.redaction import redact

_ESCAPE = re.compile(r"\\(\\|n|t)")
_MARKED = re.compile("⟦(.*?)⟧", re.DOTALL)
_MARK = re.compile(r"\[redacted:[a-z0-9-]+\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """``tuned``: the redactor was improved with this one in sight. Of the others, those that were missed have been read since.

    Those of groups named ``later`` were written when the rest had been worked with, before the rules were next changed. All of
    groups named ``seen`` were written before the redactor was read, and worked with afterwards; so were those named ``fitted``,
    from which the weights of `redaction.weighed` are fitted.
    """

    group: str
    tuned: bool
    text: str
    secrets: tuple[str, ...]

    def left(self) -> str:
        """Half of a secret, or more, that is still there; empty if none is left."""
        around = self.text
        for secret in self.secrets:
            around = around.replace(secret, "\0")
        replaced = _MARK.sub("\0", redact(self.text))
        for secret in self.secrets:
            size = max(4, len(secret) // 2)
            for start in range(max(1, len(secret) - size + 1)):
                piece = secret[start : start + size]
                if piece in replaced and piece not in around:
                    return piece
        return ""


def cases() -> Iterator[Case]:
    group, number = "", 0
    for line in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("== "):
            group, number = line[3:], 0
        elif line and group:
            text = _ESCAPE.sub(lambda found: {"n": "\n", "t": "\t"}.get(found[1], "\\"), line)
            yield Case(
                group=group,
                tuned=group.startswith(("seen", "fitted")) or (number % 2 == 0 and not group.startswith("later")),
                text=_MARKED.sub(r"\1", text),
                secrets=tuple(_MARKED.findall(text)),
            )
            number += 1
