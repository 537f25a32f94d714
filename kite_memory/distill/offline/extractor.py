"""Extractor by rules: no network, no key, no model, and the same answer every time.

Conversations that are not in English have fewer rules. All of what a language needs is a file of cues in the folder
`languages`.
"""

import re
import tomllib
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, Literal, assert_never

from kite_memory.distill.asked_to_keep import asked_to_keep, own_part, taken_back
from kite_memory.distill.extractor import REVISION, Answer, Usage
from kite_memory.distill.offline.drafts import drafts_of, of_command
from kite_memory.distill.offline.people import ASKS_BACK, MACHINE, people_in, unquoted
from kite_memory.distill.offline.titles import TITLE_WORDS, entities_of
from kite_memory.distill.offline.wording import CODE, OfflineDraft, Rule, Turn, said_by_person, turns
from kite_memory.distill.parse_answer import BODY_CHARS, TITLE_CHARS, bounded_title, checked_origin
from kite_memory.distill.prose import asks_something_else, bounded, clean, established, one_line, stems, without_emphasis
from kite_memory.distill.quality_gate import apply_quality_gate
from kite_memory.model.event import Event, EventType, Provenance, Session
from kite_memory.model.note import PERSON, Chunk, Decision, Fact, Insight, OpenQuestion, Preference, Record, RecordItem, Topic
from kite_memory.text import lazy_regex
from kite_memory.text.display import clip
from kite_memory.text.stems import FREQUENT, language_of

