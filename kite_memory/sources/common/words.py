"""Separate a user's words from text that agents, hooks and tools put in their place."""

import html
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kite_memory.text import lazy_regex

OWN_EXTRACTOR_MARK = "kite-memory:extract"
"""Included in every prompt with which the extractor starts an agent."""

_MARK_BYTES = OWN_EXTRACTOR_MARK.encode()


def made_by_our_extractor(row: Mapping[str, Any], line: bytes, *, first_cwd: str, own_folders: Iterable[Path]) -> bool:
    """Return whether a line before the first answer shows that our extractor started the session.

    Any one of these is enough: the session runs in one of our folders; its prompt or system prompt has our mark; it is a scripted
    run and the mark is anywhere in the line.
    """
    if is_inside(first_cwd, own_folders):
        return True
    if _MARK_BYTES not in line:
        return False
    return row.get("entrypoint") == "sdk-cli" or _is_instruction(row) or OWN_EXTRACTOR_MARK in _first_words(row)


def is_inside(cwd: str, own_folders: Iterable[Path]) -> bool:
    """Return whether a session runs in one of the folders of our extractor."""
    return bool(cwd) and any(Path(cwd).is_relative_to(folder) for folder in own_folders)


def _is_instruction(row: Mapping[str, Any]) -> bool:
    """Return whether a line holds the system prompt, which users do not write."""
    match row:
        case {"type": "api-request-shape"} | {"type": "attachment", "attachment": {"type": "prompt_snapshot"}}:
            return True
        case _:
            return False


def _first_words(row: Mapping[str, Any]) -> str:
    """Return the text of a prompt, a queued prompt, or a message of the client."""
    match row:
        case {"isSidechain": True}:
            return ""
        case {"type": "user", "message": {"content": str(text)}}:
            return text
        case {"type": "user", "message": {"content": list(blocks)}}:
            return "\n".join(block["text"] for block in blocks if isinstance(block, dict) and isinstance(block.get("text"), str))
        case {"type": "queue-operation" | "system", "content": str(text)}:
            return text
        case _:
            return ""


_LESS = r"(?:[<\u2039\uff1c]|&(?:amp;){0,3}lt;?|%(?:25){0,2}3c|\\{1,8}[ux]0{0,2}3c)"
_MORE = r"(?:[>\u203a\uff1e]|&(?:amp;){0,3}gt;?|%(?:25){0,2}3e|\\{1,8}[ux]0{0,2}3e)"
_SLASH = r"(?:/|%(?:25){0,2}2f|&(?:amp;){0,3}(?:\#47|\#x2f|sol);?)"
_MARKER = lazy_regex(rf"{_LESS}\s{{0,4}}\\?(?P<end>{_SLASH}?)\s{{0,4}}vault[-_ ]context\s{{0,4}}{_MORE}", re.IGNORECASE)
_HEADLINE = lazy_regex(r"\[Relevant vault context", re.IGNORECASE)
_OUR_HEADLINE = lazy_regex(r"\[Relevant vault context: ", re.IGNORECASE)
_HEADLINE_WITHIN = 200
_NOTES_HEAD = lazy_regex(
    r"--- \[[^\]\n]{1,200}\.md\] (?:\u00b7|\\{1,4}u00b7|&middot;) [a-z]{3,12} (?:\u00b7|\\{1,4}u00b7|&middot;) \d{4}-\d\d-\d\d ---"
)
"""First line of each note in an injected block, even if the text was wrapped again."""


def without_echo(text: str) -> str:
    """Return ``text`` without the blocks that our own hook injected, so that they are not stored as new memory.

    The tag is recognized in any case, escaped once or several times for HTML, URLs or JSON, and with quoted or numbered lines. A
    block without an end, or one that another program wrapped again without our tags, extends from our headline or a note's first
    line to the end of the text. The bare tag, as in text about this program, stays.
    """
    if b"vault" in text.encode("utf-8", "surrogatepass").lower():  # which costs a quarter of lowering letters of all scripts
        text = _without_tagged(text)
        if headline := _OUR_HEADLINE.search(text):
            text = text[: _line_start(text, headline.start())]
    head = _NOTES_HEAD.search(text) if ".md] " in text else None
    return text[: _line_start(text, head.start())] if head is not None else text


