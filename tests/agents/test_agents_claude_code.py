import json
import random
import shlex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.agents.claude_code import (
    EVENTS,
    OLDER_EVENTS,
    OPENS_NOTES,
    events_for,
    fast_command,
    is_ours,
    plan_install,
    plan_uninstall,
    shell_line,
    status,
)
from kite_memory.agents.settings_edit import Edit, Nothing, SettingsUnreadable

COMMAND = "/opt/py/bin/python3 -I -S /opt/kite/kite_memory/hook_client.py"
OLDER = "'/home/mara/my tools/bin/python3' -I -S '/home/mara/my tools/kite_memory/hook_client.py'"
THEIRS = {"hooks": [{"type": "command", "command": "say hello", "timeout": 9}]}
OURS = {"hooks": [{"type": "command", "command": COMMAND, "timeout": 5}]}


EARLIER = ("SessionStart", "UserPromptSubmit")
"""As the first version of this program installed them."""


def installed(text: str | None, command: str = COMMAND, events: tuple[str, ...] = EVENTS) -> str:
    plan = plan_install(text, command, events)
    assert isinstance(plan, Edit)
    assert plan.after is not None
    return plan.after


def uninstalled(text: str, *earlier: str | None) -> str | None:
    plan = plan_uninstall(text, earlier)
    assert isinstance(plan, Edit)
    return plan.after


def as_claude_code_writes(settings: dict[str, Any]) -> str:
    return json.dumps(settings, indent=2, ensure_ascii=False) + "\n"


JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
GROUPS = st.lists(
    st.fixed_dictionaries(
        {"hooks": st.lists(st.fixed_dictionaries({"type": st.just("command"), "command": st.text(max_size=12)}), max_size=3)},
        optional={"matcher": st.text(max_size=5)},
    )
    | JSON_VALUES,
    min_size=1,
    max_size=3,
)
HOOKS = st.dictionaries(st.sampled_from([*EVENTS, *OLDER_EVENTS, "Stop"]), GROUPS, min_size=1, max_size=4)
OTHER_KEYS = st.text(max_size=6).filter(lambda key: key != "hooks")
SETTINGS = st.builds(
    lambda rest, hooks, at: dict([*rest[:at], *hooks, *rest[at:]]),
    st.lists(st.tuples(OTHER_KEYS, JSON_VALUES), max_size=4, unique_by=lambda pair: pair[0]),
    st.lists(st.tuples(st.just("hooks"), HOOKS), max_size=1),
    st.integers(0, 4),
)


@st.composite
def written_settings(draw: st.DrawFn) -> str:
    """As people, tools and Claude Code itself write them, and some as no one does."""
    settings = draw(SETTINGS)
    indent = draw(st.sampled_from([None, 0, 1, 2, 3, 4, 8, "\t"]))
    separators = draw(st.sampled_from([None, (",", ":")])) if indent is None else None
    text = json.dumps(settings, indent=indent, separators=separators, ensure_ascii=draw(st.booleans()))
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    if draw(st.booleans()):
        chance = draw(st.randoms(use_true_random=False))
        text = "".join(piece + scatter(chance) if piece in "{}[],:" else piece for piece in split_outside_strings(text))
    lead, trail = draw(st.sampled_from(["", "\ufeff", "\n", " ", "\ufeff\n "])), draw(st.sampled_from(["", "\n", "\r\n", "\n\n"]))
    return lead + text + trail


def split_outside_strings(text: str) -> list[str]:
    pieces, quoted, escaped = [""], False, False
    for letter in text:
        if not quoted and letter in "{}[],:":
            pieces += [letter, ""]
            continue
        pieces[-1] += letter
        if letter == '"' and not escaped:
            quoted = not quoted
        escaped = letter == "\\" and not escaped
    return [piece for piece in pieces if piece]


def scatter(chance: random.Random) -> str:
    return "".join(chance.choice(" \n\t") for _ in range(chance.choice([0, 0, 0, 1, 3])))


@given(text=written_settings())
def test_install_then_uninstall_gives_back_every_byte(text: str) -> None:
    assert uninstalled(installed(text)) == text


@given(text=written_settings())
def test_install_adds_its_hooks_and_changes_nothing_else(text: str) -> None:
    before = json.loads(text.removeprefix("\ufeff"))

    after = json.loads(installed(text).removeprefix("\ufeff"))

    hooks = after["hooks"]
    for event in EVENTS:
        assert hooks[event].pop() == OURS
        if not hooks[event] and event not in before.get("hooks", {}):
            del hooks[event]
    if not hooks and "hooks" not in before:
        del after["hooks"]
    assert after == before
    assert list(after) == list(before)