_READ = 4_000
_TYPED = 700
_MADE_OF_IT = 600
_BRIEF, _REQUEST = 300, 200
"""Most characters of an answer to a proposal that is no question, and of the proposal; of a request that is quoted before it."""
_FEWEST_STEMS = 2
_FEWEST_OF_A_CAUSE = 5
_FIRM = 2
_LOOK_BACK = 3
"""Turns in which the question is looked for that a person answers, or their report of what the agent explains."""
_NUDGE = 80
"""Most characters of a message that only urges the agent on."""
_THANKS = re.compile(r"\b(?:danke|merci|gracias|obrigad[oa]|valeu|спасибо)\b|谢谢|多谢|ありがとう", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cues:
    """What to look for in one language. ``assent`` and ``also`` are openings: a "yes", an "and".

    ``binding`` and ``bounding`` mark what a ruling says, the former alone; ``standing`` that it holds for good. ``wish`` is how
    things are to be done from now on, ``politely`` the same as a question, ``keep`` a fact to remember. ``cause`` is a reason,
    ``found`` the reason of a trouble, ``trouble`` what needs one, ``recommends`` a proposal of the agent. ``asking``, ``ordering``
    and ``passing`` are questions, orders of the moment, and what holds only for now; ``refusing`` turns down what was proposed;
    ``addressing`` speaks of what the agent does. ``doing`` is what the agent does, offers or does not know yet, and how far it is.
    """

    assent: re.Pattern[str]
    also: re.Pattern[str]
    binding: re.Pattern[str]
    bounding: re.Pattern[str]
    standing: re.Pattern[str]
    wish: re.Pattern[str]
    politely: re.Pattern[str]
    keep: re.Pattern[str]
    cause: re.Pattern[str]
    found: re.Pattern[str]
    trouble: re.Pattern[str]
    recommends: re.Pattern[str]
    asking: re.Pattern[str]
    refusing: re.Pattern[str]
    ordering: re.Pattern[str]
    passing: re.Pattern[str]
    addressing: re.Pattern[str]
    doing: re.Pattern[str]


@cache
def cues_of(code: str) -> Cues:
    data: dict[str, Any] = tomllib.loads(files(__package__).joinpath("languages", f"{code}.toml").read_text(encoding="utf-8"))
    spaced = code not in ("zh", "ja")

    def says(name: str) -> re.Pattern[str]:
        cues = "|".join(data[name])
        return re.compile(rf"(?<!\w)(?:{cues})(?!\w)" if spaced else f"(?:{cues})", re.IGNORECASE)

    between, perhaps = r"(?:\W+|$)", r"\W*"
    assent = re.compile(rf"\W*(?:(?:{'|'.join(data['assent'])}){between})+", re.IGNORECASE)
    also = re.compile(rf"\W*(?:(?:{'|'.join(data['also'])}){between if spaced else perhaps})+", re.IGNORECASE)
    patterns = {name: says(name) for name in Cues.__dataclass_fields__ if name not in ("assent", "also")}
    return Cues(assent=assent, also=also, **patterns)


def foreign_drafts(turns: Sequence[Turn], fresh: Container[str]) -> Iterator[OfflineDraft]:
    """Yield drafts if what the person says is in a language that there are cues for."""
    code = language_of("\n".join(said_by_person(turn.asked) for turn in turns if turn.asked)) or language_of(
        "\n".join(event.text for turn in turns for event in turn.events if event.type is EventType.ASSISTANT_MESSAGE)
    )
    if code in ("", "en"):
        return
    cues = cues_of(code)
    thread: list[_Answer] = []
    answer: _Answer | None = None
    for at, turn in enumerate(turns):
        reported = _reported(turns[max(0, at - _LOOK_BACK) : at + 1], cues)
        after = turns[at + 1].asked if at + 1 < len(turns) else None
        if after is None or not _refuses(one_line(said_by_person(after)), turn, cues):
            yield from _causes(turn, reported, cues, fresh)
        answer = _answer(turn, turns[max(0, at - _LOOK_BACK) : at], cues, after=answer)
        if answer is not None and answer.kind == "decision":
            thread.append(answer)
            continue
        yield from _decided(thread, fresh, cues)
        thread = []
        if answer is not None and answer.asked.id in fresh:
            rule: Rule = "reminder" if answer.kind == "fact" else "wish"
            yield _draft([answer], rule, answer.kind, 2, cues)
    yield from _decided(thread, fresh, cues)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """What a person says that is worth a note. ``requests`` are their messages before: the last one, and the question that this
    one answers; ``said`` is empty for a bare assent to ``offer``.
    """

    kind: Literal["decision", "preference", "fact"]
    asked: Event
    requests: tuple[Event, ...]
    said: tuple[str, ...]
    weight: int
    offer: Event | None
    reply: Event | None


def _answer(turn: Turn, earlier: Sequence[Turn], cues: Cues, *, after: _Answer | None) -> _Answer | None:
    """Return a turn's answer; ``None`` for a question, an order, pasted text, or what holds only for the moment.

    ``after`` is the answer of the turn before, which an "and …" goes on with.
    """
    if turn.asked is None:
        return None
    before = earlier[-1] if earlier else None
    said = one_line(own_part(said_by_person(turn.asked)))
    if not said or len(said) > _TYPED or MACHINE.search(said):
        return None
    offer = _messages(before)[-1] if before is not None and _messages(before) else None
    reply = _messages(turn)[-1] if _messages(turn) else None
    agreed = cues.assent.match(said) if offer is not None else None
    goes_on = after is not None and after.kind != "fact" and cues.also.match(said) is not None
    asked = offer is not None and offer.text.rstrip().endswith(_QUESTION)
    sentences = _sentences(said[agreed.end() :] if agreed else said)
    gone = taken_back(sentences)
    lasting = tuple(each for at, each in enumerate(sentences) if at not in gone and _settles(each, cues, asked))
    text = " ".join(lasting)
    weight = _weight(text, cues)
    proposed = asked or (offer is not None and (len(text) <= _BRIEF and cues.recommends.search(offer.text[-_BRIEF:]) is not None))
    kind: Literal["decision", "preference", "fact"] = "decision"
    if len(stems(text)) < _FEWEST_STEMS:
        if not (agreed and proposed and agreed.end() == len(said)) or said.endswith(_QUESTION):
            return None
        if offer is not None and asks_something_else(_sentences(offer.text)[-1]):
            return None
        lasting = ()
    elif cues.keep.search(text):
        kind = "fact"
    elif not proposed and (cues.wish.search(text) or any(_begs(each, cues) for each in lasting)):
        kind = "preference"
    elif offer is None or len(text) > _BRIEF:
        return None
    elif goes_on and after is not None:
        kind = after.kind
    elif not (proposed or weight >= _FIRM or any(_picks(text, each) for each in earlier)):
        return None
    return _Answer(
        kind=kind, asked=turn.asked, requests=_requests(text, earlier) if after is None else (), said=lasting, weight=weight,
        offer=offer, reply=reply,
    )  # fmt: skip


def _weight(text: str, cues: Cues) -> int:
    """Return how much of a ruling is in a text: a binding expression counts twice, all its numbers together once."""
    bounds = [found.group() for found in cues.bounding.finditer(text)]
    numbers = sum(bound[:1].isdigit() for bound in bounds)
    return 2 * len(cues.binding.findall(text)) + len(bounds) - max(0, numbers - 1)


def _settles(sentence: str, cues: Cues, asked: bool) -> bool:
    """Return whether a sentence holds for longer than the moment; ``asked`` is whether it answers a question."""
    said = _without_connection(unquoted(sentence), cues)
    if ASKS_BACK.search(sentence) or cues.passing.search(sentence) or (sentence.endswith(_QUESTION) and not _begs(said, cues)):
        return False
    if (refused := cues.refusing.match(said)) is not None and len(stems(said[refused.end() :])) < _FEWEST_STEMS:
        return False
    lasting = cues.binding.search(said) or cues.wish.search(said) or cues.cause.search(said)
    if (
        not asked
        and cues.addressing.search(said)
        and not (cues.wish.search(said) or cues.standing.search(said) or cues.keep.search(said))
    ):
        return _begs(said, cues)
    return _begs(said, cues) or (not cues.asking.match(sentence) and (not cues.ordering.match(said) or lasting is not None))


def _refuses(said: str, turn: Turn, cues: Cues) -> bool:
    """Return whether a person turns down what was proposed, be it after a polite yes; "no, thanks" does if they were asked."""
    if _THANKS.search(said) and not (_messages(turn) and _messages(turn)[-1].text.rstrip().endswith(_QUESTION)):
        return False
    agreed = cues.assent.match(said)
    rest = _without_connection(said[agreed.end() :] if agreed else said, cues)
    return any(cues.refusing.match(each) is not None for each in (said, rest))


def _begs(sentence: str, cues: Cues) -> bool:
    """Return whether it asks the agent, as a question, to do something otherwise from now on."""
    return cues.politely.match(sentence.lstrip("¿ ")) is not None


def _without_connection(sentence: str, cues: Cues) -> str:
    connection = cues.also.match(sentence)
    return sentence[connection.end() :] if connection else sentence


def _picks(text: str, before: Turn | None) -> bool:
    """Return whether a person answers their own question, after the agent's advice, with something that it named."""
    asked = said_by_person(before.asked).rstrip() if before is not None and before.asked is not None else ""
    return asked.endswith(_QUESTION) and any(_inflected(one, other) for one in _names(text) for other in _names(asked))


def _requests(text: str, earlier: Sequence[Turn]) -> tuple[Event, ...]:
    """Return the person's message before an answer, and the question further back whose words the answer takes up."""
    last = earlier[-1].asked if earlier else None
    question = next((each.asked for each in reversed(earlier[:-1]) if _picks(text, each)), None)
    return tuple(each for each in (question, last) if each is not None)


def _reported(turns: Sequence[Turn], cues: Cues) -> Event | None:
    """Return the last message in which the person reports a trouble; only brief ones, which add nothing, may have followed."""
    for turn in reversed(turns):
        said = said_by_person(turn.asked) if turn.asked is not None else ""
        if (
            said
            and len(said) <= _BRIEF
            and any(
                cues.trouble.search(clause) and not cues.addressing.search(clause) for clause in _CLAUSE_OF_A_REPORT.split(said)
            )
        ):
            return turn.asked
        if len(said) > _NUDGE:
            break
    return None


_CLAUSE_OF_A_REPORT = re.compile(r"[,;:.!?，；。！？、]\s*|\n")


def _inflected(one: str, other: str) -> bool:
    """Return whether two stems differ at most in their last letter."""
    same = max(3, min(len(one), len(other)) - 1)
    return one == other or (max(len(one), len(other)) - same <= 1 and one[:same] == other[:same])


def _names(text: str) -> frozenset[str]:
    """Return the stems without frequent words, and, where words are not divided, without pairs of letters of grammar alone."""
    frequent = stems(" ".join(FREQUENT.get(language_of(text), ())))
    return frozenset(stem for stem in stems(text) - frequent if not _HIRAGANA.fullmatch(stem))


_HIRAGANA = re.compile("[\u3040-\u309f]+")
_QUESTION = ("?", "？")
_BREAK = re.compile(r"(?<=[^\W\d]{2}[.!?…])\s+|(?<=[`)\d][.!?…])\s+|(?<=[。！？])\s*|\n+")
_FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)


