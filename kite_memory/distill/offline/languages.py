"""Drafts of notes from conversations that are not in English.

Their rules are fewer than the English ones. All of what a language needs is a file of cues in the folder `languages`, read when a
text of that language is met. Each list of such a file holds fragments of regular expressions:

- ``common``: frequent words, by which the language is recognised; languages with a script of their own need none
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
from kite_memory.distill.offline.drafts import Draft, Rule
from kite_memory.distill.offline.passages import Turn, said_by_person
from kite_memory.distill.offline.people import MACHINE
from kite_memory.distill.parse_answer import BODY_CHARS, TITLE_CHARS
from kite_memory.distill.prose import bounded, clean, clip, one_line, stems
from kite_memory.model.event import Event, EventType

LATIN = ("de", "fr", "es", "pt")
"""Languages that share a script with English, so that only frequent words tell them apart."""
_READ = 4_000
_TYPED = 700
_MADE_OF_IT = 600
_FEWEST_STEMS = 2
_FEWEST_OF_A_CAUSE = 5
_FIRM = 2
_KANA = re.compile("[\u3040-\u30ff]")
_HAN = re.compile("[\u3400-\u9fff]")
_CYRILLIC = re.compile("[\u0400-\u04ff]")
_LETTER = re.compile(r"[^\W\d_]")
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_CODE_PART = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|https?://\S+", re.DOTALL)
_ENGLISH = frozenset(
    re.findall(
        "[a-z']+",
        """
        the and is are was were it's this that these those to of in on for with from as at by be have has had do does did don't not
        it we you i they what which when where why how can could should would will if but or so there then than just also only use
        need make let's an my our your please
        """,
    )
)
_SHARE = 0.15
"""Share of an English text's words that are among the frequent ones; most have twice as much."""
_SCRIPT_SHARE = 0.15
"""Share of letters of another script from which a text is in that language: identifiers stay Latin."""


def language_of(text: str) -> str:
    """Return the language's code; empty for English, for another language, and for a text that does not tell."""
    text = _CODE_PART.sub(" ", bounded(text, _READ))
    letters = len(_LETTER.findall(text)) or 1
    if text.isascii() or len(re.findall("[\u0400-\uffff]", text)) < _SCRIPT_SHARE * letters:
        return _latin([word.lower() for word in _WORD.findall(text)])
    if len(_CYRILLIC.findall(text)) >= _SCRIPT_SHARE * letters:
        return "ru"
    kana = len(_KANA.findall(text))
    if kana + len(_HAN.findall(text)) < _SCRIPT_SHARE * letters:
        return ""
    return "ja" if kana >= _SCRIPT_SHARE * letters else "zh"


def _latin(words: Sequence[str]) -> str:
    english = sum(word in _ENGLISH for word in words)
    if not words or english >= _SHARE * len(words):
        return ""
    counts = {code: sum(word in cues_of(code).common for word in words) for code in LATIN}
    best = max(counts, key=counts.__getitem__)
    return best if counts[best] >= max(2, english + 1, _SHARE * len(words)) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cues:
    common: frozenset[str]
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
    patterns = {name: says(name) for name in Cues.__dataclass_fields__ if name not in ("common", "assent")}
    return Cues(common=frozenset(data["common"]), assent=assent, **patterns)


def foreign_drafts(told: Sequence[Turn], fresh: Container[str]) -> Iterator[Draft]:
    """Yield drafts if what the person says is in a language that there are cues for."""
    code = language_of("\n".join(said_by_person(turn.asked) for turn in told if turn.asked)) or language_of(
        "\n".join(event.text for turn in told for event in turn.events if event.type is EventType.ASSISTANT_MESSAGE)
    )
    if not code:
        return
    cues = cues_of(code)
    thread: list[_Answer] = []
    for at, turn in enumerate(told):
        yield from _causes(turn, cues, fresh)
        answer = _answer(turn, told[at - 1] if at else None, cues)
        if answer is not None and answer.kind == "decision":
            thread.append(answer)
            continue
        yield from _decided(thread, fresh)
        thread = []
        if answer is not None and answer.asked.id in fresh:
            yield _told(answer)
    yield from _decided(thread, fresh)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """What a person says that is worth a note. ``said`` is empty for a bare assent to ``offer``."""

    kind: Literal["decision", "preference", "fact"]
    asked: Event
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
    return _Answer(kind=kind, asked=turn.asked, said=lasting, weight=weight, offer=offer, reply=reply)


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


