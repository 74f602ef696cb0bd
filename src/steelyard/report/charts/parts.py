"""Pieces that several kinds of chart share: selectors, colour scales, axes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, Literal
from unicodedata import combining, east_asian_width

from steelyard.report.charts.theme import DASHES, LEGEND_LIMIT, PALETTE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from steelyard.report.dataset import Json

SCHEMA: Final = "https://vega.github.io/schema/vega-lite/v6.json"
"""Names the version of the grammar; nothing is fetched from it."""

_IS_WHOLE: Final = "datum.value % 1 === 0"
WHOLE_NUMBERS: Final[dict[str, Json]] = {
    "tickMinStep": 1,
    "format": "d",
    "labelExpr": f"{_IS_WHOLE} ? datum.label : ''",
    "gridOpacity": {"condition": {"test": _IS_WHOLE, "value": 1}, "value": 0},
    "tickOpacity": {"condition": {"test": _IS_WHOLE, "value": 1}, "value": 0},
}
"""Axis of numbers of things. Between 0 and 1 there is a tick all the same, which is not shown."""


def selector(name: str, label: str, options: Sequence[str], chosen: str | None = None) -> dict[str, Json]:
    """Give a parameter the reader sets with a menu; with one option there is no menu.

    Parameters
    ----------
    name : str
        Name in expressions.
    label : str
        Text beside the menu.
    options : sequence of str
        At least one.
    chosen : str or None
        The option at first; the first by default.
    """
    parameter: dict[str, Json] = {"name": name, "value": chosen if chosen is not None else options[0]}
    if len(options) > 1:
        parameter["bind"] = {"input": "select", "options": list(options), "name": f"{label} "}
    return parameter


def only_chosen(field: str, parameter: str) -> dict[str, Json]:
    """Give the transform that keeps the rows of the chosen option."""
    return {"filter": f"datum.{field} === {parameter}"}


def legend_selection(field: str) -> dict[str, Json]:
    """Give a selection made by clicking entries of the legend."""
    return {"name": "legend_choice", "select": {"type": "point", "fields": [field]}, "bind": "legend"}


def faded_unless_selected(shown: float) -> dict[str, Json]:
    """Give an opacity that fades what the legend does not select."""
    return {"condition": {"param": "legend_choice", "value": shown}, "value": 0.08}


def coloured(
    field: str, colours: Mapping[str, str], *, is_beside_names: bool = False, symbol: str | None = None
) -> dict[str, Json]:
    """Give a colour channel with one fixed colour per name.

    Parameters
    ----------
    field : str
        Column of the names.
    colours : mapping
        Colour of each name.
    is_beside_names : bool
        Whether names of rows (`named_rows`) stand left of the chart and its legend.
    symbol : str or None
        Shape in the legend, where it is not that of the marks.
    """
    shape: dict[str, Json] = {} if symbol is None else {"symbolType": symbol}
    return {
        "field": field,
        "type": "nominal",
        "title": None,
        "scale": {"domain": list(colours), "range": list(colours.values())},
        "legend": legend(colours, is_beside_names=is_beside_names) | shape,
    }


def dashed(colour: Mapping[str, Json], names: Sequence[str]) -> dict[str, Json]:
    """Give a dash channel beside a colour channel, so that lines can be told apart without colour."""
    dashes: list[Json] = [[*DASHES[(at + at // len(PALETTE)) % len(DASHES)]] for at in range(len(names))]
    return {**colour, "scale": {"domain": list(names), "range": dashes}}


def legend(
    names: Collection[str], *, is_beside_names: bool = False, orient: Literal["top", "bottom"] = "top"
) -> dict[str, Json]:
    """Give a legend above or below the chart, in as many columns as there is room for beside its axis.

    A long entry takes up to three lines; one that is longer loses its middle: names of one kind differ at
    their ends.
    """
    axis = f"{ROW_NAMES} * {FIGURE_WIDTH}" if is_beside_names else f"{AXIS_ROOM}"
    room = f"({FIGURE_WIDTH} - {axis} - {LEGEND_SYMBOL})"
    longest = max(map(letters_of, names), default=0)
    entry = min(longest * LETTER_WIDTH, LEGEND_LIMIT) + LEGEND_SYMBOL
    limit = f"min({LEGEND_LIMIT}, {room} - {LEGEND_SYMBOL})"
    found: dict[str, Json] = {
        "orient": orient,
        "columns": {"expr": f"max(1, floor({room} / {entry}))"},
        "labelLimit": {"expr": limit},
    }
    if longest > SHORT_ENTRY:
        letters = f"floor({limit} / {LETTER_WIDTH})"
        found["labelExpr"] = wrapped("datum.label", letters, names, lines=3, is_cut=True)
    return found


def panel_header(**look: Json) -> dict[str, Json]:
    """Give the headings of panels: in up to three lines where panels side by side leave no room for one."""
    letters = f"floor({FIGURE_WIDTH} / {HEADINGS_IN_A_ROW * HEADING_LETTER_WIDTH})"
    return {"labelExpr": wrapped("datum.label", letters, lines=3), **look}


def shaped(field: str, names: Sequence[str], *, is_beside_names: bool = False) -> dict[str, Json]:
    """Give a shape channel, so that names can be told apart without colour, and those of equal colour too."""
    shapes = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down"]
    return {
        "field": field,
        "type": "nominal",
        "title": None,
        "scale": {
            "domain": list(names),
            "range": [shapes[(at + at // len(PALETTE)) % len(shapes)] for at in range(len(names))],
        },
        "legend": legend(names, is_beside_names=is_beside_names),
    }


def numeric(field: str, title: str, channel: Literal["x", "y"] = "y", /, **scale: Json) -> dict[str, Json]:
    """Give a position channel of numbers.

    Parameters
    ----------
    field, title : str
        Column and axis title, with its unit.
    channel : str
        Which axis it is; ticks of a logarithmic one follow from what it shows.
    **scale : Json
        Properties of the scale, such as ``type="log"`` or ``zero=False``. Unless they say so, the axis does
        not end at a tick but beside the outermost mark.
    """
    place: dict[str, Json] = {
        "field": field,
        "type": "quantitative",
        "title": title,
        "scale": {"nice": False, **scale},
    }
    return place | {"axis": log_axis(channel)} if scale.get("type") == "log" else place


def names_below(names: Iterable[str]) -> dict[str, Json]:
    """Give a horizontal axis of names: upright where they would run into each other."""
    room = max((max(map(letters_of, name.split(","))) for name in names), default=0) * LETTER_WIDTH + 8
    is_narrow = f"1.2 * bandwidth('x') < {room}"
    return {
        "labelAngle": {"expr": f"{is_narrow} ? -90 : 0"},
        "labelAlign": {"expr": f"{is_narrow} ? 'right' : 'center'"},
        "labelBaseline": {"expr": f"{is_narrow} ? 'middle' : 'top'"},
        "labelLimit": 200,
    }


def named_rows(field: str, names: Sequence[str]) -> dict[str, Json]:
    """Give a vertical axis of names in order.

    A long name takes two lines of two fifths of the figure. One that is longer loses its middle: names of one
    kind differ at their ends.
    """
    letters = f"floor({ROW_NAMES} * {FIGURE_WIDTH} / {LETTER_WIDTH})"
    return {
        "field": field,
        "type": "nominal",
        "title": None,
        "sort": list(names),
        "axis": {
            "labelExpr": wrapped("datum.label", letters, names, lines=2, is_cut=True),
            "labelLimit": {"expr": f"{ROW_NAMES} * {FIGURE_WIDTH}"},
        },
    }


def wrapped(text: str, letters: str, names: Iterable[str] = "…", *, lines: int, is_cut: bool = False) -> str:
    """Give the expression of the lines of a text, broken where one would have too many letters.

    A letter of an ideographic script, or a picture, counts as two. No letter loses its accents.

    Parameters
    ----------
    text : str
        Expression of the text.
    letters : str
        Expression of the most letters of a line.
    names : iterable of str
        All that the text may be, where it is known: that of plain letters needs less.
    lines : int
        Most lines; the last one has the rest.
    is_cut : bool
        Whether a text that needs more lines loses its middle.
    """
    letters = f"max({letters}, 4)"
    is_plain = all(map(str.isascii, names))
    found = text if is_plain else f"replace({text}, regexp('({_WIDE})', 'gu'), '$1{_FILLER}')"
    if is_cut:
        found = _shortened(found, letters, lines)
    for line in range(1, lines):
        before = "(?:[^\\n]*\\n){" + str(line - 1) + "}"
        room = f"{{1,' + {letters} + '}}"
        full = f"{{' + {letters} + '}}{_MARKS}*(?!{_MARKS})"
        fits = f"(?=.{{1,' + {lines - line} * {letters} + '}}$)"
        # Where the rest fits: at a space, else after a sign that parts a name, else where the line is full.
        # Where it does not: at the last space, else where the line is full.
        whole = f"(.{room}) {fits}|(.{room})(?<=[-/.,_:]){fits}|(.{full}){fits}"
        ends = f"(?:{whole}|(.{room}) (?=.)|(.{full})(?=.))"
        last = f"peek(split({found}, '\\n'))"
        broken = f"replace({found}, regexp('^({before}){ends}', 'u'), '$1$2$3$4$5$6\\n')"
        found = f"({_count(last)} > {letters} ? {broken} : {found})"
    return f"split(replace({found}, regexp('{_FILLER}', 'g'), ''), '\\n')"


def letters_of(name: str) -> int:
    """Count the letters of a name by the room they take."""
    return sum((not combining(sign)) + (east_asian_width(sign) in "WF") for sign in name)


def _shortened(text: str, letters: str, lines: int) -> str:
    """Give the expression of a text that loses its middle where it needs more than so many lines."""
    half = f"' + (floor({lines} * {letters} / 2) - 1) + '}}"
    ends = f"regexp('^(.{{{half}{_MARKS}*).*?(?!{_MARKS})(.{{0,{half})$', 'u'), '$1…$2'"
    return f"({_count(text)} > {lines} * {letters} - 1 ? replace({text}, {ends}) : {text})"


def _count(text: str) -> str:
    """Give the expression of the count of signs of a text, of which some are pairs of the engine's units."""
    return f"length(replace({text}, regexp('[\\ud800-\\udbff]', 'g'), ''))"