def _sentences(text: str) -> list[str]:
    """Return the sentences; prose of other languages need not begin with a capital letter, nor have blanks between sentences."""
    said = _EMOJI.sub("", without_emphasis(clean(_FENCED.sub(" ", bounded(text, _READ)))))
    return [each.strip(" -*#>") for each in _BREAK.split(said) if each.strip(" -*#>")]


_EMOJI = re.compile(r"[\u2600-\u27bf\U0001f300-\U0001faff]\ufe0f?\s?")


def _messages(turn: Turn) -> list[Event]:
    return [event for event in turn.events if event.type is EventType.ASSISTANT_MESSAGE and event.text.strip()]


def _decided(thread: Sequence[_Answer], fresh: Container[str], cues: Cues) -> Iterator[OfflineDraft]:
    """Yield what consecutive answers decide together; a bare assent alone decides what was proposed."""
    stated = [each for each in thread if each.said]
    if thread and not stated and thread[-1].asked.id in fresh and thread[-1].offer is not None:
        yield from _agreed(thread[-1], thread[-1].offer, cues)
    elif any(each.asked.id in fresh for each in stated):
        yield _draft(stated, "thread", "decision", 3 if any(each.weight >= _FIRM for each in stated) else 2, cues)


def _draft(
    answers: Sequence[_Answer], rule: Rule, kind: Literal["decision", "preference", "fact"], importance: int, cues: Cues
) -> OfflineDraft:
    quoted = " ".join(f"“{sentence}”" for each in answers for sentence in each.said)
    first = answers[0]
    replies = [each.reply for each in answers if each.reply is not None]
    made = _made_of_it([sentence for reply in replies for sentence in _sentences(reply.text)])
    best = max((sentence for each in answers for sentence in each.said), key=lambda sentence: len(stems(sentence)))
    whole = next(" ".join(each.said) for each in answers if best in each.said).replace("。 ", "。")
    if kind == "fact" and first.offer is not None:
        made = f"{_made_of_it(_sentences(first.offer.text))} {made}".strip()
    if kind == "decision":
        quoted = " → ".join(filter(None, (*map(_quoted, first.requests), _offered(first.offer), quoted)))
    elif kind == "preference" and first.requests and first.offer is not None and _goes_with(quoted, first.offer.text, cues):
        quoted = f"{_offered(first.offer)} → {quoted}"
    return OfflineDraft(
        rule=rule,
        kind=kind,
        title=_titled(_without_connection(whole if len(whole) <= _WHOLE_TITLE else best, cues)),
        body=clip(f"{quoted} {made}".strip(), BODY_CHARS),
        evidence=tuple(
            dict.fromkeys([*(each.asked.id for each in answers[:6]), *(each.id for each in (first.offer, *replies[-1:]) if each)])
        ),
        importance=importance,
        origin="user",
    )


