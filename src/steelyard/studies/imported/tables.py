"""The findings of an import as CSV files, each value copied from a finding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.studies.finding_tables import write_claim_tables

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.model import FindingSet

CLAIMS: Final = {"cell": "cells", "comparison": "comparisons", "published_value": "published"}


def write_tables(result: Path, findings: FindingSet) -> None:
    """Write one table per kind of claim; the same findings give the same bytes."""
    write_claim_tables(result, findings, CLAIMS)