_FILLER: Final = "\\u2060"
"""Stands behind a letter that is as wide as two; no text that is shown contains it."""

_MARKS: Final = f"[\\\\p{{M}}{_FILLER}]"
"""What belongs to the letter before it."""

_WIDE: Final = (
    "[\\u3000-\\u303f\\uff01-\\uff60\\\\p{sc=Han}\\\\p{sc=Hira}\\\\p{sc=Kana}\\\\p{sc=Hang}\\\\p{EPres}]"
)
"""Letters that are as wide as two."""

FIGURE_WIDTH: Final = "figure_width"
"""Parameter that whoever draws a chart sets to the whole width it has [px]."""

LETTER_WIDTH: Final = 7
"""Width of a letter of a label, at most on average [px]."""

HEADING_LETTER_WIDTH: Final = 8
"""Width of a letter of a heading, at most on average [px]."""

HEADINGS_IN_A_ROW: Final = 2.5
"""Headings that find room side by side, axes included."""

AXIS_ROOM: Final = 60
"""Room for an upright axis of numbers with its title, left of a legend [px]."""

LEGEND_SYMBOL: Final = 34
"""Room for the symbol of an entry of a legend, and before the next one [px]."""

SHORT_ENTRY: Final = 20
"""Letters of an entry that any figure has room for."""

