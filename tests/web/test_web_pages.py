"""What the pages show and what their forms do, asked without a browser."""

import html
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.model.note import Note, NoteKind, NoteStatus
from kite_memory.vault.notefile import render, with_body
from kite_memory.web.rendering import Renderer
from kite_memory.wiring.services import Services
from tests.fakes.lived_in import lived_in, note_id
from tests.web.browsing import Site, served

HOSTILE = '<script>alert(1)</script> <img src=x onerror="alert(1)"> {{ 7 * 7 }} \' " & javascript:alert(1)'
PAGES = ("/", "/notes", "/review", "/timeline", "/timeline?span=month", "/threads", "/graph", "/said", "/said?silent=yes", "/ask")


class Parts(HTMLParser):
    """Names of the elements of a page, their attributes, and where they lead."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))


def is_harmless(text: str) -> bool:
    """Return whether nothing in the page runs or loads anything but the page's own files."""
    for tag, has in Parts(text).elements:
        if tag in ("iframe", "object", "embed", "img", "base") or any(name.startswith("on") or name == "style" for name in has):
            return False
        target = (has.get("src") or has.get("href") or has.get("action") or "").strip().lower()
        if tag in ("script", "link", "form") and not target.startswith("/") and has.get("method") != "dialog":
            return False
        if target.startswith(("javascript:", "data:", "vbscript:", "file:")):
            return False
    return True


@pytest.mark.parametrize("page", PAGES)
def test_every_page_can_be_read(site: Site, page: str) -> None:
    answer = site.get(page)

    assert answer.status == 200
    assert is_harmless(answer.text)


def test_a_note_is_shown_with_what_it_rests_on_and_what_is_around_it(site: Site) -> None:
    shown = site.get("/note?name=queue-in-postgres").text

    assert "row locks keep them apart" in shown
    assert "<td>1,900</td>" in shown
    assert "A worker retries only 429 and 5xx" in shown
    assert "Please look at what we decided before." in shown


def test_notes_are_found_and_filtered(site: Site) -> None:
    found = site.get("/notes?q=tide+table").text
    decisions = site.get("/notes?kind=decision&project=harbor").text

    assert "The tide table is computed once a day" in found
    assert "Maps are drawn as SVG" in decisions
    assert "PostgreSQL over SQLite" not in decisions


def test_a_session_is_reported_with_its_failures_and_their_fixes(site: Site, services: Services) -> None:
    session = services.operations.perform("timeline", {"limit": 1})["sessions"][0]

    text = site.get(f"/session?name={session['provider']}:{session['id']}&only=failures").text

    assert "TimeoutError: database is locked" in text
    assert 'class="fix"' in text


def test_every_injection_is_reported_with_its_reason_and_outcome(site: Site) -> None:
    text = site.get("/said").text

    assert "which database does the job queue use?" in text
    assert "found by meaning and by words" in text
    assert "used" in text
    assert f'value="{note_id(0)}"' in text  # to be muted there


def test_the_graph_can_be_walked(site: Site) -> None:
    walked = site.get("/graph?name=postgresql").text
    links = [has["href"] for tag, has in Parts(walked).elements if tag == "a" and "graph?name=" in (has.get("href") or "")]

    assert f"{site.prefix}/graph?name={note_id(0)}" in links
    assert site.ask("GET", str(links[0]), headers={}).status == 200


@pytest.mark.parametrize("page", ["/note?name=nothing", "/session?name=nothing", "/session", "/graph?name=nothing", "/nothing"])
def test_what_is_not_there_is_said_so(site: Site, page: str) -> None:
    answer = site.get(page)

    assert answer.status == 404
    assert "Traceback" not in answer.text


@pytest.mark.parametrize(
    "query", ["page=0", "page=-1", "page=99999999999999999999", "page=x", "kind=%00", "q=%22%27%3C", "q=tool:", "back=1000000"]
)
def test_a_strange_query_is_answered(site: Site, query: str) -> None:
    assert site.get(f"/notes?{query}").status in (200, 400)
    assert site.get(f"/said?{query}").status == 200
    assert site.get(f"/timeline?span=month&back={query[5:]}").status == 200


