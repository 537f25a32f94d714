"""Keys by pattern: ``*`` is any number of characters, ``?`` is one. It takes at most key times pattern, whatever they are."""

WILD = frozenset("*?")


def is_pattern(text: str) -> bool:
    return not WILD.isdisjoint(text)


def beginning(pattern: str) -> str:
    """What every key that fits begins with."""
    return pattern[: next((place for place, char in enumerate(pattern) if char in WILD), len(pattern))]


def fits(pattern: str, key: str) -> bool:
    if pattern.endswith("*") and pattern.find("*") == len(pattern) - 1 and "?" not in pattern:
        return key.startswith(pattern[:-1])
    at = place = 0
    star, resumed = -1, 0
    while place < len(key):
        if at < len(pattern) and pattern[at] == "*":
            star, resumed = at, place
            at += 1
        elif at < len(pattern) and pattern[at] in ("?", key[place]):
            at += 1
            place += 1
        elif star >= 0:
            resumed += 1
            at, place = star + 1, resumed
        else:
            return False
    return not pattern[at:].strip("*")
