"""Crossing of factors into combinations, missing ones included."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from steelyard.errors import DesignError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from steelyard.design.factors import Factor, MissingRule


@dataclass(frozen=True, slots=True)
class Combination:
    """One combination of levels.

    Parameters
    ----------
    levels : dict
        Level of each column, in the order of the factors.
    missing : str or None
        Reason of the first rule that applies; ``None`` where the combination can be run.
    """

    levels: dict[str, str]
    missing: str | None


def cross(factors: Sequence[Factor], rules: Iterable[MissingRule] = ()) -> tuple[Combination, ...]:
    """Give every combination of the levels of some factors.

    Parameters
    ----------
    factors : sequence of Factor
        The last one varies fastest.
    rules : iterable of MissingRule
        Tried in order; the first that applies gives the reason. Nothing is dropped.

    Returns
    -------
    tuple of Combination
        As many as the product of the numbers of levels.

    Raises
    ------
    DesignError
        If two factors share a column.

    Examples
    --------
    >>> from steelyard.design.factors import Factor, MissingRule
    >>> rule = MissingRule("no-pinned-vm", "machines are not pinned", lambda at: at["a"] == "vm")
    >>> [found.missing for found in cross([Factor.of("a", ["bare", "vm"])], [rule])]
    [None, 'machines are not pinned']
    """
    columns = [column for factor in factors for column in factor.columns]
    for column in columns:
        if columns.count(column) > 1:
            message = f"column `{column}` belongs to two factors"
            raise DesignError(message, code="design.column-twice")
    known = tuple(rules)
    combinations = []
    for parts in product(*(factor.levels for factor in factors)):
        values = (value for part in parts for value in part)
        levels = dict(zip(columns, values, strict=True))
        reason = next((rule.reason for rule in known if rule.applies(levels)), None)
        combinations.append(Combination(levels, reason))
    return tuple(combinations)


def levels_by_column(combinations: Iterable[Combination]) -> dict[str, tuple[str, ...]]:
    """Give the levels of each column in order of first appearance."""
    found: dict[str, dict[str, None]] = {}
    for combination in combinations:
        for column, level in combination.levels.items():
            found.setdefault(column, {})[level] = None
    return {column: tuple(levels) for column, levels in found.items()}
