"""The table of coefficients of a linear model as R's `printCoefmat` prints it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from steelyard.analyse.linear.r_format import LEGEND, format_common, format_p_values, stars

if TYPE_CHECKING:
    from collections.abc import Sequence

HEADINGS: Final = ("Estimate", "Std. Error", "t value", "Pr(>|t|)")
_DIGITS: Final = 4
_TEST_DIGITS: Final = 3
_STAR_LIMIT: Final = 0.1
Row = tuple[float, float, float, float]


def coefficient_table(names: Sequence[str], rows: Sequence[Row]) -> list[str]:
    """Print estimates, standard errors, t and p values with significance codes.

    Parameters
    ----------
    names : sequence of str
        One per row.
    rows : sequence of tuple
        Estimate, standard error, t, p; all NaN for a coefficient that could not be estimated.

    Returns
    -------
    list of str
        Lines, headings first, the legend of the codes last where there are codes.
    """
    cells = _cells(rows)
    p_values = [row[3] for row in rows]
    has_stars = any(p < _STAR_LIMIT for p in p_values if not math.isnan(p))
    marks = [("   " if math.isnan(p) else stars(p)) for p in p_values]
    mark_width = max(len(mark.rstrip()) for mark in marks) if has_stars else 0
    widths = [
        max(len(heading), *(len(row[column]) for row in cells)) for column, heading in enumerate(HEADINGS)
    ]
    name_width = max(len(name) for name in names)
    lines = [_line("", HEADINGS, name_width, widths) + (f" {'':{mark_width}}" if has_stars else "")]
    for name, row, mark in zip(names, cells, marks, strict=True):
        tail = f" {mark[:mark_width]:{mark_width}}" if has_stars else ""
        lines.append(_line(name, row, name_width, widths) + tail)
    return [*lines, "---", f"Signif. codes:  {LEGEND}"] if has_stars else lines


def _line(name: str, cells: Sequence[str], name_width: int, widths: Sequence[int]) -> str:
    padded = (f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
    return " ".join((f"{name:<{name_width}}", *padded))


def _cells(rows: Sequence[Row]) -> list[list[str]]:
    pairs = [value for row in rows for value in row[:2]]
    coefficients = _pair_texts(pairs)
    tests = _present([round(row[2], _TEST_DIGITS) for row in rows], _DIGITS)
    p_values = format_p_values([row[3] for row in rows], _TEST_DIGITS)
    found = []
    for index, row in enumerate(rows):
        texts = [*coefficients[2 * index : 2 * index + 2], tests[index], p_values[index]]
        # R tells a coefficient that is not there (NA) from a figure that does not exist (NaN).
        absent = "NA" if math.isnan(row[0]) else "NaN"
        found.append([absent if math.isnan(value) else text for value, text in zip(row, texts, strict=True)])
    return found


def _pair_texts(values: Sequence[float]) -> list[str]:
    """Format estimates and standard errors in one style; what would print as zero keeps its digits."""
    sizes = [abs(value) for value in values if math.isfinite(value) and value != 0]
    smallest = math.floor(math.log10(min(sizes))) if sizes else 0
    places = max(1, _DIGITS - 1 - smallest)
    texts = _present([_rounded(value, places) for value in values], _DIGITS)
    for index, (value, text) in enumerate(zip(values, texts, strict=True)):
        if math.isfinite(value) and (value == 0) != (float(text) == 0):
            texts[index] = format_common([value], _DIGITS - 1)[0]
    return texts


def _rounded(value: float, places: int) -> float:
    return round(value, places) if math.isfinite(value) else value


def _present(values: Sequence[float], digits: int) -> list[str]:
    present = iter(format_common([value for value in values if not math.isnan(value)], digits))
    return ["" if math.isnan(value) else next(present) for value in values]
