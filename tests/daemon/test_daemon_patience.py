"""The hook waits longer only while a daemon runs that was asked to wait for the judge."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kite_memory.endpoint import patience
from tests.e2e.kmem import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path / "ada")
    machine.environment = {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9", "ANTHROPIC_API_KEY": "dummy"}
    yield machine
    machine.kmem("down")


def test_the_daemon_says_how_long_and_takes_it_back(machine: Machine) -> None:
    listed = []
    for mode in ("wait", "late", "wait", "off"):
        machine.kmem("up", "--no-hooks", extra={"KMEM_JUDGE": mode})
        listed.append(patience(str(machine.state)))
        machine.kmem("down")

    assert listed == [1.2, 0.0, 1.2, 0.0]


def test_without_a_model_to_ask_no_one_waits(machine: Machine) -> None:
    machine.kmem("up", "--no-hooks", extra={"KMEM_JUDGE": "wait", "KMEM_EXTRACTOR": "offline"})

    assert patience(str(machine.state)) == 0.0
