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
        compiled = re.compile(self.pattern, self._flags)
        for each in _MEMBERS:
            setattr(self, each, getattr(compiled, each))
        self.__class__ = _UsedRegex  # type: ignore[assignment]
        return getattr(compiled, name)


class _UsedRegex:
    """A compiled one. As a class without ``__getattr__``, it is as fast as the expression itself."""


_MEMBERS = tuple(name for name in dir(re.Pattern) if not name.startswith("_"))
