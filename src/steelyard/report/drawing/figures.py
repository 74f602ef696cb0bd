"""Figures as files: each chart drawn by the engine of the page, without a browser."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Final

from steelyard.errors import unwritable
from steelyard.report.charts.parts import FIGURE_WIDTH, LETTER_WIDTH
from steelyard.report.charts.theme import Theme, file_config
from steelyard.report.drawing.drawn import drawn_of
from steelyard.report.drawing.engine import drawn_chart

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from steelyard.report.dataset import Json
    from steelyard.report.page import Figure, Page

AXIS_WIDTH: Final = 70
"""Room for the vertical axis and its title [px], as in the script of the page."""

PANEL_GAP: Final = 22
"""Room between panels side by side [px], as in the script of the page."""

NARROW: Final = 420
"""Width below which a title that is longer than its axis ends where the axis does [px], as in that script."""

DEFAULT_WIDTH: Final = 820
"""Width of a chart of one panel that states none, or gives a part of it to the names of rows [px]."""


def write_figures(page: Page, folder: Path) -> list[Path]:
    """Write every figure as SVG and PNG, and what was drawn; menus keep the choice they have at first.

    Parameters
    ----------
    page : Page
        Whose figures are written.
    folder : Path
        Created when absent.

    Returns
    -------
    list of Path
        The figures' files, in order.

    Raises
    ------
    DataError
        If a file cannot be written.
    CapabilityError
        If this installation cannot draw figures.
    """
    written: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for figure in page.figures():
            written.extend(_write(figure, folder))
        drawn_of(page.figures(), written).write(folder)
    except OSError as error:
        raise unwritable(folder, error, "check the rights of the folder") from error
    return written


def file_spec(figure: Figure) -> dict[str, Json]:
    """Give the specification of a figure with its data inside, for a file."""
    width = _width_of(figure)
    spec = with_data(figure, width)
    title: dict[str, Json] = {"text": figure.title, "fontSize": 14, "offset": 12}
    spec["title"] = title | chosen_options(spec, width)
    return spec


def with_data(figure: Figure, width: int, theme: Theme = Theme.LIGHT) -> dict[str, Json]:
    """Give the specification of a figure with its data inside, without a title.

    Parameters
    ----------
    figure : Figure
        What is drawn.
    width : int
        Of the whole figure [px]; the legend and the names of rows fit themselves into it.
    theme : Theme
        Its look.
    """
    spec = copy.deepcopy(figure.spec)
    spec["datasets"] = {name: data.rows(data.drawn) for name, data in figure.datasets.items()}
    axis_x: dict[str, Json] = {"titleLimit": width - 16} | ({"titleAnchor": "end"} if width < NARROW else {})
    spec["config"] = {**file_config(theme), "axisX": axis_x}
    params = spec.get("params")
    spec["params"] = [{"name": FIGURE_WIDTH, "value": width}, *(params if isinstance(params, list) else [])]
    return spec


def menus_of(spec: Mapping[str, Json]) -> dict[str, dict[str, Json]]:
    """Give the menus of a specification: each parameter by the label of its menu."""
    params = spec.get("params")
    found = [each for each in params if isinstance(each, dict)] if isinstance(params, list) else []
    return {
        str(bind["name"]).strip(): each
        for each in found
        if isinstance(bind := each.get("bind"), dict) and "options" in bind
    }


def chosen_options(spec: Mapping[str, Json], width: int) -> dict[str, Json]:
    """Give the part of a title that says what is chosen in the menus, which a file has not.

    Parameters
    ----------
    spec : mapping
        Specification of the figure.
    width : int
        Room [px]; choices that need more stand in a line each.
    """
    words: list[Json] = [f"{label}: {each['value']}" for label, each in menus_of(spec).items()]
    line = "; ".join(map(str, words))
    place: dict[str, Json] = {"anchor": "start", "limit": width - 16}
    if not words:
        return place
    lines: Json = line if len(line) * LETTER_WIDTH < width else words
    return place | {"subtitle": lines, "subtitleFontSize": 12, "subtitleColor": "#59636E"}


def columns_of(figure: Figure, width: int) -> int:
    """Give how many panels of a figure stand side by side in a width [px]; 0 for a chart of one panel."""
    usage = figure.spec.get("usermeta")
    if not figure.panel_width or not isinstance(usage, dict):
        return 0
    panels = int(str(usage["panels"]))
    fitting = (width - AXIS_WIDTH) // (figure.panel_width + PANEL_GAP)
    return max(1, min(panels, int(str(usage.get("columns") or panels)), fitting))


def _width_of(figure: Figure) -> int:
    """Give the width of a figure that is drawn as its specification has it [px]."""
    inner = figure.spec.get("spec")
    chart = inner if isinstance(inner, dict) else figure.spec
    panel = int(str(chart.get("width", DEFAULT_WIDTH)))
    usage = figure.spec.get("usermeta")
    labels = int(str(usage.get("labelWidth", 0))) if isinstance(usage, dict) else 0
    columns = columns_of(figure, AXIS_WIDTH + 99 * (panel + PANEL_GAP))
    return AXIS_WIDTH + (columns * (panel + PANEL_GAP) if columns else max(panel + labels, DEFAULT_WIDTH))


def _write(figure: Figure, folder: Path) -> list[Path]:
    svg, png = drawn_chart(json.dumps(file_spec(figure)))
    paths = [folder / f"{figure.id}.svg", folder / f"{figure.id}.png"]
    paths[0].write_text(svg, encoding="utf-8")
    paths[1].write_bytes(png)
    return paths
