"""Parse what Cline and Roo Code put around text: wrappers of the user's words, headings of results, tool calls written as XML."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from kite_memory.model.event import Status
from kite_memory.sources.common.event_builder import Toolbox
from kite_memory.sources.common.jsonl import mended
from kite_memory.sources.common.tool_text import blocks_of
from kite_memory.sources.common.words import without_blocks, without_enclosed
from kite_memory.text import lazy_regex

TOOLS = Toolbox(
    shells=frozenset({"execute_command", "run_commands", "bash", "run_command"}),
    outputs=frozenset({"read_command_output"}),
    readers=frozenset({"read_file", "read_files"}),
    lookers=frozenset(
        {
            *("read_file", "read_files", "list_files", "search_files", "list_code_definition_names", "codebase_search"),
            *("search_codebase", "fetch_web_content", "web_fetch"),
        }
    ),
    writers={
        "write_to_file": "written",
        "new_file": "created",
        "replace_in_file": "edited",
        "apply_diff": "edited",
        "apply_patch": "edited",
        "edit_file": "edited",
        "edit": "edited",
        "editor": "edited",
        "insert_content": "edited",
        "search_and_replace": "edited",
        "search_replace": "edited",
    },
    paths=("path", "file_path", "filePath"),
    asking={"ask_followup_question": "question", "ask_question": "question"},
)
SPEAKING = {"attempt_completion": "result", "plan_mode_respond": "response", "submit_and_exit": "summary"}
"""Tools by which the agent writes to the user: treated as messages, not as calls."""


_WRAPPER = lazy_regex(r"<(task|user_message|feedback|answer|user_input)(?: mode=\"[^\"\n]{0,40}\")?>")
_SURROUNDINGS = ("mode_notice", "system_reminder", "explicit_instructions", "workspace_diagnostics")
_HEADING = lazy_regex(r"\s*\[([a-z][a-z0-9_]{1,60})(?=[\] :])")
_AFTER_HEADING = "] Result:"
_HEADING_LIMIT = 20_000
_MENTIONED = lazy_regex(
    r"\n\n<(?:file_content|folder_content|url_content|workspace_diagnostics|git_working_state|git_commit|terminal_output"
    r"|command name=)[ >\"]"
)
"""Content of ``@file`` and similar mentions, inserted after the user's words. It may hold any wrapper, so no words follow."""

_EXIT = lazy_regex(r"(?:[Ee]xit code|[Ee]xited with code|exit status)[: ]{1,2}(-?\d{1,10})")
_COMMAND_HEAD = lazy_regex(r"Command (?:was )?(?:executed|failed|completed|exited)[^\n]{0,1000}\n+(?:Output:\n?)?")
_FAILED = ("The tool execution failed", "Error ", "[ERROR]", "Tool call failed", '{"status":"error"')
_DENIED = ("The user denied this", '{"status":"denied","message":"The user denied this')
_BARE_DENIAL = lazy_regex(r'(?:\{"status":"denied","message":")?The user denied this(?: operation)?\.?(?:"\})?')
_NOT_RUN = "was not executed because"

_OPENING = lazy_regex(r"^<([a-z][a-z0-9_]{1,40})>", re.MULTILINE)
_PARAMETERS = 20
_ANSWERS = 100
_LONG = frozenset({"content", "diff", "arguments", "result", "message", "response"})
"""Parameters that may contain their own closing tag; nothing relevant follows them."""
_PARAMETER = lazy_regex(r"<([a-z][a-z0-9_]{1,40})>")
_THINKING = ("thinking", "think")
_TOOLS = frozenset(
    {
        "execute_command",
        "read_command_output",
        "read_file",
        "write_to_file",
        "replace_in_file",
        "apply_diff",
        "apply_patch",
        "edit_file",
        "insert_content",
        "search_and_replace",
        "search_replace",
        "search_files",
        "list_files",
        "list_code_definition_names",
        "codebase_search",
        "browser_action",
        "web_fetch",
        "web_search",
        "use_mcp_tool",
        "access_mcp_resource",
        "load_mcp_documentation",
        "fetch_instructions",
        "ask_followup_question",
        "attempt_completion",
        "plan_mode_respond",
        "act_mode_respond",
        "new_task",
        "new_rule",
        "switch_mode",
        "update_todo_list",
        "focus_chain",
        "condense",
        "summarize_task",
        "report_bug",
        "run_slash_command",
        "use_skill",
        "use_subagents",
        "generate_image",
        "generate_explanation",
    }
)
"""Other tags at the beginning of a line are code in the model's text."""

