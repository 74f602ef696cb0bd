"""Findings about predictions: a replication no model was fitted to, and what models and rivals say of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.errors import AnalysisError, DataError
from steelyard.model import Estimate, Evidence
from steelyard.studies.analysis_parts import finding
from steelyard.studies.communication.findings.link import link_facts
from steelyard.studies.communication.fixtures import options_of
from steelyard.studies.communication.model.rivals import MEASURED_ENDS
from steelyard.studies.communication.places import nominal_of
from steelyard.studies.communication.simulation.noise_distance import LEVEL
from steelyard.studies.communication.simulation.validation import BIN_OPERATIONS, HeldOut, validate
from steelyard.studies.communication.size_text import size_range
from steelyard.studies.communication.transport.link_options import NominalLink

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from steelyard.model import Finding, Plan
    from steelyard.studies.communication.cells import CellRecord
    from steelyard.studies.communication.model.fitted import Fitted
    from steelyard.studies.communication.operations import Operations
    from steelyard.studies.communication.recorded import RecordedRun
    from steelyard.studies.communication.simulation.noise_distance import QuantileRatio
    from steelyard.studies.communication.simulation.validation import (
        DecadeErrors,
        PredictionErrors,
        Validation,
    )

NAMES: Final = {
    "native": "model",
    "native-os": "model with sends",
    MEASURED_ENDS: MEASURED_ENDS,
    "least-squares line": "least-squares line",
    "three least-squares lines": "three least-squares lines",
    "2^k interpolation": "2^k interpolation",
    "nominal": "latency + size / bandwidth of the nominal link",
    "defaults": "SimGrid's default factors on the nominal link",
    "tuned-defaults": "SimGrid's default factors, link tuned to measurements",
    "simulated": "SimGrid with the model",
    "simulated-os": "SimGrid with the model and sends",
}
"""Predictors as the report names them, in its order."""

SEND: Final = "duration of a send"
SMIRNOV: Final = "Kolmogorov-Smirnov distance of measured and simulated ratios to the curve"
METHOD: Final = f"medians of {BIN_OPERATIONS} round trips of neighbouring sizes"


HALVES: Final = "half the distance between the medians of the halves of a bin; median over the bins"


def held_out_of(record: CellRecord, run: RecordedRun) -> HeldOut:
    """Give the round trips of a held-out run in its state that nothing disturbed."""
    return _round_trips(record.operations.where(record.rows_of(run)))


def seen_of(record: CellRecord, state: str) -> HeldOut:
    """Give the round trips that the model of a state is fitted to."""
    fitted = [record.runs.index(run) for run in record.fitted(state)]
    is_seen = np.isin(record.operations.run, fitted) & record.usable(state)
    return _round_trips(record.operations.where(is_seen))


def _round_trips(rows: Operations) -> HeldOut:
    trips = rows.where(rows.half_s > 0)
    return HeldOut(trips.size, trips.half_s, trips.send_s)


def nominal_link(run: RecordedRun, plan: Plan) -> NominalLink | None:
    """Give what the network of a run is called: as it was made, or as the user stated it."""
    truth = link_facts(run).get("truth") or {}
    rate, delay = truth.get("rate_bits_per_s"), truth.get("delay_ns")
    if isinstance(rate, int | float) and isinstance(delay, int | float) and min(rate, delay) > 0:
        return NominalLink(rate / 8, delay / 1e9)
    return nominal_of(options_of(plan))


def prediction_findings(
    fitted: Fitted, record: CellRecord, plan: Plan, simulated: Callable[[RecordedRun], Validation | None]
) -> Iterator[Finding]:
    """Judge a model by the held-out replications of its cell and state."""
    for run in record.held_out(fitted.model.state):
        try:
            found = simulated(run) or validate(
                fitted.model,
                held_out_of(record, run),
                seen=seen_of(record, fitted.model.state),
                nominal=nominal_link(run, plan),
                simulates=False,
            )
        except (AnalysisError, DataError):
            continue  # too few round trips in this state: no prediction is judged
        yield from validation_findings(fitted.subject, run, found)
        yield from _noise_distances(fitted.subject, run, found)
        if found.native_gap is not None:
            yield _fidelity(fitted.subject, run, found)


def validation_findings(subject: dict[str, str], run: RecordedRun, found: Validation) -> Iterator[Finding]:
    """Give one finding per predictor, response and decade of size."""
    order = list(NAMES)
    for errors in sorted(found.errors, key=lambda each: (each.response, order.index(each.predictor))):
        about = {
            **subject,
            "replication": str(run.block + 1),
            "response": errors.response,
            "predictor": NAMES[errors.predictor],
        }
        yield _overall(about, errors, found, run)
        for decade in errors.decades:
            yield _by_decade(about, decade, run)


def _noise_distances(subject: dict[str, str], run: RecordedRun, found: Validation) -> Iterator[Finding]:
    for each in found.noise:
        low = -1.0 if each.low is None else each.low
        yield finding(
            "noise_distance",
            {**subject, "replication": str(run.block + 1), "sizes": size_range(low, each.high)},
            each.verdict,
            estimates={
                "distance": Estimate(each.distance, "distance", SMIRNOV, measurements=each.operations),
                "without_noise": Estimate(
                    each.noiseless_distance, "distance", SMIRNOV, measurements=each.operations
                ),
                **{f"p{one.percentile}": _quantile(one, each.operations) for one in each.quantiles},
            },
            facts={"low_bytes": low},
            evidence=Evidence(run.place, {"op": "pingpong"}, ("size", "end_ns"), SMIRNOV),
        )


def _quantile(found: QuantileRatio, operations: int) -> Estimate:
    has_limits = found.high is not None
    return Estimate(
        found.ratio,
        "ratio",
        f"simulated over measured {found.percentile} % quantile; exact limits of both",
        low=found.low if has_limits else None,
        high=found.high,
        level=LEVEL if has_limits else None,
        measurements=operations,
    )


def _fidelity(subject: dict[str, str], run: RecordedRun, found: Validation) -> Finding:
    return finding(
        "fidelity",
        {**subject, "replication": str(run.block + 1)},
        "compared",
        estimates={
            "gap": Estimate(
                100 * (found.native_gap or 0.0), "percent", "largest distance of SimGrid and the formula"
            )
        },
        facts={"simgrid": found.simgrid, "operations": found.operations},
        evidence=Evidence("simulations", {}, ("native_gap",), "largest relative distance"),
    )


def _overall(about: dict[str, str], errors: PredictionErrors, found: Validation, run: RecordedRun) -> Finding:
    overall = errors.overall
    return finding(
        "prediction",
        about,
        "compared",
        estimates={
            "median": _percent(overall.median, overall.bins, found.operations),
            "mean": _percent(overall.mean, overall.bins, found.operations),
            "p90": _percent(overall.p90, overall.bins, found.operations),
            "floor": Estimate(
                100 * overall.floor, "percent", HALVES, units=overall.bins, measurements=found.operations
            ),
        },
        facts={
            "bins": overall.bins,
            "operations": found.operations,
            "response_text": SEND if errors.response == "send" or run.trace is None else run.trace.timed_as,
        },
        evidence=Evidence(run.place, {"op": "pingpong"}, ("size", "start_ns", "end_ns"), METHOD),
    )


def _by_decade(about: dict[str, str], decade: DecadeErrors, run: RecordedRun) -> Finding:
    high = 10 * max(decade.low, 1) - 1
    errors = decade.errors
    operations = errors.bins * BIN_OPERATIONS
    return finding(
        "prediction_by_size",
        {**about, "sizes": f"{decade.low:,} to {high:,} B".replace(",", " ")},
        "compared",
        estimates={
            "median": _percent(errors.median, errors.bins, operations),
            "p90": _percent(errors.p90, errors.bins, operations),
        },
        facts={"low_bytes": decade.low, "bins": errors.bins},
        evidence=Evidence(run.place, {"op": "pingpong"}, ("size", "start_ns", "end_ns"), METHOD),
    )


def _percent(share: float, bins: int, operations: int) -> Estimate:
    return Estimate(100 * share, "percent", METHOD, units=bins, measurements=operations)
