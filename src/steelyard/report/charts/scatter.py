"""Scatter of values by iteration, one panel per level of a factor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.report.charts.parts import (
    SCHEMA,
    fitting_scale,
    numeric,
    only_chosen,
    panel_header,
    selector,
    tip,
)
from steelyard.report.charts.theme import HIGHLIGHT, MUTED, PALETTE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from steelyard.report.dataset import Json

ALL_COLOURED: Final = "each worker in its colour"
PANEL_COLUMNS: Final = 4
PANEL_WIDTH: Final = 210


def scatter_by_iteration(
    panels: Sequence[str],
    workloads: Sequence[str],
    setups: Sequence[str],
    workers: Sequence[str],
    views: Iterable[Sequence[float]] = (),
) -> dict[str, Json]:
    """Give a scatter of time by iteration, faceted by isolation, for a chosen workload and setup.

    Parameters
    ----------
    panels : sequence of str
        Isolation technologies, one panel each, side by side with one vertical axis.
    workloads, setups : sequence of str
        Options of the two menus; the last setup, the highest load, is chosen at first.
    workers : sequence of str
        Workers that can be highlighted; with one worker there is no such menu.
    views : iterable of sequence of float
        Values of the vertical axis by workload and setup, which decide its scale.

    Returns
    -------
    dict
        Reads the dataset ``points``: ``isolation, workload, setup, worker, order, time_ms``.
    """
    highlights = [ALL_COLOURED, *(f"worker {worker} highlighted" for worker in workers)]
    chosen = highlights[1] if len(workers) > 1 else highlights[0]
    return {
        "$schema": SCHEMA,
        "data": {"name": "points"},
        "usermeta": {"panels": len(panels), "columns": PANEL_COLUMNS},
        "params": [
            selector("chosen_workload", "Workload", workloads),
            selector("chosen_setup", "Setup", setups, _highest_load(setups)),
            selector("highlight", "Colour", highlights if len(workers) > 1 else highlights[:1], chosen),
        ],
        "transform": [
            only_chosen("workload", "chosen_workload"),
            only_chosen("setup", "chosen_setup"),
            {"calculate": "'worker ' + datum.worker + ' highlighted' === highlight", "as": "is_highlighted"},
        ],
        "facet": {
            "field": "isolation",
            "type": "nominal",
            "title": None,
            "sort": list(panels),
            "header": panel_header(labelAnchor="start"),
        },
        "columns": min(len(panels), PANEL_COLUMNS),
        "spec": {
            "width": PANEL_WIDTH,
            "height": 190,
            "mark": {"type": "point", "filled": True, "size": 16, "invalid": None, "clip": True},
            "encoding": _encoding(workers, fitting_scale(views, zero=False)),
        },
        "resolve": {"axis": {"x": "independent"}},
    }


def _highest_load(setups: Sequence[str]) -> str:
    """Give the last setup of the kind that comes first after single: the plainest way to raise the load."""
    plain = [
        setup
        for setup in setups
        if setup.rpartition(",")[0] == setups[min(1, len(setups) - 1)].rpartition(",")[0]
    ]
    return plain[-1]


def _encoding(workers: Sequence[str], scale: dict[str, Json]) -> dict[str, Json]:
    return {
        "x": {
            **numeric("order", "iteration", zero=False),
            "axis": {"grid": False, "tickCount": 5},
        },
        "y": numeric("time_ms", "CPU time [ms]", **scale),
        "color": {
            "condition": [
                {"test": "datum.is_highlighted", "value": HIGHLIGHT},
                {"test": f"highlight !== '{ALL_COLOURED}'", "value": MUTED},
            ],
            "field": "worker",
            "type": "nominal",
            "scale": {"domain": list(workers), "range": list(PALETTE)},
            "legend": None,
        },
        "opacity": {
            "condition": [
                {"test": "datum.time_ms === null", "value": 0},
                {"test": f"datum.is_highlighted || highlight === '{ALL_COLOURED}'", "value": 0.85},
            ],
            "value": 0.35,
        },
        "tooltip": [
            tip("isolation", "isolation"),
            tip("worker", "worker"),
            tip("order", "iteration"),
            tip("time_ms", "CPU time [ms]", ".3f"),
        ],
    }
