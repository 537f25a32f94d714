"""From one turn to the notes it could become."""

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, assert_never

from kite_memory.distill.offline.commands import Established
from kite_memory.distill.offline.cues import CAUSE, DECIDING, VERIFIED
from kite_memory.distill.offline.findings import Finding, finding_of, is_talk, sentences_of_turn, settled_cause, settled_choice
from kite_memory.distill.offline.passages import Sentence, Turn, said_by_person, sentences_of
from kite_memory.distill.offline.people import EVERYWHERE, concedes, directs, is_firm, stated_decisions, wishes
from kite_memory.distill.offline.statements import Statement, statements
from kite_memory.distill.offline.wording import in_own_words, rejected_in, title_of, without_opening
from kite_memory.distill.options import options_in, picked
from kite_memory.distill.parse_answer import BODY_CHARS
from kite_memory.distill.prose import clip, one_line, stems, telling_lines
from kite_memory.distill.retractions import CLAIM
from kite_memory.model.event import Event, EventType
from kite_memory.model.record import SAID_TO_A_REFUSAL, Origin, Rejected

_FEWEST_WORDS = 80
_LEAST_SCORE = 1.0
_FEWEST_WORDS_OF_A_CAUSE = 40
_LEAST_SCORE_OF_A_CAUSE = 0.4
_WISH = 9.0
_STATED = 8.0
_TOLD = 8.5
_CORRECTION = 7.0
_CHOSEN = 6.0
_PICK = 1.6
_SETTLED = 1.6
_REFUSAL = 1.5
_COMMAND = 1.5
_QUOTED = 260


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """``rule`` says what made it; ``score`` is comparable between the drafts of a chunk; ``claims`` where it names a cause."""

    rule: Literal[
        "finding", "settled", "stated", "told", "correction", "choice", "pick", "answer", "plan", "refusal", "wish", "command"
    ]  # fmt: skip
    kind: Literal["decision", "insight", "fact", "preference"]
    title: str
    body: str
    evidence: tuple[str, ...]
    score: float
    importance: int
    origin: Origin
    rejected: tuple[Rejected, ...] = ()
    symptom: str = ""
    everywhere: bool = False
    claims: bool = False


def drafts_of(turn: Turn, before: Turn | None, fresh: Container[str]) -> tuple[list[Draft], int]:
    """The drafts of a turn and the number of words the agent said in it.

    Only events in ``fresh`` are told of: what the turn began with may have been told already.
    """
    said = [sentence for sentence in sentences_of_turn(turn) if sentence.event.id in fresh]
    words = sum(sentence.words for sentence in said)
    drafts: list[Draft] = []
    if turn.asked is not None and turn.asked.id in fresh:
        drafts.extend((*_picks(turn, before), *_refusals(turn, before), *_plainly(turn, before)))
    drafts.extend((*_answers(turn, said, fresh), *_stated(turn, fresh), *_wishes(turn, fresh)))
    finding = finding_of(turn, said)
    if finding and _weighs(finding, words):
        drafts.append(_found(turn, finding))
    elif settled := settled_cause(turn, said):
        drafts.append(_settled(turn, settled, "insight"))
    elif settled := settled_choice(said):
        drafts.append(_settled(turn, settled, "decision"))
    return drafts, words


def _weighs(finding: Finding, words: int) -> bool:
    if any(CLAIM.search(sentence.text) for sentence in finding.sentences):
        return words >= _FEWEST_WORDS_OF_A_CAUSE and finding.score >= _LEAST_SCORE_OF_A_CAUSE
    return words >= _FEWEST_WORDS and finding.score >= _LEAST_SCORE


