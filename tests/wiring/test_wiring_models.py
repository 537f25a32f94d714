"""From the configuration to a model: who is asked, and who is not."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kite_memory.config import Config, ExtractorConfig, JudgeMode
from kite_memory.distill.extractor import Answer, Misconfigured, Sharing, Usage
from kite_memory.distill.outbox import Outbox
from kite_memory.extensions.contract.extractor_contract import about_the_queue, answer_to
from kite_memory.keys import Keys
from kite_memory.model.hit import Judged
from kite_memory.wiring.models import extractor_of, judge_of
from tests.fakes.anthropic_server import anthropic_server, text_message
from tests.fakes.judges import question, verdict_on
from tests.fakes.openai_server import completion, openai_server


@pytest.fixture
def outbox(tmp_path: Path) -> Iterator[Outbox]:
    box = Outbox(tmp_path / "outbox.sqlite")
    yield box
    box.close()


@pytest.fixture(autouse=True)
def _no_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def config_for(home: Path, name: str = "auto", *, judge: JudgeMode = "late", base_url: str = "") -> Config:
    return Config(
        file=home / "config.toml",
        state=home / "state",
        vault=home / "vault",
        claude_root=home / "claude",
        extractor=ExtractorConfig(name=name, base_url=base_url),
        judge=judge,
    )


def keys_with(home: Path, **environment: str) -> Keys:
    return Keys(home / "keys.toml", environment, None)


ANTHROPIC = {"ANTHROPIC_API_KEY": "sk-ant-invented"}
OPENAI = {"OPENAI_API_KEY": "sk-invented"}


@pytest.mark.parametrize(
    ("name", "keys", "chosen"),
    [
        ("auto", {}, "offline"),
        ("auto", OPENAI, "offline"),
        ("auto", ANTHROPIC, "anthropic"),
        ("anthropic", ANTHROPIC, "anthropic"),
        ("openai", OPENAI, "openai"),
        ("claude-cli", {}, "claude-cli"),
        ("offline", ANTHROPIC, "offline"),
    ],
)
def test_extractor_and_judge_ask_the_same_model_or_none(
    tmp_path: Path, outbox: Outbox, name: str, keys: dict[str, str], chosen: str
) -> None:
    config, kept = config_for(tmp_path, name), keys_with(tmp_path, **keys)

    extractor, judge = extractor_of(config, kept), judge_of(config, kept, outbox)

    assert extractor.name == chosen
    assert (judge.name.split(":")[0] if judge else "offline") == chosen


@pytest.mark.parametrize("name", ["anthropic", "openai"])
def test_a_model_that_was_asked_for_but_has_no_key_answers_nothing_and_says_so(tmp_path: Path, outbox: Outbox, name: str) -> None:
    config, kept = config_for(tmp_path, name), keys_with(tmp_path)

    extractor = extractor_of(config, kept)
    ending = extractor.extract(about_the_queue())

    assert extractor.name == name
    assert extractor.estimate(about_the_queue()) == Usage()
    assert isinstance(ending, Misconfigured)
    assert (ending.reason, f"kmem keys set {name}" in ending.hint) == (f"the extractor `{name}` has no key", True)
    assert judge_of(config, kept, outbox) is None


def test_no_one_judges_where_that_is_off(tmp_path: Path, outbox: Outbox) -> None:
    assert judge_of(config_for(tmp_path, judge="off"), keys_with(tmp_path, **ANTHROPIC), outbox) is None


def test_a_server_on_this_machine_needs_no_key(tmp_path: Path, outbox: Outbox, monkeypatch: pytest.MonkeyPatch) -> None:
    with openai_server(lambda asked: completion(json.dumps(answer_to(asked["messages"][1]["content"])))) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        outcome = extractor_of(config_for(tmp_path, "openai"), keys_with(tmp_path)).extract(about_the_queue())

    assert isinstance(outcome, Answer)
    assert server.requests[0]["model"] == ExtractorConfig().openai_model


def test_the_configured_address_goes_before_the_environments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    with openai_server(lambda asked: completion(json.dumps(answer_to(asked["messages"][1]["content"])))) as server:
        config = config_for(tmp_path, "openai", base_url=server.url)
        outcome = extractor_of(config, keys_with(tmp_path)).extract(about_the_queue())

    assert isinstance(outcome, Answer)


def test_the_judge_takes_its_share_of_the_day_and_no_more(tmp_path: Path, outbox: Outbox) -> None:
    with anthropic_server(lambda asked: text_message(json.dumps(verdict_on(asked["messages"][0]["content"])))) as server:
        config = config_for(tmp_path, base_url=server.url)
        config = replace(config, extractor=replace(config.extractor, calls_per_day=8, judge_share=0.25))
        judge = judge_of(config, keys_with(tmp_path, **ANTHROPIC), outbox)
        assert judge is not None
        judged = [judge.judge(question(), seconds=300) for _ in range(4)]

    assert [isinstance(each, Judged) for each in judged] == [True, True, False, False]
    assert len(server.requests) == 2


def test_a_person_may_word_the_judges_prompt(tmp_path: Path, outbox: Outbox) -> None:
    (tmp_path / "prompts" / "judge").mkdir(parents=True)
    (tmp_path / "prompts" / "judge" / "system.md").write_text("Name what a pirate would name.")
    with anthropic_server(lambda asked: text_message('{"any": 1, "notes": []}')) as server:
        judge = judge_of(config_for(tmp_path, base_url=server.url), keys_with(tmp_path, **ANTHROPIC), outbox)
        assert judge is not None
        judge.judge(question(), seconds=300)

    assert server.requests[0]["system"][0]["text"] == "Name what a pirate would name."


def test_asking_whether_it_shares_calls_does_not_load_the_offline_rules(tmp_path: Path) -> None:
    rules = extractor_of(config_for(tmp_path, "offline"), Keys(tmp_path / "keys.toml", {}, None))

    assert not isinstance(rules, Sharing)
    assert "_rules" not in vars(rules)
