"""Values of other programs' records as text, of which they make names."""


def scalar(value: object) -> str:
    """As Python writes it. What holds other values may hold them deeper than Python can follow: it is only said to be there."""
    return "…" if isinstance(value, dict | list) else str(value)
