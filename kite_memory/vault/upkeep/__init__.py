"""Merge, split and archive notes."""