def test_forms_change_what_the_commands_would(own: Services) -> None:
    with served(own) as link:
        site = Site(link)

        assert site.post("/mute", name="ports").status == 303
        assert site.post("/mute", name="ports", undo="yes").status == 303
        assert site.post("/edit", name="ports", body="Metrics moved to **9200**.\r\nNothing else.").status == 303
        assert "<strong>9200</strong>" in site.get("/note?name=ports").text
        assert site.post("/forget", name="staging").status == 303
        assert site.get("/note?name=staging").status == 404
        assert site.post("/judge", name="retry-budget", verdict="accept").status == 303
        assert site.post("/merge", name="load-test-in-march", into="queue-in-postgres").status == 303
        assert "with eight workers" in site.get("/note?name=queue-in-postgres").text
        assert "SKIP LOCKED" in site.post("/ask", question="which database does the job queue use?", offline="yes").text

    statuses = {each["path"]: each["status"] for each in own.operations.perform("notes", {"limit": 100})["notes"]}
    assert statuses["projects/ports.md"] == "accepted"
    assert statuses["projects/retry-budget.md"] == "accepted"
    assert not own.vault.notes.is_ours(own.vault.notes.find("ports"))  # the person's from now on


def test_what_was_done_is_reported_once_and_in_its_own_tab(own: Services) -> None:
    with served(own) as link:
        site = Site(link)
        muted = site.post("/mute", name="ports").headers["location"].removeprefix(site.prefix)
        unmuted = site.post("/mute", name="ports", undo="yes").headers["location"].removeprefix(site.prefix)

        in_other_tab = site.get("/note?name=ports").text
        first, second, reloaded = (site.get(address).text for address in (muted, unmuted, muted))

    assert 'class="flash"' not in in_other_tab
    assert "is never given to an agent again" in first
    assert "is given to agents again" in second
    assert 'class="flash"' not in reloaded


def test_a_secret_in_an_edit_is_left_out(own: Services) -> None:
    secret = "ghp_" + "a1B2" * 9
    with served(own) as link:
        site = Site(link)
        edited = site.post("/edit", name="ports", body=f"The token is {secret}.").headers["location"]
        shown = site.get(edited.removeprefix(site.prefix)).text

    assert secret not in shown
    assert "was left out" in shown
    assert secret not in (own.vault.root / "projects" / "ports.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "body",
    [
        "\U0001f468\u200d\U0001f469\u200d\U0001f467 \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 1\u00a0000 \u20ac",
        "    indented code first\n\nthen words",
        "a line\x0cbreaks here\n\n\n\nand there  \n<b>&amp;</b>",
    ],
)
def test_saving_without_a_change_changes_nothing(own: Services, body: str) -> None:
    file = own.vault.root / "projects" / "ports.md"
    file.write_text(with_body(file.read_text(encoding="utf-8"), f"{body}\n"), encoding="utf-8")
    before = file.read_bytes()
    own.pipeline.compare_vault()
    with served(own) as link:
        site = Site(link)
        form = site.get("/edit?name=ports").text
        field = html.unescape(re.findall(r"<textarea[^>]*>\n(.*?)</textarea>", form, re.DOTALL)[0])

        assert site.post("/edit", name="ports", body=field.replace("\n", "\r\n")).status == 303

    assert file.read_bytes() == before


def test_an_edit_of_a_note_that_has_changed_meanwhile_is_refused(own: Services) -> None:
    with served(own) as link:
        site = Site(link)
        seen = site.get("/edit?name=ports").text.partition('name="seen" value="')[2].partition('"')[0]
        site.post("/edit", name="ports", body="Written in another tab.", seen=seen)

        answer = site.post("/edit", name="ports", body="Written here.", seen=seen)

    assert answer.status == 400
    assert "has changed since you opened it" in answer.text
    assert "another tab" in own.vault.notes.find("ports").body


def test_a_hostile_note_is_only_text(own: Services) -> None:
    at = datetime.now(UTC)
    note = Note(
        id=note_id(99), path="projects/hostile.md", kind=NoteKind.FACT, title=HOSTILE, project=HOSTILE, created=at, updated=at,
        body=f"{HOSTILE} [a](javascript:alert(1)) "
        f"![p](http://evil.example/p.png) <http://evil.example> [[{HOSTILE[:20]}]] [[ports]]",
    )  # fmt: skip
    (own.vault.root / note.path).write_text(render(note), encoding="utf-8")
    own.pipeline.compare_vault()
    with served(own) as link:
        site = Site(link)
        for page in ("/note?name=hostile", "/notes", "/notes?q=alert", "/edit?name=hostile", "/graph?name=hostile", "/"):
            answer = site.get(page)

            assert answer.status == 200
            assert is_harmless(answer.text), page
            assert "<script>alert" not in answer.text
            assert " 49 " not in answer.text


