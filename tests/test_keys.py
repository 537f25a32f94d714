import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kite_memory.errors import KiteError, UsageError
from kite_memory.keys import (
    VARIABLES,
    KeyFileUnsafe,
    Keyring,
    Keys,
    key_file,
    key_name,
    listing,
    put,
    remove,
    system_keyring,
)

VALUE = "sk-example-0123456789-WXYZ"
OTHER = "sk-example-9876543210-ABCD"


class MemoryKeyring:
    """A keyring without a desktop."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, name: str, /) -> str | None:
        return self.kept.get((service, name))

    def set_password(self, service: str, name: str, value: str, /) -> None:
        self.kept[service, name] = value

    def delete_password(self, service: str, name: str, /) -> None:
        del self.kept[service, name]


class BrokenKeyring:
    def get_password(self, service: str, name: str, /) -> str | None:
        raise RuntimeError("no bus")

    def set_password(self, service: str, name: str, value: str, /) -> None:
        raise RuntimeError("no bus")

    def delete_password(self, service: str, name: str, /) -> None:
        raise RuntimeError("no bus")


class ForgetfulKeyring(MemoryKeyring):
    """Takes everything, keeps nothing."""

    def set_password(self, service: str, name: str, value: str, /) -> None:
        pass


class StubbornKeyring(MemoryKeyring):
    def delete_password(self, service: str, name: str, /) -> None:
        raise RuntimeError("locked")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return key_file(tmp_path / "config" / "config.toml")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_environment_comes_before_the_keyring_and_that_before_the_file(file: Path) -> None:
    keyring = MemoryKeyring()
    Keys(file, {}, None).set("anthropic", "sk-in-the-file-000000")
    filed = Keys(file, {}, keyring).find("anthropic")
    keyring.set_password("kite-memory", "anthropic", "sk-in-the-keyring-000")
    ringed = Keys(file, {}, keyring).find("anthropic")
    environment = {"ANTHROPIC_API_KEY": " sk-in-the-environment\n"}

    named = Keys(file, environment, keyring).find("anthropic")

    assert [(key.value, key.place) for key in (filed, ringed, named) if key] == [
        ("sk-in-the-file-000000", "file"),
        ("sk-in-the-keyring-000", "keyring"),
        ("sk-in-the-environment", "environment"),
    ]


def test_an_empty_variable_is_no_key(file: Path) -> None:
    assert Keys(file, {"VOYAGE_API_KEY": "  "}, None).find("voyage") is None


def test_each_service_has_its_own_key(file: Path) -> None:
    kept = Keys(file, {}, None)
    kept.set("anthropic", VALUE)
    kept.set("voyage", OTHER)

    found = [key.value for name in ("anthropic", "voyage") if (key := kept.find(key_name(name)))]

    assert found == [VALUE, OTHER]


@pytest.mark.skipif(sys.platform == "win32", reason="modes mean little there")
@pytest.mark.parametrize("umask", [0o000, 0o777])
def test_the_file_is_the_users_alone_whatever_the_umask(file: Path, umask: int) -> None:
    old = os.umask(umask)
    try:
        Keys(file, {}, None).set("anthropic", VALUE)
    finally:
        os.umask(old)

    assert (mode(file), mode(file.parent)) == (0o600, 0o700)


@pytest.mark.skipif(sys.platform == "win32", reason="modes mean little there")
def test_a_folder_of_the_persons_own_keeps_its_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)

    Keys(tmp_path / "keys.toml", {}, None).set("anthropic", VALUE)

    assert mode(tmp_path) == 0o755


@pytest.mark.skipif(sys.platform == "win32", reason="modes mean little there")
@pytest.mark.parametrize("wide", [0o640, 0o604, 0o660, 0o620, 0o644, 0o777])
def test_a_file_that_others_could_read_or_write_is_refused(file: Path, wide: int) -> None:
    Keys(file, {}, None).set("anthropic", VALUE)
    file.chmod(wide)

    with pytest.raises(KeyFileUnsafe) as refusal:
        Keys(file, {}, None).find("anthropic")

    assert f"chmod 600 {file}" in refusal.value.hint
    assert VALUE not in str(refusal.value) + refusal.value.hint


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can make a file of another user's")
def test_a_file_of_another_users_is_refused(file: Path) -> None:
    Keys(file, {}, None).set("anthropic", VALUE)
    os.chown(file, 65534, 65534)

    with pytest.raises(KeyFileUnsafe, match="another user"):
        Keys(file, {}, None).find("anthropic")


def test_a_project_cannot_bring_its_own_key(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text(f"ANTHROPIC_API_KEY={VALUE}\n", encoding="ascii")
    (tmp_path / "keys.toml").write_text(f'anthropic = "{VALUE}"\n', encoding="ascii")
    (tmp_path / "keys.toml").chmod(0o600)

    assert Keys(file, {}, None).find("anthropic") is None


def test_a_working_keyring_is_preferred_and_the_file_forgets(file: Path) -> None:
    Keys(file, {}, None).set("anthropic", OTHER)
    keyring = MemoryKeyring()

    kept = Keys(file, {}, keyring).set("anthropic", VALUE)

    assert kept.place == "keyring"
    assert Keys(file, {}, keyring).where("anthropic") == "keyring"
    assert OTHER not in file.read_text(encoding="utf-8")
    assert VALUE not in file.read_text(encoding="utf-8")


@pytest.mark.parametrize("keyring", [BrokenKeyring(), ForgetfulKeyring()])
def test_a_keyring_that_does_not_work_is_passed_over(file: Path, keyring: Keyring) -> None:
    kept = Keys(file, {}, keyring)

    assert kept.find("anthropic") is None
    assert kept.set("anthropic", VALUE).place == "file"
    found = Keys(file, {}, keyring).find("anthropic")
    assert found is not None
    assert (found.value, found.place) == (VALUE, "file")


def test_a_keyring_that_hangs_is_passed_over_and_not_asked_again(file: Path) -> None:
    unlocked, asked = threading.Event(), list[str]()

    class LockedKeyring(MemoryKeyring):
        def get_password(self, service: str, name: str, /) -> str | None:
            asked.append(name)
            unlocked.wait(30)
            return None

    Keys(file, {}, None).set("voyage", VALUE)
    kept = Keys(file, {}, LockedKeyring(), patience=0.01)

    found = [kept.find("voyage"), kept.find("anthropic")]
    unlocked.set()

    assert [key.place for key in found if key] == ["file"]
    assert asked == ["voyage"]


def test_removing_removes_it_everywhere_it_can(file: Path) -> None:
    keyring = MemoryKeyring()
    Keys(file, {}, None).set("anthropic", VALUE)
    keyring.set_password("kite-memory", "anthropic", OTHER)
    kept = Keys(file, {"ANTHROPIC_API_KEY": VALUE}, keyring)

    removed = kept.remove("anthropic")

    assert removed == ("keyring", "file")
    assert kept.where("anthropic") == "environment"
    assert Keys(file, {}, keyring).find("anthropic") is None
    assert kept.remove("anthropic") == ()


def test_a_keyring_that_does_not_let_go_is_an_error(file: Path) -> None:
    keyring = StubbornKeyring()
    keyring.set_password("kite-memory", "anthropic", VALUE)

    with pytest.raises(KiteError, match="did not delete the key"):
        Keys(file, {}, keyring).remove("anthropic")


@pytest.mark.parametrize(
    "value",
    [
        "",
        "  ",
        "two words",
        "line\nbreak",
        "tab\there",
        "clé",
        "\x1b[31m",
        "x" * 5000,
        f'"{VALUE}"',
        f"'{VALUE}'",
        f"ANTHROPIC_API_KEY={VALUE}",
    ],
)
def test_what_cannot_be_a_key_is_not_kept(file: Path, value: str) -> None:
    with pytest.raises(UsageError, match="does not look like a key"):
        Keys(file, {}, None).set("anthropic", value)

    assert not file.exists()


@pytest.mark.parametrize("value", ['quo"te', "back\\slash", "#hash", "it's", "a=b"])
def test_any_sign_a_key_may_have_survives(file: Path, value: str) -> None:
    Keys(file, {}, None).set("anthropic", value)

    found = Keys(file, {}, None).find("anthropic")

    assert found is not None
    assert found.value == value


@pytest.mark.parametrize("value", ["two words", "clé", "'quoted'", "PGPASSWORD=1"])
def test_a_password_is_whatever_people_make_it(file: Path, value: str) -> None:
    Keys(file, {}, None).set("team", f" {value}\n")

    found = Keys(file, {}, None).find("team")

    assert found is not None
    assert found.value == value


@pytest.mark.parametrize("value", ["", "line\nbreak", "\0", "x" * 5000])
def test_a_password_is_one_line_all_the_same(file: Path, value: str) -> None:
    with pytest.raises(UsageError, match="does not look like a key"):
        Keys(file, {}, None).set("team", value)


def test_a_file_that_an_editor_has_put_its_mark_before_is_read(file: Path) -> None:
    file.parent.mkdir()
    file.write_bytes(b"\xef\xbb\xbf" + f'anthropic = "{VALUE}"\r\n'.encode())
    file.chmod(0o600)

    found = Keys(file, {}, None).find("anthropic")

    assert found is not None
    assert found.value == VALUE


def test_what_else_stands_in_the_file_stays_there(file: Path) -> None:
    Keys(file, {}, None).set("voyage", VALUE)
    file.write_text(f'{file.read_text(encoding="utf-8")}"some other" = "thing"\n', encoding="utf-8")

    Keys(file, {}, None).set("anthropic", OTHER)

    assert '"some other" = "thing"' in file.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "content", [f"anthropic = {VALUE}".encode(), b"\xff\xfe", b"[", b"a = " + b"[" * 20_000, f'anthropic = ["{VALUE}"'.encode()]
)
def test_a_damaged_file_is_an_error_that_does_not_quote_it(file: Path, content: bytes) -> None:
    file.parent.mkdir()
    file.write_bytes(content)
    file.chmod(0o600)

    with pytest.raises(KiteError, match="not valid TOML") as refusal:
        Keys(file, {}, None).find("anthropic")

    assert VALUE not in f"{refusal.value}{refusal.value.hint}{refusal.value.__cause__}"
    assert refusal.value.__suppress_context__


def test_a_value_of_another_type_is_no_key(file: Path) -> None:
    file.parent.mkdir()
    file.write_text("anthropic = 3\n", encoding="ascii")
    file.chmod(0o600)

    assert Keys(file, {}, None).find("anthropic") is None


def test_a_key_shows_its_last_four_characters_and_nothing_else(file: Path) -> None:
    key = Keys(file, {}, None).set("anthropic", VALUE)
    short = Keys(file, {}, None).set("voyage", "abcdefgh")

    assert (key.shown, short.shown) == ("…WXYZ", "…")
    assert VALUE not in repr(key)


@pytest.mark.parametrize(("text", "name"), [("anthropic", "anthropic"), ("Voyage", "voyage"), ("ANTHROPIC_API_KEY", "anthropic")])
def test_a_key_goes_by_its_service_or_its_variable(text: str, name: str) -> None:
    assert key_name(text) == name


def test_an_unknown_key_learns_which_ones_are_known() -> None:
    with pytest.raises(UsageError, match="unknown key 'acme'") as refusal:
        key_name("acme")

    assert refusal.value.hint == "known ones are: anthropic, voyage, openai, team, team-token"


FAKE_PACKAGES = {
    "without the package": "raise ImportError",
    "without a backend": "class none: priority = 0\ndef get_keyring(): return none",
    "with one that only breaks": "def get_keyring(): raise RuntimeError('no bus')",
}


@pytest.mark.parametrize("source", FAKE_PACKAGES.values(), ids=FAKE_PACKAGES.keys())
def test_there_is_no_keyring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    (tmp_path / "keyring.py").write_text(source, encoding="ascii")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "keyring", raising=False)

    found = system_keyring()
    monkeypatch.delitem(sys.modules, "keyring", raising=False)

    assert found is None


def test_a_keyring_that_is_installed_and_works_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    working = "class some: priority = 5\ndef get_keyring(): return some\n"
    answering = "def get_password(service, name): return f'{service}/{name}'\n"
    (tmp_path / "keyring.py").write_text(working + answering, encoding="ascii")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "keyring", raising=False)

    found = Keys(tmp_path / "keys.toml", {}, system_keyring()).find("voyage")
    monkeypatch.delitem(sys.modules, "keyring", raising=False)

    assert found is not None
    assert (found.value, found.place) == ("kite-memory/voyage", "keyring")


def test_importing_it_does_not_load_a_keyring() -> None:
    look = "import kite_memory.keys, sys; print('keyring' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True).stdout == "False\n"


@pytest.fixture
def no_keyring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration file's path, on a machine that has neither a keyring nor keys in its environment."""
    (tmp_path / "keyring.py").write_text("raise ImportError", encoding="ascii")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "keyring", raising=False)
    for variable in VARIABLES.values():
        monkeypatch.delenv(variable, raising=False)
    return tmp_path / "config" / "config.toml"


def test_what_is_said_about_keys_never_holds_one(no_keyring: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOYAGE_API_KEY", OTHER)

    listed = [put("anthropic", VALUE, no_keyring), *listing(no_keyring), remove("anthropic", no_keyring)]
    listed += [remove("anthropic", no_keyring), remove("voyage", no_keyring)]

    assert listed == [
        f"the anthropic key …WXYZ is kept in {no_keyring.parent}/keys.toml",
        "anthropic: …WXYZ (file)",
        "voyage: …ABCD (environment)",
        "openai: none",
        "team: none",
        "team-token: none",
        "the anthropic key is removed from the file",
        "no anthropic key was kept",
        "no voyage key was kept; VOYAGE_API_KEY is still set",
    ]
