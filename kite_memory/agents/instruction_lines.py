"""Two lines for the file that an agent reads before everything else: that there is a memory, and when it helps."""

from collections.abc import Sequence

from kite_memory.agents.settings_edit import Edit, Nothing, Plan, SettingsUnreadable

BEGIN, END = "<!-- kite-memory:begin -->", "<!-- kite-memory:end -->"

LINES = (
    "The MCP server `kite-memory` holds what was decided and found out in earlier sessions, by any agent. Before starting on a "
    "task, and when earlier work is mentioned, look there: `smart_resume` for where work stopped, `get-context` for a subject.",
    "When something is decided, or a piece of work is done, keep it: `save-conversation` with the decisions, their reasons and "
    "what was rejected; `remember` for a single fact.",
)
BLOCK = "\n".join((BEGIN, *LINES, END)) + "\n"


def plan_add(text: str | None) -> Plan:
    """At the end, after an empty line. An older block of ours is brought up to date where it stands."""
    after = _with(text or "")
    return (
        Nothing(because="the lines are there already")
        if after == text
        else Edit(before=text, after=after, because="adds two lines")
    )


def plan_remove(text: str | None, earlier: Sequence[str | None] = ()) -> Plan:
    """``earlier`` are the file's backups, latest first: one that our lines turn into this very text comes back to the byte."""
    if text is None or (place := _place(text)) is None:
        return Nothing(because="there are no lines of ours")
    because = "removes our lines and nothing else"
    for old in earlier:
        if (old is None or _place(old) is None) and _with(old or "") == text:
            return Edit(before=text, after=old, because=because)
    start, end = place
    before, rest = text[:start], text[end:]
    if before.endswith("\n\n") and not rest.strip():
        before = before[:-1]
    return Edit(before=text, after=before + rest, because=because)


def present(text: str | None) -> bool:
    return text is not None and _place(text) is not None


def _with(text: str) -> str:
    if place := _place(text):
        return text[: place[0]] + BLOCK + text[place[1] :]
    if not text.strip():
        return BLOCK
    return text + ("" if text.endswith("\n") else "\n") + "\n" + BLOCK


def _place(text: str) -> tuple[int, int] | None:
    """From the first mark to the line's end after the last. Raises `SettingsUnreadable` where only one of them is left."""
    start, stop = text.find(BEGIN), text.find(END)
    if start < 0 and stop < 0:
        return None
    if start < 0 or stop < start or text.find(BEGIN, start + 1) >= 0:
        raise SettingsUnreadable(
            "the marks around our lines are not a pair any more", hint=f"remove what is left of {BEGIN} by hand"
        )
    end = stop + len(END)
    if text.startswith("\r\n", end):
        end += 2
    elif text.startswith("\n", end):
        end += 1
    return start, end
