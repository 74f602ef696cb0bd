"""Charts of commands beside each other: ratios with the margin, runs in their order, distributions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.report.charts.parts import (
    SCHEMA,
    WHOLE_NUMBERS,
    coloured,
    difference,
    fitting_scale,
    named_rows,
    numeric,
    shaped,
    tip,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from steelyard.report.dataset import Json

ROW_HEIGHT = 40
MARGIN_COLOUR = "#4DAF7C"


def forest_of_ratios(
    names: Sequence[str], margin: tuple[float, float], baseline: str, *, is_wide: bool = False
) -> dict[str, Json]:
    """Give the difference of each contender to its baseline with its interval, over the band of the margin.

    Parameters
    ----------
    names : sequence of str
        Rows, in order.
    margin : tuple of float
        Ends of the band [percent].
    baseline : str
        What the axis says the others are compared with.
    is_wide : bool
        Whether differences are so much larger than the margin that the axis is logarithmic outside it.

    Returns
    -------
    dict
        Reads the dataset ``ratios``: ``contender, percent, low, high, narrow_low, narrow_high, verdict``; a
        missing limit is null. The narrow interval is the thick line.
    """
    rows = named_rows("contender", names)
    title = f"difference to {baseline} [%]"
    place = difference("percent", title, margin[1] if is_wide else None)
    return {
        "$schema": SCHEMA,
        "data": {"name": "ratios"},
        "height": ROW_HEIGHT * len(names) + 20,
        "width": 820,
        "layer": [
            {
                "data": {"values": [{"from": margin[0], "to": margin[1]}]},
                "mark": {"type": "rect", "color": MARGIN_COLOUR, "opacity": 0.18},
                "encoding": {"x": {"field": "from", "type": "quantitative"}, "x2": {"field": "to"}},
            },
            {
                "data": {"values": [{"zero": 0}]},
                "mark": {"type": "rule", "color": "#9AA4AE", "strokeDash": [4, 4]},
                "encoding": {"x": {"field": "zero", "type": "quantitative"}},
            },
            {
                "mark": {"type": "rule", "strokeWidth": 2, "color": "#0072B2"},
                "encoding": {
                    "y": rows,
                    "x": {"field": "low", "type": "quantitative", "title": title},
                    "x2": {"field": "high"},
                },
            },
            {
                "mark": {"type": "rule", "strokeWidth": 6, "opacity": 0.5, "color": "#0072B2"},
                "encoding": {
                    "y": rows,
                    "x": {"field": "narrow_low", "type": "quantitative", "title": title},
                    "x2": {"field": "narrow_high"},
                },
            },
            {
                "mark": {"type": "point", "filled": True, "size": 90, "color": "#0072B2"},
                "encoding": {
                    "y": rows,
                    "x": place,
                    "tooltip": [
                        tip("contender", "command"),
                        tip("percent", "difference [%]", "+.3~g"),
                        tip("low", "low [%]", "+.3~g"),
                        tip("high", "high [%]", "+.3~g"),
                        tip("verdict", "verdict"),
                    ],
                },
            },
        ],
    }


def run_sequence(colours: Mapping[str, str], axis: str, values: Sequence[float] = ()) -> dict[str, Json]:
    """Give every run in its order of execution.

    Parameters
    ----------
    colours : mapping
        Colour of each command.
    axis : str
        Title of the vertical axis, with its unit.
    values : sequence of float
        All values of the vertical axis, which decide its scale.

    Returns
    -------
    dict
        Reads the dataset ``sequence``: ``command, position, value, kind, flags``; kinds are ``measured``,
        ``outlier`` and ``warm-up``.
    """
    return {
        "$schema": SCHEMA,
        "data": {"name": "sequence"},
        "height": 280,
        "width": 820,
        "mark": {"type": "point", "filled": True, "size": 34, "opacity": 0.75},
        "encoding": {
            "x": numeric("position", "run, in the order of measuring", zero=False) | {"axis": WHOLE_NUMBERS},
            "y": numeric("value", axis, **fitting_scale([values], zero=False)),
            "color": coloured("command", colours),
            "shape": shaped("kind", ["measured", "outlier", "warm-up"]) | {"legend": {"orient": "bottom"}},
            "tooltip": [
                tip("command", "command"),
                tip("position", "run", ",d"),
                tip("value", axis, ".5~g"),
                tip("kind", "kind"),
                tip("flags", "flags"),
            ],
        },
    }


def distributions(colours: Mapping[str, str], axis: str, values: Sequence[float] = ()) -> dict[str, Json]:
    """Give the share of the runs of each command that took at most so much.

    Parameters
    ----------
    colours : mapping
        Colour of each command.
    axis : str
        Title of the horizontal axis, with its unit.
    values : sequence of float
        All values of the horizontal axis, which decide its scale.

    Returns
    -------
    dict
        Reads the dataset ``shares``: ``command, value, percent``, ascending for each command.
    """
    return {
        "$schema": SCHEMA,
        "data": {"name": "shares"},
        "height": 260,
        "width": 820,
        "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 2},
        "encoding": {
            "x": numeric("value", axis, "x", **fitting_scale([values], zero=False)),
            "y": numeric("percent", "runs that took at most this much [%]", domain=[0, 100]),
            "color": coloured("command", colours),
            "tooltip": [
                tip("command", "command"),
                tip("value", axis, ".5~g"),
                tip("percent", "runs [%]", ".3~g"),
            ],
        },
    }
