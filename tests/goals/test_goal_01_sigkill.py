"""SIGKILL at any moment: no line lost, none read twice, no note doubled, no file torn, no call repeated but the one in flight."""

import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kite_memory.timeline.store import Timeline
from tests.counts import how_many
from tests.crash.harness import Writer
from tests.e2e.kmem import PROJECT, Machine
from tests.fakes.anthropic_server import AnthropicServer, Json, anthropic_server, text_message

pytestmark = [pytest.mark.skipif(not hasattr(os, "fork"), reason="forks to start quickly"), pytest.mark.timeout(900)]

WORDS = ("amber", "birch", "cedar", "dahlia", "elder", "fennel", "gorse", "hazel", "iris", "juniper", "kale", "larch", "maple")


def kill(folder: Path, *arguments: str) -> Any:
    """Runs the harness in a process of its own, since it forks."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash.harness", str(folder), *arguments],
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": str(PROJECT), "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


KILLS = how_many(140, share=3)
"""Of one vault, which grows with each of them; then another is begun."""


@pytest.mark.parametrize("seed", range(1, 1 + how_many(70, share=70)))
def test_nothing_is_lost_doubled_or_torn_by_any_kill(tmp_path: Path, seed: int) -> None:
    result = kill(tmp_path, "--kills", str(KILLS), "--longest", "0.4", "--seed", str(seed))

    assert result["violations"] == []
    assert result["lines"] > 2 * KILLS
    assert result["notes"] >= result["lines"]
    assert result["asked again"] > 0, "no call was ever interrupted: the kills come too early or too late to prove anything"


@pytest.mark.parametrize(
    ("plant", "harm"),
    [("no-outbox", ("note doubled", "asked twice")), ("cursor-first", "line lost"), ("events-first", "event doubled")],
)
def test_control_a_planted_bug_is_caught_by_the_same_kills(tmp_path: Path, plant: str, harm: str | tuple[str, ...]) -> None:
    """Where a kill falls is chance, so one batch may miss what the next one finds."""
    for seed in range(1, 6):
        result = kill(tmp_path / str(seed), "--kills", "20", "--longest", "1.0", "--plant", plant, "--seed", str(seed))
        if any(line.startswith(harm) for line in result["violations"]):
            return

    pytest.fail(f"a hundred kills did not show it: {result}")


class Model:
    """Answers each chunk with a fact for the first thing said in it, in words of its own."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def __call__(self, request: Json) -> Json:
        encoded = json.dumps(request["messages"])
        if not about_a_chunk(request):
            return text_message("{}")
        found = re.search(r"\[(\d{4,})\][^\[]*?(matter-\d+)", encoded)
        items = [self._fact(*found.groups())] if found else []
        topic = {"name": "orchids", "summary": "", "categories": [], "entities": [], "items": items}
        return text_message(json.dumps({"topics": [topic] if items else [], "cross_topic_insights": []}))

    def _fact(self, evidence: str, token: str) -> Json:
        words = " ".join(self._chance.choices(WORDS, k=5))
        return {
            "evidence": [evidence],
            "kind": "fact",
            "title": f"{words} {token}",
            "body": f"What was said of {token} is {' '.join(self._chance.choices(WORDS, k=9))}, as the gardener wrote.",
            "symptom": "",
            "rejected": [],
            "importance": 2,
            "origin": "user",
            "everywhere": False,
            "entities": [],
            "triggers": [],
        }


def about_a_chunk(request: Json) -> bool:
    return "output_config" in request


@pytest.fixture
def server() -> Iterator[AnthropicServer]:
    with anthropic_server(Model(seed=1)) as running:
        yield running


def test_the_real_daemon_process_too(tmp_path: Path, server: AnthropicServer) -> None:
    machine = Machine(tmp_path / "home")
    machine.environment = {"ANTHROPIC_BASE_URL": server.url, "KMEM_EXTRACTOR": "anthropic"}
    machine.configure("[daemon]\nidle_seconds = 0.2\n")
    transcripts = machine.home / ".claude" / "projects" / "-orchard"
    transcripts.mkdir(parents=True)
    chance = random.Random(2)
    writer = Writer(transcripts, chance)

    runs = how_many(200, share=33)
    for run in range(runs):
        # The key says which process asked: what a killed one sent may be read after the next one has begun.
        machine.environment["ANTHROPIC_API_KEY"] = str(run)
        with subprocess.Popen([sys.executable, "-m", "kite_memory", "daemon"], env=machine.env(), cwd=machine.home) as daemon:
            until = time.monotonic() + chance.uniform(0.5, 4.0)
            while (left := until - time.monotonic()) > 0:
                writer.go_on()
                time.sleep(min(left, chance.uniform(0, 0.3)))
            assert daemon.poll() is None, "it ended by itself"
            daemon.send_signal(signal.SIGKILL)
    machine.environment["ANTHROPIC_API_KEY"] = str(runs)
    writer.finish()
    read = machine.kmem("backfill")

    assert read.code == 0, read.err
    with closing(Timeline(machine.state / "timeline.sqlite")) as timeline:
        sessions = [state.session for state in timeline.sessions.states()]
        events = [event for session in sessions for event in timeline.events.of_session(session.provider, session.id)]
    said = Counter(event.text.split()[0] for event in events if event.role == "user")
    assert said == Counter(writer.written.values())
    noted = Counter(word for note in machine.notes() for word in set(re.findall(r"of (matter-\d+) is", note.read_text())))
    assert noted and set(noted.values()) == {1}
    assert list(machine.vault.rglob(".kmem-*")) == []
    assert machine.kmem("verify", "--json").json() == []
    asked = [
        (int(headers["authorization"].removeprefix("Bearer ")), json.dumps(request["messages"]))
        for request, headers in zip(server.requests, server.headers, strict=True)
        if about_a_chunk(request)
    ]
    last = dict(asked)
    for _, calls in itertools.groupby(sorted(asked, key=lambda call: (call[1], call[0])), key=lambda call: call[1]):
        *repeated, _ = calls
        assert all(last[run] == chunk for run, chunk in repeated), "a chunk was asked about again without need"
