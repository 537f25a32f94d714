"""Checks of what an agent saves explicitly: the quality gate, and extraction if it gives only a transcript.

In an ordinary session few sentences are worth a note. A transcript that is handed over is kept for what it says, so every
explicit statement of anybody counts, by topic.
"""

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from kite_memory.distill.asked_to_keep import asked_to_keep
from kite_memory.distill.budget import Allowance, settle_by
from kite_memory.distill.extractor import Answer, Busy, Extractor, Misconfigured, Refused
from kite_memory.distill.offline.titles import entities_of, title_of
from kite_memory.distill.offline.wording import ANNOUNCING, GUESS, OFFER, Sentence, rejected_in, sentences_of, without_opening
from kite_memory.distill.parse_answer import BODY_CHARS, bounded_title
from kite_memory.distill.prose import MENDED, one_line, rejections, stems
from kite_memory.distill.quality_gate import GateVerdict, apply_quality_gate, origin_of, rejection_reason
from kite_memory.errors import KiteError
from kite_memory.model.event import Event, Provenance
from kite_memory.model.note import (
    TURNED_DOWN,
    Chunk,
    Decision,
    Fact,
    Insight,
    OpenQuestion,
    Origin,
    Preference,
    Record,
    RecordItem,
    Rejected,
    Topic,
)
from kite_memory.text import lazy_regex
from kite_memory.text.display import clip

log = logging.getLogger(__name__)

