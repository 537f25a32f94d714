"""A person's own literals are never kept, and the list of them does not hold them."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kite_memory.cli.memory import team_search
from kite_memory.config import Config, EmbedderConfig, ExtractorConfig, TeamConfig
from kite_memory.errors import KiteError
from kite_memory.keys import keys_beside
from kite_memory.protected import protect_file, protected_file, protected_literals, read_literals
from kite_memory.redaction import redact
from kite_memory.redaction.cleaning import Literals, literal, protect
from kite_memory.wiring.models import backend_of, batches_of, second_embedder, team_recall_of
from kite_memory.wiring.services import open_services
from kite_memory.wiring.team import team_store
from tests.app.test_app_operations import config_in

ENV = """\
# settings of the orchard
export DB_HOST=db.orchard.example
DB_PASSWORD="blue pears in march"
PLAIN=orchard
PORT=5432
GATE_CODE='rain-bucket'
DATABASE_URL=postgres://ada:quincejam@db.orchard.example/fruit
"""


@pytest.fixture(autouse=True)
def _nothing_protected_afterwards() -> object:
    yield
    protect(None)


def test_a_protected_literal_is_redacted_wherever_it_stands(tmp_path: Path) -> None:
    env, config = tmp_path / ".env", tmp_path / "config.toml"
    env.write_text(ENV)
    protect_file(env, config)

    protect(protected_literals(config))

    assert redact("I typed blue pears in march there.") == "I typed [redacted:protected] there."
    assert "quincejam" not in redact("x/quincejam/y")
    assert redact("orchard on 5432 at db.orchard.example") == "orchard on 5432 at db.orchard.example"


def test_a_literal_protected_later_is_redacted_in_a_text_that_was_let_through(tmp_path: Path) -> None:
    text = "Ada wrote blue pears in march on the gate."
    assert redact(text) == text
    env, config = tmp_path / ".env", tmp_path / "config.toml"
    env.write_text(ENV)
    protect_file(env, config)

    protect(protected_literals(config))

    assert redact(text) == "Ada wrote [redacted:protected] on the gate."


def test_what_is_not_protected_any_more_stays(tmp_path: Path) -> None:
    env, config = tmp_path / ".env", tmp_path / "config.toml"
    env.write_text(ENV)
    protect_file(env, config)
    protect_file(env, config, forget=True)

    protect(protected_literals(config))

    assert redact("quincejam") == "quincejam"


def test_the_list_holds_no_literal_and_is_private(tmp_path: Path) -> None:
    env, config = tmp_path / ".env", tmp_path / "config.toml"
    env.write_text(ENV)

    said = protect_file(env, config)

    kept = protected_file(config)
    assert not any(word in said + kept.read_text() for word in ("quincejam", "blue pears", "rain-bucket"))
    assert kept.stat().st_mode & 0o077 == 0


def test_of_netrc_only_passwords_are_protected(tmp_path: Path) -> None:
    file = tmp_path / ".netrc"
    file.write_text("machine git.orchard.example login ada password quincejam\n")
    file.chmod(0o600)

    assert read_literals(file).literals == ("quincejam",)


def test_of_netrc_the_passwords_of_all_logins_of_a_machine_are_protected(tmp_path: Path) -> None:
    file = tmp_path / ".netrc"
    file.write_text(
        "machine git.orchard.example login ada password quincejam  # password ladderhook\n"
        "machine git.orchard.example\n  login bob\n  password #medlar-jelly\n"
        'machine password login user password "sloe \\" gin"\ndefault login anyone password damson-tart\n'
    )

    assert read_literals(file).literals == ("quincejam", "#medlar-jelly", 'sloe \\" gin', 'sloe " gin', "damson-tart")


@pytest.mark.parametrize(
    ("line", "literals"),
    [
        (r'DB_PASSWORD="blue\"pears-in" # old', (r"blue\"pears-in", 'blue"pears-in')),
        ('DB_PASSWORD="blue-pears"-in-march', ("blue-pears", "blue-pears-in-march")),
        (r"DB_PASSWORD='blue\pears'", (r"blue\pears",)),
    ],
)
def test_a_quoted_value_is_protected_whole_and_as_a_shell_reads_it(tmp_path: Path, line: str, literals: tuple[str, ...]) -> None:
    file = tmp_path / ".env"
    file.write_text(f"{line}\n")

    assert read_literals(file).literals == literals


def test_a_damaged_list_is_an_error_and_not_an_empty_one(tmp_path: Path) -> None:
    protected_file(tmp_path / "config.toml").write_text(json.dumps({"key": "zz"}))

    with pytest.raises(KiteError, match="damaged"):
        protected_literals(tmp_path / "config.toml")


def test_opened_services_protect_them(tmp_path: Path) -> None:
    config = config_in(tmp_path)
    (tmp_path / ".env").write_text(ENV)
    protect_file(tmp_path / ".env", config.file)

    with open_services(config) as services:
        services.init_vault()
        services.operations.perform("remember", {"text": "The gate opens with quincejam in the evening."})

        assert services.operations.perform("search", {"query": "gate evening"})["hits"][0]["title"].startswith(
            "The gate opens with [redacted"
        )


@pytest.mark.parametrize("word", ["pear-tree-7", "грушевый сад", "日本の梨園です", "🍐🍐🍐🍐🍐🍐", "a" * 300])
def test_a_literal_is_found_at_every_place(word: str) -> None:
    known = Literals(key=b"key", known=(literal(b"key", word),))

    assert known.find(f"{word} and é{word}")[0][:2] == (0, len(word))
    assert known.find(f"x🍐{word}")[-1][:2] == (2, 2 + len(word))
    assert known.find(word[:-1]) == []


WAYS_OUT: dict[str, Callable[[Config], object]] = {
    "a search at the team": lambda config: team_search(config, "blue pears in march", project="", limit=1, seconds=0.0),
    "a prompt at the team": lambda config: team_recall_of(config, keys_beside(config.file)),
    "the team's store": lambda config: team_store(config, "postgresql://nobody@127.0.0.1:9/none"),
    "an embedder": lambda config: second_embedder(config, keys_beside(config.file)),
    "a model": lambda config: backend_of(config, keys_beside(config.file)),
    "a batch for a model": lambda config: batches_of(config, keys_beside(config.file)),
}


@pytest.mark.parametrize("way", WAYS_OUT)
def test_a_protected_literal_takes_no_way_out(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KMEM_TEAM_TOKEN", "VOYAGE_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "an-invented-key")
    monkeypatch.setattr("kite_memory.wiring.models.voyage_command", str)
    config = Config(
        file=tmp_path / "config.toml",
        state=tmp_path,
        vault=tmp_path,
        claude_root=tmp_path,
        team=TeamConfig(ask="search" if "search" in way else "prompt", bridge="http://127.0.0.1:9/mcp"),
        embedder=EmbedderConfig(name="voyage"),
        extractor=ExtractorConfig(name="anthropic"),
    )
    (tmp_path / ".env").write_text(ENV)
    protect_file(tmp_path / ".env", config.file)

    try:
        WAYS_OUT[way](config)
    except KiteError:  # no server is there
        assert way == "the team's store"

    assert redact("blue pears in march") == "[redacted:protected]"