def _decided(thread: Sequence[_Answer], fresh: Container[str]) -> Iterator[Draft]:
    """Yield what consecutive answers decide together; a bare assent alone decides what was proposed."""
    told = [each for each in thread if each.said]
    if thread and not told and thread[-1].asked.id in fresh and thread[-1].offer is not None:
        yield from _agreed(thread[-1], thread[-1].offer)
    elif any(each.asked.id in fresh for each in told):
        yield _draft(told, "thread", "decision", 3 if any(each.weight >= _FIRM for each in told) else 2)


def _told(answer: _Answer) -> Draft:
    if answer.kind == "fact":
        return _draft([answer], "told", "fact", 2)
    return _draft([answer], "wish", "preference", 2)


def _draft(told: Sequence[_Answer], rule: Rule, kind: Literal["decision", "preference", "fact"], importance: int) -> Draft:
    quoted = " ".join(f"“{sentence}”" for each in told for sentence in each.said)
    replies = [each.reply for each in told if each.reply is not None]
    made = _made_of_it([sentence for reply in replies for sentence in _sentences(reply.text)])
    best = max((sentence for each in told for sentence in each.said), key=lambda sentence: len(stems(sentence)))
    if kind == "fact" and told[0].offer is not None:
        made = f"{_made_of_it(_sentences(told[0].offer.text))} {made}".strip()
    return Draft(
        rule=rule,
        kind=kind,
        title=_titled(best),
        body=clip(f"{quoted} {made}".strip(), BODY_CHARS),
        evidence=tuple(dict.fromkeys([*(each.asked.id for each in told[:6]), *(reply.id for reply in replies[-1:])])),
        importance=importance,
        origin="user",
    )


def _agreed(answer: _Answer, offer: Event) -> Iterator[Draft]:
    proposal = _sentences(offer.text)
    if len(stems(offer.text)) < _FEWEST_OF_A_CAUSE or not proposal:
        return
    yield Draft(
        rule="agreed",
        kind="decision",
        title=_titled(proposal[-1].rstrip("?？ ")),
        body=clip(" ".join(proposal), BODY_CHARS),
        evidence=(offer.id, answer.asked.id),
        importance=2,
        origin="user",
    )


def _causes(turn: Turn, cues: Cues, fresh: Container[str]) -> Iterator[Draft]:
    """Yield the first reason that the agent names in a turn, with the sentence after it."""
    for event in _messages(turn):
        told = _sentences(event.text)
        for at, sentence in enumerate(told):
            if event.id not in fresh or sentence.endswith(_QUESTION) or not cues.cause.search(sentence):
                continue
            if len(stems(sentence)) >= _FEWEST_OF_A_CAUSE:
                yield Draft(
                    rule="cause",
                    kind="insight",
                    title=_titled(sentence),
                    body=clip(" ".join(told[at : at + 2]), BODY_CHARS),
                    evidence=(event.id,),
                    importance=2,
                    origin="assistant",
                )
                return


def _made_of_it(told: Sequence[str]) -> str:
    """Return what the agent says of it, as far as there is room, without questions."""
    kept: list[str] = []
    for sentence in told:
        if not sentence.endswith((*_QUESTION, ":", "：")) and len(stems(sentence)) >= _FEWEST_STEMS:
            if sum(map(len, kept)) + len(sentence) > _MADE_OF_IT:
                break
            kept.append(sentence)
    return " ".join(kept)


def _titled(sentence: str) -> str:
    title = clip(one_line(sentence).strip(" .,;:。，；：!！"), TITLE_CHARS)
    return title if CODE.match(title) else title[:1].upper() + title[1:]
