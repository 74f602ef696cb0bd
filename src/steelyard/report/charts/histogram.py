"""Histogram of ratios."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.report.charts.parts import SCHEMA, WHOLE_NUMBERS, coloured

if TYPE_CHECKING:
    from collections.abc import Mapping

    from steelyard.report.dataset import Json


def histogram_of_ratios(colours: Mapping[str, str]) -> dict[str, Json]:
    """Give a histogram of parallel ratios in percent, stacked by isolation.

    Parameters
    ----------
    colours : mapping
        Colour of each isolation.

    Returns
    -------
    dict
        Reads the dataset ``ratios``: ``isolation, percent``.
    """
    return {
        "$schema": SCHEMA,
        "data": {"name": "ratios"},
        "height": 200,
        "width": 760,
        "mark": {"type": "bar", "binSpacing": 1},
        "encoding": {
            "x": {
                "field": "percent",
                "type": "quantitative",
                "bin": {"step": 2.5},
                "scale": {"padding": 0},
                "title": "parallel ratio [%]",
            },
            "y": {
                "aggregate": "count",
                "title": "cells",
                "scale": {"padding": 0},
                "axis": WHOLE_NUMBERS,
            },
            "color": coloured("isolation", colours),
            "tooltip": [
                {"field": "isolation", "title": "isolation"},
                {"field": "percent", "bin": {"step": 2.5}, "title": "parallel ratio [%]"},
                {"aggregate": "count", "title": "cells"},
            ],
        },
    }
