"""How the agreement of two results, cell by cell, is said."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from steelyard.analyse.agreement import ACROSS, Agreement, agreements
from steelyard.analyse.equivalence import Margin
from steelyard.studies.run_values import cell_values

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from steelyard.analyse.agreement import CellAgreement
    from steelyard.analyse.equivalence import RatioTest

_HEADINGS: Final = {
    Agreement.FLIPPED: "Flipped cells",
    Agreement.MOVED: "Cells that moved beyond the margin",
    Agreement.AGREED: "Agreed cells",
    Agreement.UNDECIDED: "Undecided cells",
    Agreement.ONLY_FIRST: "Cells of the first result alone",
    Agreement.ONLY_SECOND: "Cells of the second result alone",
}


@dataclass(frozen=True, slots=True)
class CellComparison:
    """Two results laid over each other cell by cell.

    Parameters
    ----------
    cells : tuple of CellAgreement
        Every metric of every cell.
    margin : Margin
        What counted as agreement.
    """

    cells: tuple[CellAgreement, ...]
    margin: Margin

    @classmethod
    def of(cls, first: Path, second: Path, margin: float) -> CellComparison:
        """Compare two result folders."""
        terms = Margin(margin)
        return cls(agreements(cell_values(first), cell_values(second), terms), terms)

    @property
    def differs(self) -> bool:
        """Whether a cell flipped or moved."""
        return any(cell.agreement in {Agreement.FLIPPED, Agreement.MOVED} for cell in self.cells)

    def lines(self) -> Iterator[str]:
        """Give the text."""
        counts = ", ".join(f"{kind} {len(self._of(kind))}" for kind in _HEADINGS)
        yield ""
        yield f"Cells within {100 * self.margin.relative:g} %, {100 * self.margin.level:g} % sure: {counts}"
        shown = self._varying()
        for kind, heading in _HEADINGS.items():
            cells = self._of(kind)
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
            "counts": {kind.value: len(self._of(kind)) for kind in _HEADINGS},
            "cells": [_document(cell) for cell in self.cells],
        }

    def _of(self, kind: Agreement) -> list[CellAgreement]:
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
    return f": second over first {_ratio(cell.ratio)}, {units[0]} and {units[1]} repetitions{reason}"


def _ratio(test: RatioTest) -> str:
    interval = "" if math.isnan(test.low) else f" [{test.low:.3g}, {test.high:.3g}]"
    return f"{test.ratio:.4g}{interval}"


def _document(cell: CellAgreement) -> dict[str, Any]:
    return {
        "levels": dict(cell.levels),
        "metric": cell.metric,
        "unit": cell.unit,
        "agreement": cell.agreement.value,
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
    }


def _test_document(test: RatioTest) -> Mapping[str, object]:
    numbers = {"value": test.ratio, "low": test.low, "high": test.high}
    shown = {name: value if math.isfinite(value) else None for name, value in numbers.items()}
    return {**shown, "repetitions": list(test.units)}