@given(text=written_settings())
def test_a_second_install_has_nothing_to_do(text: str) -> None:
    assert isinstance(plan_install(installed(text), COMMAND), Nothing)


@given(text=written_settings(), before=st.sampled_from([EARLIER, OLDER_EVENTS]))
def test_an_earlier_installation_is_brought_up_to_date(text: str, before: tuple[str, ...]) -> None:
    hooks = json.loads(installed(installed(text, OLDER, before)).removeprefix("\ufeff"))["hooks"]

    afresh = json.loads(installed(text).removeprefix("\ufeff"))["hooks"]
    assert {event: groups for event, groups in hooks.items() if groups} == {
        event: groups for event, groups in afresh.items() if groups
    }


@pytest.mark.parametrize("before", [EARLIER, OLDER_EVENTS])
@pytest.mark.parametrize("text", [None, "{ }", '{\n  "model": "opus"\n}\n', '{"hooks": {"Stop": []}}'])
def test_what_was_brought_up_to_date_goes_as_it_came(text: str | None, before: tuple[str, ...]) -> None:
    first = installed(text, OLDER, before)

    assert uninstalled(installed(first), first, text) == text


@given(text=written_settings())
def test_an_older_command_of_ours_is_replaced_where_it_stands(text: str) -> None:
    assert installed(installed(text, OLDER)) == installed(text)


@pytest.mark.parametrize(
    "text",
    [
        *(None, "", "  \n", "{}", "{}\n", "{ }", "{\n}\n"),
        *('{"hooks": {}}', '{"hooks": {"SessionStart": []}}', '{\n  "hooks": {\n  }\n}'),
        '{"hooks": {"Stop": [], "UserPromptSubmit": [ ]}, "a": 1}',
    ],
)
def test_with_the_backup_at_hand_even_what_was_empty_comes_back_as_it_was(text: str | None) -> None:
    assert uninstalled(installed(text), "{}not it", text, None) == text


def test_settings_written_by_claude_code_look_as_if_it_had_added_the_hooks() -> None:
    settings = {"model": "opus", "hooks": {"Stop": [THEIRS], "SessionStart": [THEIRS]}, "permissions": {"allow": ["Bash(ls:*)"]}}

    after = installed(as_claude_code_writes(settings))

    hooks = {"Stop": [THEIRS], "SessionStart": [THEIRS, OURS], "UserPromptSubmit": [OURS], "PostToolBatch": [OURS]}
    assert after == as_claude_code_writes(settings | {"hooks": hooks})


def test_new_settings_hold_the_hooks_and_nothing_else() -> None:
    assert installed(None) == as_claude_code_writes({"hooks": {event: [OURS] for event in EVENTS}})


def test_uninstall_takes_our_hook_out_of_a_group_that_somebody_else_joined() -> None:
    shared = {"matcher": "startup", "hooks": [*THEIRS["hooks"], *OURS["hooks"], *THEIRS["hooks"]]}
    text = as_claude_code_writes({"hooks": {"SessionStart": [shared]}})

    after = uninstalled(text)

    left = {"matcher": "startup", "hooks": [*THEIRS["hooks"], *THEIRS["hooks"]]}
    assert after == as_claude_code_writes({"hooks": {"SessionStart": [left]}})


def test_uninstall_finds_ours_wherever_they_were_put_and_however_often() -> None:
    old = {"hooks": [{"type": "command", "command": "kmem-hook"}]}
    pair = {"hooks": [*OURS["hooks"], *old["hooks"]]}
    many = {"hooks": {"SessionStart": [old, OURS, old], "PreCompact": [old], "Stop": [THEIRS, pair]}}

    after = uninstalled(as_claude_code_writes(many))

    assert after == as_claude_code_writes({"hooks": {"Stop": [THEIRS]}})


def test_doubles_are_made_one() -> None:
    pair = {"hooks": [*OURS["hooks"], *OURS["hooks"]]}
    doubled = {"hooks": {"SessionStart": [OURS, pair, THEIRS], "UserPromptSubmit": [OURS, OURS]}}

    after = installed(as_claude_code_writes(doubled))

    assert json.loads(after)["hooks"] == {"SessionStart": [OURS, THEIRS], "UserPromptSubmit": [OURS], "PostToolBatch": [OURS]}


def test_a_limit_that_the_person_chose_survives_an_update() -> None:
    patient = {"hooks": [{"type": "command", "command": OLDER, "timeout": 20}]}
    text = as_claude_code_writes({"hooks": {event: [patient] for event in EVENTS}})

    after = json.loads(installed(text))

    assert after["hooks"]["SessionStart"] == [{"hooks": [{"type": "command", "command": COMMAND, "timeout": 20}]}]


