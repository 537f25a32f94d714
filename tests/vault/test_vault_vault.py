"""The vault as its owner and the daemon meet in it."""

import errno
import json
import os
import shutil
import stat
import threading
import unicodedata
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kite_memory.errors import KiteError, NoteNotFound, UsageError, VaultMissing, VaultReadOnly
from kite_memory.model.note import Amend, Create, Note, NoteKind, NoteStatus, Rejected, Scope, SimilarNote, Supersede, Surroundings
from kite_memory.vault.drafting import Memo
from kite_memory.vault.files import MAX_NOTE_BYTES
from kite_memory.vault.notefile import render
from kite_memory.vault.vault import Vault
from kite_memory.vault.writing import MOST_WAITING, AlreadyWritten, Amended, LeftAlone, Skipped, Superseded, Written, first_to_lapse
from tests.counts import examples
from tests.vault.building import MEMORY_DISK, START, TEMPLATE, contents, decision, drafts, fact, leftovers, note, vault_in, write

STORE = fact("PostgreSQL is the store", "It holds jobs.", entities=["PostgreSQL"])


def paths(vault: Vault) -> list[str]:
    return [entry.path for entry in vault.notes.entries()]


def put(vault: Vault, path: str, text: str | bytes) -> Path:
    file = vault.root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def reasons(vault: Vault) -> dict[str, str]:
    return {problem.file: problem.reason for problem in vault.notes.problems()}


waiting_notes = st.builds(
    lambda project, importance, doubtful, days: replace(
        note(f"Perhaps {project} has {days}"),
        project=project,
        importance=importance,
        created=START + timedelta(days=days),
        status=NoteStatus.PROPOSED if doubtful else NoteStatus.ACCEPTED,
        conflicts=() if doubtful else ("orchard",),
    ),
    st.sampled_from(["orchard", "cellar", ""]),
    st.integers(1, 3),
    st.booleans(),
    st.integers(0, 400),
)


@settings(max_examples=examples(10))
@given(added=st.lists(waiting_notes, min_size=MOST_WAITING, max_size=MOST_WAITING + 12, unique_by=lambda each: each.title))
def test_never_do_more_notes_wait_than_a_person_goes_through(added: list[Note]) -> None:
    with TemporaryDirectory(dir=MEMORY_DISK) as folder, vault_in(Path(folder)) as vault:
        vault.planner.carry_out([Create(note=note("Orchard", path="projects/orchard.md"), because="it is there")])
        for each in added:
            vault.planner.carry_out([Create(note=each, because="it may be so")])

            assert vault.known.review_count() <= MOST_WAITING

        waiting = [there for known in vault.known.to_review() if (there := vault.notes.read(known.path)) is not None]
        lapsed = [there for each in added if not (there := vault.notes.find(each.id)).awaits_review]
        assert len(waiting) == MOST_WAITING
        assert max(map(first_to_lapse, lapsed), default=(0, START)) <= min(map(first_to_lapse, waiting))
        assert all(there.review == "lapsed" if there.conflicts else there.status is NoteStatus.ARCHIVED for there in lapsed)


def test_a_note_that_is_found_to_differ_makes_room_too(vault: Vault) -> None:
    doubtful = [
        replace(note(f"Perhaps row {number}", "Who knows?"), status=NoteStatus.PROPOSED, created=START + timedelta(days=number))
        for number in range(MOST_WAITING)
    ]
    older, newer = note("The press runs at 40 bar"), note("The press runs at 55 bar")
    newer = replace(newer, created=START + timedelta(days=99), evidence=("claude-code:later#1",))
    vault.planner.carry_out([Create(note=each, because="it may be so") for each in (*doubtful, older, newer)])

    near = Surroundings(near=(SimilarNote(note=vault.notes.find(older.id), cosine=0.9),))

    changed = vault.relations.relate(newer, lambda note: near)

    assert changed and vault.known.review_count() == MOST_WAITING
    assert vault.notes.find(newer.id).conflicts
    assert vault.notes.take_lapsed() == {vault.notes.find(doubtful[0].id).path}
    assert vault.notes.take_lapsed() == set()


def test_a_new_vault_is_laid_out_once(vault: Vault) -> None:
    before = contents(vault.root)

    vault.ensure(TEMPLATE)

    assert contents(vault.root) == before
    assert {"Home.md", "README.md", ".obsidian/app.json"} <= set(before)
    assert all((vault.root / folder).is_dir() for folder in ("decisions", "topics", "projects", "people", "ideas", "journals"))
    assert paths(vault) == []


def test_a_new_vault_is_its_owners_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        vault_in(tmp_path).close()
    finally:
        os.umask(before)

    for path in tmp_path.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_what_the_owner_removed_from_the_template_stays_removed(vault: Vault) -> None:
    (vault.root / "Home.md").unlink()
    put(vault, ".obsidian/app.json", "{}")
    shutil.rmtree(vault.root / "ideas")

    vault.ensure(TEMPLATE)

    assert not (vault.root / "Home.md").exists()
    assert not (vault.root / "ideas").exists()
    assert (vault.root / ".obsidian" / "app.json").read_text() == "{}"


def test_somebodys_own_vault_keeps_its_settings(tmp_path: Path) -> None:
    theirs = tmp_path / "vault"
    (theirs / ".obsidian").mkdir(parents=True)
    (theirs / ".obsidian" / "appearance.json").write_text("{}")
    (theirs / "Home.md").write_text("my home")

    with vault_in(tmp_path):
        pass
    with vault_in(tmp_path):
        pass

    assert sorted(path.name for path in (theirs / ".obsidian").iterdir()) == ["appearance.json"]
    assert (theirs / "Home.md").read_text() == "my home"
    assert (theirs / "decisions").is_dir()


def test_a_disk_that_is_not_mounted_gets_no_new_vault(tmp_path: Path) -> None:
    with vault_in(tmp_path) as vault:
        write(vault, fact("Frost"))
        vault.root.rename(tmp_path / "away")

        with pytest.raises(VaultMissing):
            vault.ensure(TEMPLATE)
        assert not vault.root.exists()
        vault.root.mkdir()
        with pytest.raises(VaultMissing) as missing:
            vault.ensure(TEMPLATE)

        assert "--accept-missing" in missing.value.hint
        assert contents(vault.root) == {}


NO_NOTES = [
    "Home.md", "README.md", "Review.md", "MEMORY.md", "picture.png", "notes.txt", ".hidden.md", ".obsidian/x.md", ".trash/x.md",
    ".stversions/a/x.md", "templates/x.md", "Templates/y.md", "my/forms/x.md", "a/.kmem-fill-1",
]  # fmt: skip


