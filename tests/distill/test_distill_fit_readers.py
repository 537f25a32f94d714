"""The fit of what readers say, over one invented session and invented verdicts."""

from pathlib import Path

import numpy as np
import pytest

from bench.extraction import fit_readers
from bench.extraction.fit_readers import FILE, READ, Found, digest, look_up, rewritten, shipped, verdicts
from kite_memory.distill.offline import claims
from kite_memory.extensions.contract.extractor_contract import event
from kite_memory.model.event import EventType

ASKED = "Why does the nightly export of the orchard's harvest lose its last row?"
CAUSE = "`HarvestWriter` drops the last row because it never flushes its buffer before the file is closed."
SAID = f"{CAUSE} I added a flush to `close`, and the export of all 412 rows now matches the database row by row in the test."


def found_for(*titles: str) -> Found:
    found = Found(titles={}, notes={})
    events = [event(1, ASKED), event(2, SAID, EventType.ASSISTANT_MESSAGE)]
    look_up(events, "orchard", "s1", frozenset(digest("orchard", "s1", title) for title in titles), found)
    return found


@pytest.mark.parametrize("title", [CAUSE.rstrip("."), "`HarvestWriter` drops the last row", ASKED.rstrip("?")])
def test_a_sentence_and_its_beginning_are_found_by_digest(title: str) -> None:
    found = found_for(title)

    assert [each.text for each in found.titles.values()] == [title]


def test_a_title_of_another_session_or_in_other_words_is_not_found() -> None:
    found = found_for("The writer loses a row", digest("orchard", "s2", CAUSE.rstrip(".")))

    assert found.titles == {} and found.notes == {}


def test_todays_note_is_found_by_a_title_it_had_before() -> None:
    title = "`HarvestWriter` drops the last row"

    found = found_for(title)

    (notes,) = found.notes.values()
    assert CAUSE.rstrip(".") in " ".join(notes[0].texts) and notes[0].rule in fit_readers.RULES


def test_the_shipped_file_is_written_again_as_it_is() -> None:
    text = FILE.read_text(encoding="utf-8")

    assert rewritten(text, shipped(text)) == text


def test_other_weights_take_the_places_of_the_shipped_ones() -> None:
    text = FILE.read_text(encoding="utf-8")
    doubled = {verdict: {name: 2 * weight for name, weight in each.items()} for verdict, each in shipped(text).items()}

    again = shipped(rewritten(text, doubled))

    assert again == {verdict: pytest.approx(each) for verdict, each in doubled.items()}


def test_the_weights_of_chances_that_were_planted_are_found() -> None:
    chance = np.random.default_rng(3)
    rows = np.column_stack([np.ones(20_000), chance.random((20_000, 2))])
    target = (chance.random(20_000) < 1 / (1 + np.exp(-(rows @ [-1.0, 2.0, -3.0])))).astype(float)

    at = fit_readers.logistic(rows, target, np.array([0.0, 1.0, 1.0]), np.ones(20_000))

    assert at == pytest.approx([-1.0, 2.0, -3.0], abs=0.15)


def test_a_yes_that_always_has_more_has_the_whole_area() -> None:
    yes = np.array([True, False, True, False])

    assert fit_readers.area(yes, np.array([2.0, 0.0, 3.0, 1.0])) == 1.0
    assert fit_readers.area(yes, np.array([1.0, 1.0, 1.0, 1.0])) == 0.5


def test_the_bar_is_that_of_the_rules() -> None:
    assert fit_readers.BAR == claims._PROBABLY


@pytest.mark.parametrize("file", READ, ids=lambda file: file.name)
def test_published_verdicts_are_digests_and_known_words(file: Path) -> None:
    lines = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines() if not line.startswith("#")][1:]

    assert len(list(verdicts([file]))) == len(lines) > 300
    for id, _, _, _, verdict, title, reader in lines:
        assert int(id, 16) >= 0 and len(id) == 12 and len(reader) == 1
        assert verdict in ("kept", "poor", "junk", "-") and title in ("y", "n", "-")
