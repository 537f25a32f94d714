"""How our own logs are written, whichever process writes them."""

import logging
from types import TracebackType


class OneLine(logging.Formatter):
    """What an error quotes may be anybody's words. Nothing of it steers a terminal, begins a line or is a secret."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        return " ".join(_fit_to_keep(super().formatMessage(record)).split("\n"))

    def formatException(self, ei: tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]) -> str:
        return _fit_to_keep(super().formatException(ei))


def _fit_to_keep(text: str) -> str:
    from kite_memory.model.quoting import plain
    from kite_memory.redaction import redact  # its patterns take a moment, and most processes never log

    return redact(plain(text))
