"""Tokens: shown once, known again, and turned away in every other case."""

import sqlite3
import stat
import string
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.errors import StateDamaged, StateNewer, UsageError
from kite_memory.mcp_server.tokens import NoSuchToken, StoredToken, Tokens
from kite_memory.model.note import Scope
from kite_memory.tools.store import OWNER, Grant

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


@contextmanager
def opened(folder: Path, now: list[datetime] | None = None) -> Iterator[Tokens]:
    tokens = Tokens(folder, clock=lambda: (now or [NOW])[0])
    try:
        yield tokens
    finally:
        tokens.close()


def test_a_token_is_known_again_also_after_a_restart(tmp_path: Path) -> None:
    with opened(tmp_path) as tokens:
        token, made = tokens.create(
            "ci", write=False, scopes=[Scope.PROJECT], projects=["mycelia"], expires=NOW + timedelta(days=1)
        )

    with opened(tmp_path) as tokens:
        found = tokens.find(token, loopback=False)

    assert found == made
    assert made.grant == Grant(name="ci", write=False, scopes=frozenset({Scope.PROJECT}), projects=frozenset({"mycelia"}))


def test_a_token_is_revoked_by_its_name_before_another_ones_id(tmp_path: Path) -> None:
    now = [NOW]
    with opened(tmp_path, now) as tokens:
        _, first = tokens.create("ci")
        now[0] += timedelta(seconds=1)
        _, named = tokens.create(first.id)

        assert tokens.revoke(first.id) == named
        assert tokens.revoke(first.id) == first
        assert tokens.all() == []


def test_no_part_of_a_token_lies_on_the_disk(tmp_path: Path) -> None:
    with opened(tmp_path) as tokens:
        token, made = tokens.create("ci")
    _, secret, _, signature = token.removeprefix("kmem_").split(".")

    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())

    assert made.id.encode() in kept
    assert secret.encode() not in kept
    assert signature.encode() not in kept


