"""A text read otherwise leads back to where it was read from."""

from hypothesis import given
from hypothesis import strategies as st

from kite_memory.redaction.views import edited, put_together, resolved


@st.composite
def texts_with_edits(draw: st.DrawFn) -> tuple[bytes, list[tuple[int, int, bytes]]]:
    raw = draw(st.binary(min_size=4, max_size=300))
    bounds = sorted(draw(st.lists(st.integers(0, len(raw)), min_size=2, max_size=12, unique=True)))
    edits = [
        (start, end, draw(st.binary(max_size=min(2, end - start)))) for start, end in zip(bounds[::2], bounds[1::2], strict=False)
    ]
    return raw, edits


@given(texts_with_edits())
def test_what_was_not_edited_leads_back_to_itself(made: tuple[bytes, list[tuple[int, int, bytes]]]) -> None:
    raw, edits = made
    view = edited(raw, edits)

    for offset in range(len(view.raw)):
        if not view.touched(offset, offset + 1):
            start, end = view.origin(offset, offset + 1)

            assert raw[start:end] == view.raw[offset : offset + 1] or (start == end and view.raw[offset] in b"\n")


@given(texts_with_edits())
def test_what_goes_over_an_edit_leads_back_to_all_of_it(made: tuple[bytes, list[tuple[int, int, bytes]]]) -> None:
    raw, edits = made
    view = edited(raw, edits)

    for (low, high), (start, end, _) in zip(view.seams, edits, strict=True):
        if low > 0 and high < len(view.raw):
            first, last = view.origin(low - 1, high + 1)

            assert first <= start
            assert last >= end


def test_escapes_are_read() -> None:
    view = resolved(b"a%3Db &quot;c&#x3d;d\\u0022 \\/ \\x41")

    assert view is not None
    assert view.raw.strip() == b'a=b "c=d" / A'


def test_a_text_without_escapes_is_not_read_again() -> None:
    assert resolved(b"100 % of it & more \\o/") is None


def test_lines_of_words_are_not_joined() -> None:
    assert put_together(b"the pears are ripening\nand the plums are harvested\nalready") is None


def test_halves_of_a_token_are() -> None:
    view = put_together(b"token aB3dE6gH9jK2\n    mN5pQ8sT1vW4 there")

    assert view is not None
    assert b"aB3dE6gH9jK2mN5pQ8sT1vW4" in view.raw
