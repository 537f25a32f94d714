"""1,000 exchanges between two machines, each ended at a random step: nothing lost, nothing doubled, both alike."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.counts import how_many

KILLS = how_many(1_000, share=25)


def outcome_of(folder: Path, *options: str) -> Any:
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "tests.sync.killed", str(folder), *options]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_a_killed_exchange_is_taken_up_again(tmp_path: Path) -> None:
    content = outcome_of(tmp_path, "--kills", str(KILLS))

    assert content["violations"] == []
    assert content["kills"] >= KILLS


def test_control_a_segment_that_is_forgotten_by_the_next_process_is_caught(tmp_path: Path) -> None:
    """Where a kill falls is chance, so one batch may miss what the next one finds."""
    for seed in range(11, 21):
        content = outcome_of(tmp_path / str(seed), "--kills", "16", "--seed", str(seed), "--planted")
        if any("not settled" in each or "lost" in each for each in content["violations"]):
            return

    pytest.fail(f"160 kills did not show it: {content}")
