"""How well models predict what they have not seen, next to the simple models that are in use."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.cost_curve.curve import fit_curve
from steelyard.analyse.cost_curve.median_line import binned_medians, predict
from steelyard.analyse.linear.model import linear_model
from steelyard.studies.communication.export.simgrid_defaults import default_simgrid, tuned_link

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from steelyard.analyse.cost_curve.known_places import KnownPlace
    from steelyard.analyse.cost_curve.piece_search import CurveOptions
    from steelyard.studies.communication.operations import Operations
    from steelyard.studies.communication.transport.link_options import NominalLink

    Vector = NDArray[np.float64]
    Predictor = Callable[[Vector], Vector]

BIN: Final = 50
"""Operations whose median is one point of a prediction."""

OLS_BREAKS: Final = (1024.0, 65_536.0)
"""SOURCE: borders that are usually typed by hand for three least-squares lines: 1 KiB and 64 KiB."""

_FEWEST: Final = 20
_PEAK: Final = 0.02


@dataclass(frozen=True, slots=True)
class PredictionError:
    """How far predictions are from medians of 50 operations that were not used.

    Parameters
    ----------
    model : str
        Which one.
    median, mean, p90 : float
        Of |predicted / measured - 1| over the bins of size.
    decades : tuple of (int, float)
        Power of ten that the decade of sizes begins with, and the median in it.
    bins : int
        How many there were.
    """

    model: str
    median: float
    mean: float
    p90: float
    decades: tuple[tuple[int, float], ...]
    bins: int


def latency_bandwidth(size: Vector, seconds: Vector) -> Predictor:
    """Give latency + size / bandwidth: the smallest messages' median and the best rate of the largest."""
    (_, latency), (largest, seconds_there) = measured_ends(size, seconds)
    per_byte = seconds_there / largest if largest > 0 else 0.0
    return lambda at: latency + at * per_byte


def measured_ends(size: Vector, seconds: Vector) -> tuple[tuple[float, float], tuple[float, float]]:
    """Give median size and time of the smallest messages and, at the median rate, of the largest."""
    order = np.lexsort((seconds, size))
    x, y = size[order], seconds[order]
    part = max(int(_PEAK * x.size), min(_FEWEST, x.size))
    largest = float(np.median(x[-part:]))
    per_byte = float(np.median(y[-part:] / x[-part:])) if x[-part] > 0 else 0.0
    return (float(np.median(x[:part])), float(np.median(y[:part]))), (largest, largest * per_byte)


def least_squares_line(size: Vector, seconds: Vector) -> Predictor:
    """Give one least-squares line through all times, as ``lm(time ~ size)`` fits it."""
    if np.unique(size).size < 2:  # noqa: PLR2004 - a line needs two sizes
        level = float(seconds.mean())
        return lambda at: np.full(at.shape, level)
    base, slope = linear_model(size, seconds).coefficients.tolist()
    return lambda at: base + slope * at


def grid_interpolation(size: Vector, seconds: Vector) -> Predictor:
    """Give the straight lines between medians around powers of two, on logarithmic scales."""
    logs = np.log2(np.maximum(size, 1.0))
    power = np.round(logs)
    near = np.abs(logs - power) <= 0.25  # noqa: PLR2004 - half of the way to the border of its neighbour
    places, levels = [], []
    for each in np.unique(power[near]):
        inside = near & (power == each)
        places.append(float(np.median(logs[inside])))
        levels.append(float(np.log(np.median(seconds[inside]))))
    if not places:
        return latency_bandwidth(size, seconds)
    return lambda at: np.exp(np.interp(np.log2(np.maximum(at, 1.0)), places, levels))


def three_lines(size: Vector, seconds: Vector) -> Predictor:
    """Give three least-squares lines with borders at 1 KiB and 64 KiB."""
    place = np.searchsorted(np.array(OLS_BREAKS), size, side="left")
    lines: list[tuple[float, float]] = []
    for number in range(len(OLS_BREAKS) + 1):
        x, y = size[place == number], seconds[place == number]
        if np.unique(x).size > 1:
            base, slope = linear_model(x, y).coefficients.tolist()
            lines.append((base, slope))
        else:
            lines.append((float(y.mean()) if y.size else math.nan, 0.0))
    bases, slopes = (np.array(column) for column in zip(*lines, strict=True))

    def at_sizes(at: Vector) -> Vector:
        where = np.searchsorted(np.array(OLS_BREAKS), at, side="left")
        return np.asarray(bases[where] + slopes[where] * at)

    return at_sizes


MEASURED_ENDS: Final = "latency + size / bandwidth, measured"


