"""Figures for a paper: as wide as its column, with letters of its size, as PDF, SVG or PNG."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from steelyard.errors import UsageError, unwritable
from steelyard.report.charts.parts import dashed
from steelyard.report.charts.theme import Theme, print_colours
from steelyard.report.drawing.engine import drawn_pdf, drawn_png, drawn_svg
from steelyard.report.drawing.figures import (
    AXIS_WIDTH,
    PANEL_GAP,
    chosen_options,
    columns_of,
    menus_of,
    with_data,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from steelyard.report.dataset import Json
    from steelyard.report.page import Figure, Page

POINTS_PER_PIXEL: Final = 2 / 3
"""Size on paper over size on the page: axis titles of 12 px have 8 pt, the smallest labels 7.3 pt."""

PNG_PER_INCH: Final = 600
"""Resolution of pictures.

SOURCE: IEEE Author Center, Resolution and Size: 600 dpi for line art.
"""

WIDTHS_MM: Final = {"column": 84.0, "page": 174.0}
"""Widths by name.

SOURCE: Springer, Artwork and Illustrations Guidelines: 84 mm for double-column text areas, 174 mm for single.
"""

SMALLEST_MM, LARGEST_MM = 60.0, 400.0
_CODE: Final = "usage.figure"
_LIST: Final = "`steelyard figure RESULT` lists the figures with their menus and options"
HIGHEST_MM: Final = 234.0
"""Height of a figure that fills a page.