_MOST = 60
_LONGEST = 600
"""Most characters of a sentence; a longer text is not one."""
_SAME = 0.6
_NAME = 60
_FEWEST_STEMS = 2
_NEW_TOPIC = 0.12
_TOPIC_STEMS = 4
_DANGEROUS = frozenset({GateVerdict.ECHO, GateVerdict.INSTRUCTION})
_STATED = 3
"""Notes that a saved transcript counts as having yielded: what it states is kept anyway, so that a claim must be worth more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveChecker:
    """Checks and extraction for saving. ``model`` is called while its ``allowance`` lasts; otherwise, or if it fails, the ``rules``
    are used.
    """

    rules: Extractor
    model: Extractor | None = None
    allowance: Allowance | None = None

    def item(self, item: RecordItem, evidence: Iterable[Event]) -> str:
        """Return why the item does not become a note; empty if it may."""
        return rejection_reason(item, evidence, frozenset(), terse=True) or ""

    def text(self, text: str) -> str:
        """Return why a text is dangerous to keep; empty if it may be kept, however little it says."""
        verdict = _verdict(text)
        return verdict if verdict in _DANGEROUS else ""

    def says_nothing(self, text: str) -> str:
        """Return why a text is too trivial to keep; empty if it is not."""
        verdict = _verdict(text)
        return verdict if verdict is GateVerdict.TRIVIAL else ""

    def origin_of(self, item: RecordItem, heard: Sequence[Event], provenance: Provenance | None = None) -> Origin:
        """Return the item's origin: "tool" if a tool said it first in ``heard`` or in ``provenance`` and no person did; else the
        item's own.
        """
        return origin_of(item, heard, provenance) if heard or provenance else item.origin

    def decompose(self, chunk: Chunk) -> tuple[Record, str]:
        """Return the record of a transcript, and a remark on how it was made."""
        record, remark = self._asked(chunk)
        if record is not None:
            return record, ""

        outcome = self.rules.extract(replace(chunk, noted=chunk.noted + _STATED))
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
    return rejection_reason(Fact(title="", body=text, evidence=(), importance=2, origin="assistant"), (), frozenset(), terse=True)


def handed_over(chunk: Chunk, found: Record) -> Record:
    """Return the record that the rules ``found``, with further explicit statements, divided into topics."""
    segments = _segments(chunk.events)
    place = {event.id: number for number, segment in enumerate(segments) for event in segment}
    kept = [(place.get(item.evidence[0], 0), item) for item in found.items()]
    for number, segment in enumerate(segments):
        for item in _items_of(segment):
            same = next((at for at, (_, other) in enumerate(kept) if _says_the_same(item, other)), None)
            if same is None and len(kept) < _MOST:
                kept.append((number, item))
            elif same is not None:
                kept[same] = (kept[same][0], _joined(kept[same][1], item))
    topics = [_topic(segment, [item for at, item in kept if at == number]) for number, segment in enumerate(segments)]
    complete = Record(topics=tuple(each for each in topics if each.items))
    record, _ = apply_quality_gate(complete, {each.id: each for each in chunk.events}, frozenset())
    return record


_UNWANTED = lazy_regex(
    r"(?:(?:and|but|no|so)[,:]?\s+)?(?:we|i) (?:do not|don'?t) want (?:to (?:use|add|run|introduce|depend on) )?"
    r"(?P<what>(?-i:[A-Z`])[\w`.+-]*(?: [\w`.+-]+){0,4})[.!]?",
    re.IGNORECASE,
)
_OVER = lazy_regex(
    r"\b(?:chose|chosen|picked|prefer(?:red)?|went with|go with|took|use|uses|using|stick(?:ing)? with|stay"
    r"(?:ing)? with|settled on)\b"
    r".{2,120}?\b(?:over|instead of|rather than)\s+(?P<what>[^.,;:]{2,80}?)(?=\s+(?:for|because|since|as|so)\b|[.,;:]|$)"
    r"|\b(?:in|with|on|use|uses|via|by)\s+[`\w.-]+,? not\s+(?:in |with |on "
    r"|by )?(?P<other>[`\w][^.,;:]{1,60}?)(?=\s+(?:for|because|since|as|so)\b|[.,;:]|$)",
    re.IGNORECASE,
)

_LABELLED = lazy_regex(
    r"(?:(?:final|our|the|my)\s+)?(?:decision|resolution|conclusion|verdict|plan|(?:settled|agreed|decided|deal)"
    r"(?:\s+then)?)\s*(?:[:—–]|\s-|\bis(?: to)?\b)\s*(?P<what>\S.+)",
    re.IGNORECASE | re.DOTALL,
)
_CHOSEN = lazy_regex(
    r"(?:(?:so|then|ok(?:ay)?|yes|fine|right|good|and|but)[,.]?\s+)*(?:(?:i|we|you and i)(?:'ve|'re|'ll|\s+have"
    r"|\s+are|\s+will)?\s+(?:(?:now|both|all|finally|therefore|then|just)\s+)*"
    r"(?:decided|agreed|chose|chosen|picked|settled|opted|went with|go(?:ing)? (?:with|for)|stick(?:ing)? (?:with"
    r"|to)|stay(?:ing)? (?:with|on|at)"
    r"|use|adopt(?:ed)?|switch(?:ed|ing)? to|move[d]? (?:to|off|away)|keep|standardi[sz]ed? on)\b"
    r"|let'?s (?:go (?:with|for)|stick (?:with|to)|stay (?:with|on)|use|take|keep|adopt|switch to|move to|drop|do)\b)",
    re.IGNORECASE,
)
_WILL = lazy_regex(
    r"(?:(?:so|then|ok(?:ay)?|and)[,.]?\s+)*(?:we(?:'ll|\s+will|\s+are going to|\s+now)\s+(?!(?:see|look|check"
    r"|need|have|find|come|get|be|try|wait|discuss|talk|decide|know)\b)\w+"
    r"|so we (?!(?:can|could|have|need|should|see|know|are|were|had|still|must)\b)\w+)",
    re.IGNORECASE,
)
_PLANNED = lazy_regex(r"^(?:(?:so|then|ok(?:ay)?|and)[,.]?\s+)*we(?:'ll|\s+will|\s+are going to|\s+now)?\s+(?=\w)", re.IGNORECASE)
_IT_IS = lazy_regex(
    r"(?:(?:ok(?:ay)?|agreed|yes|fine|so|then)[,.]?\s+)*(?P<what>[\w`][^.,;:?]{1,60}?) it is\b(?!\s+(?:a|an|the"
    r"|not|also|too|possible|like)\b)",
    re.IGNORECASE,
)
_AGREED = lazy_regex(
    r"(?P<what>[\w`][\w .`/+-]{1,40}?),\s*(?:agreed|deal|sounds good|let'?s do (?:it|that))\b|(?:ok(?:ay)?|agreed"
    r"|yes|yep|fine)[,:]?\s+(?:then\s+)?(?P<other>[\w`.+-]{3,30})(?=[.!]|$)",
    re.IGNORECASE,
)
_DIRECTED = lazy_regex(
    r"(?:please\s+)?(?:use|store|put|keep|take|write|save|send|run)\s.{2,100}?(?:\bnot\b|\binstead of\b|\brather than\b)",
    re.IGNORECASE,
)
_ANSWERS = lazy_regex(r"(?P<what>[A-Z`][\w`.+-]*(?: [A-Z][\w`.+-]*){0,2})[.!]$")

_TAKEN = lazy_regex(
    r"(?:(?:ok(?:ay)?|then|so|yes|fine|good|right)[,.]?\s+)*(?:use|take|pick|choose|keep|go (?:with|for))\s+"
    r"(?!(?:it|that|them|care)\b)\S.+",
    re.IGNORECASE | re.DOTALL,
)
_ASKS_TO_CHOOSE = lazy_regex(
    r"\bor\b|\b(?:which|what (?:should|shall|do)|where (?:should|shall|do)|how (?:should|shall|do))\b", re.IGNORECASE
)
_NUMBER = lazy_regex(
    r"(?:(?:ok(?:ay)?|yes|then)[,.]?\s+)?(?:(?:do|take|use|go (?:with|for)|let'?s (?:do|go with|take))\s+)?"
    r"(?:option |number |no\. ?|#)?(?P<number>[1-9])[).]?[.!]?",
    re.IGNORECASE,
)
_OPTION = r"(?:^|[\s:]){number}[).:]\s+(?P<what>[^;\n]+?)(?=[,;]?\s+(?:(?:and|or)\s+)?{after}[).:]\s|[.;\n]|$)"
_HEAD = lazy_regex(r"[,:;.!]\s|\s[—–-]\s|\s(?:because|since|as)\s", re.IGNORECASE)
_MOST_WORDS_OF_AN_ANSWER = 6
_SHORT = 160
"""Most characters of a message that is quoted whole."""
_ANSWERED_WITHIN = 2
"""Messages after which a question no longer explains what a person says."""

_CAUSE = lazy_regex(
    r"\b(?:(?:root|real|actual|underlying|true)\s+(?:cause|reason|problem|culprit)|(?:the\s+)?(?:cause|reason"
    r"|culprit)\s+(?:was|is|were|lay|turned out)"
    r"|(?:was|were|is|are)\s+(?:\w+\s+)?caused by|turned out (?:that|to be)|turns out (?:that|to be)|(?:came|comes"
    r"|stems|stemmed) from|(?:happened|happens|failed|fails"
    r"|broke|breaks|crashed|crashes|hung|hangs) because|traced (?:it|this|that) (?:back )?to|came down to|boils down to)\b",
    re.IGNORECASE,
)
_FOUND = lazy_regex(
    r"(?:found (?:it|the (?:\w+ )?(?:bug|problem|issue|cause|culprit|leak))|got it|confirmed)[.!:]*$", re.IGNORECASE
)
_WENT_RIGHT = lazy_regex(
    r"\b(?:i|we) (?:changed|fixed|moved|replaced|removed|added|swapped)\b|\bafter \w+ing\b|\b\w+ing .{2,60} fixes\b", re.IGNORECASE
)

_OPEN = lazy_regex(
    r"(?:(?:still|one)\s+)?(?:open(?: question| point)?|unresolved|undecided|to be decided|tbd)\b\s*(?:[:—–]"
    r"|\s-)\s*(?P<what>\S.+)"
    r"|(?P<whole>.*\b(?:(?:have not|haven'?t|has not|hasn'?t)(?: yet)? (?:decided|settled|agreed|clarified|figured out)"
    r"|still (?:need|have) to (?:decide|agree|clarify|find out)|(?:is|are|remains?|stays?) (?:still )?(?:unclear"
    r"|undecided|unsettled|open(?! to| for| in|-)))\b.*)",
    re.IGNORECASE | re.DOTALL,
)
_WISHES = lazy_regex(
    r"(?:(?:and|also|please|ok(?:ay)?)[:,]?\s+)*(?:(?:when(?:ever)?|every time|each time|any time) (?:you"
    r"|we)\b[^,?]{3,90},\s*\w+|(?:don'?t|do not|never)\b[^?]{4,160}\bever\b"
    r"|i want\b[^?]{3,120}\b(?:everywhere|always|no more|from now)\b|(?:in|for) (?:the )?future,?\s+\w+|no more\s+\w+)",
    re.IGNORECASE,
)


@dataclass(slots=True)
class _Collected:
    """State while reading a segment's sentences: the items found, the last question, and the previous message.

    A question that is asked back counts as a part of the question it follows: ``subject`` is that one.
    """

    items: list[RecordItem] = field(default_factory=list)
    asked: str = ""
    subject: str = ""
    messages_since: int = 0
    before: Sequence[Sentence] = ()

    def ask(self, question: str, *, back: bool) -> None:
        self.subject = self.asked if back and self.asked and self.messages_since <= 1 else ""
        self.asked, self.messages_since = question, 0

    def is_choice(self) -> bool:
        """Return whether the last question is recent and asks for a choice."""
        return bool(self.asked) and self.messages_since <= _ANSWERED_WITHIN and bool(_ASKS_TO_CHOOSE.search(self.asked))


def _items_of(events: Sequence[Event]) -> list[RecordItem]:
    collected = _Collected()
    for event in events:
        if event.role not in ("user", "assistant"):
            continue
        said = [each for sentence in sentences_of(event, event.text) for each in _apart(sentence)]
        collected.messages_since += 1
        if event.role == "user":
            for wish in asked_to_keep(event.text):
                collected.items.append(_wish(wish.text, event, everywhere=wish.everywhere))
            collected.items.extend(_answered(event, collected))
        for at, sentence in enumerate(said):
            text = sentence.text if _WILL.match(sentence.text) else without_opening(sentence.text).strip()
            collected.items.extend(_of_sentence(text, sentence, said[at + 1 : at + 3], collected))
            if text.endswith("?"):
                collected.ask(text, back=event.role == "assistant")
        collected.before = said
    return collected.items


def _apart(sentence: Sentence) -> list[Sentence]:
    """Split a sentence where a new one starts in lower case."""
    parts = _LOWER_START.split(sentence.text)
    if len(parts) == 1:
        return [sentence]
    return [replace(sentence, text=part, stems=stems(part), words=len(part.split())) for part in parts]


_LOWER_START = lazy_regex(r"(?<=[a-z]{3}[.!?])\s+(?=[a-z])")


def _of_sentence(text: str, sentence: Sentence, after: Sequence[Sentence], collected: _Collected) -> Iterator[RecordItem]:
    event = sentence.event
    person = event.role == "user"
    if left_open := _OPEN.match(text):
        what = left_open["what"] or left_open["whole"]
        if len(stems(what)) >= _FEWEST_STEMS:
            yield OpenQuestion(title=_titled(what), body=_closed(what), evidence=(event.id,), importance=2, origin=_origin(event))
        return
    if text.endswith("?") or len(text) > _LONGEST or GUESS.search(text) or OFFER.search(text):
        return
    if person and _WISHES.match(text) and len(stems(text)) >= _FEWEST_STEMS:
        yield _wish(text, event)
        return
    if rejected := rejections(text):
        yield from (_turned_down(each, text, event) for each in rejected)
        return
    if person and (unwanted := _UNWANTED.fullmatch(text)):
        whole = event.text if len(event.text) <= _SHORT else text
        yield _turned_down(Rejected(alternative=clip(unwanted["what"], 120), reason=""), whole, event)
        return
    names_a_cause = not ANNOUNCING.match(text) and (_CAUSE.search(text) or (_FOUND.match(text) and after))
    if names_a_cause and (cause := _cause(text, sentence, after)):
        yield cause
        return
    yield from _decision(text, event, after, collected)


def _decision(text: str, event: Event, after: Sequence[Sentence], collected: _Collected) -> Iterator[Decision]:
    lost = _lost(text)
    if (labelled := _LABELLED.match(text)) and len(stems(labelled["what"])) >= _FEWEST_STEMS:
        yield _decided(labelled["what"], labelled["what"], event, lost)
    elif match := _IT_IS.match(text) or _AGREED.match(text):
        what = one_line(match.group("what") or match.groupdict().get("other") or "")
        context = _in_context(what, collected) or _after_what_was_said(text, collected)
        body = text if len(stems(text)) > len(stems(what)) + 1 or (not context and len(stems(text)) >= _FEWEST_STEMS) else context
        if stems(what) and body:
            yield _decided(what, body, event, lost, also=_source_of(what, collected))
    elif (answer := _ANSWERS.fullmatch(text)) and event.role == "assistant" and answer["what"].lower() in collected.asked.lower():
        reason = " ".join(each.text for each in after[:1])
        yield _decided(answer["what"], f"{_in_context(answer['what'], collected)} {reason}".strip(), event, lost)
    elif event.role == "user" and collected.is_choice() and _TAKEN.match(text) and stems(text):
        yield _decided(text, _in_context(text.rstrip(" ."), collected), event, lost)
    elif (
        (lost or _CHOSEN.match(text) or _WILL.match(text) or (event.role == "user" and _DIRECTED.match(text)))
        and len(stems(text)) > _FEWEST_STEMS
        and not ANNOUNCING.match(text)
    ):
        what = _PLANNED.sub("", text)  # an announced action reads like a report of steps
        yield _decided(what, what, event, lost)


def _answered(event: Event, collected: _Collected) -> Iterator[Decision]:
    """Yield the decision that a person's message is, if it only names an option that was offered: "5 min", "do 1"."""
    said = event.text.strip()
    if numbered := _NUMBER.fullmatch(said):
        number = int(numbered["number"])
        offered = "\n".join(each.text for each in collected.before)
        if option := re.search(_OPTION.format(number=number, after=number + 1), offered):
            what = one_line(option["what"]).strip(" ,.")
            if stems(what):
                also = tuple(dict.fromkeys(each.event.id for each in collected.before))[:1]
                yield _decided(what, f"{what}, chosen of: {offered}", event, (), also=also)
        return
    answer = _HEAD.split(said, maxsplit=1)[0].strip(" .!")
    is_choice = " or " in collected.asked and collected.messages_since <= _ANSWERED_WITHIN and len(said) <= _SHORT
    if (
        is_choice
        and 0 < len(answer.split()) <= _MOST_WORDS_OF_AN_ANSWER
        and re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", collected.asked, re.IGNORECASE)
    ):
        asked = clip(f"{collected.subject} {collected.asked}".strip(), 200)
        title = f"{one_line(collected.subject).rstrip('?')}: {answer}" if collected.subject else f"{answer}, asked “{asked}”"
        yield _decided(title, f"Asked “{asked}”: {said}", event, ())


