"""Numbers and tables as R prints them: `format`, `formatC`, `format.pval`, `printCoefmat`, named vectors.

Source: R 4.2, `src/main/format.c` (`formatReal`, `scientific`) and `format.pval`, by behaviour.
Rounding is that of the decimal expansion of the stored double, as `sprintf` does it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

EPSILON: Final = 2.220446049250313e-16
"""R's `.Machine$double.eps`: p-values below it print as `< 2.2e-16`."""
LINE_WIDTH: Final = 80
LEGEND: Final = "0 ‘***’ 0.001 ‘**’ 0.01 ‘*’ 0.05 ‘.’ 0.1 ‘ ’ 1"  # noqa: RUF001 - R's own quotes
_LONG_EXPONENT: Final = 100


def format_common(values: Sequence[float], digits: int = 7) -> list[str]:
    """Format numbers in one style and width, as R's `format`.

    Parameters
    ----------
    values : sequence of float
        May hold infinities and NaN.
    digits : int
        Fewest digits so that some element shows this many significant ones, at least 1.

    Returns
    -------
    list of str
        All of the same width, fixed or scientific, whichever is shorter (fixed at a tie).

    Examples
    --------
    >>> format_common([109.72759, 0.57169, 0.01187, 0.02047], 4)
    ['109.72759', '  0.57169', '  0.01187', '  0.02047']
    >>> format_common([2.921e2, 1.2656e-06], 4)
    ['2.921e+02', '1.266e-06']
    """
    finite = [value for value in values if math.isfinite(value)]
    texts = _finite_texts(finite, digits)
    every = iter(texts)
    found = [next(every) if math.isfinite(value) else _special(value) for value in values]
    width = max((len(text) for text in found), default=0)
    return [text.rjust(width) for text in found]


def _special(value: float) -> str:
    return "NaN" if math.isnan(value) else ("Inf" if value > 0 else "-Inf")


def _finite_texts(values: Sequence[float], digits: int) -> list[str]:
    if not values:
        return []
    shapes = [_shape(value, digits) for value in values]
    negative = any(value < 0 for value in values)
    right = max(max(0, significant - power - 1) for power, significant, _ in shapes)
    left = max(
        (value < 0) + max(1, power + 1 - widens)
        for value, (power, _, widens) in zip(values, shapes, strict=True)
    )
    mantissa = max(significant for _, significant, _ in shapes) - 1
    exponent = 3 if any(abs(power) >= _LONG_EXPONENT for power, _, _ in shapes) else 2
    scientific = negative + 1 + (mantissa > 0) + mantissa + 2 + exponent
    if left + right + (right > 0) <= scientific:
        return [f"{value:.{right}f}" for value in values]
    return [f"{value:.{mantissa}e}" for value in values]


def _shape(value: float, digits: int) -> tuple[int, int, bool]:
    """Give decimal exponent, significant digits needed, and whether only rounding reached that exponent."""
    if value == 0:
        return 0, 1, False
    mantissa, _, power = f"{abs(value):.{digits - 1}e}".partition("e")
    significant = max(1, len(mantissa.replace(".", "").rstrip("0")))
    exponent = int(power)
    return exponent, significant, exponent > 0 and abs(value) < 10.0**exponent


def format_general(value: float, digits: int) -> str:
    """Format one number as R's `formatC(x, digits = digits)`: C's `%g`, one wider than its digits."""
    text = f"{value:.{digits}g}" if math.isfinite(value) else _special(value)
    return text.rjust(digits + 1)


def round_significant(value: float, digits: int) -> float:
    """Round to significant digits, as R's `signif`."""
    return float(f"{value:.{digits - 1}e}") if math.isfinite(value) else value


def zap_small(values: Sequence[float], digits: int) -> list[float]:
    """Round to the digits that the largest value has, as R's `zapsmall`."""
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    # R rounds the fractional number of places to the nearest whole one.
    places = max(0, math.floor(digits - math.log10(largest) + 0.5)) if largest > 0 else digits
    return [round(value, places) if math.isfinite(value) else value for value in values]


def format_p_values(values: Sequence[float], digits: int, epsilon: float = EPSILON) -> list[str]:
    """Format p-values as R's `format.pval`.

    Parameters
    ----------
    values : sequence of float
        In [0, 1], or NaN.
    digits : int
        Significant digits, at least 1.
    epsilon : float
        Smaller ones print as ``<`` and this value.

    Returns
    -------
    list of str

    Examples
    --------
    >>> format_p_values([1e-20, 7.16e-16], 3)
    ['< 2e-16', '7.16e-16']
    >>> format_p_values([1e-20], 4)
    ['< 2.2e-16']
    """
    present = [value for value in values if not math.isnan(value)]
    large = [value for value in present if value >= epsilon]
    shown = _p_texts(large, digits)
    small_digits = max(1, digits - 2)
    separator = "" if small_digits == 1 else " "
    if large:
        width = max(len(text) for text in shown)
        if small_digits > 1 and small_digits + 6 > width:
            small_digits = max(1, width - 7)
        separator = "" if small_digits == 1 and width <= 6 else " "  # noqa: PLR2004 - R's constant
    below = f"<{separator}{format_common([epsilon], small_digits)[0]}"
    every = iter(shown)
    return ["NA" if math.isnan(value) else next(every) if value >= epsilon else below for value in values]


def _p_texts(values: Sequence[float], digits: int) -> list[str]:
    smallest = -4 if digits > 1 else -3
    is_fixed = [math.floor(math.log10(value)) >= smallest for value in values]
    fixed = iter(format_common([v for v, fits in zip(values, is_fixed, strict=True) if fits], digits))
    other = iter(format_common([v for v, fits in zip(values, is_fixed, strict=True) if not fits], digits))
    return [next(fixed) if fits else next(other) for fits in is_fixed]


def stars(p_value: float) -> str:
    """Give the significance code of a p-value, three characters wide."""
    marks = ((0.001, "***"), (0.01, "** "), (0.05, "*  "), (0.1, ".  "))
    return next((mark for limit, mark in marks if p_value <= limit), "   ")


def named_vector(names: Sequence[str], values: Sequence[float], digits: int) -> list[str]:
    """Print a named vector: two lines per row of at most 80 characters, as R's `print`.

    Examples
    --------
    >>> named_vector(["1", "2"], [0.5, -1.25], 4)
    ['    1     2 ', ' 0.50 -1.25 ']
    """
    texts = format_common(values, digits)
    width = max(len(text) for text in (*names, *texts))
    per_line = max(1, LINE_WIDTH // (width + 1))
    lines: list[str] = []
    for start in range(0, len(texts), per_line):
        part = slice(start, start + per_line)
        lines.extend("".join(f"{text:>{width}} " for text in row[part]) for row in (names, texts))
    return lines
