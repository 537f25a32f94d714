import dataclasses
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory import config, paths
from kite_memory.config import Config, DaemonConfig, EmbedderConfig, ExtractorConfig, RecallConfig, extension_storages, user_folder
from kite_memory.errors import ConfigInvalid

SECTIONS: dict[str, type] = {
    "extractor": ExtractorConfig,
    "embedder": EmbedderConfig,
    "recall": RecallConfig,
    "daemon": DaemonConfig,
}
OTHER: dict[tuple[str, str], Any] = {
    ("extractor", "name"): "offline",
    ("extractor", "model"): "claude-sonnet-5",
    ("extractor", "openai_model"): "qwen3:8b",
    ("extractor", "base_url"): "http://127.0.0.1:8080",
    ("extractor", "dollars_per_day"): 0.25,
    ("extractor", "calls_per_day"): 7,
    ("extractor", "dollars_per_million_in"): 3.0,
    ("extractor", "dollars_per_million_out"): 15.0,
    ("extractor", "judge_share"): 0.25,
    ("embedder", "name"): "local",
    ("embedder", "voyage_model"): "voyage-4",
    ("embedder", "voyage_base_url"): "http://127.0.0.1:8081",
    ("recall", "dial"): "quiet",
    ("recall", "threshold"): 0.6,
    ("recall", "notes_per_prompt"): 1,
    ("recall", "tokens_per_prompt"): 800,
    ("daemon", "idle_seconds"): 12.5,
    ("daemon", "compare_seconds"): 60.0,
    ("daemon", "log_level"): "debug",
}
"""A value for every setting that is not its default."""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    ours = ("KMEM_", "XDG_", "CLAUDE_", "CODEX_", "GEMINI_", "COPILOT_", "CLINE_", "VSCODE_", "AIDER_", "APPDATA")
    for name in [name for name in os.environ if name.startswith(ours)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    return tmp_path


def written(home: Path, text: str | bytes) -> Path:
    file = home / ".config" / "kite-memory" / "config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def toml(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def test_without_a_file_everything_has_a_default(home: Path) -> None:
    loaded = config.load()

    assert loaded == Config(
        file=home / ".config" / "kite-memory" / "config.toml",
        state=home / ".local" / "state" / "kite-memory",
        vault=home / ".kite" / "memory",
        claude_root=home / ".claude",
        codex_root=home / ".codex",
        gemini_root=home / ".gemini",
        copilot_root=home / ".copilot",
        cline_roots=(*storages(home, "saoudrizwan.claude-dev"), home / ".cline" / "data"),
        roo_roots=storages(home, "rooveterinaryinc.roo-cline"),
        aider_roots=(),
        opencode_root=home / ".local" / "share" / "opencode",
        cursor_root=user_folder("Cursor", environment={}, home=home, platform=sys.platform),
        cursor_cli_root=home / ".cursor",
        antigravity_root=home / ".gemini",
        kilo_root=home / ".local" / "share" / "kilo",
        pi_root=home / ".pi" / "agent",
        qwen_root=home / ".qwen",
        goose_roots=tuple(folder / "sessions" for folder in config.goose_folders(sys.platform)),
        droid_root=home / ".factory",
        git_history=True,
        extensions=True,
    )


def storages(home: Path, extension: str) -> tuple[Path, ...]:
    return extension_storages(extension, environment={}, home=home, platform=sys.platform)


@pytest.mark.parametrize(
    ("variable", "setting", "below"),
    [("COPILOT_HOME", "copilot_root", ""), ("CODEX_HOME", "codex_root", ""), ("GEMINI_CLI_HOME", "gemini_root", ".gemini")],
)
def test_an_agents_own_variable_says_where_it_is(
    home: Path, monkeypatch: pytest.MonkeyPatch, variable: str, setting: str, below: str
) -> None:
    monkeypatch.setenv(variable, str(home / "elsewhere"))

    assert getattr(config.load(), setting) == home / "elsewhere" / below


def test_clines_own_folder_can_be_another(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLINE_DIR", str(home / "elsewhere"))

    assert config.load().cline_roots[-1] == home / "elsewhere" / "data"


def test_projects_can_be_named_where_aider_is_looked_for(home: Path) -> None:
    written(home, 'projects = ["~/work/orchard"]')

    assert config.load().aider_roots == (home / "work" / "orchard",)


@pytest.mark.parametrize("value", ['"~/work"', "[1]", '["work/orchard"]', '["a\\u0000b"]'])
def test_projects_are_whole_paths(home: Path, value: str) -> None:
    written(home, f"projects = {value}")

    with pytest.raises(ConfigInvalid):
        config.load()


def test_there_is_another_value_for_every_setting() -> None:
    assert set(OTHER) == {(name, setting.name) for name, kind in SECTIONS.items() for setting in dataclasses.fields(kind)}


@pytest.mark.parametrize(("section", "key"), OTHER)
def test_every_setting_can_be_set(home: Path, section: str, key: str) -> None:
    written(home, f"[{section}]\n{key} = {toml(OTHER[section, key])}\n")

    loaded = config.load()

    assert getattr(getattr(loaded, section), key) == OTHER[section, key]
    everything_else = dataclasses.replace(getattr(loaded, section), **{key: getattr(SECTIONS[section](), key)})
    assert everything_else == SECTIONS[section]()


WRONG = ["[]", "{}", "true", "2026-03-01", "nan", "-inf", "inf", "-1", '"\\u0000"', "1e400", "9" * 400]


def may_be(section: str, key: str, value: str) -> bool:
    """Any text may be a model's name or an address, and an empty section says nothing."""
    is_free_text = isinstance(OTHER.get((section, key)), str) and key != "name"
    return (value.startswith('"') and is_free_text) or (value == "{}" and key in ("judge", "extractor", "vault"))


@pytest.mark.parametrize(
    ("section", "key", "wrong"),
    [
        (section, key, wrong)
        for section, key in [*OTHER, ("", "vault"), ("", "judge"), ("", "extractor")]
        for wrong in WRONG
        if not may_be(section, key, wrong)
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_by_its_name(home: Path, section: str, key: str, wrong: str) -> None:
    file = written(home, f"{f'[{section}]' if section else ''}\n{key} = {wrong}\n")

    with pytest.raises(ConfigInvalid, match=key) as refused:
        config.load()

    assert refused.value.exit_code == 2
    assert str(file) in str(refused.value) or key == "judge"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("vault = [", "is not valid TOML"),
        ("\xff", "is not valid TOML"),
        ("judge = " + "9" * 5_000, "is not valid TOML"),
        ("judge = " + "[" * 5_000, "is not valid TOML"),
        ("a.b = 1\na = 2", "is not valid TOML"),
        ("colour = 'red'", "unknown setting 'colour'"),
        ("[extractor]\ncolour = 'red'", "unknown setting 'colour' in \\[extractor\\]"),
        ("[judge]\ncolour = 'red'", "unknown setting 'colour' in \\[judge\\]"),
        ("[vault]\npath = 'x'", "is not a whole path: x"),
        ("[vault]\npath = 7", "`vault` in .* is not a path in quotes"),
        ("[vault]\ngit = 'often'", r"`git` in \[vault\] of .* should be true or false"),
        ("[vault]\njournal = 'daily'", r"`journal` in \[vault\] of .* should be true or false"),
        ("[vault]\nsync = true", r"unknown setting 'sync' in \[vault\]"),
        ("vault = 'notes'", "is not a whole path: notes"),
        ("vault = '~nobody-of-that-name/notes'", "no such home folder"),
        ("extractor = 'cheap'", "`extractor` in .* is not a section"),
        ("judge = 'early'", "`judge` in .* cannot be 'early'"),
        ("[judge]\nmode = 'early'", "`judge` in .* cannot be 'early'"),
        ("[recall]\nnotes_per_prompt = 3", "cannot be 3"),
        ("[recall]\ntokens_per_prompt = 1601", "cannot be 1601"),
        ('[recall]\ndial = "loud"', "cannot be 'loud'"),
        ("[recall]\ndial = 1", "cannot be 1"),
        ("[daemon]\ncompare_seconds = 0.1", "cannot be 0.1"),
    ],
)
def test_what_cannot_be_is_refused(home: Path, text: str, said: str) -> None:
    written(home, text.encode("latin-1"))

    with pytest.raises(ConfigInvalid, match=said):
        config.load()


def test_a_file_that_cannot_be_read_is_not_taken_for_an_empty_one(home: Path) -> None:
    written(home, "").unlink()
    (home / ".config" / "kite-memory" / "config.toml").mkdir()

    with pytest.raises(ConfigInvalid, match="cannot read"):
        config.load()


def test_windows_editors_may_leave_their_mark(home: Path) -> None:
    written(home, "\ufeff[extractor]\r\nmodel = 'x'\r\n")

    assert config.load().extractor.model == "x"


def test_the_environment_goes_before_the_file(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(home, "judge = 'wait'\n[extractor]\nname = 'anthropic'\nmodel = 'x'\n[embedder]\nname = 'voyage'\n")
    for name, value in {"KMEM_EXTRACTOR": "offline", "KMEM_EMBEDDER": "local", "KMEM_JUDGE": "off"}.items():
        monkeypatch.setenv(name, value)

    loaded = config.load()

    assert (loaded.extractor.name, loaded.embedder.name, loaded.judge) == ("offline", "local", "off")
    assert loaded.extractor.model == "x"


@pytest.mark.parametrize("name", ["KMEM_EXTRACTOR", "KMEM_EMBEDDER", "KMEM_JUDGE"])
def test_the_environment_is_checked_as_well(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "parrot")

    with pytest.raises(ConfigInvalid, match="cannot be 'parrot'") as refused:
        config.load()

    assert refused.value.hint.startswith("choose one of: ")


@pytest.mark.parametrize("name", ["KMEM_HOME", "KMEM_EXTRACTOR", "KMEM_EMBEDDER", "KMEM_JUDGE", "CLAUDE_CONFIG_DIR"])
def test_an_empty_variable_is_none(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    without = config.load()
    monkeypatch.setenv(name, "")

    assert config.load() == without


def test_kmem_home_sets_a_machine_apart(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    apart = home / "apart"
    apart.mkdir()
    (apart / "config.toml").write_text(f"vault = '{(home / 'elsewhere').as_posix()}'\njudge = 'off'\n")
    monkeypatch.setenv("KMEM_HOME", str(apart))

    loaded = config.load()

    assert (loaded.file, loaded.state, loaded.vault) == (apart / "config.toml", apart / "state", apart / "memory")
    assert loaded.judge == "off"


def test_every_path_is_whole_whatever_folder_the_daemon_starts_in(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    monkeypatch.setenv("KMEM_HOME", "apart")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "agent")

    loaded = config.load()

    assert loaded.claude_root == home / "agent"
    assert all(path.is_absolute() for path in (loaded.file, loaded.state, loaded.vault))


@pytest.mark.parametrize("name", ["KMEM_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"])
@pytest.mark.parametrize("value", ["~", "~/kite", "~\\kite"])
def test_no_memory_is_made_in_a_folder_called_tilde(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)

    with pytest.raises(ConfigInvalid, match=f"{name} begins with an unexpanded ~") as refused:
        config.load()

    assert refused.value.hint == "write the whole path, from / on"


@pytest.mark.skipif(sys.platform == "win32", reason="other paths there")
def test_hook_and_daemon_find_one_another_however_the_folder_is_spelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KMEM_HOME", raising=False)
    deep = tmp_path / ("d" * 90)
    monkeypatch.chdir(tmp_path)
    sockets = set()
    for spelled in (f"{deep}/s", f"{deep}//s/", f"{deep}/./s", f"{'d' * 90}/s"):
        monkeypatch.setenv("XDG_STATE_HOME", spelled)
        sockets |= {paths.socket_path(paths.state_dir()), paths.socket_path(str(config.load().state))}

    assert len(sockets) == 1


def test_the_configuration_is_called_by_its_whole_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KMEM_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", "settings")

    assert config.load().file == tmp_path / "settings" / "kite-memory" / "config.toml"


def test_a_vault_may_lie_in_the_home_folder(home: Path) -> None:
    written(home, "vault = '~/notes/kite'\n")

    assert config.load().vault == home / "notes" / "kite"


@pytest.mark.skipif(sys.platform == "win32", reason="other paths there")
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*SECTIONS, "name", "vault", "judge"]), inner),
    )
)
def test_whatever_a_file_says_it_is_a_configuration_or_refused(value: Any) -> None:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        text = tomlkit.dumps(value if isinstance(value, dict) else {"extractor": value})
    except (TOMLKitError, ValueError, TypeError):
        text = str(value)

    try:
        loaded = config.check(text.encode("utf-8", "replace"), Path("config.toml"))
    except ConfigInvalid as refused:
        assert "\n" not in str(refused) or "TOML" in str(refused)
    else:
        assert isinstance(loaded, Config)


def test_the_history_of_repositories_can_be_left_alone(home: Path) -> None:
    written(home, "git_history = false\n")

    assert not config.load().git_history


def test_whether_history_is_read_is_yes_or_no(home: Path) -> None:
    written(home, 'git_history = "sometimes"\n')

    with pytest.raises(ConfigInvalid, match="git_history"):
        config.load()


def test_goose_keeps_its_data_where_the_system_has_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("APPDATA", raising=False)
    shared = home / ".local" / "share" / "goose"

    assert config.goose_folders("linux") == (shared,)
    assert config.goose_folders("darwin") == (shared, home / "Library" / "Application Support" / "Block" / "goose")
    assert config.goose_folders("win32") == (home / "AppData" / "Roaming" / "Block" / "goose" / "data",)


def test_goose_is_looked_for_where_its_own_variable_says(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOSE_PATH_ROOT", str(home / "goose"))

    assert config.load().goose_roots == (home / "goose" / "data" / "sessions",)
