"""Our entry in every agent's settings: put in, known again, brought up to date, taken out to the byte."""

import json
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.agents import instructions
from kite_memory.agents.mcp_entry import AgentFolders, Connection, McpDialect, ServerCommand, connection, connections, is_ours
from kite_memory.agents.settings_edit import Edit, Nothing, Plan, SettingsUnreadable
from kite_memory.errors import UsageError

HOME = Path("/home/ada")
PLACES = AgentFolders(
    home=HOME,
    claude=HOME / ".claude",
    claude_apart=False,
    codex=HOME / ".codex",
    gemini=HOME / ".gemini",
    cline=(HOME / ".config/Code/User/globalStorage/saoudrizwan.claude-dev", HOME / ".cline/data"),
    roo=(HOME / ".config/Code/User/globalStorage/rooveterinaryinc.roo-cline",),
    vscode=HOME / ".config/Code/User",
    environment={},
)
SERVER = ServerCommand(
    command="/opt/kite/bin/python", args=("-P", "/opt/kite_memory/__main__.py", "mcp"), environment={"KMEM_HOME": "/k"}
)
ALL = pytest.mark.parametrize("agent", connections(PLACES), ids=lambda agent: agent.name)
JSONS = [agent for agent in connections(PLACES) if agent.dialect.language == "json"]
CODEX = connection("codex", PLACES).dialect
REMARKED = [agent for agent in connections(PLACES) if agent.dialect.language == "jsonc"]

THEIR_JSON = """{
    "theme": "dark",
    "%s": {
        "files": {"command": "npx", "args": ["-y", "files"]}
    },
    "last": [1, 2]
}
"""
THEIR_JSONC = """// My servers, see https://example.org/setup
{
  /* work */
  "%s": {
    // "old": {"command": "npx"},
    "files": {"command": "npx", "args": ["-y", "files"],}, // all of them, "quoted"
    // nothing below
  },
  "last": [1, 2,], // }
}
"""
THEIR_TOML = """# mine
model = "gpt-5.5"

[mcp_servers.files]  # the files
command = "npx"
args = ["-y", "files"]

[projects."/home/ada/mycelia"]
trust_level = "trusted"
"""


def theirs(dialect: McpDialect) -> str:
    return THEIR_TOML if dialect.language == "toml" else THEIR_JSON % dialect.key


def read(dialect: McpDialect, text: str) -> Any:
    return tomllib.loads(text) if dialect.language == "toml" else json.loads(text)


def after(plan: Plan) -> str:
    assert isinstance(plan, Edit)
    assert plan.after is not None
    return plan.after


@ALL
def test_the_entry_stands_where_the_agent_reads_it_and_starts_us(agent: Connection) -> None:
    record = read(agent.dialect, after(agent.dialect.plan_add(None, SERVER)))

    entry = record[agent.dialect.key]["kite-memory"]
    assert set(record) == {agent.dialect.key} and set(record[agent.dialect.key]) == {"kite-memory"}
    words = entry["command"] if agent.dialect.whole_command else [entry["command"], *entry["args"]]
    assert words == ["/opt/kite/bin/python", "-P", "/opt/kite_memory/__main__.py", "mcp"]
    assert entry["environment" if agent.name == "opencode" else "env"] == {"KMEM_HOME": "/k"}
    assert is_ours(entry)


@ALL
def test_what_a_person_wrote_stays_and_comes_back_to_the_byte(agent: Connection) -> None:
    before = theirs(agent.dialect)

    text = after(agent.dialect.plan_add(before, SERVER))
    removed = after(agent.dialect.plan_remove(text))

    assert read(agent.dialect, text)[agent.dialect.key]["files"] == {"command": "npx", "args": ["-y", "files"]}
    assert "# mine" in text or agent.dialect.language != "toml"
    assert removed == before


@pytest.mark.parametrize("agent", REMARKED, ids=lambda agent: agent.name)
def test_what_a_person_remarked_stays_where_it_is(agent: Connection) -> None:
    before = THEIR_JSONC % agent.dialect.key
    lines = before.splitlines()

    text = after(agent.dialect.plan_add(before, SERVER))

    added = text.splitlines()
    at = next(number for number, line in enumerate(added) if "kite-memory" in line)
    assert added[:at] == lines[:at] and lines[at - 1].endswith('// all of them, "quoted"')
    assert added[at - len(lines) :] == lines[at:]
    assert agent.dialect.connected(text)
    assert isinstance(agent.dialect.plan_add(text, SERVER), Nothing)
    assert after(agent.dialect.plan_remove(text)) == before


@ALL
@pytest.mark.parametrize("before", [None, "", "\n"])
def test_with_its_backup_a_file_becomes_what_it_was(agent: Connection, before: str | None) -> None:
    text = after(agent.dialect.plan_add(before, SERVER))

    plan = agent.dialect.plan_remove(text, ["somebody else's", before])

    assert isinstance(plan, Edit)
    assert plan.after == before