def _lost(text: str) -> tuple[Rejected, ...]:
    found = list(rejected_in([text]))[:3]
    if not found and (over := _OVER.search(text)):
        what = one_line(over["what"] or over["other"]).strip(" `")
        because = re.search(r"\b(?:because|since|as)\s+(?P<why>.+)", text, re.IGNORECASE)
        found = [Rejected(alternative=clip(what, 120), reason=clip(because["why"].rstrip(" ."), 240) if because else "")]
    return tuple(each for each in found if stems(each.alternative))


def _in_context(what: str, collected: _Collected) -> str:
    return f"Asked “{clip(collected.asked, 200)}”: {what}." if collected.asked else ""


def _after_what_was_said(text: str, collected: _Collected) -> str:
    """Return a short text after the message that it answers, which says what it is about."""
    before = " ".join(each.text for each in collected.before)
    return f"“{before}” {text}" if 0 < len(before) <= _SHORT else ""


def _source_of(what: str, collected: _Collected) -> tuple[str, ...]:
    """Return the previous message as evidence, if it contains what was agreed to."""
    return tuple({each.event.id: None for each in collected.before if what.lower() in each.text.lower()})[:1]


def _cause(text: str, sentence: Sentence, after: Sequence[Sentence]) -> Insight | None:
    parts = [] if _FOUND.match(text) else [text]
    for each in after:
        if each.text.endswith(("?", ":")) or OFFER.search(each.text):
            break
        if not parts or MENDED.search(each.text) or _WENT_RIGHT.search(each.text):
            parts.append(each.text)
    if not parts or len(stems(parts[0])) < _FEWEST_STEMS + 1:
        return None
    event = sentence.event
    return Insight(
        title=_titled(parts[0]), body=_closed(" ".join(parts)), evidence=(event.id,), importance=2, origin=_origin(event)
    )