SOURCE: the same guidelines of Springer.
"""

NARROWEST_PANEL: Final = 120
"""Width of a panel with its axis below which no more of them stand side by side [px]."""

_POINTS_PER_MM: Final = 72 / 25.4
_MOST_DRAWINGS: Final = 6
_WIDTH: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?(?:mm)?")
_SIZE: Final = re.compile(r'<svg([^>]*?) width="([0-9.]+)" height="([0-9.]+)"')


class FigureForm(StrEnum):
    """Formats of a figure in a file."""

    PDF = "pdf"
    SVG = "svg"
    PNG = "png"


@dataclass(frozen=True, slots=True)
class Wish:
    """What is wanted of figures.

    Parameters
    ----------
    forms : tuple of FigureForm
        Formats of the files.
    width_mm : float
        Width of each figure [mm].
    names : tuple of str
        Names of the figures; none for all.
    choices : mapping
        Chosen option by the label of a menu; menus that are not named keep their first choice.
    theme : Theme
        Look of the figures.
    """

    forms: tuple[FigureForm, ...]
    width_mm: float
    names: tuple[str, ...] = ()
    choices: Mapping[str, str] = field(default_factory=dict)
    theme: Theme = Theme.PRINT


def width_of(text: str) -> float:
    """Read a width: ``column``, ``page`` or millimetres.

    Raises
    ------
    UsageError
        If it is none of them.
    """
    number = _WIDTH.fullmatch(text)
    width = WIDTHS_MM.get(text, 0.0) if number is None else float(number[1])
    if not SMALLEST_MM <= width <= LARGEST_MM:
        named = ", ".join(f"`{name}` ({mm:g} mm)" for name, mm in WIDTHS_MM.items())
        message = (
            f"cannot draw figures of the width `{text}`: allowed are {named}, and {SMALLEST_MM:g} to "
            f"{LARGEST_MM:g} mm"
        )
        raise UsageError(message, hint="--width 84mm", code=_CODE)
    return width


def write_paper_figures(page: Page, folder: Path, wish: Wish) -> dict[Path, Figure]:
    """Write figures for a paper; the same figures give the same bytes.

    Parameters
    ----------
    page : Page
        Whose figures are written.
    folder : Path
        Created when absent.
    wish : Wish
        Which of them, and how.

    Returns
    -------
    dict
        The figure in each file, in order.

    Raises
    ------
    UsageError
        If there is no such figure, menu or option.
    DataError
        If a file cannot be written.
    CapabilityError
        If this installation cannot draw figures.
    """
    drawings = {
        folder / f"{each.id}.{form}": (each, content)
        for each in chosen_figures(page, wish)
        for form, content in _drawn(each, wish)
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, (_, content) in drawings.items():
            path.write_bytes(content)
    except OSError as error:
        raise unwritable(folder, error, "name a folder you may write to with `--out`") from error
    return {path: figure for path, (figure, _) in drawings.items()}


def chosen_figures(page: Page, wish: Wish) -> list[Figure]:
    """Give the figures that are wanted; all without a name.

    Raises
    ------
    UsageError
        If there is no such figure or menu.
    """
    known = {each.id: each for each in page.figures()}
    for name in wish.names:
        if name not in known:
            raise UsageError(_unknown("figure", name, known), hint=_LIST, code=_CODE)
    chosen = [known[name] for name in dict.fromkeys(wish.names)] or list(known.values())
    menus = {label for each in chosen for label in menus_of(each.spec)}
    for label in wish.choices:
        if label not in menus:
            raise UsageError(_unknown("menu", label, sorted(menus)), hint=_LIST, code=_CODE)
    return chosen


def _drawn(figure: Figure, wish: Wish) -> Iterator[tuple[FigureForm, bytes]]:
    points = wish.width_mm * _POINTS_PER_MM
    svg = _fitted(figure, round(points / POINTS_PER_PIXEL), wish)
    drawn_px, height_px = _size_of(svg)
    for form in dict.fromkeys(wish.forms):
        match form:
            case FigureForm.PDF:
                yield form, drawn_pdf(_sized(svg, f"{points:.3f}", f"{height_px * points / drawn_px:.3f}"))
            case FigureForm.PNG:
                yield form, drawn_png(svg, points / drawn_px, PNG_PER_INCH)
            case FigureForm.SVG:
                height_mm = height_px * wish.width_mm / drawn_px
                yield form, _sized(svg, f"{wish.width_mm:g}mm", f"{height_mm:.3f}mm").encode()


def choose(spec: Mapping[str, Json], choices: Mapping[str, str]) -> None:
    """Set the menus of a specification.

    Raises
    ------
    UsageError
        If a menu has no such option.
    """
    for label, menu in menus_of(spec).items():
        if label in choices:
            menu["value"] = _option(label, choices[label], menu)


def in_print(spec: dict[str, Json]) -> None:
    """Give colours of names steps of lightness, and their lines dashes: a copy without colour shows them."""
    for chart in _charts(spec):
        encoding = chart.get("encoding")
        colour = encoding.get("color") if isinstance(encoding, dict) else None
        scale = colour.get("scale") if isinstance(colour, dict) else None
        if not isinstance(encoding, dict) or not isinstance(colour, dict) or not isinstance(scale, dict):
            continue
        domain = scale.get("domain")
        if not isinstance(domain, list) or colour.get("type") != "nominal":
            continue
        colour["scale"] = {"domain": domain, "range": [*print_colours(len(domain))]}
        mark = chart.get("mark")
        is_line = isinstance(mark, dict) and mark.get("type") == "line" and "strokeDash" not in mark
        if is_line and "strokeDash" not in encoding:
            encoding["strokeDash"] = dashed(colour, list(map(str, domain)))


def _charts(spec: dict[str, Json]) -> Iterator[dict[str, Json]]:
    yield spec
    for key in ("layer", "spec", "hconcat", "vconcat", "concat"):
        inner = spec.get(key)
        for each in inner if isinstance(inner, list) else [inner]:
            if isinstance(each, dict):
                yield from _charts(each)


def _size_of(svg: str) -> tuple[float, float]:
    """Give width and height of a drawing [px]."""
    size = _SIZE.search(svg)
    if size is None:
        message = "the drawing states no size"
        raise ValueError(message)
    return float(size[2]), float(size[3])


def _sized(svg: str, width: str, height: str) -> str:
    """Give a drawing another size; what it shows grows or shrinks with it."""
    return _SIZE.sub(lambda match: f'<svg{match[1]} width="{width}" height="{height}"', svg, count=1)


def _fitted(figure: Figure, width: int, wish: Wish) -> str:
    """Draw a figure as wide as wanted; where a page is not high enough, with narrower panels."""
    spec = with_data(figure, width, wish.theme)
    choose(spec, wish.choices)
    if wish.theme is Theme.PRINT:
        in_print(spec)
    spec["title"] = _chosen_line(spec, width)
    columns = columns_of(figure, width)
    if not columns:
        return _narrowed(spec, spec, width, AXIS_WIDTH)
    panel = spec["spec"]
    usage = spec["usermeta"]
    if not isinstance(panel, dict) or not isinstance(usage, dict):
        message = f"figure `{figure.id}` has no panels"
        raise TypeError(message)
    while True:
        spec["columns"] = columns
        svg = _narrowed(spec, panel, width, PANEL_GAP)
        is_low = _size_of(svg)[1] <= HIGHEST_MM * _POINTS_PER_MM / POINTS_PER_PIXEL
        if is_low or columns >= int(str(usage["panels"])) or width / (columns + 1) < NARROWEST_PANEL:
            return svg
        columns += 1


def _narrowed(spec: dict[str, Json], panel: dict[str, Json], width: int, beside: int) -> str:
    """Draw a chart as wide as wanted: what its axes take is known once it is drawn."""
    columns = int(str(spec.get("columns", 1)))
    room = width // columns - beside
    svg = ""
    for _ in range(_MOST_DRAWINGS):
        panel["width"] = room
        if panel is not spec:
            _limit_titles(spec, room + PANEL_GAP - 4)
        svg = drawn_svg(json.dumps(spec))
        excess = round((_size_of(svg)[0] - width) / columns)
        if excess == 0:
            break
        room = max(room - excess, NARROWEST_PANEL // 2)
    return svg


def _limit_titles(spec: Mapping[str, Json], room: int) -> None:
    """Shorten headings and axis titles that would run into those of the next panel."""
    config = spec["config"]
    if isinstance(config, dict) and isinstance(header := config["header"], dict):
        header["labelLimit"] = room
        config["axisX"] = {"titleLimit": room, "titleAnchor": "middle"}


def _chosen_line(spec: Mapping[str, Json], width: int) -> dict[str, Json] | None:
    """Give the line that says what is chosen in the menus, in place of a title."""
    chosen = chosen_options(spec, width)
    if "subtitle" not in chosen:
        return None
    return {**chosen, "text": chosen["subtitle"], "subtitle": "", "fontSize": 11, "fontWeight": "normal"}


def _option(label: str, option: str, menu: Mapping[str, Json]) -> str:
    bind = menu["bind"]
    options = bind["options"] if isinstance(bind, dict) else []
    known = [str(each) for each in options] if isinstance(options, list) else []
    if option not in known:
        message = _unknown(f"option of the menu `{label}`", option, known)
        raise UsageError(message, hint=_LIST, code=_CODE)
    return option


def _unknown(kind: str, given: str, known: Iterable[str]) -> str:
    allowed = ", ".join(f"`{each}`" for each in known) or "none"
    return f"`{given}` is not a known {kind}; allowed: {allowed}"
