"""The memory that AI coding agents don't have."""

__version__ = "0.1.0"
