"""The tree of causes: a program as it is, and a branch per intervention."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.report.charts.parts import FIGURE_WIDTH, LETTER_WIDTH, SCHEMA, coloured, tip, wrapped
from steelyard.report.charts.theme import MUTED

if TYPE_CHECKING:
    from steelyard.report.dataset import Json

WIDTH: Final = 820
TREE_COLOURS: Final = {
    "the program as it is": "#6B7280",
    "still spikes": "#C93F12",
    "more spikes": "#C0392B",
    "fewer spikes": "#B98C00",
    "spikes gone": "#009E73",
}
TREE_ROW: Final = 76
_ROOT_WIDTH: Final = 0.3
_BRANCH: Final = 0.38
_BOX: Final = "(datum.right - datum.left)"
_LETTERS: Final = f"floor(({_BOX} * width - 16) / {LETTER_WIDTH})"
"""Letters of a line in a box."""

_LOWER: Final = f"({FIGURE_WIDTH} > 720 ? 11 : 0)"
"""How much lower texts stand where a box is so wide that they need fewer lines [px]."""


def tree_of_causes(rows: int) -> dict[str, Json]:
    """Draw the tree: the program as it is, a branch per intervention, and whether the spikes are gone there.

    Parameters
    ----------
    rows : int
        Number of interventions, at least 1.

    Returns
    -------
    dict
        Reads the dataset ``nodes``: ``left, right, top, bottom, middle, text_x, name, told, verdict``, and
        the dataset ``edges``: ``x, y, x2, y2``; see `tree_node` and `tree_edges`.
    """
    hidden: dict[str, Json] = {"axis": None}
    x: dict[str, Json] = {
        "type": "quantitative",
        "scale": {"domain": [0, 1], "nice": False, "padding": 2},
        **hidden,
    }
    y: dict[str, Json] = {
        "type": "quantitative",
        "scale": {"domain": [0, rows], "reverse": True, "nice": False, "padding": 2},
        **hidden,
    }
    texts: dict[str, Json] = {"x": {"field": "text_x", **x}, "y": {"field": "middle", **y}}
    return {
        "$schema": SCHEMA,
        "data": {"name": "nodes"},
        "width": WIDTH,
        "height": TREE_ROW * rows,
        "layer": [
            {
                "data": {"name": "edges"},
                "mark": {"type": "rule", "color": MUTED, "strokeWidth": 1.5},
                "encoding": {
                    "x": {"field": "x", **x},
                    "y": {"field": "y", **y},
                    "x2": {"field": "x2"},
                    "y2": {"field": "y2"},
                },
            },
            {
                "mark": {"type": "rect", "cornerRadius": 6, "opacity": 0.16, "strokeWidth": 1.5},
                "encoding": {
                    "x": {"field": "left", **x},
                    "x2": {"field": "right"},
                    "y": {"field": "top", **y},
                    "y2": {"field": "bottom"},
                    "color": coloured("verdict", TREE_COLOURS),
                    "tooltip": [tip("name", "intervention"), tip("told", "spikes")],
                },
            },
            {
                "mark": {
                    "type": "text",
                    "align": "left",
                    "baseline": "bottom",
                    "dy": {"expr": f"{_LOWER} - 14"},
                    "fontWeight": 600,
                    "fontSize": 13,
                    "limit": {"expr": f"{_BOX} * width - 16"},
                },
                "encoding": {**texts, "text": {"field": "name"}},
            },
            {
                "transform": [{"calculate": wrapped("datum.told", _LETTERS, lines=3), "as": "lines"}],
                "mark": {
                    "type": "text",
                    "align": "left",
                    "baseline": "top",
                    "dy": {"expr": f"{_LOWER} - 10"},
                    "fontSize": 11,
                    "limit": {"expr": f"{_BOX} * width - 16"},
                },
                "encoding": {**texts, "text": {"field": "lines"}},
            },
        ],
    }


Node = dict[str, "str | int | float | bool | None"]


def tree_node(place: int | None, rows: int, name: str, told: str, verdict: str) -> Node:
    """Give the box of an intervention by its place from the top; ``None`` for the program as it is."""
    middle = rows / 2 if place is None else place + 0.5
    left, right = (0.0, _ROOT_WIDTH) if place is None else (_BRANCH, 1.0)
    return {
        "left": left,
        "right": right,
        "top": middle - 0.4,
        "bottom": middle + 0.4,
        "middle": middle,
        "text_x": left + 0.012,
        "name": name,
        "told": told,
        "verdict": verdict,
    }


def tree_edges(rows: int) -> list[Node]:
    """Give the lines from the program as it is to each intervention."""
    trunk = (_ROOT_WIDTH + _BRANCH) / 2
    root: Node = {"x": _ROOT_WIDTH, "y": rows / 2, "x2": trunk, "y2": rows / 2}
    stem: Node = {"x": trunk, "y": 0.5, "x2": trunk, "y2": rows - 0.5}
    branches: list[Node] = [
        {"x": trunk, "y": place + 0.5, "x2": _BRANCH, "y2": place + 0.5} for place in range(rows)
    ]
    return [root, stem, *branches]