def simple_models(size: Vector, seconds: Vector) -> dict[str, Predictor]:
    """Give what people fit without a study, by the names that every table uses.

    Parameters
    ----------
    size, seconds : ndarray
        Shape (n,), n >= 1: half round trips that the model may see.
    """
    return {
        "2^k interpolation": grid_interpolation(size, seconds),
        MEASURED_ENDS: latency_bandwidth(size, seconds),
        "least-squares line": least_squares_line(size, seconds),
        "three least-squares lines": three_lines(size, seconds),
    }


def user_predictions(
    sizes: NDArray[np.int64], seen: tuple[Vector, Vector] | None, nominal: NominalLink | None
) -> dict[str, Vector]:
    """Predict half round trips as people do who have the name of a link, or the measurements and less time.

    Parameters
    ----------
    sizes : ndarray
        Shape (n,), bytes.
    seen : tuple of ndarray or None
        Sizes and half round trips that may be fitted to.
    nominal : NominalLink or None
        What the network is called.
    """
    found: dict[str, Vector] = {}
    at = sizes.astype(np.float64)
    if nominal is not None:
        bandwidth, latency = nominal.bandwidth_bytes_per_s, nominal.latency_s
        found["nominal"] = latency + at / bandwidth
        as_is = default_simgrid("defaults", bandwidth_bytes_per_s=bandwidth, latency_s=latency)
        found["defaults"] = as_is.half_round_trips(sizes)
    if seen is not None:
        found |= {name: model(at) for name, model in simple_models(*seen).items()}
        bandwidth, latency = tuned_link(*measured_ends(*seen))
        tuned = default_simgrid("tuned", bandwidth_bytes_per_s=bandwidth, latency_s=latency)
        found["tuned-defaults"] = tuned.half_round_trips(sizes)
    return found


def prediction_error(model: str, predictor: Predictor, size: Vector, seconds: Vector) -> PredictionError:
    """Compare predictions with the medians of bins of 50 operations, by rank of size.

    Parameters
    ----------
    size, seconds : ndarray
        Shape (n,), n >= 1: what the model has not seen.
    """
    order = np.lexsort((seconds, size))
    places, medians = binned_medians(size[order], seconds[order], BIN)
    errors = np.abs(predictor(places) / medians - 1.0)
    decade = np.floor(np.log10(np.maximum(places, 1.0))).astype(np.int64)
    return PredictionError(
        model,
        float(np.median(errors)),
        float(np.mean(errors)),
        float(np.quantile(errors, 0.9)),
        tuple((int(each), float(np.median(errors[decade == each]))) for each in np.unique(decade)),
        int(errors.size),
    )


def held_out_errors(
    half: Operations, options: CurveOptions, known: Sequence[KnownPlace] = ()
) -> tuple[PredictionError, ...]:
    """Predict each run from the other runs, or the odd blocks of a single one from the even ones.

    Parameters
    ----------
    half : Operations
        Round trips in one state of the host.
    known : sequence of KnownPlace
        As for `fit_curve`.

    Returns
    -------
    tuple of PredictionError
        Of the pieces and their rivals; medians over the parts that were predicted. Empty where a part has
        fewer than 100 operations.
    """
    runs = np.unique(half.run)
    tests = [half.run == run for run in runs] if runs.size > 1 else [half.block % 2 == 1]
    found: list[tuple[PredictionError, ...]] = []
    for test in tests:
        if min(int(test.sum()), int((~test).sum())) < 2 * BIN:
            continue
        found.append(_errors(half.where(~test), half.where(test), options, known))
    return tuple(_middle(rows) for rows in zip(*found, strict=True))


def _errors(
    seen: Operations, unseen: Operations, options: CurveOptions, known: Sequence[KnownPlace]
) -> tuple[PredictionError, ...]:
    size, seconds = seen.size.astype(np.float64), seen.half_s
    pieces = fit_curve(size, seconds, options, known)
    models: dict[str, Predictor] = {
        "pieces": lambda at: predict(pieces, at),
        **simple_models(size, seconds),
    }
    other = unseen.size.astype(np.float64)
    return tuple(prediction_error(name, model, other, unseen.half_s) for name, model in models.items())


def _middle(rows: tuple[PredictionError, ...]) -> PredictionError:
    decades = sorted({decade for row in rows for decade, _ in row.decades})

    def middle(values: list[float]) -> float:
        return float(np.median(values))

    return PredictionError(
        model=rows[0].model,
        median=middle([row.median for row in rows]),
        mean=middle([row.mean for row in rows]),
        p90=middle([row.p90 for row in rows]),
        decades=tuple(
            (each, middle([error for row in rows for decade, error in row.decades if decade == each]))
            for each in decades
        ),
        bins=sum(row.bins for row in rows),
    )
