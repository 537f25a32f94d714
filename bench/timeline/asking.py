"""Questions about what was settled in chats, asked without a model: is the chat that answers cited, and else silence kept?

    python -m bench.timeline.asking CHATS.jsonl [QUESTIONS.jsonl] [--half first|second] [--show]

CHATS is as for `bench.timeline.openings`; without QUESTIONS, each of its lines has its own ``questions``. A line of QUESTIONS has a
``question`` about a ``project``, its ``answer`` and ``answer_chat``, or null where none exists, and what would be ``wrong``.
Right is an answer whose first citation is the chat, wrong one that cites others only.
"""

import kite_memory.recall  # noqa: F401  isort: skip  (before numpy: it keeps OpenBLAS to one thread)

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from bench.timeline.openings import filled
from kite_memory.app.question_answering import QuestionAnswering
from kite_memory.model.event import EvidenceReference
from kite_memory.recall.local_embedder import LocalEmbedder
from kite_memory.recall.recall import Recall
from kite_memory.timeline.conversations import ConversationEmbedder
from kite_memory.timeline.store import Timeline
from kite_memory.vault.known import StoredNotes

Json = dict[str, Any]


class NoNotes:
    """A vault without notes, and its recall."""

    def search(self, query: object) -> tuple[()]:
        return ()


def judged(content: Json, question: Json) -> str:
    cited = [reference.session for each in content["citations"] if (reference := EvidenceReference.parse(each["reference"]))]
    if not cited:
        return "silent"
    if question["answer_chat"] is None:
        return "answered"
    if cited[0] == question["answer_chat"]:
        return "right"
    return "right, second" if question["answer_chat"] in cited else "wrong"


def verbatim(content: Json, timeline: Timeline) -> int:
    """How many quoted sentences do not stand word for word in what they cite."""
    missing = 0
    for sentence in content["sentences"]:
        quoted = sentence["text"].partition("“")[2].rpartition("”")[0].rstrip("…") or sentence["text"].rstrip("…")
        texts = [
            " ".join(event.text.split())
            for each in sentence["citations"]
            if (reference := EvidenceReference.parse(each["reference"]))
            for event in timeline.events.evidence(reference)
        ]
        missing += not any(quoted in text for text in texts)
    return missing


def measure(timeline: Timeline, questions: Sequence[Json], meaning: ConversationEmbedder, show: bool) -> None:
    notes = NoNotes()
    asking = QuestionAnswering(
        timeline=timeline,
        notes=cast(StoredNotes, notes),
        recall=cast(Recall, notes),
        answerer=lambda: None,
        clock=lambda: datetime.now(UTC),
        meaning=meaning,
    )
    found: Counter[tuple[bool, str]] = Counter()
    missing = sentences = 0
    for question in questions:
        answer = asking.ask(question=question["question"], project=question["project"])
        found[question["answer_chat"] is not None, judged(answer, question)] += 1
        missing += verbatim(answer, timeline)
        sentences += len(answer["sentences"])
        if show:
            print(f"{judged(answer, question):14} {question['question']}\n    {question['answer']}\n      {answer['answer']!r}")
    for known, name in ((True, "with an answer"), (False, "without one")):
        print(f"  {name}: " + ", ".join(f"{how} {count}" for (of, how), count in found.items() if of is known))
    print(f"  {sentences} sentences given, {missing} of them not word for word in what they cite")


def _lines(path: Path) -> list[Json]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chats", type=Path)
    parser.add_argument("questions", type=Path, nargs="?")
    parser.add_argument("--half", choices=("first", "second"))
    parser.add_argument("--show", action="store_true")
    asked = parser.parse_args()
    cases = _lines(asked.chats)
    questions = _lines(asked.questions) if asked.questions else [each for case in cases for each in case["questions"]]
    local = LocalEmbedder()
    meaning = ConversationEmbedder(
        space=local.space.tag,
        of_texts=lambda texts: local.embed(texts, "document"),
        of_question=lambda text: local.embed([text], "query")[0],
    )
    middle = len(questions) // 2
    with tempfile.TemporaryDirectory() as folder:
        timeline = filled(Path(folder), cases)
        while timeline.vectors.embed(meaning, 200, per_day=10**9):
            pass
        for half, part in (("first", questions[:middle]), ("second", questions[middle:])):
            if asked.half in (None, half):
                print(f"{half} half: {len(part)} questions")
                measure(timeline, part, meaning, asked.show)
        timeline.close()


if __name__ == "__main__":
    main()
