"""The history of a cell over results: its values, where they changed, and which levels somebody accepted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from steelyard.analyse.series.history import HistoryOptions, Inside, find_changes
from steelyard.analyse.series.result_series import read_series
from steelyard.errors import DataError, UsageError
from steelyard.record.accepted_levels import ACCEPTED_NAME, read_accepted
from steelyard.record.provenance import read_provenance
from steelyard.report.history_page import Followed, called, history_page, name_of, places_of
from steelyard.serve.result_folder import require_contained

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from steelyard.report.page import Page

MOST_RESULTS: Final = 200
"""Results of a history, the newest: a page has no room for more points."""
MARGIN: Final = 0.02
LEVEL: Final = 0.95
_AUTOCORRELATION: Final = 0.7


@dataclass(frozen=True, slots=True)
class Acceptance:
    """A level that somebody accepted: result, who, when, why, of what; and whether this series has it."""

    result: str
    of: str
    by: str
    at: str
    why: str
    is_here: bool


@dataclass(frozen=True, slots=True)
class CellHistory:
    """One series of a history.

    Parameters
    ----------
    series : tuple of (str, str)
        Names of all series, each with what it does: ``changed``, ``suspect``, ``undecided`` or ``no change``.
    chosen : str
        The one shown.
    page : Page
        Its figure, changes and sentences.
    accepted : tuple of Acceptance
        Levels that are recorded beside the newest result.
    results : int
        Results that have the cell; copies of a result count once.
    """

    series: tuple[tuple[str, str], ...]
    chosen: str
    page: Page
    accepted: tuple[Acceptance, ...]
    results: int


def cell_history(folders: Sequence[Path], chosen: str) -> CellHistory:
    """Follow a cell over results.

    Parameters
    ----------
    folders : sequence of Path
        At least two result folders, oldest first.
    chosen : str
        Name of a series; empty for the first that changed.

    Raises
    ------
    UsageError
        If all are copies of one result.
    DataError
        If a folder is damaged, or there is no such series.
    AnalysisError
        If there is nothing to follow.
    """
    for folder in folders:
        require_contained(folder)
    results = _without_copies(folders)
    if len(results) < 2:  # noqa: PLR2004 - one result is no history
        message = f"the {len(folders)} complete results of this study on this host are copies of one"
        raise UsageError(message, hint="a history needs two: `steelyard rerun` repeats a study")
    series = [each for each in read_series(results) if each.values.size > 1]
    if not series:
        message = f"no cell is in two of these {len(results)} results"
        raise DataError(message, hint="a history needs results of the same cells", code="data.history")
    options = HistoryOptions(MARGIN, LEVEL, False, _AUTOCORRELATION)  # noqa: FBT003 - its own order
    found = find_changes(
        [each.values for each in series], options, [Inside(each.runs, each.squares) for each in series]
    )
    accepted = read_accepted(folders[-1].parent / ACCEPTED_NAME)
    followed = [
        Followed.of(one, two, places_of(accepted, one), MARGIN)
        for one, two in zip(series, found, strict=True)
    ]
    followed.sort(
        key=lambda each: (
            not each.found.changes,
            each.found.suspect is None,
            "wall" not in each.series.subject["metric"],
        )
    )
    names = [name_of(each.series) for each in followed]
    if chosen and chosen not in names:
        message = f"these results have no cell `{chosen[:200]}`"
        raise DataError(message, hint="choose one of the list", code="data.cell")
    shown = followed[names.index(chosen)] if chosen else followed[0]
    held = {shown.series.labels[place] for place in shown.accepted}
    return CellHistory(
        tuple((name, each.verdict) for name, each in zip(names, followed, strict=True)),
        name_of(shown.series),
        history_page([shown], MARGIN),
        tuple(
            Acceptance(
                each.result,
                ", ".join([*each.series, *each.metrics]),
                each.by,
                each.at,
                each.why,
                each.result in held and each.is_for(shown.series.subject["metric"], *called(shown.series)),
            )
            for each in accepted
        ),
        shown.series.values.size,
    )


def _without_copies(folders: Sequence[Path]) -> list[Path]:
    """Give one folder of each result: a plan begins on a host once, and a file is imported once."""
    found: dict[tuple[str, ...], Path] = {}
    for folder in folders:
        provenance = read_provenance(folder)
        origins = provenance.origins or ([provenance.origin] if provenance.origin else [])
        begun = [each.sha256 for each in origins] or [each.begun_utc for each in provenance.sessions[:1]]
        found.setdefault((provenance.plan_id, provenance.host_id, *(begun or [str(folder)])), folder)
    return list(found.values())
