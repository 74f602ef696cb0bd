"""Pieces that several kinds of chart share: selectors, colour scales, axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from steelyard.report.page import Json

SCHEMA: Final = "https://vega.github.io/schema/vega-lite/v6.json"
"""Names the version of the grammar; nothing is fetched from it."""


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


def coloured(field: str, colours: Mapping[str, str], title: str | None = None) -> dict[str, Json]:
    """Give a colour channel with one fixed colour per name."""
    return {
        "field": field,
        "type": "nominal",
        "title": title,
        "scale": {"domain": list(colours), "range": list(colours.values())},
        "legend": {"orient": "top", "columns": 0},
    }


def shaped(field: str, names: Sequence[str]) -> dict[str, Json]:
    """Give a shape channel, so that names can be told apart without colour."""
    shapes = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down"]
    return {
        "field": field,
        "type": "nominal",
        "title": None,
        "scale": {
            "domain": list(names),
            "range": [shapes[index % len(shapes)] for index in range(len(names))],
        },
        "legend": {"orient": "top", "columns": 0},
    }


def numeric(field: str, title: str, **scale: Json) -> dict[str, Json]:
    """Give a position channel of numbers.

    Parameters
    ----------
    field, title : str
        Column and axis title, with its unit.
    **scale : Json
        Properties of the scale, such as ``type="log"`` or ``zero=False``.
    """
    channel: dict[str, Json] = {
        "field": field,
        "type": "quantitative",
        "title": title,
        "scale": dict(scale),
    }
    return channel | {"axis": LOG_AXIS} if scale.get("type") == "log" else channel


WIDE_SPAN: Final = 20.0
"""Values that span more are shown on a logarithmic axis: on a linear one a spread of five percent of the
smallest would be a fifth of a pixel in a panel of this height."""


def is_wide(values: Iterable[float | None]) -> bool:
    """Tell whether positive values span so much that only a logarithmic axis shows the small ones.

    Examples
    --------
    >>> is_wide([0.5, None, 60.0]), is_wide([3.0, 40.0]), is_wide([0.0, 40.0])
    (True, False, False)
    """
    present = [value for value in values if value is not None]
    return bool(present) and min(present) > 0 and max(present) > WIDE_SPAN * min(present)


LOG_AXIS: Final[dict[str, Json]] = {
    "values": [digit * 10.0**power for power in range(-4, 7) for digit in (1, 2, 5)],
    "format": "~g",
}
"""Few ticks per decade: a line for each digit hides the points."""


def fitting_scale(values: Iterable[float | None], **linear: Json) -> dict[str, Json]:
    """Give a logarithmic scale where values span very much, else a linear one as given."""
    return {"type": "log", "nice": False, "padding": 10} if is_wide(values) else linear


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