@ALL
def test_again_does_nothing_and_an_older_entry_is_brought_up_to_date(agent: Connection) -> None:
    older = ServerCommand(command="/old/python", args=("-P", "/old/kite_memory/__main__.py", "mcp"))
    text = after(agent.dialect.plan_add(theirs(agent.dialect), older))

    now = after(agent.dialect.plan_add(text, SERVER))

    assert isinstance(agent.dialect.plan_add(now, SERVER), Nothing)
    assert "/old/" not in now and agent.dialect.connected(now)
    assert after(agent.dialect.plan_remove(now)) == theirs(agent.dialect)


@pytest.mark.parametrize(
    "text",
    [
        "mcp_servers.kite-memory.command = '/old/python'\nmcp_servers.kite-memory.args = {args}\n",
        "[mcp_servers]\nkite-memory.command = '/old/python'\nkite-memory.args = {args}\n\n[other]\na = 1\n",
        "[mcp_servers.kite-memory]\ncommand = '/old/python'\nargs = {args}\n[mcp_servers.kite-memory.tools]\nask = true\n",
        "[mcp_servers.kite-memory.env]\nOWN = '1'\n[mcp_servers.kite-memory]\ncommand = '/old/python'\nargs = {args}\n",
    ],
)
def test_our_entry_is_whole_after_an_update_in_any_style(text: str) -> None:
    codex = connection("codex", PLACES).dialect
    text = text.format(args=["-P", "/old/kite_memory/__main__.py", "mcp"])
    server = replace(SERVER, environment={"KMEM_HOME": "/home"})

    before, now = tomllib.loads(text), tomllib.loads(after(codex.plan_add(text, server)))

    entry = before["mcp_servers"]["kite-memory"]
    entry |= codex.entry(server) | {"env": entry.get("env", {}) | {"KMEM_HOME": "/home"}}
    assert now == before


@ALL
def test_what_a_person_has_said_in_our_entry_stays_in_it(agent: Connection) -> None:
    """Limits, what may run unasked, being off: agents write it there when a person chooses so."""
    dialect = agent.dialect
    connected = after(dialect.plan_add(theirs(dialect), SERVER))
    if dialect.language == "toml":
        chosen = (
            connected + 'startup_timeout_sec = 2.5\nenabled = false\n\n[mcp_servers.kite-memory.tools."search notes"]\nask = true\n'
        )
        said: dict[str, Any] = {"startup_timeout_sec": 2.5, "enabled": False, "tools": {"search notes": {"ask": True}}}
    else:
        said = {"disabled": True, "timeout": 60, "autoApprove": ["search_notes"], "cwd": None}
        content = json.loads(connected)
        content[dialect.key]["kite-memory"] |= said
        chosen = json.dumps(content, indent=4)
    moved = ServerCommand(command="/elsewhere/python", args=SERVER.args)

    again = dialect.plan_add(chosen, SERVER)
    newer = after(dialect.plan_add(chosen, moved))

    assert again == Nothing(because="the server is there already")
    assert read(dialect, newer)[dialect.key]["kite-memory"] == {**dialect.entry(moved), **said}
    assert read(dialect, after(dialect.plan_remove(newer))) == read(dialect, theirs(dialect))


@ALL
def test_a_variable_that_a_person_gave_our_server_stays_and_an_older_one_of_ours_goes(agent: Connection) -> None:
    dialect = agent.dialect
    old = ServerCommand(command="/old/python", args=SERVER.args, environment={"KMEM_HOME": "/old", "HTTPS_PROXY": "http://proxy"})
    connected = after(dialect.plan_add(theirs(dialect), old))

    now = read(dialect, after(dialect.plan_add(connected, replace(SERVER, environment={"XDG_STATE_HOME": "/state"}))))
    without = read(dialect, after(dialect.plan_add(connected, replace(SERVER, environment={}))))

    entries = [content[dialect.key]["kite-memory"] for content in (now, without)]
    assert entries[0][dialect.environment] == {"HTTPS_PROXY": "http://proxy", "XDG_STATE_HOME": "/state"}
    assert entries[1][dialect.environment] == {"HTTPS_PROXY": "http://proxy"}
    assert dialect.command_in(connected) == ("/old/python", *SERVER.args)
    assert dialect.command_in(theirs(dialect)) == dialect.command_in(None) == ()


def test_what_a_person_remarked_in_our_table_stays_when_it_is_brought_up_to_date() -> None:
    before = (
        "[mcp_servers.kite-memory]\n# my remark\ncommand = 'kmem' # keep\nargs = ['mcp']\nenabled = false\n\n"
        "[mcp_servers.kite-memory.env] # through the proxy\nHTTPS_PROXY = 'http://proxy'\n\n[mcp_servers.other]\ncommand = 'y'\n"
    )
    server = ServerCommand(command="/x/python", args=("/x/kite_memory/__main__.py", "mcp"))

    text = after(CODEX.plan_add(before, server))

    assert text == before.replace("'kmem'", '"/x/python"').replace("['mcp']", '["/x/kite_memory/__main__.py", "mcp"]')


