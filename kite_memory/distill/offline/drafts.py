"""Drafts of notes from the turns of a session.

Their sources are an approved plan, an answered question, what a person rules or the agent concedes, what came of a request, a cause
that was found, and a message that claims something.
"""

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, assert_never

from kite_memory.distill.offline.claims import (
    Claim,
    asked_in,
    assertion,
    best_of,
    claim_of,
    instructs_the_person,
    is_talk,
    named_cause,
    names_a_cause,
    only_lists_changes,
    outcome_of,
    request_in,
    sentences_of_turn,
    settled_cause,
    settled_choice,
    settled_sentences,
    title_among,
    withdrawn,
    worth_to_readers,
)
from kite_memory.distill.offline.people import (
    EVERYWHERE,
    MACHINE,
    TYPED,
    Statement,
    assents,
    concedes,
    is_firm,
    leaves_undecided,
    left_open,
    stated_decisions,
    statements,
    states_requirement,
    wishes,
)
from kite_memory.distill.offline.preferences import (
    RulingThread,
    named_after,
    preferences_of,
    recommended,
    taken,
    threads,
)
from kite_memory.distill.offline.titles import asserting_title, stands_alone, title_of, title_with_reason
from kite_memory.distill.offline.wording import (
    CAUSE,
    CHOICE,
    PASSING,
    OfflineDraft,
    Sentence,
    Turn,
    advised,
    in_own_words,
    joined,
    refutes,
    rejected_in,
    said_by_person,
    sentences_of,
    turns_down,
    without_opening,
)
from kite_memory.distill.parse_answer import BODY_CHARS
from kite_memory.distill.prose import Established, key_lines, one_line, options_in, picked, stems
from kite_memory.model.event import Event, EventType
from kite_memory.model.note import Rejected
from kite_memory.text.display import clip
from kite_memory.text.stems import language_of

_QUOTED, _CONTEXT, _APPROACH, _SYMPTOM = 260, 500, 650, 200


def drafts_of(turns: Sequence[Turn], fresh: Container[str]) -> Iterator[OfflineDraft]:
    """Yield the drafts of a session's last turns, only from events in ``fresh``: earlier ones may have been used already."""
    for each in threads(turns):
        yield from _of_thread(each, fresh)
    for at, turn in enumerate(turns):
        if turn.events[-1].id in fresh:
            yield from _of_turn(turn, turns[at - 1] if at else None, turns[at + 1] if at + 1 < len(turns) else None, fresh)


def _of_turn(turn: Turn, before: Turn | None, after: Turn | None, fresh: Container[str]) -> Iterator[OfflineDraft]:
    yield from _plans(turn, fresh)
    yield from _answers(turn, fresh)
    if turn.asked is not None and turn.asked.id in fresh:
        yield from (*_picks(turn, before), *_agreed(turn, before), *_plainly(turn, before))
    yield from (*_stated(turn, fresh), *preferences_of(turn, before, fresh), *_claims(turn, after, fresh), *_questions(turn, fresh))


def _questions(turn: Turn, fresh: Container[str]) -> Iterator[OfflineDraft]:
    """Yield what the person, or the agent's last message, leaves open."""
    last = next((event for event in reversed(turn.events) if event.type is EventType.ASSISTANT_MESSAGE), None)
    for event in (turn.asked, last):
        if event is None or event.id not in fresh:
            continue
        for what in left_open(event):
            yield OfflineDraft(
                rule="open", kind="question", title=asserting_title(what), body=in_own_words(what, _QUOTED), evidence=(event.id,),
                importance=2, origin="user" if event.role == "user" else "assistant",
            )  # fmt: skip


def _of_thread(thread: RulingThread, fresh: Container[str]) -> Iterator[OfflineDraft]:
    """Yield what a thread settles, a draft for each of its subjects."""
    if (begun := thread.up_to_where_it_settles()) is None:
        return
    for part in thread.parts():
        title = RulingThread(answers=tuple(each for each in begun.answers if each in part.answers) or part.answers[:1])
        yield from _of_part(part, title, fresh)


