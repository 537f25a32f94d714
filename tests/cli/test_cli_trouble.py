"""Files and folders that are not as they should be: what is said of them is true, and a command that fails has done no harm."""

import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from kite_memory.cli.everyday import leave_transcripts
from kite_memory.distill.condense import Span
from kite_memory.distill.outbox import Outbox
from tests.cli.test_cli_processes import without_privileges
from tests.cli.transcript import in_this_process
from tests.e2e.kmem import Machine, Ran

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="modes and files of unix")


def kmem(machine: Machine, *arguments: str, **environment: str) -> Ran:
    return in_this_process(machine, list(arguments), cwd=machine.home, environment=environment)


def as_anybody(machine: Machine, *arguments: str) -> Ran:
    """By someone for whom file modes hold."""
    command = [*without_privileges(), sys.executable, "-m", "kite_memory", *arguments]
    done = subprocess.run(command, env=machine.env(), cwd=machine.home, capture_output=True, text=True, timeout=120)
    return Ran(code=done.returncode, out=done.stdout, err=done.stderr)


@pytest.fixture
def lived_in(machine: Machine) -> Machine:
    leave_transcripts(machine.home / ".claude", machine.home / "mycelia")
    assert kmem(machine, "backfill").code == 0
    return machine


def without_a_key(machine: Machine) -> dict[str, str]:
    return {"KMEM_EMBEDDER": "voyage", "VOYAGE_API_KEY": ""}


def without_a_vault(machine: Machine) -> dict[str, str]:
    machine.vault.rename(machine.home / "disk")
    return {}


def with_a_damaged_outbox(machine: Machine) -> dict[str, str]:
    (machine.state / "outbox.sqlite").write_bytes(b"no database at all " * 50)
    return {}


@pytest.mark.parametrize("trouble", [without_a_key, without_a_vault, with_a_damaged_outbox])
def test_a_rebuild_that_fails_leaves_the_timeline_as_it_was(
    lived_in: Machine, trouble: Callable[[Machine], dict[str, str]]
) -> None:
    before = kmem(lived_in, "timeline").out
    environment = trouble(lived_in)

    failed = kmem(lived_in, "rebuild", "--timeline", **environment)

    assert failed.code in (1, 2), failed.err
    assert "kept as" not in failed.err
    assert kmem(lived_in, "timeline").out == before
    assert [path.name for path in lived_in.state.glob("timeline*.sqlite*")] == ["timeline.sqlite"]


def test_a_damaged_timeline_that_cannot_be_made_anew_stays_for_repair(lived_in: Machine) -> None:
    (lived_in.state / "timeline.sqlite").write_bytes(b"no database at all " * 50)

    failed = kmem(lived_in, "rebuild", "--timeline", **without_a_key(lived_in))

    assert failed.code == 2
    assert failed.err.startswith("the timeline was left as it was\nerror: ")
    assert (lived_in.state / "timeline.sqlite").read_bytes().startswith(b"no database")


def test_a_damaged_timeline_is_made_anew_also_while_the_vault_is_gone(lived_in: Machine) -> None:
    before = kmem(lived_in, "timeline").out
    (lived_in.state / "timeline.sqlite").write_bytes(b"no database at all " * 50)
    without_a_vault(lived_in)

    failed = kmem(lived_in, "rebuild", "--timeline")

    assert failed.code == 1
    assert "the index was left alone" in failed.err
    assert kmem(lived_in, "timeline").out == before


@pytest.mark.parametrize("name", ["timeline.sqlite", "outbox.sqlite"])
@pytest.mark.parametrize("command", [("status",), ("verify",), ("rebuild", "--timeline")])
def test_a_file_that_is_closed_to_us_is_not_called_damaged(lived_in: Machine, name: str, command: tuple[str, ...]) -> None:
    (lived_in.state / name).chmod(0o000)

    ran = as_anybody(lived_in, *command)

    assert ran.code == 1, ran.err
    assert ran.out == ""
    assert f"{name} may not be opened or written: " in ran.err
    assert f"hint: see who owns it: ls -la {lived_in.state}" in ran.err
    assert [path.name for path in lived_in.state.glob("timeline*.sqlite")] == ["timeline.sqlite"]


def test_a_state_folder_that_may_only_be_read_is_not_called_damage(lived_in: Machine) -> None:
    lived_in.state.chmod(0o500)

    ran = as_anybody(lived_in, "status")

    lived_in.state.chmod(0o700)
    assert ran.code == 1
    assert "may not be opened or written" in ran.err
    assert "rebuild" not in ran.err


