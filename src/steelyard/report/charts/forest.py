"""Ratios with their intervals, one row each, against one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.report.charts.parts import SCHEMA, coloured, difference, named_rows, ring, shaped, tip

if TYPE_CHECKING:
    from collections.abc import Mapping

    from steelyard.report.dataset import Json


def forest_of_shifts(colours: Mapping[str, str], baseline: str, *, is_wide: bool = False) -> dict[str, Json]:
    """Give the shift of each isolation against a baseline with its interval.

    Parameters
    ----------
    colours : mapping
        Colour of each isolation.
    baseline : str
        Name of the baseline.
    is_wide : bool
        Whether shifts differ so much that the axis is logarithmic beyond one percent on either side.

    Returns
    -------
    dict
        Reads the dataset ``shifts``: ``isolation, percent, low, high, is_apart, verdict``; a missing limit is
        null.
    """
    rows = named_rows("isolation", list(colours))
    colour = {**coloured("isolation", colours), "legend": None}
    title = f"difference of the mean against {baseline} [%]"
    place = difference("percent", title, 1.0 if is_wide else None)
    marks: dict[str, Json] = {"y": rows, "x": place, "color": colour}
    return {
        "$schema": SCHEMA,
        "data": {"name": "shifts"},
        "height": 34 * len(colours) + 10,
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
                    "x": {"field": "low", "type": "quantitative", "title": title},
                    "x2": {"field": "high"},
                    "color": colour,
                },
            },
            {
                "mark": {"type": "point", "filled": True, "size": 90},
                "encoding": {
                    **marks,
                    "shape": {**shaped("isolation", list(colours)), "legend": None},
                    "tooltip": [
                        tip("isolation", "isolation"),
                        tip("percent", "difference [%]", "+.3~g"),
                        tip("low", "low [%]", "+.3~g"),
                        tip("high", "high [%]", "+.3~g"),
                        tip("verdict", "verdict"),
                    ],
                },
            },
            ring(marks),
        ],
    }
