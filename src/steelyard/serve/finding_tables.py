"""Findings of a result as tables: filtered, sorted and cut into pages on the server."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steelyard.errors import DataError
from steelyard.model.finding import read_findings
from steelyard.report.slots import with_unit
from steelyard.serve.result_folder import require_contained

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.model import Estimate, Finding, FindingSet

ROWS: Final = 50
LARGEST_BYTES: Final = 400_000_000
"""A larger `findings.json` is not read for a page: its tables lie beside it as CSV."""


@dataclass(frozen=True, slots=True)
class TableRequest:
    """Which rows of which table.

    Parameters
    ----------
    claim : str
        Kind of claim; empty for the first.
    text : str
        Words that a row must contain.
    order : str
        Heading of the column to sort by; empty keeps the order of the report.
    is_descending : bool
        Largest first.
    page : int
        From 1.
    """

    claim: str = ""
    text: str = ""
    order: str = ""
    is_descending: bool = False
    page: int = 1


@dataclass(frozen=True, slots=True)
class Heading:
    """A column."""

    name: str
    is_number: bool


@dataclass(frozen=True, slots=True)
class FindingTable:
    """Rows of one kind of claim.

    Parameters
    ----------
    claims : tuple of (str, int)
        Kinds of claim that the result has, with their numbers.
    claim : str
        The one shown.
    headings : tuple of Heading
        In order.
    rows : tuple of tuple of str
        Of one page.
    total : int
        Rows that fulfil the filter.
    """

    claims: tuple[tuple[str, int], ...]
    claim: str
    headings: tuple[Heading, ...]
    rows: tuple[tuple[str, ...], ...]
    total: int


@dataclass(frozen=True, slots=True)
class _Table:
    headings: tuple[Heading, ...]
    rows: tuple[tuple[str, ...], ...]
    orders: tuple[tuple[float | str | None, ...], ...]


def finding_table(folder: Path, stamp: str, asked: TableRequest) -> FindingTable:
    """Give a page of a table of findings.

    Parameters
    ----------
    folder : Path
        Result folder.
    stamp : str
        Changes with its files.
    asked : TableRequest
        What to show.

    Raises
    ------
    DataError
        If the findings are absent, damaged, or too many for a page.
    """
    require_contained(folder)
    tables, claims = _tables(str(folder), stamp)
    claim = asked.claim if asked.claim in tables else next(iter(tables), "")
    table = tables.get(claim, _Table((), (), ()))
    chosen = _chosen(table, asked.text.casefold().split())
    place = next((at for at, each in enumerate(table.headings) if each.name == asked.order), None)
    if place is not None:
        chosen = _sorted(table, chosen, place, is_descending=asked.is_descending)
    begin = (max(asked.page, 1) - 1) * ROWS
    rows = tuple(table.rows[at] for at in chosen[begin : begin + ROWS])
    return FindingTable(claims, claim, table.headings, rows, len(chosen))


def shown_findings(folder: Path) -> FindingSet:
    """Read the findings of a result for a page.

    Raises
    ------
    DataError
        If they are absent, damaged, or too many for a page.
    """
    path = folder / "findings.json"
    if path.exists() and path.stat().st_size > LARGEST_BYTES:
        message = f"cannot show `{path}`: it has more than {LARGEST_BYTES} bytes"
        raise DataError(message, hint=f"the same findings are in `{folder / 'tables'}`", code="data.large")
    return read_findings(path)


def _chosen(table: _Table, words: Sequence[str]) -> list[int]:
    if not words:
        return list(range(len(table.rows)))
    return [
        at
        for at, row in enumerate(table.rows)
        if all(word in text for text in [" ".join(row).casefold()] for word in words)
    ]


def _sorted(table: _Table, rows: list[int], column: int, *, is_descending: bool) -> list[int]:
    """Sort rows; those without a value come last, either way."""
    known = [at for at in rows if table.orders[at][column] is not None]
    unknown = [at for at in rows if table.orders[at][column] is None]
    is_number = table.headings[column].is_number
    keys = {at: table.orders[at][column] if is_number else str(table.orders[at][column]) for at in known}
    return sorted(known, key=keys.__getitem__, reverse=is_descending) + unknown  # type: ignore[arg-type]


@lru_cache(maxsize=4)
def _tables(folder: str, stamp: str) -> tuple[dict[str, _Table], tuple[tuple[str, int], ...]]:
    found: dict[str, list[Finding]] = {}
    for finding in shown_findings(Path(folder)).findings:
        found.setdefault(finding.claim, []).append(finding)
    counts = Counter({claim: len(each) for claim, each in found.items()})
    return {claim: _table(each) for claim, each in found.items()}, tuple(counts.items())


def _table(findings: Sequence[Finding]) -> _Table:
    keys = list(dict.fromkeys(key for each in findings for key in each.subject))
    roles = list(dict.fromkeys(role for each in findings for role in each.estimates))
    headings = (
        *(Heading(key, is_number=False) for key in keys),
        Heading("verdict", is_number=False),
        *(Heading(role, is_number=True) for role in roles),
        Heading("remarks", is_number=False),
    )
    rows, orders = [], []
    for each in findings:
        subject = [each.subject.get(key, "") for key in keys]
        estimates = [each.estimates.get(role) for role in roles]
        remarks = "; ".join(each.warnings)
        rows.append((*subject, each.verdict, *map(_said, estimates), remarks))
        values = (None if estimate is None else estimate.value for estimate in estimates)
        orders.append((*subject, each.verdict, *values, remarks or None))
    return _Table(headings, tuple(rows), tuple(orders))


def _said(estimate: Estimate | None) -> str:
    """Write an estimate with its interval."""
    if estimate is None or estimate.value is None:
        return ""
    text = with_unit(estimate.value, estimate.unit)
    if estimate.low is None or estimate.high is None:
        return text
    return f"{text} [{with_unit(estimate.low, estimate.unit)}, {with_unit(estimate.high, estimate.unit)}]"
