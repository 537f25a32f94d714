"""Rendering of pages: templates, markdown, times and links. All text from notes and transcripts is escaped here."""

import re
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markupsafe import Markup, escape
from starlette.responses import HTMLResponse, RedirectResponse, Response

from kite_memory.text.display import clip, counted

Json = dict[str, Any]
Ask = Callable[..., Any]
"""Performs an operation by its name with keyword arguments, and returns its JSON value."""

DONE = "done"
"""Query parameter that names the message of a page."""
_MOST_MESSAGES = 100
_LONGEST_TEXT = 200_000
_LONGEST_LINK = 300
_CALLOUT = re.compile(r"^((?:> ?){1,5})\[!\w{1,20}\][+-]? ?", re.MULTILINE)
"""Obsidian's mark of a callout, which is only a quotation elsewhere."""

_TICKED = re.compile(r"`([^`]{1,200})`")


class Renderer:
    """``base`` is the path of the page, ``form`` the value that every form carries.

    The renderer of a single file has neither; its links to notes lead to places in the file.
    """

    def __init__(self, *, base: str, form: str, note_link: Callable[[str], str] | None = None) -> None:
        self._base = base
        self.form = form
        self._messages: dict[str, str] = {}
        self._lock = threading.Lock()
        link = note_link or (lambda name: self.address("note", name=name))
        self._markdown = markdown_renderer(link)
        self._environment = Environment(
            loader=FileSystemLoader(Path(__file__).with_name("templates")),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        graph_link = note_link or (lambda name: self.address("graph", name=name))
        self._environment.globals.update(base=base, form=form, address=self.address, note_link=link, graph_link=graph_link)
        self._environment.filters.update(markdown=self.markdown, ticked=ticked, unticked=unticked, short=clip, count=counted)
        self._environment.filters.update(when=when, day=day, clock=clock)

    def address(self, page: str, /, **query: object) -> str:
        """Return the address of a page; empty values are left out."""
        given = {name: value for name, value in query.items() if value not in ("", None, 0)}
        return f"{self._base}/{page}" + (f"?{urlencode(given)}" if given else "")

    def markdown(self, text: str, titles: Mapping[str, str] | None = None) -> Markup:
        """Return markdown as HTML. Links without a label of their own show what ``titles`` has for their target, in lower case."""
        plain = _CALLOUT.sub(r"\1", text[:_LONGEST_TEXT])
        return Markup(self._markdown.render(plain, {"titles": titles or {}}))  # noqa: S704 - rendered with HTML off

    def text(self, template: str, **values: object) -> str:
        return self._environment.get_template(template).render(values)

    def page(self, template: str, *, code: int = 200, said: str = "", **values: object) -> Response:
        return HTMLResponse(self.text(template, said=said, **values), status_code=code)

    def failure(self, message: str, hint: str, code: int) -> Response:
        return self.page("failure.html", code=code, here="", message=message, hint=hint)

    def then(self, address: str, said: str) -> Response:
        """Return to a page, which says what has been done: in this answer alone, whatever other tabs ask for meanwhile."""
        key = secrets.token_hex(8)
        with self._lock:
            self._messages[key] = said
            for oldest in list(self._messages)[:-_MOST_MESSAGES]:
                del self._messages[oldest]
        return RedirectResponse(f"{address}{'&' if '?' in address else '?'}{DONE}={key}", status_code=303)

    def take_message(self, key: str) -> str:
        """Return the message that `then` has kept for a page, once."""
        with self._lock:
            return self._messages.pop(key, "")


def markdown_renderer(link: Callable[[str], str]) -> MarkdownIt:
    """Return a renderer without raw HTML and pictures; ``[[links]]`` lead to ``link`` of their target."""
    made = MarkdownIt("commonmark", {"html": False, "maxNesting": 30}).enable(["table", "strikethrough"]).disable("image")

    def wikilink(state: StateInline, silent: bool) -> bool:
        if not state.src.startswith("[[", state.pos):
            return False
        end = state.src.find("]]", state.pos, state.pos + _LONGEST_LINK)
        inner = state.src[state.pos + 2 : end] if end > 0 else ""
        if not inner.strip() or "[" in inner or "\n" in inner:
            return False
        if not silent:
            place, _, label = inner.partition("|")
            target = place.partition("#")[0].strip()
            opening = state.push("link_open", "a", 1)
            opening.attrs = {"href": link(target), "class": "wikilink"}
            state.push("text", "", 0).content = (label or state.env["titles"].get(target.casefold(), place)).strip()
            state.push("link_close", "a", -1)
        state.pos = end + 2
        return True

    def outward(self: Any, tokens: Sequence[Any], place: int, options: Any, env: Any) -> str:
        token = tokens[place]
        if token.attrGet("class") != "wikilink":
            token.attrSet("rel", "noopener noreferrer")
            token.attrSet("class", "outward")
        return str(self.renderToken(tokens, place, options, env))

    made.inline.ruler.before("link", "wikilink", wikilink)
    made.add_render_rule("link_open", outward)
    return made


def ticked(title: str) -> Markup:
    """Return a title with whatever stands between backticks as code."""
    return Markup(_TICKED.sub(r"<code>\1</code>", str(escape(title))))  # noqa: S704 - escaped before


def unticked(title: str) -> str:
    """Return a title without those backticks, for places that can hold no elements."""
    return _TICKED.sub(r"\1", title)


def parsed(text: str) -> datetime:
    """Return a point in time in local time."""
    return datetime.fromisoformat(text).astimezone()


def when(text: str) -> Markup:
    """Return a time in short form, with the full time as its title."""
    at, today = parsed(text), datetime.now().astimezone().date()
    days = (today - at.date()).days
    if days == 0:
        said = f"{at:%H:%M}"
    elif days == 1:
        said = f"yesterday, {at:%H:%M}"
    elif 0 < days < 7:
        said = f"{at:%A}, {at:%H:%M}"
    else:
        said = f"{at.day} {at:%b}" if at.year == today.year else f"{at.day} {at:%b %Y}"
    return Markup('<time datetime="{}" title="{}">{}</time>').format(text, f"{at:%Y-%m-%d %H:%M}", said)


def day(text: str) -> str:
    at, today = parsed(text), datetime.now().astimezone().date()
    match (today - at.date()).days:
        case 0:
            return "Today"
        case 1:
            return "Yesterday"
        case _:
            return f"{at:%A}, {at.day} {at:%B}" + ("" if at.year == today.year else f" {at.year}")


def clock(text: str) -> Markup:
    at = parsed(text)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(text, f"{at:%Y-%m-%d %H:%M:%S}", f"{at:%H:%M}")
