"""Parse Cursor's bubbles, each a message or a tool call with its result, into events.

Find the folder of a Cursor conversation that does not name it, from the editor's list of workspaces.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from kite_memory.model.event import EventType, Session, Status
from kite_memory.projects import project_of
from kite_memory.redaction.cutting import beginning
from kite_memory.sources.common.event_builder import (
    ANSWER_LIMIT,
    SUMMARY_LIMIT,
    EventBuilder,
    OpenCall,
    OpenCalls,
    Toolbox,
    title_of,
)
from kite_memory.sources.common.foreign_sqlite import TooLong, object_in, opened, stamp
from kite_memory.sources.common.jsonl import AppendOnlyFile, Unreadable
from kite_memory.sources.common.tool_text import PATH_LIMIT, as_id, compact, digest, moment, safe, scalar, short, shortened
from kite_memory.sources.common.words import without_echo, without_enclosed
from kite_memory.text import lazy_regex

_WORKSPACES = 5_000
_DESCRIPTION = 64 * 1024
_DRIVE = re.compile(r"/[A-Za-z]:")
_WSL = "wsl.localhost"


class Folders:
    """Folders of the workspaces in one editor's ``User`` folder. A workspace's database is read again only if it has changed."""

    def __init__(self, user: Path) -> None:
        self._workspaces = user / "workspaceStorage"
        self._known: dict[Path, tuple[tuple[int, int], frozenset[str]]] = {}
        self._homes: dict[str, Path] = {}

    def of_database(self, path: Path) -> str:
        """Return the folder of a workspace's own database."""
        try:
            with AppendOnlyFile(path.with_name("workspace.json"), within=self._workspaces) as file:
                about = object_in(file.between(0, min(file.size, _DESCRIPTION)))
        except (Unreadable, OSError):
            return ""
        match about:
            case {"folder": str(uri)}:
                return path_of(uri)
            case {"workspace": str(uri)}:
                return path_of(uri).rpartition("/")[0]
            case _:
                return ""

    def of_conversation(self, name: str, about: Mapping[str, Any]) -> str:
        """Return the folder that the conversation names (since 3.12), or that of the workspace that lists it."""
        match about.get("workspaceIdentifier"):
            case {"uri": {"fsPath": str(path)}} | {"uri": {"path": str(path)}} if path:
                return beginning(path, PATH_LIMIT)
            case {"uri": str(uri)} if uri:
                return path_of(uri)
            case {"id": str(workspace)} if re.fullmatch(r"[\w-]{1,64}", workspace):
                return self.of_database(self._workspaces / workspace / "state.vscdb")
            case _:
                pass
        if name not in self._homes:
            self._look_up()
        home = self._homes.get(name)
        return self.of_database(home) if home else ""

    def _look_up(self) -> None:
        for path in sorted(self._workspaces.glob("*/state.vscdb"))[:_WORKSPACES]:
            try:
                now = stamp(path)
                if self._known.get(path, ((-1, 0), frozenset()))[0] == now:
                    continue
                names = _listed(path, self._workspaces)
            except (OSError, Unreadable):
                continue
            self._known[path] = (now, names)
            for name in names:
                self._homes.setdefault(name, path)


def _listed(path: Path, within: Path) -> frozenset[str]:
    """Return the conversations that a workspace's database lists. Raises `Unreadable`."""
    with opened(path, within=within, seconds=2.0) as database:
        if not {"key", "value"} <= database.columns("ItemTable"):
            return frozenset()
        try:
            about = object_in(database.value("SELECT value FROM ItemTable WHERE key = 'composer.composerData'"))
        except TooLong:
            about = {}
    if isinstance(about, str):
        return frozenset()
    names: set[str] = set()
    for composer in _list(about.get("allComposers")):
        match composer:
            case {"composerId": str(name)}:
                names.add(name)
            case _:
                continue
    names.update(name for name in _list(about.get("selectedComposerIds")) if isinstance(name, str))
    return frozenset(names)


def _list(value: object) -> list[Any]:
    return value[:100_000] if isinstance(value, list) else []


def path_of(uri: str) -> str:
    """Return the path in a folder's URI, also for one on another machine; empty for anything else."""
    try:
        parts = urlsplit(uri[: 2 * PATH_LIMIT])
    except ValueError:
        return ""
    path = unquote(parts.path)
    match parts.scheme:
        case "file":
            if parts.netloc == _WSL:
                return "/" + path.lstrip("/").partition("/")[2]
            return path[1:] if _DRIVE.match(path) else path
        case "vscode-remote":
            return path
        case _:
            return ""


PROVIDER = "cursor"

