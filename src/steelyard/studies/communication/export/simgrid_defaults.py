"""What SimGrid's SMPI answers where nobody calibrated it: the rivals of an export."""

from __future__ import annotations

from typing import Final

import numpy as np

from steelyard.studies.communication.export.lines import LARGEST_BYTES
from steelyard.studies.communication.export.simgrid_model import Factor, Overhead, SimGridModel
from steelyard.studies.communication.export.simgrid_sections import ENVELOPE_BYTES

_WINDOW_BYTES: Final = 4_194_304
"""SOURCE: SimGrid 3.32, default of ``network/TCP-gamma``: no rate is above it per two latencies."""
_DETACHED_BELOW: Final = 65536
"""SOURCE: SimGrid 3.32, default of ``smpi/send-is-detached-thresh``."""

# SOURCE: SimGrid 3.32, `sg_config.cpp`, defaults of `smpi/lat-factor` and `smpi/bw-factor`.
_LATENCY: Final = (
    Factor(0, 2.01467),
    Factor(257, 1.95341),
    Factor(732, 1.9503),
    Factor(1426, 1.61075),
    Factor(3484, 1.88101),
    Factor(5776, 2.18796),
    Factor(9376, 2.59299),
    Factor(15424, 3.48845),
    Factor(65472, 11.6436),
)
_BANDWIDTH: Final = (
    Factor(0, 0.812084),
    Factor(257, 0.338112),
    Factor(732, 0.341987),
    Factor(1426, 0.608902),
    Factor(3484, 0.77493),
    Factor(5776, 1.08739),
    Factor(9376, 0.58729),
    Factor(15424, 0.697866),
    Factor(65472, 0.940694),
)


def default_simgrid(name: str, *, bandwidth_bytes_per_s: float, latency_s: float) -> SimGridModel:
    """Give SMPI as it comes, on a link of a positive bandwidth and latency."""
    return SimGridModel(
        name,
        "rtt",
        min(bandwidth_bytes_per_s, _WINDOW_BYTES / (2 * latency_s)),
        latency_s,
        _LATENCY,
        _BANDWIDTH,
        (Overhead(0, 0.0, 0.0),),
        (Overhead(0, 0.0, 0.0),),
        0,
        _DETACHED_BELOW,
    )


def tuned_link(smallest: tuple[float, float], largest: tuple[float, float]) -> tuple[float, float]:
    """Give the link on which SMPI's own factors are right for a small message and for a large one.

    Parameters
    ----------
    smallest, largest : tuple of float
        Bytes, the second more than the first, and the seconds that were measured.

    Returns
    -------
    tuple of float
        Bandwidth [bytes/s] and latency [s]; where no positive link is right at both, its bandwidth
        alone explains the large message and its latency alone the small one.
    """
    sizes = np.array([round(smallest[0]), round(min(max(largest[0], smallest[0] + 1), LARGEST_BYTES))])
    times = np.array([smallest[1], largest[1]])
    unit = default_simgrid("unit", bandwidth_bytes_per_s=1.0, latency_s=1.0)
    # half(n) = L lat + (n + 16) / (B bw) is linear in L and 1 / B; the unit link gives the sum.
    sent = sizes + ENVELOPE_BYTES
    whole = unit.transfers(sizes)
    bandwidth_part = np.array([sent[0] / _BANDWIDTH[0].value, sent[1] / _factor_at_end(int(sent[1]))])
    latency_part = whole - bandwidth_part
    latency, inverse = np.linalg.solve(np.column_stack([latency_part, bandwidth_part]), times)
    if latency > 0 and inverse > 0:
        return float(1 / inverse), float(latency)
    return float(bandwidth_part[1] / times[1]), float(times[0] / latency_part[0])


def _factor_at_end(sent: int) -> float:
    return next(factor.value for factor in reversed(_BANDWIDTH) if sent > factor.above)
