"""Sizes and ranges of sizes as people write them."""

from __future__ import annotations


def size_range(low: float, high: float | None) -> str:
    """Write the sizes in (low, high], in whole bytes.

    Examples
    --------
    >>> size_range(-1, 1000.0), size_range(1000.0, None)
    ('up to 1000 B', 'above 1000 B')
    >>> size_range(1000.0, 4035.4)
    '1001 to 4035 B'
    """
    if low < 0:
        return "all sizes" if high is None else f"up to {high:.0f} B"
    if high is None:
        return f"above {low:.0f} B"
    return f"{int(low) + 1} to {int(high)} B"
