"""Charts of the cost of messages: time over size with models over it, noise, host states, errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.report.charts.parts import (
    SCHEMA,
    coloured,
    dashed,
    faded_unless_selected,
    legend_selection,
    log_axis,
    names_below,
    numeric,
    only_chosen,
    panel_header,
    selector,
    shaped,
    tip,
)
from steelyard.report.charts.theme import HIGHLIGHT, MUTED, PALETTE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from steelyard.report.dataset import Json

WIDTH: Final = 820
CHOSEN: Final = "chosen_transport"
PANEL_WIDTH: Final = 230
PANELS_IN_A_ROW: Final = 3


def cost_curves(
    colours: Mapping[str, str], transports: Sequence[str], *, has_band: bool = True
) -> dict[str, Json]:
    """Give time over size on logarithmic axes: what was measured, the model, its rivals, boundaries.

    Parameters
    ----------
    colours : mapping
        Colour of each curve.
    transports : sequence of str
        Options of the menu.
    has_band : bool
        Whether any model has noise.

    Returns
    -------
    dict
        Reads the datasets ``points``: ``transport, size, time_us, part``; ``curves``: ``transport, model,
        size, time_us, piece``; ``bands``: ``transport, size,
        low_us, high_us, part``; ``boundaries``: ``transport, size, low, high, kind, recurrence``. A message
        without a byte stands at size 0.5.
    """
    only: list[Json] = [only_chosen("transport", CHOSEN)]
    x = numeric("size", "size of the message [bytes]", "x", type="log") | {"axis": log_axis("x", (1,), "~s")}
    y = numeric("time_us", "time [us]", type="log") | {"axis": log_axis("y", (1, 3))}
    points: dict[str, Json] = {
        "data": {"name": "points"},
        "transform": only,
        "mark": {"type": "point", "filled": True, "size": 9, "color": MUTED, "clip": True},
        "encoding": {
            "x": x,
            "y": y,
            "opacity": {"value": 0.45},
            "tooltip": [
                tip("size", "size [bytes]", ",d"),
                tip("time_us", "time [us]", ".4~g"),
                tip("part", "replication"),
            ],
        },
    }
    bands: dict[str, Json] = {
        "data": {"name": "bands"},
        "transform": only,
        "mark": {"type": "area", "color": PALETTE[0], "opacity": 0.16, "clip": True},
        "encoding": {
            "x": x,
            "y": y | {"field": "low_us"},
            "y2": {"field": "high_us"},
            "detail": {"field": "part", "type": "nominal"},
        },
    }
    curves: dict[str, Json] = {
        "data": {"name": "curves"},
        "params": [legend_selection("model")],
        "transform": only,
        "mark": {"type": "line", "strokeWidth": 2.2, "clip": True},
        "encoding": {
            "x": x,
            "y": y,
            "color": coloured("model", colours),
            "strokeDash": dashed(coloured("model", colours), list(colours)),
            "opacity": faded_unless_selected(0.95),
            "tooltip": [
                tip("model", "curve"),
                tip("size", "size", ",d"),
                tip("time_us", "time [us]", ".4~g"),
            ],
        },
    }
    return {
        "$schema": SCHEMA,
        "height": 400,
        "width": WIDTH,
        "params": [selector(CHOSEN, "Transport", transports)],
        "layer": [points, *([bands] if has_band else []), *_boundaries(x, only), curves],
    }


def _boundaries(x: dict[str, Json], only: Sequence[Json]) -> list[dict[str, Json]]:
    """Give upright lines: a protocol switch is drawn through, a knot of the approximation dashed."""
    dash: dict[str, Json] = {"condition": {"test": "datum.kind === 'knot'", "value": [2, 4]}, "value": [1, 0]}
    return [
        {
            "data": {"name": "boundaries"},
            "transform": [*only],
            "mark": {"type": "rule", "color": HIGHLIGHT, "opacity": 0.75, "strokeWidth": 1.4},
            "encoding": {
                "x": x,
                "strokeDash": dash,
                "opacity": {"condition": {"test": "datum.kind === 'knot'", "value": 0.35}, "value": 0.85},
                "tooltip": [
                    tip("kind", "boundary"),
                    tip("size", "at [bytes]", ",d"),
                    tip("low", "low", ",d"),
                    tip("high", "high", ",d"),
                    tip("recurrence", "found again in", ".0%"),
                ],
            },
        },
        {
            "data": {"name": "boundaries"},
            "transform": [*only, {"filter": "datum.kind === 'protocol'"}],
            "mark": {
                "type": "text",
                "angle": 270,
                "align": "right",
                "baseline": "bottom",
                "dx": -4,
                "dy": -3,
                "color": HIGHLIGHT,
                "fontSize": 11,
            },
            "encoding": {
                "x": x,
                "y": {"value": 0},
                "text": {"field": "size", "type": "quantitative", "format": ",d"},
            },
        },
    ]


def noise_quantiles(colours: Mapping[str, str], transports: Sequence[str]) -> dict[str, Json]:
    """Give the quantiles of measured time over model, by class of size.

    Returns
    -------
    dict
        Reads the dataset ``quantiles``: ``transport, sizes, percentile, ratio``.
    """
    return {
        "$schema": SCHEMA,
        "data": {"name": "quantiles"},
        "height": 260,
        "width": WIDTH,
        "params": [selector(CHOSEN, "Transport", transports), legend_selection("sizes")],
        "transform": [only_chosen("transport", CHOSEN)],
        "mark": {"type": "line", "strokeWidth": 1.8},
        "encoding": {
            "x": numeric("percentile", "operations up to this one [%]"),
            "y": numeric("ratio", "measured / model", type="log"),
            "color": coloured("sizes", colours),
            "strokeDash": dashed(coloured("sizes", colours), list(colours)),
            "opacity": faded_unless_selected(0.9),
            "tooltip": [
                tip("sizes", "sizes"),
                tip("percentile", "percentile", ".2~f"),
                tip("ratio", "measured / model", ".4~g"),
            ],
        },
    }


def sequence(colours: Mapping[str, str], transports: Sequence[str]) -> dict[str, Json]:
    """Give measured time over model in the order of measuring: where the state of the host changes.

    Returns
    -------
    dict
        Reads the dataset ``steps``: ``transport, position, ratio, state``.
    """
    return {
        "$schema": SCHEMA,
        "data": {"name": "steps"},
        "height": 220,
        "width": WIDTH,
        "params": [selector(CHOSEN, "Transport", transports), legend_selection("state")],
        "transform": [only_chosen("transport", CHOSEN)],
        "mark": {"type": "point", "filled": True, "size": 9},
        "encoding": {
            "x": numeric("position", "round trip, in the order of measuring"),
            "y": numeric("ratio", "measured / model", type="log"),
            "color": coloured("state", colours),
            "opacity": faded_unless_selected(0.6),
            "tooltip": [
                tip("state", "state of the host"),
                tip("position", "round trip", ",d"),
                tip("ratio", "measured / model", ".4~g"),
            ],
        },
    }


def prediction_errors(
    colours: Mapping[str, str], transports: Sequence[str], sizes: Sequence[str]
) -> dict[str, Json]:
    """Give the error of predictions of the held-out replication by decade of size.

    Parameters
    ----------
    colours : mapping
        Colour of each predictor.
    transports : sequence of str
        Options of the menu.
    sizes : sequence of str
        Names of the decades.

    Returns
    -------
    dict
        Reads the dataset ``errors``: ``transport, predictor, sizes, order, error_percent, count``.
    """
    return {
        "$schema": SCHEMA,
        "data": {"name": "errors"},
        "height": 260,
        "width": WIDTH,
        "params": [selector(CHOSEN, "Transport", transports)],
        "transform": [only_chosen("transport", CHOSEN)],
        "mark": {"type": "point", "filled": True, "size": 90, "opacity": 0.9},
        "encoding": {
            "x": {
                "field": "sizes",
                "type": "nominal",
                "title": "size of the message [bytes]",
                "sort": {"field": "order"},
                "axis": {**names_below(sizes), "grid": True},
            },
            "xOffset": {"field": "predictor", "scale": {"domain": list(colours)}},
            "y": numeric("error_percent", "median error [%]", type="log"),
            "color": coloured("predictor", colours),
            "shape": shaped("predictor", list(colours)),
            "tooltip": [
                tip("predictor", "predictor"),
                tip("sizes", "sizes"),
                tip("error_percent", "median error [%]", ".3~g"),
                tip("count", "round trips", ",d"),
            ],
        },
    }


def diagnostic_panels(panels: Sequence[str], transports: Sequence[str]) -> dict[str, Json]:
    """Give small panels that show whether a curve can be trusted, each with axes of its own.

    Parameters
    ----------
    panels : sequence of str
        Titles, in order.
    transports : sequence of str
        Options of the menu.

    Returns
    -------
    dict
        Reads the dataset ``residuals``: ``transport, panel, x, y``.
    """
    columns = min(len(panels), PANELS_IN_A_ROW)
    free: dict[str, Json] = {"scale": {"zero": False, "nice": False}, "type": "quantitative", "title": None}
    return {
        "$schema": SCHEMA,
        "data": {"name": "residuals"},
        "usermeta": {"panels": len(panels), "columns": columns},
        "params": [selector(CHOSEN, "Transport", transports)],
        "transform": [only_chosen("transport", CHOSEN)],
        "facet": {
            "field": "panel",
            "type": "nominal",
            "title": None,
            "sort": list(panels),
            "header": panel_header(),
        },
        "columns": columns,
        "resolve": {"scale": {"x": "independent", "y": "independent"}},
        "spec": {
            "width": PANEL_WIDTH,
            "height": 170,
            "mark": {"type": "point", "filled": True, "size": 8, "color": PALETTE[0], "opacity": 0.5},
            "encoding": {
                "x": {"field": "x", **free},
                # As much room for the labels of each, so that panels below each other begin at one place.
                "y": {"field": "y", **free, "axis": {"minExtent": 40}},
                "tooltip": [tip("x", "x", ".4~g"), tip("y", "y", ".4~g")],
            },
        },
    }
