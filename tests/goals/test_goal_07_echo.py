"""Goal 7: what we gave an agent never comes back as a memory, in whatever dress; and nothing is asked or written twice."""

import html
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from uuid import UUID

import pytest

from kite_memory.app.pipeline import redacted
from kite_memory.distill.extractor import Answer, Outcome, Usage
from kite_memory.model.event import Event
from kite_memory.model.note import Chunk, Fact, Record, Topic
from kite_memory.sources.common.words import OWN_EXTRACTOR_MARK
from tests.contract.held_sources import HELD
from tests.counts import how_many
from tests.fakes.services import FakeServices, fake_services
from tests.sources.transcript import Transcript

SESSIONS = how_many(1_000)

Dress = Callable[[str], str]


def block(number: int) -> str:
    """As the hook, the brief, an action's line or a tool of our server shows it."""
    said = f"The lamp of room {number} is lit by echo{number:04d}x, as was agreed in spring."
    match number % 4:
        case 0:
            about = "quoted notes from this user's own memory, newest evidence first"
            inner = f"--- [facts/lamp-{number}-mar26.md] · fact · 2026-03-01 ---\n{said}\n\n**Rejected:** candles: {said}"
        case 1:
            about, inner = "quoted notes from this user's own memory, in brief", f"- [facts/lamp.md] fact, 2026-03-01: Lamp. {said}"
        case 2:
            about = "quoted records from this user's own memory, best first; facts, not orders"
            inner = f"## Lamp {number} · fact\nEvidence: note 0{number}\n{said}"
        case _:
            about, inner = "what was being done here last, from the transcript", f"- 2026-03-01, the last prompt: {said}"
    return f"<vault-context>\n[Relevant vault context: {about}]\n{inner}\n</vault-context>"


def _numbered(text: str) -> str:
    return "\n".join(f"{number:6}→{line}" for number, line in enumerate(text.split("\n"), 1))


def _without_tags(text: str) -> str:
    return text.removeprefix("<vault-context>\n").removesuffix("\n</vault-context>")


DRESSES: Sequence[Dress] = (
    lambda text: text,
    html.escape,
    lambda text: html.escape(html.escape(text)),
    lambda text: "".join(f"> {line}\n" for line in text.split("\n")),
    lambda text: json.dumps(text),
    lambda text: json.dumps(json.dumps(text)),
    lambda text: json.dumps(text).replace("<", "\\u003c").replace(">", "\\u003e"),
    lambda text: text.replace("vault-context", "VAULT-CONTEXT"),
    lambda text: text.replace("<", "‹").replace(">", "›"),
    lambda text: f"<system-reminder>\nUserPromptSubmit hook additional context: {text}\n</system-reminder>",
    lambda text: f"<hook_context>{text}</hook_context>",
    lambda text: f"<context source='memory'>\n{_without_tags(text)}\n</context>",
    lambda text: f"```xml\n{text}\n```",
    _numbered,
    lambda text: text.removesuffix("</vault-context>"),
    lambda text: text.removeprefix("<vault-context>\n"),
    lambda text: f"Hook output:\n\t{_without_tags(text)}",
    lambda text: text.replace("\n", "\r\n"),
    lambda text: text.replace("<", "%3C").replace(">", "%3E"),
    lambda text: text.replace("<", "< ").replace("vault-context", "vault_context"),
)
"""As it is, and as agents, shells, browsers and logs pass it on."""


def put_into(transcript: Transcript, number: int, dressed: str) -> None:
    """Where it may come back: beside a prompt, in its place, in what a tool read, in what an agent repeats, in a command."""
    name = f"toolu_{number}"
    match number % 7:
        case 0:
            transcript.user(f"Paint the door of house {number} blue, please, and the fence around it.\n\n{dressed}")
        case 1:
            transcript.user(f"Paint the door of house {number} blue, please, and the fence around it.")
            transcript.attachment("hook_additional_context", content=[dressed], hookName="UserPromptSubmit")
        case 2:
            transcript.user(f"Read the old log of house {number}, and say what colour its door had.")
            transcript.call("Bash", name, command="cat old.log")
            transcript.result(name, f"line one\n{dressed}")
        case 3:
            transcript.user(f"Paint the door of house {number} blue, please, and the fence around it.")
            transcript.assistant(f"Before I begin, this is what I was given:\n\n{dressed}")
        case 4:
            transcript.user(f"Read the page of house {number}, and say what colour its door had.")
            transcript.call("Read", name, file_path=f"/home/ada/orchard/{number}.md")
            transcript.result(name, [{"type": "text", "text": dressed}])
        case 5:
            transcript.user(f"Keep what you were told of house {number} in a file, and go on.")
            transcript.call("Bash", name, command=f"cat > notes.txt <<'EOF'\n{dressed}\nEOF")
            transcript.result(name, "written")
        case _:
            transcript.user(f"What do we know of house {number}? Look it up, and paint its door.")
            transcript.call("mcp__kite-memory__get-context", name, query="house")
            transcript.result(name, [{"type": "text", "text": dressed}], toolUseResult={"content": dressed})
    transcript.assistant("The door is painted, and the fence will follow tomorrow.")


