"""Agents that store their hooks as Claude Code does: its plans, with other events, limits and names."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kite_memory.agents import claude_code, json_text
from kite_memory.agents.claude_code import Status
from kite_memory.agents.hook_command import is_ours
from kite_memory.agents.json_text import Array, Literal, Object, String
from kite_memory.agents.settings_edit import Edit, Nothing, Plan, SettingsUnreadable

_THEIRS = "Claude Code"
_THEIR_FILE = "settings.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class HookDialect:
    """How one agent's hooks differ from Claude Code's.

    ``timeout`` is a hook's limit in the agent's own unit. ``note`` is what a person must do besides.

    The command names the agent, so that the answer has that agent's format. ``comments`` may stand in its settings.
    """

    name: str
    title: str
    file: str
    events: tuple[str, ...]
    timeout: int
    note: str = ""
    comments: bool = False

    def plan_install(self, text: str | None, command: str) -> Plan:
        try:
            plan = claude_code.plan_install(text, f"{command} --agent {self.name}", self.events, comments=self.comments)
            timed = self._timed((plan.after if isinstance(plan, Edit) else text) or "")
        except SettingsUnreadable as error:
            raise self._as_ours(error) from error
        if timed == (text or "") or not timed:
            return Nothing(because="the hooks are there already")
        because = plan.because if isinstance(plan, Edit) else "corrects the time limit of our hooks"
        return Edit(before=text, after=timed, because=f"{because}{self.note and '; '}{self.note}")

    def plan_uninstall(self, text: str | None, earlier: Sequence[str | None] = ()) -> Plan:
        try:
            plan = claude_code.plan_uninstall(text, comments=self.comments)
            command = next((hook.command for hook in self.status(text).hooks), "").removesuffix(f" --agent {self.name}")
        except SettingsUnreadable as error:
            raise self._as_ours(error) from error
        if isinstance(plan, Nothing):
            return plan
        for old in earlier:
            if self._became(old, text, command):
                return Edit(before=text, after=old, because=plan.because)
        return plan

    def status(self, text: str | None) -> Status:
        try:
            return claude_code.status(text, self.events, comments=self.comments)
        except SettingsUnreadable as error:
            raise self._as_ours(error) from error

    def _became(self, old: str | None, text: str | None, command: str) -> bool:
        try:
            match self.plan_install(old, command):
                case Edit(after=after) if after == text:
                    return not self.status(old).hooks
                case _:
                    return False
        except SettingsUnreadable:
            return False

    def _timed(self, text: str) -> str:
        """Return the settings with our hooks' limits in this agent's unit."""
        while wrong := next((limit for limit in _limits(text, self.comments) if limit.written != str(self.timeout)), None):
            text = text[: wrong.start] + str(self.timeout) + text[wrong.end :]
        return text

    def _as_ours(self, error: SettingsUnreadable) -> SettingsUnreadable:
        hint = error.hint.replace(_THEIR_FILE, self.file)
        return SettingsUnreadable(str(error).replace(_THEIRS, self.title), hint=hint)


def _limits(text: str, comments: bool) -> Iterator[Literal]:
    """Yield the ``timeout`` of each hook of ours."""
    root = json_text.read(text, comments=comments) if text.strip("\ufeff \t\r\n") else None
    hooks = root.get("hooks") if isinstance(root, Object) else None
    for member in hooks.members if isinstance(hooks, Object) else ():
        for group in member.value.items if isinstance(member.value, Array) else ():
            inner = group.get("hooks") if isinstance(group, Object) else None
            for hook in inner.items if isinstance(inner, Array) else ():
                command = hook.get("command") if isinstance(hook, Object) else None
                limit = hook.get("timeout") if isinstance(hook, Object) else None
                if isinstance(command, String) and is_ours(command.value) and isinstance(limit, Literal):
                    yield limit