def _goes_with(said: str, offered: str, cues: Cues) -> bool:
    """Return whether a person's words are about what the agent said, unless that explains something and is a note itself."""
    return cues.cause.search(offered) is None and bool(_names(said) & _names(offered))


def _quoted(request: Event | None) -> str:
    """Return a short request in quotation marks; what is settled or found seldom names its subject."""
    return f"“{one_line(said_by_person(request))}”" if request is not None and len(request.text) <= _REQUEST else ""


def _offered(offer: Event | None) -> str:
    """Return the end of what the agent proposed, without the question."""
    kept: list[str] = []
    for sentence in reversed(_sentences(offer.text) if offer is not None else []):
        if not sentence.endswith((*_QUESTION, ":", "：")):
            if sum(map(len, kept)) + len(sentence) > _BRIEF:
                break
            kept.insert(0, sentence)
    return " ".join(kept)


def _agreed(answer: _Answer, offer: Event, cues: Cues) -> Iterator[OfflineDraft]:
    proposal = _sentences(offer.text)
    if len(stems(offer.text)) < _FEWEST_OF_A_CAUSE or not proposal:
        return
    stated = [each for each in proposal if not each.endswith(_QUESTION)] or proposal
    fullest = max(stated, key=lambda each: len(stems(each)))
    asked = proposal[-1] if 2 * len(stems(proposal[-1])) >= len(stems(fullest)) else fullest
    yield OfflineDraft(
        rule="agreed",
        kind="decision",
        title=_titled(next((each for each in stated if cues.recommends.search(each)), asked).rstrip("?？ ")),
        body=clip(" ".join(proposal), BODY_CHARS),
        evidence=(offer.id, answer.asked.id),
        importance=2,
        origin="user",
    )


