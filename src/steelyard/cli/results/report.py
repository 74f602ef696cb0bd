"""``steelyard report``: findings become a page, a summary, tables."""

from __future__ import annotations

import shlex
import sys
import webbrowser
from pathlib import Path  # noqa: TC003 - read when the command line is
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from steelyard.cli.catalogue.registering import OWN_CATALOGUE, CatalogueOption
from steelyard.model.finding import read_findings

if TYPE_CHECKING:
    from steelyard.report.page import Page


def report(
    directory: Path,
    *,
    form: Annotated[Literal["html", "text", "markdown", "latex"], Parameter(name="--format")] = "html",
    open_: Annotated[bool, Parameter(name="--open", negative=())] = False,
    listed: CatalogueOption = OWN_CATALOGUE,
) -> None:
    """Render the findings of a result folder.

    Figures need the package `vl-convert-python` (`pip install 'steelyard[figures]'`). Without it the page has
    its text and its tables, and says what is missing.

    Parameters
    ----------
    directory
        Result folder with ``findings.json``, as ``steelyard run`` or ``steelyard analyse`` leaves it.
    form
        html: write report.html and figures/, and print the summary; text: print the summary alone;
        markdown: print the whole report; latex: print its tables. `steelyard figure` writes figures.
    open_
        Show report.html in the browser.
    listed
        Catalogue of results.

    Examples
    --------
    Write the page and read the answer in the terminal::

        steelyard report results/night

    Tables for a paper::

        steelyard report results/night --format latex > tables.tex
    """
    findings = read_findings(directory / "findings.json")  # held until the catalogue has read it too
    page = _build(directory, findings.study)
    if form == "html":
        _write_page(page, directory, is_opened=open_)
    elif form == "text":
        _print_text(page)
    elif form == "markdown":
        from steelyard.report.markdown import render_markdown  # noqa: PLC0415 - start-up time

        sys.stdout.write(render_markdown(page))
        _say_lack(page, directory)
    else:
        from steelyard.report.tables import to_latex  # noqa: PLC0415 - start-up time

        sys.stdout.write("\n".join(to_latex(table) for table in page.tables()))
    sys.stdout.flush()
    listed.refresh(directory, page)


def _build(directory: Path, study: str) -> Page:
    """Give the page of the study the folder belongs to."""
    from steelyard.study import study_of  # noqa: PLC0415 - start-up time

    return study_of(study, directory).page(directory)


def write_files(directory: Path) -> None:
    """Write ``report.html`` and ``figures/`` of a result folder, and print nothing."""
    findings = read_findings(directory / "findings.json")
    _write(_build(directory, findings.study), directory)


def _write(page: Page, directory: Path) -> Path:
    from steelyard.report.output import write_report  # noqa: PLC0415 - start-up time

    path = write_report(page, directory)
    _say_lack(page, directory)
    return path


def _say_lack(page: Page, directory: Path) -> None:
    """Say on standard error that the figures are missing, and how to get them."""
    from steelyard.report.output import missing_figures  # noqa: PLC0415 - start-up time

    lack = missing_figures()
    if lack is not None and page.figures():
        again = shlex.quote(str(directory))
        sys.stderr.write(f"note: {lack}; then `steelyard report {again}` draws them\n")


def _write_page(page: Page, directory: Path, *, is_opened: bool) -> None:
    from steelyard.report.drawing.engine import has_engine  # noqa: PLC0415 - start-up time

    path = _write(page, directory)
    figures = (("figures", str(directory / "figures")),) if has_engine() else ()
    _print_text(page, (*figures, ("report", str(path))))
    if is_opened:
        webbrowser.open(path.resolve().as_uri())


def _print_text(page: Page, places: tuple[tuple[str, str], ...] = ()) -> None:
    from steelyard.report.text import print_summary  # noqa: PLC0415 - start-up time

    print_summary(page, sys.stdout, places)
