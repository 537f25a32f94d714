"""Invented events for tests."""

from datetime import UTC, datetime, timedelta

from kite_memory.model.event import Event, EventType, Role, Session, Status, Where

START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
SESSION = Session(
    id="5e55e55e-0000-4000-8000-000000000001",
    provider="claude-code",
    started=START,
    project="orchard",
    cwd="/home/ada/orchard",
    branch="main",
)

_ROLES: dict[EventType, Role] = {
    EventType.USER_MESSAGE: "user",
    EventType.DECISION: "user",
    EventType.TOOL_RESULT: "tool",
    EventType.ERROR: "tool",
    EventType.TEST_RESULT: "tool",
}


def event(
    number: int,
    text: str = "",
    type: EventType = EventType.USER_MESSAGE,
    *,
    session: Session = SESSION,
    command: str = "",
    status: Status = "",
) -> Event:
    return Event(
        id=f"{number:08x}-{session.id[:4]}-4000-8000-000000000000",
        session=session.id,
        provider=session.provider,
        ordinal=number,
        at=START + timedelta(seconds=number),
        role=_ROLES.get(type, "assistant"),
        type=type,
        text=text,
        command=command,
        status=status,
        where=Where(file=f"/transcripts/{session.id}.jsonl", start=number * 100, end=number * 100 + 99),
    )