def _found(turn: Turn, finding: Finding) -> Draft:
    """Where the agent opens by giving way, the person's words lead: they are what the rest of the turn follows."""
    text = joined(sentence.text for sentence in finding.sentences)
    evidence = [sentence.event.id for sentence in finding.sentences]
    corrected = _correction(turn)
    if corrected and turn.asked:
        text = f"{_quotation(corrected)} {text}"
        evidence.insert(0, turn.asked.id)
    rejected = tuple(rejected_in(sentence.text for sentence in finding.sentences))[:3]
    causes = len(CAUSE.findall(text)) + 2 * len(VERIFIED.findall(text))
    decides = len(DECIDING.findall(text)) + 2 * len(rejected) + 2 * bool(corrected)
    kind: Literal["decision", "insight", "fact"] = "decision" if decides > causes else "insight" if causes else "fact"
    firm = (kind == "decision" and bool(rejected)) or (kind == "insight" and bool(VERIFIED.search(text)))
    if kind == "insight" and finding.discarded:
        text = f"{text} Ruled out: {'; '.join(title_of(theory.text) for theory in finding.discarded[:2])}."
    return Draft(
        rule="finding",
        kind=kind,
        title=title_of(finding.best.text),
        body=text,
        evidence=tuple(evidence),
        score=finding.score,
        importance=3 if firm and finding.score >= 2.0 else 2,
        origin="assistant",
        rejected=rejected,
        symptom=_symptom(turn, of_any_call=False) if kind == "insight" else "",
        claims=any(CLAIM.search(sentence.text) for sentence in finding.sentences),
    )


def _settled(turn: Turn, sentences: Sequence[Sentence], kind: Literal["insight", "decision"]) -> Draft:
    text = joined(sentence.text for sentence in sentences)
    return Draft(
        rule="settled",
        kind=kind,
        title=title_of(sentences[0].text),
        body=text,
        evidence=tuple(dict.fromkeys(sentence.event.id for sentence in sentences)),
        score=_SETTLED,
        importance=2,
        origin="assistant",
        rejected=tuple(rejected_in(sentence.text for sentence in sentences))[:2] if kind == "decision" else (),
        symptom=_symptom(turn, of_any_call=True) if kind == "insight" else "",
    )


def _symptom(turn: Turn, *, of_any_call: bool) -> str:
    failures = [event for event in turn.events if event.type is EventType.ERROR or event.status == "failed"]
    shown = [event for event in failures if event.command] or (failures if of_any_call else [])
    return telling_lines(shown[-1].text, 200, lines=2) if shown else ""


def _correction(turn: Turn) -> str:
    """What the person said, if the agent's next words concede it and it is short enough to have been typed."""
    if turn.asked is None:
        return ""
    words = said_by_person(turn.asked)
    reply = next((event for event in turn.events if event.type is EventType.ASSISTANT_MESSAGE), None)
    if reply is None or not concedes(reply.text) or len(words) > 600 or len(stems(words)) < 3:
        return ""
    return words


def _stated(turn: Turn, fresh: Container[str]) -> Iterator[Draft]:
    """A decision in the person's own words, followed by what the agent made of it."""
    for at, event in enumerate(turn.events):
        if event.id not in fresh:
            continue
        for stated in stated_decisions(event):
            reply = next((after for after in turn.events[at + 1 :] if after.type is EventType.ASSISTANT_MESSAGE), None)
            echo = _echo(reply, stated.stems)
            rejected = tuple(rejected_in([stated.text]))[:3]
            yield Draft(
                rule="stated",
                kind="decision",
                title=title_of(without_opening(stated.text)),
                body=f"{in_own_words(stated.text, BODY_CHARS)} {joined(each.text for each in echo[:2])}".rstrip(),
                evidence=(event.id, *(each.event.id for each in echo[:1])),
                score=_STATED,
                importance=3 if rejected and rejected[0].reason else 2,
                origin="user",
                rejected=rejected,
            )


def _echo(reply: Event | None, about: frozenset[str]) -> list[Sentence]:
    """What the agent made of a person's words in its next message."""
    if reply is None:
        return []
    return [each for each in sentences_of(reply, reply.text)[:8] if not is_talk(each) and len(each.stems & about) >= 2]


def _plainly(turn: Turn, before: Turn | None) -> Iterator[Draft]:
    if turn.asked is None:
        return
    reply = next((event for event in turn.events if event.type is EventType.ASSISTANT_MESSAGE), None)
    for statement in statements(turn.asked, answered=before is not None):
        yield _of_statement(statement, turn.asked, _echo(reply, stems(statement.text)))


