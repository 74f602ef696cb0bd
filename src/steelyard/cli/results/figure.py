"""``steelyard figure``: figures for a paper, and the tables behind them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from steelyard.errors import UsageError, unwritable
from steelyard.model.finding import read_findings

if TYPE_CHECKING:
    from steelyard.report.drawing.paper import Wish
    from steelyard.report.page import Page

_SEVERAL = Parameter(negative=(), consume_multiple=False, show_default=False)


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class FigureOptions:
    """Figures for a paper.

    Parameters
    ----------
    form
        pdf, svg or png; may be given several times. pdf where only a figure is named.
    width
        Width of the figures: millimetres as `84mm`, or `column` (84 mm) or `page` (174 mm).
    cell
        What the figures show, as `MENU=OPTION`; may be given several times. The first choice of the page
        otherwise.
    theme
        print: colours that a copy in black and white tells apart, and dashed lines; light: the colours of the
        report; dark: on a dark ground, for slides.
    table
        Write the numbers behind each figure, with their intervals, as a table too: latex (for the packages
        booktabs and siunitx) or csv.
    out
        Folder they are written into, created when absent; for one figure in one format also the file itself,
        such as `boxes.pdf`.
    """

    form: Annotated[
        tuple[Literal["pdf", "svg", "png"], ...],
        Parameter(name="--format", negative=(), consume_multiple=False, show_default=False),
    ] = ()
    width: str = "84mm"
    cell: Annotated[tuple[str, ...], _SEVERAL] = ()
    theme: Literal["print", "light", "dark"] = "print"
    table: Literal["latex", "csv"] | None = None
    out: Path = Path("paper-figures")


def figure(result: Path, /, *names: str, asked: FigureOptions | None = None) -> None:
    """Write figures of a report for a paper, and the tables behind them.

    Without a name, a format and a table it lists the figures of the result with their menus and options.

    Drawings have no title, only what was chosen in their menus, and the fonts of a PDF are inside. Their
    captions are printed. Figures need the package `vl-convert-python` (`pip install 'steelyard[figures]'`);
    tables do not.

    Parameters
    ----------
    result
        Result folder with ``findings.json``, as ``steelyard run`` or ``steelyard analyse`` leaves it.
    names
        Figures to write; all where only a format or a table is given.

    Examples
    --------
    List the figures of a result::

        steelyard figure results/night

    One figure as wide as a column, with its table::

        steelyard figure results/night boxes --cell Workload=sort/qsort --table latex

    All figures for slides::

        steelyard figure results/night --format png --width page --theme dark
    """
    from steelyard.report.charts.theme import Theme  # noqa: PLC0415 - start-up time
    from steelyard.report.drawing.paper import FigureForm, Wish, width_of  # noqa: PLC0415 - start-up time
    from steelyard.study import study_of  # noqa: PLC0415 - start-up time

    asked = asked or FigureOptions()
    findings = read_findings(result / "findings.json")
    page = study_of(findings.study, result).page(result)
    if not (names or asked.form or asked.table):
        _list(page)
        return
    out = asked.out
    if out.resolve().is_relative_to(result.resolve()):
        message = f"cannot write figures for a paper into {out}: `verify` accepts no other files in a result"
        raise UsageError(message, hint="name a folder outside with `--out`", code="usage.figure")
    folder, of_file = _place(out, names, asked.form)
    forms = tuple(map(FigureForm, asked.form or of_file or (() if asked.table else ("pdf",))))
    choices = dict(map(_choice, asked.cell))
    wish = Wish(forms, width_of(asked.width), names, choices, Theme(asked.theme))
    _write(page, folder, wish, asked.table, renamed=out if of_file else None)


def _place(out: Path, names: tuple[str, ...], form: tuple[str, ...]) -> tuple[Path, tuple[str, ...]]:
    """Give the folder, and the format where a file is named."""
    suffix = out.suffix.removeprefix(".")
    if suffix not in {"pdf", "svg", "png"} or out.is_dir():
        return out, ()
    if len(names) != 1 or set(form) - {suffix}:
        message = f"cannot write to the file {out}: it holds one figure in the format of its name"
        raise UsageError(message, hint="name one figure, or a folder with `--out`", code="usage.figure")
    return out.parent, (suffix,)


def _list(page: Page) -> None:
    from steelyard.report.drawing.figures import menus_of  # noqa: PLC0415 - start-up time

    for each in page.figures():
        sys.stdout.write(f"{each.id}  {each.title}\n")
        for label, menu in menus_of(each.spec).items():
            bind = menu["bind"]
            options = bind["options"] if isinstance(bind, dict) else ()
            for option in options if isinstance(options, list) else ():
                sys.stdout.write(f"    --cell {label}={option}\n")
    if not page.figures():
        sys.stdout.write("this result has no figures\n")


def _write(page: Page, folder: Path, wish: Wish, table: str | None, renamed: Path | None) -> None:
    """Write figures and tables, and print each file with its caption."""
    from copy import deepcopy  # noqa: PLC0415 - start-up time

    from steelyard.report.drawing.figure_table import TableForm, figure_tables  # noqa: PLC0415
    from steelyard.report.drawing.paper import choose, chosen_figures, write_paper_figures  # noqa: PLC0415

    tables: dict[Path, str] = {}
    for each in chosen_figures(page, wish) if table else ():
        spec = deepcopy(each.spec)
        choose(spec, wish.choices)
        made = figure_tables(each, spec, TableForm(str(table)))
        tables |= {folder / name: text for name, text in made.items()}
    for path, drawn in (write_paper_figures(page, folder, wish) if wish.forms else {}).items():
        place = path if renamed is None else path.replace(renamed)
        sys.stdout.write(f"{place}: {drawn.title}. {drawn.caption}\n")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in tables.items():
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"{path}\n")
    except OSError as error:
        raise unwritable(folder, error, "name a folder you may write to with `--out`") from error


def _choice(text: str) -> tuple[str, str]:
    label, sign, option = text.partition("=")
    if not sign:
        message = f"`--cell {text}` names no option"
        raise UsageError(
            message, hint="--cell MENU=OPTION; `steelyard figure RESULT` lists them", code="usage.figure"
        )
    return label.strip(), option.strip()
