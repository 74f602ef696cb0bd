"""Findings of a result as tables: filtered, sorted and cut into pages on the server."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import polars as pl

from steelyard.catalogue.folder import OF_RUNS
from steelyard.errors import DataError
from steelyard.model import Estimate
from steelyard.model.finding import read_findings
from steelyard.report.slots import with_unit
from steelyard.serve.result_folder import require_contained

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from steelyard.model import Finding, FindingSet

ROWS: Final = 50
LARGEST_BYTES: Final = 16_000_000
"""A larger `findings.json`, of some thousand findings, is not read for a page: its tables are, in part."""
MOST_READ_BYTES: Final = 400_000_000
"""A larger one is not read for a comparison of two results either."""
_PARTS: Final = ("_low", "_high", "_unit")
"""What the name of an estimate's column ends with where it is no column of its own."""


@dataclass(frozen=True, slots=True)
class TableRequest:
    """Which rows of which table.

    Parameters
    ----------
    claim : str
        Kind of claim; empty for the first that has such rows.
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
    others : tuple of (str, int)
        Other kinds with rows that fulfil the filter, with their numbers; empty without words.
    """

    claims: tuple[tuple[str, int], ...]
    claim: str
    headings: tuple[Heading, ...]
    rows: tuple[tuple[str, ...], ...]
    total: int
    others: tuple[tuple[str, int], ...] = ()


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
        If the findings are absent or damaged.
    """
    require_contained(folder, OF_RUNS)
    path = folder / "findings.json"
    if path.exists() and path.stat().st_size > LARGEST_BYTES:
        return _written_table(folder / "tables", stamp, asked)
    tables, claims = _tables(str(folder), stamp)
    words = asked.text.casefold().split()
    found = {name: _chosen(each, words) for name, each in tables.items()}
    claim = _shown_kind(asked, {name: len(each) for name, each in found.items()})
    table, chosen = tables.get(claim, _Table((), (), ())), found.get(claim, [])
    place = next((at for at, each in enumerate(table.headings) if each.name == asked.order), None)
    if place is not None:
        chosen = _sorted(table, chosen, place, is_descending=asked.is_descending)
    begin = (max(asked.page, 1) - 1) * ROWS
    rows = tuple(table.rows[at] for at in chosen[begin : begin + ROWS])
    others = _others(asked, claim, {name: len(each) for name, each in found.items()})
    return FindingTable(claims, claim, table.headings, rows, len(chosen), others)


def _shown_kind(asked: TableRequest, counts: Mapping[str, int]) -> str:
    """Give the kind that was asked for, else the first in which something is found."""
    if asked.claim in counts:
        return asked.claim
    return next((name for name, count in counts.items() if count), next(iter(counts), ""))


def _others(asked: TableRequest, claim: str, counts: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    if not asked.text.split():
        return ()
    return tuple((name, count) for name, count in counts.items() if count and name != claim)


def shown_findings(folder: Path) -> FindingSet:
    """Read the findings of a result for a page.

    Raises
    ------
    DataError
        If they are absent, damaged, or too many for a page.
    """
    path = folder / "findings.json"
    if path.exists() and path.stat().st_size > MOST_READ_BYTES:
        message = f"cannot show `{path}`: it has more than {MOST_READ_BYTES} bytes"
        raise DataError(message, hint=f"the same findings are in `{folder / 'tables'}`", code="data.large")
    return read_findings(path)


def _written_table(folder: Path, stamp: str, asked: TableRequest) -> FindingTable:
    """Give a page of a written table, without the findings: those of 100 000 cells are 180 MB of JSON."""
    tables = _written_tables(str(folder), stamp)
    words = asked.text.casefold().split()
    found = {name: _with_words(each, words) for name, each in tables.items()}
    counts = {name: each.height for name, each in found.items()}
    claim = _shown_kind(asked, counts)
    table = found[claim]
    names = [
        name
        for name in table.columns
        if not any(name.endswith(part) and f"{name.removesuffix(part)}_unit" in table for part in _PARTS)
    ]
    if asked.order in names:
        table = table.sort(asked.order, descending=asked.is_descending, nulls_last=True, maintain_order=True)
    page = table.slice((max(asked.page, 1) - 1) * ROWS, ROWS)
    return FindingTable(
        tuple((name, each.height) for name, each in tables.items()),
        claim,
        tuple(Heading(name, is_number=table.schema[name].is_numeric()) for name in names),
        tuple(tuple(_said_in(row, name) for name in names) for row in page.iter_rows(named=True)),
        table.height,
        _others(asked, claim, counts),
    )


def _with_words(table: pl.DataFrame, words: Sequence[str]) -> pl.DataFrame:
    text = pl.concat_str(pl.all().cast(pl.String), separator=" ", ignore_nulls=True).str.to_lowercase()
    for word in words:
        table = table.filter(text.str.contains(word, literal=True))
    return table


@lru_cache(maxsize=2)
def _written_tables(folder: str, stamp: str) -> dict[str, pl.DataFrame]:
    del stamp
    found = {}
    for path in sorted(Path(folder).glob("*.csv")):
        try:
            table = pl.read_csv(path, null_values="NA", infer_schema_length=None)
        except (pl.exceptions.PolarsError, OSError) as error:
            reason = " ".join(str(error).split())[:200]
            hint = f"`steelyard analyse {path.parent.parent}` writes the tables again"
            message = f"cannot read `{path}`: {reason}"
            raise DataError(message, hint=hint, code="data.corrupt") from error
        if "verdict" in table:
            found[path.stem] = table
    if not found:
        message = f"cannot show so many findings: `{folder}` has no table of them"
        hint = f"`steelyard analyse {Path(folder).parent}` writes the tables again"
        raise DataError(message, hint=hint, code="data.absent")
    return found


def _said_in(row: Mapping[str, object], name: str) -> str:
    """Write a field of a table, an estimate with its interval."""
    value, unit = row[name], row.get(f"{name}_unit")
    if value is None or unit is None or isinstance(value, str):
        return "" if value is None else str(value)
    limits = [row.get(f"{name}{part}") for part in ("_low", "_high")]
    low, high = (float(str(each)) if each is not None else None for each in limits)
    return _said(Estimate(float(str(value)), str(unit), "", low, high))


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
    for finding in read_findings(Path(folder) / "findings.json").findings:
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
