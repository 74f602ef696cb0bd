"""Colours and type of all charts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from steelyard.report.dataset import Json

FONT: Final = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'
FILE_FONT: Final = "DejaVu Sans, Liberation Sans, Arial, sans-serif"

PALETTE: Final = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#CC79A7",
    "#56B4E9",
    "#8C6BB1",
    "#A6761D",
    "#7A8B00",
    "#C0392B",
    "#1B9E9E",
    "#6B7280",
)
"""Told apart by people with any of the common colour blindnesses.

SOURCE: the first six from Okabe & Ito (2008), Color Universal Design; the rest chosen at other lightness.
"""

LEGEND_LIMIT: Final = 300
"""Longest label of a legend [px]."""

HIGHLIGHT: Final = "#D55E00"
MUTED: Final = "#9AA4AE"

CLASS_COLOURS: Final[dict[str, str]] = {
    "higher": "#D55E00",
    "lesser": "#0072B2",
    "same": "#4DAF7C",
    "overlap": "#B8BFC6",
    "NA": "#E4E7EA",
}
"""The published four-way class, and the absent one."""


def assign_colours(names: Sequence[str], preferred: Mapping[str, str]) -> dict[str, str]:
    """Give each name one colour, the same in every chart.

    Parameters
    ----------
    names : sequence of str
        In the order of the design.
    preferred : mapping
        Fixed colours of well-known names.

    Examples
    --------
    >>> assign_colours(["bare", "new"], {"bare": "#6B7280"})
    {'bare': '#6B7280', 'new': '#0072B2'}
    """
    taken = {preferred[name] for name in names if name in preferred}
    free = [colour for colour in PALETTE if colour not in taken] or list(PALETTE)
    unknown = [name for name in names if name not in preferred]
    return {name: preferred.get(name) or free[unknown.index(name) % len(free)] for name in names}


MARK_MARGIN: Final = 12
"""Room between the outermost value and the frame [px]; the largest mark, a ring, has a radius of 9 px."""


def page_config() -> dict[str, Json]:
    """Give the look of charts inside a page; the style sheet colours axes and text."""
    return {**_shapes(FONT), "background": "transparent", "view": {"stroke": None}}


def file_config() -> dict[str, Json]:
    """Give the look of charts in files: dark text on white."""
    return {**_shapes(FILE_FONT), "background": "white"}


def _shapes(font: str) -> dict[str, Json]:
    return {
        "font": font,
        "axis": {
            "labelFontSize": 11,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
            "titlePadding": 8,
            "gridColor": "#E9EBED",
            "domainColor": "#C5CAD0",
            "tickColor": "#C5CAD0",
            "labelColor": "#59636E",
            "titleColor": "#1C2126",
            "labelLimit": 260,
            "labelSeparation": 6,
        },
        "header": {"labelFontSize": 12, "labelFontWeight": 600, "titleFontSize": 12, "labelLimit": 240},
        "legend": {
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
            "symbolSize": 90,
            "symbolOpacity": 1,
        },
        "scale": {"continuousPadding": MARK_MARGIN},
        "view": {"stroke": "#DFE2E5"},
        "bar": {"cornerRadiusEnd": 1},
    }
