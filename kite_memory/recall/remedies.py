"""What of an earlier fix is worth a line: a step that anybody can take again.

That somebody went on to edit the code until it compiled is no news. That a command had to be run first, that another
spelling of it worked, that it was only to be tried again, or that a setting was changed, is.
"""

import re

from kite_memory.model.fix import Fix
from kite_memory.text.shell import Invocation, invocations, purposes

_REPAIRS = re.compile(
    r"\b(?:install|ci|sync|tidy|generate|codegen|download|up|start|restart|login|auth|migrate|upgrade|update|init|prune|clean|trust|config"
    r"|bootstrap|setup|unlock|read-tree|fetch|pull|chmod|kill|pkill|killall|brew|apt|apt-get|submodule|gc|repair|doctor|cache)\b"
)
_ROUTINE = re.compile(
    r"git (?:add|commit|push|log|diff|status|show|branch|rev-parse|merge-base)|gh [a-z]+ (?:view|list|checks|comment|create)"
)
_SETTINGS = re.compile(
    r"(?:^|[/\\])(?:[\w.-]*(?:config|settings|rc)[\w.-]*|\.env[\w.-]*|Dockerfile[\w.-]*|Makefile|go\.(?:mod|sum|work)|package(?:-lock)?\.json"
    r"|[\w.-]+\.(?:toml|ya?ml|ini|cfg|conf|lock|properties|plist|tool-versions)|requirements[\w.-]*\.txt|Gemfile|Cargo\.toml|\.[\w-]+)$",
    re.IGNORECASE,
)
_ABOUT_CODE = re.compile(
    r"--- FAIL|FAILED |FAIL: |not ok|rspec|test .* FAILED|CONFLICT"
    r"|.*(?:no such file or directory|imported and not used|undefined:)",
    re.IGNORECASE,
)
"""Of the code as it was that day: the next time it means something else."""
_SHOWN = 100
_ALIKE = 0.5


def remedy(fix: Fix, command: str) -> str:
    """A sentence for an agent whose ``command`` has just failed in the same way; empty where the fix has nothing to teach."""
    steps = [step for step in fix.steps if not _is_routine(step)]
    if fix.files and not all(_SETTINGS.search(file) for file in fix.files):
        return ""
    if steps:
        repairs = [step for step in steps if _REPAIRS.search(step)]
        if len(repairs) < len(steps):
            return ""
        return f"The same failure went away after {' and '.join(_shown(step) for step in repairs[-2:])}"
    if fix.files:
        names = ", ".join(re.split(r"[/\\]", file)[-1] for file in fix.files[:3])
        return f"The same failure went away with a change to {names}"
    if _ABOUT_CODE.match(fix.signature):
        return ""
    failed, worked = _core(fix.failed, fix.worked), _core(fix.worked, fix.failed)
    if failed is None or worked is None or _likeness(failed, _core(command, fix.failed)) < _ALIKE:
        return ""
    if failed == worked:
        return "The same failure went away when the same command was run once more"
    return f"The same failure earlier; then this worked: {_shown(_spelled(worked))}" if _likeness(failed, worked) >= _ALIKE else ""


def _is_routine(step: str) -> bool:
    return all(_ROUTINE.fullmatch(purpose) for purpose in purposes(step))


def _core(line: str, other: str) -> Invocation | None:
    """The program of a line that the other line runs too."""
    common = purposes(line) & purposes(other)
    return next((each for each in invocations(line) if each.purpose in common), None)


def _likeness(one: Invocation, other: Invocation | None) -> float:
    if other is None:
        return 0.0
    mine, theirs = {*one.words, *one.flags}, {*other.words, *other.flags}
    return len(mine & theirs) / len(mine | theirs) if mine | theirs else 1.0


def _spelled(command: Invocation) -> str:
    return " ".join(
        (
            *command.settings,
            command.program,
            *command.words[: command.depth],
            *sorted(command.flags),
            *command.words[command.depth :],
        )
    )


def _shown(command: str) -> str:
    line = " ".join(command.split()).replace("`", "'")
    return f"`{line if len(line) <= _SHOWN else line[: _SHOWN - 1] + '…'}`"
