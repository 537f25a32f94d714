"""Terminal application: sessions on the left, the events of one on the right, and screens over them.

It does not depend on where these come from.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.events import Click, Resize
from textual.geometry import Region, Size
from textual.markup import escape
from textual.message import Message
from textual.screen import ModalScreen
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Footer, Input, Static
from textual.worker import get_current_worker

from kite_memory.errors import KiteError
from kite_memory.text.display import clip_end
from kite_memory.text.quoting import plain
from kite_memory.tui.rows import (
    JUMPS,
    VIEWS,
    ViewRow,
    following,
    holding,
    in_view,
    matching,
    name_of,
    next_holding,
    place_of,
    rows,
    session_row,
)

KEYS = """\
Keys
  up down, k j    a line
  pgup pgdn       a page; home and end: the first and the last
  enter           open a session; unfold a row, fold it again
  tab             to the other side; escape: back to the list
  /               in the list: which sessions; in one: its words
  . ,             the next place that was found, the one before
  v               talk, failures, files or notes alone, then all
  e d t p         next error, decision, test, prompt; E D T P back
  n               the note made of this, or the next that has one
  f               what became of it: from a failure to its fix
  y               copy the citation, for kmem why and timeline
  r               the brief: where this session stood
  q               leave

Marks
  you, agent      what was said
  tool            a call, folded: its command, file and result
  ERROR, TEST     a failure; what tests came to
  DECIDED         a choice that was made
  note            a note that was made of the event above it
  red             failed

In the list
  3p 1e 2t        prompts, errors, test runs; red: a test failed
"""


class TextScreen(ModalScreen[str]):
    """Screen with a text. Returns an empty string."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,b,q,question_mark", "back", "Back")]
    DEFAULT_CSS = """
    TextScreen, NoteScreen { align: center middle; }
    TextScreen > VerticalScroll, NoteScreen > VerticalScroll {
        width: 100%; max-width: 110; height: 100%; border: round; padding: 0 1;
    }
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Static(plain(self._text), markup=False)
        yield Footer()

    def action_back(self) -> None:
        self.dismiss("")


class NoteScreen(TextScreen):
    """Screen with a whole note. Returns the citation to go to, or an empty string."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter,e", "evidence", "To the event it rests on")]

    def __init__(self, text: str, evidence: str) -> None:
        super().__init__(text)
        self._evidence = evidence

    def action_evidence(self) -> None:
        self.dismiss(self._evidence)


Json = Mapping[str, Any]

_STYLES = {
    "user_message": Style(color="cyan", bold=True),
    "assistant_message": Style(),
    "decision": Style(color="magenta", bold=True),
    "error": Style(color="red"),
    "test_result": Style(color="green"),
    "note": Style(color="yellow"),
    "session": Style(),
}
_QUIET = Style(dim=True)
_FAILED = Style(color="red")
_CURSOR = Style(reverse=True)
_WIDEST = 2_000
_NARROW = 100
"""Columns of the screen below which only one side is shown, and columns of a side below which a row may have two lines."""
_INDENT = 13
"""Columns before a row's second line, as wide as the time."""


def style_of(row: ViewRow) -> Style:
    """Return the style of a row by its kind and status."""
    return _FAILED if row.status == "failed" else _STYLES.get(row.kind, _QUIET)