_INTERRUPTED = "[Response interrupted by "
_BY_THE_PERSON = "[Response interrupted by user"


_BEFORE_WORDS = lazy_regex(
    r"\s*(?:<(?:task|user_message|feedback|answer|user_input)[ >]|New (?:instructions|message)[^\n]{0,200}:\s*<user_message>"
    r"|\[TASK RESUMPTION\]|The user (?:has )?provided |You seem to be having trouble proceeding\. The user "
    r'|\{"status":"guidance","message":"You seem to be having trouble )'
)
_OF_THE_PERSON = lazy_regex(
    r"\s*The user (?:(?:has )?provided feedback|did not submit the bug|denied this operation and|provided the following)"
)

_AS_JSON = lazy_regex(
    r'\{"status":"(denied|approved|guidance)","message":"(?:The user (?:denied|approved) this|You seem to be having trouble )'
)
"""The client's report about the user, as JSON. A tool's result may have a status and feedback, too, which are not the user's."""
_CONSENT = lazy_regex(r"The user approved this operation and provided the following context:\s{0,4}<feedback>")
_STILL_RUNNING = "Command is still running in "
_MEANWHILE = "The user provided the following feedback:"
_DECODER = json.JSONDecoder(strict=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserWords:
    """A user's words. ``answer`` means that they answer a question of the agent."""

    text: str
    answer: bool = False


def without_surroundings(text: str) -> str:
    """Return ``text`` without the client's description of the editor."""
    text = without_enclosed(text, ("environment_details",), unclosed_too=True)
    return without_enclosed(text, _SURROUNDINGS)


def persons_words(text: str) -> Iterator[UserWords]:
    """Yield what a user typed, from inside the client's wrappers. Nothing else in ``text`` is theirs."""
    mentioned = _MENTIONED.search(text)
    attached = mentioned.start() if mentioned else len(text)
    at = 0
    while wrapper := _WRAPPER.search(text, at, attached):
        closing = f"</{wrapper[1]}>"
        begin = wrapper.end()
        end = text.rfind(closing, begin, attached) if wrapper[1] == "task" else text.find(closing, begin, attached)
        if end < 0 and (mentioned is None or text.find(closing, attached) < 0):
            return
        if typed := text[begin : end if end >= 0 else attached].strip():
            yield UserWords(text=typed, answer=wrapper[1] == "answer")
        if end < 0:
            return
        at = end + len(closing)


def without_mentions(text: str) -> str:
    """Return a user's words without the content of the files that they mention, if nothing wraps them."""
    return _MENTIONED.split(text, maxsplit=1)[0]


def starts_with_persons_words(text: str) -> bool:
    """Return whether the client marks a separate ``text`` as containing a user's words."""
    return _BEFORE_WORDS.match(text) is not None


def reported(text: str) -> list[str]:
    """Return the user's words in a result that starts as the client's report about the user.

    A file, a page or a server's answer may start so, too: only words that the client also showed are really the user's.
    """
    if feedback := feedback_of(text):
        return [feedback]
    return [words.text for words in persons_words(text)] if _OF_THE_PERSON.match(text) else []


def feedback_of(text: str) -> str:
    """Return the user's words on a denial, or to help a stuck agent, if the client wrote them as JSON."""
    match = _AS_JSON.match(text)
    return _feedback_in(text)[0] if match and match[1] != "approved" else ""


def _feedback_in(text: str) -> tuple[str, str]:
    """Return the feedback in the object that ``text`` starts with, and the text after it."""
    try:
        content, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        return "", text
    feedback = content.get("feedback")
    return mended(feedback)[0].strip() if isinstance(feedback, str) else "", text[end:].strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Accompanied:
    """A result, and the user's words on approving its call or while it still ran, if the client's report is genuine."""

    text: str
    words: str = ""
    running: bool = False


def accompanied(text: str, *, of_command: bool) -> Accompanied:
    """Separate what the client reports as the user's words from a result. Wrappers inside the result itself are not reports."""
    text = text.strip()
    if (match := _AS_JSON.match(text)) and match[1] == "approved":
        words, rest = _feedback_in(text)
        return Accompanied(text=rest, words=words)
    if (consent := _CONSENT.match(text)) and (end := text.find("</feedback>", consent.end())) >= 0:
        return Accompanied(text=text[end + len("</feedback>") :].strip(), words=text[consent.end() : end].strip())
    if not of_command or not text.startswith(_STILL_RUNNING):
        return Accompanied(text=text)
    for tag in ("feedback", "user_message"):
        begin = text.rfind(f"\n<{tag}>\n") if text.endswith(f"</{tag}>") else -1
        if begin >= 0:
            words = text[begin:].strip().removeprefix(f"<{tag}>").removesuffix(f"</{tag}>").strip()
            return Accompanied(text=text[:begin].removesuffix(_MEANWHILE).strip(), words=words, running=True)
    return Accompanied(text=text, running=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """A result's heading, parsed."""

    tool: str
    rest: str


def heading(text: str) -> Heading | None:
    """Parse ``[read_file for 'a.py'] Result:`` and what follows it; ``None`` for text that starts no result."""
    begin = _HEADING.match(text)
    end = text.find(_AFTER_HEADING, begin.end(), begin.end() + _HEADING_LIMIT) if begin and begin[1] in _TOOLS else -1
    return Heading(tool=begin[1], rest=text[end + len(_AFTER_HEADING) :].lstrip()) if begin and end >= 0 else None


def outcome(text: str, *, failed: bool, of_command: bool, refused: bool = False) -> tuple[str, Status]:
    """Return a result's own text and status. ``refused`` means that the user is known to have commented on the call."""
    text = text.strip()
    if _BARE_DENIAL.fullmatch(text) or (refused and text.startswith(_DENIED)):
        return text.partition("\n")[0], "denied"
    if _NOT_RUN in text[:300]:
        return text, "interrupted"
    if failed or text.startswith(_FAILED):
        inner = text.partition("<error>")[2].rpartition("</error>")[0].strip()
        return inner or text, "failed"
    if of_command:
        head = _COMMAND_HEAD.match(text)
        code = _EXIT.search(text, 0, head.end() if head else min(len(text), 300))
        return text[head.end() :] if head else text, "failed" if code and int(code[1]) else "ok"
    return text, "ok"


def returned_text(content: object) -> tuple[str, bool]:
    """Return a native result as text, and whether all its parts failed.

    A tool called with several requests at once returns a list: ``{"query": …, "result": …, "success": …}`` each, as blocks or as
    JSON.
    """
    if isinstance(content, str) and content.lstrip().startswith('[{"query"'):
        try:
            content = orjson.loads(content)
        except orjson.JSONDecodeError:
            pass
    parts = [part for part in content[:_ANSWERS] if isinstance(part, dict)] if isinstance(content, list) else []
    answers = [part for part in parts if "query" in part and ("result" in part or "error" in part)]
    if not answers:
        return "\n".join(part["text"] for part in blocks_of(content) if isinstance(part.get("text"), str)), False
    texts = [_answer(part) for part in answers]
    return "\n".join(filter(None, texts)), all(part.get("success") is False for part in answers)


def _answer(part: Mapping[str, Any]) -> str:
    result = part.get("result") or part.get("error")
    return "\n".join(block["text"] for block in blocks_of(result) if isinstance(block.get("text"), str))


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """A message of the model with a tool call as XML: the words before it, the tool and its arguments."""

    text: str
    tool: str = ""
    given: Mapping[str, str] | None = None
    interrupted: bool = False


def spoken(text: str, *, calls: bool = True) -> Spoken:
    """Parse a message; only the first call in it is executed. Without ``calls`` none is looked for."""
    interrupted = _BY_THE_PERSON in text[-300:]
    cut = _INTERRUPTED in text[-300:]
    if cut:
        text = text.rpartition(_INTERRUPTED)[0].rstrip()
    closings: dict[str, int] = {}
    for tag in _THINKING:
        text = without_blocks(text, tag)
    for opening in _OPENING.finditer(text) if calls else ():
        name = opening[1]
        if name not in _TOOLS:
            continue
        if name not in closings:
            closings[name] = text.rfind(f"</{name}>")
        end = len(text) if cut and closings[name] < 0 else closings[name]
        if end < opening.end():
            continue
        given = _parameters(text[opening.end() : end])
        return Spoken(text=text[: opening.start()].strip(), tool=name, given=given, interrupted=interrupted)
    return Spoken(text=text.strip(), interrupted=interrupted)


def _parameters(body: str) -> dict[str, str]:
    """Return the parameters between a call's tags. One wrapped in ``args`` and ``file`` counts as the call's own."""
    given: dict[str, str] = {}
    at = 0
    for _ in range(_PARAMETERS):
        opening = _PARAMETER.search(body, at)
        if opening is None:
            break
        name = opening[1]
        if name in ("args", "file"):
            at = opening.end()
            continue
        closing = f"</{name}>"
        end = body.rfind(closing) if name in _LONG else body.find(closing, opening.end())
        if end < opening.end():
            at = opening.end()
            continue
        given.setdefault(name, body[opening.end() : end].strip())
        at = end + len(closing)
    return given
