"""Screens shown over the timeline: a note, a brief, and the help for keys and marks."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Footer, Static

from kite_memory.recall.rendering import plain

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
