"""Correction for many tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values so that rejecting those below q keeps the false discovery rate at q.

    Parameters
    ----------
    p_values : sequence of float
        In [0, 1], any order.

    Returns
    -------
    list of float
        Adjusted values in the same order.

    References
    ----------
    .. [1] Benjamini & Hochberg (1995), J. R. Stat. Soc. B 57 (R's `p.adjust(method = "BH")`).

    Examples
    --------
    >>> benjamini_hochberg([0.01, 0.04, 0.03, 0.5])
    [0.04, 0.05333333333333334, 0.05333333333333334, 0.5]
    """
    count = len(p_values)
    if count == 0:
        return []
    order = np.argsort(p_values, kind="stable")
    ranked = np.asarray(p_values, dtype=np.float64)[order] * count / np.arange(1, count + 1)
    monotone = np.minimum.accumulate(ranked[::-1])[::-1]
    adjusted = np.empty(count)
    adjusted[order] = np.minimum(monotone, 1.0)
    return [float(value) for value in adjusted]


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values so that rejecting those below q keeps the chance of any false rejection at q.

    Parameters
    ----------
    p_values : sequence of float
        In [0, 1], any order.

    Returns
    -------
    list of float
        Adjusted values in the same order.

    References
    ----------
    .. [1] Holm (1979), Scand. J. Stat. 6, 65 (R's `p.adjust(method = "holm")`).

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03, 0.5])
    [0.04, 0.09, 0.09, 0.5]
    """
    count = len(p_values)
    if count == 0:
        return []
    order = np.argsort(p_values, kind="stable")
    ranked = np.asarray(p_values, dtype=np.float64)[order] * np.arange(count, 0, -1)
    adjusted = np.empty(count)
    adjusted[order] = np.minimum(np.maximum.accumulate(ranked), 1.0)
    return [float(value) for value in adjusted]
