"""Figures of the communication report: curves, noise, the order of measuring, errors of predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.model.cost_model import ROUND_TRIP
from steelyard.report.charts.theme import assign_colours
from steelyard.report.dataset import Dataset, dataset
from steelyard.report.page import Figure
from steelyard.studies.communication.findings.model import ENVELOPE
from steelyard.studies.communication.labels import labelled
from steelyard.studies.communication.model.rivals import MEASURED_ENDS, latency_bandwidth, three_lines
from steelyard.studies.communication.report.charts import (
    cost_curves,
    noise_quantiles,
    prediction_errors,
    sequence,
)
from steelyard.studies.communication.size_text import size_range

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.model import FindingSet
    from steelyard.studies.communication.report.data import Shown

    Row = dict[str, str | int | float | bool | None]

MOST_POINTS: Final = 1500
"""Round trips drawn per transport: more hide each other."""

CURVE_POINTS: Final = 160
EMPTY_AT: Final = 0.5
"""Where a message without a byte stands on an axis that has no zero."""

S_TO_US: Final = 1e6
MODEL: Final = "model"
LATENCY_AND_BANDWIDTH: Final = MEASURED_ENDS
THREE_LINES: Final = "three least-squares lines"
LOWER_ENVELOPE: Final = "lower envelope (5 %)"
PREFERRED: Final = {
    MODEL: "#0072B2",
    LATENCY_AND_BANDWIDTH: "#B98C00",
    THREE_LINES: "#8C6BB1",
    LOWER_ENVELOPE: "#009E73",
}


def curve_figure(shown: Sequence[Shown], findings: FindingSet) -> Figure | None:
    """Give time over size with the model, its rivals and the boundaries."""
    if not shown:
        return None
    points: list[Row] = []
    curves: list[Row] = []
    for each in shown:
        points += _points(each)
        curves += [*_curves(each), *_envelope(each, findings)]
    bands = [row for each in shown for row in _band(each)]
    boundaries: list[Row] = [
        {
            "transport": labelled(finding),
            "size": max(finding.estimates["at"].value or 0.0, EMPTY_AT),
            "low": finding.estimates["at"].low,
            "high": finding.estimates["at"].high,
            "kind": finding.verdict,
            "recurrence": float(finding.facts["recurrence_percent"] or 0.0) / 100,
        }
        for finding in findings.of("boundary")
    ]
    names = list(dict.fromkeys(str(row["model"]) for row in curves))
    timed = list(dict.fromkeys(each.model.timed for each in shown))
    points_text = "single round trips, halved" if timed == [ROUND_TRIP] else "the times of the recordings"
    return Figure(
        id="cost_of_a_message",
        title=f"What a message costs: {' or '.join(timed)} over its size",
        caption=f"Grey points are {points_text} (an even selection where there are many); "
        "lines are the model and its rivals; between the edges of the band lie nine of ten messages, by the "
        "model. Vertical lines are boundaries of the model: at a solid one "
        "something switches, at a dashed one the model only follows a bend. Click the legend to pick a "
        "curve.",
        alternative="Times over message size on logarithmic axes, with fitted pieces over them",
        spec=cost_curves(
            assign_colours(names, PREFERRED), [each.label for each in shown], has_band=bool(bands)
        ),
        datasets={
            "points": dataset(points),
            "curves": dataset(curves),
            "bands": dataset(bands) if bands else _empty("transport", "size", "low_us", "high_us", "part"),
            "boundaries": dataset(boundaries) if boundaries else _empty(*_BOUNDARY),
        },
    )


_BOUNDARY: Final = ("transport", "size", "low", "high", "kind", "recurrence")


def _empty(*names: str) -> Dataset:
    return Dataset(dict.fromkeys(names, ()))


def _band(shown: Shown) -> list[Row]:
    """Give between which times nine of ten messages lie: the model times the noise of their sizes."""
    fitted = shown.trips.where(~shown.is_held_out)
    low, high = max(float(fitted.size.min()), EMPTY_AT), float(fitted.size.max())
    rows: list[Row] = []
    parts = [(piece, noise) for piece in shown.model.curves["delay"] for noise in shown.model.noise]
    for number, (piece, noise) in enumerate(parts):
        begin = max(piece.low, noise.low, low)
        end = min([high, *(each.high for each in (piece, noise) if each.high is not None)])
        if begin >= end:
            continue
        least, most = np.interp((0.05, 0.95), np.linspace(0, 1, len(noise.quantiles)), noise.quantiles)
        for size in np.geomspace(begin * (1 + 1e-9), end, CURVE_POINTS // 8):
            seconds = piece.at(float(size))
            rows.append(
                {
                    "transport": shown.label,
                    "size": float(size),
                    "low_us": float(least) * seconds * S_TO_US,
                    "high_us": float(most) * seconds * S_TO_US,
                    "part": number,
                }
            )
    return [row for row in rows if float(row["low_us"] or 0) > 0]


def _points(shown: Shown) -> list[Row]:
    order = np.argsort(shown.trips.size, kind="stable")
    step = -(-order.size // MOST_POINTS)
    return [
        {
            "transport": shown.label,
            "size": max(float(shown.trips.size[at]), EMPTY_AT),
            "time_us": float(shown.trips.half_s[at]) * S_TO_US,
            "part": shown.part(int(at)),
        }
        for at in order[::step]
    ]


def _curves(shown: Shown) -> list[Row]:
    fitted = shown.trips.where(~shown.is_held_out)
    low, high = float(fitted.size.min()), float(fitted.size.max())
    grid = np.geomspace(max(low, 1.0), max(high, 2.0), CURVE_POINTS)
    pieces = shown.model.curves["delay"]
    sizes = fitted.size.astype(np.float64)
    rows: list[Row] = []
    # Each piece is drawn up to its own ends, so that a switch shows as a gap and not as a slope.
    for number, piece in enumerate(pieces):
        begin = max(piece.low, low, EMPTY_AT)
        end = high if piece.high is None else min(piece.high, high)
        inner = grid[(grid > begin) & (grid < end)]
        rows += [
            _curve_row(shown, MODEL, float(size), piece.at(float(size)), number)
            for size in (begin * (1 + 1e-9), *inner, end)
        ]
    for name, predictor in (
        (LATENCY_AND_BANDWIDTH, latency_bandwidth(sizes, fitted.half_s)),
        (THREE_LINES, three_lines(sizes, fitted.half_s)),
    ):
        rows += [
            _curve_row(shown, name, float(size), float(seconds), 0)
            for size, seconds in zip(grid, predictor(grid), strict=True)
        ]
    return rows


def _envelope(shown: Shown, findings: FindingSet) -> list[Row]:
    """Draw the lower envelope from its coefficients."""
    fitted = shown.trips.where(~shown.is_held_out)
    low, high = max(float(fitted.size.min()), EMPTY_AT), float(fitted.size.max())
    rows: list[Row] = []
    for number, finding in enumerate(findings.of("coefficient")):
        if finding.subject["curve"] != ENVELOPE or labelled(finding) != shown.label:
            continue
        begin = max(_number(finding.facts["low_bytes"], low), low)
        end = min(_number(finding.facts["high_bytes"], high), high)
        kind, base, slope = finding.verdict, finding.estimates["base"].value, finding.estimates["slope"].value
        for size in np.geomspace(begin * (1 + 1e-9), max(end, begin), CURVE_POINTS // 8):
            grown = size ** (slope or 0.0) * (base or 0.0)
            seconds = grown if kind == "power" else (base or 0.0) + (slope or 0.0) * size
            rows.append(_curve_row(shown, LOWER_ENVELOPE, float(size), float(seconds), number))
    return rows


def _number(value: object, otherwise: float) -> float:
    return float(value) if isinstance(value, int | float) else otherwise


def _curve_row(shown: Shown, name: str, size: float, seconds: float, piece: int) -> Row:
    return {
        "transport": shown.label,
        "model": name,
        "size": size,
        "time_us": seconds * S_TO_US if seconds > 0 else None,
        "piece": piece,
    }


def noise_figure(shown: Sequence[Shown]) -> Figure | None:
    """Give the quantiles of the noise, by class of size."""
    rows: list[Row] = []
    for each in shown:
        for noise in each.model.noise:
            last = len(noise.quantiles) - 1
            rows += [
                {
                    "transport": each.label,
                    "sizes": size_range(noise.low, noise.high),
                    "percentile": 100 * place / last,
                    "ratio": value,
                }
                for place, value in enumerate(noise.quantiles)
                if value > 0
            ]
    if not rows:
        return None
    names = list(dict.fromkeys(str(row["sizes"]) for row in rows))
    return Figure(
        id="noise_quantiles",
        title="Noise: measured time over the model, by class of size",
        caption="At 50 % half of the messages lie below; at 1 the model is met. A line that "
        "turns up at its right end is a heavy tail: few messages that take many times as long.",
        alternative="Quantiles of the ratio of measured time and model, a line per class of size",
        spec=noise_quantiles(assign_colours(names, {}), [each.label for each in shown]),
        datasets={"quantiles": dataset(rows)},
    )


def sequence_figure(shown: Sequence[Shown]) -> Figure | None:
    """Give measured over model in the order of measuring."""
    rows: list[Row] = []
    for each in shown:
        ratio = each.ratio
        step = -(-ratio.size // MOST_POINTS)
        rows += [
            {
                "transport": each.label,
                "position": at,
                "ratio": float(ratio[at]),
                "state": each.part(at),
            }
            for at in range(0, ratio.size, step)
        ]
    if not rows:
        return None
    names = list(dict.fromkeys(str(row["state"]) for row in rows))
    return Figure(
        id="order_of_measuring",
        title="Measured over model in the order of measuring",
        caption="A band around 1 that stays level is a host that did not change. A step is a "
        "change of its state, a cloud above is a disturbance.",
        alternative="Ratio of measured time and model over the order of measuring, coloured by replication",
        spec=sequence(assign_colours(names, {}), [each.label for each in shown]),
        datasets={"steps": dataset(rows)},
    )


def error_figure(findings: FindingSet) -> Figure | None:
    """Give the errors of predictions of the held-out replication, by decade of size."""
    chosen = [
        each
        for each in findings.of("prediction_by_size")
        if each.subject["response"] == "half_round_trip" and not each.subject["predictor"].endswith("sends")
    ]
    if not chosen:
        return None
    rows: list[Row] = [
        {
            "transport": labelled(finding),
            "predictor": finding.subject["predictor"],
            "sizes": finding.subject["sizes"],
            "order": int(finding.facts["low_bytes"] or 0),
            "error_percent": max(finding.estimates["median"].value or 0.0, 0.01),
            "count": finding.estimates["median"].measurements,
        }
        for finding in chosen
    ]
    names = list(dict.fromkeys(str(row["predictor"]) for row in rows))
    return Figure(
        id="prediction_errors",
        title="Error of predicting a replication that no model has seen",
        caption="Lower is better; each point is the median over bins of 50 round trips of "
        "neighbouring sizes. The axis is logarithmic.",
        alternative="Median errors by decade of size, a colour and a shape per predictor",
        spec=prediction_errors(
            assign_colours(names, PREFERRED),
            list(dict.fromkeys(str(row["transport"]) for row in rows)),
            list(dict.fromkeys(str(row["sizes"]) for row in rows)),
        ),
        datasets={"errors": dataset(rows)},
    )
