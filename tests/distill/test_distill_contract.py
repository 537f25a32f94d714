"""Every extractor that ships keeps the same promises."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kite_memory.distill.anthropic_api import AnthropicBackend
from kite_memory.distill.claude_cli import ClaudeCliBackend
from kite_memory.distill.extractor import Extractor, Prices, load_prompt
from kite_memory.distill.model_extractor import ModelExtractor
from kite_memory.distill.offline import OfflineExtractor
from kite_memory.distill.openai_api import OpenAiBackend
from kite_memory.extensions.contract.extractor_contract import ExtractorContract, answer_to
from kite_memory.wiring.models import RedactingBackend
from tests.fakes.anthropic_server import anthropic_server, text_message
from tests.fakes.claude_command import claude_command
from tests.fakes.openai_server import completion, openai_server

PROMPT = load_prompt([Path(__file__).parents[2] / "prompts"])
PRICES = Prices(dollars_in=1.0, dollars_out=5.0)


class TestOffline(ExtractorContract):
    @pytest.fixture
    def extractor(self) -> Iterator[Extractor]:
        yield OfflineExtractor()


class TestAnthropic(ExtractorContract):
    @pytest.fixture
    def extractor(self) -> Iterator[Extractor]:
        def reply(asked: dict[str, Any]) -> dict[str, Any]:
            said = json.dumps(answer_to(asked["messages"][0]["content"]))
            size = len(json.dumps(asked, ensure_ascii=False))
            return text_message(said, usage={"input_tokens": size // 3, "output_tokens": len(said) // 3})

        with anthropic_server(reply) as server:
            backend = AnthropicBackend(api_key="key", model="claude-x", prices=PRICES, base_url=server.url)
            yield ModelExtractor(backend=RedactingBackend(backend), prompt=PROMPT, seconds=30)


class TestOpenAi(ExtractorContract):
    @pytest.fixture
    def extractor(self) -> Iterator[Extractor]:
        def reply(asked: dict[str, Any]) -> dict[str, Any]:
            said = json.dumps(answer_to(asked["messages"][1]["content"]))
            size = len(json.dumps(asked, ensure_ascii=False))
            return completion(said, usage={"prompt_tokens": size // 3, "completion_tokens": len(said) // 3})

        with openai_server(reply) as server:
            backend = OpenAiBackend(api_key="", model="qwen3:8b", prices=PRICES, base_url=server.url)
            yield ModelExtractor(backend=RedactingBackend(backend), prompt=PROMPT, seconds=30)


class TestClaudeCli(ExtractorContract):
    @pytest.fixture
    def extractor(self, tmp_path: Path) -> Iterator[Extractor]:
        body = (
            f"sys.path.insert(0, {str(Path(__file__).parents[2])!r})\n"
            "from kite_memory.extensions.contract.extractor_contract import answer_to\n"
            "answer = answer_to(asked)\n"
            "usage = {'input_tokens': (len(asked) + sum(map(len, sys.argv))) // 3, 'output_tokens': 100}\n"
            "dollars = (usage['input_tokens'] + 5 * 100) / 1_000_000\n"
            "print(json.dumps({'is_error': False, 'structured_output': answer, 'usage': usage, 'total_cost_usd': dollars}))"
        )
        command = claude_command(tmp_path, body)
        backend = ClaudeCliBackend(folder=tmp_path / "ours", prices=PRICES, environment=command.environment)
        yield ModelExtractor(backend=RedactingBackend(backend), prompt=PROMPT, seconds=60)