@pytest.mark.parametrize("file", ["all.zip", "all.jsonl", "-"])
def test_an_export_that_leaves_something_out_says_so_and_is_no_success(machine: Machine, file: str) -> None:
    kmem(machine, "remember", "The orchard server runs on port 8123")
    topics = machine.vault / "topics"
    (topics / "un.md").write_text("The well pump starts at six.\n")
    (topics / "un.md").chmod(0o000)
    machine.vault.joinpath("topics", b"caf\xe9.md".decode("utf-8", "surrogateescape")).write_text("Opens at nine.\n")

    ran = as_anybody(machine, "export", file)

    assert ran.code == 1
    assert "left out: topics/un.md: " in ran.err
    assert "left out: topics/caf\\udce9.md: file name is not text\n" in ran.err
    assert "error: the export is incomplete: 2 files could not be read\n" in ran.err
    if file == "all.zip":
        assert [name for name in zipfile.ZipFile(machine.home / file).namelist() if name.startswith("topics/")] == []


def test_a_note_that_is_invalid_to_us_goes_into_the_archive_as_it_is(machine: Machine) -> None:
    kmem(machine, "remember", "The orchard server runs on port 8123")
    (machine.vault / "topics" / "odd.md").write_bytes(b"\xff\xfe no text")

    archive, lines = kmem(machine, "export", "all.zip"), kmem(machine, "export", "all.jsonl")

    assert archive.code == 0, archive.err
    assert "in it as it is: topics/odd.md: not UTF-8\n" in archive.err
    assert "topics/odd.md" in zipfile.ZipFile(machine.home / "all.zip").namelist()
    assert lines.code == 1
    assert "left out: topics/odd.md: not UTF-8\n" in lines.err


def test_an_empty_path_does_not_take_in_the_current_folder(machine: Machine) -> None:
    (machine.home / "diary.md").write_text("# Diary\n\nNobody's business.\n")

    ran = kmem(machine, "import", "")

    assert ran.code == 2
    assert ran.err.startswith("error: the path is empty\nhint: ")
    assert machine.notes() == []


def closed_for_writing(machine: Machine) -> None:
    machine.state.chmod(0o500)


def closed(machine: Machine) -> None:
    machine.state.chmod(0o000)


def a_file_in_its_place(machine: Machine) -> None:
    shutil.rmtree(machine.state)
    machine.state.write_text("not a folder\n")


@pytest.mark.parametrize("trouble", [closed_for_writing, closed, a_file_in_its_place])
def test_a_state_folder_that_cannot_be_used_is_a_finding_among_others(machine: Machine, trouble: Callable[[Machine], None]) -> None:
    kmem(machine, "remember", "The orchard server runs on port 8123")
    trouble(machine)

    ran = as_anybody(machine, "doctor")

    machine.state.chmod(0o700)
    assert ran.code == 3, ran.err
    assert "ok       Python 3." in ran.out
    assert "\nproblem  " in ran.out
    assert "this is a bug in kmem" not in ran.err


@pytest.mark.parametrize("folder", [".", "topics"])
def test_a_vault_that_may_only_be_read_is_a_problem(machine: Machine, folder: str) -> None:
    kmem(machine, "remember", "The orchard server runs on port 8123")
    (machine.vault / folder).chmod(0o500)

    doctor, up = as_anybody(machine, "doctor"), as_anybody(machine, "up", "--no-hooks")

    (machine.vault / folder).chmod(0o700)
    said = f"notes cannot be written to {(machine.vault / folder)}"
    assert doctor.code == 3
    assert f"problem  {said}\n" in doctor.out
    assert up.code == 1
    assert f"error: {said}\nhint: see who owns it: " in up.err


@pytest.mark.parametrize("command", ["show", "forget", "mute", "edit", "review"])
def test_where_notes_are_known_no_one_is_asked_to_make_a_new_vault(lived_in: Machine, command: str) -> None:
    named = [] if command == "review" else [str(lived_in.notes()[0].relative_to(lived_in.vault))]
    without_a_vault(lived_in)

    ran = kmem(lived_in, command, *named)

    assert ran.code == 1
    assert "\nhint: mount its disk or bring the notes back" in ran.err


