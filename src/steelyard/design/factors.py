"""Factors and the rules that make combinations of their levels missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.errors import DesignError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


@dataclass(frozen=True, slots=True)
class Factor:
    """Something that is varied, with its levels.

    Levels that only make sense together (a kind of load and its size) form one compound factor:
    it has several columns, and each level gives a value to all of them.

    Parameters
    ----------
    columns : tuple of str
        Names of the columns the factor fills, at least one.
    levels : tuple of tuple of str
        Shape (levels, columns); no level occurs twice.

    Raises
    ------
    DesignError
        If there is no column or level, a level has another number of values, or one occurs twice.

    Examples
    --------
    >>> Factor.of("isolation", ["bare", "vm"]).levels
    (('bare',), ('vm',))
    """

    columns: tuple[str, ...]
    levels: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        name = ", ".join(self.columns)
        if not self.columns or not self.levels:
            message = f"factor `{name}` has no levels; a factor needs at least one"
            raise DesignError(message, code="design.no-levels")
        for level in self.levels:
            if len(level) != len(self.columns):
                message = (
                    f"level {level} of factor `{name}` has {len(level)} values; allowed: {len(self.columns)}"
                )
                raise DesignError(message, code="design.level-shape")
            if self.levels.count(level) > 1:
                message = f"level `{', '.join(level)}` occurs twice in factor `{name}`"
                raise DesignError(message, hint="remove the repetition", code="design.level-twice")

    @classmethod
    def of(cls, column: str, levels: Iterable[str]) -> Factor:
        """Give a factor of one column."""
        return cls((column,), tuple((level,) for level in levels))

    @classmethod
    def compound(cls, columns: Iterable[str], levels: Iterable[Iterable[str]]) -> Factor:
        """Give a factor whose levels fill several columns."""
        return cls(tuple(columns), tuple(tuple(level) for level in levels))


@dataclass(frozen=True, slots=True)
class MissingRule:
    """A reason why a combination cannot be run; it stays in the plan as a missing cell.

    Parameters
    ----------
    name : str
        Stable name of the rule.
    reason : str
        What the report says about the cell.
    applies : callable
        Whether a combination, given as levels by column, is missing. A pure function.
    """

    name: str
    reason: str
    applies: Callable[[Mapping[str, str]], bool]
