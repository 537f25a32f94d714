"""What we are made of is little, known to the byte, and comes out the same every time."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from bench.release.sbom import bill, pinned
from tests.e2e.kmem import PROJECT
from tests.test_wheel import build

LOCKS = ("requirements.lock", "requirements-build.lock", "requirements-dev.lock")


def settings() -> dict[str, Any]:
    return tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))


def direct() -> set[str]:
    return {re.split(r"[<>=~!\[; ]", each)[0].lower() for each in settings()["project"]["dependencies"]}


def test_we_need_twenty_packages_at_most() -> None:
    assert 5 < len(direct()) <= 20


@pytest.mark.parametrize("lock", LOCKS)
def test_every_package_is_locked_by_its_hash(lock: str) -> None:
    found = list(pinned((PROJECT / lock).read_text(encoding="utf-8")))

    assert found


def test_control_a_package_that_is_not_locked_is_caught() -> None:
    lock = (PROJECT / LOCKS[0]).read_text(encoding="utf-8")

    with pytest.raises(ValueError, match="not pinned: sneaky"):
        list(pinned(lock + "\nsneaky==1.0\n"))
    with pytest.raises(ValueError, match="not pinned: loose"):
        list(pinned(lock + "\nloose>=1.0 \\\n    --hash=sha256:" + "0" * 64))


def test_the_bill_of_materials_names_all_of_it() -> None:
    result = bill((PROJECT / LOCKS[0]).read_text(encoding="utf-8"))

    names = {component["name"].lower() for component in result["components"]}
    assert direct() <= names
    assert all(component["hashes"] and component["purl"].startswith("pkg:pypi/") for component in result["components"])


def contents(wheel: Path) -> str:
    return hashlib.sha256(wheel.read_bytes()).hexdigest()


def test_two_wheels_are_one(tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere"
    wanted = {"bench", "docs", "hooks", "kite_memory", "prompts", "vault_template", "pyproject.toml", "README.md"}
    wanted |= {"LICENSE", "constraints.txt"}
    copy.mkdir()
    for name in sorted(wanted):
        source = PROJECT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, copy_function=shutil.copyfile, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.exists():
            shutil.copyfile(source, copy / name)

    here = build(tmp_path / "here", copy)
    there = build(tmp_path / "there", copy)
    (copy / "kite_memory" / "scalar.py").write_text("# one more\n", encoding="utf-8")
    another = build(tmp_path / "another", copy)

    assert contents(here) == contents(there)
    assert contents(another) != contents(here), "the control: a wheel of something else is told apart"


@pytest.mark.moonshot
@pytest.mark.skipif(shutil.which("pip-audit") is None, reason="pip-audit is not installed (`uv tool install pip-audit`)")
@pytest.mark.parametrize("lock", LOCKS[:2])
def test_no_one_has_warned_of_what_we_are_made_of(lock: str) -> None:
    """Asks the network for known weaknesses, so that a landing does not hang on what was found out this morning."""
    command = ["pip-audit", "--disable-pip", "--require-hashes", "-r", str(PROJECT / lock)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ})

    assert done.returncode == 0, done.stdout + done.stderr


def test_the_interpreter_is_one_we_are_locked_for() -> None:
    assert sys.version_info >= tuple(map(int, re.findall(r"\d+", settings()["project"]["requires-python"])))
