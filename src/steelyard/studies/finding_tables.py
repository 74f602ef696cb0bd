"""Findings as CSV files, one per kind of claim, each value copied from a finding."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Final

from steelyard.errors import unwritable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from steelyard.model import Finding, FindingSet

FOLDER: Final = "tables"
Scalar = str | int | float | bool | None


def write_finding_tables(result: Path, findings: FindingSet, names: Mapping[str, str]) -> None:
    """Write one table per kind of claim; the same findings give the same bytes.

    Parameters
    ----------
    result : Path
        Result folder.
    findings : FindingSet
        What is written.
    names : mapping
        Stem of the file by kind of claim.

    Raises
    ------
    DataError
        If a file cannot be written.
    """
    folder = result / FOLDER
    try:
        folder.mkdir(exist_ok=True)
        for claim, name in names.items():
            temporary = folder / f".{name}.csv.tmp"
            temporary.write_text(_text(findings.of(claim)), encoding="utf-8", newline="")
            temporary.replace(folder / f"{name}.csv")
    except OSError as error:
        raise unwritable(folder, error, "check the rights of the folder") from error


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
