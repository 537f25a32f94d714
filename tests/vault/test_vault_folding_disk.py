"""The vault's tests on a disk that does not distinguish case or accents' encodings, and stores names decomposed, as macOS may."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

from kite_memory.vault.drafting import Memo
from tests.vault.building import MEMORY_DISK, TEMPLATE, contents, fact, vault_in, write

ROOT = TEMPLATE.parent
SUITE = ("files", "slugs", "copies", "links")
"""Those in which names of files matter most; the others follow with ``-m moonshot``."""

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not shutil.which("fusermount3") or not os.access("/dev/fuse", os.W_OK), reason="needs FUSE"
)


@pytest.fixture(scope="module")
def disk() -> Iterator[Path]:
    backing, mount = (Path(tempfile.mkdtemp(prefix=f"kmem-{name}-", dir=MEMORY_DISK)) for name in ("behind", "folding"))
    command = [sys.executable, "-m", "tests.fakes.folding_disk", str(backing), str(mount)]
    served = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    try:
        until = time.monotonic() + 20
        while not mount.is_mount():
            if served.poll() is not None or time.monotonic() > until:
                served.kill()
                pytest.skip(f"FUSE does not work here: {served.communicate()[1][-200:]}")
            time.sleep(0.02)
        yield mount
    finally:
        subprocess.run(["fusermount3", "-u", "-z", str(mount)], check=False, capture_output=True)
        served.kill()
        served.communicate()
        shutil.rmtree(backing)
        mount.rmdir()


def test_the_disk_folds_case_and_accents(disk: Path) -> None:
    (disk / "Größe und Äpfel.md").write_text("eins")

    assert (disk / "GRÖSSE UND ÄPFEL.MD").read_text() == "eins"
    assert (disk / unicodedata.normalize("NFD", "größe und äpfel.md")).exists()
    assert [path.name for path in disk.glob("*.md")] == [unicodedata.normalize("NFD", "Größe und Äpfel.md")]
    (disk / "größe und äpfel.md").unlink()


def test_notes_whose_titles_differ_in_case_or_encoding_only_get_files_of_their_own(disk: Path) -> None:
    titles = ("Äpfel im Lager", "äpfel im lager", unicodedata.normalize("NFD", "Äpfel im Lager"), "ÄPFEL IM LAGER")
    with vault_in(disk / "titles") as vault:
        for number, title in enumerate(titles):
            vault.edits.remember(Memo(text=f"{title}. Stand {number}: die Kühlung im Fach {number * 7} bleibt an."))
        kept = [data.decode() for path, data in contents(vault.root).items() if path.startswith("projects/")]

        assert [number for number in range(4) if not any(f"Stand {number}:" in text for text in kept)] == []
        assert vault.scanner.compare().added == ()


def test_a_note_that_its_owner_renames_to_another_case_stays_the_same_note(disk: Path) -> None:
    with vault_in(disk / "renamed") as vault:
        write(vault, fact("Äpfel im Lager", "The cold room keeps the apples."))
        (path,) = (vault.root / path for path in contents(vault.root) if path.startswith("projects/apfel"))
        before = vault.notes.find("Äpfel im Lager")
        path.rename(path.with_name(path.name.upper().replace(".MD", ".md")))

        changes = vault.scanner.compare()

        assert changes.deleted == ()
        assert vault.notes.find("Äpfel im Lager").id == before.id
        assert len([each for each in contents(vault.root) if each.casefold().startswith("projects/apfel")]) == 1


def run_suite(disk: Path, *arguments: str, share: str, seconds: float) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    environment = {**os.environ, "KMEM_TEST_DISK": str(disk), "KMEM_TEST_SHARE": share}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=seconds, check=False)

    assert done.returncode == 0, done.stdout[-6000:]
    assert " passed" in done.stdout


def test_the_vaults_tests_pass_on_it(disk: Path) -> None:
    chosen = [f"tests/vault/test_vault_{name}.py" for name in SUITE]
    run_suite(disk, *chosen, "-m", "not slow and not moonshot", share="0.05", seconds=280)


@pytest.mark.moonshot
@pytest.mark.timeout(1800)
def test_all_of_the_vaults_quick_tests_pass_on_it(disk: Path) -> None:
    mine = f"--ignore={Path(__file__).relative_to(ROOT)}"
    run_suite(disk, "tests/vault", mine, "-m", "not slow and not moonshot", "-n", "2", share="0.2", seconds=1700)
