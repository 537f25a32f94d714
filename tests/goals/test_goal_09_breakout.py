"""Goal 9: whatever a note, a transcript or a file's name holds, it stays inside its block, and steers nothing, on every way out."""

import ast
import json
import logging
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kite_memory.config import Config
from kite_memory.errors import KiteError
from kite_memory.log_lines import OneLine
from kite_memory.mcp_server.server import bounded, refusal, text_of
from kite_memory.model.hit import Pointer, Quote
from kite_memory.model.note import NoteKind, NoteStatus, Scope
from kite_memory.recall.rendering import block, contents, remarks, render_prompt_block
from kite_memory.text.quoting import plain, quoted
from kite_memory.tools.declarations import TOOLS
from kite_memory.tools.store import OWNER, Asker
from kite_memory.vault.drafting import Memo
from kite_memory.vault.graph import FORMATS, graph
from kite_memory.vault.memory_page import BEGIN, page
from kite_memory.vault.review_page import WaitingNote
from kite_memory.vault.review_page import page as review
from kite_memory.wiring.services import Services, open_services
from tests.app.test_app_operations import config_in
from tests.cli.conftest import machine as machine
from tests.cli.transcript import in_this_process
from tests.counts import how_many
from tests.e2e.kmem import Machine
from tests.fakes.work import Work, session
from tests.goals.payloads import payload
from tests.recall.notes import DAY, hit
from tests.recall.test_recall_rendering import OURS, only_ours, tags

PACKAGE = Path(__file__).parent.parent.parent / "kite_memory"
PROJECT = "orchard"
PAYLOADS = how_many(500)
ASKER = Asker(grant=OWNER, project=PROJECT, session="5e55", ai="claude")
Json = dict[str, Any]

_RAW_TAG = re.compile(r"<[/!?|\s]{0,8}[^\W\d]|<!-")


def steering(text: str) -> list[str]:
    """What a terminal acts upon, and what no one sees."""
    return [
        hex(ord(char)) for char in text if char not in "\n\t" and not (char.isprintable() or unicodedata.category(char) == "Zs")
    ]


def stays_in(text: str) -> bool:
    """Whether a block is one, from its first line to its last, and nothing else."""
    lines = text.splitlines()
    return only_ours(text) and (lines[0], lines[-1]) == tuple(OURS) and steering(text) == []


def is_data(text: str) -> bool:
    """Whether JSON that is read as text has no tag in it, and nothing unseen."""
    return not _RAW_TAG.search(text) and steering(text) == []


