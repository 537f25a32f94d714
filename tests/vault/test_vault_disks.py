"""Real disks: full, read-only, taken away. In a namespace of their own, where the system allows that."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.vault.building import TEMPLATE

UNSHARE = ["unshare", "--user", "--map-root-user", "--mount"]


def may_mount() -> bool:
    if sys.platform != "linux" or shutil.which("unshare") is None:
        return False
    return subprocess.run([*UNSHARE, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False).returncode == 0


pytestmark = pytest.mark.skipif(not may_mount(), reason="no mount namespaces here")

PREAMBLE = """
import subprocess, sys
from pathlib import Path
from kite_memory.errors import KiteError, VaultMissing, VaultReadOnly
from kite_memory.vault.drafting import Memo
from kite_memory.vault.vault import Vault
from tests.vault.building import contents, fact, leftovers, vault_in, write

folder = Path(sys.argv[1])
root = folder / "vault"

def mount(*options):
    subprocess.run(["mount", "-t", "tmpfs", *options, "none", str(root)], check=True)

def refused(kind, work):
    try:
        work()
    except kind as error:
        assert error.hint, error
        return str(error)
    raise AssertionError("nothing was said")
"""


def run(tmp_path: Path, script: str) -> None:
    done = subprocess.run(
        [*UNSHARE, sys.executable, "-W", "error", "-c", PREAMBLE + script, str(tmp_path)],
        cwd=TEMPLATE.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert done.returncode == 0, done.stderr


def test_a_full_disk_is_said_and_what_did_not_fit_is_written_later(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
root.mkdir()
mount("-o", "size=512k,mode=700")
with vault_in(folder) as vault:
    write(vault, fact("First"))
    (root / "big").write_bytes(b"x" * 300_000)
    written = 0
    def fill():
        global written
        for number in range(500):
            write(vault, fact(f"Number {number}", f"Words {number} " * 200), name=f"chunk-{number}")
            written += 1
    said = refused(VaultReadOnly, fill)
    assert "no space left" in said, said
    assert 0 < written < 500
    before = contents(root)
    refused(VaultReadOnly, lambda: vault.edits.remember(Memo(text="x" * 20_000)))
    notes = [path for path in before if path.startswith("projects/")]
    assert all(before[path].endswith(b"\\n") and before[path].startswith(b"---\\n") for path in notes)
    assert vault.scanner.compare().problems == ()
    assert leftovers(root) == []
    (root / "big").unlink()
    write(vault, fact(f"Number {written}", f"Words {written} " * 200), name=f"chunk-{written}")
    assert vault.notes.find(f"Number {written}").body.startswith("Words")
    assert vault.scanner.compare().added == ()
""",
    )


def test_a_full_disk_under_the_ledger_loses_nothing(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
root.mkdir()
with vault_in(folder) as vault:
    write(vault, fact("First"))
state = folder / "state"
kept = {path.name: path.read_bytes() for path in state.iterdir()}
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k,mode=700", "none", str(state)], check=True)
for name, data in kept.items():
    (state / name).write_bytes(data)
with vault_in(folder, laid_out=False) as vault:
    (state / "big").write_bytes(b"x" * 1)
    try:
        with (state / "big").open("ab", buffering=0) as big:
            while True:
                big.write(b"x" * 4096)
    except OSError:
        pass
    said = refused(VaultReadOnly, lambda: [write(vault, fact(f"N {n}", f"Words {n}"), name=f"c-{n}") for n in range(500)])
    assert "no space left" in said, said
    done = [path for path in contents(root) if path.startswith("projects/n-")]
    (state / "big").unlink()
    for n in range(len(done) + 3):
        write(vault, fact(f"N {n}", f"Words {n}"), name=f"c-{n}")
    vault.scanner.compare()
    assert leftovers(root) == []
    assert len([path for path in contents(root) if path.startswith("projects/n-")]) == len(done) + 3
""",
    )


def test_a_disk_mounted_read_only_can_be_read(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
root.mkdir()
mount("-o", "mode=700")
with vault_in(folder) as vault:
    write(vault, fact("First"))
    (root / ".kmem-fill-left").write_text("half")
    before = contents(root)
    subprocess.run(["mount", "-o", "remount,ro", str(root)], check=True)
    for work in (
        lambda: write(vault, fact("New"), name="chunk-2"),
        lambda: vault.edits.remember(Memo(text="x")),
        lambda: vault.edits.forget("First"),
        lambda: vault.edits.mute("First"),
        lambda: vault.edits.mark("First", vault.notes.find("First").status.__class__.REJECTED),
    ):
        assert "read-only" in refused(VaultReadOnly, work)
    assert vault.notes.find("First").title == "First"
    assert [entry.path for entry in vault.notes.entries()] == ["projects/first-feb26.md"]
    assert not vault.scanner.compare().frozen
    assert contents(root) == before
    subprocess.run(["mount", "-o", "remount,rw", str(root)], check=True)
    write(vault, fact("New"), name="chunk-2")
    vault.scanner.compare()
    assert sorted(path for path in contents(root) if path.startswith("projects/n")) == ["projects/new-feb26.md"]
    assert leftovers(root) == []
""",
    )


def test_a_disk_taken_away_freezes_the_vault_until_it_is_back(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
root.mkdir()
image = folder / "disk"
image.mkdir()
subprocess.run(["mount", "--bind", str(image), str(root)], check=True)
with vault_in(folder) as vault:
    write(vault, *(fact(f"Number {n}", f"Words {n}") for n in range(15)))
    before = contents(root)
    subprocess.run(["umount", str(root)], check=True)
    assert contents(root) == {}
    assert vault.scanner.compare().frozen
    refused(VaultMissing, lambda: write(vault, fact("New"), name="chunk-2"))
    refused(VaultMissing, lambda: vault.ensure(Path("vault_template")))
    assert contents(root) == {}
    subprocess.run(["mount", "--bind", str(image), str(root)], check=True)
    assert vault.scanner.compare().deleted == ()
    assert not vault.scanner.frozen
    write(vault, fact("New"), name="chunk-2")
    assert set(before) < set(contents(root))
""",
    )


def test_another_disk_in_its_place_freezes_it_too(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
root.mkdir()
with vault_in(folder) as vault:
    write(vault, *(fact(f"Number {n}", f"Words {n}") for n in range(15)))
    mount("-o", "mode=700")
    (root / "holiday.md").write_text("Somebody else's notes.")
    (root / ".obsidian").mkdir()
    frozen = vault.scanner.compare()
    assert frozen.frozen and not frozen.added
    refused(VaultMissing, lambda: vault.edits.remember(Memo(text="x")))
    assert contents(root) == {"holiday.md": b"Somebody else's notes."}
    subprocess.run(["umount", str(root)], check=True)
    assert not vault.scanner.compare().frozen
""",
    )
