"""Goal 8: secrets of two hundred kinds in ten contexts, by every way in; then every byte that is kept, or sent, is searched.

`tests/redaction` holds each kind in each context to the redaction itself. Here they go through the whole program.
"""

import base64
import binascii
import gzip
import json
import random
import re
import sysconfig
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pytest

from kite_memory.app.pipeline import redacted
from kite_memory.config import Config, ExtractorConfig
from kite_memory.distill.extractor import Ending, Inquiry, PromptTemplate, Reply, Usage
from kite_memory.distill.model_extractor import ModelExtractor
from kite_memory.recall.embedder import Purpose, Vectors
from kite_memory.redaction import redact
from kite_memory.sources.common.tool_text import shortened
from kite_memory.tools.store import OWNER, Asker
from kite_memory.wiring.models import RedactingBackend, RedactingEmbedder
from kite_memory.wiring.services import Services, open_services
from tests.app.test_app_operations import config_in
from tests.contract.held_sources import HELD
from tests.counts import how_many
from tests.fakes.anthropic_server import AnthropicServer, anthropic_server, text_message
from tests.fakes.hashing_embedder import HashingEmbedder
from tests.fakes.services import fake_services
from tests.redaction.contexts import CONTEXTS, HOSTILE, PLAIN, left_of
from tests.redaction.kinds_of_secrets import KINDS, Kind
from tests.redaction.people import Case, cases
from tests.redaction.places import PLACES, SURROUNDINGS, WORDS, made_up
from tests.sources.transcript import Transcript

SHARE = how_many(10)
"""Of ten kinds so many are tried."""
CHOSEN = [kind for place, kind in enumerate(KINDS) if place % 10 < SHARE]
WINDOW = 8
"""Characters of a secret in a row that are a leak."""
TELLING_DIGITS = 12
"""Of those that are hexadecimal: our own ids and digests have them too, and eight in a row may be the same by chance."""
Json = dict[str, Any]

