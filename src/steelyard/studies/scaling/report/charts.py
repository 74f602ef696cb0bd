"""Charts of speed-up: curves over workers beside the ideal, and bars of overheads with a line at one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from steelyard.report.charts.parts import (
    SCHEMA,
    coloured,
    faded_unless_selected,
    legend_selection,
    names_below,
    numeric,
    only_chosen,
    panel_header,
    selector,
    shaped,
    tip,
)
from steelyard.report.charts.theme import MUTED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from steelyard.report.dataset import Json

PANEL_WIDTH: Final = 260
PANEL_HEIGHT: Final = 240


def speedup_curves(
    colours: Mapping[str, str],
    menus: Mapping[str, Sequence[str]],
    panels: Sequence[str],
    workers: Sequence[int],
) -> dict[str, Json]:
    """Give speed-up over workers, one panel per mean work, with the ideal line and the cores.

    Parameters
    ----------
    colours : mapping
        Colour of each contender.
    menus : mapping
        Options by field of the data: ``load``, ``depth``.
    panels : sequence of str
        Titles of the panels of every option, in order; as many are shown as an option has.
    workers : sequence of int
        Numbers of workers, for the axis.

    Returns
    -------
    dict
        Reads the dataset ``speedups``: ``panel, contender, workers, speedup, low, high, ideal, cores,
        shy`` and a field per menu; a missing limit is null. A curve whose field ``is_ideal`` is true is the
        ideal; it has a row per panel and number of workers and per option of the menus.
    """
    chosen: list[Json] = [only_chosen(field, f"chosen_{field}") for field in menus]
    params: list[Json] = [selector(f"chosen_{field}", field, options) for field, options in menus.items()]
    axis: Json = {"values": list(workers), "format": "d"}
    x: Json = numeric("workers", "workers", zero=False) | {"axis": axis}
    scale: dict[str, Json] = {"zero": True}
    colour, shape = coloured("contender", colours), shaped("contender", list(colours))
    ideal: dict[str, Json] = {
        "transform": [{"filter": "datum.is_ideal"}],
        "mark": {"type": "line", "strokeDash": [5, 4], "color": MUTED, "clip": True},
        "encoding": {"x": x, "y": numeric("speedup", "speed-up", **scale)},
    }
    cores: dict[str, Json] = {
        "transform": [{"filter": "datum.is_ideal && datum.workers === datum.cores"}],
        "mark": {"type": "rule", "color": MUTED, "opacity": 0.6},
        "encoding": {"x": x},
    }
    measured: Json = [{"filter": "!datum.is_ideal"}]
    lines: dict[str, Json] = {
        "transform": measured,
        "mark": {"type": "line", "strokeWidth": 1.5},
        "encoding": {
            "x": x,
            "y": numeric("speedup", "speed-up", **scale),
            "color": colour,
            "opacity": faded_unless_selected(0.9),
        },
    }
    bands: dict[str, Json] = {
        "transform": [{"filter": "!datum.is_ideal && isValid(datum.low)"}],
        "mark": {"type": "area", "clip": True},
        "encoding": {
            "x": x,
            "y": numeric("low", "speed-up", **scale),
            "y2": {"field": "high"},
            "color": colour,
            "fillOpacity": {"value": 0.15},
        },
    }
    limits: dict[str, Json] = {
        "transform": [{"filter": "!datum.is_ideal && isValid(datum.low)"}],
        "mark": {"type": "rule", "strokeWidth": 3},
        "encoding": {
            "x": x,
            "y": numeric("low", "speed-up", **scale),
            "y2": {"field": "high"},
            "color": colour,
            "opacity": faded_unless_selected(0.5),
        },
    }
    points: dict[str, Json] = {
        "params": [legend_selection("contender")],
        "transform": measured,
        "mark": {"type": "point", "filled": True, "size": 50},
        "encoding": {
            "x": x,
            "y": numeric("speedup", "speed-up", **scale),
            "color": colour,
            "shape": shape,
            "opacity": faded_unless_selected(0.9),
            "tooltip": [
                tip("contender", "program"),
                tip("workers", "workers", "d"),
                tip("speedup", "speed-up", ".4~g"),
                tip("low", "low", ".4~g"),
                tip("high", "high", ".4~g"),
                tip("shy", "shy of ideal [%]", ".3~g"),
            ],
        },
    }
    shown = max(len(panels) // math.prod(map(len, menus.values())), 1)
    return {
        "$schema": SCHEMA,
        "data": {"name": "speedups"},
        "usermeta": {"panels": shown, "columns": min(shown, 2)},
        "params": params,
        "transform": chosen,
        "facet": {
            "field": "panel",
            "type": "nominal",
            "title": None,
            "sort": list(panels),
            "header": panel_header(),
        },
        "columns": min(shown, 2),
        "spec": {
            "width": PANEL_WIDTH,
            "height": PANEL_HEIGHT,
            "layer": [cores, ideal, bands, lines, limits, points],
        },
    }


def overhead_bars(colours: Mapping[str, str], works: Sequence[str]) -> dict[str, Json]:
    """Give the overhead of an idle lock by mean work, a bar per lock and depth, with a line at one.

    Parameters
    ----------
    colours : mapping
        Colour of each lock at each depth.
    works : sequence of str
        Order of the horizontal axis.

    Returns
    -------
    dict
        Reads the dataset ``overheads``: ``mean_work, lock, overhead, low, high, verdict``; ``lock`` names the
        depth too, and a missing limit is null.
    """
    x: dict[str, Json] = {
        "field": "mean_work",
        "type": "nominal",
        "title": "mean work W of a packet",
        "sort": list(works),
        "axis": names_below(works),
    }
    offset: dict[str, Json] = {"field": "lock", "scale": {"domain": list(colours)}}
    title = "LockFree rate / HomeQueue rate"
    return {
        "$schema": SCHEMA,
        "data": {"name": "overheads"},
        "height": 260,
        "width": 820,
        "layer": [
            {
                "mark": {"type": "bar"},
                "encoding": {
                    "x": x,
                    "xOffset": offset,
                    "y": numeric("overhead", title, zero=True, nice=True, padding=0) | {"stack": None},
                    "color": coloured("lock", colours),
                    "tooltip": [
                        tip("lock", "lock"),
                        tip("mean_work", "W"),
                        tip("overhead", "overhead", ".4f"),
                        tip("low", "low", ".4f"),
                        tip("high", "high", ".4f"),
                        tip("verdict", "verdict"),
                    ],
                },
            },
            {
                "transform": [{"filter": "isValid(datum.low)"}],
                "mark": {"type": "rule", "color": "#1C2126"},
                "encoding": {
                    "x": x,
                    "xOffset": offset,
                    "y": numeric("low", title, zero=True, nice=True, padding=0),
                    "y2": {"field": "high"},
                },
            },
            {
                "data": {"values": [{"one": 1}]},
                "mark": {"type": "rule", "strokeDash": [5, 4], "color": "#1C2126"},
                "encoding": {"y": {"field": "one", "type": "quantitative"}},
            },
        ],
    }