def _without_tagged(text: str) -> str:
    kept: list[str] = []
    done = searched = 0
    opened: re.Match[str] | None = None
    for tag in _MARKER.finditer(text):
        if not tag["end"]:
            opened = opened or tag
        elif opened:
            kept.append(text[done : opened.start()])
            done, opened = tag.end(), None
        else:
            headline = _HEADLINE.search(text, max(done, searched), tag.start())
            searched = tag.end()
            if headline is not None:
                kept.append(text[done : headline.start()])
                done = tag.end()
    if opened and _HEADLINE.search(text, opened.end(), opened.end() + _HEADLINE_WITHIN):
        kept.append(text[done : opened.start()])
        done = len(text)
    kept.append(text[done:])
    return "".join(kept)


def _line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def without_blocks(text: str, tag: str, *, unclosed_too: bool = False) -> str:
    """Return ``text`` without every ``<tag>…</tag>``.

    An unclosed block stays, or with ``unclosed_too`` is removed with the rest of the text.
    """
    opening, closing = f"<{tag}>", f"</{tag}>"
    begin = text.find(opening)
    if begin < 0:
        return text
    kept: list[str] = []
    done = 0
    while begin >= 0:
        end = text.find(closing, begin + len(opening))
        if end < 0:
            if unclosed_too:
                kept.append(text[done:begin])
                done = len(text)
            break
        kept.append(text[done:begin])
        done = end + len(closing)
        begin = text.find(opening, done)
    kept.append(text[done:])
    return "".join(kept)


def without_enclosed(text: str, tags: Iterable[str], *, unclosed_too: bool = False) -> str:
    """Return the user's words without what the client encloses in ``tags``: files, selections, output, reminders.

    A block extends to the *last* closing tag, since the content may hold the tags itself. An unclosed block stays, or with
    ``unclosed_too`` is removed with the rest of the text.
    """
    opening = re.compile(rf"<({'|'.join(map(re.escape, tags))})(?:\s[^<>]{{0,500}})?>")
    ends: dict[str, int] = {}
    kept: list[str] = []
    done = at = 0
    while found := opening.search(text, at):
        closing = f"</{found[1]}>"
        if closing not in ends:
            ends[closing] = text.rfind(closing)
        closed = ends[closing] >= found.end()
        at = ends[closing] + len(closing) if closed else len(text) if unclosed_too else found.end()
        if closed or unclosed_too:
            kept.append(text[done : found.start()])
            done = at
    return "".join([*kept, text[done:]]) if kept else text


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """The user's own words; a slash command as they typed it."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A command that the user ran directly, not through the agent (``!git pull``)."""

    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """Output of the user's own command."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Approved:
    """A plan that the user approved; its text is the agent's."""

    plan: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Continued:
    """The agent's summary of what was dropped from its context."""

    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupted:
    """The user stopped the agent."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Notified:
    """Result of a background task. ``call`` is the agent's own name of the call that started it."""

    task: str
    call: str
    status: str
    result: str


Utterance = Said | Ran | Printed | Approved | Continued | Interrupted | Notified

_ANYWHERE = (
    "system-reminder",
    "user-prompt-submit-hook",
    "session-start-hook",
    "post-tool-use-hook",
    "new-diagnostics",
    "ide_opened_file",
    "ide_selection",
    "ide_diagnostics",
)
"""Blocks added to a user's message by the client, before or after the user's words; words between two of one kind are lost."""

_LEADING = lazy_regex(
    r"<(local-command-caveat|local-command-stdout|local-command-stderr|task-notification|teammate-message|ci-monitor-event"
    r"|github-webhook-activity|cross-session-message|channel|agent-message|remote-review|tick|fork-boilerplate)(?:\s[^>]{0,500})?>"
)
"""Messages of programs in place of a user's: they start the text and are rarely followed by more."""

_MACHINES_PREFIXES = (
    "Caveat: The messages below were generated by the user while running local commands",
    "Operation stopped by hook: ",
    "UserPromptSubmit operation blocked by hook",
    "Stop hook feedback",
    "SubagentStop hook feedback",
    "PreToolUse hook feedback",
    "PostToolUse hook feedback",
    "UserPromptSubmit hook feedback",
    "Base directory for this skill: ",
    "[Image: source: ",
    "[Image: original ",
    "[SUGGESTION MODE:",
)