def _of_part(thread: RulingThread, begun: RulingThread, fresh: Container[str]) -> Iterator[OfflineDraft]:
    """Yield the draft of one subject; if its beginning was used already, only what was added, under the same title."""
    new = tuple(each for each in thread.answers if each.turn.asked is not None and each.turn.asked.id in fresh)
    if not new or all(any(True for _ in _outright(each.turn)) for each in thread.answers if each.text):
        return  # each is a note of its own
    noted_before = begun.answers[-1] not in new
    said = [each.text for each in (new if noted_before else thread.answers) if each.text]
    if not said:
        return
    recap = thread.recap()
    words = " ".join(RulingThread(answers=new if noted_before else thread.answers).said())
    body = f"{words} What the agent made of it: {joined(each.text for each in recap)}" if recap else words
    events = [each.turn.asked.id for each in (new if noted_before else thread.answers) if each.text and each.turn.asked]
    standing = any(True for each in begun.answers for _ in _outright(each.turn, preferences=True))
    yield OfflineDraft(
        rule="thread",
        kind="preference" if standing else "decision",
        title=asserting_title(named_after(begun)),
        body=clip(body, BODY_CHARS),
        evidence=tuple(dict.fromkeys((*events[:6], *(each.event.id for each in recap[:1])))),
        importance=3 if any(is_firm(text) for text in said) else 2,
        origin="user",
        everywhere=any(EVERYWHERE.search(text) for text in said),
    )


def _outright(turn: Turn, *, preferences: bool = False) -> Iterator[str]:
    """Yield a person's plain statements in a turn that stand alone."""
    if turn.asked is None:
        return
    yield from (each.text for each in wishes(turn.asked))
    yield from (each.text for each in statements(turn.asked, answered=True) if each.rule == "correction" or not preferences)
    if not preferences:
        yield from (each.text for each in stated_decisions(turn.asked))


def _agreed(turn: Turn, before: Turn | None) -> Iterator[OfflineDraft]:
    """Yield a decision that the person made by assenting to the agent's proposal, or by naming a part of its offer."""
    if turn.asked is None or before is None:
        return
    said = said_by_person(turn.asked)
    agreed_on = recommended(before) if assents(said) else taken(one_line(said), before)
    best = best_of(agreed_on) or max(agreed_on, key=lambda each: assertion(each.text, each.words), default=None)
    if best is None:
        return
    yield OfflineDraft(
        rule="agreed",
        kind="decision",
        title=asserting_title((advised(agreed_on[0].text) or best.text) if assents(said) else without_opening(said)),
        body=f"{'Agreed:' if assents(said) else in_own_words(said, _QUOTED)} {joined(each.text for each in agreed_on)}",
        evidence=(best.event.id, turn.asked.id),
        importance=2,
        origin="user",
        rejected=tuple(rejected_in((each.text for each in agreed_on), of_agent=True))[:3],
    )


def _claims(turn: Turn, after: Turn | None, fresh: Container[str]) -> Iterator[OfflineDraft]:
    """Yield one draft for each claim of the agent's messages, and one for a cause that was found and fixed, however brief."""
    said = sentences_of_turn(turn)
    if language_of(" ".join(each.text for each in said)) not in ("", "en"):
        return  # the cues are English words; other languages have their own
    gone = withdrawn(turn, said)
    standing = [each for at, each in enumerate(said) if at not in gone]
    discarded = tuple(said[at] for at in sorted(gone))
    last = said[-1].event if said else None
    failures = 0
    first = True
    for event in turn.events:
        failures += event.type is EventType.ERROR or event.status == "failed"
        if event.type is not EventType.ASSISTANT_MESSAGE:
            continue
        opening, first = first, False
        mine = settled_sentences([each for each in standing if each.event is event])
        if event.id not in fresh or (event is last and (turns_down(after) or refutes(after, mine))):
            continue
        if instructs_the_person(mine) and not any(each.call for each in turn.events):
            continue
        conceded = _conceded(turn, event) if opening else ""
        outcome = outcome_of(mine, request_in(turn), failures, _requirement(turn)) if event is last else None
        if outcome is not None:
            if not (only_lists_changes(outcome.sentences, outcome.best, asked_in(turn)) or any(left_open(turn.asked))):
                yield _came_of(turn, outcome, mine, conceded, discarded)
        elif found := named_cause(mine):
            yield _settled(turn, found, mine, "insight")
        elif (claim := claim_of(mine, asked_in(turn), failures)) is not None:
            yield _claimed(turn, claim, mine, conceded, discarded)
    settled = settled_cause(turn, said)
    settled = None if settled is not None and refutes(after, settled.sentences) else settled
    if settled is not None and settled.best.event.id in fresh and len(title_of(settled.best.text).split()) >= _TITLE_OF_A_CAUSE:
        yield _settled(turn, settled, said, "insight")
    elif not turns_down(after) and (chosen := settled_choice(said)) and chosen.best.event.id in fresh:
        yield _settled(turn, chosen, said, "decision")


