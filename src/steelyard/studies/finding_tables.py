"""Findings as CSV files: one per kind of claim, one row per finding, each value copied."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Final

from steelyard.errors import unwritable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from steelyard.model import Finding, FindingSet

FOLDER: Final = "tables"
Scalar = str | int | float | bool | None


def write_claim_tables(result: Path, findings: FindingSet, files: Mapping[str, str]) -> None:
    """Write a table per kind of claim into the folder ``tables``; the same findings give the same bytes."""
    for claim, name in files.items():
        write_table(result, name, claim_table(findings.of(claim)))


def write_table(result: Path, name: str, text: str) -> None:
    """Write a table; the file is whole or absent.

    Raises
    ------
    DataError
        If the file cannot be written.
    """
    folder = result / FOLDER
    temporary = folder / f".{name}.csv.tmp"
    try:
        folder.mkdir(exist_ok=True)
        temporary.write_text(text, encoding="utf-8", newline="")
        temporary.replace(folder / f"{name}.csv")
    except OSError as error:
        raise unwritable(folder, error, "check the rights of the folder") from error


def claim_table(findings: Sequence[Finding]) -> str:
    """Give one row per finding: its subject, verdict, estimates with limits and units, facts."""
    columns = list(dict.fromkeys(name for finding in findings for name in _row(finding)))
    # Made again, one at a time: the rows of 100 000 findings are 300 MB at once.
    rows = ([row.get(name) for name in columns] for row in map(_row, findings))
    return rendered(columns or ["nothing to compare"], rows)


def rendered(columns: Sequence[str], rows: Iterable[Sequence[Scalar]]) -> str:
    """Give a table as text; what does not exist is ``NA``."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(["NA" if value is None else value for value in row] for row in rows)
    return text.getvalue()


def _row(finding: Finding) -> dict[str, Scalar]:
    row: dict[str, Scalar] = {**finding.subject, "verdict": finding.verdict}
    for role, estimate in finding.estimates.items():
        row |= {role: estimate.value}
        if estimate.level is not None:
            row |= {f"{role}_low": estimate.low, f"{role}_high": estimate.high}
        row |= {f"{role}_unit": estimate.unit}
    return {**row, **finding.facts}
