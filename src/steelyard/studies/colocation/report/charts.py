"""Charts of a service beside best-effort jobs: over time, its tail, and what protecting it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.report.charts.parts import (
    SCHEMA,
    coloured,
    dashed,
    faded_unless_selected,
    legend,
    legend_selection,
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

WIDTH: Final = 820
FULL_PANEL: Final = 600
HALF_PANEL: Final = 330
SYMLOG_FROM: Final = 10
CHOSEN: Final = "chosen_load"
LOAD: Final = "Load of the CPUs"
TIME: Final = "time in the trial [s]"
STRETCHES: Final = ("beside the jobs", "before them")
_DASHES: Final[list[Json]] = [5, 4]


def timeline(
    colours: Mapping[str, str], loads: Sequence[str], parts: Sequence[str], *, is_wide: bool = False
) -> dict[str, Json]:
    """Give latency over time and the iterations of the jobs below it, all policies on one axis.

    Parameters
    ----------
    colours : mapping
        Colour of each policy.
    loads : sequence of str
        Options of the menu.
    parts : sequence of str
        Titles of the rows, from the top.
    is_wide : bool
        Whether values differ so much that the axes are logarithmic above ten.

    Returns
    -------
    dict
        Reads the dataset ``bins``: ``policy, load, part, time_s, value``; a bin without a value is null. Rows
        whose field ``policy`` is null are moments: the jobs start and stop there; they stand in every part.
    """
    scale: dict[str, Json] = {"type": "symlog", "constant": SYMLOG_FROM} if is_wide else {"zero": True}
    shown: Json = [{"filter": "isValid(datum.policy)"}]
    return {
        "$schema": SCHEMA,
        "data": {"name": "bins"},
        "usermeta": {"panels": len(parts), "columns": 1},
        "params": [selector(CHOSEN, LOAD, loads)],
        "transform": [only_chosen("load", CHOSEN)],
        "facet": {
            "field": "part",
            "type": "nominal",
            "title": None,
            "sort": list(parts),
            "header": panel_header(),
        },
        "columns": 1,
        "resolve": {"scale": {"y": "independent"}},
        "spec": {
            "width": WIDTH - 100,
            "height": 150,
            "layer": [
                {
                    "transform": [{"filter": "!isValid(datum.policy)"}],
                    "mark": {"type": "rule", "strokeDash": _DASHES, "color": MUTED},
                    "encoding": {"x": numeric("time_s", TIME)},
                },
                {
                    "params": [legend_selection("policy")],
                    "transform": shown,
                    "mark": {"type": "line", "strokeWidth": 1.3},
                    "encoding": {
                        "x": numeric("time_s", TIME, zero=False),
                        "y": numeric("value", "", **scale) | {"title": None},
                        "color": coloured("policy", colours),
                        "strokeDash": dashed(coloured("policy", colours), list(colours)),
                        "opacity": faded_unless_selected(0.9),
                        "tooltip": [
                            tip("policy", "policy"),
                            tip("time_s", "time [s]", ".1f"),
                            tip("value", "value", ".4~g"),
                        ],
                    },
                },
            ],
        },
    }


def policy_panels(colours: Mapping[str, str], loads: Sequence[str]) -> dict[str, Json]:
    """Give mean and 99th percentile over time, a panel per policy, all on one scale.

    Parameters
    ----------
    colours : mapping
        Colour of each policy.
    loads : sequence of str
        Options of the menu.

    Returns
    -------
    dict
        Reads the dataset ``panels``: ``policy, load, time_s, mean_ms, p99_ms``; rows whose ``mean_ms`` and
        ``p99_ms`` are null and whose ``is_moment`` is true are where the jobs start and stop.
    """
    scale: dict[str, Json] = {"type": "log"}
    title = "latency [ms]"
    colour = {**coloured("policy", colours), "legend": None}
    line: dict[str, Json] = {"x": numeric("time_s", TIME, zero=False), "color": colour}
    measured: Json = [{"filter": "!datum.is_moment"}]
    return {
        "$schema": SCHEMA,
        "data": {"name": "panels"},
        "usermeta": {"panels": len(colours), "columns": min(len(colours), 2)},
        "params": [selector(CHOSEN, LOAD, loads)],
        "transform": [only_chosen("load", CHOSEN)],
        "facet": {
            "field": "policy",
            "type": "nominal",
            "title": None,
            "sort": list(colours),
            "header": panel_header(),
        },
        "columns": min(len(colours), 2),
        "spec": {
            "width": 350,
            "height": 170,
            "layer": [
                {
                    "transform": [{"filter": "datum.is_moment"}],
                    "mark": {"type": "rule", "strokeDash": _DASHES, "color": MUTED},
                    "encoding": {"x": numeric("time_s", TIME)},
                },
                {
                    "transform": measured,
                    "mark": {"type": "line", "strokeWidth": 1, "opacity": 0.45},
                    "encoding": {**line, "y": numeric("p99_ms", title, **scale)},
                },
                {
                    "transform": measured,
                    "mark": {"type": "line", "strokeWidth": 2},
                    "encoding": {
                        **line,
                        "y": numeric("mean_ms", title, **scale),
                        "tooltip": [
                            tip("policy", "policy"),
                            tip("time_s", "time [s]", ".1f"),
                            tip("mean_ms", "mean [ms]", ".4~g"),
                            tip("p99_ms", "p99 [ms]", ".4~g"),
                        ],
                    },
                },
            ],
        },
    }


def protection(
    colours: Mapping[str, str], loads: Sequence[str], tolerance_percent: float, reference: str, against: str
) -> dict[str, Json]:
    """Give what the service suffers over what the jobs get done, a point per policy.

    Parameters
    ----------
    colours : mapping
        Colour of each policy.
    loads : sequence of str
        Options of the menu.
    tolerance_percent : float
        Where the line of the tolerance lies.
    reference : str
        Policy that has 100 % of the work.
    against : str
        What the latency is compared with, in words that follow "more than".

    Returns
    -------
    dict
        Reads the dataset ``policies``: ``policy, load, work_percent, work_low, work_high, change_percent,
        change_low, change_high, verdict``; a missing limit is null.
    """
    x_title = f"work of the jobs [% of that under {reference}]"
    y_title = f"mean latency [% more than {against}]"
    x = numeric("work_percent", x_title, zero=True)
    y = numeric("change_percent", y_title, type="symlog", constant=10)
    colour = coloured("policy", colours)
    return {
        "$schema": SCHEMA,
        "data": {"name": "policies"},
        "width": WIDTH,
        "height": 300,
        "params": [selector(CHOSEN, LOAD, loads)],
        "transform": [only_chosen("load", CHOSEN)],
        "layer": [
            {
                "data": {"values": [{"tolerance": tolerance_percent}]},
                "mark": {"type": "rule", "strokeDash": _DASHES, "color": MUTED},
                "encoding": {"y": {"field": "tolerance", "type": "quantitative"}},
            },
            _limits(
                "work_low", {"x": numeric("work_low", x_title), "x2": {"field": "work_high"}, "y": y}, colour
            ),
            _limits(
                "change_low",
                {
                    "x": x,
                    "y": {"field": "change_low", "type": "quantitative", "title": y_title},
                    "y2": {"field": "change_high"},
                },
                colour,
            ),
            {
                "mark": {"type": "point", "filled": True, "size": 110},
                "encoding": {
                    "x": x,
                    "y": y,
                    "color": colour,
                    "shape": shaped("policy", list(colours)),
                    "tooltip": [
                        tip("policy", "policy"),
                        tip("work_percent", "work [%]", ".4~g"),
                        tip("change_percent", "latency [% more]", "+.3~g"),
                        tip("verdict", "verdict"),
                    ],
                },
            },
        ],
    }


def _limits(low: str, place: dict[str, Json], colour: dict[str, Json]) -> dict[str, Json]:
    """Give the rules of intervals where there are any."""
    return {
        "transform": [{"filter": f"isValid(datum.{low})"}],
        "mark": {"type": "rule", "strokeWidth": 1.5, "opacity": 0.6},
        "encoding": {**place, "color": colour},
    }


def tails(colours: Mapping[str, str], loads: Sequence[str]) -> dict[str, Json]:
    """Give the share of requests that are slower than a latency: full lines beside the jobs, dashed before.

    Parameters
    ----------
    colours : mapping
        Colour of each policy.
    loads : sequence of str
        Options of the menu.

    Returns
    -------
    dict
        Reads the dataset ``tails``: ``policy, load, stretch, share_percent, latency_ms``.
    """
    dashes: dict[str, Json] = {
        "field": "stretch",
        "type": "nominal",
        "title": None,
        "scale": {"domain": [*STRETCHES], "range": [[1, 0], _DASHES]},
        "legend": legend(STRETCHES, orient="bottom"),
    }
    return {
        "$schema": SCHEMA,
        "data": {"name": "tails"},
        "width": WIDTH,
        "height": 300,
        "params": [selector(CHOSEN, LOAD, loads)],
        "transform": [only_chosen("load", CHOSEN)],
        "encoding": {
            "x": numeric("latency_ms", "latency [ms]", "x", type="log"),
            "y": numeric("share_percent", "requests that are slower [%]", type="log"),
            "color": coloured("policy", colours),
            "opacity": faded_unless_selected(0.9),
            "tooltip": [
                tip("policy", "policy"),
                tip("stretch", "stretch"),
                tip("share_percent", "slower [%]", ".3~g"),
                tip("latency_ms", "latency [ms]", ".4~g"),
            ],
        },
        "layer": [
            {
                "params": [legend_selection("policy")],
                "mark": {"type": "line", "strokeWidth": 1.6},
                "encoding": {"strokeDash": dashes, "order": {"field": "latency_ms"}},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 45},
                "encoding": {"shape": shaped("policy", list(colours))},
            },
        ],
    }
