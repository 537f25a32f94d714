"""The judge's prompt and the parsing of its answer."""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import accumulate

from kite_memory.distill.prose import bounded, clean, clip, one_line
from kite_memory.model.hit import Hit, Question

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