def test_a_backup_is_only_trusted_if_nothing_was_changed_since() -> None:
    before = as_claude_code_writes({"model": "opus"})
    changed_since = installed(before).replace("opus", "haiku")

    assert uninstalled(changed_since, before) == as_claude_code_writes({"model": "haiku"})


@pytest.mark.parametrize(
    "text",
    ["[]", "3", "{}}", "\x00", '{"a": 1,}', "// mine\n{}", '{"hooks": []}', '{"hooks": null}', '{"hooks": {"SessionStart": {}}}'],
)
def test_settings_we_do_not_understand_are_refused(text: str) -> None:
    with pytest.raises(SettingsUnreadable) as refusal:
        plan_install(text, COMMAND)

    assert "nothing was changed" in refusal.value.hint


@pytest.mark.parametrize("text", [None, "", "{}", '{"hooks": null}', as_claude_code_writes({"hooks": {"Stop": [THEIRS]}})])
def test_without_hooks_of_ours_uninstall_has_nothing_to_do(text: str | None) -> None:
    assert isinstance(plan_uninstall(text), Nothing)


def test_status_says_what_is_wired_and_what_is_missing() -> None:
    text = as_claude_code_writes({"disableAllHooks": True, "hooks": {"SessionStart": [THEIRS, OURS]}})

    report = status(text)

    assert [(hook.event, hook.command) for hook in report.hooks] == [("SessionStart", COMMAND)]
    assert report.missing == ("UserPromptSubmit", "PostToolBatch")
    assert report.disabled


@pytest.mark.parametrize(
    ("version", "events"),
    [
        (None, EVENTS),
        ((2, 1, 328), EVENTS),
        ((2, 1, 120), EVENTS),
        ((3, 0, 0), EVENTS),
        ((2, 1, 119), OLDER_EVENTS),
        ((1, 0, 128), OLDER_EVENTS),
    ],
)
def test_an_agent_is_only_given_events_that_it_knows(version: tuple[int, ...] | None, events: tuple[str, ...]) -> None:
    assert events_for(version) == events


@pytest.mark.parametrize("text", [None, "", "{}"])
def test_status_of_nothing_misses_everything(text: str | None) -> None:
    assert status(text).missing == EVENTS


@pytest.mark.parametrize(
    "command",
    [
        *("kmem-hook", "/usr/bin/kmem-hook --agent codex", "KMEM_HOME=/x A=b kmem-hook", r"C:\Tools\kmem-hook.exe"),
        *(COMMAND, OLDER, fast_command(), "kmem-hook 2>&1", "kmem-hook &>/dev/null", "'/opt/a;b&c d/kmem-hook'"),
        *("kmem-hook --agent codex || true", "kmem-hook; exit 0", "kmem-hook\n"),
    ],
)
def test_ours_is_known_again(command: str) -> None:
    assert status(as_claude_code_writes({"hooks": {"Stop": [{"hooks": [{"command": command}]}]}})).hooks


@pytest.mark.parametrize(
    "command",
    [
        *("", "A=b", "echo kmem-hook", "vim kmem-hook", "my-kmem-hook", "bash -c kmem-hook", "kmem-hook 'unbalanced"),
        *("python hook_client.py", COMMAND + ".bak"),
        *("kmem-hook && ~/bin/log-prompt.sh", "kmem-hook; date", "kmem-hook | tee log", "kmem-hook & date", "kmem-hook\ndate"),
    ],
)
def test_what_only_mentions_ours_is_not_ours(command: str) -> None:
    assert not status(as_claude_code_writes({"hooks": {"Stop": [{"hooks": [{"command": command}]}]}})).hooks


def test_a_rule_that_a_person_has_withdrawn_is_not_added_again() -> None:
    installed = plan_install("{}", COMMAND, allow=OPENS_NOTES)
    assert isinstance(installed, Edit) and installed.after is not None
    content = json.loads(installed.after)
    del content["permissions"]
    withdrawn = json.dumps(content)

    assert isinstance(plan_install(withdrawn, COMMAND, allow=OPENS_NOTES), Nothing)
    newer = plan_install(withdrawn, f"{COMMAND} --new", EVENTS, allow=OPENS_NOTES)
    assert isinstance(newer, Edit) and "permissions" not in json.loads(newer.after or "")


