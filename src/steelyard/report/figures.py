"""Figures as files: each chart drawn by the engine of the page, without a browser."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING

from steelyard.errors import unwritable
from steelyard.report.charts.theme import file_config
from steelyard.report.drawn import drawn_of
from steelyard.report.engine import drawn_chart

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.report.page import Figure, Json, Page


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
    spec = copy.deepcopy(figure.spec)
    spec["datasets"] = {name: data.rows() for name, data in figure.datasets.items()}
    spec["config"] = file_config()
    spec["title"] = {"text": figure.title, "anchor": "start", "fontSize": 14, "offset": 12}
    return spec


def _write(figure: Figure, folder: Path) -> list[Path]:
    svg, png = drawn_chart(json.dumps(file_spec(figure)))
    paths = [folder / f"{figure.id}.svg", folder / f"{figure.id}.png"]
    paths[0].write_text(svg, encoding="utf-8")
    paths[1].write_bytes(png)
    return paths
