"""How well a model predicts measurements it has not seen, beside what others would say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from steelyard.errors import AnalysisError
from steelyard.studies.communication.export.simgrid import to_simgrid
from steelyard.studies.communication.model.rivals import user_predictions
from steelyard.studies.communication.simulation.message_run import simgrid_version, simulate
from steelyard.studies.communication.simulation.noise_distance import NoiseDistance, noise_distances
from steelyard.studies.communication.trace import Operation

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from steelyard.model.cost_model import CostModel
    from steelyard.studies.communication.export.simgrid_model import Profile
    from steelyard.studies.communication.trace import Trace
    from steelyard.studies.communication.transport.link_options import NominalLink

    Vector = NDArray[np.float64]
    Mask = NDArray[np.bool_]

Response = Literal["half_round_trip", "send"]

BIN_OPERATIONS: Final = 50
"""Operations of similar size whose median is predicted: one operation is mostly noise."""
_FEWEST_OPERATIONS: Final = 50
_NS: Final = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """Measured round trips that a model was not fitted to.

    Parameters
    ----------
    sizes : ndarray
        Shape (n,), bytes, whole numbers.
    half_round_trips_s, send_durations_s : ndarray
        Shape (n,), positive.
    """

    sizes: NDArray[np.int64]
    half_round_trips_s: Vector
    send_durations_s: Vector

    @classmethod
    def of_trace(cls, trace: Trace, keep: Mask | None = None) -> HeldOut:
        """Take the round trips of a trace.

        Parameters
        ----------
        trace : Trace
            Measured.
        keep : ndarray, optional
            Shape (operations of endpoint 0,): which of them, as those in one state of the host.
        """
        records = trace.endpoints[0].operations
        if keep is not None:
            records = records[keep]
        records = records[records["op"] == Operation.PINGPONG]
        return cls(
            records["size"].astype(np.int64),
            (records["end_ns"] - records["start_ns"]) * (_NS / 2),
            (records["mid_ns"] - records["start_ns"]) * _NS,
        )


@dataclass(frozen=True, slots=True)
class ErrorSummary:
    """Relative errors of the medians of bins; `bins` of them.

    Parameters
    ----------
    median, mean, p90 : float
        Over the bins.
    floor : float
        Median error that the best of all predictors would show here: what the medians of bins are off by
        themselves, because each is of 50 operations only.
    """

    bins: int
    median: float
    mean: float
    p90: float
    floor: float


@dataclass(frozen=True, slots=True)
class DecadeErrors:
    """Errors of the bins whose median size is in [low, 10 low) bytes; the first decade begins at 0."""

    low: int
    errors: ErrorSummary


@dataclass(frozen=True, slots=True)
class PredictionErrors:
    """How far a predictor is off.

    Parameters
    ----------
    predictor : str
        ``simulated``: our export in SimGrid. ``native``: our formula. ``nominal``: latency + size /
        bandwidth of the nominal link, ``defaults``: SMPI's own factors on it. ``tuned-defaults``: the same on
        a link that is right at the smallest and at the largest messages that were measured. Else a name of
        `simple_models`.
    response : str
        ``half_round_trip`` or ``send`` (only messages whose send returns early).
    overall : ErrorSummary
        Over all bins.
    decades : tuple of DecadeErrors
        By size.
    """

    predictor: str
    response: Response
    overall: ErrorSummary
    decades: tuple[DecadeErrors, ...]


@dataclass(frozen=True, slots=True)
class Validation:
    """Table of prediction errors.

    Parameters
    ----------
    model : str
        Name of the model.
    simgrid : str or None
        Version that simulated; ``None`` where nothing was simulated.
    operations : int
        Held-out round trips.
    errors : tuple of PredictionErrors
        Round trips of the profile ``rtt`` and, where the model has sends, of the profile ``os`` with the
        predictors ``simulated-os`` and ``native-os``.
    noise : tuple of NoiseDistance
        By noise class; empty without noise or simulation.
    native_gap : float or None
        Largest relative distance between the formula and SimGrid beyond the rounding of its stamps.
    """

    model: str
    simgrid: str | None
    operations: int
    errors: tuple[PredictionErrors, ...]
    noise: tuple[NoiseDistance, ...]
    native_gap: float | None

    def of(self, predictor: str, response: Response = "half_round_trip") -> PredictionErrors:
        """Give the row of a predictor.

        Raises
        ------
        KeyError
            If there is none.
        """
        for each in self.errors:
            if (each.predictor, each.response) == (predictor, response):
                return each
        raise KeyError(predictor)


def validate(
    model: CostModel,
    held_out: HeldOut,
    *,
    seen: HeldOut | None = None,
    nominal: NominalLink | None = None,
    simulates: bool = True,
    seed: int = 1,
) -> Validation:
    """Predict held-out round trips in every way, and say how far each is off.

    Parameters
    ----------
    model : CostModel
        Fitted to other data.
    held_out : HeldOut
        At least 50 round trips, in the model's state of the host.
    seen : HeldOut, optional
        What the model was fitted to: rivals are fitted to it too.
    nominal : NominalLink, optional
        The link as its maker states it; without it nothing is predicted from it.
    simulates : bool
        Whether SimGrid is asked too.
    seed : int
        Of the drawn noise.

    Raises
    ------
    AnalysisError
        If there are too few round trips.
    CapabilityError, RunError
        If SimGrid is missing, or fails.
    DataError
        If the model cannot be exported.
    """
    if len(held_out.sizes) < _FEWEST_OPERATIONS:
        message = f"{len(held_out.sizes)} held-out round trips; at least {_FEWEST_OPERATIONS} are needed"
        raise AnalysisError(message, hint="measure more round trips, in the state of the model")
    sizes = held_out.sizes
    errors = [
        prediction_errors(name, "half_round_trip", sizes, held_out.half_round_trips_s, predicted)
        for name, predicted in user_predictions(sizes, _known(seen), nominal).items()
    ]
    gaps: list[float] = []
    for profile in _profiles(model):
        simgrid = to_simgrid(model, profile)
        suffix = "" if profile == "rtt" else "-os"
        answers = {"native": (simgrid.half_round_trips(sizes), simgrid.send_durations(sizes))}
        if simulates:
            found = simulate(simgrid, sizes)
            answers["simulated"] = (found.half_round_trips_s, found.send_durations_s)
            apart = np.abs(found.half_round_trips_s - answers["native"][0]) - found.seconds_per_stamp / 2
            gaps.append(float(np.max(np.maximum(apart, 0) / answers["native"][0])))
        is_early = sizes < simgrid.detached_below
        for name, (half, send) in answers.items():
            errors.append(
                prediction_errors(name + suffix, "half_round_trip", sizes, held_out.half_round_trips_s, half)
            )
            if profile == "os" and np.count_nonzero(is_early) >= _FEWEST_OPERATIONS:
                early = (sizes[is_early], held_out.send_durations_s[is_early], send[is_early])
                errors.append(prediction_errors(name + suffix, "send", *early))
    noise = (
        noise_distances(model, sizes, held_out.half_round_trips_s, seed) if simulates and model.noise else ()
    )
    return Validation(
        f"{model.transport}-{model.state}",
        ".".join(map(str, simgrid_version())) if simulates else None,
        len(sizes),
        tuple(errors),
        noise,
        max(gaps, default=None),
    )


def prediction_errors(
    predictor: str,
    response: Response,
    sizes: NDArray[np.int64],
    measured_s: Vector,
    predicted_s: Vector,
) -> PredictionErrors:
    """Compare the medians of bins of 50 operations of similar size.

    Parameters
    ----------
    predictor, response : str
        Names, as `PredictionErrors` says.
    sizes, measured_s, predicted_s : ndarray
        Shape (n,), n at least 1; operation by operation.

    Returns
    -------
    PredictionErrors
        ``|predicted median / measured median - 1|`` of each bin; what is left of a full bin belongs to
        the last one. Half the relative distance between the medians of the two halves of a bin is spread
        like the error of the bin's own median: its median over the bins is the floor.

    Examples
    --------
    >>> sizes = np.arange(1, 201)
    >>> found = prediction_errors("line", "half_round_trip", sizes, np.full(200, 2.0), np.full(200, 2.1))
    >>> found.overall.bins, round(found.overall.median, 3), [each.low for each in found.decades]
    (4, 0.05, [10, 100])
    """
    order = np.argsort(sizes, kind="stable")
    count = max(len(order) // BIN_OPERATIONS, 1)
    bins = np.split(order, np.arange(1, count) * BIN_OPERATIONS)
    errors = np.array([abs(np.median(predicted_s[each]) / np.median(measured_s[each]) - 1) for each in bins])
    middle = np.array([np.median(sizes[each]) for each in bins])
    decade = np.where(middle < 10, 0, np.floor(np.log10(np.maximum(middle, 1))))  # noqa: PLR2004 - ten is a decade
    halves = np.array([_half_distance(measured_s[each] / predicted_s[each]) for each in bins])
    decades = tuple(
        DecadeErrors(int(10**each) if each else 0, _summary(errors[decade == each], halves[decade == each]))
        for each in np.unique(decade)
    )
    return PredictionErrors(predictor, response, _summary(errors, halves), decades)


def _half_distance(ratios: Vector) -> float:
    """Give half the relative distance between the medians of every second ratio and of the others."""
    if len(ratios) < 2:  # noqa: PLR2004 - one has no second half
        return 0.0
    one, other = np.median(ratios[::2]), np.median(ratios[1::2])
    return float(abs(one - other) / (one + other))


def _summary(errors: Vector, halves: Vector) -> ErrorSummary:
    median, p90 = np.quantile(errors, [0.5, 0.9])
    return ErrorSummary(
        len(errors), float(median), float(errors.mean()), float(p90), float(np.median(halves))
    )


def _profiles(model: CostModel) -> tuple[Profile, ...]:
    knows_threshold = model.detached_bytes is not None or model.asynchronous_bytes is not None
    return ("rtt", "os") if knows_threshold and model.curves.get("send") else ("rtt",)


def _known(seen: HeldOut | None) -> tuple[Vector, Vector] | None:
    if seen is None or len(seen.sizes) < _FEWEST_OPERATIONS:
        return None
    return seen.sizes.astype(np.float64), seen.half_round_trips_s