def _claimed(turn: Turn, claim: Claim, said: Sequence[Sentence], conceded: str, discarded: Sequence[Sentence]) -> OfflineDraft:
    """Return the draft of a claim. If the agent begins by conceding, the person's words come first, since the rest follows them."""
    text = joined(each.text for each in (claim.sentences[:2] if conceded else claim.sentences))
    evidence = [claim.best.event.id]
    causes, choices = len(CAUSE.findall(text)), len(CHOICE.findall(text))
    kind: Literal["decision", "insight", "fact"] = "decision" if choices > causes else "insight" if causes else "fact"
    title = title_among(claim.sentences[:3] if conceded else claim.sentences, claim.best, said, asked_in(turn))
    if conceded and turn.asked:
        text, kind = f"{_quotation(conceded)} {text}", "decision"
    if turn.asked and (conceded or len(stems(asked_in(turn)) & stems(text)) >= _ANSWERS):
        evidence.insert(0, turn.asked.id)
    if kind == "insight" and discarded:
        text = f"{text}{_ruled_out(discarded)}"
    return OfflineDraft(
        rule="conceded" if conceded else "claim",
        kind=kind,
        title=title.text,
        body=clip(text, BODY_CHARS),
        evidence=tuple(evidence),
        importance=2,
        origin="assistant",
        worth=worth_to_readers(claim, title, conceded) + (_CONCEDED if conceded else 0),
        rejected=tuple(rejected_in((each.text for each in claim.sentences), of_agent=True))[:3] if kind == "decision" else (),
        symptom=_symptom(turn, f"{title.text} {text}") if kind == "insight" else "",
    )


def _requirement(turn: Turn) -> Sentence | None:
    """Return the sentence in which the person says how a thing should be, or how not."""
    words = one_line(said_by_person(turn.asked)) if turn.asked else ""
    if turn.asked is None or not words or len(words) > TYPED or MACHINE.search(words):
        return None
    return next((each for each in sentences_of(turn.asked, words) if states_requirement(each.text, each.words)), None)


def _came_of(turn: Turn, outcome: Claim, said: Sequence[Sentence], conceded: str, discarded: Sequence[Sentence]) -> OfflineDraft:
    """Return the draft of what came of a request: the person's words, and what the agent's closing message says."""
    words = one_line(said_by_person(turn.asked)) if turn.asked else ""
    quoted = words if len(words) <= TYPED and not MACHINE.search(words) and len(stems(words)) >= _FEWEST_ASKED else ""
    text = joined(each.text for each in outcome.sentences)
    causes, choices = len(CAUSE.findall(text)), len(CHOICE.findall(text))
    found = causes > 0 or any(names_a_cause(each.text) for each in outcome.sentences)
    kind: Literal["decision", "insight", "fact"] = "decision" if conceded or choices > causes else "insight" if found else "fact"
    title = title_among(outcome.sentences, outcome.best, said, asked_in(turn))
    body = f"{_quotation(quoted, _REQUEST)} {text}" if quoted else text
    if kind == "insight" and discarded:
        body = f"{body}{_ruled_out(discarded)}"
    return OfflineDraft(
        rule="outcome",
        kind=kind,
        title=title.text,
        body=clip(body, BODY_CHARS),
        evidence=(*((turn.asked.id,) if turn.asked and quoted else ()), outcome.sentences[0].event.id),
        importance=2,
        origin="assistant",
        worth=worth_to_readers(outcome, title, quoted, required=_requirement(turn) is not None),
        rejected=tuple(rejected_in((each.text for each in outcome.sentences), of_agent=True))[:3] if kind == "decision" else (),
        symptom=_symptom(turn, f"{title.text} {text}") if kind == "insight" else "",
    )


_FEWEST_ASKED, _REQUEST = 2, 400


_CONCEDED, _TITLE_OF_A_CAUSE = 0.5, 4
_ANSWERS = 2
"""Words that a prompt shares with what is said in its turn for that to count as its answer."""


