"""Distillation by rules, without a model."""

from kite_memory.distill.offline.extractor import OfflineExtractor, said_to_keep

__all__ = ["OfflineExtractor", "said_to_keep"]
