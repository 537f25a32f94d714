"""However a model fails, no chunk is lost, no note doubled, no budget overrun, and waiting for it takes no memory."""

import json
import random
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from kite_memory.distill.anthropic_api import AnthropicBackend
from kite_memory.distill.budget import Budget
from kite_memory.distill.condense import ChunkPolicy, Span
from kite_memory.distill.extractor import Busy, Extractor, Outcome, Prices, Refused, Usage, load_prompt
from kite_memory.distill.model_extractor import ModelExtractor
from kite_memory.distill.outbox import Outbox
from kite_memory.distill.scheduler import ChunkHandled, Scheduler
from kite_memory.extensions.contract.extractor_contract import about_the_queue, answer, item
from kite_memory.model.note import Chunk
from kite_memory.wiring.models import RedactingBackend
from tests.counts import how_many
from tests.crash.harness import Places, Writer
from tests.e2e.kmem import PROJECT
from tests.fakes.anthropic_server import AnthropicServer, Json, Raw, anthropic_server, api_error, text_message
from tests.fakes.extractors import plain_answer
from tests.fakes.services import fake_services
from tests.goals.outage import Clock

PROMPT = load_prompt([PROJECT / "prompts"])
POLICY = ChunkPolicy(target=400, most=1500, idle=0.0, stalled=0.0)
PATIENCE = 0.3
"""Seconds for a call, here; a server that hangs is let go then."""

TOO_MANY = api_error(429, "rate_limit_error", "slow down", headers={"retry-after": "1000000000"})
MAY_PASS = {
    "429": api_error(429, "rate_limit_error", "slow down"),
    "429 for ever": TOO_MANY,
    "529": api_error(529, "overloaded_error", "Overloaded"),
    "500": api_error(500, "api_error", "Internal server error"),
    "HTML": Raw(body="<!doctype html><title>Sign in to the network</title>"),
    "bad gateway": Raw(status=502, body="<html><h1>Bad gateway</h1>"),
    "half its JSON": Raw(body='{"type": "message", "content": [{"type": "te'),
    "reset": Raw(reset=True),
}
SELDOM = {"hang": Raw(hang=30)}
"""As those, but each costs us our patience."""

FINAL = {
    "refusal": text_message("", stop_reason="refusal"),
    "max_tokens": text_message('{"topics": [{"na', stop_reason="max_tokens"),
    "wrong schema": text_message('{"topics": "none", "notes": 7}'),
    "no JSON": text_message("I would rather talk about the weather."),
}
"""Such an answer is the chunk's last: asked again it would be the same, and cost the same."""


