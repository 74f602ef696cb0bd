"""Counts as percentages with their error."""

from __future__ import annotations

from scipy import stats


def binomial(count: int, total: int) -> str:
    """Give a percentage with its exact 95 % interval."""
    low, high = stats.binomtest(count, total).proportion_ci(0.95)
    return f"{100 * count / total:.1f} ({100 * low:.1f} to {100 * high:.1f})"
