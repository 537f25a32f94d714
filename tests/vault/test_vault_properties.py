"""Frontmatter that anybody may have written."""

import tracemalloc

import frontmatter
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.vault.notefile import (
    MAX_BYTES,
    InvalidFrontmatter,
    PropertiesHandler,
    Raw,
    entry,
    load,
    sheet_of,
    with_properties,
)
from kite_memory.vault.wording import one_line

HOSTILE = [
    "yes", "No", "on", "OFF", "y", "N", "true", "null", "~", "", " ", "1", "1.5", "1e3", "0x1f", "0o17", "017",
    "1_000", "12:30:45", "2026-02-26", "2026-02-26T14:03:11Z",
    ".inf", "-.INF", ".nan", "=", "<<", "a: b", "a #b", "#tag", "- item", "? key",
    ": x", "[x]",
    "{x}", "*alias", "&anchor", "!tag", "|", ">", "%dir", "@at", "`tick`", "'single'", '"double"', "back\\slash", "tab\there",
    "line\nbreak", "carriage\rreturn", "nul\0byte", "\x85next", "\u2028line", "\ufeffbom", "---", "...", "trailing ", " leading",
    "it's", "日本語", "العربية", "🍐", "👩‍🌾", "e\u0301",
    "\ud800", "key: [a, b]", "a, b", "x" * 300,
    "01ARZ3NDEKTSV4RRFFQ69G5FAV", "123456E789",
]  # fmt: skip

BOMBS = {
    "laughing aliases": "a: &a [x, x]\nb: &b [*a, *a, *a]\nc: &c [*b, *b, *b]\nd: [*c, *c, *c]",
    "an alias to itself": "a: &a [*a]",
    "merge keys": "base: &base {a: 1}\nfull:\n  <<: *base",
    "an anchor on a name": "&a name: value",
    "a python object": "a: !!python/object/apply:os.system [ls]",
    "a plain tag": "a: !x 1",
    "a set": "a: !!set {x, y}",
    "binary": "a: !!binary R0lGODlh",
    "deep lists": "a: " + "[" * 30_000,
    "deep closed lists": "a: " + "[" * 200 + "]" * 200,
    "deep maps": "a: " + "{b: " * 15_000,
    "deep blocks": "\n".join(" " * depth + "a:" for depth in range(300)),
    "dashes": "a:\n  " + "- " * 25_000 + "x",
    "many names": "\n".join(f"k{number}: 1" for number in range(5_000)),
    "many values": "a: [" + "1," * 30_000 + "]",
    "one huge text": "a: " + "x" * 70_000,
    "a huge number": "a: " + "9" * 60_000,
    "base sixty": "a: 1" + ":59" * 20_000,
    "two documents": "a: 1\n---\nb: 2",
    "never closed": "a: [1, 2",
    "a quote never closed": 'a: "' + "x" * 1_000,
    "tabs": "\ta: 1",
    "control characters": "a: \x07",
    "a list": "- a\n- b",
    "a word": "just words",
    "a name that is a list": "? [a, b]\n: c",
}
HARMLESS = {"a huge number", "base sixty"}


@pytest.mark.parametrize(
    "front", [BOMBS[name] for name in BOMBS if name not in HARMLESS], ids=[n for n in BOMBS if n not in HARMLESS]
)
def test_frontmatter_beyond_lists_of_properties_is_refused(front: str) -> None:
    with pytest.raises(InvalidFrontmatter):
        load(front)


@pytest.mark.parametrize("name", sorted(HARMLESS))
def test_numbers_are_texts_so_none_is_too_large(name: str) -> None:
    value = load(BOMBS[name])["a"]

    assert value == BOMBS[name].removeprefix("a: ")


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_costs_next_to_nothing(name: str) -> None:
    tracemalloc.start()
    try:
        load(BOMBS[name])
    except InvalidFrontmatter:
        pass
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 5_000_000