TOOLS = Toolbox(
    shells=frozenset({"run_terminal_cmd", "run_terminal_command", "run_terminal_command_v2", "Shell"}),
    readers=frozenset({"read_file", "read_file_v2", "Read"}),
    lookers=frozenset(
        {
            "read_file",
            "read_file_v2",
            "Read",
            "list_dir",
            "list_dir_v2",
            "LS",
            "grep",
            "grep_search",
            "ripgrep_raw_search",
            "Grep",
            "codebase_search",
            "semantic_search_full",
            "SemanticSearch",
            "file_search",
            "glob_file_search",
            "Glob",
        }
    ),
    writers={
        "edit_file": "edited",
        "edit_file_v2": "edited",
        "search_replace": "edited",
        "MultiEdit": "edited",
        "StrReplace": "edited",
        "edit_notebook": "edited",
        "EditNotebook": "edited",
        "reapply": "edited",
        "apply_patch": "edited",
        "ApplyPatch": "edited",
        "write": "written",
        "Write": "written",
        "delete_file": "deleted",
        "Delete": "deleted",
    },
    paths=(
        "target_file",
        "file_path",
        "targetFile",
        "relativeWorkspacePath",
        "path",
        "filePath",
        "target_notebook",
        "target_directory",
    ),
)
_ASKING = frozenset({"ask_question", "AskQuestion"})
_PLANNING = frozenset({"create_plan", "CreatePlan"})
_TEXT_FIELDS = ("output", "contents", "content", "result", "text", "error", "message")
_FAILED = re.compile(r"\s*(?:Exit code: |Command failed with exit code )(-?[1-9]\d{0,9})\b")
_REFUSED = ("Rejected:", "User rejected", "The user rejected", "User chose to skip", "User declined")

_AROUND = (
    "user_info",
    "project_layout",
    "git_status",
    "rules",
    "agent_skills",
    "mcp_file_system",
    "attached_files",
    "additional_data",
    "open_and_recently_viewed_files",
    "system_reminder",
    "timestamp",
    "cursor_commands",
    "manually_attached_skills",
    "agent_transcripts",
)
"""Blocks that the client puts around a user's words."""
_QUERY, _QUERY_ENDS = "<user_query>", "</user_query>"
_BETWEEN = lazy_regex(r"</user_query>\s{0,16}<user_query>")

_YEAR_2000 = 946_684_800_000
_EVENTS_OF_A_BUBBLE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Bubble:
    """A bubble of a conversation.

    ``row`` is its row in the database; ``place`` counts the bubbles of its conversation. ``known`` was returned already and is only
    read for the bubbles after it; ``growing`` is still being written.
    """

    row: int
    place: int
    content: Mapping[str, Any]
    known: bool = False
    growing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CursorConversation:
    """A conversation's session. ``helper`` means that another conversation's agent writes in the user's role."""

    session: Session
    helper: bool


def conversation(name: str, about: Mapping[str, Any], *, folder: str, parent: str, helper: bool) -> CursorConversation:
    started = moment(about.get("createdAt")) or moment(about.get("lastUpdatedAt")) or moment(about.get("lastSendTime"))
    return CursorConversation(
        session=Session(
            id=name,
            provider=PROVIDER,
            started=started or datetime.fromtimestamp(0, UTC),
            project=project_of(folder),
            cwd=beginning(folder, PATH_LIMIT),
            parent="" if parent == name else parent,
            title=title_of(about.get("name") or about.get("chatTitle")),
        ),
        helper=helper,
    )


def build_events(
    conversation: CursorConversation, bubbles: Iterable[Bubble], *, file: str, names_by_words: bool = False
) -> EventBuilder:
    """Build the events of ``bubbles``, in order.

    ``names_by_words`` is for conversations copied bubble by bubble under new names: a bubble with the same words and the same
    answer is the same event.
    """
    session = conversation.session
    builder = EventBuilder(provider=PROVIDER, session=session.id, file=file, tools=TOOLS, calls=OpenCalls())
    said_last, at = "", session.started
    for bubble in bubbles:
        content = bubble.content
        name = as_id(content.get("bubbleId")) or digest(f"{session.id}\n{bubble.place}".encode("utf-8", "replace"))
        if names_by_words and isinstance(words := content.get("words"), str):
            name = digest(words.encode("utf-8", "replace"))
        at = _said_at(content) or at
        text = content.get("text")
        text = text if isinstance(text, str) else ""
        former = content.get("toolFormerData")
        is_call = isinstance(former, dict) and isinstance(former.get("name"), str)
        if bubble.known:
            said_last = name if text.strip() and not is_call else said_last
            continue
        builder.record(name, at, bubble.row, bubble.row, ordinal=bubble.place * _EVENTS_OF_A_BUBBLE)
        match content.get("type"):
            case 1 | "user":
                said_last = ""
                if conversation.helper:
                    builder.answered(words_of(text))
                else:
                    builder.said(words_of(text))
            case 2 | "ai" if is_call and isinstance(former, dict):
                _tool(builder, former, name, at, bubble, parent=said_last, helper=conversation.helper)
            case 2 | "ai":
                if text.strip() and not bubble.growing:
                    said_last = builder.answered(text)
            case kind:
                builder.problem(bubble.row, f"unknown bubble {safe(scalar(kind))}")
    return builder


