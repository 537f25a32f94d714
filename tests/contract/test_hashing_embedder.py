from kite_memory.recall.embedders.embedder import Embedder, HashingEmbedder
from tests.contract.embedder_contract import EmbedderContract


class TestHashing(EmbedderContract):
    def make(self) -> Embedder:
        return HashingEmbedder(dim=64)
