"""Writes versions, hashes and the formula's packages into `docs/packaging/`: ``make packaging [SDIST=FILE] [ZIP=FILE]``.

The locked packages' addresses come from PyPI. Without a release's own files, their hashes stay as they are, or become zeros if
the version is a new one.
"""

import argparse
import hashlib
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from packaging.markers import Marker

import kite_memory

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "packaging"
FORMULA = FOLDER / "homebrew" / "kite-memory.rb"
PKGBUILD = FOLDER / "aur" / "PKGBUILD"
SRCINFO = FOLDER / "aur" / ".SRCINFO"
INSTALLER = FOLDER / "winget" / "KiteMemory.KiteMemory.installer.yaml"
CHANGELOG = FOLDER / "debian" / "changelog"
UNRELEASED = 64 * "0"

_HOMEBREW = {"sys_platform": "darwin", "python_full_version": "3.14.0", "python_version": "3.14"}
"""Where a locked package must be wanted to be a resource: with the Python that the formula depends on."""
_OF_FORMULAS = {
    "cryptography": ("cffi", "cryptography", "pycparser"),
    "numpy": ("numpy",),
    "pydantic": ("annotated-types", "pydantic", "pydantic-core", "typing-extensions", "typing-inspection"),
    "rpds-py": ("rpds-py",),
}
"""Python packages that come with other formulas, which are slow to compile."""
_RESOURCES = re.compile(r'(?:  resource "[^"]+" do\n    url "[^"]+"\n    sha256 "[^"]+"\n  end\n\n)+')
_RESOURCE = re.compile(r'resource "([^"]+)" do\n    url "([^"]+)"\n    sha256 "([^"]+)"')
_LOCKED = re.compile(r"^([\w.-]+)==([\w.]+)(?: ; ([^\\\n]+?))? \\\n((?: +--hash=sha256:\w+(?: \\)?\n)+)", re.MULTILINE)


def formula_packages() -> dict[str, tuple[str, frozenset[str]]]:
    """Return the version, and the hashes, of each locked package that the formula must hold itself."""
    elsewhere = {name for names in _OF_FORMULAS.values() for name in names}
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    return {
        name: (version, frozenset(re.findall(r"sha256:(\w+)", hashes)))
        for name, version, marker, hashes in _LOCKED.findall(lock)
        if name not in elsewhere and (not marker or Marker(marker).evaluate(dict(_HOMEBREW)))
    }


def formula_resources(text: str) -> dict[str, tuple[str, str]]:
    """Return address and hash of each resource of the formula."""
    return {name: (url, digest) for name, url, digest in _RESOURCE.findall(text)}


def srcinfo(pkgbuild: str) -> str:
    """Return what `makepkg --printsrcinfo` makes of our PKGBUILD, which has one package and plain values."""
    values = {name: _words(value) for name, value in re.findall(r"^(\w+)=(\(.*?\)|.*)$", pkgbuild, re.MULTILINE)}
    (version,) = values["pkgver"]
    lines = [f"pkgbase = {values['pkgname'][0]}"]
    for name in ("pkgdesc", "pkgver", "pkgrel", "url", *_LISTS):
        lines += [f"\t{name} = {value.replace('$pkgver', version)}" for value in values.get(name, [])]
    return "\n".join([*lines, "", f"pkgname = {values['pkgname'][0]}", ""])


_LISTS = ("arch", "license", "makedepends", "depends", "optdepends", "options", "source", "sha256sums")


def _words(value: str) -> list[str]:
    return [quoted or double or bare for quoted, double, bare in re.findall(r"'([^']*)'|\"([^\"]*)\"|([^\s()]+)", value)]


def _resources() -> Iterator[str]:
    wanted = formula_packages()
    for package in _pylock():
        version, hashes = wanted.get(package["name"], ("", frozenset[str]()))
        if package["version"] != version:
            continue
        address, digest = package["sdist"]["url"], package["sdist"]["hashes"]["sha256"]
        if digest not in hashes:
            raise SystemExit(f"the source of {package['name']} {version} is not the one in requirements.lock")
        yield f'  resource "{package["name"]}" do\n    url "{address}"\n    sha256 "{digest}"\n  end\n\n'


def _pylock() -> list[dict[str, Any]]:
    """Return the locked packages with the addresses of their files."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "pylock.toml"
        uv = [str(Path(sys.executable).parent / "uv"), "pip", "compile", "--universal", "--python-version", "3.11", "--quiet"]
        subprocess.run([*uv, "--constraints", "constraints.txt", "pyproject.toml", "-o", str(out)], cwd=ROOT, check=True)
        return list(tomllib.loads(out.read_text(encoding="utf-8"))["packages"])


def release_hash(file: Path | None, before: str, version_before: str) -> str:
    if file:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    return before if version_before == kite_memory.__version__ else UNRELEASED


def _rewritten(path: Path, *changes: tuple[str, str | Callable[[re.Match[str]], str]]) -> None:
    text = path.read_text(encoding="utf-8")
    for pattern, new in changes:
        text, count = re.subn(pattern, new, text, flags=re.MULTILINE)
        if not count:
            raise SystemExit(f"{path}: nothing matches {pattern}")
    path.write_text(text, encoding="utf-8", newline="\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sdist", type=Path)
    parser.add_argument("--zip", type=Path)
    given = parser.parse_args()
    version = kite_memory.__version__
    pkgbuild = PKGBUILD.read_text(encoding="utf-8")
    was = re.findall(r"^pkgver=(.+)$", pkgbuild, re.MULTILINE)[0]
    sdist = release_hash(given.sdist, re.findall(r"^sha256sums=\('(\w+)'\)$", pkgbuild, re.MULTILINE)[0], was)
    archive = release_hash(given.zip, re.findall(r"InstallerSha256: '(\w+)'", INSTALLER.read_text(encoding="utf-8"))[0], was)
    resources = "".join(_resources())
    _rewritten(
        FORMULA,
        (r"kite_memory-[\d.]+\.tar\.gz", f"kite_memory-{version}.tar.gz"),
        (r'^  sha256 "\w+"', f'  sha256 "{sdist}"'),
        (_RESOURCES.pattern, lambda _: resources),
    )
    _rewritten(PKGBUILD, (r"^pkgver=.+$", f"pkgver={version}"), (r"^sha256sums=.*$", f"sha256sums=('{sdist}')"))
    SRCINFO.write_text(srcinfo(PKGBUILD.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")
    for manifest in INSTALLER.parent.glob("*.yaml"):
        _rewritten(manifest, (r"^PackageVersion: .+$", f"PackageVersion: {version}"))
    _rewritten(
        INSTALLER,
        (r"kite-memory-[\d.]+-windows", f"kite-memory-{version}-windows"),
        (r"InstallerSha256: .*", f"InstallerSha256: '{archive}'"),
    )
    _rewritten(CHANGELOG, (r"\A(kite-memory) \([\d.]+-\d+\)", rf"\1 ({version}-1)"))


if __name__ == "__main__":
    main()