_COMMAND_NAME = lazy_regex(r"<command-name>([^<]{0,200})</command-name>")
_NOT_BLANK = lazy_regex(r"\S")
_INTERRUPTED = lazy_regex(r"\[Request interrupted by user[^\]\n]{0,80}\]")
_PLAN = "Implement the following plan:"
_AFTER_PLAN = "\n\nIf you need specific details from before exiting plan mode"
_CONTINUED = "This session is being continued from a previous conversation"
_AFTER_SUMMARY = "\n\nIf you need specific details from before compaction"


def utterances(*parts: str) -> tuple[Utterance, ...]:
    """Parse a message in the user's role into what it really is; return nothing if no user took part in it.

    What the client adds in a part of its own does not affect the user's words in others.
    """
    text = "\n\n".join(without_enclosed(without_blocks(without_echo(part), "hook_context"), _ANYWHERE) for part in parts)
    begin = _after_blank(text, 0)
    while leading := _LEADING.match(text, begin):
        if leading[1] == "task-notification":
            return _notified(text[begin:])
        closing = f"</{leading[1]}>"
        end = text.rfind(closing, leading.end())
        if end < 0:
            return ()
        begin = _after_blank(text, end + len(closing))
    interrupted = _INTERRUPTED.match(text, begin)
    if interrupted:
        rest = text[interrupted.end() :].strip()
        return (Interrupted(text=interrupted[0]), *((Said(text=rest),) if rest else ()))
    text = text[begin:].strip()
    if not text or text.startswith(_MACHINES_PREFIXES):
        return ()
    match text[0]:
        case "<":
            return _tagged(text)
        case "I" if text.startswith(_PLAN):
            plan = text.removeprefix(_PLAN).partition(_AFTER_PLAN)[0].strip()
            return (Approved(plan=plan),) if plan else ()
        case "T" if text.startswith(_CONTINUED):
            return (Continued(summary=summary(text)),)
        case _:
            return (Said(text=text),)


_NOTIFICATION = lazy_regex(r"^<task-notification>", re.MULTILINE)
_NAME = 128


def _notified(text: str) -> tuple[Notified, ...]:
    """Return the results in a record of notifications. The client writes all of it, so no words in it are the user's.

    A closing tag does not end the record, since a result may quote one.
    """
    found: list[Notified] = []
    for part in _NOTIFICATION.split(text)[1:]:
        head, _, rest = part.partition("<result>")
        if result := html.unescape(rest.rpartition("</result>")[0]).strip():
            task, call, status = (_field(head, name) for name in ("task-id", "tool-use-id", "status"))
            found.append(Notified(task=task, call=call, status=status, result=result))
    return tuple(found)


def _field(text: str, name: str) -> str:
    return text.partition(f"<{name}>")[2].partition(f"</{name}>")[0].strip()[:_NAME]


def _after_blank(text: str, begin: int) -> int:
    found = _NOT_BLANK.search(text, begin)
    return found.start() if found else len(text)


def summary(text: str) -> str:
    """Return a compaction's summary without the client's instructions to the model around it."""
    body = without_blocks(without_echo(text), "system-reminder").partition(_AFTER_SUMMARY)[0].strip()
    if body.startswith(_CONTINUED):
        body = body.partition("\n")[2].strip() or body
    return body


def _tagged(text: str) -> tuple[Utterance, ...]:
    if text.startswith(("<command-name>", "<command-message>")):
        name = _COMMAND_NAME.search(text)
        typed = text.partition("<command-args>")[2].partition("</command-args>")[0].strip()
        return (Said(text=f"{name[1].strip()} {typed}" if name else typed),) if typed else ()
    if text.startswith("<bash-input>"):
        command = text.removeprefix("<bash-input>").partition("</bash-input>")[0].strip()
        return (Ran(command=command),) if command else ()
    if text.startswith(("<bash-stdout>", "<bash-stderr>")):
        printed = re.sub(r"</?bash-std(?:out|err)>", "\n", text).strip()
        return (Printed(text=printed),)
    return (Said(text=text),)