@pytest.mark.parametrize(
    "text",
    [
        "[mcp_servers]\nkite-memory.command = 'kmem'\nkite-memory.args = ['mcp']\n",
        "[mcp_servers]\nkite-memory = { command = 'kmem', args = ['mcp'] }\n",
    ],
)
def test_a_server_that_cannot_be_taken_out_safely_is_an_error_that_says_what_to_delete(text: str) -> None:
    with pytest.raises(SettingsUnreadable) as refusal:
        CODEX.plan_remove(text)

    assert refusal.value.hint == "delete kite-memory below `mcp_servers` by hand"


@pytest.mark.parametrize("agent", REMARKED, ids=lambda agent: agent.name)
def test_a_server_that_a_person_has_put_aside_is_not_taken_out_with_ours(agent: Connection) -> None:
    before = f'{{\n  "{agent.dialect.key}": {{\n    // "old": {{"command": "npx"}},\n  }},\n  "last": 1\n}}\n'
    touched = after(agent.dialect.plan_add(before, SERVER)).replace('"last": 1', '"last": 2')

    without = after(agent.dialect.plan_remove(touched, [before]))

    assert without == before.replace('"last": 1', '"last": 2')


@pytest.mark.parametrize("before", ["abc\r\ndef\r\n", "abc\r\ndef\r\n\r\n"])
def test_our_lines_have_the_line_ends_of_the_file(before: str) -> None:
    text = after(instructions.plan_add(before))

    assert text.count("\n") == text.count("\r\n")
    assert isinstance(instructions.plan_add(text), Nothing)
    assert isinstance(instructions.plan_add(instructions.BLOCK.replace("\n", "\r\n")), Nothing)
    assert after(instructions.plan_remove(text)) == before


def test_toml_with_a_mark_of_its_encoding_is_toml() -> None:
    codex = connection("codex", PLACES).dialect
    before = f"\ufeff{THEIR_TOML}"

    connected = after(codex.plan_add(before, SERVER))

    assert codex.connected(connected) and after(codex.plan_remove(connected)) == before


@pytest.mark.parametrize("text", ['mcp_servers = { files = { command = "npx" } }\n', "mcp_servers = {}\n"])
def test_toml_that_has_no_room_for_us_is_not_called_anything_else(text: str) -> None:
    with pytest.raises(SettingsUnreadable, match="cannot be changed safely") as refused:
        connection("codex", PLACES).dialect.plan_add(text, SERVER)

    assert "by hand" in refused.value.hint


@ALL
def test_another_server_of_our_name_is_left_alone(agent: Connection) -> None:
    other = after(agent.dialect.plan_add(theirs(agent.dialect), SERVER)).replace("__main__.py", "another.py")

    with pytest.raises(SettingsUnreadable, match="another MCP server"):
        agent.dialect.plan_add(other, SERVER)
    assert isinstance(agent.dialect.plan_remove(other), Nothing)
    assert not agent.dialect.connected(other)


@pytest.mark.parametrize("agent", JSONS, ids=lambda agent: agent.name)
@pytest.mark.parametrize("text", ["[]", "{", '{"a": 1} // c', '{"%s": []}', '{"%s": 1}'])
def test_what_is_not_understood_is_not_touched_and_said_how_by_hand(agent: Connection, text: str) -> None:
    text = text.replace("%s", agent.dialect.key)

    with pytest.raises(SettingsUnreadable) as raised:
        agent.dialect.plan_add(text, SERVER)

    assert "nothing was changed" in raised.value.hint and "kite_memory/__main__.py" in raised.value.hint


@pytest.mark.parametrize(
    "text", ["= 1", "mcp_servers = 1", "[mcp_servers]\nkite-memory = 1", 'mcp_servers = { files = { command = "npx" } }']
)
def test_toml_that_is_not_understood_is_not_touched(text: str) -> None:
    with pytest.raises(SettingsUnreadable):
        connection("codex", PLACES).dialect.plan_add(text, SERVER)


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers.files.command = "npx"\nmodel = "x"\n',
        '[mcp_servers]\nfiles = { command = "npx" }\n[other]\na = 1\n',
        '[[list]]\na = 1\n[mcp_servers.files]\ncommand = "npx"\n[[list]]\na = 2\n',
        '[mcp_servers.files.env]\nA = "1"\n[tail]\nb = 2\n[mcp_servers.more]\ncommand = "x"\n',
    ],
)
def test_toml_in_every_style_keeps_its_meaning(text: str) -> None:
    dialect = connection("codex", PLACES).dialect

    now = after(dialect.plan_add(text, SERVER))
    removed = after(dialect.plan_remove(now))

    content = tomllib.loads(now)
    assert content["mcp_servers"].pop("kite-memory")["command"] == "/opt/kite/bin/python"
    assert content == tomllib.loads(text) == tomllib.loads(removed)


