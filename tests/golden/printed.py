"""Numbers as they stand on paper: what a computed value must be to agree with them."""

from __future__ import annotations

from decimal import ROUND_DOWN, Decimal
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from _pytest.python_api import ApproxBase


def half_unit(text: str) -> float:
    """Give half a unit of the last printed digit.

    Examples
    --------
    >>> half_unit("49.72"), half_unit("2.68e-14"), half_unit("117")
    (0.005, 5e-17, 0.5)
    """
    return 0.5 * 10.0 ** int(Decimal(text).as_tuple().exponent)


def as_printed(text: str) -> ApproxBase:
    """Give what equals every number that is rounded to the printed one."""
    # A number that lies half-way is not told apart by its binary digits.
    return pytest.approx(float(text), rel=0, abs=half_unit(text) * (1 + 1e-9))


def is_rounded_or_cut(value: float, text: str) -> bool:
    """Tell whether a value is the printed one, its further digits rounded or left out.

    Examples
    --------
    >>> is_rounded_or_cut(0.99997, "0.9999"), is_rounded_or_cut(0.99982, "0.9999")
    (True, False)
    """
    cut = Decimal(value).quantize(Decimal(text), rounding=ROUND_DOWN)
    return cut == Decimal(text) or value == as_printed(text)


def limits(text: str) -> tuple[float, float]:
    """Give the smallest and the largest number that is rounded to the printed one."""
    return float(text) - half_unit(text), float(text) + half_unit(text)
