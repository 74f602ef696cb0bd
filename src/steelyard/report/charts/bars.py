"""Stacked bars of classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.report.charts.parts import (
    SCHEMA,
    WHOLE_NUMBERS,
    coloured,
    named_rows,
    only_chosen,
    selector,
    tip,
)
from steelyard.report.charts.theme import CLASS_COLOURS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.report.dataset import Json

LABEL_WIDTH: Final = 230
"""Room for the names of pairs [px]."""


def stacked_classes(choices: Sequence[str], setups: Sequence[str], pairs: Sequence[str]) -> dict[str, Json]:
    """Give stacked bars of how many workloads fall into each class of the published rule.

    Parameters
    ----------
    choices : sequence of str
        Options of the menu: statistic and interval of the rule.
    setups : sequence of str
        Order of the groups of rows.
    pairs : sequence of str
        Order of the rows of a group.

    Returns
    -------
    dict
        Reads the dataset ``classes``: ``choice, pair, setup, name, count, rank``.
    """
    return {
        "$schema": SCHEMA,
        "data": {"name": "classes"},
        "width": 620,
        "height": {"step": 26},
        "usermeta": {"labelWidth": LABEL_WIDTH},
        "params": [selector("chosen", "Statistic", choices)],
        "transform": [only_chosen("choice", "chosen")],
        "mark": {"type": "bar", "height": {"band": 0.8}},
        "encoding": {
            "y": named_rows("pair", pairs),
            "row": {
                "field": "setup",
                "type": "nominal",
                "title": None,
                "sort": list(setups),
                "header": {"labelAngle": 0, "labelAlign": "left", "labelOrient": "top", "labelPadding": 2},
                "spacing": 6,
            },
            "x": {
                "field": "count",
                "type": "quantitative",
                "title": "workloads",
                "scale": {"padding": 0},
                "axis": WHOLE_NUMBERS,
            },
            "color": coloured("name", CLASS_COLOURS, is_beside_names=True),
            "order": {"field": "rank", "type": "quantitative"},
            "tooltip": [
                tip("pair", "comparison"),
                tip("setup", "setup"),
                tip("name", "class"),
                tip("count", "workloads", "d"),
            ],
        },
        "resolve": {"scale": {"y": "independent"}},
    }
