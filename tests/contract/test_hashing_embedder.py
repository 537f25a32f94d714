from kite_memory.recall.embedder import Embedder
from kite_memory.recall.hashing import HashingEmbedder
from tests.contract.embedder_contract import EmbedderContract


class TestHashing(EmbedderContract):
    def make(self) -> Embedder:
        return HashingEmbedder(dim=64)