def test_an_emptied_timeline_is_mended_as_verify_says(lived_in: Machine) -> None:
    for path in lived_in.state.glob("timeline.sqlite*"):
        path.unlink()
    (lived_in.state / "timeline.sqlite").touch(0o600)

    before = kmem(lived_in, "verify")
    mended = kmem(lived_in, "rebuild", "--timeline")
    after = kmem(lived_in, "verify")

    assert before.code == 3
    assert "hint: `kmem rebuild --timeline` rebuilds it" in before.err
    assert (mended.code, after.code) == (0, 0), mended.err + after.out


def test_up_backfill_and_status_count_the_same_notes(lived_in: Machine) -> None:
    for number in range(3):
        (lived_in.vault / "topics" / f"odd-{number}.md").write_bytes(b"\xff\xfe no text")

    backfill, status = kmem(lived_in, "backfill"), kmem(lived_in, "status", "--json")

    assert status.json()["notes"]["total"] == 3
    assert "3 notes in ~/.kite/memory\n" in backfill.err


def test_sessions_that_begin_alike_are_offered_by_as_much_as_shows_them_apart(lived_in: Machine) -> None:
    ran = kmem(lived_in, "timeline", "d33")

    (offered,) = re.findall(r"hint: give more of the id: (.*)", ran.err)
    assert ran.code == 2
    assert [kmem(lived_in, "timeline", each).code for each in offered.split(", ")] == [0, 0]


def test_chunks_that_were_set_aside_are_reported_and_asked_about_again_on_request(machine: Machine) -> None:
    assert kmem(machine, "backfill").code == 0
    with closing(Outbox(machine.state / "outbox.sqlite")) as outbox:
        outbox.formed.add([Span(id="x", provider="claude-code", session="gone", first=0, last=0, weight=1)])
        outbox.set_aside("x", reason="no answer within 180 s")

    assert "1 chunk set aside (no answer within 180 s); `kmem backfill --retry` asks again" in kmem(machine, "status").out
    kmem(machine, "backfill", "--retry")

    with closing(Outbox(machine.state / "outbox.sqlite")) as outbox:
        assert outbox.aside() == {}


def test_doctor_corrects_a_hook_whose_program_is_gone(machine: Machine) -> None:
    assert kmem(machine, "hooks", "install", "--yes").code == 0
    settings = machine.home / ".claude" / "settings.json"
    as_installed = settings.read_text()
    client = re.search(r"\S*hook_client\.py", as_installed)
    assert client is not None
    settings.write_text(as_installed.replace(client[0], "/gone/kite_memory/hook_client.py"))

    found = kmem(machine, "doctor")
    kmem(machine, "doctor", "--repair")

    assert found.code == 3
    assert "the hook starts /gone/kite_memory/hook_client.py, which is gone" in found.out
    assert settings.read_text() == as_installed


def test_with_an_invalid_configuration_one_can_repair_and_uninstall(machine: Machine) -> None:
    assert kmem(machine, "hooks", "install", "--yes").code == 0
    settings = machine.home / ".claude" / "settings.json"
    as_installed = settings.read_text()
    settings.write_text(as_installed.replace("hook_client.py", "gone/kite_memory/hook_client.py"))
    machine.configure("vault = 3\n")

    repaired = kmem(machine, "doctor", "--repair", "--json")
    in_between = settings.read_text()
    removed = kmem(machine, "uninstall", "--yes")

    assert any("vault" in finding["what"] for finding in repaired.json())
    assert in_between == as_installed
    assert (removed.code, settings.exists()) == (0, False)
    assert "the default folders are taken" in removed.err


def test_lines_in_a_project_are_not_forgotten_by_an_uninstall(machine: Machine) -> None:
    project = machine.home / "mycelia"
    project.mkdir(exist_ok=True)
    kmem(machine, "connect", "--agent", "claude-code", "--yes")
    before = kmem(machine, "uninstall", "--yes")
    kmem(machine, "connect", "--agent", "claude-code", "--project", str(project), "--yes")

    removed = kmem(machine, "uninstall", "--yes")

    said = "the lines in CLAUDE.md of a project folder mycelia may be there still"
    assert said not in before.err and said in removed.err
    assert "`kmem connect --agent claude-code --remove --project FOLDER`" in removed.err


def test_doctor_corrects_an_mcp_server_whose_program_is_gone(machine: Machine) -> None:
    kmem(machine, "connect", "--agent", "claude-code", "--yes")
    settings = machine.home / ".claude" / ".claude.json"
    whole = settings.read_text()
    settings.write_text(whole.replace("__main__.py", "gone/kite_memory/__main__.py"))

    found = kmem(machine, "doctor")
    kmem(machine, "doctor", "--repair")

    assert found.code == 3
    assert "gone/kite_memory/__main__.py, which is gone" in found.out
    assert json.loads(settings.read_text()) == json.loads(whole)