def _causes(turn: Turn, reported: Event | None, cues: Cues, fresh: Container[str]) -> Iterator[OfflineDraft]:
    """Yield the reason that the agent names in a turn, or the person: the one found, else the first; with what follows it."""
    asked = said_by_person(turn.asked) if turn.asked is not None and turn.asked.id in fresh else ""
    if turn.asked is not None and asked and len(asked) <= _TYPED and not MACHINE.search(asked):
        for sentence in (said := _sentences(asked)):
            if cues.found.search(sentence) and _explains(sentence, cues):
                yield _cause(None, turn.asked, sentence, " ".join(said))
                return
    for cue in (cues.found, cues.cause):
        for event in _messages(turn):
            sentences = _sentences(event.text) if event.id in fresh else []
            for at, sentence in enumerate(sentences):
                if cue.search(sentence) and _explains(sentence, cues):
                    yield _cause(reported or turn.asked, event, _after_label(sentence, cues), _with_next(sentences, at))
                    return
    if reported is not None:
        yield from _explained(turn, reported, cues, fresh)


def _explains(sentence: str, cues: Cues) -> bool:
    """Return whether a sentence says enough, and of more than what the agent did."""
    if sentence.endswith((*_QUESTION, ":", "：")) or (cues.doing.search(sentence) and not CODE.search(sentence)):
        return False
    return len(stems(sentence)) >= _FEWEST_OF_A_CAUSE


def _explained(turn: Turn, reported: Event, cues: Cues, fresh: Container[str]) -> Iterator[OfflineDraft]:
    """Yield how the agent explains a trouble that the person reports, where it says no "because"."""
    last = next(reversed(_messages(turn)), None)
    said = _sentences(last.text) if last is not None and last.id in fresh else []
    for at, sentence in enumerate(said[:-1]):
        if last is None or sentence.endswith(("!", "！")) or _is_heading(sentence) or cues.assent.match(sentence):
            continue
        if any(cue.search(sentence) for cue in (cues.doing, cues.recommends, cues.addressing)):
            continue
        if _explains(sentence, cues):
            yield _cause(reported, last, sentence, _with_next(said, at))
            return


def _is_heading(sentence: str) -> bool:
    """Return whether it is a label with a few words, or begins in capitals."""
    words = sentence.split()[:2]
    return _LABELLED.match(sentence) is not None or (len(words) == 2 and all(len(word) > 2 and word.isupper() for word in words))


def _with_next(sentences: Sequence[str], at: int) -> str:
    """Return a sentence and the one after it, or two if they are brief."""
    three = " ".join(sentences[at : at + 3])
    return three if len(three) <= _MADE_OF_IT else " ".join(sentences[at : at + 2])


