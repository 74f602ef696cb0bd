"""Change points of a series of iterations that chance does not make.

`_native.change_points` proposes: it cuts where a penalised robust cost falls. Its noise comes from neighbours
whose typical difference may be far too small: two modes that take turns at random, or iterations that depend
on the ones before, look to it like many levels. So each proposal is confirmed (`largest_split`): is the
largest split of a stretch larger than those of series without a change that are as dependent as this one may
be? Where it is not, a proposal stays only if it is significant between its neighbours at a much smaller
error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.series.largest_split import length_of_table, measure_split, null_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

ERROR: Final = 0.02
"""Largest share of unchanged series in which a change is confirmed."""

MOST_DEPENDENT: Final = 0.7
"""Above this autocorrelation no level is told from wandering."""

VALUES_PER_CHOICE: Final = 10
"""Proposals are where a stretch looks most like a change, and a long one has more such places: between two of
them the error is divided by the length over this, by 10 at least (the rates hold: tests)."""

_DRAWS: Final = 3000
_FEWEST: Final = 12
_LONGEST: Final = 1000


def confirmed_changes(values: Array, proposed: Sequence[int]) -> tuple[int, ...]:
    """Give the proposed changes that chance does not make.

    Parameters
    ----------
    values : ndarray
        Shape (n,), finite, in the order of measuring.
    proposed : sequence of int
        Positions where a new level may begin, ascending, 0 excluded.

    Returns
    -------
    tuple of int
        Those that stay, ascending; none is moved.

    References
    ----------
    .. [1] Vostrikova (1981), Soviet Math. Dokl. 24: binary segmentation, each cut tested.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> modes = np.where(rng.random(100) < 0.4, 1.3, 1.0) + 0.01 * rng.standard_normal(100)
    >>> confirmed_changes(modes, [40, 60]), confirmed_changes(modes + 2 * (np.arange(100) < 40), [40, 60])
    ((), (40,))
    """
    kept: list[int] = []
    stretches = [(0, values.size, tuple(proposed))]
    while stretches:
        begin, end, inside = stretches.pop()
        if not inside:
            continue
        cut = _confirmed(values, (begin, end), inside)
        if cut is None:
            continue
        kept.append(cut)
        stretches += [
            (begin, cut, tuple(position for position in inside if position < cut)),
            (cut, end, tuple(position for position in inside if position > cut)),
        ]
    return tuple(sorted(kept))


def _confirmed(values: Array, bounds: tuple[int, int], inside: tuple[int, ...]) -> int | None:
    """Give a proposal of a stretch that chance does not make; ``None`` if it may have made all of them."""
    begin, end = bounds
    split = _significant_split(values[begin:end], ERROR)
    if split is not None:
        return min(inside, key=lambda position: abs(position - begin - split))
    # A level that comes and goes shows in no split of the whole, but between its neighbours.
    if len(inside) == 1 or _is_wandering(values[begin:end]):
        return None
    error = ERROR / max(VALUES_PER_CHOICE, min(end - begin, _LONGEST) / VALUES_PER_CHOICE)
    edges = (begin, *inside, end)
    for low, position, high in zip(edges, inside, edges[2:], strict=False):
        if _significant_split(values[low:high], error) is not None:
            return position
    return None


def _is_wandering(values: Array) -> bool:
    coarse = _coarse(values)
    if coarse.size < _FEWEST or np.ptp(coarse) == 0:
        return True
    table = null_table(length_of_table(coarse.size), _DRAWS)
    return table.estimate(measure_split(coarse)) > MOST_DEPENDENT


def _coarse(values: Array) -> Array:
    """Give logarithms where there are some, of medians of equal blocks where a stretch is long."""
    block = -(-values.size // _LONGEST)
    if block > 1:  # a rest at the end goes with none
        values = np.median(values[: values.size // block * block].reshape(-1, block), axis=1)
    return np.log(values) if values.min() > 0 else values


def _significant_split(values: Array, error: float) -> int | None:
    """Give the place of the largest split of a stretch where it is significant."""
    coarse = _coarse(values)
    if coarse.size < _FEWEST or np.ptp(coarse) == 0:
        return None
    found = measure_split(coarse)
    table = null_table(length_of_table(coarse.size), _DRAWS)
    if table.estimate(found) > MOST_DEPENDENT or table.p_value(found) > error:
        return None
    return found.position * -(-values.size // _LONGEST)
