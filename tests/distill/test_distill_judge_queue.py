"""The judge is asked aside: in order, bounded, and never waited for longer than somebody chose to."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from kite_memory.distill.judge import JudgeQueue
from kite_memory.model.hit import Judged, Question, Unjudged, Verdict

PATIENT = 20.0

FOUND = Judged(verdicts=(Verdict(note="n1", probability=0.9),))


def question(session: str = "s", prompt: str = "which port?") -> Question:
    return Question(session=session, project="orchard", prompt=prompt, exchange="", candidates=())


@dataclass
class SlowJudge:
    """Answers when it is let go on; ``began`` is released for every question that it starts to read."""

    answer: Callable[[Question], Judged | Unjudged] = lambda question: FOUND
    name: str = "slow"
    began: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    go_on: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    read: list[str] = field(default_factory=list)

    def judge(self, question: Question, *, seconds: float) -> Judged | Unjudged:
        self.read.append(question.prompt)
        self.began.release()
        assert self.go_on.acquire(timeout=PATIENT)
        return self.answer(question)

    def let_all_go(self) -> None:
        for _ in range(100):
            self.go_on.release()


@pytest.fixture
def judge() -> Iterator[SlowJudge]:
    slow = SlowJudge()
    yield slow
    slow.let_all_go()
    for thread in threads():
        thread.join(PATIENT)


@pytest.fixture
def reported() -> list[BaseException]:
    return []


def queue_of(
    judge: SlowJudge, reported: list[BaseException], *, threads: int = 2, waiting: int = 16, sessions: int = 64
) -> JudgeQueue:
    return JudgeQueue(judge, report=reported.append, threads=threads, waiting=waiting, sessions=sessions)


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "kmem-judge"]


def ended(before: list[threading.Thread]) -> None:
    for thread in before:
        thread.join(PATIENT)


def test_a_ruling_is_handed_out_once_and_with_its_question(judge: SlowJudge, reported: list[BaseException]) -> None:
    queue = queue_of(judge, reported)
    queue.ask(question())
    judge.let_all_go()

    ruling = queue.collect("s", within=PATIENT)

    assert ruling is not None
    assert (ruling.question, ruling.judged) == (question(), FOUND)
    assert queue.collect("s") is None


def test_a_ruling_that_was_put_back_is_handed_out_again_unless_there_is_a_newer_question(
    judge: SlowJudge, reported: list[BaseException]
) -> None:
    queue = queue_of(judge, reported)
    queue.ask(question())
    judge.let_all_go()
    ruling = queue.collect("s", within=PATIENT)
    assert ruling is not None

    queue.put_back(ruling)
    again = queue.collect("s")
    queue.ask(question(prompt="newer"))
    queue.put_back(ruling)
    newer = queue.collect("s", within=PATIENT)

    assert again == ruling
    assert newer is not None and newer.question.prompt == "newer"


def test_no_one_waits_who_did_not_choose_to(judge: SlowJudge, reported: list[BaseException]) -> None:
    queue = queue_of(judge, reported)
    queue.ask(question())

    assert queue.collect("s") is None
    assert queue.collect("s", within=0.01) is None


def test_another_session_is_given_nothing_of_it(judge: SlowJudge, reported: list[BaseException]) -> None:
    queue = queue_of(judge, reported)
    queue.ask(question("s"))
    judge.let_all_go()
    working = threads()
    ended(working)

    assert queue.collect("t") is None
    assert queue.collect("s") is not None


def test_a_newer_question_takes_the_place_of_an_older_one_that_is_being_read(
    judge: SlowJudge, reported: list[BaseException]
) -> None:
    queue = queue_of(judge, reported)
    queue.ask(question(prompt="older"))
    assert judge.began.acquire(timeout=PATIENT)

    queue.ask(question(prompt="newer"))
    judge.let_all_go()

    ruling = queue.collect("s", within=PATIENT)
    assert ruling is not None
    assert ruling.question.prompt == "newer"


def test_an_older_question_that_no_one_has_read_yet_is_never_read(judge: SlowJudge, reported: list[BaseException]) -> None:
    queue = queue_of(judge, reported, threads=1)
    queue.ask(question("other"))
    assert judge.began.acquire(timeout=PATIENT)

    queue.ask(question(prompt="older"))
    queue.ask(question(prompt="newer"))
    judge.let_all_go()
    assert queue.collect("s", within=PATIENT) is not None

    assert "older" not in judge.read


def test_what_is_withdrawn_is_not_handed_out(judge: SlowJudge, reported: list[BaseException]) -> None:
    queue = queue_of(judge, reported)
    queue.ask(question())
    working = threads()

    queue.withdraw("s")
    judge.let_all_go()
    ended(working)

    assert queue.collect("s") is None


def test_anyone_who_waits_is_let_go_when_the_question_is_withdrawn(judge: SlowJudge, reported: list[BaseException]) -> None:
    queue = queue_of(judge, reported)
    queue.ask(question())
    got: list[object] = []
    waiting = threading.Thread(target=lambda: got.append(queue.collect("s", within=10 * PATIENT)))
    waiting.start()

    queue.withdraw("s")

    waiting.join(PATIENT)
    assert got == [None]


def test_there_are_two_threads_at_most_and_none_when_there_is_nothing_to_ask(
    judge: SlowJudge, reported: list[BaseException]
) -> None:
    queue = queue_of(judge, reported)
    assert threads() == []
    for number in range(8):
        queue.ask(question(f"s{number}"))
    working = threads()

    judge.let_all_go()
    ended(working)

    assert len(working) == 2
    assert threads() == []
    assert all(queue.collect(f"s{number}") is not None for number in range(8))


def test_under_a_rush_the_oldest_that_wait_are_dropped(judge: SlowJudge, reported: list[BaseException]) -> None:
    queue = queue_of(judge, reported, threads=1, waiting=2)
    queue.ask(question("s0"))
    assert judge.began.acquire(timeout=PATIENT)
    for number in range(1, 5):
        queue.ask(question(f"s{number}"))
    working = threads()

    judge.let_all_go()
    ended(working)

    assert [bool(queue.collect(f"s{number}")) for number in range(5)] == [True, False, False, True, True]


def test_sessions_that_never_ask_for_their_ruling_do_not_pile_up(judge: SlowJudge, reported: list[BaseException]) -> None:
    queue = queue_of(judge, reported, sessions=3)
    judge.let_all_go()
    for number in range(10):
        queue.ask(question(f"s{number}"))
        ended(threads())

    assert [bool(queue.collect(f"s{number}")) for number in range(10)] == [False] * 7 + [True] * 3


@pytest.mark.parametrize("answer", [Unjudged(reason="over budget"), Judged(verdicts=())])
def test_no_verdict_is_no_ruling(judge: SlowJudge, reported: list[BaseException], answer: Judged | Unjudged) -> None:
    judge.answer = lambda question: answer
    queue = queue_of(judge, reported)
    queue.ask(question())
    judge.let_all_go()

    assert queue.collect("s", within=PATIENT) is None
    assert reported == []


def test_every_answer_is_heard_of_whether_or_not_anybody_waits_for_it(judge: SlowJudge, reported: list[BaseException]) -> None:
    nothing = Judged(verdicts=())
    answers: dict[str, Judged | Unjudged] = {"s": FOUND, "t": nothing, "u": Unjudged(reason="too slow")}
    judge.answer = lambda question: answers[question.session]
    heard: dict[str, Judged] = {}
    queue = JudgeQueue(judge, report=reported.append, log=lambda question, judged: heard.update({question.session: judged}))
    for session in answers:
        queue.ask(question(session))
    assert judge.began.acquire(timeout=PATIENT) and judge.began.acquire(timeout=PATIENT)
    working = threads()

    queue.withdraw("s")
    judge.let_all_go()
    ended(working)

    assert heard == {"s": FOUND, "t": nothing}


def test_a_judge_that_breaks_is_reported_and_the_next_question_is_asked(judge: SlowJudge, reported: list[BaseException]) -> None:
    def breaks(question: Question) -> Judged:
        if question.prompt == "breaks":
            raise ValueError("invented")
        return FOUND

    judge.answer = breaks
    queue = queue_of(judge, reported, threads=1)
    queue.ask(question("s", "breaks"))
    queue.ask(question("t", "does not"))
    judge.let_all_go()

    assert queue.collect("t", within=PATIENT) is not None
    assert queue.collect("s") is None
    assert [str(error) for error in reported] == ["invented"]


def test_closing_waits_for_no_one_and_ends_no_matter_who_waits(judge: SlowJudge, reported: list[BaseException]) -> None:
    def breaks(question: Question) -> Judged:
        raise ValueError("the memory is closed")

    judge.answer = breaks
    queue = queue_of(judge, reported)
    queue.ask(question())
    working = threads()

    queue.close()
    queue.ask(question("late"))

    assert queue.collect("s", within=PATIENT) is None
    judge.let_all_go()
    ended(working)
    assert judge.read == ["which port?"]
    assert reported == []
