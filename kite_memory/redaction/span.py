"""Position of a secret in a text."""

Span = tuple[int, int, str]
"""``[start, end)`` and the kind of secret. A plain tuple, since many are created and dropped."""


def joined(spans: list[Span]) -> list[Span]:
    """Return the spans in order. Overlapping ones are joined under the kind of the first and widest."""
    whole: list[Span] = []
    for start, end, kind in sorted(spans, key=lambda span: (span[0], -span[1])):
        if whole and start < whole[-1][1]:
            first, last, name = whole[-1]
            whole[-1] = (first, max(last, end), name)
        else:
            whole.append((start, end, kind))
    return whole