def test_our_rules_go_without_our_hooks_and_are_never_taken_for_the_persons() -> None:
    before = '{"model": "opus"}'
    installed = plan_install(before, COMMAND, allow=OPENS_NOTES)
    assert isinstance(installed, Edit) and installed.after is not None
    content = json.loads(installed.after)
    del content["hooks"]
    by_hand = json.dumps(content)
    again = plan_install(by_hand, COMMAND, allow=OPENS_NOTES)
    assert isinstance(again, Edit) and again.after is not None
    edited = again.after.replace("opus", "haiku")

    of_rules = plan_uninstall(by_hand, [before])
    unchanged, changed = (plan_uninstall(text, [by_hand, before]) for text in (again.after, edited))

    assert isinstance(of_rules, Edit) and json.loads(of_rules.after or "") == {"model": "opus"}
    assert isinstance(unchanged, Edit) and json.loads(unchanged.after or "") == {"model": "opus"}
    assert isinstance(changed, Edit) and json.loads(changed.after or "") == {"model": "haiku"}
    assert isinstance(plan_uninstall(by_hand), Nothing)
    assert isinstance(plan_uninstall(by_hand, [by_hand]), Nothing)


def test_a_command_for_windows_is_read_alike_by_bash_and_cmd() -> None:
    line = shell_line((r"C:\Program Files\Python\python.exe", "-I", r"C:\kite\kite_memory\hook_client.py"), windows=True)

    assert line == '"C:/Program Files/Python/python.exe" -I C:/kite/kite_memory/hook_client.py'


@pytest.mark.parametrize("character", "' ();#*?[{,=@~")
def test_a_command_for_windows_is_quoted_for_bash_and_known_again(character: str) -> None:
    words = (rf"C:\O{character}Brien\python.exe", "-I", rf"C:\O{character}Brien\kite_memory\hook_client.py")

    line = shell_line(words, windows=True)

    assert shlex.split(line) == [word.replace("\\", "/") for word in words]
    assert is_ours(line)


@pytest.mark.parametrize("interpreter", ["C:/O'Brien/python.exe", "C:/Python/python.exe", '"C:/Program Files/python.exe"'])
def test_a_command_that_left_an_apostrophe_unquoted_is_replaced(interpreter: str) -> None:
    broken = f"{interpreter} -I -S C:/O'Brien/kite_memory/hook_client.py"
    before = as_claude_code_writes({"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": broken}]}]}})

    assert broken not in installed(before)


def test_a_rule_that_a_person_added_after_ours_had_gone_stays() -> None:
    installed = after_install("{}\n")
    own = json.dumps({"permissions": {"allow": [OPENS_NOTES[0]]}})
    again = after_install(own)
    history = (own, installed, "{}\n")

    without_hooks = plan_uninstall(own, history[1:])
    unchanged, changed = (plan_uninstall(text, history) for text in (again, f"{again}\n"))

    assert isinstance(without_hooks, Nothing)
    assert isinstance(unchanged, Edit) and unchanged.after == own
    assert isinstance(changed, Edit) and json.loads(changed.after or "") == json.loads(own)


def after_install(text: str) -> str:
    plan = plan_install(text, COMMAND, allow=OPENS_NOTES)
    assert isinstance(plan, Edit) and plan.after is not None
    return plan.after


MAY = (
    None,
    "{}\n",
    '{\n  "permissions": {}\n}\n',
    '{"permissions": {"allow": ["Bash(ls:*)"], "deny": ["Bash(rm:*)"]}, "model": "haiku"}',
    '{\n  "permissions": {\n    "allow": [\n      "Bash(kmem show:*)"\n    ]\n  }\n}\n',
)


@pytest.mark.parametrize("text", MAY)
def test_the_agent_may_open_notes_unasked_and_what_was_allowed_stays(text: str | None) -> None:
    plan = plan_install(text, COMMAND, allow=OPENS_NOTES)

    assert isinstance(plan, Edit) and plan.after is not None
    allowed = json.loads(plan.after)["permissions"]["allow"]
    before = json.loads(text or "{}").get("permissions", {})
    assert sorted(allowed) == sorted({*before.get("allow", []), *OPENS_NOTES})
    assert isinstance(plan_install(plan.after, COMMAND, allow=OPENS_NOTES), Nothing)


@pytest.mark.parametrize("text", MAY)
def test_what_was_allowed_goes_as_it_came(text: str | None) -> None:
    installed = plan_install(text, COMMAND, allow=OPENS_NOTES)
    assert isinstance(installed, Edit)

    by_backup = plan_uninstall(installed.after, [text])
    without = plan_uninstall(f"{installed.after}\n", [text])

    assert isinstance(by_backup, Edit) and by_backup.after == text
    assert isinstance(without, Edit) and without.after is not None
    assert json.loads(without.after).get("permissions", {}).get("deny") == json.loads(text or "{}").get("permissions", {}).get(
        "deny"
    )
    assert "show_notes" not in without.after and ("kmem show" in without.after) == ("kmem show" in (text or ""))