class FaultyModel:
    """Four calls of five go wrong; each good answer has words of its own. Remembers what was last said of each chunk."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._lock = threading.Lock()
        self.faults = 0
        self.last: dict[str, str] = {}
        self.kinds: Counter[str] = Counter()

    def __call__(self, request: Json) -> Json | Raw:
        encoded = json.dumps(request["messages"])
        with self._lock:
            kind, reply = self._reply(encoded)
            self.kinds[kind] += 1
            self.faults += kind != "good"
            for token in set(re.findall(r"matter-\d+", encoded)):
                self.last[token] = kind
            return reply

    def _reply(self, text: str) -> tuple[str, Json | Raw]:
        drawn = self._chance.random()
        if drawn < 0.01:
            return self._chance.choice([*SELDOM.items()])
        if drawn < 0.75:
            return self._chance.choice([*MAY_PASS.items()])
        if drawn < 0.80:
            return self._chance.choice([*FINAL.items()])
        items = [
            item(
                kind="fact",
                evidence=[evidence],
                title=f"{self._chance.getrandbits(40):010x} {token}",
                body=f"The gardener said of {token}: {self._chance.getrandbits(60):015x} in the greenhouse.",
                rejected=[],
                entities=[],
                triggers=[],
            )
            for evidence, token in re.findall(r"\[(\d{4,})\][^\[]*?(matter-\d+)", text)
        ]
        return "good", text_message(json.dumps(answer(*items)))


def through(server: AnthropicServer) -> ModelExtractor:
    backend = AnthropicBackend(
        api_key="sk-test", model="claude-haiku-4-5", prices=Prices(dollars_in=1.0, dollars_out=5.0), base_url=server.url
    )
    return ModelExtractor(backend=RedactingBackend(backend), prompt=PROMPT, seconds=PATIENCE)


class GivesUp:
    """The planted bug: what may pass is taken for final."""

    name, version = "gives-up", "1"

    def __init__(self, inner: Extractor) -> None:
        self._inner = inner

    def estimate(self, chunk: Chunk) -> Usage:
        return self._inner.estimate(chunk)

    def extract(self, chunk: Chunk) -> Outcome:
        outcome = self._inner.extract(chunk)
        return Refused(reason=outcome.reason) if isinstance(outcome, Busy) else outcome


def lost_and_doubled(home: Path, model: FaultyModel, extractor: Extractor, faults: int) -> list[str]:
    """What is wrong after so many faulty calls, and after as many more as it takes to have asked about everything."""
    places, clock = Places(home), Clock()
    places.projects.mkdir(parents=True)
    places.state.mkdir(mode=0o700)
    writer = Writer(places.projects, random.Random(3), old=True)
    with fake_services(home, extractor, policy=POLICY, clock=clock) as services:
        while model.faults < faults:
            for _ in range(10):
                writer.go_on()
            services.pipeline.ingest_many([(source, path) for source, path, _ in services.pipeline.unread()])
            services.pipeline.open_sessions()
            services.pipeline.form_chunks()
            for _ in range(200):
                if clock.after(services.pipeline.distil()):
                    break
        writer.finish()
        services.pipeline.ingest_many([(source, path) for source, path, _ in services.pipeline.unread()])
        services.pipeline.open_sessions()
        services.pipeline.form_chunks()
        while (
            not clock.after(services.pipeline.distil()) or services.outbox.retry()
        ):  # what was set aside, a person asks about again
            pass
        states = services.outbox.states()
        noted = Counter(
            word
            for entry in services.vault.notes.entries()
            if (note := services.vault.notes.read(entry.path))
            for word in tokens(note.body)
        )
    listed = [f"chunks left: {states}"] if set(states) - {"written", "nothing", "refused"} else []
    listed += [f"asked, answered, lost: {token}" for token, kind in model.last.items() if kind == "good" and token not in noted]
    listed += [f"given up: {token} after {kind}" for token, kind in model.last.items() if kind not in (*FINAL, "good")]
    listed += [f"never asked about: {token}" for token in writer.written.values() if token not in model.last]
    listed += [f"doubled: {token}" for token, count in noted.items() if count > 1]
    return listed


def tokens(body: str) -> set[str]:
    return set(re.findall(r"said of (matter-\d+):", body))


@contextmanager
def faulty(seed: int) -> Iterator[tuple[FaultyModel, ModelExtractor]]:
    model = FaultyModel(seed)
    with anthropic_server(model) as server:
        yield model, through(server)


def test_no_fault_of_a_model_loses_a_chunk_or_doubles_a_note(tmp_path: Path) -> None:
    with faulty(seed=1) as (model, extractor):
        wrong = lost_and_doubled(tmp_path, model, extractor, how_many(10_000, share=40))

    assert wrong == []
    assert {"good", *MAY_PASS, *FINAL} <= set(model.kinds)


def test_control_giving_up_on_what_may_pass_is_caught(tmp_path: Path) -> None:
    with faulty(seed=1) as (model, extractor):
        wrong = lost_and_doubled(tmp_path, model, GivesUp(extractor), 20)

    assert any(line.startswith("given up") for line in wrong)


PRICE = Usage(tokens_in=1_000, tokens_out=100, dollars=0.01)


class Billed:
    """Dies amid every third call, fails on every fifth without a word, and keeps the true bill."""

    name, version = "billed", "1"

    def __init__(self) -> None:
        self.calls = 0

    def estimate(self, chunk: Chunk) -> Usage:
        return PRICE

    def extract(self, chunk: Chunk) -> Outcome:
        self.calls += 1
        if self.calls % 3 == 0:
            raise KeyboardInterrupt
        if self.calls % 5 == 0:
            return Busy(reason="no answer within 60 seconds", made="perhaps")
        return replace(plain_answer(chunk, f"Wording {self.calls}"), usage=PRICE)


def restarted(folder: Path, restarts: int, allowed: int, *, forgets: bool) -> int:
    """How many calls were made on one day by a process that is started again and again. With ``forgets`` the planted bug."""
    extractor, clock = Billed(), Clock()
    for number in range(restarts):
        with closing(Outbox(folder / (f"outbox-{number}.sqlite" if forgets else "outbox.sqlite"))) as outbox:
            outbox.recover()
            name = f"chunk-{number}"
            outbox.formed.add([Span(id=name, provider="claude-code", session="s", first=number, last=number, weight=1)])
            budget = Budget(dollars=allowed * PRICE.dollars, calls=10**6)
            scheduler = Scheduler(outbox=outbox, extractor=extractor, budget=budget, clock=clock)
            try:
                while isinstance(scheduler.step(lambda waiting: replace(about_the_queue(), id=waiting.id)), ChunkHandled):
                    pass
            except KeyboardInterrupt:
                continue  # as if it had been killed: the outbox is as the call in flight left it
    return extractor.calls


def test_no_number_of_restarts_overruns_the_days_budget_by_more_than_a_call(tmp_path: Path) -> None:
    restarts = how_many(1_000)

    calls = restarted(tmp_path, restarts, allowed=restarts // 4, forgets=False)

    assert restarts // 4 - 1 <= calls <= restarts // 4 + 1


def test_control_a_bill_that_is_forgotten_at_a_restart_is_caught(tmp_path: Path) -> None:
    assert restarted(tmp_path, 40, allowed=10, forgets=True) > 10 + 1


def grown(folder: Path, lines: int, *arguments: str) -> float:
    """Megabytes that a process takes more at most, in an outage of 72 hours with so many lines waiting."""
    command = [sys.executable, "-m", "tests.goals.outage", str(folder), str(lines), *arguments]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
    content = json.loads(done.stdout)
    assert content["waiting"] > 0 and content["hours"] >= 72 and content["lines"] == lines
    return float(content["grown_mb"])


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_an_outage_of_three_days_takes_no_memory(tmp_path: Path) -> None:
    assert grown(tmp_path, how_many(1_000_000, share=20)) <= 20.0


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_control_keeping_what_waits_in_memory_is_caught(tmp_path: Path) -> None:
    assert grown(tmp_path, 50_000, "--hoards") > 20.0
