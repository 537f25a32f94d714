"""Drafts of notes from conversations that are not in English.

Their rules are fewer than the English ones. All of what a language needs is a file of cues in the folder `languages`, read when a
text of that language is met. Each list of such a file holds fragments of regular expressions:

- ``assent``: a person agrees; ``binding``, ``bounding``: an answer sets a rule, or a limit to what was proposed
- ``wish``: how the person wants things done from now on; ``keep``: a fact that is to be remembered
- ``cause``: an agent names a reason; ``recommends``: it proposes something, so that an answer decides
- ``asking``, ``ordering``: a message that begins so settles nothing; ``passing``: nor does one that holds for the moment
"""

import re
import tomllib
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from kite_memory.distill.offline.cues import CODE
from kite_memory.distill.offline.draft import OfflineDraft, Rule
from kite_memory.distill.offline.passages import Turn, said_by_person
from kite_memory.distill.offline.people import MACHINE
from kite_memory.distill.parse_answer import BODY_CHARS, TITLE_CHARS
from kite_memory.distill.prose import bounded, clean, clip, one_line, stems
from kite_memory.model.event import Event, EventType
from kite_memory.text.language import language_of

_READ = 4_000
_TYPED = 700
_MADE_OF_IT = 600
_REQUEST = 200
"""Most characters of a request that is quoted before what was decided on it."""
_FEWEST_STEMS = 2
_FEWEST_OF_A_CAUSE = 5
_FIRM = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Cues:
    assent: re.Pattern[str]
    binding: re.Pattern[str]
    bounding: re.Pattern[str]
    wish: re.Pattern[str]
    keep: re.Pattern[str]
    cause: re.Pattern[str]
    recommends: re.Pattern[str]
    asking: re.Pattern[str]
    ordering: re.Pattern[str]
    passing: re.Pattern[str]


@cache
def cues_of(code: str) -> Cues:
    data: dict[str, Any] = tomllib.loads(files(__package__).joinpath("languages", f"{code}.toml").read_text(encoding="utf-8"))
    spaced = code not in ("zh", "ja")

    def says(name: str) -> re.Pattern[str]:
        cues = "|".join(data[name])
        return re.compile(rf"(?<!\w)(?:{cues})(?!\w)" if spaced else f"(?:{cues})", re.IGNORECASE)

    between = r"(?:\W+|$)" if spaced else r"(?:[^\w]+|$)"
    assent = re.compile(rf"\W*(?:(?:{'|'.join(data['assent'])}){between})+", re.IGNORECASE)
    patterns = {name: says(name) for name in Cues.__dataclass_fields__ if name != "assent"}
    return Cues(assent=assent, **patterns)


def foreign_drafts(turns: Sequence[Turn], fresh: Container[str]) -> Iterator[OfflineDraft]:
    """Yield drafts if what the person says is in a language that there are cues for."""
    code = language_of("\n".join(said_by_person(turn.asked) for turn in turns if turn.asked)) or language_of(
        "\n".join(event.text for turn in turns for event in turn.events if event.type is EventType.ASSISTANT_MESSAGE)
    )
    if code in ("", "en"):
        return
    cues = cues_of(code)
    thread: list[_Answer] = []
    for at, turn in enumerate(turns):
        yield from _causes(turn, cues, fresh)
        answer = _answer(turn, turns[at - 1] if at else None, cues)
        if answer is not None and answer.kind == "decision":
            thread.append(answer)
            continue
        yield from _decided(thread, fresh)
        thread = []
        if answer is not None and answer.asked.id in fresh:
            yield _draft_of(answer)
    yield from _decided(thread, fresh)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """What a person says that is worth a note. ``request`` is their message before; ``said`` is empty for a bare assent to
    ``offer``.
    """

    kind: Literal["decision", "preference", "fact"]
    asked: Event
    request: Event | None
    said: tuple[str, ...]
    weight: int
    offer: Event | None
    reply: Event | None


def _answer(turn: Turn, before: Turn | None, cues: Cues) -> _Answer | None:
    """Return a turn's answer; ``None`` for a question, an order, pasted text, or what holds only for the moment."""
    if turn.asked is None:
        return None
    said = one_line(said_by_person(turn.asked))
    if not said or len(said) > _TYPED or MACHINE.search(said):
        return None
    offer = _messages(before)[-1] if before is not None and _messages(before) else None
    reply = _messages(turn)[-1] if _messages(turn) else None
    agreed = cues.assent.match(said)
    lasting = tuple(each for each in _sentences(said[agreed.end() :] if agreed else said) if _settles(each, cues))
    text = " ".join(lasting)
    weight = 2 * len(cues.binding.findall(text)) + len(cues.bounding.findall(text))
    proposed = offer is not None and (offer.text.rstrip().endswith(_QUESTION) or cues.recommends.search(offer.text) is not None)
    kind: Literal["decision", "preference", "fact"] = "decision"
    if len(stems(text)) < _FEWEST_STEMS:
        if not (agreed and proposed and agreed.end() == len(said)):
            return None
        lasting = ()
    elif cues.keep.search(text):
        kind = "fact"
    elif cues.wish.search(text) and not proposed:
        kind = "preference"
    elif offer is None or not (weight or proposed):
        return None
    return _Answer(
        kind=kind, asked=turn.asked, request=before.asked if before else None, said=lasting, weight=weight, offer=offer, reply=reply
    )