def _decided(what: str, body: str, event: Event, rejected: tuple[Rejected, ...], also: tuple[str, ...] = ()) -> Decision:
    evidence = tuple(dict.fromkeys((event.id, *also)))
    return Decision(
        title=_titled(what), body=_closed(body), evidence=evidence, importance=2, origin=_origin(event), rejected=rejected
    )


def _turned_down(rejected: Rejected, text: str, event: Event) -> Decision:
    what = rejected.alternative[:1].upper() + rejected.alternative[1:]
    title = bounded_title(f"{TURNED_DOWN}{what}")
    return Decision(
        title=title, body=_closed(text), evidence=(event.id,), importance=2, origin=_origin(event), rejected=(rejected,)
    )


def _wish(text: str, event: Event, *, everywhere: bool = False) -> Preference:
    return Preference(
        title=_titled(text), body=_closed(text), evidence=(event.id,), importance=2, origin=_origin(event), everywhere=everywhere
    )


def _origin(event: Event) -> Origin:
    return "user" if event.role == "user" else "assistant"


def _titled(text: str) -> str:
    return bounded_title(title_of(text)) or bounded_title(clip(text, _NAME))


def _closed(text: str) -> str:
    text = clip(one_line(text), BODY_CHARS)
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def _says_the_same(item: RecordItem, other: RecordItem) -> bool:
    """Return whether two items say the same; a mere rejection never equals another item, nor a question or insight one of another
    kind.
    """
    if item.title.startswith(TURNED_DOWN) != other.title.startswith(TURNED_DOWN):
        return False
    if isinstance(item, OpenQuestion | Insight) and type(item) is not type(other):
        return False
    if item.title.startswith(TURNED_DOWN):  # one sentence may turn down two things
        own, theirs = stems(item.title.removeprefix(TURNED_DOWN)), stems(other.title.removeprefix(TURNED_DOWN))
        return (bool(own & theirs) or item.title == other.title) and _share(item, other)
    if isinstance(item, Decision) and isinstance(other, Insight):  # which may tell of the decision beside what it is about
        own, theirs = stems(item.title), stems(other.title)
        return bool(own) and len(own & theirs) >= _SAME * len(own)
    return _share(item, other)


