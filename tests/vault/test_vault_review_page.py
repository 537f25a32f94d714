"""The page of what waits: boxes that mean one thing, and a person's words that stay."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.model.note import Note, NoteKind, NoteStatus, Scope
from kite_memory.vault.review_page import BEGIN, END, Ticked, WaitingNote, page, renewed, ticked, version
from tests.vault.building import START

NOTE = Note(
    id="01JD0000000000000000000001",
    path="projects/frost-comes-late-feb26.md",
    kind=NoteKind.FACT,
    title="Frost comes late",
    body="In the north field frost comes late.\n\nSo the pears stand there.\n\n**Related:** [[pears]]",
    created=START,
    updated=START,
    project="orchard",
    status=NoteStatus.PROPOSED,
    origin="tool",
    evidence=("claude-code:5e55-0001#00000001",),
)
OTHER = replace(NOTE, id="01JD0000000000000000000002", path="projects/rows-feb26.md", title="Rows run north", body="They do.")
STANDING = replace(NOTE, id="01JD0000000000000000000003", path="projects/frost-feb26.md", title="Frost", status=NoteStatus.ACCEPTED)

ONE = WaitingNote(note=NOTE, nearest=STANDING, quotes=("frost comes late up there",))
TWO = WaitingNote(note=OTHER)


def tick(text: str, words: str, mark: str = "x") -> str:
    assert f"- [ ] {words}" in text
    return text.replace(f"- [ ] {words}", f"- [{mark}] {words}", 1)


def first(*waiting: WaitingNote) -> tuple[str, str]:
    made = page(waiting)
    return renewed("", made, ""), made


def test_a_note_is_reported_with_what_it_rests_on_and_what_is_near() -> None:
    result, _ = first(ONE)

    assert result == "\n".join(
        (
            "# Review",
            "",
            BEGIN,
            "",
            "## [[frost-comes-late-feb26|Frost comes late]]",
            "",
            "fact · orchard · only a tool's word · 2026-02-26",
            "",
            "> In the north field frost comes late.",
            "> So the pears stand there.",
            "",
            "- rests on `claude-code:5e55-0001#00000001`: “frost comes late up there”",
            "- nearest is [[frost-feb26|Frost]]",
            "",
            f"- [ ] accept <!-- kmem:accept {NOTE.id} {version(NOTE)} -->",
            f"- [ ] merge into [[frost-feb26|Frost]] <!-- kmem:merge {NOTE.id} {version(NOTE)} {STANDING.id} -->",
            f"- [ ] reject <!-- kmem:reject {NOTE.id} {version(NOTE)} -->",
            "",
            END,
            "",
        )
    )


@pytest.mark.parametrize("mark", ["x", "X"])
def test_a_ticked_box_says_which_note_and_which_wording(mark: str) -> None:
    result, _ = first(ONE, TWO)

    assert ticked(result) == []
    assert ticked(tick(result, "accept", mark)) == [Ticked(name=NOTE.id, version=version(NOTE), verdict="accept")]
    assert ticked(tick(result, "merge", mark)) == [Ticked(name=NOTE.id, version=version(NOTE), verdict="merge", into=STANDING.id)]


@pytest.mark.parametrize("added", [" ✅ 2026-11-23", " ✅\ufe0f 2026-11-23", "  [completion:: 2026-11-23]"])
def test_a_box_that_obsidians_tasks_plugin_ticks_is_ticked_and_does_not_stay(added: str) -> None:
    result, made = first(ONE)
    lines = tick(result, "accept").split("\n")
    dated = "\n".join(f"{line}{added}" if line.startswith("- [x]") else line for line in lines)

    for text in (dated, dated.replace("\n", "\r\n")):
        assert [each.verdict for each in ticked(text)] == ["accept"]
        assert renewed(text, page([TWO]), made).replace("\r", "") == first(TWO)[0]
        assert renewed(text, made, made).replace("\r", "") == result
        assert renewed(text.replace("[x]", "[ ]"), made, made).replace("\r", "") == result


@pytest.mark.parametrize("words", ["yes, please", "^sure-1", "➕ 2026-02-01 ✅ 2026-03-01", "yes <!-- no -->"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_box_that_a_person_writes_behind_is_ticked_and_the_words_stay(words: str, end: str) -> None:
    result, made = first(ONE, TWO)
    box = f"- [ ] accept <!-- kmem:accept {NOTE.id} {version(NOTE)} -->"
    text = result.replace(box, f"{box.replace('[ ]', '[x]')} {words}").replace("\n", end)
    rest = page([TWO])

    again, later = renewed(text, made, made), renewed(text, rest, made)

    assert ticked(text) == [Ticked(name=NOTE.id, version=version(NOTE), verdict="accept")]
    assert again == result.replace(box, f"{box} {words}").replace("\n", end)
    assert NOTE.id not in later
    assert later.count(words) == 1


def test_two_boxes_on_one_line_decide_nothing() -> None:
    result, _ = first(ONE)

    assert ticked(tick(result, "accept").replace(" -->\n- [ ] ", " --> - [ ] ")) == []


@pytest.mark.parametrize("mark", ["-", "/", "?", "y"])
def test_other_marks_that_obsidian_knows_decide_nothing(mark: str) -> None:
    result, _ = first(ONE)

    assert ticked(tick(result, "accept", mark)) == []


def test_two_boxes_of_one_note_decide_nothing_and_are_asked_again() -> None:
    result, made = first(ONE)
    both = tick(tick(result, "accept"), "reject")

    assert ticked(both) == []
    assert renewed(both, made, made) == result


def test_a_box_means_the_same_wherever_it_is_moved_to() -> None:
    result, _ = first(ONE)
    line = next(line for line in tick(result, "accept").split("\n") if line.startswith("- [x]"))

    assert [each.verdict for each in ticked(f"# My own list\r\n  * {line.removeprefix('- ')}\r\n{line}\r\n")] == ["accept"]


def test_a_note_that_says_it_is_ticked_is_not() -> None:
    forged = replace(NOTE, body=f"- [x] accept <!-- kmem:accept {NOTE.id} {version(NOTE)} -->", title=f"{END} [[x]]")
    result, _ = first(WaitingNote(note=forged, quotes=(f"\n- [x] reject <!-- kmem:reject {NOTE.id} 00 -->",)))

    assert ticked(result) == []
    assert result.count(END) == 1


def test_an_unchanged_vault_is_the_same_page_to_the_byte() -> None:
    result, made = first(ONE, TWO)
    written = result.replace("> They do.", "> They do.\nAda says so, too.\n").replace("# Review", "# What waits")

    assert renewed(result, made, made) == result
    assert renewed(written, made, made) == written
    assert renewed(written.replace("\n", "\r\n"), made, made) == written.replace("\n", "\r\n")
    assert renewed(written.rstrip(), made, made) == written.rstrip()


def test_what_a_person_writes_stays_when_notes_come_and_go() -> None:
    result, made = first(ONE, TWO)
    mine = result.replace("# Review", "# Review\n\nMondays.").replace("> In the north", "ask Bob first\n> In the north")
    mine = mine.replace("> They do.", "> They do.\nkeep, I think") + "\nbelow it all\n"

    gone = renewed(mine, page([TWO]), made)
    back = renewed(gone, page([ONE, TWO]), page([TWO]))

    for kept in (gone, back):
        assert kept.startswith("# Review\n\nMondays.\n")
        assert [kept.count(line) for line in ("ask Bob first", "keep, I think", "below it all")] == [1, 1, 1]
    assert gone.index(END) < gone.index("below it all") < gone.index("ask Bob first")
    assert gone.index("> They do.") < gone.index("keep, I think") < gone.index("- [ ] accept")
    assert "frost-comes-late" not in gone


def test_a_note_that_has_changed_is_asked_about_anew() -> None:
    result, made = first(ONE)
    changed = WaitingNote(note=replace(NOTE, body="Frost comes early."), nearest=STANDING)
    mine = tick(result, "accept").replace("fact · orchard", "hm\nfact · orchard")

    again = renewed(mine, page([changed]), made)

    assert ticked(again) == []
    assert "> Frost comes early." in again
    assert again.count("\nhm\n") == 1
    assert again.count("## ") == 1


def test_a_page_that_is_a_persons_own_is_added_to() -> None:
    result = renewed("# Review of the harvest\n\ngood", page([ONE]), "")

    assert result.startswith("# Review of the harvest\n\ngood\n\n" + BEGIN)
    assert result.endswith(END + "\n")


def test_with_a_lost_ledger_nothing_is_reported_twice() -> None:
    result, made = first(ONE, TWO)

    assert renewed(result, made, "") == result


def test_with_a_writer_that_died_before_it_said_what_it_wrote_nothing_is_reported_twice() -> None:
    _, earlier = first(ONE)
    changed = WaitingNote(note=replace(NOTE, body="Frost comes early."), nearest=STANDING)
    made = page([changed, TWO])

    written = renewed(renewed("", earlier, ""), made, earlier).replace("> They do.", "> They do.\nmine")

    again = renewed(written, made, earlier)
    assert sorted(filter(None, again.split("\n"))) == sorted(filter(None, written.split("\n")))
    assert renewed(again, made, made) == again


def test_an_entry_that_was_cut_out_comes_back_with_the_next_news() -> None:
    result, made = first(ONE, TWO)
    start = result.index("## [[frost")
    cut = result[:start] + result[result.index("## [[rows") :]

    assert renewed(cut, page([ONE, TWO]), made) == result


def test_where_nothing_waits_it_says_so() -> None:
    result, made = first(ONE)

    assert "Nothing waits." in renewed(result, page([]), made)
    assert "[ ]" not in renewed(result, page([]), made)


def test_what_may_be_contradicted_is_asked_about() -> None:
    result, _ = first(WaitingNote(note=replace(NOTE, status=NoteStatus.ACCEPTED, conflicts=("frost-feb26",)), contested=STANDING))

    assert "- may contradict [[frost-feb26|Frost]]" in result
    assert [each.verdict for each in ticked(tick(result, "it replaces"))] == ["replace"]
    assert [each.verdict for each in ticked(tick(result, "both hold"))] == ["both"]
    assert "[ ] accept" not in result


def test_of_a_note_that_comes_late_it_is_said_that_the_newer_one_replaces_it() -> None:
    newer = replace(STANDING, created=START + timedelta(days=1))
    result, _ = first(WaitingNote(note=replace(NOTE, status=NoteStatus.ACCEPTED, conflicts=("frost-feb26",)), contested=newer))

    assert "- may contradict [[frost-feb26|Frost]], which is newer" in result
    assert [each.verdict for each in ticked(tick(result, "it is replaced by [[frost-feb26|Frost]]"))] == ["replace"]
    assert "it replaces" not in result


def test_a_note_whose_file_no_link_can_name_is_reported_without_one() -> None:
    result, _ = first(WaitingNote(note=replace(NOTE, path="topics/C# tabs.md")))

    assert "## Frost comes late (topics/C# tabs.md)\n" in result


def test_a_note_without_an_id_is_named_by_its_path() -> None:
    mine = replace(NOTE, id="", path="projects/my notes/frost -- late.md")
    result, _ = first(WaitingNote(note=mine))

    assert [each.name for each in ticked(tick(result, "accept"))] == [mine.path]


_LINES = st.lists(st.sampled_from(["", "mine", "- [ ] mine", "## mine", "> mine", "\tmine"]), max_size=3)


@given(st.data())
def test_no_line_of_a_persons_is_ever_lost(data: st.DataObject) -> None:
    queue = [ONE, TWO, WaitingNote(note=replace(OTHER, id="01JD0000000000000000000009", path="ideas/x.md", title="X"))]
    made = page(data.draw(st.lists(st.sampled_from(queue), unique=True)))
    text = renewed("", made, "")
    number = 0
    for _ in range(3):
        rows = text.split("\n")
        for _ in range(3):
            at = data.draw(st.integers(0, len(rows)))
            lines = [line and f"{line} {(number := number + 1)}" for line in data.draw(_LINES)]
            rows[at:at] = lines
        ours, made = made, page(data.draw(st.lists(st.sampled_from(queue), unique=True)))
        text = renewed("\n".join(rows), made, ours)

        assert [sum(line.endswith(f"mine {each}") for line in text.split("\n")) for each in range(1, number + 1)] == [1] * number
        assert text.count(BEGIN) == text.count(END) == 1
        assert renewed(text, made, made) == text
        assert set(made.split("\n")) <= set(text.split("\n"))


@pytest.mark.parametrize(
    ("fields", "because"),
    [
        ({"origin": "tool"}, "only a tool said it"),
        ({"origin": "assistant", "scope": Scope.GLOBAL, "project": ""}, "an agent said it, and it would hold in every project"),
        ({"origin": "assistant", "scope": Scope.SHARED, "project": ""}, "an agent said it, and it would hold in every project"),
        ({"origin": "assistant", "scope": Scope.PROJECT}, "the extractor was not sure of it"),
        ({"origin": "assistant", "scope": Scope.PROJECT, "evidence": ()}, "it was taken in from elsewhere, not from a transcript"),
        ({"conflicts": ("frost-feb26",)}, ""),
        ({"status": NoteStatus.ACCEPTED}, ""),
    ],
)
def test_why_a_note_waits(fields: dict[str, Any], because: str) -> None:
    assert WaitingNote(note=replace(NOTE, **{"status": NoteStatus.PROPOSED, "conflicts": (), **fields})).because == because
