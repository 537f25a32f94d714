"""What the base class of line-by-line sources does by itself."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kite_memory.model.event import EventType
from kite_memory.sources.common.line_source import Line, LineSource
from kite_memory.sources.common.words import OWN_EXTRACTOR_MARK


class Tarn(LineSource):
    provider = "tarn"

    def line(self, row: Mapping[str, Any], line: Line) -> None:
        match row:
            case {"user": text}:
                line.user(text)
            case {"assistant": text}:
                line.assistant(text)
            case _:
                line.unknown("line")


def written(*rows: dict[str, str]) -> str:
    return "".join(json.dumps({"timestamp": "2026-03-02T09:00:00Z", **row}) + "\n" for row in rows)


def test_a_session_that_our_extractor_started_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(written({"user": f"{OWN_EXTRACTOR_MARK} Extract."}, {"assistant": "{}"}))

    result = Tarn(tmp_path).read(path, None, budget=10_000)

    assert (result.session, result.events) == (None, ())


def test_a_person_who_quotes_the_extractors_prompt_later_is_still_read(tmp_path: Path) -> None:
    source, path = Tarn(tmp_path), tmp_path / "a.jsonl"
    path.write_text(written({"user": "Why are my notes poor?"}, {"assistant": "Let me see."}))
    first = source.read(path, None, budget=10_000)
    with path.open("a") as file:
        file.write(written({"user": f"The prompt says {OWN_EXTRACTOR_MARK}."}, {"assistant": "So it does."}))

    second = source.read(path, first.cursor, budget=10_000)

    assert [event.type for event in second.events] == [EventType.USER_MESSAGE, EventType.ASSISTANT_MESSAGE]
