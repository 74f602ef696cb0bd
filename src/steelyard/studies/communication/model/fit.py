"""From traces of one transport to the model of what its messages cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.cost_curve.boundaries import Resampling, judge_boundaries
from steelyard.analyse.cost_curve.curve import envelope, fit_curve
from steelyard.analyse.cost_curve.median_line import predict
from steelyard.analyse.cost_curve.piece_search import FEWEST_RECORDED, CurveOptions, sorted_costs
from steelyard.errors import AnalysisError
from steelyard.model.cost_model import CostModel
from steelyard.studies.communication.model.call_costs import call_costs
from steelyard.studies.communication.model.carry_over import carry_over
from steelyard.studies.communication.model.noise_classes import noise_classes
from steelyard.studies.communication.model.outliers import find_outliers
from steelyard.studies.communication.model.regimes import regimes_of
from steelyard.studies.communication.model.rivals import held_out_errors
from steelyard.studies.communication.operations import joined, operations_of
from steelyard.studies.communication.trace import Operation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from steelyard.analyse.cost_curve.boundaries import BoundaryEvidence
    from steelyard.analyse.cost_curve.known_places import KnownPlace
    from steelyard.model.cost_model import CostPiece
    from steelyard.studies.communication.model.call_costs import CallCost
    from steelyard.studies.communication.model.carry_over import CarryOver
    from steelyard.studies.communication.model.outliers import Outliers
    from steelyard.studies.communication.model.regimes import Regimes
    from steelyard.studies.communication.model.rivals import PredictionError
    from steelyard.studies.communication.operations import Clocks, Operations
    from steelyard.studies.communication.trace import Trace

    Vector = NDArray[np.float64]

RESAMPLES: Final = 50
FEWEST_SCATTERED: Final = 20
"""Messages from which on their scatter is told: of fewer none lies outside of 90 %."""

MOST_WITHHELD: Final = 0.01
"""Share of one-way times that may be missing from their curve."""

_MANY: Final = 1 << 32


@dataclass(frozen=True, slots=True)
class FitOptions:
    """What is known beforehand, and how much is computed.

    Parameters
    ----------
    transport : str or None
        Its name; by default what the traces call it.
    state : str or None
        State of the host whose operations are fitted; by default the one with the most.
    known : tuple of KnownPlace
        Where the cost may change: limits that were measured or are declared, the surest first.
    bandwidth_bytes_per_s, latency_s : float or None
        Of the nominal link; by default of the largest and the smallest message.
    asynchronous_bytes, detached_bytes : int or None
        As `CostModel` keeps them.
    curve : CurveOptions
        How curves are searched.
    resamples, seed : int
        Of the boundaries; seed also of the noise laws.
    """

    transport: str | None = None
    state: str | None = None
    known: tuple[KnownPlace, ...] = ()
    bandwidth_bytes_per_s: float | None = None
    latency_s: float | None = None
    asynchronous_bytes: int | None = None
    detached_bytes: int | None = None
    curve: CurveOptions = CurveOptions()  # noqa: RUF009 - frozen
    resamples: int = RESAMPLES
    seed: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class FitDetails:
    """What was found on the way to a model.

    Parameters
    ----------
    operations : Operations
        Of all traces.
    is_used : ndarray of bool
        Shape (n,): whether the model rests on the operation.
    clocks : tuple of Clocks
        Of each trace.
    regimes : Regimes
        States of the host and disturbances.
    boundaries : tuple of BoundaryEvidence
        Of the curve of delays.
    calls : tuple of CallCost
        Of calls without a message.
    carry_over : tuple of CarryOver
        What messages owe to the ones before.
    outliers : tuple of Outliers
        Named predicates over the round trips, disturbed ones included.
    errors : tuple of PredictionError
        Of the pieces and of rival models, on round trips they have not seen.
    envelope : tuple of CostPiece
        Lower envelope of the delays: below it are 5 % of them.
    """

    operations: Operations
    is_used: NDArray[np.bool_]
    clocks: tuple[Clocks, ...]
    regimes: Regimes
    boundaries: tuple[BoundaryEvidence, ...]
    calls: tuple[CallCost, ...]
    carry_over: tuple[CarryOver, ...]
    outliers: tuple[Outliers, ...]
    errors: tuple[PredictionError, ...]
    envelope: tuple[CostPiece, ...]


def model_of(traces: Sequence[Trace], options: FitOptions | None = None) -> tuple[CostModel, FitDetails]:
    """Fit the model of one transport to traces of one plan.

    Parameters
    ----------
    traces : sequence of Trace
        At least one; each is a replication.

    Returns
    -------
    CostModel, FitDetails
        The same for the same traces and options.

    Raises
    ------
    AnalysisError
        If there are too few round trips for a curve, or none in the state that is asked for.
    """
    used = for_recordings(traces, options or FitOptions())
    # The scatter of means is not that of messages.
    is_single = not used.curve.is_of_means
    seen = measured(traces, used)
    half = seen.half
    delay, evidence = judged_delay(half, used)
    switches = [each.boundary.at for each in evidence if each.boundary.kind == "protocol"]
    rows = seen.table.where(seen.is_used)
    calls = call_costs(traces, rows)
    calls_curves = _calls(rows, used)
    largest = float(half.size.max())
    ratio = half.half_s / predict(delay, half.size)
    in_state = seen.table.where((seen.regimes.state == seen.state) & (seen.table.half_s > 0))
    model = CostModel(
        transport=used.transport or str(traces[0].endpoints[0].header.get("transport", "unknown")),
        state=seen.state,
        curves={"delay": delay, **{name: each.pieces for name, each in calls_curves.items()}},
        bandwidth_bytes_per_s=used.bandwidth_bytes_per_s or _bandwidth(delay, largest),
        latency_s=used.latency_s or float(predict(delay, [max(float(half.size.min()), 1.0)])[0]),
        costs_s={each.name: each.cost_s for each in calls if not each.reason},
        asynchronous_bytes=used.asynchronous_bytes,
        detached_bytes=used.detached_bytes,
        boundaries=tuple(each.boundary for each in evidence),
        noise=noise_classes(half.size.astype(np.float64), ratio, switches, seed=used.seed)
        if is_single and len(half) >= FEWEST_SCATTERED
        else (),
        timed=traces[0].timed_as,
        measured_bytes={
            "delay": (int(half.size.min()), int(half.size.max())),
            **{name: each.measured_bytes for name, each in calls_curves.items()},
        },
    )
    return model, FitDetails(
        operations=seen.table,
        is_used=seen.is_used,
        clocks=seen.clocks,
        regimes=seen.regimes,
        boundaries=evidence,
        calls=calls,
        carry_over=carry_over(half.size, half.previous_size, ratio) if is_single else (),
        outliers=find_outliers(in_state, in_state.half_s / predict(delay, in_state.size), model.timed)
        if is_single
        else (),
        errors=held_out_errors(half, used.curve, used.known),
        envelope=envelope(half.size, half.half_s, delay) if is_single else (),
    )


def for_recordings(traces: Sequence[Trace], options: FitOptions) -> FitOptions:
    """Give the options that recordings are fitted with: nothing more can be measured; means scatter less."""
    if not traces or not all(trace.is_recording for trace in traces):
        return options
    is_of_means = any(trace.repetitions is not None for trace in traces)
    return replace(options, curve=replace(options.curve, is_of_means=is_of_means, fewest=FEWEST_RECORDED))


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """Operations of some traces, and those of one state of the host.

    Parameters
    ----------
    table : Operations
        All.
    clocks : tuple of Clocks
        Of each trace.
    regimes : Regimes
        States and disturbances.
    state : str
        The chosen one.
    is_used : ndarray of bool
        Shape (n,): the operations in it that nothing disturbed.
    half : Operations
        The round trips among them.
    """

    table: Operations
    clocks: tuple[Clocks, ...]
    regimes: Regimes
    state: str
    is_used: NDArray[np.bool_]
    half: Operations


def measured(traces: Sequence[Trace], options: FitOptions) -> Measured:
    """Read traces and choose the operations of one state.

    Raises
    ------
    AnalysisError
        If there is no trace, no operation in the state that is asked for, or too few round trips for a curve.
    """
    if not traces:
        message = "no trace is given"
        raise AnalysisError(message, hint="run the study first")
    tables, clocks = zip(*(operations_of(trace, run=run) for run, trace in enumerate(traces)), strict=True)
    table = joined(tables)
    regimes = regimes_of(traces, table)
    state = options.state or next(iter(regimes.states))
    if state not in regimes.states:
        message = f"no operation was measured in the state `{state}`; measured: {', '.join(regimes.states)}"
        raise AnalysisError(message, hint="name one of these states")
    is_used = regimes.usable(state)
    half = table.where(is_used & (table.half_s > 0))
    fewest = options.curve.fewest
    if len(half) < fewest:
        message = f"{len(half)} round trips are too few for a curve of delays; at least {fewest} are needed"
        hint = "add more `pingpong` operations to the plan"
        raise AnalysisError(message, hint=hint, code="analysis.too-few")
    return Measured(table, clocks, regimes, state, is_used, half)


def judged_delay(
    half: Operations, options: FitOptions
) -> tuple[tuple[CostPiece, ...], tuple[BoundaryEvidence, ...]]:
    """Fit the curve of delays and judge its boundaries."""
    delay = fit_curve(half.size, half.half_s, options.curve, options.known)
    order = np.lexsort((half.half_s, half.size))
    groups = half.run[order] * _MANY + half.block[order]
    plan = Resampling(groups, half.run[order], options.resamples, options.seed)
    data = sorted_costs(half.size, half.half_s, options.curve.fewest)
    return delay, judge_boundaries(data, delay, plan, options.curve, options.known)


@dataclass(frozen=True, slots=True)
class _Curve:
    """A curve, and the smallest and largest size it was fitted to."""

    pieces: tuple[CostPiece, ...]
    measured_bytes: tuple[int, int]


def _curve(rows: Operations, seconds: Vector, options: FitOptions) -> _Curve | None:
    kept = np.isfinite(seconds) & (seconds > 0)
    if int(kept.sum()) < options.curve.fewest:
        return None
    sizes = rows.size[kept]
    pieces = fit_curve(sizes, seconds[kept], options.curve, options.known)
    return _Curve(pieces, (int(sizes.min()), int(sizes.max())))


def _calls(rows: Operations, options: FitOptions) -> dict[str, _Curve]:
    """Fit what a send, a non-blocking send, a late receive and a one-way message cost.

    A send is that of a round trip if there are any, else of a message that was only sent, else of one whose
    receive was timed too.
    """
    rounds, sends = rows.where(rows.op == Operation.PINGPONG), rows.where(rows.op == Operation.SEND)
    isends, receives = rows.where(rows.op == Operation.ISEND), rows.where(rows.op == Operation.RECV)
    streams = rows.where((rows.op == Operation.STREAM) & np.isfinite(rows.receive_s))
    send = next(
        (found for each in (rounds, sends, streams) if (found := _curve(each, each.send_s, options))), None
    )
    curves = {
        "send": send,
        "isend": _curve(isends, isends.send_s, options),
        "recv": _curve(receives, receives.receive_s, options),
        "one_way": _one_way(rows.where(rows.op == Operation.STREAM), options),
    }
    return {name: found for name, found in curves.items() if found is not None}


def _one_way(streams: Operations, options: FitOptions) -> _Curve | None:
    """Fit one-way times, unless the shortest were withheld: those that are left would be too long."""
    withheld = float(np.mean(np.isnan(streams.one_way_s))) if len(streams) else 1.0
    return None if withheld > MOST_WITHHELD else _curve(streams, streams.one_way_s, options)


def _bandwidth(delay: tuple[CostPiece, ...], largest: float) -> float:
    """Give the bytes per second that one more byte of the largest message costs."""
    step = max(largest / 2, 1.0)
    low, high = predict(delay, [largest - step, largest])
    last = delay[-1]
    slope = last.slope if last.kind == "line" and last.slope > 0 else float(high - low) / step
    return 1.0 / slope if slope > 0 else max(largest, 1.0) / float(high)