def test_values_are_what_was_typed() -> None:
    front = "a: 007\nb: yes\nc: 2026-01-01\nd:\ne: ~\nf: 'null'\ng: [1, no, ]\nh:\n  - x\n  - y: z\n"

    assert load(front) == {
        "a": "007", "b": "yes", "c": "2026-01-01", "d": None, "e": None, "f": "null", "g": ["1", "no"], "h": ["x", {"y": "z"}],
    }  # fmt: skip


def test_the_handler_serves_python_frontmatter() -> None:
    post = frontmatter.loads("---\ntitle: 007\n---\n\nThe body.\n", handler=PropertiesHandler())

    assert (post["title"], post.content) == ("007", "The body.")
    assert frontmatter.dumps(post, handler=PropertiesHandler()) == '---\ntitle: "007"\n---\nThe body.\n'
    assert frontmatter.loads("No properties.", handler=PropertiesHandler()).content == "No properties."


@pytest.mark.parametrize("text", HOSTILE)
def test_a_text_stays_a_text_for_every_reader_of_yaml(text: str) -> None:
    line, listed = entry("title", text), entry("tags", [text, "plain"])

    assert yaml.safe_load(line) == {"title": one_line(text)}
    assert yaml.safe_load(listed) == {"tags": [one_line(text), "plain"]}
    assert load(f"{line}\n{listed}") == {"title": one_line(text), "tags": [one_line(text), "plain"]}


@given(st.text(max_size=200))
def test_any_text_is_written_as_one_line_and_read_back(text: str) -> None:
    line = entry("title", text)

    assert "\n" not in line
    assert yaml.safe_load(line) == {"title": one_line(text)}
    assert load(line)["title"] == one_line(text)


def test_ordinary_titles_and_tags_need_no_quotes() -> None:
    assert entry("title", "Pears over apples (mostly), don't ask") == "title: Pears over apples (mostly), don't ask"
    assert entry("tags", ["fruit", "late frost", "v1.2"]) == "tags: [fruit, late frost, v1.2]"
    assert entry("evidence", ["claude-code:5e55#0001"]) == 'evidence: ["claude-code:5e55#0001"]'


@pytest.mark.parametrize(
    ("text", "front", "body"),
    [
        ("---\na: 1\n---\nbody\n", "a: 1\n", "body\n"),
        ("---\r\na: 1\r\n---\r\nbody\r\n", "a: 1\r\n", "body\r\n"),
        ("\ufeff---\na: 1\n---\nbody", "a: 1\n", "body"),
        ("---\n---\nbody", "", "body"),
        ("---\na: 1\n---", "a: 1\n", ""),
        ("---  \na: 1\n--- \n\n\nbody", "a: 1\n", "\n\nbody"),
        ("---\na: '\n---\nb\n---\n", "a: '\n", "b\n---\n"),
    ],
)
def test_the_fences_are_where_obsidian_sees_them(text: str, front: str, body: str) -> None:
    sheet = sheet_of(text)

    assert (sheet.yaml, text[sheet.body :]) == (front, body)


@pytest.mark.parametrize(
    "text", ["", "body", "----\na: 1\n----\n", " ---\na: 1\n---\n", "---\nnever closed", "--- a: 1 ---", "body\n---\na: 1\n---\n"]
)
def test_without_fences_all_is_body(text: str) -> None:
    assert (sheet_of(text).yaml, text[sheet_of(text).body :]) == ("", text)


MESSY = """---
# my own comment
id:   'abc'   # do not touch
 
tags:
  - one   # first
  - "two"
mine: {keep: [this, exactly]}
note: |
  a text
  # not a comment

evidence: [
  "a",
  "b" ]
"status": accepted
last: >-
  folded
---
The body,   with  spaces.  
"""  # noqa: W291, W293


def test_a_change_touches_its_own_properties_and_nothing_else() -> None:
    changed = with_properties(MESSY, {"evidence": ("a", "b", "c"), "status": "muted"})

    assert changed == MESSY.replace('[\n  "a",\n  "b" ]', "[a, b, c]").replace('"status": accepted', "status: muted")


