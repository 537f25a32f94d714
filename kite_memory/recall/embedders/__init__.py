"""Texts into vectors: the built-in model, Voyage, and hashing for tests."""
