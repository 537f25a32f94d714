"""Sessions that do something: reported step by step, as events, or as the transcript of an agent."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from kite_memory.extensions.contract.extractor_contract import SESSION, START
from kite_memory.model.event import Cursor, Event, EventType, ReadResult, RedactedResult, Role, Session, Status, Where
from tests.sources.transcript import Transcript


class Work:
    """Every step is a second after the one before it, unless time is let pass."""

    def __init__(self, session: Session = SESSION, *, begins: timedelta = timedelta()) -> None:
        self.session = session if not begins else replace(session, started=session.started + begins)
        self.events: list[Event] = []
        self._after = begins
        self._calls = 0

    def later(self, time: timedelta) -> "Work":
        self._after += time
        return self

    def asked(self, text: str) -> "Work":
        return self._add(EventType.USER_MESSAGE, "user", text)

    def said(self, text: str) -> "Work":
        return self._add(EventType.ASSISTANT_MESSAGE, "assistant", text)

    def decided(self, text: str) -> "Work":
        return self._add(EventType.DECISION, "user", text)

    def interrupted(self) -> "Work":
        return self._add(EventType.RESUME_POINT, "system", "interrupted by the person", status="interrupted")

    def recapped(self, text: str) -> "Work":
        return self._add(EventType.RESUME_POINT, "assistant", text)

    def called(self, tool: str, text: str, path: str = "") -> "Work":
        """Without a result."""
        return self._add(EventType.TOOL_CALL, "assistant", text, tool=tool, path=path, call=self._call())

    def answered(self, said: str, status: Status = "ok") -> "Work":
        """Add the result of the last call."""
        return self._add(EventType.TOOL_RESULT, "tool", said, tool=self.events[-1].tool, status=status, call=self.events[-1].call)

    def read(self, path: str) -> "Work":
        return self.called("Read", path, path)._add(EventType.FILE_ACTION, "tool", "read", tool="Read", path=path, call=self._last)

    def ran(self, command: str, output: str = "done", status: Status = "ok", *, tests: Status = "") -> "Work":
        call = self._call()
        self._add(EventType.TOOL_CALL, "assistant", "", tool="Bash", call=call)
        self._add(EventType.COMMAND, "assistant", command, tool="Bash", command=command, call=call)
        self._add(EventType.TOOL_RESULT, "tool", output, tool="Bash", status=status, call=call)
        if tests:
            self._add(EventType.TEST_RESULT, "tool", output, command=command, status=tests, call=call)
        elif status == "failed":
            self._add(EventType.ERROR, "tool", output, command=command, status=status, call=call)
        return self

    def edited(self, path: str, text: str = "edited, 1 lines added, 1 removed") -> "Work":
        call = self._call()
        self._add(EventType.TOOL_CALL, "assistant", path, tool="Edit", path=path, call=call)
        self._add(EventType.TOOL_RESULT, "tool", "done", tool="Edit", path=path, status="ok", call=call)
        return self._add(EventType.FILE_ACTION, "tool", text, tool="Edit", path=path, status="ok", call=call)

    def refused(self, path: str, said: str, status: Status) -> "Work":
        """Add a change of a file that was not made."""
        call = self._call()
        self._add(EventType.TOOL_CALL, "assistant", path, tool="Edit", path=path, call=call)
        return self._add(EventType.TOOL_RESULT, "tool", said, tool="Edit", path=path, status=status, call=call)

    def committed(self, hash: str, subject: str) -> "Work":
        return self.ran(f'git commit -am "{subject}"', f"[main {hash}] {subject}\n 1 file changed, 1 insertion(+)")

    def look(self) -> RedactedResult:
        path = f"/transcripts/{self.session.id}.jsonl"
        cursor = Cursor(position=len(self.events), size=len(self.events), mtime_ns=1)
        events = tuple(self.events)
        return RedactedResult(ReadResult(path=path, session=self.session, events=events, problems=(), cursor=cursor))

    @property
    def _last(self) -> str:
        return f"call-{self._calls}"

    def _call(self) -> str:
        self._calls += 1
        return f"call-{self._calls}"

    def _add(
        self,
        type: EventType,
        role: Role,
        text: str,
        *,
        tool: str = "",
        command: str = "",
        path: str = "",
        status: Status = "",
        call: str = "",
    ) -> "Work":
        number = len(self.events) + 1
        self._after += timedelta(seconds=1)
        self.events.append(
            Event(
                id=f"{self.session.id[:4]}{number:04x}-4000-8000-000000000000",
                session=self.session.id,
                provider=self.session.provider,
                ordinal=number,
                at=START + self._after,
                role=role,
                type=type,
                text=text,
                where=Where(file=f"/transcripts/{self.session.id}.jsonl", start=number, end=number),
                tool=tool,
                command=command,
                path=path,
                status=status,
                call=call,
            )
        )
        return self


def session(number: int, **changes: str) -> Session:
    named = replace(SESSION, id=f"{number:04x}55e5-0000-4000-8000-{number:012x}")
    return replace(
        named,
        provider=changes.get("provider", named.provider),
        project=changes.get("project", named.project),
        branch=changes.get("branch", named.branch),
        cwd=changes.get("cwd", named.cwd),
        parent=changes.get("parent", named.parent),
        title=changes.get("title", named.title),
    )


FIRST, SECOND = "0a0a0a0a-0000-4000-8000-000000000001", "0b0b0b0b-0000-4000-8000-000000000002"


def leave_work(root: Path, project: Path) -> None:
    """Two sessions of Claude Code in ``project``: the second goes on with the file of the first."""
    folder = root / "projects" / "-orchard"
    folder.mkdir(parents=True, exist_ok=True)
    first = Transcript(FIRST, first=0x0A000001, cwd=str(project))
    first.user("Let the sweeper take back claims that are older than their lease")
    first.call("Edit", "toolu_a1", file_path=str(project / "orchard/sweeper.py"), old_string="a", new_string="b")
    first.result("toolu_a1", "The file has been updated successfully.")
    first.call("Bash", "toolu_a2", command="pytest tests/test_sweeper.py")
    first.result("toolu_a2", "E   AssertionError: the lease is 0\n1 failed, 3 passed in 0.10s", failed=True)
    first.assistant("The lease is read before the settings are. I rejected a lock, because the sweeper runs alone.")
    second = Transcript(SECOND, first=0x0B000001, cwd=str(project))
    second.user("Go on with the sweeper: mend its test")
    second.call("Edit", "toolu_b1", file_path=str(project / "orchard/sweeper.py"), old_string="b", new_string="c")
    second.result("toolu_b1", "The file has been updated successfully.")
    second.call("Bash", "toolu_b2", command="pytest tests/test_sweeper.py")
    second.result("toolu_b2", "4 passed in 0.10s")
    second.call("Edit", "toolu_b3", file_path=str(project / "orchard/settings.py"), old_string="1", new_string="2")
    second.result("toolu_b3", "The file has been updated successfully.")
    second.call("Bash", "toolu_b4", command="make lint")
    second.result("toolu_b4", "orchard/settings.py:3: error: Name 'Lease' is not defined", failed=True)
    second.assistant("The sweeper's test passes. Shall I import the lease into the settings, or move it there?")
    for result, name in ((first, FIRST), (second, SECOND)):
        (folder / f"{name}.jsonl").write_bytes(result.bytes)
