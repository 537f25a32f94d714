"""The files of `docs/packaging` agree with the program's version, its lock files, and each other."""

import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections import Counter
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
import yaml

import kite_memory
from tests import packaging_files as made

VERSION = kite_memory.__version__
PROJECT = tomllib.loads((made.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MANIFESTS = sorted((made.FOLDER / "winget").glob("*.yaml"))
SHELL = [made.FOLDER / "environment.sh", *sorted((made.FOLDER / "debian").glob("kite-memory.p*"))]
_HASH = re.compile(r"[0-9a-f]{64}")


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def test_the_formula_holds_each_locked_package_that_no_other_formula_brings() -> None:
    wanted = made.formula_packages()
    resources = made.formula_resources(text(made.FORMULA))

    assert len(resources) > 30
    assert resources.keys() == wanted.keys()
    for name, (url, digest) in resources.items():
        version, hashes = wanted[name]
        assert digest in hashes
        assert re.fullmatch(rf"https://files\.pythonhosted\.org/packages/\S+/[\w.]+-{re.escape(version)}\.tar\.gz", url), name


def test_formula_and_pkgbuild_name_the_same_source_of_this_version() -> None:
    formula, pkgbuild = text(made.FORMULA), text(made.PKGBUILD)
    (url,) = re.findall(r'^  url "(.+)"', formula, re.MULTILINE)
    (digest,) = re.findall(r'^  sha256 "(.+)"', formula, re.MULTILINE)

    assert url.endswith(f"/kite_memory-{VERSION}.tar.gz")
    assert _HASH.fullmatch(digest)
    assert f"pkgver={VERSION}\n" in pkgbuild
    assert f"sha256sums=('{digest}')" in pkgbuild
    assert url.replace(VERSION, "$pkgver") in pkgbuild
    assert f"pkgdesc='{PROJECT['description'].removesuffix('.')}'" in pkgbuild


def test_srcinfo_says_what_the_pkgbuild_says() -> None:
    assert text(made.SRCINFO) == made.srcinfo(text(made.PKGBUILD))
    assert f"/kite_memory-{VERSION}.tar.gz\n" in text(made.SRCINFO)


@pytest.mark.skipif(not (shutil.which("makepkg") and shutil.which("pacman")), reason="needs makepkg")
@pytest.mark.skipif(sys.platform != "win32" and os.geteuid() == 0, reason="makepkg refuses to run as root")
def test_makepkg_prints_the_same_srcinfo(tmp_path: Path) -> None:
    shutil.copy(made.PKGBUILD, tmp_path)

    printed = subprocess.run(["makepkg", "--printsrcinfo"], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60)

    assert printed.stdout.strip() == text(made.SRCINFO).strip()


def test_winget_manifests_are_a_set_of_this_version() -> None:
    read = [yaml.safe_load(text(file)) for file in MANIFESTS]

    assert Counter(each["ManifestType"] for each in read) == {"version": 1, "installer": 1, "defaultLocale": 1}
    assert {(each["PackageIdentifier"], each["PackageVersion"], each["ManifestVersion"]) for each in read} == {
        ("KiteMemory.KiteMemory", VERSION, "1.10.0")
    }
    (installer,) = (each for each in read if each["ManifestType"] == "installer")
    (offered,) = installer["Installers"]
    assert offered["InstallerUrl"].endswith(f"-{VERSION}-windows-x64.zip")
    assert _HASH.fullmatch(offered["InstallerSha256"])
    assert set(installer["Commands"]) == set(PROJECT["scripts"])
    assert {each["RelativeFilePath"] for each in installer["NestedInstallerFiles"]} == {
        f"{name}.exe" for name in PROJECT["scripts"]
    }
    (locale,) = (each for each in read if each["ManifestType"] == "defaultLocale")
    assert locale["ShortDescription"] == PROJECT["description"]
    assert locale["License"] == PROJECT["license"]


def test_debian_packages_this_version_for_the_pythons_that_it_runs_on() -> None:
    control = text(made.FOLDER / "debian" / "control")
    oldest = PROJECT["requires-python"].removeprefix(">=")

    assert text(made.CHANGELOG).startswith(f"kite-memory ({VERSION}-")
    assert f"python3 (>= {oldest})" in control
    assert f"'python>={oldest}'" in text(made.PKGBUILD)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
@pytest.mark.parametrize("script", SHELL, ids=lambda script: script.name)
def test_shell_scripts_can_be_read(script: Path) -> None:
    subprocess.run(["sh", "-n", str(script)], check=True, timeout=60)


def test_a_new_version_has_no_hash_until_its_files_are_given(tmp_path: Path) -> None:
    archive = tmp_path / "a.zip"
    archive.write_bytes(b"a release")

    assert made.release_hash(None, "ab" * 32, VERSION) == "ab" * 32
    assert made.release_hash(None, "ab" * 32, "0.0.9") == made.UNRELEASED
    assert made.release_hash(archive, "ab" * 32, VERSION) == hashlib.sha256(b"a release").hexdigest()


@pytest.fixture(scope="module")
def build_zip() -> ModuleType:
    spec = spec_from_file_location("build_zip", made.FOLDER / "winget" / "build_zip.py")
    assert spec and spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_launchers_start_the_python_beside_them(build_zip: ModuleType) -> None:
    assert PROJECT["scripts"] == build_zip._COMMANDS
    for entry in PROJECT["scripts"].values():
        program = build_zip.launcher(entry)
        with zipfile.ZipFile(io.BytesIO(program)) as code:
            source = code.read("__main__.py").decode()
        assert program.startswith(b"MZ")
        assert b"#!<launcher_dir>\\python.exe\r\n" in program
        module, function = entry.split(":")
        assert f"from {module} import {function}\n" in source


def test_the_embedded_python_finds_our_packages(build_zip: ModuleType, tmp_path: Path) -> None:
    archive = tmp_path / "embedded.zip"
    with zipfile.ZipFile(archive, "w") as python:
        python.writestr("python.exe", b"MZ")
        python.writestr("python313._pth", "python313.zip\n.\n\n# Uncomment to run site.main() automatically\n#import site\n")
    folder = tmp_path / "unpacked"

    build_zip.unpacked_python(archive, folder)

    assert text(folder / "python313._pth").split() == ["python313.zip", ".", "site-packages", "import", "site"]
