"""Pure functions on text: shell command lines, error signatures, quoting, ages, Unicode. No I/O."""

import re
from typing import Any, AnyStr, cast


def lazy_regex(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a regular expression that is compiled when it is first used.

    The package has a thousand of them. Compiling all takes longer than most commands, which use a few.
    """
    return cast("re.Pattern[AnyStr]", _LazyRegex(pattern, flags))


class _LazyRegex:
    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self.pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        """Keep the compiled one's method under its name, so that this is called only once for each."""
        if name == "_compiled":
            value: Any = re.compile(self.pattern, self._flags)
        else:
            value = getattr(self._compiled, name)
        setattr(self, name, value)
        return value