def test_its_files_are_their_owners_alone(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    with opened(folder) as tokens:
        tokens.create("ci")
        tokens.local(folder / "local.token")

    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


def test_every_single_change_of_a_token_makes_it_worthless(tmp_path: Path) -> None:
    with opened(tmp_path) as tokens:
        token, _ = tokens.create("ci", expires=NOW + timedelta(days=1))

        taken = [
            changed
            for at in range(len(token))
            for letter in string.ascii_letters + string.digits + "-_."
            if letter != token[at]
            and isinstance(tokens.find(changed := token[:at] + letter + token[at + 1 :], loopback=True), StoredToken)
        ]

    assert taken == []


@given(text=st.text(max_size=80) | st.text(alphabet="kmem_.0aé\0", max_size=60))
def test_anything_else_is_turned_away(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    with opened(tmp_path_factory.mktemp("state")) as tokens:
        assert not isinstance(tokens.find(text, loopback=True), StoredToken)


def test_a_longer_life_cannot_be_written_into_a_token(tmp_path: Path) -> None:
    with opened(tmp_path) as tokens:
        token, _ = tokens.create("ci", expires=NOW + timedelta(hours=1))
    head, secret, ends, signature = token.split(".")

    with opened(tmp_path) as tokens:
        assert tokens.find(".".join((head, secret, "0", signature)), loopback=True) == "forged"
        assert tokens.find(".".join((head, secret, str(int(ends) + 9_999), signature)), loopback=True) == "forged"


def test_it_ends_when_it_was_said_to(tmp_path: Path) -> None:
    now = [NOW]
    with opened(tmp_path, now) as tokens:
        token, _ = tokens.create("ci", expires=NOW + timedelta(hours=1))

        now[0] = NOW + timedelta(minutes=59)
        before = tokens.find(token, loopback=True)
        now[0] = NOW + timedelta(hours=1)
        after = tokens.find(token, loopback=True)

        assert isinstance(before, StoredToken)
        assert after == "expired"
        assert tokens.living() == []
        assert [kept.name for kept in tokens.all()] == ["ci"]


def test_what_one_process_revokes_another_refuses_at_once(tmp_path: Path) -> None:
    with opened(tmp_path) as serving, opened(tmp_path) as command:
        token, _ = command.create("ci")
        before = serving.find(token, loopback=False)

        command.revoke("ci")

        assert isinstance(before, StoredToken)
        assert serving.find(token, loopback=False) == "unknown"


def test_with_another_machines_key_a_token_is_forged(tmp_path: Path) -> None:
    with opened(tmp_path / "a") as here, opened(tmp_path / "b") as there:
        token, _ = here.create("ci")

        assert there.find(token, loopback=True) == "forged"


def test_a_record_put_back_does_not_bring_a_token_back_without_its_hash(tmp_path: Path) -> None:
    with opened(tmp_path) as tokens:
        token, kept = tokens.create("ci")
        tokens.create("other")
    with sqlite3.connect(tmp_path / "tokens.sqlite") as database:
        database.execute("UPDATE token SET hash = (SELECT hash FROM token WHERE name = 'other') WHERE id = ?", (kept.id,))
    database.close()

    with opened(tmp_path) as tokens:
        assert tokens.find(token, loopback=True) == "unknown"


def test_the_local_token_is_the_owners_and_good_on_loopback_alone(tmp_path: Path) -> None:
    file = tmp_path / "local.token"
    with opened(tmp_path) as tokens:
        tokens.local(file)
        token = file.read_text().strip()

        found = tokens.find(token, loopback=True)

        assert isinstance(found, StoredToken) and found.grant == OWNER
        assert tokens.find(token, loopback=False) == "not here"


def test_the_local_token_stays_while_it_is_good_and_is_made_anew_when_not(tmp_path: Path) -> None:
    file = tmp_path / "local.token"
    with opened(tmp_path) as tokens:
        tokens.local(file)
        first = file.read_text()
        tokens.local(file)
        second = file.read_text()
        file.write_text("kmem_something.else\n")
        tokens.local(file)
        third = file.read_text()

        assert first == second != third
        assert [kept.name for kept in tokens.all()] == ["local"]
        assert tokens.find(first.strip(), loopback=True) == "unknown"


@pytest.mark.parametrize("name", ["", " ci", "a\nb", "x" * 61])
def test_a_name_that_is_invalid_is_refused(tmp_path: Path, name: str) -> None:
    with opened(tmp_path) as tokens, pytest.raises(UsageError):
        tokens.create(name)


def test_two_tokens_cannot_share_a_name(tmp_path: Path) -> None:
    with opened(tmp_path) as tokens:
        tokens.create("ci")

        with pytest.raises(UsageError, match="already"):
            tokens.create("ci")


def test_an_end_that_has_passed_and_an_unknown_name_are_said(tmp_path: Path) -> None:
    with opened(tmp_path) as tokens:
        with pytest.raises(UsageError, match="ended"):
            tokens.create("ci", expires=NOW)
        with pytest.raises(NoSuchToken):
            tokens.revoke("ci")


def test_a_newer_or_a_damaged_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "damaged").mkdir(mode=0o700)
    (tmp_path / "damaged" / "tokens.sqlite").write_bytes(b"not a database, not at all, never was" * 100)
    (tmp_path / "short").mkdir(mode=0o700)
    (tmp_path / "short" / "tokens.key").write_bytes(b"short")
    with opened(tmp_path / "newer"):
        pass
    with sqlite3.connect(tmp_path / "newer" / "tokens.sqlite") as database:
        database.execute("PRAGMA user_version = 99")
    database.close()

    with pytest.raises(StateDamaged):
        Tokens(tmp_path / "damaged")
    with pytest.raises(StateDamaged):
        Tokens(tmp_path / "short")
    with pytest.raises(StateNewer):
        Tokens(tmp_path / "newer")


def test_no_one_elses_token_is_called_as_this_machines_own(tmp_path: Path) -> None:
    """Else it would be revoked when a server makes that one."""
    tokens = Tokens(tmp_path)
    try:
        with pytest.raises(UsageError, match="local"):
            tokens.create("local")
        tokens.local(tmp_path / "local.token")
    finally:
        tokens.close()


def kept(**fields: Any) -> StoredToken:
    content: dict[str, Any] = {"id": "0", "write": True, "scopes": None, "projects": None, "created": NOW, "expires": None}
    return StoredToken(**{**content, **fields})


def test_a_token_is_its_persons_and_one_that_names_no_one_is_its_own_in_a_team_and_the_owners_here() -> None:
    ada, ci = kept(name="laptop", person="ada"), kept(name="ci")

    assert (ada.grant.person, ada.team_grant.person) == ("ada", "ada")
    assert (ci.grant.person, ci.team_grant.person) == ("", "ci")
    assert kept(name="local", local=True).team_grant == OWNER


def test_a_person_is_kept_with_the_token(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path)
    token, made = tokens.create("laptop", person="ada")

    assert made.person == "ada"
    found = tokens.find(token, loopback=False)
    assert isinstance(found, StoredToken)
    assert found.person == "ada"
    with pytest.raises(UsageError):
        tokens.create("other", person=" ada\n")
    tokens.close()


def test_tokens_of_an_earlier_version_stay_good_and_name_no_one(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path)
    token, _ = tokens.create("ci", write=False)
    tokens.close()
    with closing(sqlite3.connect(tmp_path / "tokens.sqlite")) as database:
        database.execute("ALTER TABLE token DROP COLUMN person")
        database.execute("PRAGMA user_version = 1")
        database.commit()

    tokens = Tokens(tmp_path)
    found = tokens.find(token, loopback=False)
    tokens.close()

    assert isinstance(found, StoredToken)
    assert (found.name, found.write, found.person) == ("ci", False, "")
