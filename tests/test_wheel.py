"""The wheel: complete, the same every time, and at work outside the checkout."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent.parent
SOURCE_DATE = "1767225600"


def build(into: Path, project: Path = PROJECT) -> Path:
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(into), str(project)]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": SOURCE_DATE}
    built = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = into.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("installed")
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--quiet", "--target", str(target), str(wheel)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return target


def run(installed: Path, home: Path, *command: str, input: str = "") -> subprocess.CompletedProcess[str]:
    """With the dependencies of this environment, and nothing of the checkout."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "KMEM_HOME": str(home / "kmem"), "PYTHONPATH": str(installed)}
    program = [sys.executable, "-P", str(installed / "bin" / command[0]), *command[1:]]
    return subprocess.run(program, env=environment, cwd=home, input=input, capture_output=True, text=True, timeout=120)


def test_everything_that_is_not_python_travels_inside(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())

    for folder in ("prompts", "hooks", "vault_template"):
        files = [path.relative_to(PROJECT).as_posix() for path in (PROJECT / folder).rglob("*") if path.is_file()]
        assert files
        assert {f"kite_memory/assets/{file}" for file in files} <= names
    weights = "kite_memory/recall/weights"
    assert {f"{weights}/vocab.txt", f"{weights}/LICENSE-Apache-2.0.txt"} <= names
    assert any(name.startswith(weights) and name.endswith(".safetensors") for name in names)
    assert "kite_memory/redaction/words.txt" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert any(name.endswith("licenses/kite_memory/recall/weights/LICENSE-Apache-2.0.txt") for name in names)


def test_the_versions_it_was_tested_with_travel_as_constraints(wheel: Path) -> None:
    lock = (PROJECT / "requirements.lock").read_text()
    locked = re.findall(r"^([\w.-]+)(?:\[[^]]*\])?(==[^\s\\]+(?: ; [^\\\n]*[^\\\s])?)", lock, re.MULTILINE)
    with zipfile.ZipFile(wheel) as archive:
        constraints = archive.read("kite_memory/assets/constraints.txt").decode().splitlines()

    assert len(locked) > 50
    assert constraints == [f"{name}{version}" for name, version in locked]


def test_nothing_else_travels(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()

    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc") or name.startswith(("tests/", "bench/"))]


def test_two_builds_are_the_same_to_the_byte(wheel: Path, tmp_path: Path) -> None:
    again = build(tmp_path)

    assert again.name == wheel.name
    assert again.read_bytes() == wheel.read_bytes()


def test_it_works_outside_the_checkout(installed: Path, tmp_path: Path) -> None:
    version = run(installed, tmp_path, "kmem", "--version")
    demo = run(installed, tmp_path, "kmem", "demo")
    remembered = run(installed, tmp_path, "kmem", "remember", "The gate code is changed in spring")
    verified = run(installed, tmp_path, "kmem", "verify")

    assert version.stdout.startswith("kite-memory ")
    assert demo.returncode == 0, demo.stderr
    assert "<vault-context>" in demo.stdout
    assert remembered.returncode == 0, remembered.stderr
    assert (tmp_path / "kmem" / "memory" / "Home.md").exists()
    assert verified.returncode == 0, verified.stderr


def test_its_daemon_and_its_hook_find_each_other(installed: Path, tmp_path: Path) -> None:
    up = run(installed, tmp_path, "kmem", "up", "--no-hooks")
    try:
        run(installed, tmp_path, "kmem", "remember", "The cellar key hangs behind the third apple crate on the left", "--global")
        prompt = '{"hook_event_name": "UserPromptSubmit", "prompt": "behind which apple crate does the cellar key hang?"}'
        result = run(installed, tmp_path, "kmem-hook", input=prompt)
        command = run(installed, tmp_path, "kmem", "hooks", "install", "--dry-run").stdout
    finally:
        down = run(installed, tmp_path, "kmem", "down")

    assert (up.returncode, down.returncode) == (0, 0), up.stderr + down.stderr
    assert "third apple crate" in result.stdout
    assert str(installed / "kite_memory" / "hook_client.py") in command
