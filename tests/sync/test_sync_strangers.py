"""Files in the shared folder that no machine of this person wrote, or that did not arrive whole."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.errors import KiteError, UsageError
from kite_memory.sync.rows import ForgottenRow, Malformed, NoteVersion, Row, UptakeRow, copy_path, note_path, parsed
from kite_memory.sync.segments import NotWhole, SharedFolder, SyncKey, pack, unpack
from tests.sync.homes import Clock, homes, open_home, settle

KEY = SyncKey.make(encrypted=False)
ROWS: list[Row] = [UptakeRow(note="n", shown=1, used=0, ignored=0), ForgottenRow(event="e", provider="p", session="s", blank=True)]


def segment_of(home_name: str, shared: Path) -> Path:
    (found,) = sorted(shared.glob(f"kite-sync/{home_name}-*/00000001.segment"))
    return found


def test_a_folder_of_another_key_is_not_joined_without_it(tmp_path: Path) -> None:
    with homes(tmp_path, "laptop") as (laptop,), open_home(tmp_path / "thief", laptop.shared, Clock()) as thief:
        laptop.remember("Frost covers come off in May.")
        laptop.sync()

        with pytest.raises(UsageError, match="in use by other machines"):
            thief.sync()
        with pytest.raises(UsageError, match="in use by other machines"):
            thief.sync(join=KEY.text())
        assert thief.files() == {}


def test_a_strangers_segment_is_refused_and_said(tmp_path: Path) -> None:
    with homes(tmp_path, "laptop", "desk") as (laptop, desk):
        laptop.remember("Frost covers come off in May.")
        SharedFolder(root=laptop.shared).put("thief-00000000", 1, pack(ROWS, key=KEY, machine="thief-00000000", number=1))

        report = laptop.sync()
        desk.sync()

        assert "thief-00000000: segment 1" in report["problems"][0]
        assert len(desk.files()) == 1


def test_a_segment_under_another_machines_name_is_refused(tmp_path: Path) -> None:
    with homes(tmp_path, "laptop", "desk") as (laptop, desk):
        laptop.remember("Frost covers come off in May.")
        laptop.sync()
        SharedFolder(root=laptop.shared).put("thief-00000000", 1, segment_of("laptop", laptop.shared).read_bytes())

        assert "thief-00000000: segment 1" in desk.sync()["problems"][0]


def test_a_segment_that_has_not_arrived_whole_is_read_when_it_has(tmp_path: Path) -> None:
    with homes(tmp_path, "laptop", "desk") as (laptop, desk):
        laptop.remember("Frost covers come off in May.")
        laptop.sync()
        segment = segment_of("laptop", laptop.shared)
        whole = segment.read_bytes()
        segment.write_bytes(whole[:-7])

        assert desk.sync()["problems"]
        assert desk.files() == {}
        segment.write_bytes(whole)
        settle(laptop, desk)
        assert len(desk.files()) == 1


@given(st.binary(max_size=64), st.integers(min_value=0, max_value=400))
def test_no_change_of_a_segment_goes_unnoticed(put: bytes, at: int) -> None:
    content = pack(ROWS, key=KEY, machine="laptop-00000000", number=3)
    changed = content[:at] + put + content[at + len(put) :]

    if changed == content:
        assert unpack(content, key=KEY, machine="laptop-00000000", number=3) == (ROWS, 0)
    else:
        with pytest.raises(NotWhole):
            unpack(changed, key=KEY, machine="laptop-00000000", number=3)


def test_a_malformed_row_is_left_out_and_the_others_are_read() -> None:
    odd = UptakeRow(note="a\nb", shown=1, used=0, ignored=0)
    content = pack([ROWS[0], odd, ROWS[1]], key=KEY, machine="laptop-00000000", number=3)

    assert unpack(content, key=KEY, machine="laptop-00000000", number=3) == (ROWS, 1)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda each: st.lists(each) | st.dictionaries(st.text(), each)
    )
)
def test_wild_rows_are_malformed_and_nothing_else(value: object) -> None:
    import orjson

    for kind in ("note", "events", "forgotten", "uptake", "other"):
        try:
            line = orjson.dumps({kind: value}, option=orjson.OPT_NON_STR_KEYS)
        except TypeError:
            continue
        with pytest.raises(Malformed):
            parsed(line)


@pytest.mark.parametrize(
    "path",
    [
        "../up.md",
        "/etc/passwd.md",
        ".obsidian/x.md",
        "a/../b.md",
        "a//b.md",
        "no-note.txt",
        "C:/x.md",
        "a\\b.md",
        "",
        "a\0.md",
        "./a.md",
    ],
)
def test_no_path_leads_out_of_the_vault(path: str) -> None:
    with pytest.raises(Malformed):
        note_path(path)


def test_everything_is_encrypted_if_the_key_says_so(tmp_path: Path) -> None:
    pytest.importorskip("pyrage")
    shared = tmp_path / "shared"
    shared.mkdir()
    clock = Clock()
    with open_home(tmp_path / "laptop", shared, clock) as laptop, open_home(tmp_path / "desk", shared, clock) as desk:
        secret = "ghp_" + "a8Kd03jfQz7LmW2xR5tYv9Bn4Hc6Ps1EgUo0"
        (laptop.vault / "keys.md").write_text(f"# Keys\n\nThe token is {secret}\n")

        laptop.sync(encrypt=True)
        desk.sync(join=laptop.key())

        assert secret in desk.files()["keys.md"]
        body = segment_of("laptop", shared).read_bytes().partition(b"\n")[2]
        assert body.startswith(b"age-encryption.org")


def test_a_copy_of_a_machine_becomes_a_machine_of_its_own(tmp_path: Path) -> None:
    import shutil

    with homes(tmp_path, "laptop") as (laptop,):
        laptop.remember("Frost covers come off in May.")
        laptop.sync()
    shutil.copytree(tmp_path / "laptop", tmp_path / "clone")
    clock, shared = Clock(), tmp_path / "shared"
    with open_home(tmp_path / "laptop", shared, clock) as laptop, open_home(tmp_path / "clone", shared, clock) as clone:
        laptop.remember("The press needs forty bar.")
        clone.remember("Sheep graze under the old trees only.")
        laptop.sync()
        clone.sync()
        settle(laptop, clone)

        assert laptop.files() == clone.files()
        assert len(laptop.files()) == 3


def test_a_folder_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with homes(tmp_path, "laptop") as (laptop,):
        laptop.shared.rename(tmp_path / "unmounted")

        with pytest.raises(UsageError, match="no folder"):
            laptop.sync()
        laptop.shared.mkdir()
        with pytest.raises(KiteError, match="no longer holds this memory's sync data"):
            laptop.sync()


def test_two_machines_exchange_through_a_git_repository(tmp_path: Path) -> None:
    remote, shared, clock = tmp_path / "remote.git", tmp_path / "none", Clock()
    subprocess.run(["git", "init", "--quiet", "--bare", str(remote)], check=True)
    url = f"file://{remote}"
    with open_home(tmp_path / "laptop", shared, clock) as laptop, open_home(tmp_path / "desk", shared, clock) as desk:
        laptop.remember("Frost covers come off in May.")
        laptop.syncing.sync(target=url)
        desk.remember("The press needs forty bar.")
        desk.syncing.sync(target=url, join=laptop.key())
        laptop.remember("Sheep graze under the old trees only.")
        for home in (laptop, desk, laptop):
            assert home.syncing.sync(target=url)["problems"] == []

        assert laptop.files() == desk.files()
        assert len(laptop.files()) == 3


def test_a_remote_that_no_one_answers_at_is_said(tmp_path: Path) -> None:
    with open_home(tmp_path / "laptop", tmp_path, Clock()) as laptop, pytest.raises(KiteError, match="cannot be read"):
        laptop.syncing.sync(target=f"file://{tmp_path}/nowhere.git")


@pytest.mark.parametrize(("letters", "kept"), [(60, 60), (90, 69)])
def test_a_copy_keeps_as_much_of_a_name_as_a_file_may_have(letters: int, kept: int) -> None:
    version = NoteVersion(key="k", path="facts/" + "\u6f22" * letters + ".md", path_at=0, digest="d", clock={}, at=1e9, by="desk")

    name = copy_path(version).removeprefix("facts/")

    assert name == "\u6f22" * kept + " (conflicted copy desk 2001-09-09 01.46.40).md"
    assert len(name.encode()) <= 255
