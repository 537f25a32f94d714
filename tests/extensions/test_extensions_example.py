"""The example of docs/extending.md, installed as somebody else's package would be: it is read, and keeps its contract."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.kmem import PROJECT, Machine

_FILE = re.compile(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```", re.DOTALL)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the page's files, and the metadata that installing them would write; return the folder, for the path."""
    folder = tmp_path_factory.mktemp("kite-tarn")
    files = dict(_FILE.findall((PROJECT / "docs" / "extending.md").read_text(encoding="utf-8")))
    assert set(files) == {"kite_tarn/__init__.py", "kite_tarn/test_contract.py", "pyproject.toml"}
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    built = (
        "import sys, zipfile; from hatchling.build import build_editable; "
        "zipfile.ZipFile(f'{sys.argv[1]}/{build_editable(sys.argv[1])}').extractall(sys.argv[2])"
    )
    (folder / "site").mkdir()
    subprocess.run([sys.executable, "-c", built, str(folder), str(folder / "site")], cwd=folder, check=True, timeout=60)
    return folder


@pytest.fixture
def machine(installed: Path, tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path / "ada", usual_places=True)
    machine.environment = {"PYTHONPATH": os.pathsep.join([str(installed), str(installed / "site")])}
    yield machine


def test_the_example_is_as_short_as_promised(installed: Path) -> None:
    assert len((installed / "kite_tarn" / "__init__.py").read_text(encoding="utf-8").splitlines()) <= 60


def test_it_is_listed(machine: Machine) -> None:
    listed = json.loads(machine.kmem("extensions", "list", "--json").out)

    assert [(each["kind"], each["name"], each["package"], each["problem"]) for each in listed] == [
        ("source", "tarn", "kite-tarn", ""),
        ("contract", "tarn", "kite-tarn", ""),
    ]


def test_its_sessions_are_read(machine: Machine) -> None:
    sessions = machine.home / ".tarn" / "sessions"
    sessions.mkdir(parents=True)
    rows = [
        {"type": "start", "cwd": str(machine.home / "orchard")},
        {"type": "user", "text": "Never press below 40 bar, because the juice stays in."},
        {"type": "assistant", "text": "Understood, at least 40 bar."},
    ]
    lines = [json.dumps({"id": f"e{n}", "timestamp": f"2026-03-02T09:00:0{n}Z", **row}) for n, row in enumerate(rows)]
    (sessions / "5e55e55e.jsonl").write_text("\n".join(lines) + "\n")

    assert machine.kmem("backfill").code == 0
    assert '"tarn"' in machine.kmem("timeline", "--json").out
    assert "the source tarn of kite-tarn" in machine.kmem("doctor").out


def test_it_keeps_its_contract(machine: Machine) -> None:
    ran = machine.kmem("extensions", "check")

    assert ran.code == 0, ran.out + ran.err
    assert re.search(r"\d\d passed", ran.out)


def test_a_broken_contract_is_noticed(machine: Machine, installed: Path, tmp_path: Path) -> None:
    broken = tmp_path / "kite_tarn"
    broken.mkdir()
    for name in ("__init__.py", "test_contract.py"):
        (broken / name).write_text((installed / "kite_tarn" / name).read_text(encoding="utf-8"), encoding="utf-8")
    source = (broken / "__init__.py").read_text(encoding="utf-8")
    (broken / "__init__.py").write_text(source.replace('line.unknown(row.get("type"))', "raise KeyError"), encoding="utf-8")
    machine.environment = {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(installed / "site")])}

    assert machine.kmem("extensions", "check").code == 1