ROW_NAMES: Final = 0.4
"""Share of the width that names of rows may take."""

WIDE_SPAN: Final = 20.0
"""Bars, and differences beside their tolerance, that span more are shown on a logarithmic axis."""

LEVEL_SPAN: Final = 5.0
"""Levels that span more in one view are shown on a logarithmic axis, where every spread has the room that its
level gives it. On a linear one, five percent of the smallest level would be 3.5 px of 280."""


def is_wide(values: Iterable[float | None], span: float = WIDE_SPAN) -> bool:
    """Tell whether positive values span so much that only a logarithmic axis shows the small ones.

    Examples
    --------
    >>> is_wide([0.5, None, 60.0]), is_wide([3.0, 40.0]), is_wide([0.0, 40.0])
    (True, False, False)
    """
    present = [value for value in values if value is not None]
    return bool(present) and min(present) > 0 and max(present) > span * min(present)


def difference(field: str, title: str, constant: float | None) -> dict[str, Json]:
    """Give a horizontal position of differences.

    Parameters
    ----------
    field, title : str
        Column [percent] and axis title.
    constant : float or None
        Beyond so many percent on either side the axis is logarithmic; ``None``: it is linear.
    """
    # A title longer than the axis reaches below the names of the rows.
    room: dict[str, Json] = {"titleAnchor": "end", "titleLimit": {"expr": f"{FIGURE_WIDTH} - 8"}}
    if constant is None:
        return numeric(field, title, "x") | {"axis": room}
    small: list[float] = [-99, -90, -50, -20, -10, -5, -2, -1, 0, 1, 2, 5, 10, 20, 50]
    ticks = [tick for tick in small if tick == 0 or abs(tick) >= constant]
    ticks += [digit * 10.0**power for power in range(2, 9) for digit in (1, 3)]
    signed = "datum.value === 0 ? '0' : format(datum.value, '+,~r')"
    axis: dict[str, Json] = {**room, "values": [*ticks], "labelExpr": signed}
    return numeric(field, title, "x", type="symlog", constant=constant) | {"axis": axis}