def _settles(sentence: str, cues: Cues) -> bool:
    if sentence.endswith(_QUESTION) or cues.passing.search(sentence):
        return False
    return not cues.asking.match(sentence) and (not cues.ordering.match(sentence) or cues.binding.search(sentence) is not None)


_QUESTION = ("?", "？")
_BREAK = re.compile(r"(?<=[^\W\d]{2}[.!?…])\s+|(?<=[`)\d][.!?…])\s+|(?<=[。！？])\s*|\n+")
_FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)


def _sentences(text: str) -> list[str]:
    """Return the sentences; prose of other languages need not begin with a capital letter, nor have blanks between sentences."""
    return [each.strip(" -*#>") for each in _BREAK.split(clean(_FENCED.sub(" ", bounded(text, _READ)))) if each.strip(" -*#>")]


def _messages(turn: Turn) -> list[Event]:
    return [event for event in turn.events if event.type is EventType.ASSISTANT_MESSAGE and event.text.strip()]


def _decided(thread: Sequence[_Answer], fresh: Container[str]) -> Iterator[OfflineDraft]:
    """Yield what consecutive answers decide together; a bare assent alone decides what was proposed."""
    stated = [each for each in thread if each.said]
    if thread and not stated and thread[-1].asked.id in fresh and thread[-1].offer is not None:
        yield from _agreed(thread[-1], thread[-1].offer)
    elif any(each.asked.id in fresh for each in stated):
        yield _draft(stated, "thread", "decision", 3 if any(each.weight >= _FIRM for each in stated) else 2)


def _draft_of(answer: _Answer) -> OfflineDraft:
    if answer.kind == "fact":
        return _draft([answer], "reminder", "fact", 2)
    return _draft([answer], "wish", "preference", 2)


def _draft(
    answers: Sequence[_Answer], rule: Rule, kind: Literal["decision", "preference", "fact"], importance: int
) -> OfflineDraft:
    quoted = " ".join(f"“{sentence}”" for each in answers for sentence in each.said)
    replies = [each.reply for each in answers if each.reply is not None]
    made = _made_of_it([sentence for reply in replies for sentence in _sentences(reply.text)])
    best = max((sentence for each in answers for sentence in each.said), key=lambda sentence: len(stems(sentence)))
    if kind == "fact" and answers[0].offer is not None:
        made = f"{_made_of_it(_sentences(answers[0].offer.text))} {made}".strip()
    request = answers[0].request
    if kind == "decision" and request is not None and len(request.text) <= _REQUEST:
        quoted = f"“{one_line(request.text)}” → {quoted}"
    return OfflineDraft(
        rule=rule,
        kind=kind,
        title=_titled(best),
        body=clip(f"{quoted} {made}".strip(), BODY_CHARS),
        evidence=tuple(dict.fromkeys([*(each.asked.id for each in answers[:6]), *(reply.id for reply in replies[-1:])])),
        importance=importance,
        origin="user",
    )


def _agreed(answer: _Answer, offer: Event) -> Iterator[OfflineDraft]:
    proposal = _sentences(offer.text)
    if len(stems(offer.text)) < _FEWEST_OF_A_CAUSE or not proposal:
        return
    yield OfflineDraft(
        rule="agreed",
        kind="decision",
        title=_titled(proposal[-1].rstrip("?？ ")),
        body=clip(" ".join(proposal), BODY_CHARS),
        evidence=(offer.id, answer.asked.id),
        importance=2,
        origin="user",
    )


def _causes(turn: Turn, cues: Cues, fresh: Container[str]) -> Iterator[OfflineDraft]:
    """Yield the first reason that the agent names in a turn, with the sentence after it."""
    for event in _messages(turn):
        sentences = _sentences(event.text)
        for at, sentence in enumerate(sentences):
            if event.id not in fresh or sentence.endswith(_QUESTION) or not cues.cause.search(sentence):
                continue
            if len(stems(sentence)) >= _FEWEST_OF_A_CAUSE:
                yield OfflineDraft(
                    rule="cause",
                    kind="insight",
                    title=_titled(sentence),
                    body=clip(" ".join(sentences[at : at + 2]), BODY_CHARS),
                    evidence=(event.id,),
                    importance=2,
                    origin="assistant",
                )
                return


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
    title = clip(one_line(sentence).strip(" .,;:。，；：!！"), TITLE_CHARS)
    return title if CODE.match(title) else title[:1].upper() + title[1:]
