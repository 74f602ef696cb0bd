"""How the agreement of two results, cell by cell, is said."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from steelyard.analyse.comparison.agreement import ACROSS, LAUNCH, PLURALS, Agreement, agreements
from steelyard.analyse.comparison.equivalence import Margin
from steelyard.cli.fail_on import Answer
from steelyard.studies.run_values import cell_values, paired_names, with_paired_cells
from steelyard.units import format_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from steelyard.analyse.comparison.agreement import CellAgreement
    from steelyard.analyse.comparison.equivalence import RatioTest

_HEADINGS: Final = {
    Agreement.FLIPPED: "Flipped cells",
    Agreement.MOVED: "Cells that moved beyond the margin",
    Agreement.AGREED: "Agreed cells",
    Agreement.UNDECIDED: "Undecided cells",
    Agreement.ONLY_FIRST: "Cells of the first result alone",
    Agreement.ONLY_SECOND: "Cells of the second result alone",
}


OF_LAUNCHES: Final = (
    "Units are launches, because a side has fewer than 3 repetitions (files): what differs from one session "
    "of measuring to another is in no interval"
)


@dataclass(frozen=True, slots=True)
class CellComparison:
    """Two results laid over each other cell by cell.

    Parameters
    ----------
    cells : tuple of CellAgreement
        Every metric of every cell.
    margin : Margin
        What counted as agreement.
    paired : tuple of str or None
        Names of the only cell of each result, where they differ and were compared all the same.
    """

    cells: tuple[CellAgreement, ...]
    margin: Margin
    paired: tuple[str, str] | None = None

    @classmethod
    def of(cls, first: Path, second: Path, margin: float) -> CellComparison:
        """Compare two result folders."""
        terms = Margin(margin)
        sides = cell_values(first), cell_values(second)
        return cls(agreements(*with_paired_cells(*sides), terms), terms, paired_names(*sides))

    @property
    def answer(self) -> Answer:
        """What it says to an exit code."""
        kinds = {cell.agreement for cell in self.cells}
        return Answer(
            is_slower=any(cell.is_worse for cell in self.cells),
            is_changed=bool(kinds & {Agreement.FLIPPED, Agreement.MOVED}),
            is_undecided=bool(kinds & {Agreement.UNDECIDED, Agreement.ONLY_FIRST, Agreement.ONLY_SECOND})
            or not kinds,
        )

    @property
    def has_common(self) -> bool:
        """Whether both results have any cell."""
        return any(cell.ratio is not None for cell in self.cells)

    @property
    def summary(self) -> str:
        """What was found, in a line."""
        slower = sum(cell.is_worse for cell in self.cells)
        moved = [cell for cell in self.cells if cell.agreement in {Agreement.FLIPPED, Agreement.MOVED}]
        compared = sum(cell.ratio is not None for cell in self.cells)
        count = format_count(compared, "cell")
        margin = f"{100 * self.margin.relative:g} %"
        parts = [f"{len(moved)} changed by more than {margin} ({slower} slower)"]
        parts.append(f"{len(self.of_kind(Agreement.AGREED))} as before")
        parts.append(f"{len(self.of_kind(Agreement.UNDECIDED))} undecided")
        if alone := len(self.cells) - compared:
            parts.append(f"{alone} in one result alone")
        return f"{count} in both: {', '.join(parts)}"

    def lines(self) -> Iterator[str]:
        """Give the text."""
        counts = ", ".join(f"{kind} {len(self.of_kind(kind))}" for kind in _HEADINGS)
        level = f"{100 * self.margin.level:.12g} % certain"
        yield f"Cells within {100 * self.margin.relative:g} %, {level}: {counts}"
        if self.paired is not None:
            yield f"Each result has one cell: `{self.paired[1]}` is compared with `{self.paired[0]}`"
        if any(cell.level == LAUNCH for cell in self.cells):
            yield OF_LAUNCHES
        shown = self._varying()
        for kind, heading in _HEADINGS.items():
            cells = self.of_kind(kind)
            if cells or kind in {Agreement.AGREED, Agreement.FLIPPED}:
                yield f"{heading}: {len(cells)}"
            for cell in cells:
                yield f"  {_name(cell, shown)}{_said(cell)}"
                for effect in cell.turned:
                    effects = f"{_ratio(effect.first)} -> {_ratio(effect.second)}"
                    yield f"    against {effect.factor} {effect.baseline}: {effects}"

    def document(self) -> dict[str, object]:
        """Give what programs read."""
        return {
            "margin": self.margin.relative,
            "level": self.margin.level,
            "paired": None if self.paired is None else list(self.paired),
            "counts": {kind.value: len(self.of_kind(kind)) for kind in _HEADINGS},
            "cells": [_document(cell) for cell in self.cells],
        }

    def of_kind(self, kind: Agreement) -> list[CellAgreement]:
        """Give the cells of one answer."""
        return [cell for cell in self.cells if cell.agreement is kind]

    def _varying(self) -> set[str]:
        """Give the factors with more than one level: the others tell cells not apart."""
        levels: dict[str, set[str]] = {}
        for cell in self.cells:
            for factor, level in cell.levels.items():
                levels.setdefault(factor, set()).add(level)
        return {factor for factor, found in levels.items() if len(found) > 1}


def _name(cell: CellAgreement, shown: set[str]) -> str:
    words = [level for factor, level in cell.levels.items() if factor in shown]
    return ", ".join([*words, cell.metric])


def _said(cell: CellAgreement) -> str:
    if cell.ratio is None:
        return ""
    units = cell.ratio.units
    reason = f"; {cell.reason}" if cell.reason not in {"", ACROSS} else ""
    reason += f"; {cell.remark}" if cell.remark else ""
    reason += "".join(f"; not guaranteed: {objection}" for objection in cell.ratio.objections)
    return (
        f": second over first {_ratio(cell.ratio)}, {units[0]} and {units[1]} {PLURALS[cell.level]}{reason}"
    )


def _ratio(test: RatioTest) -> str:
    interval = "" if math.isnan(test.low) else f" [{test.low:.3g}, {test.high:.3g}]"
    return f"{test.ratio:.4g}{interval}"


def _document(cell: CellAgreement) -> dict[str, Any]:
    return {
        "levels": dict(cell.levels),
        "metric": cell.metric,
        "unit": cell.unit,
        "agreement": cell.agreement.value,
        "is_slower": cell.is_worse,
        "unit_level": cell.level,
        "guaranteed": cell.is_guaranteed,
        "ratio": None if cell.ratio is None else _test_document(cell.ratio),
        "turned": [
            {
                "factor": effect.factor,
                "baseline": effect.baseline,
                "first": _test_document(effect.first),
                "second": _test_document(effect.second),
            }
            for effect in cell.turned
        ],
        "reason": cell.reason or None,
        "remark": cell.remark or None,
    }


def _test_document(test: RatioTest) -> Mapping[str, object]:
    numbers = {"value": test.ratio, "low": test.low, "high": test.high}
    shown = {name: value if math.isfinite(value) else None for name, value in numbers.items()}
    return {**shown, "repetitions": list(test.units)}