def _share(item: RecordItem, other: RecordItem) -> bool:
    own, theirs = stems(item.body), stems(other.body)
    return bool(own) and len(own & theirs) >= _SAME * min(len(own), len(theirs) or 1)


def _joined(item: RecordItem, same: RecordItem) -> RecordItem:
    """Return the item with the alternatives rejected in either reading of the same decision."""
    if isinstance(item, Decision) and isinstance(same, Decision) and not item.rejected:
        return replace(item, rejected=same.rejected)
    return item


_MOVES_ON = lazy_regex(
    r"(?:(?:ok(?:ay)?|thanks|good|great|fine|now|so|and)[,.!]?\s+)*(?:(?:another|different|new|separate|next|last"
    r"|second|third|other) (?:topic|thing|question|point|subject|issue)"
    r"|(?:next|moving on|unrelated|something else|separately|lastly|finally)\b|now (?:the|to|for)\b|last (?:thing|point)\b)",
    re.IGNORECASE,
)


def _segments(events: Sequence[Event]) -> list[list[Event]]:
    """Split events where somebody changes the subject, or a person's message shares almost no words with everything before it."""
    segments: list[list[Event]] = [[]]
    said: set[str] = set()
    for event in events:
        own = stems(event.text)
        moves_on = event.role in ("user", "assistant") and bool(_MOVES_ON.match(event.text.lstrip(" #*-")))
        strange = event.role == "user" and len(own) >= _TOPIC_STEMS and len(own & said) < _NEW_TOPIC * len(own)
        asks = strange and len(said) >= 5 * _TOPIC_STEMS and event.text.rstrip().endswith("?")
        if segments[-1] and said and (moves_on or asks):
            segments.append([])
            said = set()
        segments[-1].append(event)
        said |= own
    return segments


def _topic(segment: Sequence[Event], items: Sequence[RecordItem]) -> Topic:
    if not items:
        return Topic(name="", summary="", items=())
    named = [replace(item, entities=item.entities or entities_of((item.title, item.body))) for item in items]
    first = max(named, key=lambda item: (item.importance, not item.title.startswith(TURNED_DOWN)))
    entities = tuple(dict.fromkeys(name for item in named for name in item.entities))[:12]
    return Topic(name=clip(first.title, _NAME), summary="", items=tuple(named), entities=entities)
