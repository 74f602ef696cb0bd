"""Ratios with their intervals, one row each, against one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.report.charts.parts import SCHEMA, coloured, tip

if TYPE_CHECKING:
    from collections.abc import Mapping

    from steelyard.report.page import Json


def forest_of_shifts(colours: Mapping[str, str], baseline: str) -> dict[str, Json]:
    """Give the shift of each isolation against a baseline with its interval.

    Parameters
    ----------
    colours : mapping
        Colour of each isolation.
    baseline : str
        Name of the baseline.

    Returns
    -------
    dict
        Reads the dataset ``shifts``: ``isolation, percent, low, high, verdict``; a missing limit is null.
    """
    rows: dict[str, Json] = {"field": "isolation", "type": "nominal", "title": None, "sort": list(colours)}
    colour = {**coloured("isolation", colours), "legend": None}
    return {
        "$schema": SCHEMA,
        "data": {"name": "shifts"},
        "height": 30 * len(colours) + 10,
        "width": 820,
        "layer": [
            {
                "data": {"values": [{"zero": 0}]},
                "mark": {"type": "rule", "color": "#9AA4AE", "strokeDash": [4, 4]},
                "encoding": {"x": {"field": "zero", "type": "quantitative"}},
            },
            {
                "mark": {"type": "rule", "strokeWidth": 2},
                "encoding": {
                    "y": rows,
                    "x": {
                        "field": "low",
                        "type": "quantitative",
                        "title": f"difference of the mean against {baseline} [%]",
                    },
                    "x2": {"field": "high"},
                    "color": colour,
                },
            },
            {
                "mark": {"type": "point", "filled": True, "size": 90},
                "encoding": {
                    "y": rows,
                    "x": {"field": "percent", "type": "quantitative"},
                    "color": colour,
                    "tooltip": [
                        tip("isolation", "isolation"),
                        tip("percent", "difference [%]", "+.3~g"),
                        tip("low", "low [%]", "+.3~g"),
                        tip("high", "high [%]", "+.3~g"),
                        tip("verdict", "verdict"),
                    ],
                },
            },
        ],
    }