class TestBlocks:
    def test_nothing_breaks_out_of_what_the_hook_says(self) -> None:
        for number in range(PAYLOADS):
            assert hook_says(payload(number)) == [], payload(number)

    def test_control_without_quoting_nearly_all_break_out(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("kite_memory.recall.rendering.quoted", lambda text: text)

        assert sum(bool(hook_says(payload(number))) for number in range(100)) > 90


def hook_says(hostile: str) -> list[str]:
    """The blocks that were broken."""
    one = hit(f"{hostile}. And more words.\n{hostile}", title=hostile, path=f"facts/{hostile}.md", project=hostile)
    two = hit("An innocent note of some length, about pears.", id="two", age=1)
    pointer = Pointer(id="n1", title=hostile, date=DAY, score=0.5)
    quote = Quote(id=hostile, text=hostile, date=DAY, score=0.5)
    said = [
        block([one, two]).text,
        block([hit("", title=hostile)]).text,
        contents([(each, each.note.title) for each in (one, two)], tokens=2_000).text,
        render_prompt_block([one], [quote], [pointer], tokens=2_000).text,
        remarks([hostile, "an innocent line"], about="what was done", tokens=2_000),
    ]
    return [text for text in said if not stays_in(text)]


@contextmanager
def hostile_services(config: Config, count: int) -> Iterator[Services]:
    """Notes, memories, states, sessions: each field that somebody else may write holds a payload."""
    with open_services(config) as services:
        services.init_vault()
        store_state = services.bridge.perform
        for number in range(count):
            text = payload(number)
            services.vault.edits.remember(
                Memo(
                    text=f"{text}\n\n{text}",
                    kind=list(NoteKind)[number % 5],
                    title=text,
                    project=PROJECT,
                    scope=Scope.PROJECT,
                    tags=[text],
                    origin=("user", "assistant", "tool")[number % 3],
                ),
            )
            if number % 5 == 0:
                store_state("write_memory", {"key": f"project.pear{number}", "value": {"said": text, text[:40]: 1}}, ASKER)
                saved = {"session_id": f"s{number}", "todos": [text], "working_notes": text, "context_summary": text}
                store_state("ai_state_save", saved, ASKER)
            if number % 10 == 0:
                work = Work(replace(session(number), title=text, branch=text, project=PROJECT), begins=timedelta(days=220))
                work.asked(f"decide: {text}").said(f"I decided on pears. {text}").ran(f"echo '{text}'", text, "failed")
                work.called(text, text).edited(f"/home/ada/orchard/{text}").decided(text)
                services.timeline.commit([work.look()], "claude-code")
        services.vault.scanner.compare()
        services.recall.refresh(services.vault.notes)
        yield services


@dataclass(frozen=True, slots=True)
class Answered:
    tool: str
    answer: Json

    @property
    def text(self) -> str:
        return text_of(bounded(self.answer, TOOLS[self.tool].longest if self.tool in TOOLS else 100_000))

    @property
    def broken(self) -> bool:
        words = self.answer.get("text")
        if isinstance(words, str) and words.startswith("<vault-context>"):
            return not stays_in(self.text)
        return not is_data(self.text) or any(tags(said) or steering(said) for said in _texts_of(self.answer))


_GIVEN_BACK = frozenset({"value", "todos", "working_notes", "context_summary", "transcript"})
"""What an agent has saved as data, and gets back as it was; written as JSON all the same."""


def _texts_of(answer: object) -> Iterator[str]:
    match answer:
        case str():
            yield answer
        case list():
            for each in answer:
                yield from _texts_of(each)
        case dict():
            for name, each in answer.items():
                if name not in _GIVEN_BACK:
                    yield from _texts_of(name)
                    yield from _texts_of(each)


def asked_of(services: Services, count: int) -> Iterator[Answered]:
    """Every tool that answers, with questions that lead to each payload."""

    def perform(tool: str, **arguments: Any) -> Answered:
        return Answered(tool, services.bridge.perform(tool, arguments, ASKER))

    for note in [known for known in services.vault.known.all() if known.id][:count]:
        yield perform("get_note", note=note.id)
    for number in range(0, count, 5):
        yield perform("read_memory", key=f"project.pear{number}")
        yield perform("ai_state_get", session_id=f"s{number}")
        yield perform("search_notes", query=f"pears {number} ripen autumn", limit=50)
        yield perform("get-context", query=f"pears {number}", token_budget=6_000, limit=20)
    for number in range(0, count, 10):
        yield perform("timeline", session=session(number).id)
        yield perform("resume_brief", session=session(number).id)
        yield perform("smart_resume", session_id=f"s{number}")
    yield perform("list_memories", limit=200)
    yield perform("read_memory", key="project.*")
    yield perform("ai_state_list")
    yield perform("recent_notes", limit=200)
    yield perform("timeline", project=PROJECT)
    yield perform("smart_resume")


class TestMcp:
    def test_nothing_breaks_out_of_what_tools_answer(self, tmp_path: Path) -> None:
        with hostile_services(config_in(tmp_path), PAYLOADS) as services:
            answers = list(asked_of(services, PAYLOADS))

        assert len(answers) > 2 * PAYLOADS
        assert [f"{each.tool}: {each.text[:2_000]}" for each in answers if each.broken][:3] == []

    def test_errors_quote_what_they_repeat(self) -> None:
        for number in range(100):
            text = payload(number)
            words, _ = refusal(KiteError(f"no note is called {text}", hint=f"did you mean {text}?"))

            assert tags(words) == []
            assert steering(words) == []

    def test_control_without_quoting_what_tools_answer_breaks_out(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for module in ("tools.note_view", "tools.note_tools"):
            monkeypatch.setattr(f"kite_memory.{module}.quoted", lambda text: text)
        with hostile_services(config_in(tmp_path), 20) as services:
            answers = list(asked_of(services, 20))

        assert sum(each.broken for each in answers) >= 10


COMMANDS: Sequence[Sequence[str]] = (
    ["search", "pears ripen", "--limit", "200"],
    ["search", "pears ripen", "--json"],
    ["search", "error:"],
    ["recall", "which pears ripen in autumn", "--explain"],
    ["recall", "which pears ripen in autumn", "--json"],
    ["timeline"],
    ["timeline", "--json"],
    ["timeline", session(0).id, "--plain"],
    ["resume"],
    ["threads"],
    ["ask", "which pears ripen in autumn?"],
    ["why"],
    ["status"],
    ["review"],
    ["doctor"],
    ["synthesize"],
    ["graph"],
    ["graph", "--format", "dot"],
    ["graph", "--format", "json"],
    ["export", "-"],
    ["show", "Pears 3 ripen"],
    ["show", "no such \x1b[31m note </vault-context>"],
    ["forget", "--matching", "Pears", "--dry-run"],
    ["\x1b]0;owned\x07"],
)


class TestTerminal:
    def test_nothing_steers_a_terminal(self, machine: Machine) -> None:
        self.fill(machine, PAYLOADS)

        said = {" ".join(command): in_this_process(machine, list(command), cwd=machine.home) for command in COMMANDS}

        assert {name: steering(ran.out + ran.err)[:5] for name, ran in said.items() if steering(ran.out + ran.err)} == {}
        assert sum("Pears" in ran.out for ran in said.values()) >= 10
        assert all(ran.code != 70 for ran in said.values())

    def test_control_a_mouth_that_takes_everything_for_harmless_steers(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.fill(machine, 40)
        monkeypatch.setattr("kite_memory.cli.console._is_harmless", lambda text: True)

        said = [in_this_process(machine, list(command), cwd=machine.home) for command in COMMANDS]

        assert any(steering(ran.out + ran.err) for ran in said)

    @staticmethod
    def fill(machine: Machine, count: int) -> None:
        in_this_process(machine, ["remember", "Pears 3 ripen first of all."], cwd=machine.home)
        config = replace(config_in(machine.home), state=machine.state, vault=machine.vault)
        with hostile_services(config, count):
            pass


class TestPages:
    @pytest.fixture(autouse=True)
    def every_title_is_worth_a_line(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Or few payloads would stand on a page at all."""
        monkeypatch.setattr("kite_memory.vault.memory_page.is_worth_a_line", lambda note, sessions: True)

    def test_nothing_breaks_out_of_the_pages_and_pictures_we_write(self) -> None:
        at = datetime(2026, 3, 1, tzinfo=UTC)
        notes = []
        for number in range(PAYLOADS):
            text = payload(number).encode("utf-8", "replace").decode()  # as it is read from a file
            found = hit(f"{text}. More.\n\n{text}", id=f"n{number}", title=text, project=text, path=f"facts/n{number}.md").note
            notes.append(replace(found, importance=3, kind=list(NoteKind)[number % 5]))
        pieces = [notes[at : at + 20] for at in range(0, PAYLOADS, 20)]

        for piece in pieces:
            memory = page(graph(piece), at)
            waits = [replace(note, status=NoteStatus.PROPOSED) for note in piece]
            to_review = review([WaitingNote(note=note, nearest=piece[0], quotes=(note.body,)) for note in waits])
            for made in (memory, to_review):
                assert steering(made) == []
                assert tags(_without_our_comments(made)) == []
            assert memory.splitlines()[0] == BEGIN
            assert memory.splitlines()[-1].startswith("<!-- kmem: end")
            for name, draw in FORMATS.items():
                assert steering(draw(graph(piece))) == [], name
            assert json.loads(FORMATS["json"](graph(piece)))["notes"]
            for line in FORMATS["dot"](graph(piece)).splitlines()[2:-1]:
                assert re.fullmatch(r'  n\d+ \[label="(?:[^"\\]|\\.)*", fillcolor="#\w{6}"\];|  n\d+ -> n\d+;', line), line

    def test_control_a_page_that_does_not_quote_is_broken(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("kite_memory.vault.memory_page.quoted", lambda text: text)
        notes = [replace(hit("Pears.", id=f"n{n}", title=payload(n), path=f"facts/n{n}.md").note, importance=3) for n in range(40)]
        notes = [replace(note, kind=NoteKind.INSIGHT) for note in notes]

        made = page(graph(notes), datetime(2026, 3, 1, tzinfo=UTC))

        assert tags(_without_our_comments(made))


def _without_our_comments(made: str) -> str:
    return re.sub(r"<!-- kmem[: ][^<>]{0,500}? -->", "", made)


def test_no_line_of_a_log_is_anybody_elses() -> None:
    formatter = OneLine("%(levelname)s %(name)s %(message)s")
    for number in range(PAYLOADS):
        record = logging.LogRecord("kite_memory", logging.WARNING, "", 0, "cannot read %s", (payload(number),), None)

        assert len(formatter.format(record).splitlines()) == 1
        assert steering(formatter.format(record)) == []


def test_control_an_ordinary_log_is_steered() -> None:
    record = logging.LogRecord("kite_memory", logging.WARNING, "", 0, "cannot read %s", (payload(25),), None)

    assert steering(logging.Formatter("%(message)s").format(record))


def modules(*packages: str) -> list[Path]:
    return [
        path
        for package in packages
        for path in ([PACKAGE / package] if package.endswith(".py") else sorted((PACKAGE / package).rglob("*.py")))
    ]


def calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


MOUTHS: Mapping[str, frozenset[str]] = {
    "cli/console.py": frozenset({"stream.write", "sys.stdout.write", "Console"}),
    "cli/history.py": frozenset({"Console", "self._console.print"}),
    "cli/main.py": frozenset({"formatter.write"}),
    "cli/reviewing.py": frozenset({"screen.print", "stderr_console().print"}),
    "cli/opening.py": frozenset({"sys.stdout.buffer.write"}),
    "hook_client.py": frozenset(),
}
"""Who may speak by itself, and how: the program's two mouths; the coloured timeline and review, which say what is `plain`;
our own help; and the status line, which holds numbers alone."""
_SPEAKING = re.compile(r"(?:^|\.)(?:print|echo|secho|pprint|Console)$|\.(?:write|writelines|print_json)$|^rich\.")
_NOT_SPEAKING = re.compile(r"^(?:os|file|notes|memories|links|style|self\._vault\.keys|\w*archive|self|child\.stdin)\.write$")
"""Files, rows of a database, links in a text, and what a program is given to read."""


SPEAKERS = modules(
    "cli", "tui", "app", "daemon", "tools", "team", "mcp_server", "exchange", "recall", "vault", "agents", "model", "text",
    "system", "wiring", "log_lines.py",
)  # fmt: skip


@pytest.mark.parametrize("path", SPEAKERS, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_one_prints_but_through_the_mouths_that_render(path: Path) -> None:
    name = path.relative_to(PACKAGE).as_posix()

    spoken = {called for called, _ in calls(path) if _SPEAKING.search(called) and not _NOT_SPEAKING.match(called)}

    assert spoken <= MOUTHS.get(name, frozenset()), spoken


def test_the_coloured_timeline_prints_what_is_plain() -> None:
    printed = [node for called, node in calls(PACKAGE / "cli/history.py") if called == "self._console.print"]

    assert len(printed) == 1
    assert ast.unparse(printed[0].args[0]).startswith("plain(")


def test_the_coloured_review_prints_what_is_plain() -> None:
    shown = [node for called, node in calls(PACKAGE / "cli/reviewing.py") if called == "Text"]

    assert len(shown) == 1
    assert ast.unparse(shown[0].args[0]).startswith("plain(")


_WIDGETS = {"Static", "Segment", "self.notify", "escape", "Label", "Text", "Text.from_markup", "Markdown", "Option"}


def test_widgets_show_what_is_plain() -> None:
    """Words of ours are literals; all else goes through `plain`, and is no markup."""
    shown = [(called, node) for path in modules("tui") for called, node in calls(path) if called in _WIDGETS]

    assert len(shown) >= 4
    for called, node in shown:
        said = node.args[0]
        literal = isinstance(said, ast.Constant | ast.JoinedStr) and "error" not in ast.unparse(said)
        assert literal or ast.unparse(said).startswith(("plain(", "escape(plain(")), ast.unparse(node)
        if called in ("Static", "self.notify") and not literal:
            assert any(keyword.arg == "markup" and ast.unparse(keyword.value) == "False" for keyword in node.keywords)


_FRAMES = {"recall/rendering.py", "tools/note_view.py"}


@pytest.mark.parametrize("path", SPEAKERS, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_two_functions_write_the_blocks_tags(path: Path) -> None:
    """What stands in patterns, and in words about it, is no block."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    written = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value.startswith(("<vault-context>", "</vault-context>"))
    ]

    assert not written or path.relative_to(PACKAGE).as_posix() in _FRAMES, written


_ANYBODYS = frozenset({"title", "body", "snippet", "why", "text", "project", "branch", "path", "summary", "reason", "alternative"})
_RENDERED_LATER = {"memory_tools.py": {"made.text", "place.project"}, "note_view.py": {"one.alternative", "one.reason"}}
"""A briefing made of such lines; the project of a keyed memory, which is the caller's own; and what `_listed` renders, as it does
every entry of a list."""
_ANSWERS = ("note_view.py", "note_tools.py", "memory_tools.py")


@pytest.mark.parametrize("name", _ANSWERS)
def test_what_tools_answer_with_is_rendered_where_it_is_put_in(name: str) -> None:
    """A value of an answer, or a piece of one of its lines, is no bare field of a note, an event or a session."""
    bare: list[str] = []
    for node in ast.walk(ast.parse((PACKAGE / "tools" / name).read_text(encoding="utf-8"))):
        values: list[ast.expr] = []
        if isinstance(node, ast.Dict):
            values = node.values
        elif isinstance(node, ast.JoinedStr):
            values = [each.value for each in node.values if isinstance(each, ast.FormattedValue)]
        elif isinstance(node, ast.Yield) and node.value is not None:
            values = [node.value]
        bare += [ast.unparse(value) for value in values if isinstance(value, ast.Attribute) and value.attr in _ANYBODYS]

    assert set(bare) <= _RENDERED_LATER.get(name, set())


def test_control_a_printer_of_its_own_is_found(tmp_path: Path) -> None:
    stray = tmp_path / "stray.py"
    stray.write_text(
        "import sys\ndef tell(note):\n    print(note.title)\n    sys.stderr.write(note.body)\n    typer.echo(note.path)\n"
    )

    assert {called for called, _ in calls(stray) if _SPEAKING.search(called)} == {"print", "sys.stderr.write", "typer.echo"}


def test_the_one_function_is_the_same_everywhere() -> None:
    from kite_memory.text import quoting

    assert (quoted, plain) == (quoting.quoted, quoting.plain)
    homes = [path for path in PACKAGE.rglob("*.py") if re.search(r"^def quoted\(", path.read_text(encoding="utf-8"), re.MULTILINE)]
    assert homes == [PACKAGE / "text" / "quoting.py"]
