"""The real `voyageai` package against a loopback server."""

import json
from collections.abc import Iterator

import numpy as np
import pytest

from kite_memory.errors import EmbedderUnavailable
from kite_memory.extensions.contract.embedder_contract import EmbedderContract
from kite_memory.recall.embedder import Embedder, VoyageEmbedder
from kite_memory.redaction import redact
from kite_memory.wiring.models import RedactingEmbedder
from tests.recall.voyage_server import KEY, Raw, VoyageServer, answer, voyage_server


@pytest.fixture
def server() -> Iterator[VoyageServer]:
    with voyage_server() as running:
        yield running


def embedder_for(server: VoyageServer, *, key: str = KEY, timeout: float = 10.0) -> Embedder:
    return RedactingEmbedder(VoyageEmbedder(key, base_url=server.url, timeout=timeout))


class TestVoyage(EmbedderContract):
    @pytest.fixture(autouse=True)
    def _served(self, server: VoyageServer) -> None:
        self.server = server

    def make(self) -> Embedder:
        return embedder_for(self.server)


def test_purpose_and_model_are_reported(server: VoyageServer) -> None:
    embedder_for(server).embed(["tea"], "query")
    embedder_for(server).embed(["tea"], "document")

    assert [(request["input_type"], request["model"]) for request in server.requests] == [
        ("query", "voyage-3-lite"),
        ("document", "voyage-3-lite"),
    ]


def test_calls_are_bounded_in_texts_and_in_characters(server: VoyageServer) -> None:
    texts = ["short"] * 300 + ["x" * 50_000] * 20

    embedder_for(server).embed(texts, "document")

    assert max(len(request["input"]) for request in server.requests) <= 128
    assert max(sum(map(len, request["input"])) for request in server.requests) <= 120_000
    assert sum(len(request["input"]) for request in server.requests) == len(texts)


def test_blank_texts_are_not_sent(server: VoyageServer) -> None:
    embedder_for(server).embed(["", " "], "document")

    assert server.requests == []


DETAIL = json.dumps({"detail": "whatever the service says"}).encode()
FAILURES = {
    "429": (Raw(status=429, body=DETAIL, headers={"Retry-After": "86400", "Content-Type": "application/json"}), "slow down"),
    "400": (Raw(status=400, body=DETAIL), "did not accept"),
    "402": (Raw(status=402, body=DETAIL), "HTTP 402"),
    "500": (Raw(status=500, body=b"oops"), "HTTP 500"),
    "529": (Raw(status=529, body=DETAIL), "cannot be read|failed"),
    "503": (Raw(status=503, body=b""), "HTTP 503"),
    "html": (Raw(body=b"<html>sign in to the hotel's network</html>", headers={"Content-Type": "text/html"}), "HTTP 200"),
    "text": (Raw(body=b"hello", headers={"Content-Type": "text/plain"}), "cannot be read"),
    "binary": (Raw(body=b"\xff\xfe\x00", headers={"Content-Type": "application/json"}), "cannot be read|failed"),
    "empty object": (Raw(body=b"{}"), "cannot be read"),
    "list": (Raw(body=b"[]"), "cannot be read"),
    "null": (Raw(body=b"null"), "cannot be read"),
    "rows of words": (Raw(body=b'{"data":[{"embedding":["a"]}],"usage":{"total_tokens":1}}'), "not 1 rows"),
    "bad base64": (Raw(body=b'{"data":[{"embedding":"a"}],"usage":{"total_tokens":1}}'), "cannot be read"),
    "cut": (Raw(body=b'{"data": [', cut=True), "cannot be reached"),
    "wrong dimension": (answer(np.ones((1, 256), np.float32)), "not 1 rows of 512"),
    "too many rows": (answer(np.ones((2, 512), np.float32)), "not 1 rows of 512"),
    "not numbers": (answer(np.full((1, 512), np.nan, np.float32)), "no direction"),
    "zeros": (answer(np.zeros((1, 512), np.float32)), "no direction"),
}


@pytest.mark.parametrize(("raw", "said"), FAILURES.values(), ids=FAILURES)
def test_what_the_service_does_wrong_becomes_one_error_of_ours(server: VoyageServer, raw: Raw, said: str) -> None:
    server.reply = lambda request: raw

    with pytest.raises(EmbedderUnavailable, match=said) as raised:
        embedder_for(server).embed(["tea"], "document")

    assert "whatever" not in str(raised.value)
    assert "hotel" not in str(raised.value)


@pytest.mark.parametrize("raw", [raw for raw, _ in FAILURES.values()], ids=FAILURES)
def test_nothing_is_tried_twice(server: VoyageServer, raw: Raw) -> None:
    server.reply = lambda request: raw

    with pytest.raises(EmbedderUnavailable):
        embedder_for(server).embed(["tea"], "document")

    assert len(server.requests) == 1


def test_a_refused_key_is_named_as_the_cause_and_not_shown(server: VoyageServer) -> None:
    with pytest.raises(EmbedderUnavailable, match="refused the key") as raised:
        embedder_for(server, key="pa-wrong-and-secret").embed(["tea"], "document")

    assert "kmem keys" in raised.value.hint
    assert "pa-wrong" not in str(raised.value) + raised.value.hint


def test_a_service_that_hangs_is_left(server: VoyageServer) -> None:
    server.reply = lambda request: Raw(hang=60)

    with pytest.raises(EmbedderUnavailable, match="in time"):
        embedder_for(server, timeout=0.2).embed(["tea"], "document")


def test_a_service_that_is_not_there_is_said_to_be(server: VoyageServer) -> None:
    embedder = VoyageEmbedder(KEY, base_url="http://127.0.0.1:1/v1", timeout=2.0)

    with pytest.raises(EmbedderUnavailable, match="cannot be reached"):
        embedder.embed([redact("tea")], "document")
