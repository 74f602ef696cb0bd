"""Findings on the way to a model: calls without a message, what messages owe to the one before, outliers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.model import Estimate
from steelyard.studies.analysis_parts import finding, finite
from steelyard.studies.communication.size_text import size_range

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.model import Finding
    from steelyard.studies.communication.model.call_costs import CallCost
    from steelyard.studies.communication.model.carry_over import AfterSize, CarryOver
    from steelyard.studies.communication.model.fitted import Fitted
    from steelyard.studies.communication.model.outliers import Outliers
    from steelyard.studies.communication.model.rivals import PredictionError

LEVEL: Final = 0.95
CALLS: Final = {
    "test": "a test whether a request is complete",
    "iprobe": "a look for a message",
    "wtime": "a reading of the clock",
}
CROSSED: Final = "each replication predicted from the others; medians of bins of 50 round trips"


def detail_findings(fitted: Fitted) -> Iterator[Finding]:
    """Give calls, carry-over, outliers and crossed predictions of one model."""
    for call in fitted.details.calls:
        yield _call(fitted, call)
    for carried in fitted.details.carry_over:
        yield _carried(fitted, carried)
        for after in carried.after:
            yield _after(fitted, carried, after)
    for outliers in fitted.details.outliers:
        yield _outliers(fitted, outliers)
    for error in fitted.details.errors:
        yield _crossed(fitted, error)


def _call(fitted: Fitted, call: CallCost) -> Finding:
    return finding(
        "call",
        {**fitted.subject, "call": call.name},
        "no cost claimed" if call.reason else "measured",
        estimates={
            "cost": Estimate(
                call.cost_s,
                "s",
                "median less the cost of a stamp; order statistics",
                call.low_s,
                call.high_s,
                LEVEL,
                fitted.replications,
                call.count,
            )
        },
        facts={"text": CALLS.get(call.name, call.name), "reason": call.reason},
        evidence=fitted.evidence(f"cost of {CALLS.get(call.name, call.name)}"),
    )


def _carried(fitted: Fitted, carried: CarryOver) -> Finding:
    largest = max(carried.after, key=lambda each: each.ratio)
    smallest = min(carried.after, key=lambda each: each.ratio)
    return finding(
        "carry_over",
        {**fitted.subject, "sizes": _range(carried.low, carried.high)},
        "measured",
        estimates={
            "explained": Estimate(
                100 * carried.explained, "percent", "adjusted R2 of log cost on the class of the size before"
            ),
            "spread": Estimate(
                largest.ratio / smallest.ratio, "ratio", "medians after the costliest and the cheapest class"
            ),
        },
        facts={
            "operations": carried.count,
            "costliest": _range(largest.low, largest.high),
            "cheapest": _range(smallest.low, smallest.high),
            "low_bytes": carried.low,
        },
        evidence=fitted.evidence("measured over the curve, by the size of the message before"),
    )


def _after(fitted: Fitted, carried: CarryOver, after: AfterSize) -> Finding:
    return finding(
        "carry_over_class",
        {
            **fitted.subject,
            "sizes": _range(carried.low, carried.high),
            "after": _range(after.low, after.high),
        },
        "measured",
        estimates={
            "ratio": Estimate(
                after.ratio,
                "ratio",
                "median of measured over the curve; order statistics",
                finite(after.ratio_low),
                finite(after.ratio_high),
                LEVEL,
                fitted.replications,
                after.count,
            )
        },
        facts={"low_bytes": carried.low, "after_low_bytes": after.low},
        evidence=fitted.evidence("measured over the curve, by the size of the message before"),
    )


def _outliers(fitted: Fitted, outliers: Outliers) -> Finding:
    shared = ", ".join(outliers.shared)
    tests = {
        "time": outliers.time_p,
        "order": outliers.order_p,
        "size": outliers.size_p,
        "previous": outliers.previous_p,
    }
    return finding(
        "outliers",
        {**fitted.subject, "predicate": outliers.name},
        "share something" if shared else "share nothing that could be shown",
        estimates={
            "share": Estimate(
                100 * outliers.count / outliers.of, "percent", "counted", measurements=outliers.of
            )
        },
        facts={
            "count": outliers.count,
            "of": outliers.of,
            "among": outliers.among,
            "shared": shared,
            "following_percent": finite(100 * outliers.following),
            **{f"{name}_p": finite(value) for name, value in tests.items()},
        },
        evidence=fitted.evidence("operations that a named predicate holds for; labels, nothing is dropped"),
    )


def _crossed(fitted: Fitted, error: PredictionError) -> Finding:
    def percent(value: float) -> Estimate:
        return Estimate(100 * value, "percent", CROSSED, units=error.bins)

    return finding(
        "crossed_prediction",
        {**fitted.subject, "predictor": error.model},
        "compared",
        estimates={
            "median": percent(error.median),
            "mean": percent(error.mean),
            "p90": percent(error.p90),
        },
        facts={"bins": error.bins},
        evidence=fitted.evidence(CROSSED),
    )


def _range(low: float, high: float) -> str:
    return size_range(low, None if high == float("inf") else high)
