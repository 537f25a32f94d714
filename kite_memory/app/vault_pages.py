"""Pages and graphs made from the whole vault: `MEMORY.md`, and the graph of notes."""

import json
import time
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from kite_memory.app.note_view import project_with_notes
from kite_memory.errors import KiteError, UsageError, VaultMissing
from kite_memory.model.note import Note
from kite_memory.text.quoting import plain_line
from kite_memory.vault import Vault, memory_page
from kite_memory.vault.graph import FORMATS, Graph, centrality, fits_mermaid, graph
from kite_memory.vault.memory_page import BEGIN, PAGE, Edited, merged
from kite_memory.vault.wording import digest

if TYPE_CHECKING:
    from kite_memory.distill.answering import Polisher


_KEPT = "memory page wording"
_AT_ONCE = 30
_SECONDS = 60.0
"""Seconds after which no further call is started, since the user is waiting."""
_NO_MODEL = "no model is set up that could polish it: `kmem keys set anthropic`, or see [extractor] in the settings"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolishResult:
    """Result of asking a model. ``left`` sentences were not asked about, and ``remark`` is the reason."""

    by: str = ""
    refused: int = 0
    left: int = 0
    remark: str = ""


def no_polisher() -> "Polisher | None":
    return None


class PageWording:
    """Rewordings of the page's sentences. Thread-safe: a sentence asked about twice at once is paid twice and stored once."""

    def __init__(
        self,
        *,
        vault: Vault,
        polisher: "Callable[[], Polisher | None]" = no_polisher,
    ) -> None:
        self._vault = vault
        self._polisher = polisher

    def known(self) -> Mapping[str, str]:
        """Return the rewordings by `key`; empty for a sentence that is best as it is."""
        try:
            kept = json.loads(self._vault.pages.noted(_KEPT) or "{}")
        except ValueError:
            return {}
        return {str(name): str(text) for name, text in kept.items()} if isinstance(kept, dict) else {}

    def forget(self) -> None:
        self._vault.pages.note_down(_KEPT, "")

    def keep(self, said: Sequence[str]) -> None:
        """Keep the rewordings of these sentences, and delete all others."""
        before = self.known()
        self._keep({key(each): before.get(key(each)) for each in said})

    def ask(self, said: Sequence[str]) -> PolishResult:
        """Ask about those of these sentences without a rewording, and delete the rewordings of all others."""
        from kite_memory.distill.answering import Unsaid  # imported here: only needed for rewording

        before = self.known()
        known = {key(each): before.get(key(each)) for each in said}
        unknown = [each for each in dict.fromkeys(said) if known[key(each)] is None]
        self._keep(known)
        if not unknown:
            return PolishResult()
        polisher = self._polisher()
        if polisher is None:
            return PolishResult(left=len(unknown), remark=_NO_MODEL)
        refused = asked = 0
        until = time.monotonic() + _SECONDS
        while asked < len(unknown):
            if time.monotonic() > until:
                left = len(unknown) - asked
                return PolishResult(by=polisher.name, refused=refused, left=left, remark="it took long; ask again for the rest")
            batch = unknown[asked : asked + _AT_ONCE]
            reply = polisher.polish(batch)
            if isinstance(reply, Unsaid):
                remark = f"the model was of no help: {plain_line(reply.reason)}"
                return PolishResult(by=polisher.name, refused=refused, left=len(unknown) - asked, remark=remark)
            known |= {key(each): reply.lines.get(place, "") for place, each in enumerate(batch)}
            self._keep(known)
            refused += reply.refused
            asked += len(batch)
        return PolishResult(by=polisher.name, refused=refused)

    def _keep(self, known: Mapping[str, str | None]) -> None:
        kept = {name: text for name, text in sorted(known.items()) if text is not None}
        if kept != self.known():
            self._vault.pages.note_down(_KEPT, json.dumps(kept, ensure_ascii=False))


def key(said: str) -> str:
    """Return the key under which a sentence's rewording is stored."""
    return digest(said)[:24]


Json = dict[str, Any]

_OURS = "memory page"
_ATTEMPTS = 3
_MOST_HOPS, _MOST_NOTES = 6, 20_000


