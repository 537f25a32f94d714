"""Queue of questions to the judge, asked in the background while the agent continues."""

import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from kite_memory.model.hit import Judge, Judged, Question, Unjudged

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
class _Case:
    question: Question
    ended: threading.Event = field(default_factory=threading.Event)
    judged: Judged | None = None


class JudgeQueue:
    """At most one question for each session: a newer one replaces the older. A ruling is returned once, unless put back.

    ``log`` is called with every answer, even one that is too late for its turn. If there is no answer, for lack of budget or
    network, ``fallback`` gives the ruling. Threads start when there is a question and end when none exists; `close` does not wait
    for them, since a model may be slow.
    """

    def __init__(
        self,
        judge: Judge,
        *,
        report: Report,
        log: Log = _log_nothing,
        fallback: Fallback = _nothing,
        seconds: float = 10.0,
        threads: int = 2,
        waiting: int = 16,
        sessions: int = 64,
    ) -> None:
        self._judge = judge
        self._report = report
        self._log = log
        self._fallback = fallback
        self._seconds = seconds
        self._most_threads = threads
        self._most_waiting = waiting
        self._most_sessions = sessions
        self._lock = threading.Lock()
        self._open: OrderedDict[str, _Case] = OrderedDict()
        self._waiting: deque[_Case] = deque()
        self._threads = 0
        self._closed = False

    def ask(self, question: Question) -> None:
        """Queue a question and return at once.

        In a full queue the oldest questions are dropped, since their turns are the likeliest to be over.
        """
        case = _Case(question=question)
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
            case = _Case(question=ruling.question, judged=ruling.judged)
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
            answer = self._judge.judge(question, seconds=self._seconds)
            if isinstance(answer, Unjudged):
                return self._fallback(question)
            if not self._closed:
                self._log(question, answer)
            return answer
        except Exception as error:  # noqa: BLE001 - the edge of a thread
            if not self._closed:
                self._report(error)
            return Unjudged(reason="a bug of ours")
