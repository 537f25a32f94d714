"""Contract of every embedder. Subclass it, and override the methods that make yours."""

import re
import threading
from abc import ABC, abstractmethod

import numpy as np
import pytest

from kite_memory.recall.embedder import Embedder, Purpose, Vectors

SENTENCES = (
    "tea",
    "PostgreSQL over SQLite for the job queue",
    "ürümqi façade naïve",
    "日本語のメモ",
    "ملاحظة قصيرة",
    "🙂 emoji and words",
    "a\x00b\x1b[31mred\u202e",
    "</vault-context>",
    "word " * 3000,
)


class EmbedderContract(ABC):
    @abstractmethod
    def make(self) -> Embedder: ...

    def test_rows_are_float32_of_the_space_s_dimension(self) -> None:
        embedder = self.make()

        vectors = embedder.embed(SENTENCES, "document")

        assert vectors.dtype == np.float32
        assert vectors.shape == (len(SENTENCES), embedder.space.dim)

    def test_rows_have_unit_length(self) -> None:
        vectors = self.make().embed(SENTENCES[:3], "document")

        assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)

    @pytest.mark.parametrize("purpose", ["document", "query"])
    def test_same_text_same_vector(self, purpose: Purpose) -> None:
        """Compare except for the last bits: some processors add up the rows of one product in different orders."""
        first, second = self.make().embed(["tea", "tea"], purpose)

        assert first == pytest.approx(second, abs=1e-6)

    @pytest.mark.parametrize("text", SENTENCES)
    def test_a_text_s_neighbours_do_not_change_its_row(self, text: str) -> None:
        embedder = self.make()

        alone = embedder.embed([text], "document")[0]
        in_company = embedder.embed(["short", text, "a rather longer neighbour, of several words " * 5, text], "document")[1]

        assert in_company == pytest.approx(alone, abs=1e-5)

    def test_a_later_call_and_another_embedder_agree(self) -> None:
        first = self.make()

        vectors = first.embed(SENTENCES, "query")

        assert first.embed(SENTENCES, "query") == pytest.approx(vectors, abs=1e-5)
        assert self.make().embed(SENTENCES, "query") == pytest.approx(vectors, abs=1e-5)

    @pytest.mark.parametrize("text", ["", "   \n\t ", "\u3000\u00a0"])
    def test_an_empty_text_is_a_row_of_zeros_in_its_place(self, text: str) -> None:
        vectors = self.make().embed(["tea", text, "coffee"], "document")

        assert not vectors[1].any()
        assert vectors[0].any()
        assert vectors[2].any()

    def test_no_texts_no_rows(self) -> None:
        embedder = self.make()

        assert embedder.embed([], "document").shape == (0, embedder.space.dim)

    def test_many_texts_come_back_in_their_order(self) -> None:
        embedder = self.make()
        texts = [f"note number {number} about {'queues ' * (number % 7)}" for number in range(300)]

        vectors = embedder.embed(texts, "document")

        for number in (0, 1, 127, 128, 129, 299):
            assert vectors[number] == pytest.approx(embedder.embed([texts[number]], "document")[0], abs=1e-5)

    def test_threads_may_share_it(self) -> None:
        embedder = self.make()
        expected = embedder.embed(SENTENCES[:4], "query")
        found: list[Vectors] = []

        threads = [threading.Thread(target=lambda: found.append(embedder.embed(SENTENCES[:4], "query"))) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert len(found) == 6
        for vectors in found:
            assert vectors == pytest.approx(expected, abs=1e-5)

    def test_its_space_names_a_file_and_has_a_threshold_that_scores_can_reach(self) -> None:
        space = self.make().space

        assert re.fullmatch(r"[\w.-]+", space.tag)
        assert 0 < space.threshold < 0.76
