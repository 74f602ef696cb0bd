"""A history of results: values in the order of time, and the levels between changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.report.charts.parts import (
    SCHEMA,
    WHOLE_NUMBERS,
    fitting_scale,
    numeric,
    only_chosen,
    selector,
    tip,
)
from steelyard.report.charts.theme import HIGHLIGHT, PALETTE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from steelyard.report.dataset import Json


def levels_over_results(
    series: Sequence[str],
    views: Iterable[Sequence[float]] = (),
    *,
    of: str = "result",
    base: str = "first level",
    has_intervals: bool = False,
) -> dict[str, Json]:
    """Give the values of a chosen series by result, with a line for each level between changes.

    Parameters
    ----------
    series : sequence of str
        Options of the menu; the first is shown at first.
    views : iterable of sequence of float
        Values of the vertical axis by series, which decide its scale.
    of : str
        What a point is.
    base : str
        What is 100 %.
    has_intervals : bool
        Whether points have intervals: ``low, high``.

    Returns
    -------
    dict
        Reads the datasets ``points``: ``series, order, result, percent``; and ``levels``: ``series, begin,
        end, percent, meaning``.
    """
    across = numeric("order", f"{of}, oldest first", zero=False)
    only = only_chosen("series", "chosen_series")
    value = numeric("percent", f"value, {base} = 100 [%]", **fitting_scale(views, zero=False))
    place: dict[str, Json] = {"axis": WHOLE_NUMBERS}
    intervals: dict[str, Json] = {
        "data": {"name": "points"},
        "transform": [only],
        "mark": {"type": "rule", "strokeWidth": 1.5, "color": PALETTE[0], "opacity": 0.5},
        "encoding": {"x": across | place, "y": value | {"field": "low"}, "y2": {"field": "high"}},
    }
    return {
        "$schema": SCHEMA,
        "height": 290,
        "width": 820,
        "params": [selector("chosen_series", "Series", series)],
        "layer": [
            *([intervals] if has_intervals else []),
            {
                "data": {"name": "points"},
                "transform": [only],
                "mark": {"type": "point", "filled": True, "size": 40, "color": PALETTE[0], "opacity": 0.7},
                "encoding": {
                    "x": across | place,
                    "y": value,
                    "tooltip": [tip("result", of), tip("percent", "value [%]", ".4~g")],
                },
            },
            {
                "data": {"name": "levels"},
                "transform": [only],
                "mark": {"type": "rule", "strokeWidth": 3, "color": HIGHLIGHT},
                "encoding": {
                    "x": numeric("begin", f"{of}, oldest first", zero=False) | place,
                    "x2": {"field": "end"},
                    "y": value,
                    "tooltip": [tip("meaning", "level")],
                },
            },
        ],
    }
