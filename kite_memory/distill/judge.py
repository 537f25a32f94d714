"""Judge that calls a model, within its part of the day's budget and within a time limit."""

import random
import threading
import time
from collections.abc import Callable
from typing import assert_never

from kite_memory.distill.backends.backend import Backend, Ending, Inquiry, Reply
from kite_memory.distill.budget_ledger import Allowance, settle_by
from kite_memory.distill.extractor import Busy, Misconfigured, Refused
from kite_memory.distill.judge_question import candidates, judge_prompt, parse_verdicts
from kite_memory.distill.prompts import PromptTemplate
from kite_memory.distill.scheduler import LONGEST_PAUSE, pause_after
from kite_memory.errors import KiteError
from kite_memory.model.hit import Judged, Question, Unjudged, Verdict

_MAX_TOKENS = 200
_PATIENCE = 3
"""Failures in a row after which the model is not called for a while."""


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
                return self._leave_alone(LONGEST_PAUSE, f"{reason} ({hint})")
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
        return self._leave_alone(pause_after(failures, retry_after, self._jitter()), reason)

    def _leave_alone(self, seconds: float, reason: str) -> Unjudged:
        """Stop calling the model for some seconds, so that an unavailable judge is not called with every prompt."""
        with self._lock:
            self._closed_until = self._clock() + seconds
            self._closed_because = f"the judge is left alone for a while: {reason}"
        return Unjudged(reason=reason)
