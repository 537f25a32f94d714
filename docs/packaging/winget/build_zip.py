"""Build the zip that the winget manifest names. On Windows, with the Python of the embeddable one's minor version:

    python docs/packaging/winget/build_zip.py python-3.13.9-embed-amd64.zip dist/kite_memory-0.1.0-py3-none-any.whl OUT.zip

It holds python.org's embeddable Python, the locked packages, and launchers that start the `python.exe` beside them.
"""

import io
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

_LOCK = Path(__file__).resolve().parents[3] / "requirements.lock"
_COMMANDS = {"kmem": "kite_memory.cli.opening:run", "kmem-hook": "kite_memory.hook_client:main"}
_PACKAGES = "site-packages"


def launcher(entry: str) -> bytes:
    """Return a Windows program that runs ``entry``, a module and a function: pip's launcher, its Python, and the code as a zip."""
    module, function = entry.split(":")
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("__main__.py", f"import sys\nfrom {module} import {function}\nsys.exit({function}())\n")
    start = files("pip._vendor.distlib").joinpath("t64.exe").read_bytes()
    return start + b"#!<launcher_dir>\\python.exe\r\n" + code.getvalue()


def unpacked_python(archive: Path, folder: Path) -> None:
    """Unpack Python, and let it import from our packages, `.pth` files included: pywin32 needs its own."""
    with zipfile.ZipFile(archive) as python:
        python.extractall(folder)
    (paths,) = folder.glob("python*._pth")
    lines = [line for line in paths.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    paths.write_text("\n".join([*lines, _PACKAGES, "import site", ""]), encoding="utf-8")


def installed_packages(wheel: Path, folder: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder / _PACKAGES)]
    subprocess.run([*pip, "--require-hashes", "--requirement", str(_LOCK)], check=True)
    subprocess.run([*pip, "--no-deps", str(wheel)], check=True)


def zipped(folder: Path, out: Path) -> None:
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                archive.write(file, file.relative_to(folder).as_posix())


def main(arguments: Sequence[str]) -> None:
    python, wheel, out = map(Path, arguments)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        unpacked_python(python, folder)
        installed_packages(wheel, folder)
        for name, entry in _COMMANDS.items():
            (folder / f"{name}.exe").write_bytes(launcher(entry))
        zipped(folder, out)


if __name__ == "__main__":
    main(sys.argv[1:])
