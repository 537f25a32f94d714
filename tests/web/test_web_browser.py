"""The page in a real Chromium: entering, keys, without JavaScript, on a phone. Leaves screenshots behind to look at."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from kite_memory.vault.notefile import render
from kite_memory.wiring.services import Services
from tests.fakes.lived_in import note_id
from tests.web.browsing import Site, browser, lacking, served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.skipif(bool(lacking()), reason=lacking() or "there is a browser")

SCREENSHOTS = Path(__file__).parent / "screenshots"
PAGES = {
    "today": "", "notes": "notes", "note": f"note?name={note_id(0)}", "edit": f"edit?name={note_id(0)}", "review": "review",
    "timeline": "timeline", "threads": "threads", "graph": "graph", "around": f"graph?name={note_id(0)}", "said": "said",
    "ask": "ask",
}  # fmt: skip


@pytest.fixture(scope="module")
def opened() -> "Iterator[Browser]":
    with browser() as started:
        yield started


def enter(opened: "Browser", link: str, *, width: int = 1180, dark: bool = False, scripts: bool = True) -> "tuple[Page, list[str]]":
    """Open the link in a browser of its own, and return its page and what the browser complains of."""
    scheme: Literal["dark", "light"] = "dark" if dark else "light"
    context = opened.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme, java_script_enabled=scripts)
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(link)
    page.wait_for_url(lambda url: not url.split("?")[0].endswith("/enter"))  # waits for the script, too
    return page, complaints


@pytest.mark.parametrize(("look", "width"), [("light", 1180), ("dark", 1180), ("phone", 390)])
def test_every_page_fits_and_breaks_no_rule(opened: "Browser", site: Site, look: str, width: int) -> None:
    SCREENSHOTS.mkdir(exist_ok=True)
    page, complaints = enter(opened, site.link, width=width, dark=look == "dark")
    start = page.url
    for name, path in PAGES.items():
        page.goto(start + path)
        page.screenshot(path=SCREENSHOTS / f"{look}-{name}.png", full_page=True)

        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
    assert complaints == []


def test_a_long_word_of_a_title_does_not_widen_the_review_on_a_phone(opened: "Browser", own: Services) -> None:
    waiting = own.vault.notes.find("retry-budget")
    (own.vault.root / waiting.path).write_text(render(replace(waiting, title=f"`{'TestTheQueue_' * 9}`")), encoding="utf-8")
    own.pipeline.compare_vault()
    with served(own) as link:
        page, _ = enter(opened, link, width=390)
        page.goto(page.url + "review")

        assert "TestTheQueue_" in page.content()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_without_javascript_everything_can_be_read_and_done(opened: "Browser", own: Services) -> None:
    with served(own) as link:
        page, _ = enter(opened, link, scripts=False)
        page.click("nav >> text=Notes")
        page.click("text=The API listens on 8123")
        page.click("button:has-text('Mute')")

        assert "is never given to an agent again" in page.inner_text(".flash")
        page.click("summary:has-text('Forget')")
        page.click("text=Forget this note")
        assert "Forgotten" in page.inner_text(".flash")


def test_a_link_in_a_file_of_ours_lets_the_browser_in(opened: "Browser", site: Site, tmp_path: Path) -> None:
    from kite_memory.cli.everyday import _OPENS

    file = tmp_path / "web.html"
    file.write_text(_OPENS.format(link=site.link), encoding="utf-8")
    context = opened.new_context()
    page = context.new_page()
    page.goto(file.as_uri())
    page.wait_for_selector("h1")

    assert page.inner_text("h1") == "Today"
    assert "token" not in page.url


def test_the_review_goes_by_one_key_each(opened: "Browser", own: Services) -> None:
    with served(own) as link:
        page, complaints = enter(opened, link)
        page.keyboard.press("g")
        page.keyboard.press("v")
        page.wait_for_url("**/review")
        before = page.locator(".card").count()
        for key, said in (("a", "Accepted."), ("r", "Rejected.")):
            page.keyboard.press(key)
            page.wait_for_selector(f".flash:has-text('{said}')")
            page.wait_for_load_state()  # only then does the script listen

        assert page.locator(".card").count() == before - 2
        assert complaints == []


def test_keys_move_through_a_list_and_search(opened: "Browser", site: Site) -> None:
    page, _ = enter(opened, site.link)
    page.keyboard.press("g")
    page.keyboard.press("n")
    page.wait_for_url("**/notes")
    for key in "jjk":
        page.keyboard.press(key)
    first = page.locator("[data-list] .row-link").first.inner_text()

    assert page.evaluate("document.activeElement.innerText") == first
    page.keyboard.press("/")
    page.keyboard.type("tide table")
    page.keyboard.press("Enter")
    page.wait_for_url("**q=tide**")
    assert "The tide table is computed once a day" in page.inner_text("main")


def test_another_page_of_this_machine_cannot_act(opened: "Browser", own: Services) -> None:
    """As a page on another port would: the browser sends no cookie below another path, and the form lacks its value."""
    with served(own) as link, served(own) as elsewhere:
        page, _ = enter(opened, link)
        target = f"{page.url}forget"
        other, _ = enter(opened, elsewhere)
        other.goto(elsewhere)
        answer = other.request.post(target, form={"name": "ports"})

        assert answer.status == 403
        assert own.vault.notes.find("ports").title == "The API listens on 8123, metrics on 9123"
