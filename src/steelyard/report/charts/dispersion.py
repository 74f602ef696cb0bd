"""Dispersion over load, one line per level of a factor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.report.charts.parts import (
    SCHEMA,
    coloured,
    faded_unless_selected,
    fitting_scale,
    legend_selection,
    numeric,
    only_chosen,
    ring,
    selector,
    shaped,
    tip,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from steelyard.report.dataset import Json


def dispersion_by_load(
    colours: Mapping[str, str],
    workloads: Sequence[str],
    title: str,
    tolerance: float | None = None,
    views: Iterable[Sequence[float]] = (),
) -> dict[str, Json]:
    """Give the dispersion by number of workers, one line per isolation.

    Parameters
    ----------
    colours : mapping
        Colour of each isolation.
    workloads : sequence of str
        Options of the menu.
    title : str
        Title of the vertical axis, with unit.
    tolerance : float or None
        Drawn across as a dashed line, in the unit of the values.
    views : iterable of sequence of float
        Values of the vertical axis by workload, limits included, which decide its scale.

    Returns
    -------
    dict
        Reads the dataset ``dispersion``: ``isolation, workload, workers, value, low, high, is_apart``.
    """
    shared: dict[str, Json] = {
        "x": {
            "field": "workers",
            "type": "ordinal",
            "title": "workers in parallel",
            "axis": {"labelAngle": 0},
        },
        # Side by side, so that intervals of the same load do not cover each other.
        "xOffset": {"field": "isolation", "type": "nominal", "scale": {"domain": list(colours)}},
        "color": coloured("isolation", colours),
        "opacity": faded_unless_selected(1),
    }
    value = numeric("value", title, **fitting_scale(views, zero=True))
    chosen = only_chosen("workload", "chosen_workload")
    marks: list[Json] = [
        {
            "mark": {"type": "line", "strokeWidth": 1.5, "strokeDash": [2, 3]},
            "transform": [chosen],
            "encoding": {**shared, "y": value},
        },
        {
            "mark": {"type": "rule", "strokeWidth": 2},
            "transform": [chosen],
            "encoding": {
                **shared,
                "y": {"field": "low", "type": "quantitative"},
                "y2": {"field": "high"},
            },
        },
        {
            "params": [legend_selection("isolation")],
            "mark": {"type": "point", "filled": True, "size": 70},
            "transform": [chosen],
            "encoding": {
                **shared,
                "y": value,
                "shape": shaped("isolation", list(colours)),
                "tooltip": [
                    tip("isolation", "isolation"),
                    tip("workload", "workload"),
                    tip("workers", "workers"),
                    tip("value", title, ".3~g"),
                    tip("low", "low", ".3~g"),
                    tip("high", "high", ".3~g"),
                ],
            },
        },
        ring({**shared, "y": value}, [chosen]),
    ]
    return {
        "$schema": SCHEMA,
        "data": {"name": "dispersion"},
        "height": 290,
        "width": 820,
        "params": [selector("chosen_workload", "Workload", workloads)],
        "layer": [*_tolerance(tolerance), *marks],
    }


def _tolerance(tolerance: float | None) -> list[Json]:
    if tolerance is None:
        return []
    return [
        {
            "data": {"values": [{"tolerance": tolerance}]},
            "mark": {"type": "rule", "strokeDash": [6, 4], "color": "#7C8894"},
            "encoding": {"y": {"field": "tolerance", "type": "quantitative"}},
        }
    ]
