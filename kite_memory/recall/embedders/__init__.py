"""Embedders: the built-in model, Voyage, and hashing for tests."""
