"""Charts of commands beside each other: runs in their order, distributions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.report.charts.parts import (
    SCHEMA,
    WHOLE_NUMBERS,
    coloured,
    dashed,
    fitting_scale,
    legend,
    numeric,
    shaped,
    tip,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from steelyard.report.dataset import Json


_KINDS: Final = ("measured", "outlier", "warm-up")


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
            "shape": shaped("kind", _KINDS) | {"legend": legend(_KINDS, orient="bottom")},
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
            "strokeDash": dashed(coloured("command", colours), list(colours)),
            "tooltip": [
                tip("command", "command"),
                tip("value", axis, ".5~g"),
                tip("percent", "runs [%]", ".3~g"),
            ],
        },
    }
