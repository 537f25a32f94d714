"""The tools for keyed memories: what they take, what they refuse, and where they look."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.errors import KiteError, UsageError
from kite_memory.mcp_server.server import bounded
from kite_memory.text.quoting import safe_json
from kite_memory.tools.arguments import LocalContext
from kite_memory.tools.declarations import TOOLS, Json, ToolDispatcher
from kite_memory.tools.memory_tools import memory_tools
from kite_memory.tools.store import OWNER, Asker, Conflict, Grant, JsonValue, NotAllowed
from tests.fakes.memory_store import MemoryStore
from tests.tools.local_stores import START

HERE = Asker(grant=OWNER, project="orchard", session="morning", ai="codex")
TOKEN = "ghp_" + "a1B2" * 9
Ask = Callable[..., Json]


@pytest.fixture
def ask() -> Ask:
    known = ToolDispatcher(memory_tools(MemoryStore(), LocalContext(), clock=lambda: START))

    def asking(tool: str, asker: Asker = HERE, **arguments: object) -> Json:
        return known.perform(tool, arguments, asker)

    return asking


def value_in(answer: Mapping[str, Any]) -> JsonValue:
    assert answer["found"] is True
    value: JsonValue = answer["value"]
    return value


def test_what_is_written_is_read_with_who_wrote_it(ask: Ask) -> None:
    written = ask("write_memory", key="project.database", value={"port": 5432}, tags=["Stack", "data base"])

    read = ask("read_memory", key="project.database")

    assert (written["written"], written["version"], written["scope"]) == (True, 1, "project")
    assert value_in(read) == {"port": 5432}
    assert (read["created_by"], read["project"], read["tags"]) == ("codex", "orchard", ["stack", "data-base"])
    assert "value" not in written


def test_without_a_scope_the_nearest_is_read(ask: Ask) -> None:
    for scope in ("global", "shared", "project", "session"):
        assert ask("read_memory", key="port")["found"] is (scope != "global")
        ask("write_memory", key="port", value=scope, scope=scope)
        assert value_in(ask("read_memory", key="port")) == scope


def test_of_a_project_and_a_session_only_the_askers_own_is_seen(ask: Ask) -> None:
    for scope in ("project", "session"):
        ask("write_memory", key=f"my.{scope}", value="x", scope=scope)
    elsewhere = Asker(grant=OWNER, project="meadow", session="evening")
    nowhere = Asker(grant=OWNER)

    for asker in (elsewhere, nowhere):
        for key in ("my.project", "my.session"):
            assert ask("read_memory", asker, key=key) == {"found": False, "key": key}
        assert ask("read_memory", asker, key="my.*")["memories"] == []
        assert ask("list_memories", asker)["memories"] == []
    assert ask("read_memory", elsewhere, key="my.project", project="orchard")["found"]
    assert ask("read_memory", elsewhere, key="my.session", session_id="morning", project="orchard")["found"]


@pytest.mark.parametrize(("scope", "asker"), [("project", Asker(grant=OWNER)), ("session", replace(HERE, session=""))])
def test_what_belongs_to_a_project_or_a_session_needs_one(ask: Ask, scope: str, asker: Asker) -> None:
    for tool, more in (("write_memory", {"value": 1}), ("delete_memory", {}), ("read_memory", {})):
        with pytest.raises(UsageError) as refused:
            ask(tool, asker, key="port", scope=scope, **more)
        assert refused.value.hint


def test_a_pattern_finds_all_that_fit(ask: Ask) -> None:
    for key in ("project.a", "project.b", "current.a"):
        ask("write_memory", key=key, value=key)

    assert [each["key"] for each in ask("read_memory", key="project.*")["memories"]] == ["project.a", "project.b"]
    assert [each["key"] for each in ask("read_memory", key="*.?")["memories"]] == ["current.a", "project.a", "project.b"]


def test_a_reading_of_many_is_bounded_and_says_what_is_left_out(ask: Ask) -> None:
    for number in range(5):
        ask("write_memory", key=f"large.{number}", value="x" * 6_000)

    read = ask("read_memory", key="large.*")

    assert len(json.dumps(read)) < 21_000
    assert (len(read["memories"]), read["left_out"]) == (3, ["large.3", "large.4"])


def test_a_list_shows_beginnings_and_says_whether_there_are_more(ask: Ask) -> None:
    for number in range(4):
        ask("write_memory", key=f"k{number}", value="word " * 200, tags=["even"] if number % 2 == 0 else [])

    listed = ask("list_memories", limit=3)

    assert ([each["key"] for each in listed["memories"]], listed["more"]) == (["k0", "k1", "k2"], True)
    assert all(len(each["preview"]) <= 200 and "value" not in each for each in listed["memories"])
    assert [each["key"] for each in ask("list_memories", tags=["even"])["memories"]] == ["k0", "k2"]


def test_a_list_gives_whole_values_where_it_is_asked_to(ask: Ask) -> None:
    ask("write_memory", key="state", value={"rows": [1, 2], "note": "x" * 400})

    (shown,) = ask("list_memories", values=True)["memories"]

    assert shown["value"] == {"rows": [1, 2], "note": "x" * 400}
    assert "value" not in ask("list_memories")["memories"][0]
    with pytest.raises(UsageError):
        ask("list_memories", values="yes")


def test_a_list_shows_all_that_there_is_room_for_and_that_there_are_more(ask: Ask) -> None:
    for number in range(150):
        ask("write_memory", key=f"k{number:03}", value="word " * 200)

    listed = ask("list_memories", limit=200)

    shown = bounded(dict(listed), TOOLS["list_memories"].longest)
    assert shown == listed
    assert listed["count"] == len(listed["memories"]) < 150
    assert listed["more"] and "narrow" in listed["hint"]
    assert len(safe_json(listed)) > 0.9 * TOOLS["list_memories"].longest
    assert [each["key"] for each in listed["memories"]] == [f"k{number:03}" for number in range(listed["count"])]


def test_a_list_of_which_all_is_reported_has_no_more(ask: Ask) -> None:
    ask("write_memory", key="k", value=1)

    listed = ask("list_memories", limit=1)

    assert (listed["count"], listed["more"], "hint" in listed) == (1, False, False)


@pytest.mark.parametrize("project", [None, "orchard"])
def test_what_is_written_is_read_again_with_the_same_words(ask: Ask, project: str | None) -> None:
    named = {"project": project} if project else {}
    other = {} if project else {"project": "orchard"}
    ask("write_memory", key="port", value="other", scope="shared", **other)
    version = ask("write_memory", key="port", value="mine", scope="shared", **named)["version"]

    read = ask("read_memory", key="port", scope="shared", **named)

    assert (read["value"], read["version"], read.get("project")) == ("mine", version, project)
    ask("write_memory", key="port", value="changed", scope="shared", expected_version=read["version"], **named)
    assert ask("read_memory", key="port", scope="shared", **named)["value"] == "changed"


def test_a_shared_memory_of_ones_own_project_is_read_where_everybodys_is_not_there(ask: Ask) -> None:
    ask("write_memory", key="port", value=80, scope="shared", project="orchard")

    assert value_in(ask("read_memory", key="port", scope="shared")) == 80


@pytest.mark.parametrize("value", ["<p>\n" * 62_000, "\n" * 200_000, ["\x00"] * 60_000], ids=["html", "lines", "invisible"])
def test_what_could_not_be_answered_whole_is_not_written(ask: Ask, value: JsonValue) -> None:
    with pytest.raises(UsageError, match="answered whole") as refused:
        ask("write_memory", key="page", value=value)

    assert "290,000" in refused.value.hint
    assert not ask("read_memory", key="page")["found"]


@pytest.mark.parametrize("value", ["x" * 255_000, "<p>" + "x" * 250_000, "<p>tea</p>\n" * 11_000], ids=["plain", "long", "html"])
def test_what_is_written_is_answered_whole(ask: Ask, value: str) -> None:
    far = {"scope": "session", "project": "p" * 1_024, "session_id": "s" * 200, "tags": [f"{n}x" + "t" * 58 for n in range(20)]}
    key = "<a>" * 66
    ask("write_memory", replace(HERE, ai="<a>" * 66), key=key, value=value, ttl=300_000_000, **far)

    read = ask("read_memory", key=key, **{name: result for name, result in far.items() if name != "tags"})

    answered = bounded(dict(read), TOOLS["read_memory"].longest)
    assert "cut" not in answered and value_in(answered) == value


@pytest.mark.parametrize("number", [10**400, -(10**400)])
def test_a_number_beyond_all_others_is_refused_as_any_other(ask: Ask, number: int) -> None:
    for tool, arguments in (
        ("list_memories", {"limit": number}),
        ("write_memory", {"key": "k", "value": 1, "ttl": number}),
        ("write_memory", {"key": "k", "value": 1, "expected_version": number}),
    ):
        with pytest.raises(UsageError) as refused:
            ask(tool, **arguments)
        assert refused.value.hint


def test_deleted_is_gone(ask: Ask) -> None:
    ask("write_memory", key="port", value=80)

    assert ask("delete_memory", key="port")["deleted"]
    assert not ask("delete_memory", key="port")["deleted"]
    assert not ask("read_memory", key="port")["found"]


def test_a_version_that_is_expected_must_be_there(ask: Ask) -> None:
    version = ask("write_memory", key="port", value=80, expected_version=0)["version"]

    with pytest.raises(Conflict) as conflict:
        ask("write_memory", key="port", value=81, expected_version=0)
    assert conflict.value.version == version
    ask("write_memory", key="port", value=81, expected_version=version)


def test_it_ends_after_so_many_seconds(ask: Ask) -> None:
    written = ask("write_memory", key="port", value=80, ttl=90)

    assert written["expires_at"] == (START + timedelta(seconds=90)).isoformat()


@pytest.mark.parametrize("ttl", [1, 1.5, 0.001])
def test_it_never_ends_early_though_a_note_shows_whole_seconds(ttl: float) -> None:
    now = START + timedelta(milliseconds=700)
    known = ToolDispatcher(memory_tools(MemoryStore(), LocalContext(), clock=lambda: now))

    written = known.perform("write_memory", {"key": "port", "value": 80, "ttl": ttl, "scope": "global"}, HERE)

    end = datetime.fromisoformat(written["expires_at"])
    assert end.microsecond == 0
    assert timedelta(0) <= end - (now + timedelta(seconds=ttl)) < timedelta(seconds=1)


@pytest.mark.parametrize(
    "key",
    [
        "",
        " ",
        "/etc/passwd",
        "a/../b",
        "..",
        "..\\x",
        "a\nb",
        "a\0b",
        "a\x1b[31m",
        "x" * 201,
        "x" * 10_000,
        "a*",
        "a?b",
        "a  b",
        "a\u2028b",
        "a\u00a0b",
    ],
)
def test_a_key_that_is_invalid_is_refused_with_what_would_do(ask: Ask, key: str) -> None:
    for tool in ("write_memory", "delete_memory"):
        with pytest.raises(UsageError) as refused:
            ask(tool, key=key, value=1)
        assert refused.value.hint


@pytest.mark.parametrize("key", [None, 5, ["a"], {"a": 1}, True])
def test_a_key_is_text(ask: Ask, key: object) -> None:
    for tool in ("write_memory", "read_memory", "delete_memory"):
        with pytest.raises(UsageError):
            ask(tool, key=key, value=1)


def nested(depth: int) -> JsonValue:
    value: JsonValue = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        {"a": [float("-inf")]},
        "x" * 5_000_000,
        ["x" * 1_000] * 300,
        list(range(100_000)),
        {str(number): number for number in range(50_000)},
        nested(33),
        nested(900),
        2**63,
        {1: 2},
        object(),
        b"bytes",
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_that_is_invalid_or_too_much_is_refused_and_never_repeated(ask: Ask, value: object) -> None:
    with pytest.raises(UsageError) as refused:
        ask("write_memory", key="big", value=value)

    assert refused.value.hint
    assert len(str(refused.value)) < 100
    assert not ask("read_memory", key="big")["found"]


def test_a_value_is_needed_and_may_be_null(ask: Ask) -> None:
    with pytest.raises(UsageError):
        ask("write_memory", key="nothing")
    ask("write_memory", key="nothing", value=None)

    assert value_in(ask("read_memory", key="nothing")) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"ttl": -1},
        {"ttl": 0},
        {"ttl": "1h"},
        {"ttl": float("nan")},
        {"ttl": True},
        {"ttl": 10**12},
        {"scope": "everybody"},
        {"scope": 5},
        {"tags": "net"},
        {"tags": [1]},
        {"tags": ["x"] * 21},
        {"expected_version": -1},
        {"expected_version": "1"},
        {"expected_version": 1.5},
        {"project": 7},
        {"session_id": "a\nb"},
    ],
    ids=str,
)
def test_what_else_is_wrong_is_refused_with_what_would_do(ask: Ask, wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError) as refused:
        ask("write_memory", key="port", value=1, **wrong)

    assert refused.value.hint
    assert not ask("read_memory", key="port")["found"]


def test_nothing_secret_is_kept_nor_what_is_marked_as_private(ask: Ask) -> None:
    ask("write_memory", key="login", value={"deep": [f"the token is {TOKEN}"], "note": "a <private>b</private> c"}, tags=[TOKEN])
    ask("write_memory", key="named", value={"password": "hunter2-orchard-99", f"{TOKEN}": 1})

    kept = json.dumps([ask("read_memory", key="login"), ask("read_memory", key="named")])

    assert TOKEN not in kept
    assert TOKEN.casefold() not in kept
    assert "hunter2" not in kept
    assert "<private>" not in kept


def test_a_password_in_a_sentence_is_not_kept(ask: Ask) -> None:
    ask("write_memory", key="db1", value="password hunter2Xy!99z on host db1")
    ask("write_memory", key="hosts", value={"db1": "log in with admin / hunter2Xy!99z"})
    ask("write_memory", key="staging", value="The password for the staging box is hunter2Xy!99z.")

    kept = json.dumps([ask("read_memory", key="db1"), ask("read_memory", key="hosts"), ask("read_memory", key="staging")])

    assert "on host db1" in kept
    assert "hunter2" not in kept


@pytest.mark.parametrize(
    "value",
    [
        ["password", "hunter2Xy!99z"],
        {"name": "password", "value": "hunter2Xy!99z"},
        {"db": [{"key": "DB_PASS", "value": "hunter2Xy!99z", "secret": True}]},
    ],
)
def test_a_password_that_the_text_beside_it_names_is_not_kept(ask: Ask, value: JsonValue) -> None:
    ask("write_memory", key="db", value=value)

    kept = json.dumps(ask("read_memory", key="db"))

    assert "hunter2" not in kept
    assert "[redacted" in kept


def test_what_no_secret_names_is_kept(ask: Ask) -> None:
    value: JsonValue = {"fields": ["password", "username"], "port": {"name": "port", "value": "5432", "type": "string"}}
    ask("write_memory", key="db", value=value)

    assert value_in(ask("read_memory", key="db")) == value


def test_a_bounded_grant_neither_writes_nor_reads_beyond_it(ask: Ask) -> None:
    bounded = Asker(grant=Grant(name="meadow", projects=frozenset({"meadow"})), project="meadow")
    ask("write_memory", key="port", value=80)

    with pytest.raises(NotAllowed):
        ask("write_memory", bounded, key="port", value=81, project="orchard")
    assert ask("read_memory", bounded, key="port", project="orchard") == {"found": False, "key": "port"}
    assert ask("list_memories", bounded, project="orchard")["count"] == 0


@given(
    st.dictionaries(
        st.sampled_from(["key", "value", "scope", "ttl", "tags", "project", "session_id", "limit", "pattern"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
            lambda inner: st.lists(inner, max_size=3),
            max_leaves=4,
        ),
    )
)
def test_whatever_is_given_the_answer_is_json_or_an_error_with_a_hint(arguments: dict[str, Any]) -> None:
    known = memory_tools(MemoryStore(), LocalContext(), clock=lambda: START)

    for tool in known:
        try:
            answer = ToolDispatcher(known).perform(tool, arguments, HERE)
        except KiteError as error:
            assert error.hint
        else:
            json.dumps(answer, allow_nan=False)


def test_one_large_value_leaves_room_for_the_others(ask: Ask) -> None:
    ask("write_memory", key="row.a", value="pear " * 6_000)
    for name in ("b", "c"):
        ask("write_memory", key=f"row.{name}", value=name)

    answer = ask("read_memory", key="row.*")

    assert [each["key"] for each in answer["memories"]] == ["row.b", "row.c"]
    assert answer["left_out"] == ["row.a"]


@pytest.mark.parametrize(("there", "more"), [(200, False), (201, True)])
def test_more_is_said_of_a_pattern_only_if_there_is_more(ask: Ask, there: int, more: bool) -> None:
    for number in range(there):
        ask("write_memory", key=f"row.{number:03}", value=number)

    answer = ask("read_memory", pattern="row.*")

    assert (len(answer["memories"]) + len(answer.get("left_out", ())), answer["count"], answer["more"]) == (200, 200, more)


def test_a_pattern_has_an_argument_of_its_own_and_tags_and_scope_narrow_a_reading(ask: Ask) -> None:
    for key, scope, tags in (("project.a", "project", ["db"]), ("project.b", "project", []), ("project.c", "shared", ["db"])):
        ask("write_memory", key=key, value=key, scope=scope, tags=tags)

    def keys(**asked: object) -> list[str]:
        return [memory["key"] for memory in ask("read_memory", **asked)["memories"]]

    assert keys(pattern="project.*") == ["project.a", "project.b", "project.c"]
    assert keys(pattern="project.*", tags=["db"]) == ["project.a", "project.c"]
    assert keys(pattern="project.*", tags=["db"], scope="shared") == ["project.c"]
    assert keys(tags=["db"]) == ["project.a", "project.c"]
    assert keys(pattern="project.b") == ["project.b"]
    with pytest.raises(UsageError, match="key is missing"):
        ask("read_memory")


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ('{"a": 1}', {"a": 1}),
        (' [1, {"b": null}]\n', [1, {"b": None}]),
        ("{not json", "{not json"),
        ("[x] done", "[x] done"),
        ("[NaN]", "[NaN]"),
        ('"{}"', '"{}"'),
        ("42", "42"),
    ],
)
def test_an_object_or_list_that_a_client_could_only_send_as_text_is_kept_as_what_it_says(
    ask: Ask, sent: str, kept: JsonValue
) -> None:
    ask("write_memory", key="k", value=sent)

    assert value_in(ask("read_memory", key="k")) == kept


def test_a_secret_in_an_object_sent_as_text_is_not_kept(ask: Ask) -> None:
    ask("write_memory", key="k", value=f'{{"token": "{TOKEN}"}}')

    assert TOKEN not in str(ask("read_memory", key="k"))


def test_context_says_what_arguments_say_and_keeps_the_rest_beside_the_value(ask: Ask) -> None:
    fields = {
        "scope": "shared",
        "tags": ["deploy"],
        "session": "ignored",
        "reason": "asked for",
        "path": "src/a.py",
        "token": TOKEN,
    }
    written = ask("write_memory", key="k", value=1, context=fields)

    assert (written["scope"], written["tags"]) == ("shared", ["deploy"])
    read = ask("read_memory", key="k", context={"scope": "shared"})
    assert (read["context"]["reason"], read["context"]["path"]) == ("asked for", "src/a.py")
    assert TOKEN not in str(read)
    for wrong in ("text", {"long": "x" * 5_000}):
        with pytest.raises(UsageError):
            ask("write_memory", key="k", value=1, context=wrong)


@pytest.mark.parametrize("length", [201, 2_001, 100_000])
def test_a_key_that_is_too_long_is_reported_the_limit_that_there_is(ask: Ask, length: int) -> None:
    for tool in ("write_memory", "read_memory", "delete_memory"):
        with pytest.raises(UsageError) as refused:
            ask(tool, key="k" * length, **({"value": 1} if tool == "write_memory" else {}))
        assert "200 characters" in refused.value.hint
