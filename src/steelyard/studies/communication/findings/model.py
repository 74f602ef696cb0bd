"""Findings of a fitted model: its card, coefficients, boundaries, thresholds and noise."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from steelyard.model import Estimate
from steelyard.model.cost_model import ROUND_TRIP
from steelyard.studies.analysis_parts import finding, finite
from steelyard.studies.communication.findings.detail import detail_findings
from steelyard.studies.communication.size_text import size_range

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.model import Finding
    from steelyard.model.cost_model import Boundary, CostPiece, NoiseClass
    from steelyard.studies.communication.model.fitted import Fitted

LEVEL: Final = 0.95
NORMAL_95: Final = 1.959964
"""Two-sided 95 % point of the normal distribution."""

ASYMPTOTIC: Final = "median regression on relative residuals; asymptotic standard error"
RESAMPLED: Final = "search for breaks; resampled replications and blocks"

ENVELOPE: Final = "envelope"
DELAY: Final = "delay"
CURVES: Final = {
    "send": "blocking send",
    "isend": "non-blocking send",
    "recv": "receive of a message that is there",
    "one_way": "one message, from the later of both begins to its arrival",
}


def curve_text(curve: str, timed: str) -> str:
    """Say what a curve is about; that of delays, and its envelope, are about what was timed."""
    if curve in {DELAY, ENVELOPE}:
        return timed if curve == DELAY else f"lower envelope of {timed} (5 % lie below)"
    return CURVES.get(curve, curve)


def model_findings(fitted: Fitted) -> Iterator[Finding]:
    """Give everything one model says."""
    yield _card(fitted)
    for curve, pieces in fitted.model.curves.items():
        for piece in pieces:
            yield _coefficient(fitted, curve, piece)
    for piece in fitted.details.envelope:
        yield _coefficient(fitted, ENVELOPE, piece)
    for boundary in fitted.model.boundaries:
        yield _boundary(fitted, boundary)
    for noise in fitted.model.noise:
        yield _noise(fitted, noise)
    yield from detail_findings(fitted)


def _card(fitted: Fitted) -> Finding:
    model = fitted.model
    delay = model.curves["delay"]
    smallest = model.predict(fitted.smallest)
    switches = [each for each in model.boundaries if each.kind == "protocol"]
    return finding(
        "model",
        fitted.subject,
        "fitted",
        estimates={
            "latency": _plain(model.latency_s, "s", "of the nominal link of the model", fitted),
            "bandwidth": _plain(
                model.bandwidth_bytes_per_s, "bytes/s", "of the nominal link of the model", fitted
            ),
            "smallest": _plain(smallest, "s", "curve of delays at the smallest message", fitted),
            "largest": _plain(
                model.predict(fitted.largest), "s", "curve of delays at the largest message", fitted
            ),
        },
        facts={
            "model_file": fitted.file,
            "replications": fitted.replications,
            "operations": fitted.operations,
            "round_trips": fitted.round_trips,
            "smallest_bytes": fitted.smallest,
            "largest_bytes": fitted.largest,
            "way": "one way" if model.timed == ROUND_TRIP else f"({model.timed})",
            "pieces": len(delay),
            "switches": len(switches),
            "switch_text": ", ".join(f"{each.at:.0f}" for each in switches),
            "asynchronous_bytes": model.asynchronous_bytes,
            "detached_bytes": model.detached_bytes,
        },
        evidence=fitted.evidence("pieces through the medians of half round trips by size"),
    )


def _coefficient(fitted: Fitted, curve: str, piece: CostPiece) -> Finding:
    text = curve_text(curve, fitted.model.timed)
    evidence = fitted.evidence(f"{piece.kind} through {text}")
    is_power = piece.kind == "power"
    rate = 1 / piece.slope if piece.kind == "line" and piece.slope > 0 else None
    return finding(
        "coefficient",
        {**fitted.subject, "curve": curve, "sizes": size_range(piece.low, piece.high)},
        piece.kind,
        estimates={
            "base": _with_error(piece.base, piece.base_error, "s", piece.count),
            "slope": _with_error(
                piece.slope, piece.slope_error, "exponent" if is_power else "s/byte", piece.count
            ),
            "rate": Estimate(rate, "bytes/s", "one over the slope", measurements=piece.count),
        },
        facts={
            "low_bytes": piece.low,
            "high_bytes": piece.high,
            "curve_text": text,
            "base_error": finite(piece.base_error),
            "slope_error": finite(piece.slope_error),
            "operations": piece.count,
        },
        evidence=evidence,
    )


def _boundary(fitted: Fitted, boundary: Boundary) -> Finding:
    known = fitted.boundary_evidence(boundary)
    return finding(
        "boundary",
        {**fitted.subject, "at": f"{boundary.at:.0f}"},
        boundary.kind,
        estimates={
            "at": Estimate(
                boundary.at,
                "bytes",
                RESAMPLED,
                boundary.low,
                boundary.high,
                LEVEL,
                fitted.replications,
                fitted.round_trips,
            ),
            "step": Estimate(
                None if known is None or not math.isfinite(known.step) else math.exp(known.step),
                "ratio",
                "power laws on either side",
            ),
        },
        facts={
            "recurrence_percent": 100 * boundary.recurrence,
            "declared": "" if known is None else known.declared,
            "mixed_low_bytes": None if known is None or known.mixed is None else float(known.mixed[0]),
            "mixed_high_bytes": None if known is None or known.mixed is None else float(known.mixed[1]),
            "mixed_operations": 0 if known is None else int(known.mixed_count),
        },
        evidence=fitted.evidence("place where the curve of delays changes"),
    )


def _noise(fitted: Fitted, noise: NoiseClass) -> Finding:
    values = noise.quantiles
    return finding(
        "noise",
        {**fitted.subject, "sizes": size_range(noise.low, noise.high)},
        "described",
        estimates={
            f"p{percentile}": Estimate(
                _quantile(values, percentile / 100), "ratio", "quantile of measured over the curve"
            )
            for percentile in (5, 50, 95, 99)
        }
        | {"tail_index": Estimate(finite(noise.tail_index), "index", "Hill, largest 2 %")},
        facts={"law": noise.law, "low_bytes": noise.low, "high_bytes": noise.high},
        evidence=fitted.evidence("measured half round trip over the curve"),
    )


def _quantile(values: tuple[float, ...], probability: float) -> float:
    """Interpolate a table of quantiles at equidistant probabilities."""
    place = probability * (len(values) - 1)
    low = math.floor(place)
    high = min(low + 1, len(values) - 1)
    return values[low] + (place - low) * (values[high] - values[low])


def _plain(value: float, unit: str, method: str, fitted: Fitted) -> Estimate:
    return Estimate(value, unit, method, units=fitted.replications, measurements=fitted.round_trips)


def _with_error(value: float, error: float | None, unit: str, count: int) -> Estimate:
    known = finite(error)
    if known is None:
        return Estimate(value, unit, ASYMPTOTIC, measurements=count)
    return Estimate(
        value,
        unit,
        ASYMPTOTIC,
        value - NORMAL_95 * known,
        value + NORMAL_95 * known,
        LEVEL,
        measurements=count,
    )