def test_code_in_a_title_is_shown_as_code(own: Services) -> None:
    kept = own.operations.perform("remember", {"text": "Run `make <all>` before a push, and `x", "kind": "preference"})
    with served(own) as link:
        listed = Site(link).get("/notes?q=make+push").text
        shown = Site(link).get(f"/note?name={kept['id']}").text

    assert "Run <code>make &lt;all&gt;</code> before a push, and `x" in listed
    assert "<title>Run make &lt;all&gt; before a push" in shown


def test_a_memory_whose_work_lies_in_the_past_shows_it(tmp_path: Path) -> None:
    with lived_in(tmp_path, datetime.now(UTC) - timedelta(days=100)) as old:
        stale = old.vault.notes.find("ports")
        archive = replace(stale, id=note_id(98), path="journals/archive-orchard-2026-01.md", kind=NoteKind.JOURNAL, title="Archive")
        (old.vault.root / archive.path).write_text(render(archive), encoding="utf-8")
        archived = replace(stale, status=NoteStatus.ARCHIVED, body="The person: “which?” 8123 and 9123.")
        (old.vault.root / stale.path).write_text(render(archived), encoding="utf-8")  # changed last
        old.pipeline.compare_vault()
        count = len(old.vault.known.all())
        with served(old) as link:
            site = Site(link)

            today, notes, timeline = (site.get(page).text for page in ("/", "/notes", "/timeline"))

    assert f"of {count} notes" in today
    assert "of 28 sessions" in today
    assert "No prompt today." in today
    assert stale.title not in today
    assert "archived at the end" in notes
    assert set(re.findall(r'class="row-link"[^>]*>([^<]+)', notes)[-2:]) == {"Archive", stale.title}
    assert "The person:" not in notes
    assert "No session in this time." not in timeline
    assert "later →" in timeline


def test_the_mark_of_a_callout_is_not_shown() -> None:
    shown = Renderer(base="/x", form="").markdown("Pears.\n\n> [!failure] Rejected: apples\n\nAn [!ordinary] bracket.")

    assert "<p>Rejected: apples</p>" in shown
    assert "[!ordinary]" in shown


_MARKS = [*"[]()<>!|#*`\\\"'&:\n x1a/", "javascript:", "[[", "]]", "<script", "onerror="]


@given(st.lists(st.sampled_from(_MARKS), max_size=60).map("".join))
def test_no_markdown_becomes_anything_that_runs(text: str) -> None:
    assert is_harmless(f"<main>{Renderer(base='/x', form='').markdown(text)}</main>")


def test_a_page_of_the_list_reads_its_own_notes_alone(own: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    known = own.vault.known.all()
    assert len(known) > 20
    read: list[str] = []
    reading = own.vault.notes.read

    def noted(path: str) -> Note | None:
        read.append(path)
        return reading(path)

    monkeypatch.setattr(own.vault.notes, "read", noted)

    listed = own.operations.perform("notes", {"start": 5, "limit": 3})

    assert listed["total"] == len(known)
    assert read == [each["path"] for each in listed["notes"]]


def test_our_own_bug_is_reported_and_not_shown(services: Services) -> None:
    reported: list[BaseException] = []

    class Broken:
        class operations:
            @staticmethod
            def perform(op: str, arguments: object) -> object:
                raise RuntimeError("private words")

    with served(Broken, report=reported.append) as link:  # type: ignore[arg-type]
        answer = Site(link).get("/notes")

    assert answer.status == 500
    assert "private words" not in answer.text
    assert [str(error) for error in reported] == ["private words"]


def test_the_pages_files_name_nothing_elsewhere() -> None:
    folder = Path(__file__).parents[2] / "kite_memory" / "web"
    for file in (*folder.glob("static/*"), *folder.glob("templates/*.html")):
        text = file.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "http" not in text.replace("http-equiv", ""), file.name


def test_a_page_that_is_not_there_says_so_in_its_title(site: Site) -> None:
    answer = site.get("/nothing-here")

    assert answer.status == 404
    assert "<h1>There is no such page</h1>" in answer.text
    assert "<title>There is no such page" in answer.text