def test_hooks_in_the_settings_of_an_agent_that_never_ran_are_known_and_removed(machine: Machine) -> None:
    settings = machine.home / ".gemini" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"theme": "dark"}')
    kmem(machine, "hooks", "install", "--agent", "gemini-cli", "--yes")

    status = kmem(machine, "hooks", "status")
    removed = kmem(machine, "uninstall", "--yes")

    assert "gemini-cli" in status.out
    assert (removed.code, settings.read_text()) == (0, '{"theme": "dark"}')


def test_doctor_links_the_commands_again_where_their_environment_has_moved(machine: Machine, tmp_path: Path) -> None:
    link = machine.home / ".local" / "bin" / "kmem"
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path / "gone" / "kmem")

    kmem(machine, "remember", "The hedge is cut in March")  # makes the vault

    found = kmem(machine, "doctor", PATH="/usr/bin:/bin")
    kmem(machine, "doctor", "--repair", PATH="/usr/bin:/bin")

    assert found.code == 3
    assert "problem  `kmem` is not on your PATH" in found.out
    assert link.resolve() == Path(sys.executable).parent.resolve() / "kmem"


def test_a_project_is_named_alike_everywhere(machine: Machine) -> None:
    assert kmem(machine, "remember", "Pears ripen in the orchard", "--project", "orchard").code == 0
    assert kmem(machine, "remember", "Apples ripen in the mill", "--project", "mill").code == 0

    found = [hit["title"] for hit in kmem(machine, "search", "ripen", "--project", "Orchard", "--json").json()["hits"]]
    drawn = kmem(machine, "graph", "--format", "json", "--project", "Orchard").out
    exported = kmem(machine, "export", "--out", "-", "--project", "Orchard").out
    token = kmem(machine, "token", "create", "ci", "--project", "Orchard")

    assert len(found) == 1
    for text in (found[0], drawn, exported):
        assert "Pears" in text
        assert "Apples" not in text
    assert "reads and writes all scopes of orchard," in token.err


def test_a_token_is_not_made_for_a_folder_that_is_not_there(machine: Machine) -> None:
    for name in ("acme/api", "./misspelt", "~/nowhere"):
        refused = kmem(machine, "token", "create", "ci", "--project", name)

        assert refused.code == 2
        assert "there is no folder" in refused.err
    assert "ci" not in kmem(machine, "token", "list").out


def test_without_a_vault_a_token_reaches_a_project_as_it_is_named_and_as_its_folder_names_it(machine: Machine) -> None:
    (machine.state / "vault.sqlite").unlink(missing_ok=True)

    assert "all scopes of Orchard, orchard," in kmem(machine, "token", "create", "ci", "--project", "Orchard").err
    assert "all scopes of mill," in kmem(machine, "token", "create", "mill", "--project", "mill").err


@pytest.mark.parametrize("words", [["graph"], ["export", "--out", "-"]])
def test_a_project_that_no_note_belongs_to_is_an_error(machine: Machine, words: list[str]) -> None:
    assert kmem(machine, "remember", "Pears ripen", "--project", "orchard").code == 0

    shown = kmem(machine, *words, "--project", "mill")

    assert shown.code == 2
    assert "error: no note belongs to a project called mill\nhint: known ones are: orchard" in shown.err


@pytest.mark.parametrize(("called", "how", "code"), [("Pears", [], 2), ("Pears", ["--yes"], 0), ("Pears ripen late", [], 0)])
def test_a_part_of_a_title_forgets_nothing_unasked(machine: Machine, called: str, how: list[str], code: int) -> None:
    assert kmem(machine, "remember", "Pears ripen late").code == 0

    done = kmem(machine, "forget", called, *how)

    assert done.code == code
    assert (kmem(machine, "show", "Pears ripen late").code == 0) is (code != 0)
    assert code == 0 or "Pears ripen late  (projects/" in done.err


@pytest.mark.parametrize(
    "words", [["search", "geese"], ["how", "geese"], ["fix", "geese"], ["blame", "geese.py"], ["ask", "where do the geese swim?"]]
)
def test_nothing_found_ends_alike_with_json_and_without(machine: Machine, words: list[str]) -> None:
    assert [kmem(machine, *words).code, kmem(machine, *words, "--json").code] == [1, 1]
