import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.agents import settings_edit
from kite_memory.agents.settings_edit import Array, Literal, NotJson, Object, String

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=20,
)
SPACES = st.text(alphabet=" \t\n\r", max_size=3)


@st.composite
def wildly_written(draw: st.DrawFn, values: st.SearchStrategy[Any] = VALUES) -> str:
    """JSON with white space wherever it may stand."""

    def write(value: Any) -> str:
        before, after = draw(SPACES), draw(SPACES)
        if isinstance(value, dict):
            members = (f"{draw(SPACES)}{json.dumps(key)}{draw(SPACES)}:{write(of)}" for key, of in value.items())
            return before + "{" + (",".join(members) or draw(SPACES)) + "}" + after
        if isinstance(value, list):
            return before + "[" + (",".join(map(write, value)) or draw(SPACES)) + "]" + after
        return before + json.dumps(value, ensure_ascii=draw(st.booleans())) + after

    return write(draw(values))


def meaning(text: str, node: settings_edit.Node) -> Any:
    match node:
        case Object(members=members):
            return {member.key: meaning(text, member.value) for member in members}
        case Array(items=items):
            return [meaning(text, item) for item in items]
        case String(value=value):
            return value
        case Literal(written=written):
            return json.loads(written)


@given(text=wildly_written())
def test_reading_finds_what_json_means(text: str) -> None:
    assert meaning(text, settings_edit.read(text)) == json.loads(text)


@given(text=st.text(alphabet='{}[]",: \n0123456789.-+eEtrufalsn\\u/\x00\x1fé', max_size=24))
def test_what_json_refuses_is_refused_and_nothing_else(text: str) -> None:
    try:
        expected = [json.loads(text)]
    except ValueError:
        expected = []

    try:
        found = [meaning(text, settings_edit.read(text))]
    except NotJson:
        found = []

    assert found == expected


BROKEN = ["", " ", "{", '{"a":1,}', "[1,]", "{a:1}", "// no\n{}", '{"a":1} x', "NaN", "[" * 5000, '{"a":' * 5000]


@pytest.mark.parametrize("text", BROKEN)
def test_what_is_not_json_is_refused_with_a_place(text: str) -> None:
    with pytest.raises(NotJson, match=r"line \d+, column \d+: expected "):
        settings_edit.read(text)


def test_a_refusal_names_line_and_column() -> None:
    with pytest.raises(NotJson, match="line 3, column 3: expected a comma or }"):
        settings_edit.read('{\n  "a": 1\n  "b": 2\n}\n')


def test_a_byte_order_mark_is_kept_out_of_the_way() -> None:
    text = '\ufeff{"a": 1}'

    root = settings_edit.read(text)

    assert isinstance(root, Object)
    assert settings_edit.add_member(text, root, "b", 2) == '\ufeff{"a": 1, "b": 2}'


@given(text=wildly_written(st.dictionaries(st.text(max_size=4).map(lambda key: "k" + key), VALUES, max_size=4)), value=VALUES)
def test_a_member_added_means_that_and_taken_away_leaves_the_text_as_it_was(text: str, value: Any) -> None:
    root = settings_edit.read(text)
    assert isinstance(root, Object)

    added = settings_edit.add_member(text, root, "new", value)

    again = settings_edit.read(added)
    assert isinstance(again, Object)
    assert json.loads(added) == json.loads(text) | {"new": value}
    assert settings_edit.remove(added, again, len(again.members) - 1) == text


@given(text=wildly_written(st.lists(VALUES, max_size=4)), value=VALUES)
def test_an_item_added_means_that_and_taken_away_leaves_the_text_as_it_was(text: str, value: Any) -> None:
    root = settings_edit.read(text)
    assert isinstance(root, Array)

    added = settings_edit.add_item(text, root, value)

    again = settings_edit.read(added)
    assert isinstance(again, Array)
    assert json.loads(added) == [*json.loads(text), value]
    assert settings_edit.remove(added, again, len(again.items) - 1) == text


