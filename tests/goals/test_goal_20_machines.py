"""1,000 exchanges between two machines, each ended at a random step: nothing lost, nothing doubled, both alike."""

import json
import subprocess
import sys
from pathlib import Path

from tests.counts import how_many

KILLS = how_many(1_000, share=25)


def test_a_killed_exchange_is_taken_up_again(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.sync.killed", str(tmp_path), "--kills", str(KILLS)]

    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])

    assert ran.returncode == 0, ran.stderr
    content = json.loads(ran.stdout)
    assert content["violations"] == []
    assert content["kills"] >= KILLS
