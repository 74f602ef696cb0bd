"""The findings of an import as CSV files, each value copied from a finding."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.model import Finding, FindingSet

FOLDER: Final = "tables"
CLAIMS: Final = {"cell": "cells", "comparison": "comparisons", "published_value": "published"}
Scalar = str | int | float | bool | None


def write_tables(result: Path, findings: FindingSet) -> None:
    """Write one table per kind of claim; the same findings give the same bytes."""
    folder = result / FOLDER
    folder.mkdir(exist_ok=True)
    for claim, name in CLAIMS.items():
        temporary = folder / f".{name}.csv.tmp"
        temporary.write_text(_text(findings.of(claim)), encoding="utf-8", newline="")
        temporary.replace(folder / f"{name}.csv")


def _text(findings: tuple[Finding, ...]) -> str:
    rows = [_row(finding) for finding in findings]
    columns = list(dict.fromkeys(name for row in rows for name in row)) or ["nothing to compare"]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        values = (row.get(name) for name in columns)
        writer.writerow(["NA" if value is None else value for value in values])
    return text.getvalue()


def _row(finding: Finding) -> dict[str, Scalar]:
    row: dict[str, Scalar] = {**finding.subject, "verdict": finding.verdict}
    for role, estimate in finding.estimates.items():
        row |= {role: estimate.value}
        if estimate.level is not None:
            row |= {f"{role}_low": estimate.low, f"{role}_high": estimate.high}
        row |= {f"{role}_unit": estimate.unit}
    return {**row, **finding.facts}
