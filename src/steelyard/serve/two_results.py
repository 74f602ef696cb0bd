"""Two results side by side: verdicts that changed, ratios of their cells, and a forest plot of the ratios."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from steelyard.analyse.comparison.agreement import Agreement, agreements
from steelyard.analyse.comparison.equivalence import Margin
from steelyard.errors import UsageError
from steelyard.report.charts.forest import MOST_ROWS, as_percent, forest, forest_row, labelled_rows
from steelyard.report.charts.parts import difference, is_wide
from steelyard.report.dataset import dataset
from steelyard.report.differences import differences
from steelyard.report.page import Figure
from steelyard.serve.finding_tables import shown_findings
from steelyard.serve.result_folder import require_contained
from steelyard.studies.run_values import cell_values, with_paired_cells

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from steelyard.analyse.comparison.agreement import CellAgreement
    from steelyard.report.charts.forest import Row

SHOWN: Final = 200
"""Rows of each table of the page; `steelyard compare-results` lists all."""
DRAWN: Final = 25
_ORDER: Final = (
    Agreement.FLIPPED,
    Agreement.MOVED,
    Agreement.UNDECIDED,
    Agreement.AGREED,
    Agreement.ONLY_FIRST,
    Agreement.ONLY_SECOND,
)


@dataclass(frozen=True, slots=True)
class RatioRow:
    """A cell in both results: its name, the answer, second over first, and why it is undecided."""

    name: str
    agreement: str
    ratio: str
    remark: str
    is_worse: bool


@dataclass(frozen=True, slots=True)
class TwoResults:
    """What changed from one result to another.

    Parameters
    ----------
    margin_percent : float
        What counted as agreement.
    counts : tuple of (str, int)
        Cells by answer.
    rows : tuple of RatioRow
        The first `SHOWN`, changes before agreement.
    changed : tuple of (str, str, str, str)
        Claim, subject, verdict before and after, of the first `SHOWN`.
    changed_total, compared : int
        Verdicts that changed, and claims in both.
    figure : Figure or None
        Forest plot; ``None`` without a cell in both.
    """

    margin_percent: float
    counts: tuple[tuple[str, int], ...]
    rows: tuple[RatioRow, ...]
    changed: tuple[tuple[str, str, str, str], ...]
    changed_total: int
    compared: int
    figure: Figure | None


def two_results(first: Path, second: Path, margin_percent: float) -> TwoResults:
    """Compare two result folders of one study.

    Parameters
    ----------
    first, second : Path
        Result folders with findings.
    margin_percent : float
        Largest difference that counts as agreement [%], more than 0 and less than 100.

    Raises
    ------
    UsageError
        If they are of different studies.
    DataError
        If one is damaged.
    """
    for folder in (first, second):
        require_contained(folder)
    before, after = map(shown_findings, (first, second))
    if before.study != after.study:
        message = f"one result is of study `{before.study}`, the other of study `{after.study}`"
        raise UsageError(message, hint="choose two results of the same study")
    found = differences(before, after)
    sides = with_paired_cells(cell_values(first), cell_values(second))
    cells = sorted(agreements(*sides, Margin(margin_percent / 100)), key=_rank)
    counts = tuple((kind.value, sum(cell.agreement is kind for cell in cells)) for kind in _ORDER)
    varied = _varied(cells)
    return TwoResults(
        margin_percent,
        tuple((name, count) for name, count in counts if count),
        tuple(_row(cell, varied) for cell in cells[:SHOWN]),
        tuple(
            (change.claim.replace("_", " "), _subject(change.subject), change.before, change.after)
            for change in found.changed[:SHOWN]
        ),
        len(found.changed),
        found.compared,
        _forest(cells, varied),
    )


def _rank(cell: CellAgreement) -> tuple[int, float]:
    size = 0.0 if cell.ratio is None or not cell.ratio.ratio > 0 else abs(math.log(cell.ratio.ratio))
    return _ORDER.index(cell.agreement), -size


def _varied(cells: Sequence[CellAgreement]) -> frozenset[str]:
    """Give the factors with more than one level: the others tell no cell from another."""
    levels: dict[str, set[str]] = {}
    for cell in cells:
        for factor, level in cell.levels.items():
            levels.setdefault(factor, set()).add(level)
    return frozenset(factor for factor, known in levels.items() if len(known) > 1)


def _name(cell: CellAgreement, varied: frozenset[str]) -> str:
    words = [level for factor, level in cell.levels.items() if factor in varied]
    return ", ".join([*(words or cell.levels.values()), cell.metric])


def _row(cell: CellAgreement, varied: frozenset[str]) -> RatioRow:
    test, text = cell.ratio, ""
    if test is not None:
        limits = "" if math.isnan(test.low) else f" [{test.low:.3g}, {test.high:.3g}]"
        text = f"{test.ratio:.4g}{limits}"
    remark = "; ".join(filter(None, (cell.reason, cell.remark, *(test.objections if test else ()))))
    return RatioRow(_name(cell, varied), cell.agreement.value, text, remark, bool(cell.is_worse))


def _subject(subject: dict[str, str]) -> str:
    hidden = {"first", "second", "family"}
    sides = f"{subject['first']} and {subject['second']}" if "second" in subject else ""
    return ", ".join(filter(None, [*(text for key, text in subject.items() if key not in hidden), sides]))


def _forest(cells: Sequence[CellAgreement], varied: frozenset[str]) -> Figure | None:
    """Draw the ratios with an interval, the largest changes first."""
    rows: list[Row] = []
    tones: dict[str, str] = {}
    for cell in cells:
        test = cell.ratio
        if test is None or not (math.isfinite(test.low) and math.isfinite(test.high)) or len(rows) == DRAWN:
            continue
        changed = cell.agreement in {Agreement.MOVED, Agreement.FLIPPED}
        said = f"{cell.agreement.value}, slower" if changed and cell.is_worse else cell.agreement.value
        tones[said] = ("bad" if cell.is_worse else "better") if changed else "open"
        interval = (as_percent(test.low), as_percent(test.high))
        rows.append(forest_row(_name(cell, varied), said, as_percent(test.ratio), interval))
    if not rows:
        return None
    drawn = len(rows)
    rest = sum(cell.ratio is not None for cell in cells) - drawn
    more = f" {rest} further cells are in the table." if rest > 0 else ""
    wide = is_wide(abs(float(str(row["value"]))) + 1 for row in rows)
    rows = labelled_rows(rows)
    return Figure(
        "forest",
        "Change of each cell",
        f"Second result against the first, with intervals; the dashed line is no change.{more}",
        f"Ratios of {drawn} cells with intervals",
        forest(rows, tones, difference("value", "difference to the first [%]", 1.0 if wide else None)),
        {"intervals": dataset(rows, MOST_ROWS)},
    )
