"""Charts of pages: drawn on the server as SVG, light or dark, wide or narrow, so that no script is needed."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from steelyard.report.charts.theme import FILE_FONT, page_config
from steelyard.report.drawing.drawn import hash_of_figure
from steelyard.report.drawing.engine import drawn_svg
from steelyard.report.drawing.figures import with_data

if TYPE_CHECKING:
    from steelyard.report.dataset import Json
    from steelyard.report.page import Figure

Theme = Literal["light", "dark"]
WIDTHS: Final[dict[str, int]] = {"wide": 1060, "narrow": 330}
"""Widths that a chart is drawn in [px]: on a phone, nobody can read a wide one."""
MOST_KEPT: Final = 200

_INK: Final[dict[Theme, dict[str, str]]] = {
    "light": {
        "grid": "#e9ebed",
        "line": "#c5cad0",
        "soft": "#59636e",
        "ink": "#1c2126",
        "mark": "#0072b2",
        "band": "#9fc9e6",
    },
    "dark": {
        "grid": "#2a3138",
        "line": "#4a545e",
        "soft": "#a5b0ba",
        "ink": "#e6e9ec",
        "mark": "#56b4e9",
        "band": "#2c5f80",
    },
}
"""As in the style sheet of reports."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A figure as it waits to be drawn, or is drawn."""

    figure: Figure
    drawings: dict[tuple[Theme, str], str]


class Drawings:
    """The figures of the pages shown last, by what they show."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Kept] = OrderedDict()

    def keep(self, figure: Figure) -> str:
        """Keep a figure, and give the name it is drawn under."""
        name = hashlib.sha256(hash_of_figure(figure).encode()).hexdigest()[:32]
        if name not in self._kept:
            self._kept[name] = Kept(figure, {})
        self._kept.move_to_end(name)
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        return name

    def of(self, name: str) -> Kept | None:
        """Give a figure that was kept."""
        return self._kept.get(name)


def draw(figure: Figure, theme: Theme, size: str) -> str:
    """Draw a figure as SVG.

    Parameters
    ----------
    figure : Figure
        A chart of one panel.
    theme : str
        ``light`` or ``dark``.
    size : str
        ``wide`` or ``narrow``.

    Raises
    ------
    CapabilityError
        If this installation cannot draw figures.
    """
    width = WIDTHS[size]
    spec = with_data(figure, width)
    spec |= {"config": _config(theme), "width": width, "autosize": {"type": "fit-x", "contains": "padding"}}
    return drawn_svg(json.dumps(spec))


def _config(theme: Theme) -> dict[str, Json]:
    ink, config = _INK[theme], page_config()
    axis: Json = {
        **_part(config, "axis"),
        "gridColor": ink["grid"],
        "domainColor": ink["line"],
        "tickColor": ink["line"],
        "labelColor": ink["soft"],
        "titleColor": ink["ink"],
    }
    legend: Json = {**_part(config, "legend"), "labelColor": ink["soft"], "titleColor": ink["ink"]}
    marks: Json = {"color": ink["mark"]}
    return {
        **config,
        "font": FILE_FONT,
        "axis": axis,
        "legend": legend,
        "mark": marks,
        "area": {"color": ink["band"]},
    }


def _part(config: dict[str, Json], name: str) -> dict[str, Json]:
    part = config[name]
    return part if isinstance(part, dict) else {}