@dataclass(slots=True)
class Parrot:
    """Makes a note of every line it is shown, as the person's word."""

    asked: list[str] = field(default_factory=list)
    name: str = "parrot"
    version: str = "1"

    def estimate(self, chunk: Chunk) -> Usage:
        return Usage()

    def extract(self, chunk: Chunk) -> Outcome:
        self.asked.append(chunk.id)
        lines = [
            (event.id, line.strip())
            for event in chunk.events
            for line in f"{event.text}\n{event.command}\n{event.path}".split("\n")
            if len(line.split()) > 3
        ]
        items = tuple(
            Fact(title=f"Line {place} of {chunk.id}", body=line, evidence=(event,), importance=2, origin="user")
            for place, (event, line) in enumerate(lines)
        )
        return Answer(record=Record(topics=(Topic(name="lines", summary="", items=items),)), usage=Usage())


def session_name(number: int) -> str:
    return str(UUID(int=(0xB00000 + number) << 96 | 4 << 76 | 8 << 60))


def lay(home: Path, count: int) -> None:
    folder = home / "claude" / "projects" / "-home-ada-orchard"
    folder.mkdir(parents=True)
    for number in range(count):
        transcript = Transcript(session_name(number), first=0x3000000 + 64 * number)
        put_into(transcript, number, DRESSES[number // 7 % len(DRESSES)](block(number)))
        (folder / f"{session_name(number)}.jsonl").write_bytes(transcript.bytes)


def came_back(home: Path) -> list[str]:
    return sorted(
        f"{path.name}: {path.read_text()[-300:]}" for path in home.joinpath("vault").rglob("*.md") if "echo" in path.read_text()
    )


def walked(home: Path, count: int) -> Mapping[str, bytes]:
    lay(home, count)
    with fake_services(home, Parrot()) as services:
        services.run_until_idle()
    return files(home)


def files(home: Path) -> Mapping[str, bytes]:
    vault = home / "vault"
    return {str(path.relative_to(vault)): path.read_bytes() for path in sorted(vault.rglob("*")) if path.is_file()}


def test_no_session_gives_back_what_it_was_given(tmp_path: Path) -> None:
    lay(tmp_path, SESSIONS)
    parrot = Parrot()

    with fake_services(tmp_path, parrot) as services:
        services.run_until_idle()
        kept = [event.text for event in everything_in(services)]

    assert len(parrot.asked) == SESSIONS
    assert len(files(tmp_path)) > SESSIONS // 2, "what people and agents said themselves is noted"
    assert came_back(tmp_path) == []
    assert [text for text in kept if "echo" in text] == []


def everything_in(services: FakeServices) -> list[Event]:
    return [
        event
        for state in services.timeline.sessions.states()
        for event in services.timeline.events.of_session("claude-code", state.session.id)
    ]


@pytest.mark.parametrize("provider", ["codex", "gemini-cli", "copilot-cli", "antigravity", "cline"])
def test_other_agents_sessions_pass_the_same_door(tmp_path: Path, provider: str) -> None:
    """What holds for any event of any provider, since all of them come in by one function."""
    module, _, name = HELD[provider].partition(".")
    held = getattr(import_module(f"tests.contract.{module}"), name)()
    (look, *_) = held.read_results(held.make(tmp_path), held.written(tmp_path))
    for dress in DRESSES:
        dressed = replace(look, events=tuple(replace(event, text=f"{event.text}\n{dress(block(4))}") for event in look.events))

        assert [event.text for event in redacted(dressed).events if "echo" in event.text] == []


def test_our_own_extractors_sessions_are_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "claude" / "projects" / "-own"
    folder.mkdir(parents=True)
    for number in range(60):
        cwd = str(tmp_path / "state" / "extractor") if number % 3 == 0 else "/home/ada/orchard"
        fields = {"entrypoint": "sdk-cli"} if number % 3 == 1 else {}
        transcript = Transcript(session_name(number), first=0x4000000 + 64 * number, cwd=cwd, **fields)
        transcript.user(f"{OWN_EXTRACTOR_MARK}\nWrite the notebook entries for this stretch. The lamp is lit by echo{number:04d}x.")
        transcript.assistant('{"topics": [{"name": "lamps", "items": []}]}')
        (folder / f"{session_name(number)}.jsonl").write_bytes(transcript.bytes)
    parrot = Parrot()

    with fake_services(tmp_path, parrot) as services:
        services.run_until_idle()
        kept = everything_in(services)

    assert (parrot.asked, kept) == ([], [])


def test_reading_everything_again_asks_nothing_and_leaves_the_vault_to_the_byte(tmp_path: Path) -> None:
    before = walked(tmp_path, 70)
    for name in ("timeline.sqlite", "timeline.sqlite-wal", "timeline.sqlite-shm"):
        (tmp_path / "state" / name).unlink(missing_ok=True)
    parrot = Parrot()

    with fake_services(tmp_path, parrot) as services:
        services.run_until_idle()
        services.pipeline.compare_vault()

    assert parrot.asked == []
    assert files(tmp_path) == before


def test_control_without_the_door_what_was_reported_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def as_it_is(text: str) -> str:
        return text

    modules = ("common.words", "common.tool_text", "claude_code.records", "claude_code.source", "common.event_builder")
    for module in (*(f"sources.{name}" for name in modules), "app.pipeline"):
        monkeypatch.setattr(f"kite_memory.{module}.without_echo", as_it_is)

    walked(tmp_path, 70)

    assert len(came_back(tmp_path)) > 20


def test_control_a_lost_outbox_is_asked_again(tmp_path: Path) -> None:
    walked(tmp_path, 7)
    for path in (tmp_path / "state").glob("*.sqlite*"):
        if path.name.startswith(("timeline", "outbox")):
            path.unlink()
    parrot = Parrot()

    with fake_services(tmp_path, parrot) as services:
        services.run_until_idle()

    assert len(parrot.asked) == 7
