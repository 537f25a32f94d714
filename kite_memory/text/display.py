"""Fit a text to a length, and count things in words."""


def clip(text: str, limit: int) -> str:
    """Return at most ``limit`` characters, cut between words if possible, with an ellipsis."""
    if len(text) <= limit:
        return text
    if limit < 1:
        return ""
    cut = text[: limit - 1]
    space = max(cut.rfind(" "), cut.rfind("\n"))
    return (cut[:space] if space > limit // 2 else cut).rstrip(" \n,;:-–—") + "…"


def clip_end(text: str, limit: int) -> str:
    """Return at most ``limit`` characters, wherever that cuts the text, with an ellipsis."""
    return text if len(text) <= limit else text[: max(0, limit - 1)].rstrip() + "…"


def clip_line(text: str, limit: int) -> str:
    """Return the text on one line of at most ``limit`` characters, with an ellipsis."""
    return clip_end(" ".join(text[: 8 * limit].split()), limit)


def counted(number: float, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is one."""
    if number == 1:
        return f"1 {noun}"
    ending = noun[:-1] + "ies" if noun.endswith("y") and noun[-2:-1] not in "aeiou" else f"{noun}s"
    return f"{number:,} {ending}"