def _cause(reported: Event | None, event: Event, title: str, text: str) -> OfflineDraft:
    return OfflineDraft(
        rule="cause", kind="insight", title=_titled(title),
        body=clip(" → ".join(filter(None, (_quoted(reported), text))), BODY_CHARS),
        evidence=(event.id,), importance=2, origin="user" if event.role == "user" else "assistant",
    )  # fmt: skip


def _after_label(sentence: str, cues: Cues) -> str:
    """Return the cause itself where a sentence only announces it in front of a colon."""
    head, _, tail = sentence.partition(":")
    return tail if (cues.found.search(head) or cues.cause.search(head)) and len(stems(tail)) >= _FEWEST_OF_A_CAUSE else sentence


_LABELLED = re.compile(r"[^.:]{1,40} : [^.]{1,60}$")


def _made_of_it(sentences: Sequence[str]) -> str:
    """Return what the agent says of it, as far as there is room, without questions."""
    kept: list[str] = []
    for sentence in sentences:
        if not sentence.endswith((*_QUESTION, ":", "：")) and len(stems(sentence)) >= _FEWEST_STEMS:
            if sum(map(len, kept)) + len(sentence) > _MADE_OF_IT:
                break
            kept.append(sentence)
    return " ".join(kept)


def _titled(sentence: str) -> str:
    text = one_line(sentence).strip(" .,;:。，；：!！")
    if len(text) > TITLE_CHARS and (ends := [found.start() for found in _CLAUSE.finditer(text[:TITLE_CHARS])]):
        text = text[: ends[-1]] if ends[-1] >= _SHORTEST_TITLE else text
    title = clip(text, TITLE_CHARS)
    return title if CODE.match(title) else title[:1].upper() + title[1:]


_CLAUSE = lazy_regex(r"[,;] | [—–-] |[，；、]")
_WHOLE_TITLE = 90
"""Most characters of a whole answer as the title."""
_SHORTEST_TITLE = 30
"""Least characters of a title that is cut at the end of a clause."""

_REVISION = 8
_SAME = 0.6
"""Share of a draft's words in another from which both count as the same."""
_MOST = 30
"""Most notes of one chunk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorthThreshold:
    """Least worth of a claim that is kept, and the increase of it for each note that the session has yielded already.

    Set by hand on three labelled projects; ``bench.extraction.extract_gold --fit`` reports each by what fits the others.
    """

    least: float = 2.7
    increase: float = 0.12


Gate = Callable[[Record, Mapping[str, Event], frozenset[str], Provenance | None], tuple[Record, tuple[str, ...]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineExtractor:
    """Extractor by rules. Yields fewer and plainer notes than a model, every sentence of them quoted."""

    gate: Gate = apply_quality_gate
    threshold: WorthThreshold = WorthThreshold()

    @property
    def name(self) -> str:
        return "offline"

    @property
    def version(self) -> str:
        return f"offline:{_REVISION}.{REVISION}"

    def estimate(self, chunk: Chunk) -> Usage:
        return Usage()

    def extract(self, chunk: Chunk) -> Answer:
        drafts = _selected(chunk, self.threshold)
        events = {event.id: event for event in (*chunk.before, *chunk.events)}
        people = people_in(events.values())
        items = tuple(item for draft in drafts if (item := _item(draft, events, people)) is not None)
        if not items:
            return Answer(record=Record(topics=()), usage=Usage())
        record, verdicts = self.gate(Record(topics=(_topic(items),)), events, frozenset(), chunk.provenance)
        record = _with_lent_origin(record, frozenset(draft.title for draft in drafts if draft.rule == "agreed"))
        return Answer(record=record, usage=Usage(), refused_items=verdicts)


def _with_lent_origin(record: Record, agreed: frozenset[str]) -> Record:
    """Give items that the person explicitly agreed to the origin "user", although the words are the agent's."""

    def lent(item: RecordItem) -> RecordItem:
        theirs = item.title in agreed and item.origin == "assistant" and not item.doubt
        return replace(item, origin="user") if theirs else item

    return replace(record, topics=tuple(replace(topic, items=tuple(map(lent, topic.items))) for topic in record.topics))


