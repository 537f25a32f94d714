"""The memory in one file: whole, harmless, bounded."""

from datetime import UTC, datetime
from typing import Any

import pytest

from kite_memory.web import drawing as module
from kite_memory.web.drawing import document
from tests.web.test_web_pages import HOSTILE, Parts

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def note(number: int, body: str, **more: str) -> dict[str, Any]:
    path = f"projects/note-{number}.md"
    fields = {
        "id": f"ID{number}",
        "path": path,
        "kind": "fact",
        "title": f"Note {number}",
        "project": "orchard",
        "status": "accepted",
    }
    return {**fields, "created": f"2026-02-{number + 1:02}T12:00:00+00:00", "body": body, "links": 1, **more}


def made(*notes: dict[str, Any]) -> tuple[module.ExportedPage, str]:
    arrows = [{"from": notes[0]["path"], "to": notes[-1]["path"]}]
    session = {
        "id": "5e55", "provider": "codex", "project": "orchard", "title": HOSTILE, "opening": "",
        "started": "2026-02-28T10:00:00+00:00",
        "last": "2026-02-28T12:00:00+00:00", "prompts": 2, "errors": 1, "tests": 0, "failed_tests": 0,
    }  # fmt: skip
    file = document(
        notes, sessions=[session], around={"note": None, "notes": list(notes), "arrows": arrows, "left_out": 0}, now=NOW
    )
    return file, file.data.decode()


def test_links_between_notes_lead_to_places_in_the_file() -> None:
    _, text = made(note(1, "See [[note-2]] and [[nowhere]]."), note(2, "The other."))

    elements = Parts(text).elements
    ids = {has["id"] for _, has in elements if has.get("id")}
    leads = {str(has["href"]) for tag, has in elements if tag == "a"}
    assert {"#note-note-1", "#note-note-2", "#gone"} <= leads
    assert all(lead.removeprefix("#") in ids for lead in leads)


def test_nothing_in_the_file_runs_or_loads_anything() -> None:
    _, text = made(
        note(1, f"{HOSTILE} ![p](http://evil.example/p.png)", title=HOSTILE), note(2, "</style><script>alert(1)</script>")
    )

    elements = Parts(text).elements
    assert {tag for tag, _ in elements}.isdisjoint({"script", "img", "iframe", "link", "form", "object"})
    assert not [has for _, has in elements if has.get("src") or any(name.startswith("on") for name in has)]
    assert "default-src 'none'" in text


def test_the_file_is_bounded_and_says_what_did_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LONGEST", 1_000)

    file, text = made(*(note(number, "x" * 300) for number in range(8)))

    assert (file.notes, file.left_out) == (3, 5)
    assert "5 older notes did not fit" in text
    assert "Note 7" in text  # the newest stay
    assert "Note 1<" not in text