def _settled(turn: Turn, claim: Claim, said: Sequence[Sentence], kind: Literal["insight", "decision"]) -> OfflineDraft:
    text = joined(each.text for each in claim.sentences)
    title = title_among(claim.sentences, claim.best, said, asked_in(turn))
    if claim.discarded:
        text = f"{text}{_ruled_out(claim.discarded)}"
    return OfflineDraft(
        rule="cause",
        kind=kind,
        title=title.text,
        body=text,
        evidence=tuple(dict.fromkeys(each.event.id for each in claim.sentences)),
        importance=2,
        origin="assistant",
        worth=worth_to_readers(claim, title, "", required=True),
        rejected=tuple(rejected_in((each.text for each in claim.sentences), of_agent=True))[:2] if kind == "decision" else (),
        symptom=_symptom(turn, text) if kind == "insight" else "",
    )


def _ruled_out(theories: Sequence[Sentence]) -> str:
    named = [title for theory in theories if len((title := title_of(theory.text)).split()) >= 3]
    return f" Ruled out: {'; '.join(named[:2])}." if named else ""


def _symptom(turn: Turn, statement: str) -> str:
    """Return the turn's last failure with words of the note."""
    about = stems(statement)
    failures = [event for event in turn.events if event.type is EventType.ERROR or event.status == "failed"]
    for event in reversed(failures):
        lines = key_lines(event.text, _SYMPTOM, lines=2)
        if lines and stems(lines) & about:
            return lines
    return ""


def _conceded(turn: Turn, reply: Event) -> str:
    """Return the person's words if the agent's next message concedes them and they are short enough to have been typed."""
    words = said_by_person(turn.asked) if turn.asked else ""
    if not concedes(reply.text, words) or MACHINE.search(words):
        return ""
    return words if len(words) <= 600 and len(stems(words)) >= 3 else ""


def _stated(turn: Turn, fresh: Container[str]) -> Iterator[OfflineDraft]:
    """Yield decisions in the person's own words, followed by the agent's restatement."""
    for at, event in enumerate(turn.events):
        if event.id not in fresh:
            continue
        for stated in stated_decisions(event):
            reply = next((after for after in turn.events[at + 1 :] if after.type is EventType.ASSISTANT_MESSAGE), None)
            echo = _echo(reply, stated.stems)
            rejected = tuple(rejected_in([stated.text]))[:3]
            yield OfflineDraft(
                rule="stated",
                kind="decision",
                title=title_of(without_opening(stated.text)),
                body=f"{in_own_words(stated.text, BODY_CHARS)} {joined(each.text for each in echo[:2])}".rstrip(),
                evidence=(event.id, *(each.event.id for each in echo[:1])),
                importance=3 if rejected and rejected[0].reason else 2,
                origin="user",
                rejected=rejected,
            )


def _echo(reply: Event | None, about: frozenset[str]) -> list[Sentence]:
    """Return the sentences of the agent's next message that restate a person's words."""
    if reply is None:
        return []
    return [
        each for each in sentences_of(reply, reply.text)[:8] if not is_talk(each.text, each.words) and len(each.stems & about) >= 2
    ]


def _plainly(turn: Turn, before: Turn | None) -> Iterator[OfflineDraft]:
    if turn.asked is None:
        return
    reply = next((event for event in turn.events if event.type is EventType.ASSISTANT_MESSAGE), None)
    for statement in statements(turn.asked, answered=before is not None):
        yield _of_statement(statement, turn.asked, _echo(reply, stems(statement.text)))


def _of_statement(statement: Statement, event: Event, echo: Sequence[Sentence]) -> OfflineDraft:
    words = in_own_words(statement.text, BODY_CHARS)
    rejected = tuple(rejected_in([statement.text]))[:3]
    title = title_of(statement.text)
    match statement.rule:
        case "reminder":
            return OfflineDraft(
                rule="reminder", kind="fact", title=title, body=words, evidence=(event.id,),
                importance=3 if statement.firm else 2, origin="user",
            )  # fmt: skip
        case "correction":
            return OfflineDraft(
                rule="correction", kind="preference", title=title, body=words, evidence=(event.id,),
                importance=2, origin="user", rejected=rejected, everywhere=bool(EVERYWHERE.search(words)),
            )  # fmt: skip
        case "choice":
            return OfflineDraft(
                rule="choice", kind="decision", title=title, body=f"{words} {joined(each.text for each in echo[:2])}".rstrip(),
                evidence=(event.id, *(each.event.id for each in echo[:1])),
                importance=2 if statement.firm or rejected else 1, origin="user", rejected=rejected,
            )  # fmt: skip
        case _:
            assert_never(statement.rule)


