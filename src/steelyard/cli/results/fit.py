"""``steelyard fit``: lines, power laws and pieces through two columns of a file."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import replace
from pathlib import Path  # noqa: TC003 - the command line reads annotations at run time
from typing import Annotated

from cyclopts import Parameter

from steelyard.analyse.cost_curve.break_count import break_counts
from steelyard.analyse.cost_curve.segments import default_options, fit_segments
from steelyard.cli.streams import write_lines
from steelyard.errors import UsageError
from steelyard.record.columns import read_columns
from steelyard.report.fit_text import FitView, fit_content, fit_lines


def fit(  # noqa: PLR0913 - options of a verb
    file: Path,
    *,
    x: str,
    y: str,
    breaks: str = "",
    search: Annotated[bool, Parameter(negative="")] = False,
    log: Annotated[bool, Parameter(negative="")] = False,
    floor: str | None = None,
    where: str = "",
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """Fit lines, power laws or pieces to two columns of a file.

    Prints each piece as R's `summary(lm)` does, the breakpoints with their intervals, what the residuals say
    about order, shape and influence, and which law the noise follows. Without `--breaks` and `--search` there
    is one piece.

    Parameters
    ----------
    file
        CSV with any delimiter, SkaMPI output, or Parquet; `-` is standard input.
    x
        Column of the sizes: its name, or its number from 1 on where the file has no header.
    y
        Column of the times.
    breaks
        Given breakpoints, separated by commas; a piece contains low <= x < high.
    search
        Search for the number and the places of the breakpoints, and whether each piece is constant, a line
        or a power law.
    log
        Fit log10 on log10 (power laws) in pieces that are given.
    floor
        Smallest difference that matters in a search, as a share of the time; a larger one gives fewer
        breakpoints. `10%` unless given; for times above 0.
    where
        Use only rows with this text in another column, as `COLUMN=TEXT`.
    as_json
        Print JSON for programs, with residuals, fitted values and leverage of every point, and the
        points of quantile plots.

    Examples
    --------
    steelyard fit pingpong.csv --x size --y time --breaks 3000,65000

    steelyard fit pingpong.csv --x size --y time --search

    steelyard fit trace.csv --x 2 --y 4 --where 1=MPI_Send --search --json
    """
    if search and (breaks or log):
        other = "--breaks" if breaks else "--log"
        message = f"`--search` and `{other}` exclude each other: a search finds breaks and kinds itself"
        raise UsageError(message, hint=f"leave out --search or {other}")
    if floor is not None and not search:
        message = f"`--floor {floor}` is for a search, and nothing is searched"
        raise UsageError(message, hint="add --search, or leave out --floor")
    if x == y:
        message = f"cannot fit column `{x}` to itself: `--x` and `--y` name one column"
        raise UsageError(message, hint="give the column of the sizes by --x, that of the times by --y")
    given = _numbers(breaks)
    columns = read_columns(file, x, y, where=_condition(where))
    names = (_name(x, "x"), _name(y, "y"))
    options = default_options(columns.x, columns.y)
    if floor is not None:
        if not options.proportional:
            message = (
                f"cannot take `--floor {floor}`, a share of the time: not all of column `{y}` is above 0"
            )
            raise UsageError(message, hint="leave out --floor, or those rows by --where")
        options = replace(options, floor=_share(floor))
    model = fit_segments(
        columns.x, columns.y, breaks=None if search else given, log=log, options=options, names=names
    )
    counts = break_counts(columns.x, columns.y, len(model.breakpoints), options=options) if search else None
    view = FitView(model, columns.x, columns.y, names, str(file), counts)
    if as_json:
        sys.stdout.write(json.dumps(fit_content(view), indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    else:
        write_lines(fit_lines(view))


def _share(floor: str) -> float:
    number, sign, rest = floor.partition("%")
    try:
        share = float(number) / (100 if sign else 1)
    except ValueError:
        share = math.nan
    if rest or not 0 <= share < 1:
        message = f"`--floor {floor}`: allowed: 0% to below 100%"
        raise UsageError(message, hint="e.g. --floor 5%")
    return share


def _numbers(breaks: str) -> list[float]:
    message, hint = f"`--breaks {breaks}`: every breakpoint must be a number", "e.g. --breaks 3000,65000"
    try:
        numbers = sorted(float(word) for word in breaks.split(",") if word.strip())
    except ValueError as error:
        raise UsageError(message, hint=hint) from error
    if not all(map(math.isfinite, numbers)):
        raise UsageError(message, hint=hint)
    return numbers


def _condition(where: str) -> dict[str, str]:
    if not where:
        return {}
    column, separator, text = where.partition("=")
    if not separator or not column:
        message = f"`--where {where}`: expected COLUMN=TEXT"
        raise UsageError(message, hint="e.g. --where operation=MPI_Send, or --where 1=MPI_Send")
    return {column: text}


def _name(column: str, fallback: str) -> str:
    """Give the name for a formula, which a number cannot be."""
    return fallback if column.isdecimal() else column