def words_of(*texts: str) -> str:
    """Return the user's words in the texts of a message that the client wrapped.

    The client attaches other things, such as a file, which may hold the wrapper itself. So the words are what is wrapped at the
    start of a text without its attachments, else what is wrapped last, else the text without its attachments.
    """
    bare = [_without_attachments(text) for text in texts]
    if leading := [text for text in bare if text.startswith(_QUERY)]:
        return "\n\n".join(query for text in leading for query in _queries(text))
    wrapped = [text for text in bare if _QUERY in text]
    words = wrapped[-1].rpartition(_QUERY)[2].partition(_QUERY_ENDS)[0] if wrapped else "\n\n".join(filter(None, bare))
    return words.strip()


def _without_attachments(text: str) -> str:
    """Return the text without its attachments, but with the tags in the user's own words."""
    alone = without_enclosed(text, _AROUND).lstrip()
    if 0 < alone.count(_QUERY) == text.count(_QUERY):
        return text[text.find(_QUERY) :] if alone.startswith(_QUERY) else text
    return alone


def _queries(text: str) -> Iterator[str]:
    """Yield what is wrapped at the start of the text, in one wrapper after another."""
    for wrapped in _BETWEEN.split(text.removeprefix(_QUERY)):
        query, ended, rest = wrapped.partition(_QUERY_ENDS)
        if query.strip():
            yield query.strip()
        if ended and rest.strip():
            return


def _said_at(content: Mapping[str, Any]) -> datetime | None:
    """Return the time a message was started. Old versions store a duration there; then the time it ended is used."""
    if (at := moment(content.get("createdAt"))) is not None:
        return at
    timing = content.get("timingInfo")
    if not isinstance(timing, dict):
        return None
    times = [timing.get(key) for key in ("clientRpcSendTime", "clientStartTime", "clientSettleTime", "clientEndTime")]
    return next((moment(value) for value in times if isinstance(value, int | float) and value > _YEAR_2000), None)


def _tool(
    builder: EventBuilder, former: Mapping[str, Any], name: str, at: datetime, bubble: Bubble, *, parent: str, helper: bool
) -> None:
    tool = short(former.get("name"))
    called = short(former.get("toolCallId")) or name
    given = _arguments(former)
    call = builder.called(called, tool, given, parent=parent)
    builder.calls.by_name.pop(called, None)
    status = former.get("status")
    if status in ("loading", "pending", "running", "generating") and former.get("result") in (None, ""):
        return
    text, outcome = outcome_of(former.get("result"))
    match former.get("error"):
        case str(error) if error:
            text = text or error
        case {"clientVisibleErrorMessage": str(error)} | {"modelVisibleErrorMessage": str(error)} | {"message": str(error)}:
            text = text or error
        case _:
            pass
    if former.get("userDecision") == "rejected":
        outcome = "denied"
    elif status == "error":
        outcome = "failed"
    elif status in ("cancelled", "canceled", "aborted"):
        outcome = "interrupted"
    builder.record(f"{name}:r", at, bubble.row, bubble.row)
    event = builder.returned(called, call, text, outcome)
    if outcome == "ok" and not helper:
        decided(builder, call, given, text, event, called, accepted=former.get("userDecision") == "accepted")


def decided(
    builder: EventBuilder, call: OpenCall, given: Mapping[str, Any], text: str, event: str, name: str, *, accepted: bool
) -> None:
    """Add the user's answer to a question, or the plan that they accepted."""
    if call.tool in _ASKING and text:
        builder.add(EventType.DECISION, "user", shortened(text, ANSWER_LIMIT), tool=call.tool, parent=event, call=name)
    elif call.tool in _PLANNING and accepted and isinstance(plan := given.get("plan"), str):
        builder.add(EventType.DECISION, "user", shortened(plan, SUMMARY_LIMIT), tool=call.tool, parent=event, call=name)


def _arguments(former: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a call's arguments as the agent gave them, completed by the client's parsed ones.

    In some versions only the latter are complete.
    """
    raw, params = (object_in(former.get(key)) for key in ("rawArgs", "params"))
    given = dict(raw) if isinstance(raw, dict) else {}
    understood = params if isinstance(params, dict) else {}
    if not given:
        return understood
    missing = () if any(isinstance(given.get(key), str) for key in TOOLS.paths) else TOOLS.paths
    for key in (*missing, *(() if "command" in given else ("command",))):
        if isinstance(value := understood.get(key), str):
            given[key] = value
    return given


def outcome_of(result: object) -> tuple[str, Status]:
    """Return the text of a result and its status, as far as the result shows it."""
    found = object_in(result) if isinstance(result, str) and result[:1] == "{" else result
    if isinstance(found, dict):
        text = next((found[key] for key in _TEXT_FIELDS if isinstance(found.get(key), str) and found[key]), "")
        text = text or (compact(found) if found else "")
        code = next((found[key] for key in ("exitCodeV2", "exitCode") if isinstance(found.get(key), int)), 0)
        if found.get("rejected") is True:
            return text, "denied"
        failed = bool(code) or found.get("applyFailed") is True
        return without_echo(text), "failed" if failed else "ok"
    text = without_echo(result) if isinstance(result, str) else "" if result is None else compact(result)
    if text.startswith(_REFUSED):
        return text, "denied"
    return text, "failed" if _FAILED.match(text) else "ok"