def _of_statement(statement: Statement, event: Event, echo: Sequence[Sentence]) -> Draft:
    words = in_own_words(statement.text, _QUOTED)
    rejected = tuple(rejected_in([statement.text]))[:3]
    title = title_of(statement.text)
    match statement.rule:
        case "told":
            return Draft(
                rule="told", kind="fact", title=title, body=words, evidence=(event.id,), score=_TOLD,
                importance=3 if statement.firm else 2, origin="user",
            )  # fmt: skip
        case "correction":
            return Draft(
                rule="correction", kind="preference", title=title, body=words, evidence=(event.id,), score=_CORRECTION,
                importance=2, origin="user", rejected=rejected, everywhere=bool(EVERYWHERE.search(words)),
            )  # fmt: skip
        case "choice":
            return Draft(
                rule="choice", kind="decision", title=title, body=f"{words} {joined(each.text for each in echo[:2])}".rstrip(),
                evidence=(event.id, *(each.event.id for each in echo[:1])), score=_CHOSEN,
                importance=2 if statement.firm or rejected else 1, origin="user", rejected=rejected,
            )  # fmt: skip
        case _:
            assert_never(statement.rule)


def _picks(turn: Turn, before: Turn | None) -> Iterator[Draft]:
    """The person names one of the options that the agent's last message ends on."""
    if turn.asked is None or before is None:
        return
    offer = next((event for event in reversed(before.events) if event.type is EventType.ASSISTANT_MESSAGE), None)
    if offer is None:
        return
    said = said_by_person(turn.asked)
    options = options_in(offer.text)
    choice = picked(said, options)
    if choice is None or len(stems(choice.text)) < 5:
        return
    reasons = finding_of(before, [each for each in sentences_of(offer, offer.text) if each.stems & stems(choice.text)])
    body = [f"Chosen: {choice.text}"]
    if reasons:
        body.extend(each.text for each in reasons.sentences if each.text[:60] not in choice.text)
    yield Draft(
        rule="pick",
        kind="decision",
        title=title_of(choice.name),
        body=joined(body[:4]),
        evidence=(offer.id, turn.asked.id),
        score=_PICK,
        importance=2,
        origin="user",
        rejected=tuple(Rejected(alternative=option.text, reason="") for option in options if option is not choice)[:4],
    )


_ANSWER = re.compile(r"^(?P<question>.{3,600}?)\nAnswer: (?P<answer>.{1,600}?)(?:\nNot chosen: (?P<lost>.{1,800}))?\s*$", re.DOTALL)
_CHOICE = re.compile(
    r"\W*(?:which|how (?:should|do|would)|should|shall|what (?:should|approach|would|do you want|kind|level|format|name)"
    r"|do (?:you|we) want|would you|can we|is it ok)\b",
    re.IGNORECASE,
)
"""Questions that ask for a choice; others only ask for information."""


def _answers(turn: Turn, said: Sequence[Sentence], fresh: Container[str]) -> Iterator[Draft]:
    """Answers to the agent's questions, and plans that were approved."""
    for event in turn.events:
        if event.type is not EventType.DECISION or event.id not in fresh:
            continue
        if match := _ANSWER.match(event.text[:2_500]):
            question, answer = one_line(match["question"]), one_line(match["answer"])
            if len(stems(f"{question} {answer}")) < 4 or not _CHOICE.match(question):
                continue
            about = stems(f"{question} {answer}")
            reasons = finding_of(turn, [each for each in said if len(each.stems & about) >= 2])
            lost = [one_line(each) for each in (match["lost"] or "").split(";")]
            yield Draft(
                rule="answer",
                kind="decision",
                title=title_of(answer) if len(answer.split()) >= 3 else title_of(f"{answer}: {question}"),
                body=joined(
                    [f"Asked “{clip(question, _QUOTED)}”, the person chose: {clip(answer, _QUOTED)}"]
                    + [each.text for each in (reasons.sentences if reasons else ())[:2]]
                ),
                evidence=(event.id,),
                score=_PICK,
                importance=2,
                origin="user",
                rejected=tuple(Rejected(alternative=clip(each, 120), reason="") for each in lost if each)[:4],
            )
            continue
        plan = sentences_of(event, event.text)
        finding = finding_of(turn, plan)
        if finding is None or sum(sentence.words for sentence in plan) < 30:
            continue
        yield Draft(
            rule="plan",
            kind="decision",
            title=title_of(finding.best.text),
            body="From an approved plan: " + joined(sentence.text for sentence in finding.sentences),
            evidence=(event.id,),
            score=_PICK,
            importance=2,
            origin="user",
        )


