"""Distillation by rules, for when there is no model to ask."""

from kite_memory.distill.offline.extractor import OfflineExtractor, said_to_keep

__all__ = ["OfflineExtractor", "said_to_keep"]
