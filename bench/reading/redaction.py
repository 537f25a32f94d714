"""How fast the door is, what it takes out of ordinary text, and what share of planted secrets it catches.

python -m bench.reading.redaction               the matrix of kinds and contexts only
python -m bench.reading.redaction FOLDER …      also the speed on what is said in the transcripts and files under the folders
"""

import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import orjson

from kite_memory.redaction import redact
from kite_memory.redaction.cleaning import bare, clean
from kite_memory.redaction.redaction_engine import beside, find
from tests.redaction.contexts import CONTEXTS, left_of
from tests.redaction.kinds_of_secrets import KINDS

ROUNDS = 20
LARGEST = 4_000_000


def said(value: object) -> Iterator[str]:
    """Every text in a transcript's line that somebody could have said, ids and signatures left out."""
    match value:
        case str():
            yield value
        case list():
            for item in value:
                yield from said(item)
        case dict():
            for key, item in value.items():
                if key in ("content", "text", "thinking", "input", "command", "stdout", "stderr", "message", "result", "output"):
                    yield from said(item)


def texts(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.stat().st_size > LARGEST:
            continue
        if path.suffix != ".jsonl":
            yield path.read_text(encoding="utf-8", errors="replace")
            continue
        for line in path.read_bytes().splitlines():
            try:
                yield from said(orjson.loads(line))
            except orjson.JSONDecodeError:
                continue


def speed(folder: Path) -> None:
    sample = list(texts(folder))
    size = sum(map(len, sample)) / 1e6
    if not size:
        print(f"{folder}: nothing to read")
        return
    began = time.process_time()
    for text in sample:
        redact(text)
    spent = time.process_time() - began
    kinds = Counter(kind for text in sample for _, _, kind in beside(find(bare(clean(text)), []), []))
    print(f"{folder}: {len(sample)} texts, {size:.1f} MB, {size / spent:.1f} MB/s, {kinds.total() / size:.2f} redactions per MB")
    for kind, count in kinds.most_common():
        print(f"  {count / size:8.3f} per MB  {kind}")


def matrix() -> None:
    print(f"{len(KINDS)} kinds, {ROUNDS} secrets each")
    for name, context in CONTEXTS.items():
        missed = Counter[str]()
        for kind in KINDS:
            for number in range(ROUNDS):
                secret, text = context(kind, random.Random(f"{kind.name}/{name}/bench/{number}"))
                if left_of(secret, redact(text)):
                    missed[kind.name] += 1
        share = 1 - missed.total() / (ROUNDS * len(KINDS))
        worst = ", ".join(f"{kind} {count}" for kind, count in missed.most_common(6))
        print(f"  {name:12} {share:8.3%}  {worst}")


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        speed(Path(argument))
    matrix()