def said_to_keep(events: Sequence[Event]) -> bool:
    """Return whether a person plainly decided, requested or stated something here, so that a model should be called soon."""
    if any(event.role == "user" and asked_to_keep(event.text) for event in events):
        return True
    first = events[0]
    session = Session(id=first.session, provider=first.provider, started=first.at)
    record = OfflineExtractor().extract(Chunk(id="", session=session, events=tuple(events))).record
    return any(item.origin == "user" for item in record.items())


def _selected(chunk: Chunk, threshold: WorthThreshold) -> Sequence[OfflineDraft]:
    """Return the drafts worth a note; of two that say the same, the more certain one."""
    whole = turns((*chunk.before, *chunk.events))
    fresh = frozenset(event.id for event in chunk.events)
    drafts = [
        *drafts_of(whole, fresh),
        *foreign_drafts(whole, fresh),
        *(of_command(each) for each in established(chunk.events)),
    ]
    kept: list[tuple[OfflineDraft, frozenset[str]]] = []
    for draft in sorted(drafts, key=lambda draft: (_ORDER.index(draft.rule), -draft.worth)):
        if draft.worth < threshold.least + threshold.increase * (chunk.noted + len(kept)) or len(kept) == _MOST:
            continue
        own = stems(draft.body)
        if own and all(
            draft.title != other.title and len(own & others) < _SAME * min(len(own), len(others)) for other, others in kept
        ):
            kept.append((draft, own))
    chosen = {id(draft) for draft, _ in kept}
    return [draft for draft in drafts if id(draft) in chosen]


_ORDER: tuple[Rule, ...] = (
    "thread", "wish", "stated", "reminder", "correction", "choice", "refusal", "objection", "plan", "answer", "pick", "agreed",
    "conceded", "outcome", "claim", "cause", "manner", "command", "open",
)  # fmt: skip
"""Order of preference between two drafts that say the same."""


def _item(draft: OfflineDraft, events: Mapping[str, Event], people: frozenset[str]) -> RecordItem | None:
    title = bounded_title(draft.title, TITLE_WORDS)
    evidence = tuple(dict.fromkeys(id for id in draft.evidence if id in events))
    if not title or not evidence:
        return None
    body = clip(draft.body, BODY_CHARS)
    origin = checked_origin(draft.origin, [events[id] for id in evidence])
    named = tuple(f"{PERSON}{name}" for name in sorted(people) if re.search(rf"\b{re.escape(name)}\b", f"{title} {body}"))
    parts = {*people, *(part for name in people for part in name.split())}
    entities = (*named, *(each for each in entities_of((draft.title, draft.body)) if each not in parts))
    match draft.kind:
        case "decision":
            return Decision(
                title=title, body=body, evidence=evidence, importance=draft.importance, origin=origin, entities=entities,
                rejected=draft.rejected,
            )  # fmt: skip
        case "insight":
            return Insight(
                title=title, body=body, evidence=evidence, importance=draft.importance, origin=origin, entities=entities,
                symptom=draft.symptom,
            )  # fmt: skip
        case "preference":
            return Preference(
                title=title, body=body, evidence=evidence, importance=draft.importance, origin=origin, entities=entities,
                everywhere=draft.everywhere,
            )  # fmt: skip
        case "fact":
            return Fact(title=title, body=body, evidence=evidence, importance=draft.importance, origin=origin, entities=entities)
        case "question":
            return OpenQuestion(
                title=title, body=body, evidence=evidence, importance=draft.importance, origin=origin, entities=entities
            )
        case _:
            assert_never(draft.kind)


def _topic(items: tuple[RecordItem, ...]) -> Topic:
    first = max(items, key=lambda item: item.importance)
    return Topic(
        name=clip(first.title, 60),
        summary="",
        items=items,
        entities=tuple(dict.fromkeys(each for item in items for each in item.entities))[:12],
    )
