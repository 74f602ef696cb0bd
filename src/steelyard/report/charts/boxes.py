"""Boxes of values by load."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.report.charts.parts import (
    SCHEMA,
    coloured,
    fitting_scale,
    names_below,
    numeric,
    only_chosen,
    selector,
    tip,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from steelyard.report.dataset import Json


_TWO_LINES: Final = "[replace(split(datum.label, ',')[0], 'parallel-', ''), split(datum.label, ',')[1]]"
"""`parallel-homogenous,4` as `homogenous` over `4`."""


def boxes_by_load(
    colours: Mapping[str, str],
    workloads: Sequence[str],
    setups: Sequence[str],
    views: Iterable[Sequence[float]] = (),
) -> dict[str, Json]:
    """Give boxes of the time by setup, one colour per isolation, for a chosen workload.

    Parameters
    ----------
    colours : mapping
        Colour of each isolation.
    workloads : sequence of str
        Options of the menu.
    setups : sequence of str
        Order of the horizontal axis.
    views : iterable of sequence of float
        Values of the vertical axis by workload, which decide its scale.

    Returns
    -------
    dict
        Reads the dataset ``boxes``: ``isolation, workload, setup, p05, p25, p50, p75, p95, n`` [ms].
    """
    scale = fitting_scale(views, zero=False)
    place: dict[str, Json] = {
        "x": {
            "field": "setup",
            "type": "nominal",
            "title": None,
            "sort": list(setups),
            "axis": {
                **names_below([name.removeprefix("parallel-") for name in setups]),
                "labelExpr": _TWO_LINES,
            },
        },
        "xOffset": {"field": "isolation", "scale": {"domain": list(colours)}},
        "color": coloured("isolation", colours, symbol="square"),
        "tooltip": [
            tip("isolation", "isolation"),
            tip("setup", "setup"),
            *(tip(f"p{p}", f"{int(p)} % quantile [ms]", ".3f") for p in ("95", "75", "50", "25", "05")),
            tip("n", "measurements", ",d"),
        ],
    }
    return {
        "$schema": SCHEMA,
        "data": {"name": "boxes"},
        "height": 280,
        "width": 860,
        "params": [selector("chosen_workload", "Workload", workloads)],
        "transform": [only_chosen("workload", "chosen_workload")],
        "encoding": place,
        "layer": [
            {"mark": {"type": "rule", "strokeWidth": 1.5}, "encoding": _span("p05", "p95", scale)},
            {
                "mark": {
                    "type": "bar",
                    "size": {"expr": "max(3, min(22, 0.8 * bandwidth('xOffset')))"},
                },
                "encoding": _span("p25", "p75", scale),
            },
            {
                "mark": {
                    "type": "tick",
                    "color": "white",
                    "thickness": 2,
                    "size": {"expr": "max(3, min(10, 0.5 * bandwidth('xOffset')))"},
                },
                "encoding": {"y": {"field": "p50", "type": "quantitative"}, "color": {"value": "white"}},
            },
        ],
    }


def _span(low: str, high: str, scale: dict[str, Json]) -> dict[str, Json]:
    return {
        "y": numeric(low, "CPU time [ms]", **scale),
        "y2": {"field": high},
    }
