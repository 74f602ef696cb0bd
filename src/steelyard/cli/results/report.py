"""``steelyard report``: findings become a page, a summary, tables."""

from __future__ import annotations

import shlex
import sys
import webbrowser
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

from cyclopts import Parameter

from steelyard.cli.catalogue.registering import OWN_CATALOGUE, CatalogueOption
from steelyard.errors import UsageError
from steelyard.model.finding import read_findings

if TYPE_CHECKING:
    from steelyard.report.page import Page


_FIGURE_FORMS: Final = ("pdf", "svg", "png")


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class PaperOptions:
    """Figures for a paper.

    Parameters
    ----------
    figure
        With `--format pdf`, `svg` or `png`: name of a figure to write (repeatable); all by default.
    width
        Width of the figures: `column` (84 mm), `page` (174 mm), or a number of millimetres.
    choose
        What the figures show, as `MENU=OPTION` (repeatable); the first choice of the page by default.
    out
        Folder they are written into; created when absent.
    """

    figure: Annotated[
        tuple[str, ...], Parameter(negative=(), consume_multiple=False, show_default=False)
    ] = ()
    width: str = "column"
    choose: Annotated[
        tuple[str, ...], Parameter(negative=(), consume_multiple=False, show_default=False)
    ] = ()
    out: Path = Path("paper-figures")


def report(
    directory: Path,
    *,
    form: Annotated[
        Literal["html", "text", "markdown", "latex", "pdf", "svg", "png"], Parameter(name="--format")
    ] = "html",
    paper: PaperOptions | None = None,
    list_figures: Annotated[bool, Parameter(negative=())] = False,
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
        markdown: print the whole report; latex: print its tables; pdf, svg, png: write figures for a paper
        into `--out`, without titles, the fonts of a PDF inside, and print their captions.
    list_figures
        Print the names of the figures, with their menus and options, and write nothing.
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

    One figure for a paper, as wide as a column::

        steelyard report results/night --format pdf --figure boxes --choose Workload=sort/qsort
    """
    page = _build(directory)
    if paper is not None and form not in _FIGURE_FORMS:
        message = f"`--figure`, `--width`, `--choose` and `--out` are for a paper, not for `--format {form}`"
        raise UsageError(message, hint="--format pdf", code="usage.figure")
    if list_figures:
        _list_figures(page)
    elif form in _FIGURE_FORMS:
        _write_paper(page, directory, form, paper or PaperOptions())
    elif form == "html":
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


def _list_figures(page: Page) -> None:
    from steelyard.report.drawing.figures import menus_of  # noqa: PLC0415 - start-up time

    for figure in page.figures():
        sys.stdout.write(f"{figure.id}  {figure.title}\n")
        for label, menu in menus_of(figure.spec).items():
            bind = menu["bind"]
            options = bind["options"] if isinstance(bind, dict) else ()
            for option in options if isinstance(options, list) else ():
                sys.stdout.write(f"    {label}={option}\n")


def _write_paper(page: Page, directory: Path, form: str, wished: PaperOptions) -> None:
    """Write figures for a paper and print each file with its caption."""
    from steelyard.report.paper import FigureForm, Wish, width_of, write_paper_figures  # noqa: PLC0415

    if wished.out.resolve().is_relative_to(directory.resolve()):
        message = (
            f"cannot write figures for a paper into {wished.out}: `verify` accepts no other files in a result"
        )
        raise UsageError(message, hint="name a folder outside with `--out`", code="usage.figure")
    choices = dict(_choice(each) for each in wished.choose)
    wish = Wish(FigureForm(form), width_of(wished.width), wished.figure, choices)
    for path, figure in write_paper_figures(page, wished.out, wish).items():
        sys.stdout.write(f"{path}: {figure.title}. {figure.caption}\n")


def _choice(text: str) -> tuple[str, str]:
    label, sign, option = text.partition("=")
    if not sign:
        message = f"`--choose {text}` names no option"
        raise UsageError(message, hint="--choose MENU=OPTION; --list-figures shows them", code="usage.figure")
    return label.strip(), option.strip()


def _build(directory: Path) -> Page:
    """Give the page of the study the folder belongs to."""
    from steelyard.study import study_of  # noqa: PLC0415 - start-up time

    return study_of(read_findings(directory / "findings.json").study, directory).page(directory)


def write_files(directory: Path) -> None:
    """Write ``report.html`` and ``figures/`` of a result folder, and print nothing."""
    _write(_build(directory), directory)


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