class VaultPages:
    """The operations `synthesize` and `graph`. Thread-safe."""

    def __init__(
        self, *, vault: Vault, clock: Callable[[], datetime], polisher: "Callable[[], Polisher | None]" = no_polisher
    ) -> None:
        self._vault = vault
        self._wording = PageWording(vault=vault, polisher=polisher)
        self._lock = vault.lock
        self._clock = clock

    def operations(self) -> Mapping[str, Callable[..., Json]]:
        return {"synthesize": self.synthesize, "graph": self.graph}

    def synthesize(self, *, check: bool = False, replace: bool = False, polish: bool | None = None) -> Json:
        """Update `MEMORY.md`; with ``check`` only report whether it is up to date.

        ``replace`` discards the user's edits of it. With ``polish`` a model may reword its sentences, which is kept for later; with
        ``polish`` false they are written as the notes have them. If ``polish`` is ``None``, no model is asked, and earlier
        rewordings are used.
        """
        if check and polish is not None:
            raise UsageError("--check only compares, and asks no model", hint="leave out --check, or --polish")
        whole, now = graph(self._notes()), self._clock()
        asked = PolishResult()
        if polish:
            asked = self._wording.ask(memory_page.sentences(whole, now))
        elif polish is False:
            self._wording.forget()
        better, used = self._wording.known(), set[str]()

        def says(each: str) -> str:
            if text := better.get(key(each), ""):
                used.add(each)
            return text or each

        made = memory_page.page(whole, now, says=says)
        polished = {
            "polished": len(used),
            "by": asked.by,
            "refused": asked.refused,
            "problems": [asked.remark] if asked.remark else [],
        }
        for _ in range(_ATTEMPTS):
            with self._lock:
                before = self._vault.pages.read(PAGE)
                after = merged(before, made, ours=self._vault.pages.noted(_OURS), replace=replace)
                if isinstance(after, Edited):
                    raise KiteError(
                        f"the part of {PAGE} that is made from the notes was edited",
                        hint="move those lines above or under its two marks, or discard them with --replace",
                    )
                report = {
                    "path": str(self._vault.root / PAGE),
                    "lines": after.count("\n"),
                    "changed": after != before,
                    **polished,
                }
                if check or after == before:
                    return report
                if self._vault.pages.put(PAGE, after, before=before):
                    self._vault.pages.note_down(_OURS, made)
                    return report
        raise KiteError(f"{PAGE} is being changed by another program", hint="try again when it is saved")

    def remove_notes(self, notes: Sequence[Note], *, wording: bool) -> str:
        """Remove forgotten notes from the page; with ``wording``, also the rewordings of sentences no longer on it.

        Return the reason if the page still names them because a user has edited it, else an empty string. A page that the user has
        deleted is not written again.
        """
        try:
            if wording and self._wording.known():
                self._wording.keep(memory_page.sentences(graph(self._notes()), self._clock()))
            page = self._vault.pages.read(PAGE)
            if not any(f"[[{PurePosixPath(note.path).stem}" in f"{self.noted()}\n{page}" for note in notes):
                return ""
            if BEGIN in page:
                self.synthesize()
            else:
                self._vault.pages.note_down(_OURS, "")
        except KiteError as error:
            return f"{PAGE} may still tell of it: {error}"
        return ""

    def noted(self) -> str:
        """Return the text last written between the marks of the page."""
        return self._vault.pages.noted(_OURS)

    def restore(self, *, before: str, after: str, noted: str) -> bool:
        """Write the page as it was ``before``, with the record of its text then.

        Return false without a change if it is no longer as it was ``after``.
        """
        with self._lock:
            if before == after or self._vault.pages.read(PAGE) != after:
                return False
            if not (self._vault.pages.put(PAGE, before, before=after) if before else self._vault.pages.drop(PAGE, after)):
                return False
            self._vault.pages.note_down(_OURS, noted)
            return True

    def graph(self, *, format: str = "mermaid", note: str = "", hops: int = 1, project: str = "", most: int = 200) -> Json:
        """Draw the graph of notes; with ``note`` only its neighbours. Beyond ``most`` notes, the least central are left out."""
        draw = FORMATS.get(format)
        if draw is None:
            raise UsageError(f"unknown format {format!r}", hint=f"choose one of: {', '.join(FORMATS)}")
        whole = graph(self._notes())
        if note:
            centre = self._vault.notes.find(note).path
            whole = whole.within(whole.neighbours(centre, max(1, min(hops, _MOST_HOPS))))
        if project:
            named = project_with_notes(self._vault.known, project)
            whole = whole.within(each.path for each in whole.notes if each.project in ("", named))
        cut = _drawable if format == "mermaid" else _most_central
        shown = cut(whole, max(1, min(most, _MOST_NOTES)))
        return {"text": draw(shown), "notes": len(shown.notes), "left_out": len(whole.notes) - len(shown.notes)}

    def _notes(self) -> list[Note]:
        if not self._vault.root.is_dir() and not self._vault.known.all():
            raise VaultMissing(f"there is no vault at {self._vault.root}", hint="`kmem up` makes one")
        return [note for entry in self._vault.notes.entries() if (note := self._vault.notes.read(entry.path)) is not None]


def _by_centrality(whole: Graph) -> list[str]:
    rank = centrality(whole)
    return sorted(rank, key=lambda path: (-rank[path], path))


def _most_central(whole: Graph, most: int) -> Graph:
    return whole if len(whole.notes) <= most else whole.within(_by_centrality(whole)[:most])


def _drawable(whole: Graph, most: int) -> Graph:
    """Return the graph of as many of the most central notes as Mermaid can draw."""
    order = _by_centrality(whole)[:most]
    fitting = bisect_left(range(1, len(order) + 1), True, key=lambda count: not fits_mermaid(whole.within(order[:count])))
    return whole.within(order[:fitting])
