"""That mypy finds a path on which text is stored or sent without redaction."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import kite_memory

PACKAGE = Path(kite_memory.__file__).parent
BYPASS = "# bypass"
PLANTED = f"""
from kite_memory.distill.anthropic_api import AnthropicBackend
from kite_memory.distill.extractor import Backend, Inquiry
from kite_memory.distill.claude_cli import ClaudeCliBackend
from kite_memory.distill.openai_api import OpenAiBackend
from kite_memory.model.event import ReadResult
from kite_memory.wiring.models import RedactingBackend, RedactingEmbedder
from kite_memory.recall.embedder import Embedder
from kite_memory.recall.embedder import VoyageEmbedder
from kite_memory.redaction import redact, redact_result
from kite_memory.team.search import TeamRecall
from kite_memory.team.search import Asking, Team
from kite_memory.timeline.store import Timeline


def store(timeline: Timeline, read: ReadResult) -> None:
    timeline.commit([redact_result(read)], "claude-code")
    timeline.commit([read], "claude-code")  {BYPASS}


def send(backend: AnthropicBackend | OpenAiBackend | ClaudeCliBackend, inquiry: Inquiry) -> None:
    RedactingBackend(backend).ask(inquiry)
    backend.ask(inquiry)  {BYPASS}


def wire_backend(backend: OpenAiBackend, redacting: RedactingBackend) -> Backend:
    if backend:
        return redacting
    return backend  {BYPASS}


def wire_embedder(embedder: VoyageEmbedder, redacting: RedactingEmbedder) -> Embedder:
    if embedder:
        return redacting
    return embedder  {BYPASS}


def embed(embedder: VoyageEmbedder, text: str) -> None:
    embedder.embed([redact(text)], "query")
    embedder.embed([text], "query")  {BYPASS}
    embedder.embed([redact(text)[:9] + text], "query")  {BYPASS}


def ask(recall: TeamRecall, team: Team, text: str) -> None:
    recall.ask(redact(text), "orchard", until=0.0)
    recall.ask(text, "orchard", until=0.0)  {BYPASS}
    Asking(team, text, seconds=1.0)  {BYPASS}
"""


def test_mypy_finds_text_that_is_stored_or_sent_without_redaction(tmp_path: Path) -> None:
    planted = tmp_path / "planted.py"
    planted.write_text(PLANTED, encoding="utf-8")
    # With the settings and the cache of `make lint`, after which it takes a few seconds.
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", str(planted)], cwd=PACKAGE.parent, capture_output=True, text=True, check=False
    )

    found = {int(line) for line in re.findall(r"planted\.py:(\d+): error:", ran.stdout)}
    expected = {number for number, line in enumerate(PLANTED.splitlines(), start=1) if line.endswith(BYPASS)}
    assert found == expected, ran.stdout + ran.stderr


def test_only_the_redaction_makes_redacted_values() -> None:
    offenders: list[str] = []
    for path in PACKAGE.rglob("*.py"):
        if path.is_relative_to(PACKAGE / "redaction"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Name("RedactedText" | "RedactedResult")):
                    offenders.append(path.relative_to(PACKAGE).as_posix())
                case ast.Call(func=ast.Name("cast"), args=[kind, *_]) if "Redacted" in ast.unparse(kind):
                    offenders.append(path.relative_to(PACKAGE).as_posix())

    assert offenders == []
