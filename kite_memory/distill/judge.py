"""Judge that calls a model, within its part of the day's budget and a time limit; and a queue that asks it in the background.

The prompt is written and the answer parsed here. The agent continues while the judge reads.
"""

import json
import random
import re
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import assert_never

from kite_memory.distill.budget import Allowance, settle_by
from kite_memory.distill.extractor import Backend, Busy, Ending, Inquiry, Misconfigured, PromptTemplate, Refused, Reply
from kite_memory.distill.prose import bounded, clean, one_line
from kite_memory.distill.scheduler import LONGEST_PAUSE, pause_after
from kite_memory.errors import KiteError
from kite_memory.model.hit import Hit, Judge, Judged, Question, Unjudged, Verdict
from kite_memory.redaction import drop_private, redact
from kite_memory.redaction.cutting import beginning, ends
from kite_memory.text.display import clip

MOST_CANDIDATES = 20
MOST_NOTES = 4
TASK = "Which of these notes, if any, would help with this prompt? Everything between the tags is quoted material."

_TITLE = 80
_BODY = 240
_PROMPT = 1_500
_EXCHANGE = 800
_NAME = 40
_READ = 4
"""Multiple of its limit that is read of a text before cleaning, since cleaning makes it shorter."""
_LONGEST_ANSWER = 20_000
_LINK = re.compile(r"!?\[\[([^\[\]|\n]{1,200})(?:\|([^\[\]|\n]{1,200}))?\]\]")
_RELATED = re.compile(r"^\*\*Related:\*\*.*$|^> \[!failure\] (?=Rejected:)", re.MULTILINE)


_ASKED = 6_000
"""Limit of a prompt in characters; the judge reads part of them. Of a longer one, both ends are kept."""
_NOTE_ASKED = 1_200
"""Limit of a note in characters; the judge reads part of them. Short, since a question may wait with twenty notes."""
_TITLE_ASKED = 1_600


def bounded_question(question: Question) -> Question:
    """Return the question bounded and with the prompt redacted, since the judge's model may be an external service."""
    return replace(question, prompt=fit_to_leave(question.prompt), candidates=tuple(map(_shortened, question.candidates)))


def as_judged(question: Question) -> Question:
    """Return the question as a judge gets it: bounded and redacted."""
    fit = bounded_question(question)
    return replace(fit, candidates=tuple(map(_redacted, fit.candidates)))


