"""How much of a transcript is sent to the model.

    python -m bench.extraction.condense FOLDER [FOLDER …] [--each]

Every Claude Code transcript below each FOLDER is read, cut into chunks and condensed as the daemon does it. The fixed part
(prompt and schema) counts once for each chunk in the last column: the API caches it from 4,096 tokens on only (Claude Haiku
4.5), and ours is shorter.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kite_memory.distill import extractor
from kite_memory.distill.condense import ChunkPolicy, finished, worth_asking
from kite_memory.distill.model_extractor import question, stretches_of
from kite_memory.model.event import Cursor, Event, Session
from kite_memory.model.note import Chunk
from kite_memory.paths import asset_folder
from kite_memory.redaction import redact_event
from kite_memory.sources.claude_code.source import ClaudeCode

_LIMIT = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    name: str
    transcript: int
    chunks: int
    text: int
    longest: int


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--each", action="store_true", help="one line for each session")
    arguments = parser.parse_args()
    prompt = extractor.load_prompt([Path(asset_folder("prompts"))])
    fixed = len(prompt.system.encode()) + len(json.dumps(prompt.schema).encode())

    sent = [each for folder in arguments.folders for each in _sent(folder.resolve())]
    if not sent:
        print("no transcripts there", file=sys.stderr)
        return 1
    print(f"{'session':40} {'transcript':>11} {'chunks':>6} {'longest':>8} {'text':>9} {'share':>7} {'with fixed':>10}")
    for each in sorted(sent, key=lambda each: each.name) if arguments.each else ():
        _print(each, fixed)
    total = Sent(
        name=f"all {len(sent)}",
        transcript=sum(each.transcript for each in sent),
        chunks=sum(each.chunks for each in sent),
        text=sum(each.text for each in sent),
        longest=max(each.longest for each in sent),
    )
    _print(total, fixed)
    print(f"fixed part: {fixed:,} bytes a chunk; shares are of the transcripts' bytes")
    return 0


def _print(sent: Sent, fixed: int) -> None:
    with_fixed = (sent.text + fixed * sent.chunks) / sent.transcript
    print(
        f"{sent.name:40} {sent.transcript:11,} {sent.chunks:6} {sent.longest:8,} {sent.text:9,}"
        f" {sent.text / sent.transcript:7.2%} {with_fixed:10.2%}"
    )


def _sent(folder: Path) -> Iterator[Sent]:
    with tempfile.TemporaryDirectory(prefix="kmem-bench-") as root:
        Path(root, "projects").symlink_to(folder, target_is_directory=True)
        source = ClaudeCode(Path(root), own_state=Path(root, "state"))
        for path in source.transcripts():
            session, events = _read(source, path)
            if session is None or not events:
                continue
            texts = [question(stretches_of([chunk], limit_chars=_LIMIT)) for chunk in _chunks(session, events)]
            sizes = [len(text.encode()) for text in texts]
            yield Sent(
                name=path.stem, transcript=path.stat().st_size, chunks=len(sizes), text=sum(sizes), longest=max(sizes, default=0)
            )


def _read(source: ClaudeCode, path: Path) -> tuple[Session | None, list[Event]]:
    session: Session | None = None
    events: list[Event] = []
    cursor: Cursor | None = None
    while True:
        look = source.read(path, cursor, budget=4 << 20)
        session, cursor = session or look.session, look.cursor
        events.extend(redact_event(event) for event in look.events)
        if not look.more:
            return session, events


def _chunks(session: Session, events: list[Event]) -> Iterator[Chunk]:
    for span in finished(events, ChunkPolicy(), quiet_for=float("inf")):
        within = tuple(event for event in events if span.first <= event.ordinal <= span.last)
        if worth_asking(within):
            yield Chunk(id=span.id, session=session, events=within)


if __name__ == "__main__":
    sys.exit(main())
