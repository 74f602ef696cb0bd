"""Figures as files: each chart drawn by the engine of the page, without a browser."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Final

import vl_convert

from steelyard.errors import unwritable
from steelyard.report.charts.theme import file_config
from steelyard.report.drawn import drawn_of
from steelyard.report.html import VEGA_LITE_VERSION

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.report.page import Figure, Json, Page

PNG_SCALE: Final = 2.0


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
    spec = copy.deepcopy(figure.spec)
    spec["datasets"] = {name: data.rows() for name, data in figure.datasets.items()}
    spec["config"] = file_config()
    spec["title"] = {"text": figure.title, "anchor": "start", "fontSize": 14, "offset": 12}
    return spec


def _write(figure: Figure, folder: Path) -> list[Path]:
    vega = vl_convert.vegalite_to_vega(json.dumps(file_spec(figure)), vl_version=VEGA_LITE_VERSION)
    svg: str = vl_convert.vega_to_svg(vega)
    paths = [folder / f"{figure.id}.svg", folder / f"{figure.id}.png"]
    paths[0].write_text(svg, encoding="utf-8")
    paths[1].write_bytes(vl_convert.svg_to_png(svg, scale=PNG_SCALE))
    return paths
