"""Bandwidth and latency factors of messages: a piecewise model of delays against the nominal link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from steelyard.errors import AnalysisError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from steelyard.analyse.cost_curve.pieces import SegmentedModel

    Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LinkFactor:
    """What one piece of a model of delays says about the link.

    Parameters
    ----------
    low, high : float
        Smallest and largest message size in the piece, bytes.
    bandwidth_factor : float
        Observed over nominal bandwidth; negative where delays fall with size, infinite where they stay.
    latency_factor : float
        Intercept over nominal latency; no physical meaning far from size 0.
    """

    low: float
    high: float
    bandwidth_factor: float
    latency_factor: float


def link_factors(
    model: SegmentedModel, *, bandwidth_bytes_per_s: float, latency_s: float
) -> tuple[LinkFactor, ...]:
    """Express the lines of a model of delays as factors of a nominal link.

    Parameters
    ----------
    model : SegmentedModel
        Delays in seconds on sizes in bytes; every piece a constant or a line.
    bandwidth_bytes_per_s, latency_s : float
        Of the nominal link, positive.

    Returns
    -------
    tuple of LinkFactor
        One per piece: 1 / (slope bandwidth), and intercept / latency.

    Raises
    ------
    AnalysisError
        If the link is not positive, or a piece is a power law.

    References
    ----------
    .. [1] platform-calibration (SimGrid group): definitions of both factors, from least squares.

    Examples
    --------
    >>> from steelyard.analyse.cost_curve.segments import fit_segments
    >>> sizes = np.arange(1.0, 101.0)
    >>> model = fit_segments(sizes, 2e-5 + sizes / 1e8, breaks=[])
    >>> (factor,) = link_factors(model, bandwidth_bytes_per_s=1.25e8, latency_s=1e-5)
    >>> round(factor.bandwidth_factor, 6), round(factor.latency_factor, 6)
    (0.8, 2.0)
    """
    if not (bandwidth_bytes_per_s > 0 and latency_s > 0):
        message = f"the link has the bandwidth {bandwidth_bytes_per_s:g} B/s and the latency {latency_s:g} s"
        raise AnalysisError(message, hint="both must be positive, e.g. 1.25e8 B/s and 2.4e-5 s for 1 Gb/s")
    found = []
    for piece in model.pieces:
        if piece.model.is_log:
            message = f"the piece from {piece.low:g} to {piece.high:g} is a power law, which has no bandwidth"
            raise AnalysisError(message, hint="fit lines: give the breaks and no --log")
        coefficients = piece.model.coefficients
        slope = float(coefficients[1]) if coefficients.size > 1 else 0.0
        cost = slope * bandwidth_bytes_per_s
        found.append(
            LinkFactor(
                piece.low, piece.high, 1.0 / cost if cost else np.inf, float(coefficients[0]) / latency_s
            )
        )
    return tuple(found)


def one_way_delays(size: ArrayLike, round_trip: ArrayLike, receive: SegmentedModel) -> Vector:
    """Give half of what a round trip takes beyond the receiver's own cost.

    Parameters
    ----------
    size, round_trip : array_like
        Shape (n,): bytes, and seconds from the start of the send to the end of the receive.
    receive : SegmentedModel
        Seconds that the receive call takes for a message that has already arrived; its curve is subtracted.

    Returns
    -------
    ndarray
        Shape (n,), seconds.

    References
    ----------
    .. [1] platform-calibration (SimGrid group): delay = (ping-pong - receive) / 2.
    """
    sizes, times = (np.asarray(each, dtype=np.float64) for each in (size, round_trip))
    return np.asarray((times - receive.predict(sizes)) / 2)
