import json
import mmap
import shutil
from pathlib import Path

import numpy as np
import pytest

from kite_memory.errors import StateDamaged
from kite_memory.extensions.contract.embedder_contract import EmbedderContract
from kite_memory.recall.embedder import Embedder
from kite_memory.recall.local_embedder import WEIGHTS, LocalEmbedder, tiled

REFERENCE = json.loads((Path(__file__).parent / "minilm_reference.json").read_text(encoding="utf-8"))
SHARED = LocalEmbedder()


class TestLocal(EmbedderContract):
    def make(self) -> Embedder:
        return LocalEmbedder()


@pytest.mark.parametrize("text", REFERENCE)
def test_vectors_are_those_of_the_model_it_was_made_from(text: str) -> None:
    vector = SHARED.embed([text], "document")[0]

    assert float(vector @ np.array(REFERENCE[text])) > 0.999


def test_meaning_counts_more_than_words() -> None:
    texts = ["a cat sleeps on the sofa", "the kitten naps on a couch", "the invoice is overdue"]

    cat, kitten, invoice = SHARED.embed(texts, "document")

    assert cat @ kitten > cat @ invoice + 0.3


def test_texts_of_which_nothing_can_be_read_are_not_alike() -> None:
    first, second = SHARED.embed(["\U00012000\U00012001", "\U00013000"], "document")

    assert float(first @ second) == 0


def test_a_long_text_is_read_as_far_as_the_model_reads() -> None:
    head = "queue " * 254

    first, second = SHARED.embed([head + "tea", head + "coffee"], "document")

    assert first == pytest.approx(second, abs=1e-6)


def test_a_question_is_read_as_far_as_somebody_waits_for() -> None:
    head = "queue " * 62

    first, second = SHARED.embed([head + "tea", head + "coffee"], "query")

    assert first == pytest.approx(second, abs=1e-6)
    assert SHARED.embed([head], "query")[0] == pytest.approx(SHARED.embed([head], "document")[0], abs=1e-5)


@pytest.mark.parametrize("depth", [384, 1536])
@pytest.mark.parametrize("count", [1, 2, 31, 81])
def test_a_product_in_tiles_is_the_product(depth: int, count: int) -> None:
    chance = np.random.default_rng(count)
    rows, weight = (chance.standard_normal(shape).astype(np.float32) for shape in ((count, depth), (depth, 1152)))

    assert np.allclose(tiled(rows, weight), rows @ weight, rtol=1e-4, atol=1e-3)


def test_weights_are_mapped_and_not_copied() -> None:
    SHARED.embed(["tea"], "query")
    model = SHARED._loaded()

    assert all(isinstance(_owner(codes), mmap.mmap) for codes in model._codes.values())


def _owner(array: object) -> object:
    while isinstance(array, np.ndarray) and array.base is not None:
        array = array.base
    return array.obj if isinstance(array, memoryview) else array


def test_after_many_texts_at_once_the_next_one_is_embedded_as_before() -> None:
    before = SHARED.embed(["tea"], "query")

    SHARED.embed(["tea", "coffee"] * 40, "document")

    assert SHARED.embed(["tea"], "query").tolist() == before.tolist()


@pytest.mark.parametrize("keep", [0, 4, 100, 20_000, 1_000_000, 23_000_000])
def test_weights_cut_short_are_said_to_be(tmp_path: Path, keep: int) -> None:
    shutil.copy(WEIGHTS / "vocab.txt", tmp_path)
    name = "all-MiniLM-L6-v2-int8.safetensors"
    (tmp_path / name).write_bytes((WEIGHTS / name).read_bytes()[:keep])

    with pytest.raises(StateDamaged, match="cannot be read") as raised:
        LocalEmbedder(tmp_path).embed(["tea"], "query")

    assert "install" in raised.value.hint