def test_only_notes_are_listed(vault: Vault) -> None:
    put(vault, ".obsidian/templates.json", json.dumps({"folder": "my/forms/"}))
    for path in NO_NOTES:
        put(vault, path, "x")
    put(vault, "deep/er/note.md", "x")
    put(vault, "UPPER.MD", "x")
    put(vault, "my/Home.md", "a note: only the one at the top is ours")

    assert paths(vault) == ["UPPER.MD", "deep/er/note.md", "my/Home.md"]


LEFT_ALONE = [
    "topics/pear.sync-conflict-20260301-101112-ABCDEFG.md",
    "topics/pear (Ada's conflicted copy 2026-03-01).md",
    "topics/pear (Conflicted copy laptop 202603011011).md",
    "topics/pear (SFConflict ada@example.com 2026-03-01-10-11-12).md",
]


@pytest.mark.parametrize("path", LEFT_ALONE)
def test_conflict_copies_of_sync_tools_are_left_alone_and_said(vault: Vault, path: str) -> None:
    (original,) = write(vault, fact("Pear"))
    put(vault, path, (vault.root / original).read_bytes())

    vault.scanner.compare()

    assert paths(vault) == [original]
    assert reasons(vault) == {path: "conflict copy of a sync tool"}
    assert (vault.root / path).exists()


