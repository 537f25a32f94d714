"""Commands that worked after another form of them had failed."""

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

from kite_memory.distill.offline.wording import OfflineDraft, title_of
from kite_memory.distill.prose import key_lines, one_line
from kite_memory.model.event import Event
from kite_memory.text.display import clip

_WITHIN = 14
"""Most events between a failure and the form that works; a later success has another reason."""

_MISCALLED = re.compile(
    r"command not found|unknown (?:flag|option|command|argument|shorthand)|unrecognized (?:option|argument)|no such (?:file"
    r"|option|command|subcommand)|not a (?:git repository|directory|valid)|is not (?:installed|recognized|a valid)"
    r"|cannot find (?:module|package)|no module named|module not found|cannot import name|missing (?:required|script)"
    r"|no tests? (?:found|ran|to run)|permission denied|connection refused|usage:|illegal option|environment variable"
    r"|is not set|not set\b|requires? (?:a|an|the|--)|must be (?:run|set|called)|unsupported|authentication|not logged in"
    r"|could not find",
    re.IGNORECASE,
)
_RUN_UP = re.compile(
    r"^(?:\s*(?:cd\s+[^;&|]{1,200}(?:&&|;)|export\s+\S{1,200}\s*(?:&&|;)|[A-Z_][A-Z0-9_]*=\S{0,200}|sudo|time"
    r"|timeout\s+\d+\w?))+\s*"
)
_OUTPUT_ONLY = re.compile(r"\s*(?:2>&1|\|\s*(?:head|tail|grep|less|cat|wc|tee)\b[^|;&]*|>\s*/dev/null)\s*")
_PLAIN = re.compile(r"(?:ls|cat|echo|grep|rg|find|head|tail|sed|awk|rm|cp|mv|mkdir|cd|pwd|which|test|wc)$")
"""Programs whose failures do not depend on how they are called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Established:
    failed: Event
    works: Event
    wrong: str
    right: str
    complaint: str


def established(events: Sequence[Event]) -> Iterator[Established]:
    """Yield each failure with the first successful command after it that calls the same program differently."""
    results = [
        (at, event)
        for at, event in enumerate(events)
        if event.command and event.status in ("ok", "failed") and event.role == "tool"
    ]
    known: set[str] = set()
    for place, (at, failed) in enumerate(results):
        if failed.status != "failed" or not _MISCALLED.search(failed.text[:4_000]):
            continue
        wrong = _core(failed.command)
        for later, works in results[place + 1 : place + 8]:
            if later - at > _WITHIN:
                break
            right = _core(works.command)
            if works.status == "ok" and _is_new(right, wrong, known) and _is_another_form(wrong, right, failed.text[:4_000]):
                known.add(right)
                yield Established(
                    failed=failed, works=works, wrong=wrong, right=right, complaint=key_lines(failed.text, 160, lines=2)
                )
                break


def _is_new(right: str, wrong: str, known: Container[str]) -> bool:
    return right not in known and _RUN_UP.sub("", right) != _RUN_UP.sub("", wrong)


def _core(command: str) -> str:
    """Return the command on one line, without parts that only trim its output."""
    return one_line(_OUTPUT_ONLY.sub(" ", command[:600]))


def _is_another_form(wrong: str, right: str, complaint: str) -> bool:
    """Return whether both commands have the same program and subcommand, or the second corrects a program that was not found."""
    one, other = _tokens(wrong), _tokens(right)
    if not one or not other or len(wrong) > 240 or len(right) > 160 or _PLAIN.match(one[0]) or _PLAIN.match(other[0]):
        return False
    if f"{one[0]}: command not found" in complaint or f"command not found: {one[0]}" in complaint:
        return one[0] in other or (len(one) > 1 and set(one[1:]) <= set(other))
    return len(one) > 1 and any(other[at : at + 2] == one[:2] for at in range(len(other)))


def _tokens(command: str) -> list[str]:
    """Return program, subcommands and arguments by their last path parts, without options."""
    words = _RUN_UP.sub("", command).split()
    return [word.rstrip("/").rpartition("/")[2] for word in words if not word.startswith("-")]


def of_command(found: Established) -> OfflineDraft:
    return OfflineDraft(
        rule="command",
        kind="fact",
        title=title_of(f"`{clip(found.right, 70)}` works here"),
        body=f"`{found.right}` works here; `{found.wrong}` fails with “{found.complaint}”.",
        evidence=(found.works.id, found.failed.id),
        importance=1,
        origin="tool",
    )
