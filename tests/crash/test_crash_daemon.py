"""SIGKILL at any moment: no line lost, no note doubled, no file torn, no model asked twice but for the call in flight."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).parent.parent.parent


def kill(folder: Path, *arguments: str, timeout: float = 280) -> Any:
    """Runs the harness in a process of its own, since it forks."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash.harness", str(folder), *arguments],
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": str(PROJECT), "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks to start quickly")
def test_nothing_is_lost_doubled_or_torn_in_three_hundred_kills(tmp_path: Path) -> None:
    result = kill(tmp_path, "--kills", "300")

    assert result["violations"] == []
    assert result["lines"] > 1000
    assert result["notes"] >= result["lines"]
    assert result["asked again"] > 0, "no call was ever interrupted: the kills come too early or too late to prove anything"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks to start quickly")
def test_control_without_the_outbox_the_same_kills_do_harm(tmp_path: Path) -> None:
    result = kill(tmp_path, "--kills", "40", "--without-outbox")

    assert result["violation count"] > 0