@given(items=st.lists(VALUES, min_size=1, max_size=4), data=st.data())
def test_any_item_can_be_taken_away(items: list[Any], data: st.DataObject) -> None:
    text = data.draw(wildly_written(st.just(items)))
    index = data.draw(st.integers(0, len(items) - 1))
    root = settings_edit.read(text)
    assert isinstance(root, Array)

    rest = settings_edit.remove(text, root, index)

    assert json.loads(rest) == items[:index] + items[index + 1 :]


# With comments


REMARKS = st.sampled_from(["", " ", "\n", "\n  ", "\r\n\t", "/* a */", " /* {,\n*/ ", "// b, }\n", " // c\r\n  ", '//"\n//\n'])


@st.composite
def remarked(draw: st.DrawFn, values: st.SearchStrategy[Any]) -> tuple[Any, str]:
    """JSON with remarks wherever white space may stand, and some commas behind the last thing."""

    def write(value: Any) -> str:
        def boxed(brackets: str, parts: list[str]) -> str:
            trailing = "," + draw(REMARKS) if bool(parts) and draw(st.booleans()) else ""
            return brackets[0] + (",".join(parts) + trailing or draw(REMARKS)) + brackets[1]

        written = json.dumps(value)
        if isinstance(value, dict):
            members = [f"{draw(REMARKS)}{json.dumps(key)}{draw(REMARKS)}:{write(of)}" for key, of in value.items()]
            written = boxed("{}", members)
        elif isinstance(value, list):
            written = boxed("[]", list(map(write, value)))
        return draw(REMARKS) + written + draw(REMARKS)

    value = draw(values)
    return value, write(value)


def remarks_of(text: str) -> list[str]:
    """In order. No string of these tests holds anything like one."""
    return [each.strip() for each in re.findall(r"//[^\n\r]*|/\*.*?\*/", text, re.DOTALL)]


PLAIN: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet="ab", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet="ab", max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(written=remarked(PLAIN))
def test_remarks_and_last_commas_mean_nothing(written: tuple[Any, str]) -> None:
    value, text = written

    assert meaning(text, settings_edit.read(text, comments=True)) == value


@given(written=remarked(st.dictionaries(st.text(alphabet="ab", max_size=3), PLAIN, max_size=3)))
def test_a_member_added_among_remarks_and_taken_away_leaves_the_text_as_it_was(written: tuple[Any, str]) -> None:
    value, text = written
    root = settings_edit.read(text, comments=True)
    assert isinstance(root, Object)

    added = settings_edit.add_member(text, root, "new", {"x": ["y"]})

    again = settings_edit.read(added, comments=True)
    assert isinstance(again, Object)
    assert meaning(added, again) == value | {"new": {"x": ["y"]}}
    assert settings_edit.remove(added, again, len(again.members) - 1) == text


@given(written=remarked(st.lists(PLAIN, min_size=1, max_size=4)), data=st.data())
def test_any_item_among_remarks_can_be_taken_away(written: tuple[list[Any], str], data: st.DataObject) -> None:
    value, text = written
    index = data.draw(st.integers(0, len(value) - 1))
    root = settings_edit.read(text, comments=True)
    assert isinstance(root, Array)

    rest = settings_edit.remove(text, root, index)

    assert meaning(rest, settings_edit.read(rest, comments=True)) == value[:index] + value[index + 1 :]
    inside = text[: root.items[index].start] + text[root.items[index].end :]
    assert remarks_of(rest) == remarks_of(inside)


@pytest.mark.parametrize("text", ["/* {}", "{} /", '{"a": 1,,}', "{,}", "[,]", "// only"])
def test_what_is_no_json_with_remarks_either_is_refused(text: str) -> None:
    with pytest.raises(NotJson):
        settings_edit.read(text, comments=True)


@pytest.mark.parametrize("indent", [None, 1, 2, 4, "\t"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_what_is_added_looks_as_if_the_writer_of_the_file_had_added_it(indent: int | str | None, newline: str) -> None:
    start: dict[str, Any] = {"a": {"b": [1, {"c": 2}]}}
    text = json.dumps(start, indent=indent).replace("\n", newline)
    root = settings_edit.read(text)
    assert isinstance(root, Object)

    added = settings_edit.add_member(text, root, "new", {"d": [{"e": 3}]})

    assert added == json.dumps(start | {"new": {"d": [{"e": 3}]}}, indent=indent).replace("\n", newline)