def test_oddities_are_said_untouched_and_never_fatal(vault: Vault, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.md").write_text("secret")
    (vault.root / "out.md").symlink_to(tmp_path / "outside" / "secret.md")
    (vault.root / "linked").symlink_to(tmp_path / "outside")
    os.mkfifo(vault.root / "pipe.md")
    put(vault, "large.md", b"x" * (MAX_NOTE_BYTES + 1))
    put(vault, "inner/.obsidian/app.json", "{}")
    put(vault, "inner/theirs.md", "x")
    put(vault, "latin.md", "café".encode("latin-1"))
    put(vault, "broken.md", "---\ntitle: a: b\n---\nbody")
    put(vault, "bomb.md", "---\na: &a [*a]\n---\nbody")
    (vault.root / os.fsdecode(b"bad\xff.md")).write_text("x")
    deep = vault.root
    for _ in range(40):
        deep = deep / "d"
    deep.mkdir(parents=True)
    before = contents(vault.root)

    comparison = vault.scanner.compare()

    found = {problem.file: problem.reason for problem in comparison.problems}
    assert found == reasons(vault)
    assert {path: reason for path, reason in found.items() if not path.startswith("d/")} == {
        "out.md": "symbolic link",
        "linked": "symbolic link",
        "pipe.md": "not a file",
        "large.md": "larger than 5 MB",
        "inner": "another vault",
        "latin.md": "not UTF-8",
        "broken.md": "frontmatter is not YAML",
        "bomb.md": "frontmatter with an anchor",
        "bad\\udcff.md": "file name is not text",
    }
    assert "folder nested too deeply" in found.values()
    assert [path for path in paths(vault) if vault.notes.read(path)] == []
    assert contents(vault.root) == before


def test_what_is_wrong_is_said_until_it_is_mended(vault: Vault) -> None:
    put(vault, "x.md", "---\ntitle: a: b\n---\nbody")
    first = vault.scanner.compare()

    assert vault.scanner.compare().problems == first.problems != ()


def test_a_folder_that_may_not_be_opened_loses_nothing(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    written = write(vault, *(fact(f"Number {number}", f"Words {number}") for number in range(3)))
    real = os.open

    def refusing(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == "projects":
            raise PermissionError(errno.EACCES, "no", path)
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refusing)
    comparison = vault.scanner.compare()

    assert comparison.deleted == ()
    assert reasons(vault) == {"projects": "folder cannot be opened"}
    with pytest.raises(VaultReadOnly, match="no permission"):
        write(vault, fact("New"), name="chunk-2")
    monkeypatch.undo()
    assert vault.scanner.compare().problems == ()
    assert paths(vault) == written


def test_a_vault_that_does_not_answer_is_missing(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.stat

    def stale(path: Any, **options: Any) -> os.stat_result:
        if path == vault.root:
            raise OSError(errno.ESTALE, "stale file handle")
        return real(path, **options)

    monkeypatch.setattr(os, "stat", stale)

    with pytest.raises(VaultMissing, match="stale file handle"):
        vault.edits.remember(Memo(text="x"))


def test_a_broken_note_that_is_mended_is_read_again(vault: Vault) -> None:
    put(vault, "x.md", "---\ntitle: a: b\n---\nbody")
    vault.scanner.compare()
    put(vault, "x.md", "---\ntitle: 'a: b'\n---\nbody")

    vault.scanner.compare()

    assert reasons(vault) == {}
    assert vault.notes.find("a: b").path == "x.md"


def test_files_that_go_away_while_we_look_take_nothing_with_them(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two, three = write(vault, fact("One"), fact("Two"), fact("Three"))
    real = os.scandir

    class Vanishing:
        """One file goes between its being listed and its being looked at."""

        def __init__(self, where: int) -> None:
            self._scan = real(where)

        def __enter__(self) -> "list[os.DirEntry[str]]":
            found = list(self._scan)
            if any(entry.name == "two-feb26.md" for entry in found):
                (vault.root / two).unlink()
            return found

        def __exit__(self, *error: object) -> None:
            self._scan.close()

    monkeypatch.setattr(os, "scandir", Vanishing)

    comparison = vault.scanner.compare()

    assert comparison.deleted == (two,)
    assert paths(vault) == sorted([one, three])


def test_many_foreign_files_do_no_harm(vault: Vault) -> None:
    for number in range(3_000):
        put(vault, f"code/{number % 30}/file{number}.txt", "x")

    assert vault.scanner.compare().problems == ()
    assert sum(1 for _ in vault.notes.others()) >= 3_000


def test_writing_twice_is_writing_once(vault: Vault) -> None:
    frost = drafts(fact("Frost", entities=["person:Ada Frost"]), name="chunk-2", session="5e55-0002")
    made = [*drafts(decision(entities=["Pears", "person:Ada Frost"])), *frost]
    actions = vault.planner.plan(made)

    first = vault.planner.carry_out(actions)
    before = contents(vault.root)
    second = vault.planner.carry_out(actions)
    third = vault.planner.carry_out(vault.planner.plan(made))

    assert [type(one) for one in first] == [Written, Written, Written]
    assert [type(one) for one in second] == [AlreadyWritten] * 3
    assert [type(one) for one in third] == [Skipped] * 2
    assert contents(vault.root) == before
    assert vault.scanner.compare().changed == ()


def test_the_same_record_from_another_chunk_adds_evidence_once(vault: Vault) -> None:
    (path,) = write(vault, fact("Frost"))
    again = drafts(fact("Frost", evidence=7), name="chunk-2", first=5)

    outcomes = vault.planner.carry_out(vault.planner.plan(again))
    before = contents(vault.root)
    repeated = vault.planner.carry_out(vault.planner.plan(again))

    assert isinstance(outcomes[0], Amended)
    assert isinstance(repeated[0], Skipped)
    found = vault.notes.find(path)
    assert found.evidence == ("claude-code:5e55-0001#00000001", "claude-code:5e55-0001#00000007")
    assert found.body == "Frost, as everybody knows."
    assert contents(vault.root) == before


def test_a_taken_name_is_counted_on_also_when_only_case_differs(vault: Vault) -> None:
    put(vault, "ideas/Frost-FEB26.md", "mine")
    vault.scanner.compare()

    assert write(vault, fact("Frost")) == ["projects/frost-feb26-2.md"]


def test_a_name_taken_since_the_last_look_is_counted_on(vault: Vault) -> None:
    actions = vault.planner.plan(drafts(fact("Frost")))
    put(vault, "projects/frost-feb26.md", "mine")

    (outcome,) = vault.planner.carry_out(actions)

    assert isinstance(outcome, Written) and outcome.path == "projects/frost-feb26-2.md"
    assert (vault.root / "projects" / "frost-feb26.md").read_text() == "mine"


@pytest.mark.parametrize(
    "title", ["../../x", "CON", "aux.md", "x" * 300, "🍐", "العربية", "日本語", "trailing...", "a/b\\c:d", "\0", "Home"]
)
def test_any_title_lands_in_the_vault(vault: Vault, tmp_path: Path, title: str) -> None:
    (path,) = write(vault, fact(title, "Body of its own."))

    assert path.startswith("projects/")
    assert vault.notes.read(path)
    assert {name.split("/")[0] for name in contents(tmp_path)} == {"vault", "state"}


def test_composed_and_decomposed_titles_are_one_thought(vault: Vault) -> None:
    write(vault, fact(unicodedata.normalize("NFC", "Café für Zoë")))

    assert write(vault, fact(unicodedata.normalize("NFD", "Café für Zoë")), name="chunk-2") == []


def test_pages_are_made_when_a_note_of_another_session_shares_a_name(vault: Vault) -> None:
    one, _ = write(vault, fact("One", "About PostgreSQL.", entities=["PostgreSQL"]), STORE)
    before = (vault.root / one).read_bytes()

    written = write(vault, fact("Two", "More on PostgreSQL.", entities=["PostgreSQL"]), name="chunk-2", session="5e55-0002")

    assert written == ["topics/PostgreSQL.md", "projects/two-feb26.md"]
    assert (
        vault.notes.find("postgresql").body
        == "**Related:** [[postgresql-is-the-store-feb26|PostgreSQL is the store]], [[one-feb26|One]]"
    )
    assert (vault.root / one).read_bytes() == before
    assert vault.notes.unresolved_links() == []


def test_what_was_written_of_another_session_counts_also_beside_its_repetition(vault: Vault) -> None:
    one = drafts(fact("One", "About PostgreSQL.", entities=["PostgreSQL"]), STORE)
    vault.planner.carry_out(vault.planner.plan(one))
    two = drafts(fact("Two", "On PostgreSQL.", entities=["PostgreSQL"]), name="chunk-2", session="5e55-0002")

    vault.planner.carry_out(vault.planner.plan([*one, *two]))

    assert vault.notes.find("Two").body == "On [[PostgreSQL]]."


def test_a_superseded_note_keeps_its_text_and_both_know_each_other(vault: Vault) -> None:
    (old,) = write(vault, decision(rejected=[Rejected(alternative="Apples", reason="early")]))
    body = vault.notes.find(old).body
    new = note("Plums after all", path="decisions/plums-after-all-mar26.md")
    action = Supersede(note=new, old_id=vault.notes.find(old).id, old_path=old, because="")

    first = vault.planner.carry_out([action])
    before = contents(vault.root)
    second = vault.planner.carry_out([action])

    assert [type(one) for one in (*first, *second)] == [Superseded, Superseded]
    assert contents(vault.root) == before
    replaced, replacing = vault.notes.find(old), vault.notes.find(new.path)
    assert (replaced.status, replaced.superseded_by, replaced.body) == (NoteStatus.SUPERSEDED, "plums-after-all-mar26", body)
    assert replacing.supersedes == ("pears-over-apples-for-the-north-field-feb26",)
    assert vault.notes.unresolved_links() == []


def test_superseding_what_is_gone_leaves_no_dangling_link(vault: Vault) -> None:
    new = note("Plums after all")

    (outcome,) = vault.planner.carry_out([Supersede(note=new, old_id="GONE", old_path="decisions/gone.md", because="")])

    assert isinstance(outcome, Written)
    assert vault.notes.find(outcome.path).supersedes == ()


def test_no_note_of_ours_links_into_nothing(vault: Vault) -> None:
    write(vault, fact("Frost"))
    linking = note(
        "Linking", "[[nowhere]] [[Frost|cold]] [[frost-feb26]] ![[x.png]] [[projects/frost-feb26]] [[topics/frost-feb26|t]]"
    )

    vault.planner.carry_out([Create(note=linking, because="")])

    assert vault.notes.find("Linking").body == ("nowhere [[frost-feb26|cold]] [[frost-feb26]] x.png [[projects/frost-feb26]] t")
    assert vault.notes.unresolved_links() == []


def test_what_is_embedded_from_the_vault_stays_embedded(vault: Vault) -> None:
    put(vault, "attachments/Arch.png", b"\x89PNG")
    put(vault, "plan v1.2.pdf", b"%PDF")
    text = "![[arch.png|300]] ![[attachments/Arch.png]] [[plan v1.2.pdf#page=2]]"
    (gone,) = write(vault, fact("Frost"))

    kept = vault.edits.remember(Memo(text=f"{text} ![[elsewhere/arch.png]] ![[x.png]] [[Frost]]"))
    vault.edits.forget(gone)
    vault.scanner.mend_links()

    assert vault.notes.find(kept.id).body == f"{text} arch.png x.png Frost"
    assert vault.notes.unresolved_links() == []


@pytest.mark.parametrize(("newer", "older"), [("topics/C# tabs.md", "topics/b.md"), ("topics/b.md", "topics/C# tabs.md")])
def test_a_note_that_no_link_can_name_is_replaced_and_let_stand_again_without_one(vault: Vault, newer: str, older: str) -> None:
    new, old = note("New"), note("Old")
    put(vault, newer, render(new))
    put(vault, older, render(old))
    vault.scanner.compare()

    for _ in range(3):
        vault.relations.settle(new.id, old.id, "replaces")
    replaced, replacing = vault.notes.find(old.id), vault.notes.find(new.id)

    assert (replaced.status, replaced.valid_until) == (NoteStatus.SUPERSEDED, START)
    assert (replaced.superseded_by, replacing.supersedes) == (("", ("b",)) if "#" in newer else ("b", ()))
    assert vault.notes.unresolved_links() == []
    vault.relations.settle(new.id, old.id, "neither")
    mended = vault.notes.find(old.id)
    assert (mended.superseded_by, mended.valid_until, vault.notes.find(new.id).supersedes) == ("", None, ())


def test_a_new_note_names_none_that_no_link_can_name(vault: Vault) -> None:
    put(vault, "topics/C# tabs.md", render(replace(note("Tabs"), aliases=("Tabs in C#",))))
    put(vault, "topics/C.md", "Another language.")
    vault.scanner.compare()
    new = replace(note("Spaces", "See [[Tabs in C#]] and [[Tabs]]."), conflicts=("C# tabs",))

    vault.planner.carry_out([Supersede(note=new, old_id=note("Tabs").id, old_path="topics/C# tabs.md", because="")])

    made = vault.notes.find(new.id)
    assert (made.supersedes, made.conflicts, made.links) == ((), (), ())


def test_a_note_too_large_to_be_read_back_is_refused_before_it_is_written(vault: Vault) -> None:
    with pytest.raises(KiteError, match="cannot be a note"):
        vault.planner.carry_out([Create(note=note(body="x" * MAX_NOTE_BYTES), because="")])
    assert paths(vault) == []


def test_an_edited_note_is_added_to_to_the_letter(vault: Vault) -> None:
    (path,) = write(vault, fact("Frost"))
    edited = (vault.root / path).read_bytes().replace(b"as everybody", b"as  hardly anybody ") + b"\n  My own line.  \n\n"
    edited = edited.replace(b"tags: [fruit]", b"# mine\nmood:   good\ntags:\n- fruit\n- 'own'").replace(b"\n", b"\r\n")
    put(vault, path, edited)
    vault.scanner.compare()

    vault.planner.carry_out(
        [Amend(id=vault.notes.find(path).id, path=path, evidence=("a:b#c",), addition="New words.", because="")]
    )

    expected = edited.replace(b'["claude-code:5e55-0001#00000001"]', b'["claude-code:5e55-0001#00000001", "a:b#c"]')
    assert (vault.root / path).read_bytes() == expected + b"New words.\r\n"
    assert not vault.notes.is_ours(vault.notes.find(path))


def test_actions_on_what_is_gone_do_nothing(vault: Vault) -> None:
    (path,) = write(vault, fact("Frost"))
    id = vault.notes.find(path).id
    actions = vault.planner.plan(drafts(fact("Frost")))
    (vault.root / path).unlink()
    vault.scanner.compare()

    outcomes = vault.planner.carry_out(
        [
            Create(note=drafts(fact("Frost"))[0].note, because=""),
            Amend(id=id, path=path, evidence=("a:b#c",), addition="x", because=""),
            Amend(id="NEVER-THERE", path="x.md", evidence=(), addition="x", because=""),
        ]
    )

    assert [(type(one), getattr(one, "because", "")) for one in outcomes] == [
        (Skipped, "you deleted it"),
        (Skipped, "you deleted it"),
        (Skipped, "it is not there"),
    ]
    assert [action.because for action in actions] == ["already written"]
    assert paths(vault) == []


def test_a_note_does_not_grow_beyond_what_can_be_read(vault: Vault) -> None:
    (path,) = write(vault, fact("Frost"))
    big = put(vault, path, (vault.root / path).read_text() + "x" * (MAX_NOTE_BYTES // 4))

    (outcome,) = vault.planner.carry_out(
        [Amend(id=vault.notes.find(path).id, path=path, evidence=("a:b#c",), addition="x", because="")]
    )

    assert isinstance(outcome, LeftAlone)
    assert big.stat().st_size > MAX_NOTE_BYTES // 4


def test_our_own_text_stays_ours_when_we_add_to_it(vault: Vault) -> None:
    (path,) = write(vault, fact("Frost"))

    vault.planner.carry_out([Amend(id=vault.notes.find(path).id, path=path, evidence=(), addition="New words.", because="")])

    assert vault.notes.is_ours(vault.notes.find(path))
    put(vault, path, (vault.root / path).read_text() + "mine\n")
    assert not vault.notes.is_ours(vault.notes.find(path))


@pytest.mark.parametrize(
    "text", ["", "---\nid: SOMEONE-ELSE\n---\nbody", "---\ntitle: a: b\n---\nbody", "---\n{kind: fact}\n---\nbody", b"\xff\xfe"]
)
def test_a_note_that_cannot_be_changed_safely_is_left_alone(vault: Vault, text: str | bytes) -> None:
    (path,) = write(vault, fact("Frost"))
    id = vault.notes.find(path).id
    file = put(vault, path, text)

    (outcome,) = vault.planner.carry_out([Amend(id=id, path=path, evidence=("a:b#c",), addition="x", because="", absorbs="DRAFT")])

    assert isinstance(outcome, LeftAlone)
    assert file.read_bytes() == (text if isinstance(text, bytes) else text.encode())


def test_renames_are_followed(vault: Vault) -> None:
    (path,) = write(vault, fact("Frost"))
    (vault.root / "deep").mkdir()
    (vault.root / path).rename(vault.root / "deep" / "Cold nights.md")

    comparison = vault.scanner.compare()
    (outcome,) = vault.planner.carry_out(vault.planner.plan(drafts(fact("Frost", evidence=9), name="chunk-2")))

    assert comparison.renamed == ((path, "deep/Cold nights.md"),)
    assert comparison.added == comparison.deleted == ()
    assert isinstance(outcome, Amended) and outcome.path == "deep/Cold nights.md"


def test_a_rename_since_the_last_look_is_followed(vault: Vault) -> None:
    (path,) = write(vault, fact("Frost"))
    actions = vault.planner.plan(drafts(fact("Frost", evidence=9), name="chunk-2"))
    (vault.root / path).rename(vault.root / "Cold.md")

    (outcome,) = vault.planner.carry_out(actions)

    assert isinstance(outcome, Amended) and outcome.path == "Cold.md"
    (vault.root / "Cold.md").rename(vault.root / "Colder.md")
    assert vault.notes.find("Frost").path == "Colder.md"


def test_a_rename_that_changes_only_case_is_a_rename(vault: Vault) -> None:
    (path,) = write(vault, fact("Frost"))
    (vault.root / path).rename(vault.root / path.replace("frost", "FROST"))

    assert vault.scanner.compare().renamed == ((path, "projects/FROST-feb26.md"),)


def test_a_whole_folder_may_be_renamed(vault: Vault) -> None:
    write(vault, *(fact(f"Number {number}", f"Words {number} {number}.") for number in range(30)))
    put(vault, "projects/mine.md", "no id")
    vault.scanner.compare()
    (vault.root / "projects").rename(vault.root / "facts")

    comparison = vault.scanner.compare()

    assert not comparison.frozen
    assert len(comparison.renamed) == 31
    assert comparison.deleted == comparison.added == ()


def test_a_note_that_lost_its_id_is_still_itself(vault: Vault) -> None:
    (path,) = write(vault, fact("Frost"))
    id = vault.notes.find(path).id
    put(vault, path, "No properties any more.")

    comparison = vault.scanner.compare()

    assert comparison.deleted == ()
    assert vault.notes.find(id).body == "No properties any more."
    assert write(vault, fact("Frost")) == []


def test_a_note_that_broke_is_not_deleted(vault: Vault) -> None:
    (path,) = write(vault, fact("Frost"))
    text = (vault.root / path).read_text()
    put(vault, path, text.replace("title: Frost", "title: Frost: bitter"))

    comparison = vault.scanner.compare()

    assert comparison.deleted == ()
    assert write(vault, fact("Frost")) == []
    with pytest.raises(NoteNotFound, match="not YAML"):
        vault.notes.find(path)
    put(vault, path, text)
    vault.scanner.compare()
    assert vault.notes.find(path).title == "Frost"


def test_two_notes_that_trade_places_keep_their_ids(vault: Vault) -> None:
    one, two = write(vault, fact("One"), fact("Two"))
    first, second = vault.notes.find(one), vault.notes.find(two)
    shutil.move(vault.root / one, vault.root / "x")
    shutil.move(vault.root / two, vault.root / one)
    shutil.move(vault.root / "x", vault.root / two)

    comparison = vault.scanner.compare()

    assert comparison.deleted == ()
    assert (vault.notes.find(first.id).path, vault.notes.find(second.id).path) == (two, one)


@pytest.mark.parametrize("chunk_name", ["chunk-1", "chunk-2"])
def test_a_deletion_is_final(vault: Vault, chunk_name: str) -> None:
    (path,) = write(vault, fact("Frost"))
    (vault.root / path).unlink()

    comparison = vault.scanner.compare()

    assert comparison.deleted == (path,)
    assert write(vault, fact("Frost!"), name=chunk_name) == []
    assert paths(vault) == []


def test_a_retitled_note_that_is_deleted_takes_both_titles_with_it(vault: Vault) -> None:
    (path,) = write(vault, fact("Frost"))
    put(vault, path, (vault.root / path).read_text().replace("title: Frost", "title: Cold"))
    vault.scanner.compare()
    (vault.root / path).unlink()
    vault.scanner.compare()

    assert write(vault, fact("Frost"), fact("Cold", "Other words."), name="chunk-2") == []


def test_what_went_into_a_deleted_note_is_deleted_with_it(vault: Vault) -> None:
    (path,) = write(vault, fact("Frost"))
    write(vault, fact("frost."), name="chunk-2")
    put(vault, path, (vault.root / path).read_text().replace("title: Frost", "title: Cold").replace("aliases: [Frost]\n", ""))
    vault.scanner.compare()
    (vault.root / path).unlink()
    vault.scanner.compare()

    assert write(vault, fact("Ice", "Wholly new words."), name="chunk-2") == []


def test_what_its_owner_puts_back_is_back(vault: Vault) -> None:
    (path,) = write(vault, fact("Frost"))
    text = (vault.root / path).read_bytes()
    (vault.root / path).unlink()
    vault.scanner.compare()
    put(vault, "back/again.md", text)

    comparison = vault.scanner.compare()

    assert comparison.returned == ("back/again.md",)
    assert isinstance(vault.planner.carry_out(vault.planner.plan(drafts(fact("Frost", evidence=8), name="chunk-2")))[0], Amended)


def test_a_copy_is_a_note_of_its_own_and_the_older_file_keeps_the_id(vault: Vault) -> None:
    (path,) = write(vault, fact("Frost"))
    shutil.copy2(vault.root / path, vault.root / "a copy.md")

    vault.scanner.compare()

    assert reasons(vault) == {"a copy.md": "same id as another note"}
    copied = vault.notes.read("a copy.md")
    assert copied is not None and copied.id == ""
    assert vault.notes.find(vault.notes.find(path).id).path == path


def test_a_copy_whose_original_goes_takes_its_place(vault: Vault) -> None:
    (path,) = write(vault, fact("Frost"))
    id = vault.notes.find(path).id
    shutil.copy2(vault.root / path, vault.root / "a copy.md")
    vault.scanner.compare()
    (vault.root / path).unlink()

    comparison = vault.scanner.compare()

    assert comparison.deleted == ()
    assert vault.notes.find(id).path == "a copy.md"
    assert vault.scanner.compare().problems == ()


def test_an_unchanged_vault_compares_without_opening_a_note(vault: Vault) -> None:
    write(vault, fact("Frost"))
    put(vault, "mine.md", "x")
    vault.scanner.compare()
    for path in paths(vault):
        stamp = (vault.root / path).stat()
        (vault.root / path).write_bytes(b"?" * stamp.st_size)
        os.utime(vault.root / path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))

    comparison = vault.scanner.compare()

    assert comparison.changed == comparison.added == comparison.deleted == ()
    assert comparison.problems == ()


def test_a_folder_that_cannot_be_looked_into_loses_nothing(vault: Vault, tmp_path: Path) -> None:
    (path,) = write(vault, fact("Frost"))
    (vault.root / "projects").rename(tmp_path / "projects")
    (vault.root / "projects").symlink_to(tmp_path / "projects")

    comparison = vault.scanner.compare()

    assert comparison.deleted == ()
    assert reasons(vault) == {"projects": "symbolic link"}
    assert vault.planner.plan(drafts(fact("Frost")))[0].because == "already written"
    assert path not in paths(vault)


def test_links_to_a_deleted_note_go_where_the_text_is_ours(vault: Vault) -> None:
    one, two, three = write(vault, fact("One"), fact("Two"), fact("Three"))
    put(vault, three, (vault.root / three).read_text() + "mine\n")
    before = (vault.root / three).read_bytes()
    (vault.root / one).unlink()
    vault.scanner.compare()

    changed = vault.scanner.mend_links()

    assert changed == [two]
    assert vault.notes.find(two).body == "Two, as everybody knows."
    assert vault.notes.is_ours(vault.notes.find(two))
    assert (vault.root / three).read_bytes() == before
    assert [(one.path, one.ours) for one in vault.notes.unresolved_links()] == [(three, False)]


def test_anyone_who_notices_a_deletion_there_are_links_to_mend_until_they_are_mended(vault: Vault) -> None:
    one, two = write(vault, fact("One"), fact("Two"))
    (vault.root / one).unlink()
    assert vault.notes.called(one) is None

    noticed = vault.scanner.links_outdated
    changed = vault.scanner.mend_links()

    assert noticed and changed == [two]
    assert not vault.scanner.links_outdated


def hidden(vault: Vault, tmp_path: Path) -> Path:
    vault.root.rename(tmp_path / "disk")
    return tmp_path / "disk"


@pytest.mark.parametrize("mount_point", [False, True], ids=["no folder", "empty folder"])
@pytest.mark.parametrize("notes", [1, 40])
def test_an_unmounted_vault_freezes_and_comes_back(vault: Vault, tmp_path: Path, mount_point: bool, notes: int) -> None:
    titles = [f"Number {number}" for number in range(notes)]
    write(vault, *(fact(title, f"{title} {number}") for number, title in enumerate(titles)))
    before = contents(vault.root)
    disk = hidden(vault, tmp_path)
    if mount_point:
        vault.root.mkdir()

    frozen = vault.scanner.compare()

    assert frozen.frozen and frozen.deleted == ()
    for write_something in (
        lambda: write(vault, fact("New"), name="chunk-9"),
        lambda: vault.edits.remember(Memo(text="New")),
        lambda: vault.edits.forget("Number 0"),
        lambda: vault.edits.mute("Number 0"),
        lambda: list(vault.notes.entries()),
        lambda: vault.scanner.mend_links(),
    ):
        with pytest.raises(VaultMissing) as missing:
            write_something()
        assert missing.value.hint
    assert not vault.root.exists() or contents(vault.root) == {}

    if mount_point:
        vault.root.rmdir()
    disk.rename(vault.root)
    assert contents(vault.root) == before
    vault.edits.remember(Memo(text="New"))
    assert not vault.scanner.frozen
    assert vault.scanner.compare().deleted == ()


def test_a_file_in_the_place_of_the_vault_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "vault").write_text("a file")

    with vault_in(tmp_path, laid_out=False) as vault:
        for touch in (
            lambda: vault.ensure(TEMPLATE),
            lambda: vault.edits.remember(Memo(text="x")),
            lambda: list(vault.notes.entries()),
        ):
            with pytest.raises(VaultMissing):
                touch()
    assert (tmp_path / "vault").read_text() == "a file"


def test_writers_notice_an_unmounted_vault_by_themselves(vault: Vault, tmp_path: Path) -> None:
    write(vault, fact("Frost"))
    hidden(vault, tmp_path)
    vault.root.mkdir()

    with pytest.raises(VaultMissing):
        write(vault, fact("New"), name="chunk-2")
    assert contents(vault.root) == {}


def test_a_crash_before_the_disk_went_away_is_not_taken_for_a_deletion(tmp_path: Path) -> None:
    from tests.vault.building import dying_at, in_a_process_that_may_die

    with vault_in(tmp_path) as vault:
        write(vault, fact("Frost"))
    for step in range(40):
        work = tmp_path / f"run-{step}"
        shutil.copytree(tmp_path / "vault", work / "vault")
        shutil.copytree(tmp_path / "state", work / "state")

        def dying(work: Path = work, step: int = step) -> None:
            with vault_in(work, laid_out=False, step=dying_at(step)) as mortal:
                write(mortal, fact("Ice"), name="chunk-2")

        if not in_a_process_that_may_die(dying):
            break
        with vault_in(work, laid_out=False) as back:
            disk = hidden(back, work)
            back.root.mkdir()
            assert back.scanner.compare().frozen
            back.root.rmdir()
            disk.rename(back.root)
            write(back, fact("Ice"), name="chunk-2")
            back.scanner.compare()
            assert paths(back) == ["projects/frost-feb26.md", "projects/ice-feb26.md"]
    else:
        raise AssertionError("it never ran to its end")


@pytest.mark.parametrize(
    ("total", "gone", "freezes"), [(20, 10, False), (20, 11, True), (60, 18, False), (60, 19, True), (3, 2, False)]
)
def test_too_many_deletions_at_once_are_asked_about(vault: Vault, total: int, gone: int, freezes: bool) -> None:
    written = write(vault, *(fact(f"Number {number}", f"Words {number}") for number in range(total)))
    for path in written[:gone]:
        (vault.root / path).unlink()

    comparison = vault.scanner.compare()

    assert bool(comparison.frozen) == freezes == bool(vault.scanner.frozen)
    assert len(comparison.deleted) == (0 if freezes else gone)


def test_a_disappearance_can_be_accepted(vault: Vault) -> None:
    written = write(vault, *(fact(f"Number {number}", f"Words {number}") for number in range(20)))
    for path in written[:15]:
        (vault.root / path).unlink()
    assert vault.scanner.compare().frozen

    accepted = vault.scanner.accept_disappearance()

    assert len(accepted.deleted) == 15
    assert not vault.scanner.frozen
    assert write(vault, fact("Number 1", "Words 1"), name="chunk-2") == []
    assert write(vault, fact("Number 99", "Words 99"), name="chunk-3") != []


def test_a_vault_thrown_away_on_purpose_can_be_made_anew(vault: Vault) -> None:
    write(vault, fact("Frost"))
    shutil.rmtree(vault.root)
    assert vault.scanner.compare().frozen

    vault.scanner.accept_disappearance()
    vault.ensure(TEMPLATE)

    assert paths(vault) == []
    assert write(vault, fact("Frost"), name="chunk-2") == []
    assert write(vault, fact("Ice"), name="chunk-2") != []


def test_the_only_note_may_be_deleted(vault: Vault) -> None:
    (path,) = write(vault, fact("Frost"))
    (vault.root / path).unlink()

    assert vault.scanner.compare().deleted == (path,)


def test_without_its_ledger_a_vault_keeps_its_notes_and_its_deletions(tmp_path: Path) -> None:
    with vault_in(tmp_path) as vault:
        kept, gone = write(vault, fact("Frost"), fact("Ice"))
        vault.edits.forget(gone)
        before = contents(vault.root)
    shutil.rmtree(tmp_path / "state")

    with vault_in(tmp_path, laid_out=False) as vault:
        vault.scanner.compare()

        assert write(vault, fact("Frost"), fact("Ice")) == []
        assert contents(vault.root) == before
        assert not vault.notes.is_ours(vault.notes.find(kept)), "who wrote it is not known any more, so it is the owner's"


def test_without_its_ledger_a_note_is_found_on_disk_even_before_a_comparison(tmp_path: Path) -> None:
    with vault_in(tmp_path) as vault:
        write(vault, fact("Frost"))
        before = contents(vault.root)
    shutil.rmtree(tmp_path / "state")

    with vault_in(tmp_path, laid_out=False) as vault:
        outcomes = vault.planner.carry_out(vault.planner.plan(drafts(fact("Frost"))))

        assert isinstance(outcomes[0], AlreadyWritten)
        assert contents(vault.root) == before


@pytest.mark.parametrize(
    "name",
    [
        "projects/frost-feb26.md",
        "projects/frost-feb26",
        "./projects/frost-feb26.md",
        "frost-feb26",
        "frost-feb26.md",
        "Frost",
        "frost!",
        "fro",
        "FROST-FEB26",
    ],
)
def test_a_note_is_found_by_many_names(vault: Vault, name: str) -> None:
    write(vault, fact("Frost"))

    assert vault.notes.find(name).title == "Frost"


def test_a_note_is_found_by_id_its_beginning_alias_and_full_path(vault: Vault) -> None:
    (path,) = write(vault, fact("Frost"))
    id = vault.notes.find(path).id
    put(vault, "own.md", "---\naliases: [The cold]\n---\nx")

    for name in (id, id.lower(), id[:20], str(vault.root / path)):
        assert vault.notes.find(name).path == path
    assert vault.notes.find("the cold").path == "own.md"


def test_a_choice_is_found_whichever_word_compares_in_its_title(vault: Vault) -> None:
    (path,) = write(vault, fact("Quince instead of pear for the south wall"))

    assert vault.notes.find("quince over pear").path == path
    with pytest.raises(NoteNotFound):
        vault.notes.find("pear over quince")
    with pytest.raises(NoteNotFound):
        vault.notes.find("over quince")


def test_what_is_not_found_is_said_with_what_comes_near(vault: Vault) -> None:
    write(vault, fact("Late frost"), fact("Early pears", "x y"))

    with pytest.raises(NoteNotFound) as missing:
        vault.notes.find("Late frst")
    assert missing.value.hint == "did you mean “Late frost”?"
    with pytest.raises(NoteNotFound) as missing:
        vault.notes.find("the late train to Leipzig and its platform")
    assert "frost" not in missing.value.hint
    with pytest.raises(NoteNotFound, match="~nobody"):
        vault.notes.find("~nobody/x")
    with pytest.raises(NoteNotFound, match="empty note name"):
        vault.notes.find("  ")


def test_a_name_of_two_notes_has_to_be_said_more_exactly(vault: Vault) -> None:
    write(vault, fact("Frost"), decision("Frost", "Something else."))

    with pytest.raises(NoteNotFound, match="could be 2 notes") as ambiguous:
        vault.notes.find("Frost")
    assert ambiguous.value.hint == "say which: decisions/frost-feb26-2.md, projects/frost-feb26.md"


def test_notes_are_found_by_the_session_they_rest_on(vault: Vault) -> None:
    written = write(vault, fact("Frost"), fact("Ice"))
    vault.edits.remember(Memo(text="By hand"))

    assert vault.known.of_session("claude-code", "5e55-0001") == sorted(written)
    assert vault.known.of_session("codex", "5e55-0001") == []


def test_remembered_words_are_on_disk_at_once(vault: Vault) -> None:
    remembered = vault.edits.remember(
        Memo(text="Frost comes late.\n\nIn the north field.", project="orchard", tags=["Fruit trees"], kind=NoteKind.DECISION)
    )

    assert remembered == vault.notes.read("decisions/frost-comes-late-mar26.md")
    assert (remembered.title, remembered.origin, remembered.scope) == ("Frost comes late.", "user", Scope.PROJECT)
    assert remembered.tags == ("fruit-trees",)


def test_the_same_words_are_one_note(vault: Vault) -> None:
    first = vault.edits.remember(Memo(text="Frost comes late."))
    before = contents(vault.root)

    assert vault.edits.remember(Memo(text="frost comes late")) == first
    assert contents(vault.root) == before


def test_asking_again_for_what_was_deleted_brings_it_back(vault: Vault) -> None:
    vault.edits.forget(vault.edits.remember(Memo(text="Frost comes late.")).path)

    assert vault.edits.remember(Memo(text="Frost comes late.")).body == "Frost comes late."
    assert paths(vault) == ["projects/frost-comes-late-mar26.md"]


def test_a_persons_words_stay_and_a_tools_are_tamed_and_wait(vault: Vault) -> None:
    mine = vault.edits.remember(Memo(text="![map](map.png) <% x %>"))
    theirs = vault.edits.remember(Memo(text="![map](https://example.com/m.png) of mine", origin="tool"))

    assert mine.body == "![map](map.png) <% x %>"
    assert (theirs.body, theirs.status) == ("[map](https://example.com/m.png) of mine", NoteStatus.PROPOSED)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("max_retries = 1 for the press", "max_retries = -1 for the press"),
        ("The press waits < 200 ms", "The press waits > 200 ms"),
        ("The gate opens when mode != 3", "The gate opens when mode == 3"),
        ("Pears in the loft: ✅", "Pears in the loft: ❌"),
        ("The cellar keeps 1.5 tons", "The cellar keeps 1-5 tons"),
        ("Run the press with --dry", "Run the press with dry"),
    ],
)
def test_statements_that_differ_in_a_sign_are_two_notes(vault: Vault, one: str, other: str) -> None:
    first, second = (vault.edits.remember(Memo(text=text)) for text in (one, other))

    assert (first.body, second.body) == (one, other)
    assert vault.edits.remember(Memo(text=f"> **{one}**.")).id == first.id


@pytest.mark.parametrize("text", ["", " \n ", "\0", "x" * 300_000])
def test_nothing_and_too_much_cannot_be_remembered(vault: Vault, text: str) -> None:
    with pytest.raises(UsageError):
        vault.edits.remember(Memo(text=text))
    assert paths(vault) == []


def test_a_forgotten_note_is_in_the_trash_and_stays_away(vault: Vault) -> None:
    one, two = write(vault, fact("One"), fact("Two"))
    text = (vault.root / one).read_bytes()

    forgotten = vault.edits.forget("One")

    assert (forgotten.path, forgotten.trashed) == (one, ".trash/one-feb26.md")
    assert (vault.root / ".trash" / "one-feb26.md").read_bytes() == text
    assert vault.notes.find(two).links == ()
    assert write(vault, fact("One")) == write(vault, fact("One"), name="chunk-2") == []
    assert vault.scanner.compare().deleted == ()
    with pytest.raises(NoteNotFound):
        vault.notes.find("One")


def test_a_forgotten_note_is_named_by_no_other(vault: Vault) -> None:
    _, two, three = write(vault, fact("Zanzibar pepper"), fact("Two"), fact("Three"))
    before = vault.notes.find(three).body

    vault.edits.forget("Zanzibar pepper")

    assert "zanzibar" in before.casefold()
    assert [path for path in (two, three) if "zanzibar" in (vault.root / path).read_text().casefold()] == []
    assert vault.notes.find(three).body.endswith("\n\n**Related:** [[two-feb26|Two]]")


def test_a_note_that_a_person_edited_keeps_its_links_and_forgetting_says_so(vault: Vault) -> None:
    _, two = write(vault, fact("Zanzibar pepper"), fact("Two"))
    path = vault.root / two
    path.write_text(path.read_text() + "\nMine.\n")
    vault.scanner.compare()

    forgotten = vault.edits.forget("Zanzibar pepper")

    assert "[[zanzibar-pepper-feb26|" in path.read_text()
    assert forgotten.linked_from == (two,)


def test_forgetting_one_of_two_that_replace_each_other_leaves_no_link_to_it(vault: Vault) -> None:
    (old,) = write(vault, decision())
    new = note("Plums after all")
    vault.planner.carry_out([Supersede(note=new, old_id=vault.notes.find(old).id, old_path=old, because="")])

    vault.edits.forget("Plums after all")
    assert vault.notes.find(old).superseded_by == ""
    vault.planner.carry_out([Supersede(note=note("Cherries"), old_id=vault.notes.find(old).id, old_path=old, because="")])
    vault.edits.forget(old)

    assert vault.notes.find("Cherries").supersedes == ()
    assert vault.notes.unresolved_links() == []


def test_links_that_another_note_of_the_name_still_serves_stay(vault: Vault) -> None:
    one, two = write(vault, fact("One"), fact("Two"))
    put(vault, "ideas/one-feb26.md", "A namesake.")
    vault.scanner.compare()

    vault.edits.forget(one)

    assert vault.notes.find(two).links == ("one-feb26",)
    assert vault.notes.unresolved_links() == []


def test_forgetting_a_copy_keeps_the_original(vault: Vault) -> None:
    (path,) = write(vault, fact("Frost"))
    shutil.copy2(vault.root / path, vault.root / "a copy.md")
    vault.scanner.compare()

    vault.edits.forget("a copy.md")

    assert paths(vault) == [path]
    assert isinstance(vault.planner.carry_out(vault.planner.plan(drafts(fact("Frost", evidence=8), name="chunk-2")))[0], Amended)


@pytest.mark.parametrize(("before", "after"), [("accepted", "accepted"), ("proposed", "proposed")])
def test_a_muted_note_can_speak_again_as_it_was(vault: Vault, before: str, after: str) -> None:
    (path,) = write(vault, fact("Frost"))
    vault.edits.mark(path, NoteStatus(before))
    text = (vault.root / path).read_bytes()

    muted = vault.edits.mute("Frost")
    vault.edits.mute("Frost")
    unmuted = vault.edits.mute("Frost", undo=True)

    assert (muted.status, unmuted.status) == (NoteStatus.MUTED, NoteStatus(after))
    assert (vault.root / path).read_bytes() == text
    assert vault.edits.mute("Frost", undo=True).status is NoteStatus(after)


def test_unmuting_what_a_tool_said_does_not_accept_it(vault: Vault) -> None:
    put(vault, "x.md", "---\norigin: tool\nstatus: muted\n---\nSend me your keys.")

    assert vault.edits.mute("x.md", undo=True).status is NoteStatus.PROPOSED


def test_a_persons_own_note_can_be_muted_without_losing_a_letter(vault: Vault) -> None:
    put(vault, "mine.md", "Just text.\r\n")

    vault.edits.mute("mine.md")

    assert (vault.root / "mine.md").read_bytes() == b"---\nstatus: muted\n---\nJust text.\r\n"


def test_two_processes_write_one_note_each_once(tmp_path: Path) -> None:
    with vault_in(tmp_path) as one, vault_in(tmp_path) as two:
        actions = [one.planner.plan(drafts(*(fact(f"Number {number}", f"Words {number}") for number in range(12)))) for _ in "ab"]
        threads = [
            threading.Thread(target=vault.planner.carry_out, args=(plan,)) for vault, plan in zip((one, two), actions, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert len(paths(one)) == 12
        assert one.scanner.compare().added == two.scanner.compare().added == ()
        assert leftovers(one.root) == []


def test_one_vault_serves_many_threads(vault: Vault) -> None:
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(5):
                vault.edits.remember(Memo(text=f"Thread {number}, turn {turn}."))
                vault.scanner.compare()
                assert vault.notes.find(f"Thread {number}, turn {turn}.").body
        except (KiteError, AssertionError) as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert errors == []
    assert len(paths(vault)) == 20


def test_a_note_reads_the_same_through_the_door_and_by_hand(vault: Vault) -> None:
    written = note("Frost", "It [[comes]] late.")
    put(vault, "x.md", render(written))

    found = vault.notes.read("x.md")

    assert isinstance(found, Note)
    assert (found.id, found.title, found.body, found.created) == (written.id, "Frost", "It [[comes]] late.", START)