_NOISE = re.compile(r"\\+n|\d+→|\x1b\[[0-9;]*m|[\s\\│>​-‍⁠﻿\xad]")
_CHOSEN = re.compile(r"[A-Za-z][!#%*&_.?][A-Za-z0-9]|[0-9][!?]")
_MARK = re.compile(r"\[redacted:[a-z0-9-]+\]")
_RUN = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
_HEXADECIMAL = re.compile(rb"[0-9a-f]+|[0-9A-F]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    kind: str
    context: str
    secret: str
    text: str


def planted(way: str) -> list[Planted]:
    """Drawn anew for each way in, so that what is found says how it came."""
    found: list[Planted] = []
    for kind in CHOSEN:
        for name, context in CONTEXTS.items():
            secret, text = context(kind, random.Random(f"{way}/{kind.name}/{name}"))
            found.append(Planted(kind=kind.name, context=name, secret=secret, text=text))
    return found


@dataclass(slots=True)
class Search:
    """Which secrets can still be read: as they are, without what wraps and colours them, or decoded.

    What each secret of a kind begins with (``ghp_``, ``secret-``) is in no search: it stands in labels and in our marks, too.
    """

    secrets: Sequence[Planted]
    windows: npt.NDArray[np.uint64]
    """Sorted, eight bytes of a secret each; ``owners`` say whose they are."""
    owners: npt.NDArray[np.int64]

    @classmethod
    def of(cls, secrets: Sequence[Planted]) -> "Search":
        """By windows that only one of them has: what they share (a prefix, a header) identifies none."""
        counted: Counter[bytes] = Counter()
        of: dict[bytes, int] = {}
        for place, each in enumerate(secrets):
            whole = each.secret.encode()[len(_common_beginning(each.kind)) :]
            windows = {whole[at : at + WINDOW] for at in range(len(whole) - WINDOW + 1)}
            counted.update(windows)
            of.update(dict.fromkeys(windows, place))
        own = sorted((_code(piece), place) for piece, place in of.items() if counted[piece] == 1 and len(set(piece)) > 3)
        codes, owners = np.array([code for code, _ in own], np.uint64), np.array([place for _, place in own], np.int64)
        return cls(secrets=secrets, windows=codes, owners=owners)

    def in_text(self, text: str) -> set[tuple[str, str]]:
        return {leak for reading in self._readings(text) for leak in self._in_bytes(reading.encode("utf-8", "replace"))}

    def _in_bytes(self, content: bytes) -> Iterator[tuple[str, str]]:
        for start in range(0, len(content), _PIECE):
            part = np.frombuffer(content[start : start + _PIECE + WINDOW - 1], np.uint8)
            if len(part) < WINDOW:
                continue
            codes = np.ascontiguousarray(np.lib.stride_tricks.sliding_window_view(part, WINDOW)).view("<u8").ravel()
            place = np.minimum(np.searchsorted(self.windows, codes), len(self.windows) - 1)
            hits = np.flatnonzero(self.windows[place] == codes)
            owners = self.owners[place[hits]]
            for owner in np.unique(owners):
                each = self.secrets[owner]
                if any(_shows(each.secret.encode(), content, start + int(at)) for at in hits[owners == owner]):
                    yield each.kind, each.context

    @staticmethod
    def _readings(text: str) -> Iterator[str]:
        yield text
        yield _NOISE.sub("", text)
        decoded: list[str] = []
        for run in _RUN.findall(text):
            try:
                bare = run.rstrip("=")
                decoded.append(base64.b64decode(bare + "=" * (-len(bare) % 4), altchars=b"-_").decode("ascii"))
            except (binascii.Error, UnicodeDecodeError, ValueError):
                continue
        yield "\0".join(decoded)

    def in_folder(self, folder: Path, *, besides: Sequence[Path] = ()) -> dict[str, set[tuple[str, str]]]:
        found: dict[str, set[tuple[str, str]]] = {}
        for path in sorted(folder.rglob("*")):
            if not path.is_file() or any(path.is_relative_to(each) for each in besides):
                continue
            content = path.read_bytes()
            if path.suffix == ".gz":
                content = gzip.decompress(content)
            if leaked := self.in_text(f"{path.name}\n{content.decode('utf-8', 'replace')}"):
                found[str(path.relative_to(folder))] = leaked
        return found


_PIECE = 1 << 21


def _shows(secret: bytes, content: bytes, at: int) -> bool:
    """Whether the window of ``secret`` that is in ``content`` at ``at`` stands there for more than chance."""
    if not _HEXADECIMAL.fullmatch(content, at, at + WINDOW):
        return True
    near = content[max(0, at - TELLING_DIGITS + WINDOW) : at + TELLING_DIGITS]
    return any(near[start : start + TELLING_DIGITS] in secret for start in range(max(1, len(near) - TELLING_DIGITS + 1)))


@cache
def _common_beginning(kind: str) -> str:
    (drawn_by,) = (each for each in KINDS if each.name == kind)
    letters = zip(*(drawn_by.make(random.Random(seed))[0] for seed in range(12)), strict=False)
    return "".join(each[0] for each in takewhile(lambda each: len(set(each)) == 1, letters))


def _code(piece: bytes) -> int:
    return int.from_bytes(piece, "little")


def judged(leaks: Iterable[tuple[str, str]], secrets: Sequence[Planted]) -> None:
    """None where it was written plainly; one in a hundred at most in each disguise."""
    by_context = Counter(context for _, context in set(leaks))
    each = len({one.kind for one in secrets})

    assert {name: count for name, count in by_context.items() if name in PLAIN} == {}, sorted(set(leaks))[:20]
    assert {name: count for name, count in by_context.items() if name in HOSTILE and count > max(0.01 * each, 0)} == {}


def test_control_the_search_takes_no_chance_and_no_label_for_a_leak() -> None:
    digits, letters = "0f9e8d7c6b5a4f3e2d1c", "secret-rRFLVwQNtSVjG2BoTZlL930xf09t5qR0IIo6e1i36kU"
    search = Search.of(
        [
            Planted(kind="jenkins", context="json", secret=digits, text=""),
            Planted(kind="statsig", context="url", secret=letters, text=""),
        ]
    )

    assert search.in_text(f"id: 77{digits[4:12]}77, [redacted:azure-client-secret-rest], secret-rR") == set()
    assert search.in_text(f"id: 77{digits[4:16]}77") == {("jenkins", "json")}
    assert search.in_text(f"…{letters[9:17]}…") == {("statsig", "url")}


@dataclass(slots=True)
class Repeating:
    """A model that says all it is shown again, as notes; what it was sent is kept as it would be on its own disk."""

    sent: list[str] = field(default_factory=list)
    name: str = "repeating"
    model: str = "1"

    def estimate(self, inquiry: Inquiry) -> Usage:
        return Usage()

    def ask(self, inquiry: Inquiry) -> Ending:
        self.sent.append(f"{inquiry.system}\n{inquiry.user}")
        items: list[Json] = []
        for line in inquiry.user.split("\n"):
            if found := re.match(r"\[([^\]]{4,60})\] (.*)", line):
                items.append({"kind": "fact", "title": f"Line {len(items)}", "body": found[2], "evidence": [found[1]]})
        return Reply(text=json.dumps({"topics": [{"name": "lines", "items": items[:30]}]}), usage=Usage())


def lay_transcripts(home: Path, secrets: Sequence[Planted]) -> None:
    """A session for each kind: its ten contexts as prompts, answers, commands, results, paths, and a title."""
    folder = home / "claude" / "projects" / "-home-ada-orchard"
    folder.mkdir(parents=True)
    for number in range(0, len(secrets), len(CONTEXTS)):
        name = str(UUID(int=(0xC00000 + number) << 96 | 4 << 76 | 8 << 60))
        transcript = Transcript(name, first=0x5000000 + 64 * number)
        for place, each in enumerate(secrets[number : number + len(CONTEXTS)]):
            call = f"toolu_{number}_{place}"
            match (number // len(CONTEXTS) + place) % 5:
                case 0:
                    transcript.user(f"Look at this, and say what is wrong with the orchard's settings:\n\n{each.text}")
                case 1:
                    transcript.assistant(f"This is what I found in the settings of the orchard:\n\n{each.text}")
                case 2:
                    transcript.call("Bash", call, command=each.text)
                    transcript.result(call, "done")
                case 3:
                    transcript.call("Bash", call, command="cat settings")
                    transcript.result(call, each.text, failed=place % 2 == 0)
                case _:
                    transcript.call("Write", call, file_path=f"/home/ada/orchard/{place}.env", content=each.text)
                    transcript.result(call, f"File written:\n{each.text}")
        transcript.note("ai-title", aiTitle=secrets[number].text[:200])
        (folder / f"{name}.jsonl").write_bytes(transcript.bytes)


def walked(home: Path) -> tuple[Search, list[Planted], Repeating]:
    secrets = planted("transcripts")
    lay_transcripts(home, secrets)
    model = Repeating()
    extractor = ModelExtractor(backend=model, prompt=PromptTemplate(system="Note what is worth keeping.", schema={}, version="1"))
    with fake_services(home, extractor) as services:
        services.run_until_idle()
        for note in list(services.vault.known.all())[:40]:
            if note.id:
                services.vault.edits.forget(note.id)
        services.recall.refresh(services.vault.notes)
    return Search.of(secrets), secrets, model


def test_no_secret_of_a_transcript_is_kept_or_sent(tmp_path: Path) -> None:
    search, secrets, model = walked(tmp_path)

    assert len(model.sent) >= len(CHOSEN) // 2
    assert any((tmp_path / "vault" / ".trash").iterdir())
    assert search.in_folder(tmp_path / "claude"), "the search finds what is there"
    judged(
        search.in_text("\n".join(model.sent)).union(*search.in_folder(tmp_path, besides=[tmp_path / "claude"]).values()), secrets
    )


def test_control_without_the_door_they_are_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kite_memory.redaction.redaction_engine.redact_event", lambda event, known=None: event)

    search, secrets, model = walked(tmp_path)

    kept = search.in_folder(tmp_path, besides=[tmp_path / "claude"])
    assert "state/timeline.sqlite" in kept
    assert any(name.startswith("vault/") for name in kept)
    assert len(search.in_text("\n".join(model.sent))) > len(secrets) // 4
    with pytest.raises(AssertionError):
        judged([leak for leaks in kept.values() for leak in leaks], secrets)


@pytest.mark.parametrize("provider", HELD)
def test_whatever_an_agent_writes_passes_one_door(tmp_path: Path, provider: str) -> None:
    """Each field of what any source yields: what is committed is what `redacted` gives."""
    module, _, name = HELD[provider].partition(".")
    held = getattr(import_module(f"tests.contract.{module}"), name)()
    (look, *_) = held.read_results(held.make(tmp_path), held.written(tmp_path))
    secrets = planted(f"sources/{provider}")[:: 5 if SHARE < 10 else 1]
    one = look.events[0]

    leaks = []
    for each in secrets:
        events = (replace(one, text=each.text), replace(one, id="b", text="", command=each.text, path=each.text))
        session = replace(look.session, title=each.text, branch=each.text) if look.session else None
        cursor = replace(look.cursor, carry=json.dumps({"open": each.text}))
        out = redacted(replace(look, events=events, session=session, cursor=cursor))
        listed = [*(f"{event.text}\n{event.command}\n{event.path}" for event in out.events), out.cursor.carry]
        listed += [f"{out.session.title}\n{out.session.branch}"] if out.session else []
        leaks += [(each.kind, each.context) for text in listed if left_of(each.secret, text)]
    judged(leaks, secrets)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A long text, which a limit cuts right through a secret, or right beside it."""

    each: Planted
    text: str
    limit: int

    def left(self) -> str:
        """What is left of the secret; all of it is out where nothing is cut."""
        return left_of(self.each.secret, redact(shortened(self.text, self.limit)))


def cut_through(each: Planted, chance: random.Random) -> Cut | None:
    """``None`` where the secret goes through uncut: that is for others to say."""
    limit = chance.choice((400, 1_200, 4_000))
    first = limit * 3 // 5
    begin = max(0, each.text.find(each.secret[:6]))
    through = chance.randrange(max(0, begin - 80), min(len(each.text), begin + len(each.secret) + 30))
    around = chance.choice(list(SURROUNDINGS.values()))
    if chance.random() < 0.5:
        before, behind = max(0, first - through), limit
        text = around(chance, before) + each.text[max(0, through - first) :] + around(chance, behind)
    else:
        rest = max(0, limit - first - len(each.text) + through)
        text = around(chance, limit) + each.text[: through + limit - first] + around(chance, rest)
    return None if left_of(each.secret, redact(text)) else Cut(each=each, text=text, limit=limit)


def passwords() -> Iterator[Planted]:
    for number in range(how_many(60)):
        for place, written in PLACES.items():
            word = made_up(random.Random(f"{place}/{number}"))
            yield Planted(kind=f"{place}/{number}", context="assignment", secret=word, text=written(word))


def cuts() -> list[Cut]:
    every = [*planted("cuts"), *passwords()]
    drawn = (cut_through(each, random.Random(f"cuts/{each.kind}/{each.context}")) for each in every)
    return [cut for cut in drawn if cut is not None]


def test_a_cut_through_a_long_text_leaves_no_half_of_a_secret() -> None:
    judged(((cut.each.kind, cut.each.context) for cut in cuts() if cut.left()), planted("cuts"))


def test_control_a_cut_anywhere_leaves_halves_of_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kite_memory.sources.common.tool_text.ends", lambda text, first, last: (text[:first], text[-last:]))
    tried = cuts()

    assert sum(bool(cut.left()) for cut in tried) > len(tried) // 5


ASKER = Asker(grant=OWNER, project="orchard", session="5e55", ai="claude")
Way = Callable[[Services, Planted, int, Path], None]


def _remembered(services: Services, each: Planted, number: int, inbox: Path) -> None:
    services.operations.perform(
        "remember", {"text": f"Settings {number}:\n{each.text}", "cwd": "/home/ada/orchard", "tags": [each.text]}
    )


def _kept_under_a_key(services: Services, each: Planted, number: int, inbox: Path) -> None:
    services.operations.perform(
        "remember", {"text": f"Settings {number}:\n{each.text}", "key": f"settings.{number}", "project": "orchard"}
    )
    value = {"settings": each.text, "list": [each.text]}
    services.bridge.perform("write_memory", {"key": f"current.{number}", "value": value, "tags": ["x"]}, ASKER)


def _remembered_by_an_agent(services: Services, each: Planted, number: int, inbox: Path) -> None:
    services.bridge.perform("remember", {"text": f"Settings {number} of the orchard are:\n{each.text}"}, ASKER)


def _saved(services: Services, each: Planted, number: int, inbox: Path) -> None:
    record = {
        "claude_conversation_uuid": str(UUID(int=(0xD00000 + number) << 96 | 4 << 76 | 8 << 60)),
        "source": "claude_code",
        "topic": f"Settings {number}",
        "summary": f"Settings were looked at: {each.text}",
        "decisions": [{"decision": f"Settings {number} stay", "reasoning": each.text}],
        "full_transcript": f"User: what is this?\n\nAssistant: {each.text}",
    }
    services.bridge.perform("save-conversation", record, ASKER)
    saved = {"todos": [each.text[:400]], "working_notes": each.text, "context_summary": each.text}
    services.bridge.perform("ai_state_save", saved, replace(ASKER, session=f"s{number}"))


def _imported(services: Services, each: Planted, number: int, inbox: Path) -> None:
    file = inbox / f"{number}.md"
    file.write_text(f"---\ntitle: Settings {number}\n---\n{each.text}\n")
    services.operations.perform("import", {"path": str(file), "sort": "markdown"})
    exported = inbox / f"{number}.jsonl"
    row = {"id": f"01JD{number:022d}", "kind": "fact", "title": f"Row {number}", "body": each.text, "aliases": [each.text]}
    exported.write_text(json.dumps({**row, "entities": [each.text], "triggers": [each.text]}) + "\n")
    services.operations.perform("import", {"path": str(exported), "sort": "kmem"})
    memories = inbox / f"{number}.json"
    memories.write_text(json.dumps([{"id": str(number), "memory": each.text}]))
    services.operations.perform("import", {"path": str(memories), "sort": "mem0"})


def _prompted(services: Services, each: Planted, number: int, inbox: Path) -> None:
    fields = {"hook_event_name": "UserPromptSubmit", "session_id": f"h{number}", "cwd": "/home/ada/orchard"}
    services.hooks.answer(json.dumps({**fields, "prompt": f"why do the settings fail?\n{each.text}"}).encode(), "claude-code")
    acted = {"tool_name": "Bash", "tool_input": {"command": each.text}, "error": each.text}
    services.hooks.answer(json.dumps({**fields, "hook_event_name": "PostToolUseFailure", **acted}).encode(), "claude-code")


def _asked(services: Services, each: Planted, number: int, inbox: Path) -> None:
    services.operations.perform("ask", {"question": f"what are settings {number}? {each.text}", "project": "orchard"})
    services.operations.perform("search", {"query": f"settings {number} {each.text[:300]}"})


WAYS: Mapping[str, Way] = {
    "remember": _remembered,
    "keys": _kept_under_a_key,
    "agents": _remembered_by_an_agent,
    "conversations": _saved,
    "import": _imported,
    "hook": _prompted,
    "questions": _asked,
}


def said_again(asked: Json) -> Json:
    """Whatever is asked, the answer quotes it."""
    encoded = json.dumps(asked["messages"])
    return text_message(json.dumps({"sentences": [{"text": encoded[:500], "cites": [1]}], "topics": [], "notes": []}))


@pytest.mark.parametrize("way", WAYS)
def test_no_secret_is_kept_or_sent_whichever_way_it_comes(tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    search, secrets, sent = gone_in_by(way, tmp_path, monkeypatch)

    judged(search.in_text(sent).union(*search.in_folder(tmp_path, besides=[tmp_path / "inbox"]).values()), secrets)


def gone_in_by(way: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Search, list[Planted], str]:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "not-a-key")
    monkeypatch.setattr("kite_memory.wiring.models.LocalEmbedder", lambda: HashingEmbedder(dim=32))  # vectors hold no words
    secrets = planted(way)
    inbox = home / "inbox"
    inbox.mkdir()
    if SHARE < 10:
        secrets = secrets[sorted(WAYS).index(way) % 2 :: 2]  # each is tried by half of the ways in
    with anthropic_server(said_again) as server, open_services(asking_a_model(home, server)) as services:
        services.init_vault()
        services.operations.perform("remember", {"text": "Settings of the orchard lie in the shed.", "project": "orchard"})
        for number, each in enumerate(secrets):
            WAYS[way](services, each, number, inbox)
    return Search.of(secrets), secrets, json.dumps(server.requests, ensure_ascii=False)


def asking_a_model(home: Path, server: AnthropicServer) -> Config:
    extractor = ExtractorConfig(name="anthropic", base_url=server.url, dollars_per_day=1e6, calls_per_day=10**6)
    return replace(config_in(home), extractor=extractor, judge="late")


@pytest.mark.parametrize(
    ("way", "door"), [("remember", "app.operations.redact"), ("conversations", "tools.argument_parsing.redact")]
)
def test_control_a_way_in_without_its_door_leaks(tmp_path: Path, way: str, door: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"kite_memory.{door}", lambda text: text)

    search, secrets, _ = gone_in_by(way, tmp_path, monkeypatch)

    assert (
        len({leak for leaks in search.in_folder(tmp_path, besides=[tmp_path / "inbox"]).values() for leak in leaks})
        > len(secrets) // 4
    )


class Listening(HashingEmbedder):
    def __init__(self) -> None:
        super().__init__(dim=8)
        self.heard: list[str] = []

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        self.heard += texts
        return super().embed(texts, purpose)


def test_what_a_person_wrote_into_a_note_is_not_sent_to_a_model(tmp_path: Path) -> None:
    """Notes lie in the vault as their owner wrote them; what leaves is looked at once more."""
    secrets = planted("notes")
    model, embedder = Repeating(), Listening()
    inquiry = Inquiry(system="", user="", schema={}, max_tokens=1, seconds=1)

    for each in secrets:
        RedactingBackend(model).ask(replace(inquiry, user=f"1. note: {each.text}\n\nAnswer the question."))
        RedactingEmbedder(embedder).embed([each.text], "document")

    judged(Search.of(secrets).in_text("\n".join((*model.sent, *embedder.heard))), secrets)


def test_every_model_that_is_wired_in_is_behind_that_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kite_memory.keys import keys_beside
    from kite_memory.wiring.models import backend_of, second_embedder

    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "VOYAGE_API_KEY"):
        monkeypatch.setenv(name, "not-a-key")
    for extractor in ("anthropic", "openai", "claude-cli"):
        config = replace(config_in(tmp_path), extractor=ExtractorConfig(name=extractor))
        assert isinstance(backend_of(config, keys_beside(config.file)), RedactingBackend)
    config = replace(config_in(tmp_path), embedder=replace(config_in(tmp_path).embedder, name="voyage"))
    assert isinstance(second_embedder(config, keys_beside(config.file)), RedactingEmbedder)


def clean_text(megabytes: float) -> str:
    """Code that holds no secrets, of many hands: the standard library's own, without its tests."""
    library = Path(sysconfig.get_path("stdlib"))
    texts: list[str] = []
    size = 0
    for path in sorted(library.rglob("*.py")):
        if {"test", "tests", "site-packages", "idlelib"} & set(path.parts):
            continue
        texts.append(path.read_text(encoding="utf-8", errors="replace"))
        size += len(texts[-1])
        if size > megabytes * 1e6:
            break
    return "\n".join(texts)


def test_thirty_megabytes_of_clean_text_lose_next_to_nothing() -> None:
    taken_out = [mark for part in clean_text(how_many(30)).split("\n\n\n") for mark in _MARK.findall(redact(part))]

    assert len(taken_out) <= how_many(10), Counter(taken_out)


def as_people_write_them() -> Iterator[Case]:
    """Each case of `tests.redaction.people` with a password that a person chose, with other ones."""
    chance = random.Random("people")
    plain = [case for case in cases() if case.group != "disguises" and case.secrets and all(map(_CHOSEN.search, case.secrets))]
    for case in plain:
        for _ in range(how_many(20)):
            secrets = tuple(chosen_by_a_person(chance) for _ in case.secrets)
            text = case.text
            for old, new in zip(case.secrets, secrets, strict=True):
                text = text.replace(old, new)
            yield replace(case, text=text, secrets=secrets)


def chosen_by_a_person(chance: random.Random) -> str:
    one, other = chance.sample(WORDS, 2)
    sign, number = chance.choice("!#*&_.-+"), chance.randrange(10, 9999)
    return chance.choice(
        (f"{one.title()}{sign}{other}{number}", f"{one}{sign}{number}{other.title()}", f"{one.title()}{number}{sign}")
    )


def test_passwords_as_people_write_them_are_taken_out() -> None:
    tried = [*as_people_write_them()]
    missed = Counter(case.group for case in tried if case.left())

    assert missed.total() <= 0.05 * len(tried), f"{missed} of {len(tried)}"


def test_there_are_two_hundred_kinds_in_ten_contexts() -> None:
    assert len({kind.name for kind in KINDS}) >= 200
    assert len(CONTEXTS) == 10
    assert isinstance(KINDS[0], Kind)
