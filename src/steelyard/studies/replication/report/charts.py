"""Charts of a replication: relative differences, costs of monitoring, calls over time, latencies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.report.charts.parts import (
    SCHEMA,
    coloured,
    named_rows,
    names_below,
    numeric,
    only_chosen,
    panel_header,
    selector,
    shaped,
    tip,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from steelyard.report.dataset import Json

WIDTH: Final = 820
ROW: Final = 30
LABELS: Final = 250
"""Room for names of rows beside a chart [px]."""


def cost_bars(labels: Sequence[str], colours: Mapping[str, str], *, is_wide: bool = False) -> dict[str, Json]:
    """Give costs per call with their intervals.

    Parameters
    ----------
    labels : sequence of str
        What costs, in order.
    colours : mapping
        Colour of each kind.
    is_wide : bool
        Whether the axis is logarithmic above ten nanoseconds.

    Returns
    -------
    dict
        Reads the dataset ``costs``: ``label, kind, setting, cost, low, high``.
    """
    scale: dict[str, Json] = {"type": "symlog", "constant": 10} if is_wide else {"zero": True, "nice": True}
    scale["padding"] = 0
    title = "cost per call [ns]"
    rows = named_rows("label", labels)
    axis: dict[str, Json] = {"axis": _DECADES} if is_wide else {}
    place: dict[str, Json] = {"y": rows, "x": numeric("cost", title, **scale) | axis}
    return {
        "$schema": SCHEMA,
        "data": {"name": "costs"},
        "height": ROW * len(labels) + 10,
        "width": WIDTH - LABELS,
        "layer": [
            {
                "mark": {"type": "bar", "height": {"band": 0.62}, "opacity": 0.85},
                "encoding": {
                    **place,
                    "color": coloured("kind", colours, is_beside_names=True),
                    "tooltip": [
                        tip("label", "what"),
                        tip("setting", "setting"),
                        tip("cost", "cost [ns]", ".4~g"),
                        tip("low", "low [ns]", ".4~g"),
                        tip("high", "high [ns]", ".4~g"),
                    ],
                },
            },
            {
                "transform": [{"filter": "isValid(datum.low)"}],
                "mark": {"type": "rule", "strokeWidth": 2, "color": "#1C2126"},
                "encoding": {
                    "y": rows,
                    "x": numeric("low", title, **scale) | axis,
                    "x2": {"field": "high"},
                },
            },
        ],
    }


_DECADES: Final[dict[str, Json]] = {
    "values": [0, *(digit * 10**power for power in range(1, 8) for digit in (1, 3))],
    "format": ",d",
}
"""Few ticks per decade of nanoseconds, on either side of which an axis is linear or logarithmic."""


def calls_over_time(names: Sequence[str], chosen: str) -> dict[str, Json]:
    """Give the calls of a loop over its time: the usual one as a line, the longest one as a point.

    Parameters
    ----------
    names : sequence of str
        Options of the menu.
    chosen : str
        The one that is shown at first.

    Returns
    -------
    dict
        Reads the dataset ``series``: ``name, time_s, middle_us, largest_us``.
    """
    scale: dict[str, Json] = {"type": "log"}
    time = numeric("time_s", "time since the first call [s]", zero=False)
    title = "response time [us]"
    return {
        "$schema": SCHEMA,
        "data": {"name": "series"},
        "width": WIDTH,
        "height": 260,
        "params": [selector("chosen_loop", "Loop", names, chosen)],
        "transform": [only_chosen("name", "chosen_loop")],
        "layer": [
            {
                "mark": {"type": "point", "filled": True, "size": 14, "color": "#C93F12", "opacity": 0.7},
                "encoding": {
                    "x": time,
                    "y": numeric("largest_us", title, **scale),
                    "tooltip": [
                        tip("time_s", "time [s]", ".3~f"),
                        tip("largest_us", "longest [us]", ".4~g"),
                        tip("middle_us", "median [us]", ".4~g"),
                    ],
                },
            },
            {
                "mark": {"type": "line", "strokeWidth": 1.4, "color": "#0072B2"},
                "encoding": {"x": time, "y": numeric("middle_us", title, **scale)},
            },
        ],
    }


def latency_by_operation(colours: Mapping[str, str], operations: Sequence[str]) -> dict[str, Json]:
    """Give mean and 99th percentile of latency by operation, a colour per setting.

    Parameters
    ----------
    colours : mapping
        Colour of each setting.
    operations : sequence of str
        In order.

    Returns
    -------
    dict
        Reads the dataset ``latencies``: ``operation, setting, metric, value_ms, low_ms, high_ms``, and
        ``from_ms``, where the line of the interval begins.
    """
    scale: dict[str, Json] = {"type": "log"}
    title = "latency [ms]"
    place: dict[str, Json] = {
        "x": {
            "field": "operation",
            "type": "nominal",
            "title": None,
            "sort": list(operations),
            "axis": names_below(operations),
        },
        "xOffset": {"field": "setting", "sort": list(colours)},
        "color": coloured("setting", colours),
    }
    return {
        "$schema": SCHEMA,
        "data": {"name": "latencies"},
        "usermeta": {"panels": 2, "columns": 2},
        "facet": {
            "field": "metric",
            "type": "nominal",
            "title": None,
            "sort": ["mean", "p99"],
            "header": panel_header(),
        },
        "columns": 2,
        "spec": {
            "width": 350,
            "height": 220,
            "layer": [
                {
                    "transform": [{"filter": "isValid(datum.from_ms)"}],
                    "mark": {"type": "rule", "strokeWidth": 2},
                    "encoding": {
                        **place,
                        "y": numeric("from_ms", title, **scale),
                        "y2": {"field": "high_ms"},
                    },
                },
                {
                    "mark": {"type": "point", "filled": True, "size": 60},
                    "encoding": {
                        **place,
                        "y": numeric("value_ms", title, **scale),
                        "shape": shaped("setting", list(colours)),
                        "tooltip": [
                            tip("operation", "operation"),
                            tip("setting", "setting"),
                            tip("value_ms", "latency [ms]", ".4~g"),
                            tip("low_ms", "low [ms]", ".4~g"),
                            tip("high_ms", "high [ms]", ".4~g"),
                        ],
                    },
                },
            ],
        },
    }
