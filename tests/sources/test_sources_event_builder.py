"""What is alike whichever agent wrote it."""

from kite_memory.sources.common.event_builder import title_of

TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3


def test_a_title_has_one_line_and_no_half_of_a_token_that_was_wrapped_over_two() -> None:
    title = title_of(f"Prune  the pears\nwith {TOKEN[:20]}\n    {TOKEN[20:]}")

    assert title == "Prune the pears with [redacted:github-token]"


def test_a_title_ends_before_a_token_that_it_has_no_room_for() -> None:
    assert TOKEN[:12] not in title_of("pears " * 31 + TOKEN + " and plums" * 200)


def test_what_is_no_text_is_no_title() -> None:
    assert title_of(7) == ""
