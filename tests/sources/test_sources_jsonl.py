import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.sources.common.jsonl import AppendOnlyFile, Damage, FoundObject, Unreadable, objects


def opened(path: Path, *, line_limit: int = 1000) -> AppendOnlyFile:
    return AppendOnlyFile(path, within=path.parent, line_limit=line_limit)


def rows(line: bytes) -> list[object]:
    return [found.row for found in objects(line) if isinstance(found, FoundObject)]


def damage(line: bytes) -> list[str]:
    return [found.reason for found in objects(line) if isinstance(found, Damage)]


# Lines


def test_lines_end_at_the_last_newline_within_the_budget(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"one\ntwo\nthree\nhal")

    with opened(path) as file:
        assert file.lines(0, 100).data == b"one\ntwo\nthree"
        assert file.lines(0, 9).data == b"one\ntwo"
        assert file.lines(4, 100).data == b"two\nthree"
        assert file.lines(14, 100).data == b""


@pytest.mark.parametrize(("budget", "more"), [(3, True), (4, True), (8, True), (13, True), (14, True), (17, False), (100, False)])
def test_more_is_left_when_the_budget_ended_the_stretch(tmp_path: Path, budget: int, more: bool) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"one\ntwo\nthree\nhal")

    with opened(path) as file:
        assert file.lines(0, budget).more is more


def test_a_line_larger_than_the_budget_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"x" * 900 + b"\nnext\n")

    with opened(path) as file:
        stretch = file.lines(0, 10)

    assert (stretch.data, stretch.end, stretch.more) == (b"x" * 900, 901, True)


@pytest.mark.parametrize("budget", [10, 5000])
@pytest.mark.parametrize(("length", "read"), [(999, True), (1000, True), (1001, False), (4000, False)])
def test_a_line_over_the_limit_is_passed_over_whatever_the_budget(tmp_path: Path, length: int, budget: int, read: bool) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"x" * length + b"\nnext\n")

    with opened(path) as file:
        stretch = file.lines(0, budget)
        following = file.lines(stretch.end, budget)

    assert stretch.too_long is not read
    assert stretch.end in (length + 1, length + 6)
    assert following.data in (b"next", b"")


def test_a_line_over_the_limit_waits_for_its_newline(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"x" * 4000)

    with opened(path) as file:
        stretch = file.lines(0, 10)

    assert (stretch.end, stretch.data, stretch.more, stretch.too_long) == (0, b"", False, False)


# Identity


@pytest.mark.parametrize("position", [1, 4, 300, 1024, 1025, 2000])
def test_a_file_that_grew_is_still_the_same(tmp_path: Path, position: int) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(bytes(range(250)) * 8)
    with opened(path) as file:
        identity = file.identity(position)
    with path.open("ab") as end:
        end.write(b"more\n")

    with opened(path) as file:
        assert file.changed(identity, position) == ""


@pytest.mark.parametrize("changed", [0, 100, 299])
def test_a_byte_that_changed_at_either_end_is_noticed(tmp_path: Path, changed: int) -> None:
    path = tmp_path / "a.jsonl"
    content = bytearray(b"x" * 300)
    path.write_bytes(content)
    with opened(path) as file:
        identity = file.identity(300)
    content[changed] += 1
    path.write_bytes(content)

    with opened(path) as file:
        assert file.changed(identity, 300) == "file rewritten"


def test_what_stands_behind_the_position_is_not_part_of_the_identity(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"line\nhalf of the n")
    with opened(path) as file:
        identity = file.identity(5)
    path.write_bytes(b"line\nanother\n")

    with opened(path) as file:
        assert file.changed(identity, 5) == ""


