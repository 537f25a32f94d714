"""Claude Code's transcripts: their location, reading them from a cursor, and parsing their lines into events."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, assert_never

from kite_memory.model.event import PLANNING, Cursor, Event, EventType, Passage, ReadResult, Session, Where
from kite_memory.projects import project_of
from kite_memory.redaction.cutting import beginning
from kite_memory.sources.claude_code import records
from kite_memory.sources.claude_code.records import SKIPPED_ATTACHMENTS, SKIPPED_BLOCKS, SKIPPED_SYSTEM, SKIPPED_TYPES
from kite_memory.sources.claude_code.thread import EarlyResult, OpenClaudeCall, Queued, TranscriptState, queued, typed
from kite_memory.sources.common import tool_text as tools
from kite_memory.sources.common.event_builder import EventRecorder, title_of
from kite_memory.sources.common.jsonl import LINE_LIMIT, AppendOnlyFile, FoundObject, objects
from kite_memory.sources.common.line_source import continue_reading, read_growing, result_up_to, starting_point
from kite_memory.sources.common.outcomes import error_lines, verdict_of_tests
from kite_memory.sources.common.tool_text import (
    as_id,
    blocks_of,
    calls_answered,
    content_of,
    digest,
    may_be_a_person,
    moment,
    safe,
    short,
    texts_in,
)
from kite_memory.sources.common.words import (
    Approved,
    Continued,
    Interrupted,
    Notified,
    Printed,
    Ran,
    Said,
    Utterance,
    made_by_our_extractor,
    summary,
    utterances,
    without_echo,
)
from kite_memory.system.private_files import is_text

PROVIDER = "claude-code"

_MESSAGE_LIMIT = 64_000
_SUMMARY_LIMIT = 16_000
_PLAN_LIMIT = 16_000
_TITLE_LIMIT = 200
_THOUGHTS = ("thinking", "redacted_thinking")
_TITLES = {"summary": (1, "summary"), "ai-title": (2, "aiTitle"), "custom-title": (3, "customTitle")}
_OTHERS_FOLDERS = frozenset({"memory", "tool-results"})


class ClaudeCode:
    """Source that reads ``<root>/projects``, where ``root`` is ``${CLAUDE_CONFIG_DIR:-~/.claude}``.

    Each file is a session, and its id is the file's stem: the lines of a sub-agent name their parent's session, and those of a fork
    may name the old one. ``own_state`` is our state folder, whose sessions are never read.
    """

    provider = PROVIDER

    def __init__(self, root: Path, *, own_state: Path, line_limit: int = LINE_LIMIT) -> None:
        self._projects = root / "projects"
        self._own_folders = (own_state, own_state.resolve())
        self._line_limit = line_limit

    def roots(self) -> tuple[Path, ...]:
        return (self._projects,)

    def transcripts(self) -> Iterator[Path]:
        for folder, folders, files in os.walk(self._projects):
            folders[:] = sorted(set(folders) - _OTHERS_FOLDERS)
            paths = [path for name in sorted(files) if self.owns(path := Path(folder, name))]
            yield from self.in_order(paths)

    def in_order(self, paths: Iterable[Path]) -> list[Path]:
        """Sort sub-agents after the sessions they work for: some repeat their lines."""
        return sorted(paths, key=lambda path: (_is_sub_agent(path), str(path)))

    def owns(self, path: Path) -> bool:
        if path.suffix != ".jsonl" or path.name == "journal.jsonl":
            return False
        try:
            folders = path.relative_to(self._projects).parts[:-1]
        except ValueError:
            return False
        return ".." not in folders and _OTHERS_FOLDERS.isdisjoint(folders) and is_text(path)

    def read(self, path: Path, cursor: Cursor | None, *, budget: int) -> ReadResult:
        return read_growing(
            path,
            cursor,
            within=self._projects,
            line_limit=self._line_limit,
            read=lambda file: self._read_next(path, file, cursor, budget),
        )

    def _read_next(self, path: Path, file: AppendOnlyFile, cursor: Cursor | None, budget: int) -> ReadResult:
        def read_again(start: int, end: int) -> Mapping[str, Any]:
            return next((found.row for found in objects(file.between(start, end)) if isinstance(found, FoundObject)), {})

        position, state, changed = starting_point(
            file, cursor, TranscriptState, lambda carry: TranscriptState.from_carry(carry, read_again)
        )
        interpreter = ClaudeCodeInterpreter(file=str(path), session=path.stem, sub_agent=_is_sub_agent(path), state=state)
        if changed:
            interpreter.problem(0, changed)

        def read_line(found: FoundObject, at: int, line: bytes) -> None:
            if not state.answered and not state.own_session:
                cwd = state.cwd or found.row.get("cwd")
                first_cwd = cwd if isinstance(cwd, str) else ""
                state.own_session = made_by_our_extractor(found.row, line, first_cwd=first_cwd, own_folders=self._own_folders)
            if not state.own_session:
                interpreter.line(found.row, at + found.start, at + found.end, line[found.start : found.end])

        position, more = continue_reading(file, position, interpreter, read_line, budget=budget, wanted=not state.own_session)
        return result_up_to(
            path,
            file,
            interpreter,
            session=self._session(path, state),
            position=position,
            carry=state.to_carry(),
            more=more,
            wanted=not state.own_session,
            passages=interpreter.passages,
        )

    def _session(self, path: Path, state: TranscriptState) -> Session | None:
        if state.started is None or state.own_session:
            return None
        parent, folders = state.parent, path.relative_to(self._projects).parts[1:-1]
        if not parent and "subagents" in folders[1:]:
            parent = folders[folders.index("subagents", 1) - 1]
        return Session(
            id=path.stem,
            provider=PROVIDER,
            started=state.started,
            project=project_of(state.cwd),
            cwd=state.cwd,
            branch=state.branch,
            parent=parent,
            title=state.title,
        )


def _is_sub_agent(path: Path) -> bool:
    return path.name.startswith("agent-")


class ClaudeCodeInterpreter(EventRecorder):
    """Parses lines in file order and collects their events. Changes only the `TranscriptState` it was given."""

    def __init__(self, *, file: str, session: str, sub_agent: bool, state: TranscriptState) -> None:
        super().__init__(provider=PROVIDER, session=session, file=file, ordinal=state.ordinal)
        self.passages: list[Passage] = []
        self._sub_agent = sub_agent
        self._state = state
        self._row: Mapping[str, Any] = {}
        self._at = state.last_at
        self._in_project: dict[str, bool] = {}

    def line(self, row: Mapping[str, Any], start: int, end: int, line: bytes) -> None:
        """Parse one object at the bytes ``[start, end)`` of the file, on ``line``."""
        self._row = row
        self.record("", self._at, start, end)
        kind = row.get("type")
        if not isinstance(kind, str):
            self.problem(start, "no type")
        elif kind in _TITLES:
            self._title(kind)
        elif kind == "queue-operation":
            self._at = self._moment()
            self._queue_operation()
        elif kind in ("user", "assistant", "system", "attachment"):
            self.record(as_id(row.get("uuid")) or digest(line), self._moment(), start, end)
            self._place()
            match kind:
                case "user" if any(name not in self._state.calls for name in calls_answered(row)):
                    self._state.early.append(EarlyResult(row=row, line=self._id, start=start, end=end))
                case "user":
                    self._user()
                case "assistant":
                    self._assistant()
                case "system":
                    self._system()
                case _:
                    self._attachment()
            self._late_results()
        elif kind == "progress":
            self._progress()
        elif kind not in SKIPPED_TYPES:
            self.problem(start, f"unknown type {safe(kind)}")
        self._state.ordinal = self.ordinal

    def _late_results(self) -> None:
        """Add the events of results that preceded their calls, as if they were on this line."""
        for early in self._state.due():
            self._row = early.row
            self.record(early.line, moment(early.row.get("timestamp")) or self._at, early.start, early.end)
            self._user()

    # Session

    def _moment(self) -> datetime:
        state = self._state
        found = moment(self._row.get("timestamp"))
        if found is not None:
            state.last_at = found
            if state.started is None:
                state.started = found
        return state.last_at

    def _place(self) -> None:
        state, row = self._state, self._row
        if not state.cwd and isinstance(cwd := row.get("cwd"), str):
            state.cwd = beginning(cwd, 4096)
        if isinstance(branch := row.get("gitBranch"), str) and branch and self._in_the_project(row.get("cwd")):
            state.branch = beginning(branch, _TITLE_LIMIT)
        if not state.parent:
            forked_from = row if self._sub_agent else row.get("forkedFrom")
            parent = as_id(forked_from.get("sessionId")) if isinstance(forked_from, dict) else ""
            state.parent = "" if parent == self._session else parent

    def _in_the_project(self, cwd: object) -> bool:
        """Return whether ``cwd`` is in the session's project: a line written in another repository has that one's branch."""
        first = self._state.cwd
        if not isinstance(cwd, str) or cwd == first:
            return True
        if (known := self._in_project.get(cwd)) is None:  # asks the disk, for this read once a folder
            known = self._in_project[cwd] = project_of(beginning(cwd, 4096)) == project_of(first)
        return known

    def _title(self, kind: str) -> None:
        rank, key = _TITLES[kind]
        title = self._row.get(key)
        if rank >= self._state.title_rank and isinstance(title, str) and title.strip():
            self._state.title_rank = rank
            self._state.title = title_of(title)

    # Messages of the user

    def _user(self) -> None:
        row = self._row
        content = content_of(row)
        returned = [block for block in content if block.get("type") == "tool_result"]
        texts = self._texts(content, beside=("tool_result",))
        text = "\n\n".join(texts)
        for block in returned:
            self._result(block)
        if not text or ("toolUseResult" in row and not returned):
            self._add_passage(text)
            return
        parent = self._id if returned else self._line_before()
        if not returned and self._notifications(text):
            self._add_passage(text)
            return
        if self._sub_agent or row.get("isSidechain") is True:
            if answer := tools.shortened(text, _MESSAGE_LIMIT).strip():
                self.add(EventType.ASSISTANT_MESSAGE, "assistant", answer, parent=parent)
        elif row.get("isCompactSummary") is True:
            self._utterance(Continued(summary=summary(text)), parent)
        elif may_be_a_person(row):
            known = len(self.events)
            for utterance in utterances(*texts):
                self._utterance(utterance, parent, begins_a_turn=not returned)
            for event in self.events[known:]:
                text = text.replace(event.whole or event.text, "\n")
            self._add_passage(text)
        else:
            self._add_passage(text)

    def _add_passage(self, text: str) -> None:
        """Add text that is attributed to no one as a passage: a skill's body, a reminder, a hook's output."""
        if (text := without_echo(text)) and not text.isspace():
            self.passages.append(Passage(text=text, said_by="tool", at=self._at.timestamp(), start=self._start))

    def _utterance(self, utterance: Utterance, parent: str, *, begins_a_turn: bool = False) -> None:
        match utterance:
            case Said(text=text):
                if self._state.queue.met(text, attached=False) == "new" and begins_a_turn:
                    self._add_queued(self._state.queue.passed())
                self.add(EventType.USER_MESSAGE, "user", tools.shortened(text, _MESSAGE_LIMIT), parent=parent, whole=text)
            case Ran(command=command):
                command = tools.shortened(command, tools.COMMAND_LIMIT)
                event = self.add(EventType.COMMAND, "user", command, command=command, parent=parent)
                self._state.open_call(event, OpenClaudeCall(event=event, tool="Bash", detail=command))
            case Printed(text=text):
                ran = self._state.calls.pop(parent, None) or OpenClaudeCall(event=parent, tool="Bash", detail="")
                self._add_result(records.Result(text=text, status=""), ran, "")
            case Approved(plan=plan):
                self.add(EventType.DECISION, "user", tools.shortened(plan, _PLAN_LIMIT), tool=PLANNING, parent=parent)
            case Continued(summary=summary):
                self.add(EventType.RESUME_POINT, "system", tools.shortened(summary, _SUMMARY_LIMIT), parent=parent)
            case Interrupted(text=text):
                self.add(EventType.RESUME_POINT, "system", text, status="interrupted", parent=parent)
            case Notified():
                self._background_result(utterance)
            case _:
                assert_never(utterance)

    def _notifications(self, text: str) -> bool:
        """Add the results of background tasks and return true, if that is what ``text`` is.

        The client may mark such a line as not from the user.
        """
        if not text.startswith("<task-notification>"):
            return False
        for utterance in utterances(text):
            self._utterance(utterance, "")
        return True

    def _background_result(self, notification: Notified) -> None:
        """Add a background result once, identified by task and text: it is in the queue, in its own line, or in both."""
        name = digest(f"{notification.task}\n{notification.result}".encode())
        if not self._state.new_notification(name):
            return
        at_line = self._id, self._added
        self._id, self._added = name, 0
        call = self._state.calls.get(notification.call) or OpenClaudeCall(event="", tool=tools.AGENT, detail="")
        self._add_result(
            records.Result(text=notification.result, status=records.BACKGROUND_STATUS.get(notification.status, "")),
            call,
            notification.call,
        )
        self._id, self._added = at_line

    def _queue_operation(self) -> None:
        row, queue = self._row, self._state.queue
        content = row.get("content")
        text = content if isinstance(content, str) else ""
        match row.get("operation"):
            case "enqueue":
                self._notifications(text)
                self._add_queued(queue.enqueue(queued(row, self._start, self._end)))
            case "dequeue":
                queue.dequeue(typed(text))
            case "remove":
                queue.remove(typed(text), self._at)
            case "popAll":
                queue.pop_all(text)
            case operation:
                self.problem(self._start, f"unknown queue operation {safe(operation)}")

    # Messages and tool calls of the agent

    def _progress(self) -> None:
        """Remember that a server works on a call, so that its error is not taken for the user's refusal."""
        match self._row:
            case {"data": {"type": "mcp_progress"}, "toolUseID": str(name)} if call := self._state.calls.get(name):
                self._state.calls[name] = replace(call, begun=True)
            case _:
                pass

    def _assistant(self) -> None:
        row, state = self._row, self._state
        message = row.get("message")
        state.answered = True
        self._add_queued(state.queue.answered(self._at))
        if row.get("isApiErrorMessage") is True or (isinstance(message, dict) and message.get("model") == "<synthetic>"):
            return
        parent = self._line_before()
        for block in content_of(row):
            match block:
                case {"type": "text", "text": str(text)}:
                    if answer := tools.shortened(text, _MESSAGE_LIMIT).strip():
                        self.add(EventType.ASSISTANT_MESSAGE, "assistant", answer, parent=parent, whole=text)
                    self._add_passage("\n".join(texts_in(block.get("citations"))))
                case {"type": "tool_use" | "server_tool_use" | "mcp_tool_use", "name": str(tool)}:
                    self._call(short(tool), block, parent)
                case _:
                    self._passed_over(block)

    def _call(self, tool: str, block: Mapping[str, Any], parent: str) -> None:
        given = block.get("input")
        tool_input: Mapping[str, Any] = given if isinstance(given, dict) else {}
        name = short(block.get("id"))
        command, path = tools.command_of(tool, tool_input), tools.path_of(tool_input)
        event = self.add(
            EventType.TOOL_CALL,
            "assistant",
            tools.rendered_call(tool, tool_input),
            tool=tool,
            path=path,
            call=name,
            parent=parent,
            whole="\n".join(texts_in(tool_input)),
        )
        detail = command or path
        if tool in tools.SHELL_OUTPUTS:
            detail = self._state.tasks.get(short(tool_input.get(tools.SHELL_OUTPUTS[tool])), "")
        if name:
            self._state.open_call(name, OpenClaudeCall(event=event, tool=tool, detail=detail))
        if command:
            self.add(EventType.COMMAND, "assistant", command, tool=tool, command=command, call=name, parent=event)

    def _result(self, block: Mapping[str, Any]) -> None:
        row = self._row
        name = short(block.get("tool_use_id"))
        call = self._state.calls.pop(name, None)
        if call is None:
            call = OpenClaudeCall(event=as_id(row.get("sourceToolAssistantUUID")), tool="", detail="")
        structured = row.get("toolUseResult")
        refusable = records.may_be_refused(row, call.tool, begun=call.begun)
        denied = isinstance(row.get("toolDenialKind"), str)
        result = records.result_of(block, structured, denied=denied, refusable=refusable)
        event = self._add_result(result, call, name, whole="\n".join(texts_in(block.get("content"))))
        by_a_person = not self._sub_agent and row.get("isSidechain") is not True
        if result.said and by_a_person:
            for utterance in utterances(result.said):
                self._utterance(utterance, event)
        for decision in result.answered if by_a_person else ():
            self.add(EventType.DECISION, "user", decision, tool=call.tool, parent=event, call=name)
        if result.status != "ok":
            return
        if action := records.file_action(call.tool, call.detail, structured):
            self.add(
                EventType.FILE_ACTION, "tool", action.text, tool=call.tool, path=action.path, status="ok", parent=event, call=name
            )
        if by_a_person:
            for decision in records.decisions(call.tool, structured, result.text):
                self.add(EventType.DECISION, "user", decision, tool=call.tool, parent=event, call=name)

    def _add_result(self, result: records.Result, call: OpenClaudeCall, name: str, *, whole: str = "") -> str:
        of_shell = call.tool in tools.SHELLS or call.tool in tools.SHELL_OUTPUTS
        command, path = (call.detail, "") if of_shell else ("", call.detail)
        if call.tool in tools.SHELL_OUTPUTS:
            result = records.of_a_task(result)
        elif result.task:
            self._state.keep_task(result.task, command)
        text = tools.shortened(result.text, tools.result_limit(call.tool, result.status))
        event = self.add(
            EventType.TOOL_RESULT,
            "tool",
            text,
            tool=call.tool,
            path=path,
            status=result.status,
            parent=call.event,
            call=name,
            whole=whole or result.text,
        )
        if of_shell and not result.running:
            verdict = verdict_of_tests(command, result.text)
            if verdict is not None:
                self.add(
                    EventType.TEST_RESULT,
                    "tool",
                    verdict.summary,
                    tool=call.tool,
                    command=command,
                    status=verdict.status,
                    parent=event,
                    call=name,
                )
        if result.status == "failed" and (lines := error_lines(result.text)):
            self.add(
                EventType.ERROR,
                "tool",
                lines,
                tool=call.tool,
                command=command,
                path=path,
                status="failed",
                parent=event,
                call=name,
            )
        return event

    # Lines of the client

    def _system(self) -> None:
        row = self._row
        subtype, content = row.get("subtype"), row.get("content")
        text = content if isinstance(content, str) else ""
        match subtype:
            case "away_summary":
                if recap := tools.shortened(text.removesuffix("(disable recaps in /config)"), _SUMMARY_LIMIT).strip():
                    self.add(EventType.RESUME_POINT, "assistant", recap, parent=self._line_before())
            case "local_command":
                for utterance in utterances(text):
                    self._utterance(utterance, self._line_before())
            case None:  # before 2.0.5 these lines had only a text for the screen
                pass
            case str() if subtype in SKIPPED_SYSTEM:
                pass
            case _:
                self.problem(self._start, f"unknown system line {safe(subtype)}")

    def _attachment(self) -> None:
        attachment = self._row.get("attachment")
        kind = attachment.get("type") if isinstance(attachment, dict) else None
        if kind == "queued_command" and isinstance(attachment, dict):
            texts = self._texts(blocks_of(attachment.get("prompt")))
            if not self._notifications("\n\n".join(texts)) and _is_handed_over(attachment):
                self._handed_over(texts)
            else:
                self._add_passage("\n".join(texts_in(attachment)))
            return
        self._add_passage("\n".join(texts_in(attachment)))
        if not isinstance(kind, str) or kind not in SKIPPED_ATTACHMENTS:
            self.problem(self._start, f"unknown attachment {safe(kind)}")

    def _handed_over(self, texts: list[str]) -> None:
        """Add a message sent during a turn: from the user to the agent, or from the agent to its sub-agent."""
        parent = self._line_before()
        if self._sub_agent or self._row.get("isSidechain") is True:
            if answer := tools.shortened("\n\n".join(texts), _MESSAGE_LIMIT).strip():
                self.add(EventType.ASSISTANT_MESSAGE, "assistant", answer, parent=parent)
            return
        for utterance in utterances(*texts):
            match utterance:
                case Said(text=said):
                    if self._state.queue.met(said, attached=True) != "reported":
                        self.add(EventType.USER_MESSAGE, "user", tools.shortened(said, _MESSAGE_LIMIT), parent=parent)
                case _:
                    self._utterance(utterance, parent)

    # Events

    def _add_queued(self, entries: Iterable[Queued]) -> None:
        """Add prompts found only in the queue; their ids are hashes of what cannot change about them."""
        for entry in entries:
            self.events.append(
                Event(
                    id=digest(f"{entry.session}\n{entry.at.isoformat()}\n{entry.text}".encode()),
                    session=self._session,
                    provider=PROVIDER,
                    ordinal=self.ordinal,
                    at=entry.at,
                    role="user",
                    type=EventType.USER_MESSAGE,
                    text=tools.shortened(entry.text, _MESSAGE_LIMIT),
                    where=Where(file=self._file, start=entry.start, end=entry.end),
                )
            )
            self.ordinal += 1

    def _line_before(self) -> str:
        return as_id(self._row.get("parentUuid"))

    def _texts(self, blocks: Iterable[Mapping[str, Any]], *, beside: tuple[str, ...] = ()) -> list[str]:
        """Return the text blocks; count blocks that are neither text nor known."""
        parts: list[str] = []
        for block in blocks:
            match block:
                case {"type": "text", "text": str(text)}:
                    if text.strip():
                        parts.append(text)
                case {"type": str(kind)} if kind in beside:
                    continue
                case _:
                    self._passed_over(block)
        return parts

    def _passed_over(self, block: Mapping[str, Any]) -> None:
        kind = block.get("type")
        if kind not in _THOUGHTS:
            self._add_passage("\n".join(texts_in(block)))
        if not isinstance(kind, str) or kind not in SKIPPED_BLOCKS:
            self.problem(self._start, f"unknown block {safe(kind)}")


def _is_handed_over(attachment: Mapping[str, Any]) -> bool:
    return attachment.get("commandMode", "prompt") == "prompt" and may_be_a_person(attachment)
