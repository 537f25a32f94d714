"""Whether what is done is what a note warns of, and whether what was printed is what a note quotes."""

import re
from collections.abc import Iterable, Sequence

from kite_memory.recall.cautions import ACTIVITIES, ACTIVITY, ALONE, TASK, Caution, Symptom
from kite_memory.text.shell import Invocation

_LINTERS = frozenset({"ruff check", "flake8", "pylint", "cargo clippy", "shellcheck"})
_TESTERS = frozenset({"pytest", "jest", "vitest", "tox", "nox", "rspec", "mocha"})
_TEST_TASK = re.compile(r"(?:e2e|tests?)(?:[:_-][\w:-]+)?")
_FORCED = frozenset({"-f", "--force-with-lease"})
_ONLY_LOOKS = re.compile(r"(?:^|_)(?:get|list|search|read|fetch|query|find|view|show|describe)(?:_|$)")
_NO_TOOL_WORDS = frozenset({"mcp", "server", "plugin", ""})
_FORBIDS_CHANGE = re.compile(
    r"\b(?:never|do not|don't|must not) (?:\w+ ){0,2}(?:add|edit|change|touch|write|modify|commit|update)\b", re.IGNORECASE
)


def concerns(caution: Caution, command: Invocation, *, folder: str) -> bool:
    """Whether this is the command that the note warns of, run in ``folder``."""
    warned = caution.command
    if folder and caution.places and not any(_within(folder, place) for place in caution.places):
        return False
    if warned.program == TASK:
        return warned.words[0] in command.words[:2]
    if warned.program == ACTIVITY:
        return _is_for(warned.words[0], command) and not (
            caution.folder and f"{folder.rstrip('/')}/".endswith(f"/{caution.folder}/")
        )
    if warned.program != command.program or warned.words[: warned.depth] != command.words[: warned.depth]:
        return False
    flags = command.flags | {"--force"} if command.flags & _FORCED and command.purpose == "git push" else command.flags
    arguments = " ".join(command.words)
    return warned.flags <= flags and all(piece in arguments for piece in caution.pieces)


def heeded(caution: Caution, commands: Sequence[Invocation]) -> bool:
    """Whether the same line does already what the note recommends."""
    if any(setting in command.settings for setting in caution.settings for command in commands):
        return True
    return any(
        recommended.program == command.program
        and recommended.words[: recommended.depth] == command.words[: recommended.depth]
        and recommended.flags <= command.flags
        and recommended.purpose != caution.command.purpose
        for recommended in caution.instead
        for command in commands
        if recommended.depth or recommended.program in ALONE
    )


def shows(symptom: Symptom, lines: Iterable[str]) -> bool:
    """Whether one of these lines, as `model.signature.normal` leaves them in small letters, is what the note quotes."""
    for line in lines:
        at = 0
        for piece in symptom.pieces:
            at = line.find(piece, at)
            if at < 0:
                break
            at += len(piece)
        else:
            return True
    return False


def rules_tool(rule: str, tool: str) -> bool:
    """Whether a rule names what a tool of an MCP server changes: every word of its name, in whatever form."""
    called = tool.lower()
    if not called.startswith("mcp__") or _ONLY_LOOKS.search(called):
        return False
    words = [word for word in re.split(r"[_-]+", called) if word not in _NO_TOOL_WORDS]
    spoken = set(re.findall(r"[a-z]+", rule.lower()))
    return len(words) >= 2 and all(any(each.startswith(word[: max(4, len(word) - 1)]) for each in spoken) for word in words)


def forbids_change(rule: str, file: str) -> bool:
    """Whether a rule says of this file that it is not to be touched."""
    bare = re.split(r"[/\\]", file)[-1]
    stem = bare.partition(".")[0]
    named = bare in rule or (len(stem) > 3 and stem.isupper() and stem in re.findall(r"\w+", rule))
    return bool(bare) and named and _FORBIDS_CHANGE.search(rule) is not None


def _within(folder: str, place: str) -> bool:
    return f"{folder.rstrip('/')}/".startswith(f"{place}/") or (place.startswith("~") and f"{place[1:]}/" in f"{folder}/")


def activities(command: Invocation) -> tuple[str, ...]:
    """Whether it tests, lints, builds, as a note would call it."""
    return tuple(what for what in ACTIVITIES if _is_for(what, command))


def _is_for(what: str, command: Invocation) -> bool:
    """Whether a command lints, tests, builds: by the name of its program, or of the task that it runs."""
    tasks = command.words[: command.depth]
    match what:
        case "lint":
            return command.purpose in _LINTERS or any("lint" in name for name in (command.program, *tasks))
        case "test":
            return command.program in _TESTERS or any(map(_TEST_TASK.fullmatch, tasks))
        case _:
            return any(name.startswith(what) for name in (command.program, *tasks))