def _picks(turn: Turn, before: Turn | None) -> Iterator[OfflineDraft]:
    """Yield a decision if the person names one of the options at the end of the agent's last message."""
    if turn.asked is None or before is None:
        return
    offer = next((event for event in reversed(before.events) if event.type is EventType.ASSISTANT_MESSAGE), None)
    if offer is None:
        return
    options = options_in(offer.text)
    choice = picked(said_by_person(turn.asked), options)
    if (
        choice is None
        or len(stems(choice.text)) < 5
        or not _NAMES_IT.match(choice.text)
        or PASSING.search(choice.text)
        or _OF_THE_HISTORY.match(choice.text)
        or not _ALTERNATIVES.search(offer.text)
    ):
        return
    yield OfflineDraft(
        rule="pick",
        kind="decision",
        title=title_of(choice.name),
        body=f"Chosen: {joined([choice.text])}",
        evidence=(offer.id, turn.asked.id),
        importance=2,
        origin="user",
        rejected=tuple(Rejected(alternative=option.text, reason="") for option in options if option is not choice)[:4],
    )


_OF_THE_HISTORY = re.compile(
    r"\W*(?:commit|push|rebase|merge|reset|amend|squash|cherry-pick|stash|open"
    r"|(?:add|create|make|push) (?:a |an |the )?(?:new |draft )?(?:commit|pull request|pr|branch|issue|ticket))\b",
    re.IGNORECASE,
)
"""Options about the next commit or pull request, which no later session asks about."""
_NAMES_IT = re.compile(r"(?!(?:For|In case|Only if|As) )[A-Z`\d*]")
_ALTERNATIVES = re.compile(
    r"\b(?:which|options?|approach(?:es)?|prefer|alternatives?|recommend\w*|either|designs?)\b", re.IGNORECASE
)
"""Words that mark a list of exclusive items; other lists are of tasks."""


_ANSWER = re.compile(
    r"^(?P<question>.{3,600}?)\nAnswer: (?P<answer>.{1,600}?)(?:\nIn their words: (?P<words>.{1,600}?))?"
    r"(?:\n(?:Not chosen: (?P<lost>.{1,800})|Offered: .{1,800}))?\s*$",
    re.DOTALL,
)
_CHOICE = re.compile(
    r"\W*(?:which|how (?:should|do|would)|should|shall|what (?:should|approach|would|do you want|kind|level|format|name)"
    r"|do (?:you|we) want|would you|can we|is it ok|(?:for|when|where|with|in) [^?]{3,300}\b(?:should|do you|which|would|shall"
    r"|or)\b|[^?]{3,300}\bor\b)",
    re.IGNORECASE,
)
"""Questions that ask for a choice rather than for information."""
_ERRAND = re.compile(
    r"\b(?:should|shall|want me|like me)\b.{1,40}?\b(?:commit|push|proceed|start|begin|deliver|continue|merge|deploy|run|open a)\b",
    re.IGNORECASE,
)
"""Questions about the next step, which are not lasting choices."""
_RECOMMENDED = re.compile(r"\s*\(recommended\)", re.IGNORECASE)


def _plans(turn: Turn, fresh: Container[str]) -> Iterator[OfflineDraft]:
    """Yield an approved plan: its claim, the core of its context, and its approach."""
    for event in turn.events:
        if event.type is EventType.DECISION and event.id in fresh and "\nAnswer: " not in event.text and (plan := _plan(event)):
            yield plan


