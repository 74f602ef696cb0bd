"""Cells of which no run was completed, and how their runs ended."""

from __future__ import annotations

import signal
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

    from steelyard.model import Cell, Plan


@dataclass(frozen=True, slots=True)
class LostCell:
    """A cell of which no run was completed.

    Parameters
    ----------
    number : int
        Number of the cell.
    levels : dict
        Its factor levels.
    ending : str
        How its runs ended, in words.
    runs : int
        Number of them.
    """

    number: int
    levels: dict[str, str]
    ending: str
    runs: int


def lost_cells(runs: pl.DataFrame, plan: Plan, is_asked: Callable[[Cell], bool]) -> tuple[LostCell, ...]:
    """Give the cells that an answer was expected of, that were run and never completed."""
    found = []
    for (number,), group in runs.group_by("cell", maintain_order=True):
        cell = plan.cells[int(str(number))]
        if not is_asked(cell) or (group["status"] == "completed").any():
            continue
        columns = ("status", "exit_code", "signal", "limit")
        endings = Counter(ending_of(*row) for row in group.select(columns).iter_rows())
        words = ", ".join(ending for ending, _ in endings.most_common())
        found.append(LostCell(cell.number, cell.levels, words, group.height))
    return tuple(sorted(found, key=lambda cell: cell.number))


def ending_of(status: str, exit_code: int | None, number: int | None, limit: str | None) -> str:
    """Say how a run ended that was not completed.

    Examples
    --------
    >>> ending_of("signalled", None, 11, None), ending_of("nonzero_exit", 3, None, None)
    ('ended by SIGSEGV', 'ended with exit code 3')
    >>> ending_of("wall_timeout", None, None, "wall_time")
    'ended by wall timeout'
    """
    if status == "nonzero_exit" and exit_code is not None:
        return f"ended with exit code {exit_code}"
    if number is not None and limit is None:
        known = {each.value: each.name for each in signal.Signals}
        return f"ended by {known.get(number, f'signal {number}')}"
    return f"ended by {status.replace('_', ' ')}"