@pytest.mark.parametrize("name", ["id", "tags", "mine", "note", "evidence", "status", "last"])
def test_every_way_to_write_a_property_can_be_replaced(name: str) -> None:
    changed = with_properties(MESSY, {name: "new"})

    assert changed is not None
    before, after = load(sheet_of(MESSY).yaml), load(sheet_of(changed).yaml)
    assert after == before | {name: "new"}
    assert list(after) == list(before)
    assert "# my own comment" in changed
    assert changed.endswith("The body,   with  spaces.  \n")


def test_a_new_property_goes_to_the_end() -> None:
    assert with_properties("---\na: 1\n---\nbody", {"created": Raw(text="2026-01-01T00:00:00Z")}) == (
        "---\na: 1\ncreated: 2026-01-01T00:00:00Z\n---\nbody"
    )


def test_line_breaks_stay_as_the_editor_made_them() -> None:
    assert with_properties("---\r\na: 1\r\nb: 2\r\n---\r\nbody\r\n", {"a": "x", "c": "z"}) == (
        "---\r\na: x\r\nb: 2\r\nc: z\r\n---\r\nbody\r\n"
    )


@pytest.mark.parametrize("text", ["---\n{a: 1}\n---\nbody", "---\na: *x\n---\nbody", "---\na: [\n---\nbody", "---\nhalf\nbody"])
def test_what_cannot_be_changed_safely_is_not_changed(text: str) -> None:
    assert with_properties(text, {"a": "2"}) is None


def test_a_note_without_properties_can_be_given_one() -> None:
    assert with_properties("body", {"status": "muted"}) == "---\nstatus: muted\n---\nbody"


YAML_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20) | st.dates() | st.datetimes(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(min_size=1, max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.dictionaries(st.text(min_size=1, max_size=10), YAML_VALUES, max_size=5),
    st.sampled_from([True, False, None]),
    st.text(max_size=30),
    st.text(max_size=30),
)
def test_whatever_a_person_keeps_there_survives_a_change_of_ours(
    theirs: dict[str, object], style: bool | None, value: str, body: str
) -> None:
    front = yaml.safe_dump(theirs, default_flow_style=style, allow_unicode=True) if theirs else ""
    text = f"---\n{front}---\n{body}"

    changed = with_properties(text, {"status": value, "evidence": (value,)})

    if changed is None:
        return
    before, after = sheet_of(text), sheet_of(changed)
    assert changed[after.body :] == text[before.body :]
    assert load(after.yaml) == load(before.yaml) | {"status": one_line(value), "evidence": [one_line(value)]}


@given(st.text(alphabet="ab:-#[]{}&*!|>'\"%@`\n\t ,?~0", max_size=120))
def test_no_scribble_raises_anything_else_and_a_change_never_loses_the_body(front: str) -> None:
    text = f"---\n{front}\n---\nthe body"
    try:
        load(sheet_of(text).yaml)
    except InvalidFrontmatter:
        pass

    changed = with_properties(text, {"status": "muted"})

    assert changed is None or changed.endswith(text[sheet_of(text).body :])


def test_frontmatter_of_just_under_the_limit_is_read() -> None:
    front = "a: " + "x" * (MAX_BYTES - 3)

    assert len(str(load(front)["a"])) == MAX_BYTES - 3
    with pytest.raises(InvalidFrontmatter):
        load(front + "x")


def test_a_name_given_twice_has_its_last_value_and_can_be_changed() -> None:
    text = "---\na: 1\na: 2\n---\n"

    assert load(sheet_of(text).yaml) == {"a": "2"}
    assert with_properties(text, {"a": "three"}) == "---\na: 1\na: three\n---\n"


@pytest.mark.parametrize("name", ["laughing aliases", "a python object", "deep closed lists", "a list"])
def test_a_yaml_without_libyaml_refuses_the_same(name: str) -> None:
    with pytest.raises(InvalidFrontmatter):
        load(BOMBS[name], loader=yaml.SafeLoader)
    assert load("a: 007\nb: [x, 'y']", loader=yaml.SafeLoader) == {"a": "007", "b": ["x", "y"]}
