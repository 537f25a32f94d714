"""Where a secret lies."""

Span = tuple[int, int, str]
"""``[start, end)`` and the kind of secret. A plain tuple, since finding makes and drops many."""


def joined(spans: list[Span]) -> list[Span]:
    """In order, those that overlap made one under the name of the first and widest."""
    whole: list[Span] = []
    for start, end, kind in sorted(spans, key=lambda span: (span[0], -span[1])):
        if whole and start < whole[-1][1]:
            first, last, name = whole[-1]
            whole[-1] = (first, max(last, end), name)
        else:
            whole.append((start, end, kind))
    return whole
