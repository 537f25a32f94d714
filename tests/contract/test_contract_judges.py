"""Every judge that ships, and the fake, keep the same promises."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kite_memory.distill import extractor
from kite_memory.distill.anthropic_api import AnthropicBackend
from kite_memory.distill.budget import Allowance, Budget
from kite_memory.distill.claude_cli import ClaudeCliBackend
from kite_memory.distill.extractor import Backend, Prices
from kite_memory.distill.judge import ModelJudge
from kite_memory.distill.openai_api import OpenAiBackend
from kite_memory.distill.outbox import Outbox
from kite_memory.model.hit import Judge
from kite_memory.wiring.models import RedactingBackend
from tests.contract.judge_contract import JudgeContract
from tests.fakes.anthropic_server import anthropic_server, text_message
from tests.fakes.claude_command import claude_command
from tests.fakes.judges import ScriptedBackend, ScriptedJudge, verdict_on
from tests.fakes.openai_server import completion, openai_server

PROMPT = extractor.load_prompt([Path(__file__).parents[2] / "prompts"], "judge")
PRICES = Prices(dollars_in=1.0, dollars_out=5.0)


@pytest.fixture
def outbox(tmp_path: Path) -> Iterator[Outbox]:
    box = Outbox(tmp_path / "outbox.sqlite")
    yield box
    box.close()


def over(backend: Backend, outbox: Outbox) -> ModelJudge:
    allowance = Allowance(outbox=outbox, budget=Budget(dollars=100.0, calls=1_000), share=0.5, clock=lambda: 0.0)
    return ModelJudge(backend=backend, prompt=PROMPT, allowance=allowance)


class TestScripted(JudgeContract):
    @pytest.fixture
    def judge(self) -> Iterator[Judge]:
        yield ScriptedJudge()


class TestScriptedModel(JudgeContract):
    @pytest.fixture
    def judge(self, outbox: Outbox) -> Iterator[Judge]:
        yield over(ScriptedBackend(), outbox)


class TestAnthropic(JudgeContract):
    @pytest.fixture
    def judge(self, outbox: Outbox) -> Iterator[Judge]:
        def reply(asked: dict[str, Any]) -> dict[str, Any]:
            return text_message(json.dumps(verdict_on(asked["messages"][0]["content"])))

        with anthropic_server(reply) as server:
            yield over(
                RedactingBackend(AnthropicBackend(api_key="key", model="claude-x", prices=PRICES, base_url=server.url)), outbox
            )


class TestOpenAi(JudgeContract):
    @pytest.fixture
    def judge(self, outbox: Outbox) -> Iterator[Judge]:
        def reply(asked: dict[str, Any]) -> dict[str, Any]:
            return completion(json.dumps(verdict_on(asked["messages"][1]["content"])))

        with openai_server(reply) as server:
            yield over(RedactingBackend(OpenAiBackend(api_key="", model="qwen3:8b", prices=PRICES, base_url=server.url)), outbox)


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is a script with a first line")
class TestClaudeCli(JudgeContract):
    @pytest.fixture
    def judge(self, outbox: Outbox, tmp_path: Path) -> Iterator[Judge]:
        body = (
            f"sys.path.insert(0, {str(Path(__file__).parents[2])!r})\n"
            "from tests.fakes.judges import verdict_on\n"
            "usage = {'input_tokens': 900, 'output_tokens': 20}\n"
            "print(json.dumps({'is_error': False, 'structured_output': verdict_on(asked), 'usage': usage}))"
        )
        command = claude_command(tmp_path, body)
        yield over(
            RedactingBackend(ClaudeCliBackend(folder=tmp_path / "ours", prices=PRICES, environment=command.environment)), outbox
        )
