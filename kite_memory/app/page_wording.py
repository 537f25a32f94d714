"""Sentences of `MEMORY.md` that a model has said better. Each is asked about once: the answer is kept by what it was made from.

So a page that was polished stays as it is, whoever rewrites it, and costs nothing where its notes say the same.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kite_memory.text.quoting import plain_line
from kite_memory.vault import Vault
from kite_memory.vault.wording import digest

if TYPE_CHECKING:
    from kite_memory.distill.polishing import Polisher

_KEPT = "memory page wording"
_AT_ONCE = 30
_SECONDS = 60.0
"""No further call is begun after so long: whoever asked is waiting."""
_NO_MODEL = "no model is set up that could polish it: `kmem keys set anthropic`, or see [extractor] in the settings"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """``left`` sentences were not asked about, and ``remark`` says why."""

    by: str = ""
    refused: int = 0
    left: int = 0
    remark: str = ""


def nobody() -> "Polisher | None":
    return None


class PageWording:
    """Safe to share between threads: what two ask at once is paid twice, and said once."""

    def __init__(
        self,
        *,
        vault: Vault,
        polisher: "Callable[[], Polisher | None]" = nobody,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._vault = vault
        self._polisher = polisher
        self._monotonic = monotonic

    def known(self) -> Mapping[str, str]:
        """By `key`; empty for a sentence that is best as it is."""
        try:
            kept = json.loads(self._vault.noted(_KEPT) or "{}")
        except ValueError:
            return {}
        return {str(name): str(text) for name, text in kept.items()} if isinstance(kept, dict) else {}

    def forget(self) -> None:
        self._vault.note_down(_KEPT, "")

    def keep(self, said: Sequence[str]) -> None:
        """Of others than ``said`` nothing is known from here on."""
        before = self.known()
        self._keep({key(each): before.get(key(each)) for each in said})

    def ask(self, said: Sequence[str]) -> Asked:
        """About those of which nothing is known; of others than ``said`` nothing is known from here on."""
        from kite_memory.distill.answering import Unsaid  # a page that is told as it is has no need of them

        before = self.known()
        known = {key(each): before.get(key(each)) for each in said}
        unknown = [each for each in dict.fromkeys(said) if known[key(each)] is None]
        self._keep(known)
        if not unknown:
            return Asked()
        polisher = self._polisher()
        if polisher is None:
            return Asked(left=len(unknown), remark=_NO_MODEL)
        refused = asked = 0
        until = self._monotonic() + _SECONDS
        while asked < len(unknown):
            if self._monotonic() > until:
                left = len(unknown) - asked
                return Asked(by=polisher.name, refused=refused, left=left, remark="it took long; ask again for the rest")
            batch = unknown[asked : asked + _AT_ONCE]
            reply = polisher.polish(batch)
            if isinstance(reply, Unsaid):
                remark = f"the model was of no help: {plain_line(reply.reason)}"
                return Asked(by=polisher.name, refused=refused, left=len(unknown) - asked, remark=remark)
            known |= {key(each): reply.lines.get(place, "") for place, each in enumerate(batch)}
            self._keep(known)
            refused += reply.refused
            asked += len(batch)
        return Asked(by=polisher.name, refused=refused)

    def _keep(self, known: Mapping[str, str | None]) -> None:
        kept = {name: text for name, text in sorted(known.items()) if text is not None}
        if kept != self.known():
            self._vault.note_down(_KEPT, json.dumps(kept, ensure_ascii=False))


def key(said: str) -> str:
    """By which a sentence is known."""
    return digest(said)[:24]
