"""Colours and type of all charts."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from steelyard.report.dataset import Json

FONT: Final = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'
FILE_FONT: Final = "DejaVu Sans, Liberation Sans, Arial, sans-serif"

PALETTE: Final = (
    "#0072B2",
    "#B98C00",
    "#009E73",
    "#C93F12",
    "#C76B9C",
    "#3C97D3",
    "#8C6BB1",
    "#A6761D",
    "#7A8B00",
    "#C0392B",
    "#1B9E9E",
    "#6B7280",
)
"""Told apart by people with any of the common colour blindnesses.

SOURCE: the first six have the hues of Okabe & Ito (2008), Color Universal Design. All have a contrast of at
least 3 with a light and with a dark page (Web Content Accessibility Guidelines 2.2, 1.4.11).
"""

LEGEND_LIMIT: Final = 300
"""Longest label of a legend [px]."""

HIGHLIGHT: Final = "#C93F12"
MUTED: Final = "#7C8894"

CLASS_COLOURS: Final[dict[str, str]] = {
    "higher": "#C93F12",
    "lesser": "#0072B2",
    "same": "#2E9A66",
    "overlap": "#8A949E",
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


_PADDING: Final[Mapping[str, int]] = {"left": 5, "top": 5, "right": 16, "bottom": 5}
"""Beside a chart that fits its frame [px]: half a label may stand beyond the end of its axis."""


MARK_MARGIN: Final = 12
"""Room between the outermost value and the frame [px]; the largest mark, a ring, has a radius of 9 px."""


def page_config() -> dict[str, Json]:
    """Give the look of charts inside a page; the style sheet colours axes and text."""
    return {
        **_shapes(FONT, {**_LIGHT_INK, "symbol": MUTED}),
        "background": "transparent",
        "view": {"stroke": None},
        "padding": dict(_PADDING),
    }


class Theme(StrEnum):
    """Looks of a figure in a file.

    ``PRINT`` has colours that differ in lightness, so that a copy in black and white shows them, and dashed
    lines; ``LIGHT`` has those of the page; ``DARK`` has them on a dark ground, for slides.
    """

    PRINT = "print"
    LIGHT = "light"
    DARK = "dark"


PAPER: Final = "#FFFFFF"
NIGHT: Final = "#1B2026"
_LIGHT_INK: Final[Mapping[str, str]] = {
    "grid": "#E9EBED",
    "line": "#C5CAD0",
    "soft": "#59636E",
    "symbol": "#59636E",
    "ink": "#1C2126",
    "frame": "#DFE2E5",
}
_DARK_INK: Final[Mapping[str, str]] = {
    "grid": "#2A3138",
    "line": "#55606B",
    "soft": "#A5B0BA",
    "symbol": "#A5B0BA",
    "ink": "#E6E9EC",
    "frame": "#323A43",
}


def file_config(theme: Theme = Theme.LIGHT) -> dict[str, Json]:
    """Give the look of charts in files: dark text on white, or light text on a dark ground."""
    is_dark = theme is Theme.DARK
    return {
        **_shapes(FILE_FONT, _DARK_INK if is_dark else _LIGHT_INK),
        "background": NIGHT if is_dark else PAPER,
        # A reader's fonts may be wider than those that the room for names was measured with.
        "padding": {**_PADDING, "left": 9, "right": 5},
    }


DASHES: Final = ((1, 0), (6, 3), (2, 2), (9, 3, 2, 3), (4, 1), (1, 4))
"""Dashes of lines beside each other, which colour alone would not tell apart."""


def print_colours(count: int) -> list[str]:
    """Give colours from dark to light in equal steps of lightness, all of which white paper shows.

    SOURCE: Nunez, Anderton, Renslow (2018), Optimizing colormaps with consideration for color vision
    deficiency (cividis), from its dark end as far as the contrast with white is 3.

    Examples
    --------
    >>> print_colours(1), len(set(print_colours(12)))
    (['#00224E'], 12)
    """
    last = len(_CIVIDIS) - 1
    return [_between(last * at / max(count - 1, 1)) for at in range(count)]


_CIVIDIS: Final = ("#00224E", "#1B3B6F", "#434E6C", "#61656F", "#7D7C78", "#8F8B77", "#9A9369")


def _between(place: float) -> str:
    first = _CIVIDIS[int(place)]
    second = _CIVIDIS[min(int(place) + 1, len(_CIVIDIS) - 1)]
    share = place - int(place)
    mixed = (
        round((1 - share) * int(first[at : at + 2], 16) + share * int(second[at : at + 2], 16))
        for at in (1, 3, 5)
    )
    return "#" + "".join(f"{part:02X}" for part in mixed)


def _shapes(font: str, ink: Mapping[str, str]) -> dict[str, Json]:
    return {
        "font": font,
        "axis": {
            "labelFontSize": 11,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
            "titlePadding": 8,
            "gridColor": ink["grid"],
            "domainColor": ink["line"],
            "tickColor": ink["line"],
            "labelColor": ink["soft"],
            "titleColor": ink["ink"],
            "labelLimit": 260,
            "labelSeparation": 6,
        },
        "header": {"labelFontSize": 12, "labelFontWeight": 600, "titleFontSize": 12, "labelLimit": 240}
        | dict.fromkeys(("labelColor", "titleColor"), ink["ink"]),
        "legend": {
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
            "symbolSize": 90,
            "symbolOpacity": 1,
            "labelColor": ink["soft"],
            "titleColor": ink["ink"],
            "symbolBaseFillColor": ink["symbol"],
            "symbolBaseStrokeColor": ink["symbol"],
        },
        "title": {"color": ink["ink"], "subtitleColor": ink["soft"]},
        "scale": {"continuousPadding": MARK_MARGIN},
        "view": {"stroke": ink["frame"]},
        "bar": {"cornerRadiusEnd": 1},
    }
