"""The files of a report: the page and, where this installation can draw them, its figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.report.drawing.engine import INSTALL, NO_ENGINE, has_engine
from steelyard.report.drawing.figures import write_figures
from steelyard.report.html import write_html

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.report.page import Page


def write_report(page: Page, result: Path) -> Path:
    """Write ``report.html`` and ``figures/`` into a result folder; give the page's path.

    An installation that cannot draw writes the page with its tables alone, which says so.

    Parameters
    ----------
    page : Page
        What to show.
    result : Path
        Result folder.

    Raises
    ------
    DataError
        If a file cannot be written.
    """
    path = result / "report.html"
    write_html(page, path)
    if has_engine():
        write_figures(page, result / "figures")
    return path


def missing_figures() -> str | None:
    """Say that reports of this installation have no figures, and the command that changes it.

    Returns
    -------
    str or None
        ``None`` where figures can be drawn.
    """
    return None if has_engine() else f"reports have no figures: {NO_ENGINE}; install it with `{INSTALL}`"
