"""An invented conversation worth remembering, and a model's answer to it."""

import re
from collections.abc import Sequence
from typing import Any

from kite_memory.extensions.contract.events import SESSION, event
from kite_memory.model.event import Event, EventType
from kite_memory.model.record import Chunk

DECIDED = "Let's go with PostgreSQL instead of SQLite for the job queue, because concurrent writers need row-level locking."
EXPLAINED = (
    "PostgreSQL suits the job queue better. The workers claim their jobs with `SELECT ... FOR UPDATE SKIP LOCKED`, so two "
    "of them never"
    " get the same job. SQLite has a single writer: with eight workers each claim waited for the others, and "
    "`busy_timeout` only hid it."
    " The queue's table lives in `orchard/queue.py`, and its migration must run before the workers start, because they "
    "check the schema"
    " version once. Picking the oldest job first keeps the nightly batch from starving the small ones. A claim that is "
    "older than the"
    " lease is taken back by the sweeper, which never looks at rows that another worker has locked."
)


def chunk(events: Sequence[Event] = (), id: str = "chunk-1") -> Chunk:
    return Chunk(id=id, session=SESSION, events=tuple(events))


def about_the_queue() -> Chunk:
    return chunk(
        [
            event(1, DECIDED),
            event(2, EXPLAINED, EventType.ASSISTANT_MESSAGE),
            event(3, "", EventType.COMMAND, command="make check"),
            event(4, "ok, 12 passed", EventType.TEST_RESULT, command="make check", status="ok"),
        ]
    )


def item(**changes: object) -> dict[str, Any]:
    return {
        "evidence": ["00000001"],
        "kind": "decision",
        "title": "PostgreSQL over SQLite for the job queue",
        "body": "The job queue uses PostgreSQL, because concurrent writers need row-level locking.",
        "symptom": "",
        "rejected": [{"alternative": "SQLite", "reason": "its single writer stalled the workers"}],
        "importance": 3,
        "origin": "user",
        "everywhere": False,
        "entities": ["PostgreSQL", "SQLite"],
        "triggers": ["which database holds the jobs?"],
    } | changes


def answer(*items: dict[str, Any]) -> dict[str, Any]:
    topic = {"name": "job queue", "summary": "Moved to PostgreSQL.", "categories": ["data"], "entities": [], "items": list(items)}
    return {"topics": [topic], "cross_topic_insights": []}


def stretches(**items: list[dict[str, Any]]) -> dict[str, Any]:
    """Return an answer by the letters of the stretches, in the required form."""
    return {"stretches": [{"stretch": label, "items": records} for label, records in items.items()]}


def plain_item(**changes: object) -> dict[str, Any]:
    """Return the item in the form of our schema, without what the code knows already."""
    return {name: value for name, value in item(**changes).items() if name not in ("origin", "symptom", "everywhere")}


def answer_to(prompt: str) -> dict[str, Any]:
    """Return what a model would answer: an item about the first event of each stretch, and one that names a missing event."""
    shown = re.findall(r'<transcript stretch="(\w)"(.*?)</transcript>', prompt, re.DOTALL)
    return stretches(**{label: _about(shown_text) for label, shown_text in shown})


def _about(shown_text: str) -> list[dict[str, Any]]:
    shown = re.findall(r"^\[([^\]\s]+)\]", shown_text, re.MULTILINE)
    words = re.findall(r"[A-Za-z]{5,}", shown_text.partition("\n")[2]) or ["nothing"]
    body = f"The stretch settles on {' and '.join(dict.fromkeys(words[:6]))} for good reason."
    return [plain_item(evidence=shown[:1], body=body), plain_item(evidence=["ffffffff"], title="Never happened")]
