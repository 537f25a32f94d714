"""What a person sees of an index that is damaged."""

import os
from pathlib import Path

from tests.cli.transcript import in_this_process
from tests.e2e.kmem import Machine


def run(machine: Machine, *arguments: str) -> str:
    ran = in_this_process(machine, list(arguments), cwd=machine.home)
    assert ran.code == 0, ran.err
    return str(ran.out)


def vectors(machine: Machine) -> Path:
    return next(machine.state.glob("index/*/vectors-*.npy"))


def test_vectors_that_are_cut_short_are_named_by_the_status(machine: Machine) -> None:
    run(machine, "remember", "The job queue uses PostgreSQL.", "--global")
    os.truncate(vectors(machine), 100)

    result = run(machine, "status")

    assert "problem    index: a file is cut short" in result
    assert vectors(machine).name in result


def test_a_search_mends_them(machine: Machine) -> None:
    run(machine, "remember", "The job queue uses PostgreSQL.", "--global")
    os.truncate(vectors(machine), 100)

    assert "PostgreSQL" in run(machine, "search", "PostgreSQL job queue")
    assert "problem" not in run(machine, "status")
