"""Who makes the notes: asked once of a person who is there, remembered, and reported in their words."""

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from kite_memory.cli.everyday import warn_of_a_relative_home
from kite_memory.cli.first_run import LocalServer, first_summary, hook_agents, local_servers, offered
from kite_memory.config import Config, ExtractorConfig
from kite_memory.distill.extractor import Prices
from kite_memory.distill.model_extractor import MOST_TOGETHER, SHORT, Backlog, Bill, Tariff
from kite_memory.wiring.models import prices_of, tariff_of
from tests.fakes.lived_in import lived_in

SERVER = LocalServer(name="Ollama", address="http://127.0.0.1:11434/v1", model="qwen3:8b")
BILL = Bill(chunks=30, calls=12, fresh=150_000, tokens_out=12_000)
TARIFF = Tariff(fixed=2_500)
Dollars = tuple[float, float]


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    return Config(
        file=tmp_path / "config.toml", state=tmp_path / "state", vault=tmp_path / "vault", claude_root=tmp_path / "claude"
    )


def test_the_first_summary_asks_what_a_note_answers_and_shows_no_doubtful_one(tmp_path: Path) -> None:
    with lived_in(tmp_path, datetime.now(UTC)) as services:
        summary = first_summary(services)
        question = summary.partition('kmem ask "')[2].partition('"')[0]
        answer = services.operations.perform("ask", {"question": question, "offline": True})

    assert question == "why PostgreSQL over SQLite for the job queue?"
    assert "row locks keep them apart" in answer["sentences"][0]["text"]
    assert "retried five times" not in summary  # it waits for review
    assert "The night run fails" not in summary  # a state that may have changed


def test_without_a_note_no_question_is_proposed(tmp_path: Path) -> None:
    with lived_in(tmp_path, datetime.now(UTC)) as services:
        for entry in services.vault.notes.entries():
            (services.vault.root / entry.path).unlink()
        summary = first_summary(services)

    assert "kmem ask" not in summary
    assert "kmem web" in summary


def test_settings_of_an_agent_that_is_not_there_are_not_offered(
    config: Config, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "USERPROFILE", "XDG_CONFIG_HOME", "CODEX_HOME", "GEMINI_CLI_HOME", "COPILOT_HOME", "CLINE_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "home"))

    assert hook_agents(config, yes=True)
    assert not config.claude_root.exists()
    assert "no agent was found that runs hooks" in capsys.readouterr().err

    config.claude_root.mkdir()
    assert hook_agents(config, yes=True)
    assert (config.claude_root / "settings.json").exists()


def test_rules_come_first_and_are_all_there_is_without_a_model(config: Config) -> None:
    (only,) = offered(config, BILL, [])

    assert only.settings == [("extractor.name", "offline")]


def test_each_model_that_is_there_is_offered_with_its_calls_and_its_cost(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "claude").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "claude").chmod(0o755)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-invented")

    choices = list(offered(config, BILL, [SERVER]))

    assert [dict(choice.settings)["extractor.name"] for choice in choices] == ["offline", "claude-cli", "anthropic", "openai"]
    assert all("about 12 calls" in choice.description for choice in choices[1:])
    assert ["$0.21 at list prices" in choice.description for choice in choices] == [False, True, False, False]
    assert ["$0.02;" in choice.description for choice in choices] == [False, False, True, False]
    assert dict(choices[-1].settings)["extractor.base_url"] == SERVER.address


@pytest.fixture
def port() -> Iterator[int]:
    class Models(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            fields = {
                "data": [{"id": "nomic-embed-text"}, {"id": 7}, "odd", {"id": "bad\x1b[2J"}, {"id": "qwen3:8b"}, {"id": "late"}]
            }
            self.send_response(200 if self.path == "/v1/models" else 404)
            self.end_headers()
            self.wfile.write(json.dumps(fields).encode())

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Models)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_port
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_server_on_this_machine_is_found_by_its_port_with_a_model_that_can_write(port: int) -> None:
    (found,) = local_servers([("Ollama", port), ("LM Studio", 1)])

    assert found == LocalServer(name="Ollama", address=f"http://127.0.0.1:{port}/v1", model="qwen3:8b")


def test_short_chunks_are_reckoned_together_and_long_ones_alone() -> None:
    short, long = Backlog(lengths=[2_000] * 24).bill(TARIFF), Backlog(lengths=[SHORT + 1] * 24).bill(TARIFF)

    assert short.calls == 24 / MOST_TOGETHER
    assert long.calls == 24


def test_what_is_looked_at_in_part_counts_for_all() -> None:
    some, whole = Backlog(lengths=[20_000] * 5, each=4).bill(TARIFF), Backlog(lengths=[20_000] * 20).bill(TARIFF)

    assert some == whole


def test_the_fixed_part_is_paid_once_where_the_model_caches_it() -> None:
    backlog = Backlog(lengths=[SHORT + 1] * 24)
    plain, cached = backlog.bill(TARIFF), backlog.bill(Tariff(fixed=2_500, cached=True))

    assert plain.tokens_in == cached.tokens_in
    assert (cached.written, cached.read) == (2_500, 23 * 2_500)
    saved = plain.dollars(Prices(dollars_in=1, dollars_out=5)) - cached.dollars(Prices(dollars_in=1, dollars_out=5))
    assert saved == pytest.approx((24 - 1.25 - 23 * 0.1) * 2_500 / 1_000_000)


@pytest.mark.parametrize(
    ("extractor", "dollars"),
    [
        (ExtractorConfig(), (0.1, 0.5)),
        (ExtractorConfig(model="claude-haiku-4-5"), (1.0, 5.0)),
        (ExtractorConfig(model="claude-sonnet-5-5-20260901"), (2.0, 10.0)),
        (ExtractorConfig(name="openai"), (1.0, 5.0)),
        (ExtractorConfig(dollars_per_million_in=0, dollars_per_million_out=7), (0.0, 7.0)),
    ],
)
def test_the_price_is_the_models_unless_one_is_set(
    config: Config, extractor: ExtractorConfig, dollars: tuple[float, float]
) -> None:
    prices = prices_of(replace(config, extractor=extractor))

    assert (prices.dollars_in, prices.dollars_out) == dollars


@pytest.mark.parametrize(("model", "cached"), [("claude-haiku-5-5", True), ("claude-haiku-4-5", False)])
def test_a_cache_counts_where_the_fixed_part_is_above_the_models_minimum(config: Config, model: str, cached: bool) -> None:
    assert tariff_of(replace(config, extractor=ExtractorConfig(model=model))).cached is cached


@pytest.mark.parametrize(("home", "warned"), [("try", True), ("/try", False), ("", False)])
def test_a_relative_home_is_warned_of(
    home: str, warned: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KMEM_HOME", home)

    warn_of_a_relative_home()

    assert ("so another folder has another memory" in capsys.readouterr().err) == warned