@pytest.mark.parametrize(
    ("entry", "ours"),
    [
        ({"command": "kmem", "args": ["mcp"]}, True),
        ({"command": "C:\\Kite\\kmem.exe", "args": ["mcp", "--cwd", "x"]}, True),
        ({"command": ["/opt/python", "-P", "/opt/kite_memory/__main__.py", "mcp"], "type": "local"}, True),
        ({"command": "kmem", "args": ["serve"]}, False),
        ({"command": "npx", "args": ["-y", "kite_memory", "mcp"]}, False),
        ({"url": "https://memory.example.org/mcp"}, False),
        ({"command": 7, "args": []}, False),
        (None, False),
        ("kmem mcp", False),
    ],
)
def test_an_entry_is_ours_only_where_it_starts_us(entry: object, ours: bool) -> None:
    assert is_ours(entry) is ours


def test_each_agent_has_its_places(tmp_path: Path) -> None:
    found = {agent.name: (agent.settings.relative_to(HOME).as_posix(), agent.in_project) for agent in connections(PLACES)}

    assert found == {
        "claude-code": (".claude.json", "CLAUDE.md"),
        "codex": (".codex/config.toml", "AGENTS.md"),
        "gemini-cli": (".gemini/settings.json", "GEMINI.md"),
        "cursor": (".cursor/mcp.json", "AGENTS.md"),
        "cline": (".cline/data/settings/cline_mcp_settings.json", "AGENTS.md"),
        "roo": (".config/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json", "AGENTS.md"),
        "vscode": (".config/Code/User/mcp.json", "AGENTS.md"),
        "opencode": (".config/opencode/opencode.json", "AGENTS.md"),
    }


def test_claude_code_apart_keeps_its_file_in_its_folder() -> None:
    from dataclasses import replace

    apart = replace(PLACES, claude=HOME / "apart", claude_apart=True)

    assert connection("claude-code", apart).settings == HOME / "apart" / ".claude.json"


def test_an_extension_is_met_where_it_has_been(tmp_path: Path) -> None:
    from dataclasses import replace

    older, newer = tmp_path / "older", tmp_path / "newer"
    (older / "settings").mkdir(parents=True)
    (older / "settings" / "cline_mcp_settings.json").write_text("{}")

    agent = connection("cline", replace(PLACES, cline=(older, newer)))

    assert agent.settings == older / "settings" / "cline_mcp_settings.json"


def test_an_unknown_agent_learns_which_there_are() -> None:
    with pytest.raises(UsageError) as raised:
        connection("clippy", PLACES)

    assert "opencode" in raised.value.hint


TEXTS = st.text(alphabet="ab \n\r#<!->", max_size=60)


@given(before=st.none() | TEXTS)
def test_two_lines_go_in_and_come_out(before: str | None) -> None:
    plan = instructions.plan_add(before)
    text = after(plan)

    back = instructions.plan_remove(text, [before])
    without = instructions.plan_remove(text)

    assert text.replace("\r\n", "\n").count(instructions.BLOCK) == 1 and (before or "").strip() in text
    assert isinstance(back, Edit) and back.after == before
    assert isinstance(without, Edit) and (without.after or "").rstrip() == (before or "").rstrip()
    assert isinstance(instructions.plan_add(text), Nothing)


@given(before=TEXTS, later=TEXTS)
def test_what_a_person_wrote_around_the_lines_stays(before: str, later: str) -> None:
    text = after(instructions.plan_add(before)) + later

    removed = instructions.plan_remove(text)

    assert isinstance(removed, Edit)
    assert (removed.after is None) == (not (before + later).strip())
    if removed.after is not None:
        assert removed.after.startswith(before.rstrip("\n") if before.strip() else "")
        assert removed.after.endswith(later)


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text.replace(instructions.END, ""),
        lambda text: text.replace(instructions.BEGIN, ""),
        lambda text: text * 2,
    ],
)
def test_lines_with_half_their_marks_are_left_to_the_person(damage: Callable[[str], str]) -> None:
    with pytest.raises(SettingsUnreadable):
        instructions.plan_add(damage(instructions.BLOCK))


def test_an_older_block_is_brought_up_to_date_where_it_stands() -> None:
    text = f"# Mine\n\n{instructions.BEGIN}\nold words\n{instructions.END}\n\nmore of mine\n"

    assert after(instructions.plan_add(text)) == f"# Mine\n\n{instructions.BLOCK}\nmore of mine\n"
