"""Checks of what an agent saves explicitly: the quality gate, and extraction if it gives only a transcript."""

import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from kite_memory.distill.budget_ledger import Allowance, settle_by
from kite_memory.distill.extractor import Answer, Busy, Extractor, Misconfigured, Refused
from kite_memory.distill.gate import GateVerdict, judged, whose
from kite_memory.errors import KiteError
from kite_memory.model.event import Event
from kite_memory.model.provenance import Provenance
from kite_memory.model.record import Chunk, Fact, Origin, Record, RecordItem

log = logging.getLogger("kite_memory.distill.saving")

_DANGEROUS = frozenset({GateVerdict.ECHO, GateVerdict.INSTRUCTION})


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """Checks and extraction for saving. ``model`` is called while its ``allowance`` lasts; otherwise, or if it fails, the ``rules``
    are used.
    """

    rules: Extractor
    model: Extractor | None = None
    allowance: Allowance | None = None

    def item(self, item: RecordItem, evidence: Iterable[Event]) -> str:
        """Return why the item does not become a note; empty if it may."""
        return judged(item, evidence, frozenset(), terse=True) or ""

    def text(self, text: str) -> str:
        """Return why a text is dangerous to keep; empty if it may be kept, however little it says."""
        verdict = _verdict(text)
        return verdict if verdict in _DANGEROUS else ""

    def says_nothing(self, text: str) -> str:
        """Return why a text is too trivial to keep; empty if it is not."""
        verdict = _verdict(text)
        return verdict if verdict is GateVerdict.TRIVIAL else ""

    def whose(self, item: RecordItem, heard: Sequence[Event], provenance: Provenance | None = None) -> Origin:
        """Return the item's origin: "tool" if a tool said it first in ``heard`` or in ``provenance`` and no person did; else the
        item's own.
        """
        return whose(item, heard, provenance) if heard or provenance else item.origin

    def decompose(self, chunk: Chunk) -> tuple[Record, str]:
        """Return the record of a transcript, and a remark on how it was made."""
        record, remark = self._asked(chunk)
        if record is not None:
            return record, ""
        from kite_memory.distill.offline.handed import handed_over  # loaded only when the rules are used

        outcome = self.rules.extract(chunk)
        return handed_over(chunk, outcome.record if isinstance(outcome, Answer) else Record(topics=())), remark

    def _asked(self, chunk: Chunk) -> tuple[Record | None, str]:
        if self.model is None or self.allowance is None:
            return None, "made by rules, since there is no model to ask"
        try:
            booking = self.allowance.book(self.model.estimate(chunk))
        except KiteError as error:
            return None, f"made by rules, since a call cannot be booked: {error}"
        if booking is None:
            return None, "made by rules, since today's budget is spent"
        outcome = self.model.extract(chunk)
        with suppress(KiteError):  # the booked amount stays spent, to be cautious
            if isinstance(outcome, Answer):
                booking.settle(outcome.usage)
            else:
                settle_by(booking, outcome)
        match outcome:
            case Answer(record=record):
                return record, ""
            case Busy() | Refused() | Misconfigured() as failed:
                log.warning("a saved transcript was not read by the model: %s", failed.reason)
                return None, "made by rules, since the model was of no help"


def _verdict(text: str) -> GateVerdict | None:
    return judged(Fact(title="", body=text, evidence=(), importance=2, origin="assistant"), (), frozenset(), terse=True)