def _refusals(turn: Turn, before: Turn | None) -> Iterator[Draft]:
    """A call stopped with words that ask for something else: what the person wants, read with what it corrects."""
    if turn.asked is None or before is None:
        return
    last = [event for event in before.events[-4:] if event.type is not EventType.RESUME_POINT]
    words = said_by_person(turn.asked)
    if not last or last[-1].status != "denied" or not directs(words) or words.rstrip().endswith("?") or len(stems(words)) < 3:
        return
    refused = last[-1]
    reply = next((event for event in turn.events if event.type is EventType.ASSISTANT_MESSAGE), None)
    said_to = f"{SAID_TO_A_REFUSAL} {refused.tool or 'a tool'}{_object_of(before, refused)}."
    body = [f"“{clip(one_line(words), _QUOTED)}”, {said_to}"]
    evidence = [turn.asked.id, refused.id]
    if reply is not None:
        echo = [each for each in sentences_of(reply, reply.text)[:8] if each.words >= 6 and not each.text.endswith((":", "?"))]
        body.append(joined(each.text for each in echo[:2]))
        evidence.append(reply.id)
    yield Draft(
        rule="refusal",
        kind="preference",
        title=title_of(words),
        body=" ".join(body).rstrip(),
        evidence=tuple(evidence),
        score=_REFUSAL,
        importance=3 if is_firm(words) else 2,
        origin="user",
        rejected=tuple(rejected_in([words]))[:2],
        everywhere=bool(EVERYWHERE.search(words)),
    )


def _object_of(turn: Turn, event: Event) -> str:
    calls = [call for call in turn.events if call.call and call.call == event.call]
    told = next((call.command or call.path for call in calls if call.command or call.path), "")
    return f" (`{clip(one_line(told[:300]), 80)}`)" if told else ""


def _wishes(turn: Turn, fresh: Container[str]) -> Iterator[Draft]:
    for event in turn.events:
        for wish in wishes(event) if event.id in fresh else ():
            yield Draft(
                rule="wish",
                kind="preference",
                title=title_of(without_opening(wish.text)),
                body=in_own_words(wish.text, _QUOTED),
                evidence=(event.id,),
                score=_WISH,
                importance=3 if is_firm(wish.text) else 2,
                origin="user",
                rejected=tuple(rejected_in([wish.text]))[:2],
                everywhere=bool(EVERYWHERE.search(wish.text)),
            )


def of_command(found: Established) -> Draft:
    return Draft(
        rule="command",
        kind="fact",
        title=title_of(f"`{clip(found.right, 70)}` works here"),
        body=f"`{found.right}` works here; `{found.wrong}` fails with “{found.complaint}”.",
        evidence=(found.works.id, found.failed.id),
        score=_COMMAND,
        importance=1,
        origin="tool",
    )


def _quotation(words: str) -> str:
    return f"The person: “{clip(one_line(words), _QUOTED)}”"


def joined(texts: Iterable[str]) -> str:
    """One paragraph of what was said in several places; items of a list, which end on nothing, are divided by semicolons."""
    said = [text.rstrip(" ;,") for text in texts]
    closed = [text if text.endswith((*".!?…”:", '."', ".)")) else f"{text};" for text in said[:-1]]
    return " ".join([*closed, *(text if text.endswith(tuple(".!?…”")) else f"{text}." for text in said[-1:])])
