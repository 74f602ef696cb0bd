"""How findings of an analysis are put together."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from steelyard.model import Estimate, Evidence, Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from steelyard.analyse.intervals.dispersion import Pooled

    Fact = str | int | float | bool | None

MEASUREMENTS: Final = "measurements/values.parquet"
RUNS: Final = "runs.parquet"

FEW_UNITS: Final = "few-units"
SHARED_BATCHES: Final = "shared-batches"


def finite(value: float | None) -> float | None:
    """Give a number, or nothing where it does not exist."""
    return None if value is None or not math.isfinite(value) else float(value)


def estimate_of(pooled: Pooled, *, unit: str, scale: float = 1.0) -> Estimate:
    """Give the estimate of a pooled statistic."""
    return Estimate(
        value=finite(pooled.value * scale),
        unit=unit,
        method=pooled.method,
        low=finite(pooled.low * scale),
        high=finite(pooled.high * scale),
        level=None if math.isnan(pooled.low) else 0.95,
        units=pooled.units,
        measurements=pooled.measurements,
        guaranteed=pooled.guaranteed,
    )


def finding(  # noqa: PLR0913 - the fields of a finding, by name
    claim: str,
    subject: Mapping[str, str],
    verdict: str,
    *,
    estimates: Mapping[str, Estimate] | None = None,
    facts: Mapping[str, Fact] | None = None,
    evidence: Evidence | None = None,
    warnings: Iterable[str] = (),
) -> Finding:
    """Build a finding; its id is its claim and its subject."""
    return Finding(
        id="/".join([claim, *(_slug(value) for value in subject.values())]),
        claim=claim,
        subject=dict(subject),
        verdict=verdict,
        estimates=dict(estimates or {}),
        facts=dict(facts or {}),
        evidence=() if evidence is None else (evidence,),
        warnings=tuple(warnings),
    )


def of_cells(numbers: Iterable[int], columns: Iterable[str], statistic: str) -> Evidence:
    """Give the query for measurements of some cells."""
    text = ",".join(str(number) for number in numbers)
    return Evidence(MEASUREMENTS, {"cell": text, "phase": "measure"}, tuple(columns), statistic)


def with_unique_ids(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Give each finding an id of its own: names such as `a b` and `a-b` make equal ones."""
    seen: Counter[str] = Counter()
    for each in findings:
        seen[each.id] += 1
        count = seen[each.id]
        yield each if count == 1 else replace(each, id=f"{each.id}~{count}")


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.,+-]+", "-", text) or "-"
