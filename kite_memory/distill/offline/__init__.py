"""Distillation by rules, for when there is no model to ask."""

from kite_memory.distill.offline.extractor import OfflineExtractor

__all__ = ["OfflineExtractor"]