def test_a_file_outside_is_unreadable_however_it_is_named(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "inside-not.jsonl"
    inside.mkdir()
    outside.write_bytes(b"{}\n")

    for path in (outside, inside / ".." / outside.name):
        with pytest.raises(Unreadable, match="outside its root"):
            AppendOnlyFile(path, within=inside)


def test_a_link_that_stays_inside_is_followed(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"{}\n")
    (tmp_path / "b.jsonl").symlink_to("a.jsonl")

    with opened(tmp_path / "b.jsonl") as file:
        assert file.lines(0, 100).data == b"{}"


def test_a_root_that_is_a_link_itself_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.jsonl").write_bytes(b"{}\n")
    (tmp_path / "link").symlink_to("real")

    with AppendOnlyFile(tmp_path / "link" / "a.jsonl", within=tmp_path / "link") as file:
        assert file.size == 3


def test_a_closed_file_leaves_no_descriptor(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"{}\n")
    folder = Path("/proc/self/fd")
    if not folder.is_dir():
        pytest.skip("this system does not list descriptors")
    before = len(list(folder.iterdir()))

    with opened(path):
        assert len(list(folder.iterdir())) == before + 1
    with pytest.raises(Unreadable):
        opened(tmp_path)

    assert len(list(folder.iterdir())) == before


# Objects on a line


def test_one_object_is_found_where_it_stands() -> None:
    assert objects(b'{"type":"user"}') == [FoundObject(start=0, end=15, row={"type": "user"})]


@pytest.mark.parametrize("between", ["", " ", "\t ", "\r"])
def test_glued_objects_are_all_found_with_their_bytes(between: str) -> None:
    line = f'{{"a":"Bäume"}}{between}{{"b":2}}{between}{{"c":3}}'.encode()

    found = [each for each in objects(line) if isinstance(each, FoundObject)]

    assert [each.row for each in found] == [{"a": "Bäume"}, {"b": 2}, {"c": 3}]
    assert [line[each.start : each.end] for each in found] == ['{"a":"Bäume"}'.encode(), b'{"b":2}', b'{"c":3}']
    assert damage(line) == ["glued objects"]


CUT = b'{"parentUuid":"a","type":"user","message":{"content":"cut of'


@pytest.mark.parametrize("start", [b'{"parentUuid":null,', b'{"type":"user",', b'{"isSidechain":false,'])
def test_the_record_after_one_that_was_cut_off_is_found(start: bytes) -> None:
    whole = start + b'"type":"user","sessionId":"s"}'

    assert [row["sessionId"] for row in rows(CUT + whole) if isinstance(row, dict)] == ["s"]
    assert damage(CUT + whole) == ["damaged line"]


def test_part_of_a_cut_record_is_not_taken_for_a_line() -> None:
    inner = b'{"type":"user","message":{"content":"what a sub-agent was told"},"uuid":"x"}'

    assert rows(b'{"parentUuid":"a","data":{"message":' + inner + b',"more":') == []


def test_a_cut_record_alone_is_damage() -> None:
    assert (rows(CUT), damage(CUT)) == ([], ["damaged line"])


@pytest.mark.parametrize("line", [b"\0\0\0" + b'{"a":1}', b'{"a":1}' + b"\0\0", b'\0{"a":1}\0'])
def test_nul_bytes_around_a_record_are_passed_over(line: bytes) -> None:
    assert (rows(line), damage(line)) == ([{"a": 1}], ["NUL bytes"])


def test_nul_bytes_alone_are_damage() -> None:
    assert (rows(b"\0" * 4096), damage(b"\0" * 4096)) == ([], ["NUL bytes"])


def test_bytes_that_are_not_utf8_become_replacement_characters() -> None:
    assert (rows(b'{"a":"x\xffy"}'), damage(b'{"a":"x\xffy"}')) == ([{"a": "x\ufffdy"}], ["invalid UTF-8"])


@pytest.mark.parametrize("escaped", [r"\ud83c", r"\udf50", r"\ud83cx\udf50"])
def test_half_a_surrogate_pair_becomes_a_replacement_character(escaped: str) -> None:
    line = f'{{"{escaped}":["{escaped}"]}}'.encode()

    (row,) = rows(line)

    assert "\ufffd" in str(row)
    str(row).encode()
    assert damage(line) == ["lone surrogate"]


@pytest.mark.parametrize("line", [b"1", b"[]", b'"text"', b"null", b"true", b"1.5 2"])
def test_json_that_is_no_object_is_named_so(line: bytes) -> None:
    assert rows(line) == []
    assert set(damage(line)) == {"not an object"}


def test_a_byte_order_mark_is_no_damage() -> None:
    assert (rows(b'\xef\xbb\xbf{"a":1}'), damage(b'\xef\xbb\xbf{"a":1}')) == ([{"a": 1}], [])


@pytest.mark.parametrize("line", [b"[" * 100_000, b'{"a":' * 100_000, b'{"type":' * 100_000, b"{}" * 5_000, b"9" * 100_000])
def test_a_hostile_line_is_survived(line: bytes) -> None:
    assert len(objects(line)) <= 1_002


@given(st.binary(max_size=200))
def test_any_bytes_are_survived(line: bytes) -> None:
    for found in objects(line):
        assert 0 <= found.start <= len(line)
        if isinstance(found, FoundObject):
            assert found.start < found.end <= len(line)


@given(
    st.lists(
        st.dictionaries(
            st.text(max_size=5), st.recursive(st.none() | st.text(max_size=9) | st.integers(-9, 9), st.lists, max_leaves=4)
        ),
        min_size=1,
        max_size=4,
    )
)
def test_whatever_was_glued_is_taken_apart(written: list[dict[str, object]]) -> None:
    line = "".join(json.dumps(row, ensure_ascii=False) for row in written)
    try:
        encoded = line.encode()
    except UnicodeEncodeError:
        return

    assert rows(encoded) == written