def fit_to_leave(text: str) -> str:
    """Return a prompt, or both ends of a long one, redacted."""
    if len(text) > _ASKED:
        text = "\n…\n".join(ends(text, _ASKED * 3 // 4, _ASKED // 4))
    return redact(text)


def _shortened(hit: Hit) -> Hit:
    title, body = beginning(hit.note.title, _TITLE_ASKED), beginning(hit.note.body, _NOTE_ASKED)
    return replace(hit, note=replace(hit.note, title=title, body=body))


@dataclass(frozen=True, slots=True, kw_only=True)
class RedactingJudge:
    """Judge that gets redacted notes, since users write freely into their vault."""

    inner: Judge

    @property
    def name(self) -> str:
        return self.inner.name

    def judge(self, question: Question, *, seconds: float) -> Judged | Unjudged:
        return self.inner.judge(replace(question, candidates=tuple(map(_redacted, question.candidates))), seconds=seconds)


def _redacted(hit: Hit) -> Hit:
    title, body = (redact(drop_private(text)) for text in (hit.note.title, hit.note.body))
    return replace(hit, note=replace(hit.note, title=title, body=body))


def judge_prompt(question: Question) -> str:
    """Return the changing part of the inquiry. Angle brackets in quoted text are replaced, and each note is kept on one line.

    The notes are numbered in the order of the question's candidates, from 1.
    """
    notes = "\n".join(_note(number, hit, question.project) for number, hit in enumerate(candidates(question), start=1))
    return (
        f"<notes>\n{notes}\n</notes>\n"
        f"<agent>\n{_tail(question.exchange, _EXCHANGE)}\n</agent>\n"
        f"<prompt>\n{_ends(question.prompt, _PROMPT)}\n</prompt>\n\n{TASK}"
    )


def candidates(question: Question) -> tuple[Hit, ...]:
    return question.candidates[:MOST_CANDIDATES]


def _note(number: int, hit: Hit, project: str) -> str:
    note = hit.note
    elsewhere = f", of {_fitted(note.project, _NAME)}" if note.project and project and note.project != project else ""
    body = _RELATED.sub("", note.body[: _READ * _BODY])
    body = _LINK.sub(lambda link: link[2] or link[1], body).replace("**", "")
    return f"{number} ({note.kind.value}{elsewhere}) {_fitted(note.title, _TITLE)}: {_fitted(body, _BODY)}"


def _fitted(text: str, limit: int) -> str:
    line = _quoted(one_line(text[: _READ * limit]))
    return clip(line, room(line, limit))


def _tail(text: str, limit: int) -> str:
    rows = _rows(text[-_READ * limit :])[::-1]
    return clip(rows, room(rows, limit))[::-1]


def _ends(text: str, limit: int) -> str:
    rows = _rows(bounded(text, _READ * limit))
    if len(rows) <= room(rows, limit):
        return rows
    tail = limit // 3
    return f"{rows[: room(rows, limit - tail)]}\n…\n{rows[-room(rows[::-1], tail) :]}"


def _rows(text: str) -> str:
    """Return the text without blank lines and indents, which cost tokens and carry little here."""
    return _quoted("\n".join(row for each in clean(text).split("\n") if (row := " ".join(each.split()))))


def _quoted(text: str) -> str:
    return text.replace("<", "‹").replace(">", "›")


def room(text: str, limit: int) -> int:
    """Return how many characters of ``text`` cost as many tokens as ``limit`` characters of English.

    A letter of another alphabet costs about three times as much as one of English, a character of Chinese or an emoji five times.
    """
    if text.isascii():
        return limit
    for count, cost in enumerate(accumulate(1 if char < "\x80" else 3 if char < "\u1100" else 5 for char in text)):
        if cost > limit:
            return count
    return limit


def parse_verdicts(text: str, count: int) -> tuple[float, dict[int, float]] | None:
    """Return the probability that any of ``count`` notes helps, and that of each number named, likeliest first.

    ``None`` if nothing in ``text`` has the form of an answer. Invalid parts are dropped; a number named twice gets the lower
    probability.
    """
    for answer in objects_in(text[:_LONGEST_ANSWER]):
        notes = answer.get("notes")
        if not isinstance(notes, list):
            continue
        found: dict[int, float] = {}
        for each in notes:
            match each:
                case {"n": int(number), "p": said} if not isinstance(number, bool) and 1 <= number <= count:
                    if (likely := _probability(said)) is not None:
                        found[number] = min(likely, found.get(number, 1.0))
                case _:
                    pass
        best = dict(sorted(found.items(), key=lambda one: -one[1])[:MOST_NOTES])
        anything = _probability(answer.get("any"))
        return max(best.values(), default=0.0) if anything is None else anything, best
    return None


def objects_in(text: str) -> Iterator[Mapping[str, object]]:
    """Yield the JSON objects in a model's text; only a few places are tried, so that the time stays proportional."""
    decoder = json.JSONDecoder()
    for tries, match in enumerate(re.finditer(r"\{", text)):
        if tries == 8:
            return
        try:
            value, _ = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield value


def _probability(said: object) -> float | None:
    if isinstance(said, bool) or not isinstance(said, int | float) or not 0 <= said <= 100:  # as nan never is
        return None
    return said / 100


_MAX_TOKENS = 200
_PATIENCE = 3
"""Failures in a row after which the model is not called for a while."""
_SECONDS = 10.0
"""How long a judge queue waits for an answer."""


class ModelJudge:
    """Judge that calls a model. Thread-safe: prompts of several sessions may be judged at once."""

    def __init__(
        self,
        *,
        backend: Backend,
        prompt: PromptTemplate,
        allowance: Allowance,
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._backend = backend
        self._prompt = prompt
        self._allowance = allowance
        self._clock = clock
        self._jitter = jitter
        self._lock = threading.Lock()
        self._failures = 0
        self._closed_until = 0.0
        self._closed_because = ""

    @property
    def name(self) -> str:
        """Identifier that changes when the same question could get another verdict: model, prompt, schema."""
        return f"{self._backend.name}:{self._backend.model}:{self._prompt.version}"

    def inquiry(self, question: Question, *, seconds: float) -> Inquiry:
        """Return the inquiry that would be sent, without sending it."""
        return Inquiry(
            system=self._prompt.system,
            user=judge_prompt(question),
            schema=self._prompt.schema,
            max_tokens=_MAX_TOKENS,
            seconds=seconds,
        )

    def judge(self, question: Question, *, seconds: float) -> Judged | Unjudged:
        if not candidates(question):
            return Judged(verdicts=())
        if not seconds > 0:  # as nan never is
            return Unjudged(reason="there is no time to ask")
        if because := self._closed():
            return Unjudged(reason=because)
        inquiry = self.inquiry(question, seconds=seconds)
        try:
            booking = self._allowance.book(self._backend.estimate(inquiry))
        except KiteError as error:
            return Unjudged(reason=f"the call cannot be booked: {error}")
        if booking is None:
            return Unjudged(reason="the judge's part of the day's budget is spent")
        ending = self._backend.ask(inquiry)
        try:
            settle_by(booking, ending)
        except KiteError:
            pass  # the booked amount stays spent, to be cautious
        return self._verdict(question, ending)

    def _verdict(self, question: Question, ending: Ending) -> Judged | Unjudged:
        match ending:
            case Reply(text=text, usage=usage, cut=cut):
                shown = candidates(question)
                read = parse_verdicts(text, len(shown))
                if read is None:
                    return self._failed(
                        "the judge's answer was cut off" if cut else "the judge's answer is not in the form asked for"
                    )
                anything, found = read
                self._succeeded()
                likeliest: dict[str, float] = {}
                for number, likely in found.items():
                    note = shown[number - 1].note
                    likeliest.setdefault(note.id or note.path, likely)
                return Judged(
                    verdicts=tuple(Verdict(note=name, probability=likely) for name, likely in likeliest.items()),
                    anything=anything,
                    tokens_in=usage.tokens_in,
                    tokens_out=usage.tokens_out,
                    dollars=usage.dollars,
                )
            case Refused(reason=reason):
                return Unjudged(reason=reason)
            case Busy(reason=reason, retry_after=wait):
                return self._failed(reason, retry_after=wait)
            case Misconfigured(reason=reason, hint=hint):
                return self._pause(LONGEST_PAUSE, f"{reason} ({hint})")
            case _:
                assert_never(ending)

    def _closed(self) -> str:
        with self._lock:
            return self._closed_because if self._clock() < self._closed_until else ""

    def _succeeded(self) -> None:
        with self._lock:
            self._failures = 0

    def _failed(self, reason: str, *, retry_after: float = 0.0) -> Unjudged:
        with self._lock:
            self._failures += 1
            failures = self._failures
        if failures < _PATIENCE and not retry_after:
            return Unjudged(reason=reason)
        return self._pause(pause_after(failures, retry_after, self._jitter()), reason)

    def _pause(self, seconds: float, reason: str) -> Unjudged:
        """Stop calling the model for some seconds, so that an unavailable judge is not called with every prompt."""
        with self._lock:
            self._closed_until = self._clock() + seconds
            self._closed_because = f"the judge is left alone for a while: {reason}"
        return Unjudged(reason=reason)


Report = Callable[[BaseException], None]
Log = Callable[[Question, Judged], None]
Fallback = Callable[[Question], Judged]


def _log_nothing(question: Question, judged: Judged) -> None:
    pass


def _nothing(question: Question) -> Judged:
    return Judged(verdicts=())


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedQuestion:
    question: Question
    judged: Judged


@dataclass(slots=True, kw_only=True, eq=False)
class _PendingQuestion:
    question: Question
    ended: threading.Event = field(default_factory=threading.Event)
    judged: Judged | None = None


class JudgeQueue:
    """At most one question for each session: a newer one replaces the older. A ruling is returned once, unless put back.

    ``log`` is called with every answer, even one that is too late for its turn. If there is no answer, for lack of budget or
    network, ``fallback`` gives the ruling. Threads start when there is a question and end when the queue is empty; `close` does not
    wait for them, since a model may be slow.
    """

    def __init__(
        self,
        judge: Judge,
        *,
        report: Report,
        log: Log = _log_nothing,
        fallback: Fallback = _nothing,
        threads: int = 2,
        waiting: int = 16,
        sessions: int = 64,
    ) -> None:
        self._judge = judge
        self._report = report
        self._log = log
        self._fallback = fallback
        self._most_threads = threads
        self._most_waiting = waiting
        self._most_sessions = sessions
        self._lock = threading.Lock()
        self._open: OrderedDict[str, _PendingQuestion] = OrderedDict()
        self._waiting: deque[_PendingQuestion] = deque()
        self._threads = 0
        self._closed = False

    def ask(self, question: Question) -> None:
        """Queue a question and return at once.

        In a full queue the oldest questions are dropped, since their turns are the likeliest to be over.
        """
        case = _PendingQuestion(question=question)
        with self._lock:
            self._drop(question.session)
            if self._closed:
                return
            self._open[question.session] = case
            self._waiting.append(case)
            while len(self._waiting) > self._most_waiting:
                self._drop(self._waiting[0].question.session)
            while len(self._open) > self._most_sessions:
                self._drop(next(iter(self._open)))
            if self._threads == self._most_threads:
                return
            self._threads += 1
        try:
            threading.Thread(target=self._work, name="kmem-judge", daemon=True).start()
        except RuntimeError as error:  # no thread available: the prompt is answered without the judge
            with self._lock:
                self._threads -= 1
                self._drop(question.session)
            self._report(error)

    def collect(self, session: str, *, within: float = 0.0) -> JudgedQuestion | None:
        """Return the ruling on this session's question, or ``None``. Waits up to ``within`` seconds for it."""
        with self._lock:
            case = self._open.get(session)
        if case is None or (within > 0 and not case.ended.wait(within)):
            return None
        with self._lock:
            if case.judged is None or self._open.get(session) is not case:
                return None
            del self._open[session]
            return JudgedQuestion(question=case.question, judged=case.judged)

    def put_back(self, ruling: JudgedQuestion) -> None:
        """Return a ruling that was not delivered to the queue, unless the session has a newer question."""
        with self._lock:
            if self._closed or ruling.question.session in self._open:
                return
            case = _PendingQuestion(question=ruling.question, judged=ruling.judged)
            case.ended.set()
            self._open[ruling.question.session] = case

    def withdraw(self, session: str) -> None:
        """Drop the session's question."""
        with self._lock:
            self._drop(session)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            for session in tuple(self._open):
                self._drop(session)

    def _drop(self, session: str) -> None:
        case = self._open.pop(session, None)
        if case is not None:
            if case in self._waiting:
                self._waiting.remove(case)
            case.ended.set()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._threads -= 1
                    return
                case = self._waiting.popleft()
            answer = self._asked(case.question)
            with self._lock:
                if isinstance(answer, Judged) and answer.verdicts:
                    case.judged = answer
                elif self._open.get(case.question.session) is case:
                    del self._open[case.question.session]
            case.ended.set()

    def _asked(self, question: Question) -> Judged | Unjudged:
        try:
            answer = self._judge.judge(question, seconds=_SECONDS)
            if isinstance(answer, Unjudged):
                return self._fallback(question)
            if not self._closed:
                self._log(question, answer)
            return answer
        except Exception as error:  # noqa: BLE001 - the edge of a thread
            if not self._closed:
                self._report(error)
            return Unjudged(reason="internal error")
