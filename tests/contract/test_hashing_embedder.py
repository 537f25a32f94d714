from kite_memory.extensions.contract.embedder_contract import EmbedderContract
from kite_memory.recall.embedder import Embedder
from tests.fakes.hashing_embedder import HashingEmbedder


class TestHashing(EmbedderContract):
    def make(self) -> Embedder:
        return HashingEmbedder(dim=64)