def _plan(event: Event) -> OfflineDraft | None:
    said = [each for each in sentences_of(event, event.text) if not each.text.endswith(":")]
    if sum(each.words for each in said) < 30:
        return None
    why = [each for each in said if _WHY.search(each.heading)] or said[:3]
    how = [each for each in said if each not in why and _HOW.search(each.heading)] or [each for each in said if each not in why]
    heart = [*_within(why, _CONTEXT), *_within(how, _APPROACH)]
    named = _NAME_OF_PLAN.match(event.text.lstrip())
    name = one_line(named["name"]) if named else ""
    if len(name.split()) < 3:
        best = best_of(heart)
        title = asserting_title(best.text if best else heart[0].text)
    else:
        title = max((title_with_reason(name, each.text) for each in why[:3]), key=stands_alone)
    return OfflineDraft(
        rule="plan",
        kind="decision",
        title=title,
        body=f"From an approved plan: {joined(each.text for each in heart)}",
        evidence=(event.id,),
        importance=2,
        origin="user",
        rejected=tuple(rejected_in((each.text for each in said), of_agent=True))[:3],
    )


_NAME_OF_PLAN = re.compile(
    r"#{1,3}\s+(?:(?:(?:implementation|feature|fix|the|refactor\w*) )?plan\s*[:—–-]+\s*)?(?P<name>[^\n]{3,160})", re.IGNORECASE
)
_WHY = re.compile(
    r"\b(?:context|why|problems?|background|motivation|goals?|overview|summary|root cause|analysis|issue)\b", re.IGNORECASE
)
_HOW = re.compile(
    r"\b(?:approach|solution|design|decisions?|strategy|fix|changes?|implementation|trade-?offs?|key)\b", re.IGNORECASE
)


def _within(said: Sequence[Sentence], limit: int) -> list[Sentence]:
    kept: list[Sentence] = []
    for each in said:
        if kept and sum(len(other.text) + 1 for other in kept) + len(each.text) > limit:
            break
        kept.append(each)
    return kept


def _answers(turn: Turn, fresh: Container[str]) -> Iterator[OfflineDraft]:
    """Yield one decision for the answers to the questions of one call, with the options not chosen."""
    calls: dict[str, list[Event]] = {}
    for event in turn.events:
        if event.type is EventType.DECISION and event.id in fresh:
            calls.setdefault(event.call or event.id.partition(":")[0], []).append(event)
    for events in calls.values():
        answered = [(event, answer) for event in events if (answer := _answered(event))]
        if answered:
            yield _decided([event for event, _ in answered], [answer for _, answer in answered])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answered:
    question: str
    answer: str
    lost: tuple[str, ...]


def _answered(event: Event) -> _Answered | None:
    match = _ANSWER.match(event.text[:2_500])
    if match is None:
        return None
    question = one_line(match["question"])
    answer = _RECOMMENDED.sub("", one_line(match["words"] or match["answer"]))
    if (
        len(stems(f"{question} {answer}")) < 4
        or not _CHOICE.match(question)
        or _ERRAND.search(question)
        or leaves_undecided(answer, typed=match["lost"] is None)
    ):
        return None
    lost = tuple(_RECOMMENDED.sub("", one_line(each)) for each in (match["lost"] or "").split(";") if each.strip())
    return _Answered(question=question, answer=answer, lost=lost)


def _decided(events: Sequence[Event], answered: Sequence[_Answered]) -> OfflineDraft:
    first = answered[0]
    title = (
        title_of(first.answer)
        if len(first.answer.split()) >= 6
        else asserting_title(f"{first.answer}: {_last_question(first.question)}")
    )
    return OfflineDraft(
        rule="answer",
        kind="decision",
        title=title,
        body=" ".join(
            f"Asked “{clip(each.question, _QUOTED)}”, the person chose: {joined([clip(each.answer, _QUOTED)])}" for each in answered
        ),
        evidence=tuple(event.id for event in events),
        importance=2,
        origin="user",
        rejected=tuple(Rejected(alternative=clip(lost, 120), reason="") for each in answered for lost in each.lost)[:6],
    )


def _last_question(question: str) -> str:
    """Return the last question of a text, without its explanation."""
    return re.split(r"(?<=[.)])\s+(?=[A-Z])", question)[-1].rstrip("?")


def of_command(found: Established) -> OfflineDraft:
    return OfflineDraft(
        rule="command",
        kind="fact",
        title=title_of(f"`{clip(found.right, 70)}` works here"),
        body=f"`{found.right}` works here; `{found.wrong}` fails with “{found.complaint}”.",
        evidence=(found.works.id, found.failed.id),
        importance=1,
        origin="tool",
    )


def _quotation(words: str, limit: int = _QUOTED) -> str:
    return f"The person: “{clip(one_line(words), limit)}”"
