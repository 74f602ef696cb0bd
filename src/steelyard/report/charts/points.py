"""Points of errors of a clock, over load and over the time itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

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


def error_by_load(
    colours: Mapping[str, str], clocks: Sequence[str], limits: Sequence[float]
) -> dict[str, Json]:
    """Give the relative error of the outside clock by number of workers.

    Parameters
    ----------
    colours : mapping
        Colour of each isolation.
    clocks : sequence of str
        Options of the menu.
    limits : sequence of float
        Lines drawn across [percent].

    Returns
    -------
    dict
        Reads the dataset ``errors``: ``clock, isolation, setup, workload, workers, cv, is_apart, mean_ms,
        sd_ms``.
    """
    only_clock = only_chosen("clock", "chosen_clock")
    place: dict[str, Json] = {
        "x": {
            "field": "workers",
            "type": "ordinal",
            "title": "workers in parallel",
            "axis": {"labelAngle": 0},
        },
        "xOffset": {"field": "isolation", "scale": {"domain": list(colours)}},
        "y": numeric("cv", "sd of the error over mean run time [%]", type="log"),
        "color": coloured("isolation", colours),
        "opacity": faded_unless_selected(0.85),
    }
    points: dict[str, Json] = {
        "params": [legend_selection("isolation")],
        "transform": [only_clock],
        "mark": {"type": "point", "filled": True, "size": 55},
        "encoding": {
            **place,
            "shape": shaped("isolation", list(colours)),
            "tooltip": [
                tip("isolation", "isolation"),
                tip("setup", "setup"),
                tip("workload", "workload"),
                tip("cv", "error cv [%]", ".3~g"),
                tip("mean_ms", "mean error [ms]", ".4~g"),
                tip("sd_ms", "sd of the error [ms]", ".4~g"),
            ],
        },
    }
    rules: dict[str, Json] = {
        "data": {"values": [{"limit": limit, "label": f"{limit:g} %"} for limit in limits]},
        "mark": {"type": "rule", "strokeDash": [4, 4], "color": "#7C8894"},
        "encoding": {"y": {"field": "limit", "type": "quantitative"}},
    }
    return {
        "$schema": SCHEMA,
        "data": {"name": "errors"},
        "height": 270,
        "width": 820,
        "params": [selector("chosen_clock", "Clock", clocks)],
        "layer": [rules, points, ring(place, [only_clock], 190)],
    }


_FAR: Final = [
    *(-digit * 10.0**power for power in range(3, -1, -1) for digit in (5, 2, 1)),
    0.0,
    *(digit * 10.0**power for power in range(5) for digit in (1, 2, 5)),
]
"""Ticks of an axis that is linear around zero and logarithmic outside, where it reaches far."""

_TICKS: Final = f"max(-domain('y')[0], domain('y')[1]) > 10 ? {_FAR} : null"


def error_of_runs(
    colours: Mapping[str, str],
    clocks: Sequence[str],
    setups: Sequence[str],
    own_ms: Iterable[Sequence[float]] = (),
) -> dict[str, Json]:
    """Give the outside clock minus the program's own, run by run, over the run's own time.

    Parameters
    ----------
    colours : mapping
        Colour of each isolation.
    clocks, setups : sequence of str
        Options of the menus.
    own_ms : iterable of sequence of float
        Values of the horizontal axis by clock and setup, which decide its scale.

    Returns
    -------
    dict
        Reads the dataset ``pairs``: ``clock, isolation, setup, workload, own_ms, error_ms``.
    """
    return {
        "$schema": SCHEMA,
        "data": {"name": "pairs"},
        "height": 290,
        "width": 820,
        "params": [
            selector("chosen_clock", "Clock", clocks),
            selector("chosen_setup", "Setup", setups),
            legend_selection("isolation"),
        ],
        "transform": [only_chosen("clock", "chosen_clock"), only_chosen("setup", "chosen_setup")],
        "mark": {"type": "point", "filled": True, "size": 18},
        "encoding": {
            "x": numeric("own_ms", "the program's own time [ms]", "x", **fitting_scale(own_ms, zero=False)),
            "y": {
                **numeric("error_ms", "outside minus own [ms]", type="symlog", constant=1),
                "axis": {"values": {"expr": _TICKS}, "format": ",~r"},
            },
            "color": coloured("isolation", colours),
            "opacity": faded_unless_selected(0.55),
            "tooltip": [
                tip("isolation", "isolation"),
                tip("workload", "workload"),
                tip("own_ms", "own [ms]", ".3f"),
                tip("error_ms", "outside minus own [ms]", ".4f"),
            ],
        },
    }
