"""Questions for a judge, a model that answers them by the words they share, and a judge with fixed verdicts."""

import json
import re
import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime

from kite_memory.distill.extractor import Ending, Inquiry, Reply, Usage
from kite_memory.distill.judge import judge_prompt, parse_verdicts
from kite_memory.model.hit import Hit, Judged, Question, Unjudged, Verdict
from kite_memory.model.note import Note, NoteKind

_AT = datetime(2026, 3, 1, tzinfo=UTC)
_USUAL = Usage(tokens_in=2_000, tokens_out=40, dollars=0.0022)


def hit(id: str, title: str, body: str = "", *, kind: NoteKind = NoteKind.DECISION, project: str = "orchard") -> Hit:
    note = Note(id=id, path=f"notes/{id}.md", kind=kind, title=title, body=body, created=_AT, updated=_AT, project=project)
    return Hit(note=note, score=0.5, why="invented")


NOTES = (
    hit("kg-1", "PostgreSQL over SQLite for the job queue", "Concurrent writers need row-level locking."),
    hit("kg-2", "Grafting tests want frost.toml", "Run them with `FROST=1`, or the fixtures of the greenhouse are missing."),
    hit("kg-3", "Short commit messages", "Wants one line in the imperative.", kind=NoteKind.PREFERENCE),
)


def question(prompt: str = "why do the grafting tests fail?", *, exchange: str = "", hits: Sequence[Hit] = NOTES) -> Question:
    return Question(session="5e55", project="orchard", prompt=prompt, exchange=exchange, candidates=tuple(hits))


def verdict_on(inquiry: str) -> dict[str, object]:
    """As a model would: the notes that share two long words with the prompt, the more the likelier."""
    prompt = set(re.findall(r"[a-z]{5,}", inquiry.partition("<prompt>")[2].partition("</prompt>")[0].lower()))
    notes = inquiry.partition("<notes>")[2].partition("</notes>")[0]
    shared = {
        int(number): len(prompt & set(re.findall(r"[a-z]{5,}", text.lower())))
        for number, text in re.findall(r"^(\d+) (.*)$", notes, re.MULTILINE)
    }
    found = [{"n": number, "p": min(90, 30 * count)} for number, count in shared.items() if count >= 2]
    return {"any": 90 if found else 3, "notes": found}


class ScriptedBackend:
    """Gives out ``endings`` in order, then sensible answers; keeps what it was asked."""

    name = "scripted"
    model = "fake-1"

    def __init__(self, endings: Iterable[Ending | str | Callable[[Inquiry], Ending]] = (), *, price: float = 0.01) -> None:
        self._endings = iter(endings)
        self._price = price
        self._lock = threading.Lock()
        self.asked: list[Inquiry] = []

    def estimate(self, inquiry: Inquiry) -> Usage:
        return Usage(tokens_in=4_000, tokens_out=inquiry.max_tokens, dollars=self._price)

    def ask(self, inquiry: Inquiry) -> Ending:
        with self._lock:
            self.asked.append(inquiry)
            ending = next(self._endings, None)
        match ending:
            case None:
                return Reply(text=json.dumps(verdict_on(inquiry.user)), usage=_USUAL)
            case str(text):
                return Reply(text=text, usage=_USUAL)
            case function if callable(function):
                return function(inquiry)
            case _:
                return ending


class ScriptedJudge:
    """Gives out ``verdicts`` in order, then judges by the words that prompt and note share; keeps the questions it was asked.

    A mapping of words to probabilities is a verdict on the notes whose titles hold them.
    """

    name = "scripted"

    def __init__(self, verdicts: Iterable[Judged | Unjudged | dict[str, float]] = ()) -> None:
        self._verdicts = iter(verdicts)
        self._lock = threading.Lock()
        self.asked: list[Question] = []

    def judge(self, question: Question, *, seconds: float) -> Judged | Unjudged:
        with self._lock:
            self.asked.append(question)
            verdict = next(self._verdicts, None)
        if not question.candidates:
            return Judged(verdicts=())
        if not seconds > 0:
            return Unjudged(reason="there is no time to ask")
        match verdict:
            case None:
                read = parse_verdicts(json.dumps(verdict_on(judge_prompt(question))), len(question.candidates)) or (0.0, {})
                likely = {name_of(question.candidates[number - 1]): probability for number, probability in read[1].items()}
            case dict():
                likely = {
                    name_of(hit): probability
                    for hit in question.candidates
                    for words, probability in verdict.items()
                    if words in hit.note.title
                }
            case _:
                return verdict
        found = [Verdict(note=note, probability=probability) for note, probability in likely.items()]
        return Judged(verdicts=tuple(found[:4]), tokens_in=2_000, tokens_out=40, dollars=0.0022)


def name_of(hit: Hit) -> str:
    return hit.note.id or hit.note.path