def log_axis(
    channel: Literal["x", "y"], digits: Sequence[int] = (1, 2, 5), number_format: str = "~g"
) -> dict[str, Json]:
    """Give few ticks per decade to an axis: a line for each digit hides the points.

    Parameters
    ----------
    channel : str
        Which axis it is.
    digits : sequence of int
        Leading digits of the ticks. An axis of less than a decade, which may have none of them, has others.
    number_format : str
        Of the labels, in the notation of d3.
    """
    ticks = [digit * 10.0**power for power in range(-9, 13) for digit in digits]
    shown = f"domain('{channel}')"
    values: dict[str, Json] = {"expr": f"{shown}[1] > 10 * {shown}[0] ? {json.dumps(ticks)} : null"}
    return {"values": values, "format": number_format}


def fitting_scale(views: Iterable[Iterable[float | None]], **linear: Json) -> dict[str, Json]:
    """Give a logarithmic scale where the positive levels of a view span much, else a linear one as given.

    Parameters
    ----------
    views : iterable
        What is seen at once, such as the values of one option of a menu. A logarithmic scale needs values
        above zero in every view.
    **linear : Json
        Properties of the linear scale.
    """
    present = [[value for value in view if value is not None] for view in views]
    is_positive = all(value > 0 for view in present for value in view)
    is_log = is_positive and any(is_wide(view, LEVEL_SPAN) for view in present)
    return {"type": "log"} if is_log else linear


def log_note(views: Iterable[Iterable[float | None]], axis: str = "axis") -> str:
    """Give the sentence of a caption that says why `fitting_scale` chose a logarithmic axis; else nothing."""
    if not fitting_scale(views):
        return ""
    return (
        f" The {axis} is logarithmic because values differ by more than a factor of {LEVEL_SPAN:g}: equal "
        "ratios have equal lengths."
    )


def ring(encoding: dict[str, Json], before: Sequence[Json] = (), size: int = 260) -> dict[str, Json]:
    """Give the layer of rings around the points that stand apart: no difference is told by colour alone.

    Parameters
    ----------
    encoding : dict
        Where the points lie.
    before : sequence
        Transforms that choose among the rows; of those, the ones whose field ``is_apart`` is true get a ring.
    size : int
        Area of a ring [px^2].
    """
    return {
        "transform": [*before, {"filter": "datum.is_apart"}],
        "mark": {"type": "point", "shape": "circle", "filled": False, "size": size, "strokeWidth": 1.8},
        "encoding": encoding,
    }


def tip(field: str, title: str, number_format: str | None = None) -> dict[str, Json]:
    """Give one line of a tooltip."""
    line: dict[str, Json] = {"field": field, "title": title}
    if number_format is not None:
        line |= {"type": "quantitative", "format": number_format}
    return line