def two_lines(text: str, width: int) -> tuple[str, str]:
    """Break a text at a blank near the end of its first line, and cut the second at its end."""
    blank = text.rfind(" ", max(_INDENT, width // 2), width + 1)
    first = text[:blank] if blank > 0 else text[:width]
    return first, f"{'':{_INDENT}}{clip_end(text[len(first) :].lstrip(), width - _INDENT)}"


class RowList(ScrollView, can_focus=True):
    """Rows with a cursor, any number of them; only the visible ones are drawn.

    What does not fit ends with «…». On less than `_NARROW` columns of its own, a row that is too long for one line has two.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home,g", "go(0)", "First", show=False),
        Binding("end,G", "go(-1)", "Last", show=False),
        Binding("enter,space", "choose", "Open", show=False),
    ]

    class Chosen(Message):
        def __init__(self, lines: "RowList", row: ViewRow) -> None:
            super().__init__()
            self.lines = lines
            self.row = row

        @property
        def control(self) -> "RowList":
            return self.lines

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.rows: Sequence[ViewRow] = ()
        self.cursor = 0
        self._starts: list[int] = [0]

    def show(self, shown: Sequence[ViewRow], *, cursor: int = 0) -> None:
        self.rows = shown
        self._lay_out()
        self.put(cursor)

    def on_resize(self) -> None:
        self._lay_out()
        self.put(self.cursor)

    def _lay_out(self) -> None:
        """Give each row its first line, and a line after the last row."""
        width = self.room
        most = 2 if width < _NARROW else 1
        self._starts = [0, *accumulate(min(most, 1 + (len(row.text) > width)) for row in self.rows)]
        self.virtual_size = Size(width, self._starts[-1])

    def put(self, cursor: int) -> None:
        self.cursor = max(0, min(cursor, len(self.rows) - 1))
        if self.rows:
            first, after = self._starts[self.cursor : self.cursor + 2]
            self.scroll_to_region(Region(0, first, 1, after - first), animate=False)
        self.refresh()

    def _place_of(self, line: int) -> int:
        return bisect_right(self._starts, line) - 1

    @property
    def room(self) -> int:
        """The columns beside the scrollbar."""
        return self.scrollable_content_region.width

    @property
    def row(self) -> ViewRow | None:
        return self.rows[self.cursor] if self.rows else None

    def render_line(self, y: int) -> Strip:
        line, width = self.scroll_offset.y + y, self.room
        place = self._place_of(line)
        if place >= len(self.rows):
            return Strip.blank(width, self.rich_style)
        row = self.rows[place]
        style = self.rich_style + style_of(row)
        if place == self.cursor:
            style += _CURSOR if self.has_focus else Style(underline=True)
        text = plain(row.text[:_WIDEST]).replace("\n", " ").expandtabs(4)
        first, after = self._starts[place : place + 2]
        parts = two_lines(text, width) if after - first > 1 else (clip_end(text, width), "")
        return Strip([Segment(plain(parts[line - first]), style)]).crop_extend(0, width, style)

    def action_move(self, by: int) -> None:
        self.put(self.cursor + by)

    def action_page(self, by: int) -> None:
        if self.rows:
            self.put(self._place_of(max(0, self._starts[self.cursor] + by * max(1, self.size.height - 1))))

    def action_go(self, to: int) -> None:
        self.put(len(self.rows) - 1 if to < 0 else to)

    def action_choose(self) -> None:
        if self.row is not None:
            self.post_message(self.Chosen(self, self.row))

    def on_click(self, event: Click) -> None:
        inside = event.get_content_offset(self)  # a click on the border has no offset
        if inside is not None and (place := self._place_of(self.scroll_offset.y + inside.y)) < len(self.rows):
            self.put(place)
            self.action_choose()


class TimelineApp(App[None]):
    """Terminal application for the timeline.

    ``sessions`` lists the sessions; ``pieces`` yields one in parts; ``note`` returns one as `kmem show` does; ``brief`` returns the
    state of a session, ``became`` lines about what followed an event. All may take time. On less than `_NARROW` columns one side is
    shown at a time, and rows have no id.
    """

    TITLE = "kmem timeline"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #left { width: 38%; max-width: 70; }
    #right { width: 1fr; }
    #search { display: none; }
    #search.shown { display: block; }
    .narrow #left, .narrow #right { width: 100%; max-width: 100%; }
    .narrow #right, .narrow.reading #left { display: none; }
    .narrow.reading #right { display: block; }
    #sessions, #timeline { border: round $primary; overflow-x: hidden; scrollbar-gutter: stable; }
    #sessions:focus, #timeline:focus { border: round $accent; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "search", "Search"),
        Binding("tab", "other_side", "Other side", show=False, priority=True),
        Binding("escape", "to_list", "List", show=False),
        Binding("full_stop", "found", "Next found", show=False),
        Binding("comma", "found(True)", "Found before", show=False),
        Binding("v", "view", "View"),
        Binding("e", "jump('errors')", "Error"),
        Binding("E", "jump('errors', True)", "Error before", show=False),
        Binding("d", "jump('decisions')", "Decision", show=False),
        Binding("D", "jump('decisions', True)", "Decision before", show=False),
        Binding("t", "jump('tests')", "Test", show=False),
        Binding("T", "jump('tests', True)", "Test before", show=False),
        Binding("p", "jump('prompts')", "Prompt", show=False),
        Binding("P", "jump('prompts', True)", "Prompt before", show=False),
        Binding("n", "note", "Note"),
        Binding("f", "became", "Fix"),
        Binding("y", "copy", "Copy"),
        Binding("r", "brief", "Brief"),
        Binding("question_mark", "keys", "Keys"),
        Binding("q", "quit", "Quit"),
    ]

    def __init__(
        self,
        *,
        sessions: Callable[[], Sequence[Json]],
        pieces: Callable[[str], Iterator[Json]],
        note: Callable[[str], Json],
        brief: Callable[[str], Json],
        became: Callable[[str], Sequence[str]],
        session: str = "",
    ) -> None:
        super().__init__()
        self._list = sessions
        self._pieces = pieces
        self._note = note
        self._brief = brief
        self._became = became
        self._named = session
        self._sessions: Sequence[Json] = ()
        self._page: dict[str, Any] = {}
        self._unfolded: set[str] = set()
        self._wanted = ""
        self._view = next(iter(VIEWS))
        self._found: frozenset[str] = frozenset()

    def compose(self) -> ComposeResult:
        with Horizontal():
            with Vertical(id="left"):
                yield Input(placeholder="filter: words of title, project, agent, date", id="filter", compact=True)
                yield RowList(id="sessions")
            with Vertical(id="right"):
                yield RowList(id="timeline")
                yield Input(placeholder="words in this session", id="search", compact=True)
        yield Footer()

    def on_mount(self) -> None:
        self.query_one("#sessions").focus()
        self._fetch_sessions()
        if self._named:
            self._read()
            self._open(self._named, self._named if "#" in self._named else "")

    def on_resize(self, event: Resize) -> None:
        self.screen.set_class(event.size.width < _NARROW, "narrow")
        if self._page:
            self.call_after_refresh(lambda: self._draw(self.timeline.cursor))

    @property
    def narrow(self) -> bool:
        return self.size.width < _NARROW

    def _read(self) -> None:
        """Bring the session's side to the front."""
        self.screen.add_class("reading")
        self.timeline.focus()

    def action_to_list(self) -> None:
        search = self.query_one("#search", Input)
        if search.has_focus or search.has_class("shown"):
            search.remove_class("shown")
            self.timeline.focus()
        else:
            self.screen.remove_class("reading")
            self.query_one("#sessions").focus()

    def action_other_side(self) -> None:
        if self.timeline.has_focus:
            self.screen.remove_class("reading")
            self.query_one("#sessions").focus()
        else:
            self._read()

    @property
    def timeline(self) -> RowList:
        return self.query_one("#timeline", RowList)

    @work(thread=True, group="sessions")
    def _fetch_sessions(self) -> None:
        try:
            found = self._list()
        except KiteError as error:
            self.call_from_thread(self._complain, error)
            return
        self.call_from_thread(self._show_sessions, found)

    def _show_sessions(self, found: Sequence[Json]) -> None:
        self._sessions = found
        self.query_one("#sessions", RowList).show([session_row(each) for each in found])
        if found and not self._named:
            self._open(f"{found[0]['provider']}:{found[0]['id']}")

    def _open(self, session: str, at: str = "") -> None:
        self._wanted = at
        self._fetch(session)

    @work(thread=True, group="events", exclusive=True)
    def _fetch(self, session: str) -> None:
        """Load a session, and show its first part while the others are being loaded."""
        worker = get_current_worker()
        try:
            for number, piece in enumerate(self._pieces(session)):
                if worker.is_cancelled:
                    return
                self.call_from_thread(self._show_piece, piece, number == 0)
        except KiteError as error:
            self.call_from_thread(self._complain, error)

    def _show_piece(self, piece: Json, first: bool) -> None:
        if first:
            self._page = {**piece, "events": list(piece["events"])}
            self._unfolded.clear()
        else:
            self._page["events"] += piece["events"]
        session = self._page["session"]
        name = session["title"] or self._opening(session) or session["project"]
        title = f"{session['provider']}:{session['id'][:8]} {name}"
        self.timeline.border_title = escape(plain(title))
        self._draw(0 if first else self.timeline.cursor)
        if self._wanted:
            place = place_of(self.timeline.rows, self._wanted)
            if place is not None:
                self._wanted = ""
                self.timeline.put(place)
                self.timeline.focus()

    def _draw(self, cursor: int) -> None:
        page = self._page
        width = self.timeline.room
        found = rows(page["events"], page["notes"], page["session"]["cwd"], self._unfolded, width=width, ids=not self.narrow)
        self.timeline.show(in_view(list(found), VIEWS[self._view]), cursor=cursor)
        self.timeline.border_subtitle = "" if not VIEWS[self._view] else f"only {self._view}"

    def _complain(self, error: KiteError) -> None:
        self.notify(plain(f"{error} {error.hint}".strip()), severity="error", markup=False)

    def _opening(self, session: Json) -> str:
        """Return the session's name, empty if it is not in the list."""
        return next((name_of(each) for each in self._sessions if each["id"] == session["id"]), "")

    def on_input_changed(self, event: Input.Changed) -> None:
        if event.input.id == "search":
            self._found = holding(self._page.get("events", ()), event.value)
            if self._found:
                self._go_to_found(self.timeline.cursor - 1)
            return
        lines = self.query_one("#sessions", RowList)
        before = lines.row.reference if lines.row is not None else ""
        shown = [session_row(each) for each in matching(self._sessions, event.value)]
        place = next((place for place, row in enumerate(shown) if row.reference == before), 0)
        lines.show(shown, cursor=place)
        if lines.row is not None and lines.row.reference != before:
            self._open(lines.row.reference)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if event.input.id == "search":
            event.input.remove_class("shown")
            self.timeline.focus()
            if event.value and not self._found:
                self.notify(f"{event.value}: not in this session", markup=False)
        else:
            self.query_one("#sessions").focus()

    def _go_to_found(self, after: int, *, backwards: bool = False) -> None:
        place = next_holding(self.timeline.rows, after, self._found, backwards=backwards)
        if place is None:
            self.notify(
                plain("nothing was searched for; / does" if not self._found else "not in this view; v shows everything"),
                markup=False,
            )
        else:
            self.timeline.put(place)

    def action_found(self, backwards: bool = False) -> None:
        self._go_to_found(self.timeline.cursor, backwards=backwards)

    def on_row_list_chosen(self, event: RowList.Chosen) -> None:
        if event.control.id == "sessions":
            self._open(event.row.reference)
            self._read()
        elif event.row.note:
            self._show_note(event.row)
        elif event.row.folds:
            self._unfolded.symmetric_difference_update({event.row.folds})
            self._draw(self.timeline.cursor)

    def action_search(self) -> None:
        """Search for words in a session, or filter the list of sessions."""
        if self.timeline.has_focus:
            search = self.query_one("#search", Input)
            search.add_class("shown")
            search.focus()
        else:
            self.query_one("#filter").focus()

    def action_view(self) -> None:
        """Show the next of the kinds that can be shown alone. The cursor stays at its event if that is still visible."""
        here = self.timeline.row
        names = list(VIEWS)
        self._view = names[(names.index(self._view) + 1) % len(names)]
        if self._page:
            self._draw(0)
            place = place_of(self.timeline.rows, here.reference) if here is not None and here.reference else None
            self.timeline.put(place or 0)

    def action_copy(self) -> None:
        lines = self.timeline if self.timeline.has_focus else self.query_one("#sessions", RowList)
        if lines.row is not None and lines.row.reference:
            self.copy_to_clipboard(lines.row.reference)
            self.notify(f"copied {lines.row.reference}", markup=False)

    def action_keys(self) -> None:
        self.push_screen(TextScreen(KEYS))

    def action_brief(self) -> None:
        if self._page:
            session = self._page["session"]
            self._show_brief(f"{session['provider']}:{session['id']}")

    @work(thread=True, group="brief", exclusive=True)
    def _show_brief(self, session: str) -> None:
        try:
            brief = self._brief(session)
        except KiteError as error:
            self.call_from_thread(self._complain, error)
            return
        self.call_from_thread(self.push_screen, TextScreen(brief["text"]))

    def action_became(self) -> None:
        row = self.timeline.row
        if row is not None and row.reference:
            self._show_became(list(dict.fromkeys((*row.holds, row.reference)))[::-1])

    @work(thread=True, group="became", exclusive=True)
    def _show_became(self, references: Sequence[str]) -> None:
        """Show what followed an event, or any part of a folded call, and go there if it is in this session."""
        try:
            lines = [line for reference in references for line in self._became(reference)]
        except KiteError as error:
            self.call_from_thread(self._complain, error)
            return
        self.call_from_thread(self._go_on, next((line for line in lines if line.endswith("]")), next(iter(lines), "")))

    def _go_on(self, line: str) -> None:
        self.notify(plain(line) or "nothing is known to have come of this", markup=False)
        place = place_of(self.timeline.rows, line.rpartition("[")[2].removesuffix("]")) if line.endswith("]") else None
        if place is not None:
            self.timeline.put(place)
            self.timeline.focus()

    def action_jump(self, where: str, backwards: bool = False) -> None:
        place = following(self.timeline.rows, self.timeline.cursor, JUMPS[where], backwards=backwards)
        if place is None:
            self.notify(f"no {where} {'before' if backwards else 'after'} this")
        else:
            self.timeline.put(place)
            self._read()

    def action_note(self) -> None:
        """Show the note made from the event at the cursor, or move the cursor to the next event that has one."""
        lines = self.timeline
        here = lines.row
        if here is not None and (note := next((row for row in lines.rows if row.note and row.reference == here.reference), None)):
            self._show_note(note)
        else:
            self.action_jump("notes")

    @work(thread=True, group="note", exclusive=True)
    def _show_note(self, row: ViewRow) -> None:
        try:
            note = self._note(row.note)
        except KiteError as error:
            self.call_from_thread(self._complain, error)
            return
        evidence = next((each for each in note["evidence"] if each != row.reference), row.reference)
        self.call_from_thread(self.push_screen, NoteScreen(note["text"], evidence), self._back_from_note)

    def _back_from_note(self, evidence: str | None) -> None:
        self.timeline.focus()
        if not evidence:
            return
        place = place_of(self.timeline.rows, evidence)
        if place is not None:
            self.timeline.put(place)
        else:
            self._open(evidence.rpartition("#")[0], evidence)
