"""A history of results: values in the order of time, and the levels between changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.report.charts.parts import SCHEMA, numeric, only_chosen, selector, tip
from steelyard.report.charts.theme import HIGHLIGHT, PALETTE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.report.page import Json


def levels_over_results(series: Sequence[str]) -> dict[str, Json]:
    """Give the values of a chosen series by result, with a line for each level between changes.

    Parameters
    ----------
    series : sequence of str
        Options of the menu; the first is shown at first.

    Returns
    -------
    dict
        Reads the datasets ``points``: ``series, order, result, percent``; and ``levels``: ``series, begin,
        end, percent, meaning``.
    """
    only = only_chosen("series", "chosen_series")
    value = numeric("percent", "value, first level = 100 [%]", zero=False)
    return {
        "$schema": SCHEMA,
        "height": 290,
        "width": 820,
        "params": [selector("chosen_series", "Series", series)],
        "layer": [
            {
                "data": {"name": "points"},
                "transform": [only],
                "mark": {"type": "point", "filled": True, "size": 40, "color": PALETTE[0], "opacity": 0.7},
                "encoding": {
                    "x": numeric("order", "result, oldest first"),
                    "y": value,
                    "tooltip": [tip("result", "result"), tip("percent", "value [%]", ".4~g")],
                },
            },
            {
                "data": {"name": "levels"},
                "transform": [only],
                "mark": {"type": "rule", "strokeWidth": 3, "color": HIGHLIGHT},
                "encoding": {
                    "x": numeric("begin", "result, oldest first"),
                    "x2": {"field": "end"},
                    "y": value,
                    "tooltip": [tip("meaning", "level")],
                },
            },
        ],
    }
