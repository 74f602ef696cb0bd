"""Series for the figures that show whether a curve can be trusted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard import _native
from steelyard.analyse.cost_curve.median_line import predict
from steelyard.analyse.intervals.describe import inner_product
from steelyard.analyse.linear.deviations import quantile_plot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from steelyard.analyse.linear.deviations import QuantilePlot
    from steelyard.model.cost_model import CostPiece
    from steelyard.studies.communication.operations import Operations

    Vector = NDArray[np.float64]
    Whole = NDArray[np.int64]

SHOWN: Final = 2000
"""Points of a figure at most, evenly spaced in the order of measuring."""

LAGS: Final = 20
PER_DECADE: Final = 10
FINE: Final = 2.0
"""Power of ten of the sizes from which on whole bytes are fine enough to judge their distribution."""


@dataclass(frozen=True, slots=True, eq=False)
class SizeHistogram:
    """How sizes were sampled.

    Parameters
    ----------
    edges, counts : ndarray
        Shapes (k + 1,) and (k,): ten classes per decade of bytes.
    log_uniform_p : float
        p-value that sizes from 100 B on are log-uniform up to the largest; smaller ones are too coarse to
        tell. NaN for fewer than 2 sizes.
    powers_of_two : int
        Sizes that are powers of two.
    wrong_side : tuple of (float, int)
        Switches of the protocol with the power of two nearest to them, where it lies beyond the switch: a
        grid of powers of two takes it for a size of the protocol before.
    """

    edges: Vector
    counts: Whole
    log_uniform_p: float
    powers_of_two: int
    wrong_side: tuple[tuple[float, int], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """What figures of residuals show; a residual is the logarithm of measured over the curve.

    Parameters
    ----------
    seq, size, residual, fitted_s, scale_location, leverage : ndarray
        Shape (k,): number of the operation, bytes, residual, the curve [s], the root of the residual's size
        over its robust deviation, and the influence of the operation on the line of its piece.
    lag : ndarray
        Shape (k, 2): residuals of neighbouring operations.
    autocorrelation : ndarray
        Shape (21,): of residuals, cut at three robust deviations, from lag 0 on.
    autocorrelation_limit : float
        Independent residuals stay within 95 % of the time.
    quantiles : QuantilePlot
        Of residuals over their robust deviation, against the normal law.
    sizes : SizeHistogram
        How sizes were sampled.
    """

    seq: Whole
    size: Vector
    residual: Vector
    fitted_s: Vector
    scale_location: Vector
    leverage: Vector
    lag: Vector
    autocorrelation: Vector
    autocorrelation_limit: float
    quantiles: QuantilePlot
    sizes: SizeHistogram


def diagnostics(half: Operations, pieces: Sequence[CostPiece], switches: Sequence[float] = ()) -> Series:
    """Prepare the figures about a curve of delays.

    Parameters
    ----------
    half : Operations
        Round trips, at least 2, in the order of measuring.
    pieces : sequence of CostPiece
        The curve.
    switches : sequence of float
        Where the protocol switches [bytes].

    References
    ----------
    .. [1] R's `plot.lm`: scale-location and leverage; weights are those of a fit to shares.
    """
    size = half.size.astype(np.float64)
    fitted = predict(pieces, size)
    residual = np.log(half.half_s / fitted)
    scale = 1.4826 * float(np.median(np.abs(residual - np.median(residual)))) or 1.0
    centred = residual - float(np.median(residual))
    cut = np.clip(centred, -3 * scale, 3 * scale)
    shown = np.unique(np.linspace(0, size.size - 1, min(SHOWN, size.size)).round().astype(np.int64))
    lagged = shown[shown + 1 < size.size]
    lags = min(LAGS, size.size - 1)
    return Series(
        seq=half.seq[shown],
        size=size[shown],
        residual=residual[shown],
        fitted_s=fitted[shown],
        scale_location=np.sqrt(np.abs(centred[shown]) / scale),
        leverage=_leverage(size, fitted, pieces)[shown],
        lag=np.column_stack([residual[lagged], residual[lagged + 1]]),
        autocorrelation=np.asarray(_native.autocorrelation(cut, lags)),
        autocorrelation_limit=2.0 / math.sqrt(size.size),
        quantiles=quantile_plot(centred / scale),
        sizes=size_histogram(size, switches),
    )


def _leverage(size: Vector, fitted: Vector, pieces: Sequence[CostPiece]) -> Vector:
    ends = [piece.high for piece in pieces if piece.high is not None]
    place = np.searchsorted(np.asarray(ends, dtype=np.float64), size, side="left")
    found = np.zeros_like(size)
    for number, piece in enumerate(pieces):
        here = place == number
        if not here.any():
            continue
        at = np.log(np.maximum(size[here], 1.0)) if piece.kind == "power" else size[here]
        weights = np.ones_like(at) if piece.kind == "power" else 1.0 / fitted[here] ** 2
        share = weights / weights.sum()
        around = at - inner_product(share, at)
        spread = inner_product(share, around**2)
        line = around**2 / spread if piece.kind != "constant" and spread > 0 else 0.0
        found[here] = share * (1.0 + line)
    return found


def size_histogram(size: Vector, switches: Sequence[float] = ()) -> SizeHistogram:
    """Count sizes, and say what their choice can hide.

    Examples
    --------
    >>> found = size_histogram(2.0 ** np.arange(20), [65_480.0])
    >>> found.powers_of_two, found.wrong_side
    (20, ((65480.0, 65536),))
    """
    logs = np.log10(np.maximum(size, 1.0))
    first, last = math.floor(float(logs.min())), math.ceil(float(logs.max()) + 1e-9)
    edges = np.linspace(first, last, max(last - first, 1) * PER_DECADE + 1)
    counts, _ = np.histogram(logs, edges)
    powers = np.isin(size, 2.0 ** np.arange(64))
    fine = np.ascontiguousarray(logs[logs >= FINE])
    p_value = math.nan
    if fine.size and np.ptp(fine) > 0:
        uniform = np.linspace(FINE, float(fine.max()), 4 * fine.size)
        p_value = float(_native.kolmogorov_smirnov(fine, uniform)[1])
    wrong = []
    for switch in switches:
        nearest = 2 ** round(math.log2(max(switch, 1.0)))
        if nearest > switch:
            wrong.append((float(switch), nearest))
    return SizeHistogram(10**edges, counts.astype(np.int64), p_value, int(powers.sum()), tuple(wrong))
