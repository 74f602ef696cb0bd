"""``steelyard.open``: a result folder or a package as data frames."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from steelyard.model.finding import Estimate, FindingSet, read_findings
from steelyard.model.plan import PLAN_NAME, Plan, read_plan
from steelyard.record.provenance import Provenance, read_provenance
from steelyard.record.tables import read_measurements, read_runs
from steelyard.share.package.check import opened_result

if TYPE_CHECKING:
    import os

    import pyarrow as pa

FINDINGS_NAME: Final = "findings.json"
_ESTIMATE: Final = {
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "level": pl.Float64,
    "unit": pl.String,
    "method": pl.String,
    "units": pl.Int64,
    "measurements": pl.Int64,
    "guaranteed": pl.Boolean,
}


@dataclass(frozen=True, repr=False)
class Result:
    """What was measured and what follows from it, as `steelyard.open` reads it.

    Frames are Polars data frames; their `to_arrow()` gives Arrow tables, and `to_pandas()` data frames of
    pandas where that is installed.
    Everything is in memory: later changes of the folder have no effect.

    Parameters
    ----------
    path : Path
        What was opened.
    plan : Plan
        What was to be run: factors, cells, batches in their order, and the options of the study.
    provenance : Provenance
        Where it comes from: host, versions, sessions with their command lines, isolation technologies.
    runs : polars.DataFrame
        One row for each launch of a program: its cell, its levels (a column for each factor), its status, and
        what the launcher measured. The unit is in the name of a column, as in ``wall_ns``.
    measurements : polars.DataFrame
        One row for each value: ``run_id``, ``iteration``, ``phase`` (``warmup`` or ``measure``), ``metric``,
        ``value``, ``unit``, and its digits as printed.
    finding_set : FindingSet or None
        The findings as they were computed; ``None`` if the result was not analysed yet.
    """

    path: Path
    plan: Plan
    provenance: Provenance
    runs: pl.DataFrame
    measurements: pl.DataFrame
    finding_set: FindingSet | None

    def __repr__(self) -> str:
        known = self.finding_set
        said = "not analysed" if known is None else f"{len(known.findings)} findings"
        return (
            f"<Result of {self.study}: {len(self.runs)} runs, {len(self.measurements)} measurements, {said}>"
        )

    @property
    def study(self) -> str:
        """Name of the study, as in ``stability``."""
        return self.plan.study

    @property
    def terms(self) -> dict[str, Any]:
        """What was asked for: the seed and the options of the study, margin included."""
        return {"seed": self.plan.seed, **self.plan.options}

    @property
    def findings(self) -> pl.DataFrame:
        """One row for each estimate of each finding; a finding without estimates has one row.

        ``id``, ``claim`` and ``verdict`` are those of the finding, ``subject_...`` says what it is about,
        ``facts`` is a JSON object, ``warnings`` a list. ``estimate`` is the role of the estimate, as in
        ``ratio``; the columns after it are those of `Estimate`. Empty if the result was not analysed.
        """
        found = () if self.finding_set is None else self.finding_set.findings
        subjects = list(dict.fromkeys(key for each in found for key in each.subject))
        rows = [
            {
                "id": each.id,
                "claim": each.claim,
                "verdict": each.verdict,
                **{f"subject_{key}": each.subject.get(key) for key in subjects},
                "facts": json.dumps(each.facts, ensure_ascii=False),
                "warnings": list(each.warnings),
                "estimate": role,
                **({} if estimate is None else asdict(estimate)),
            }
            for each in found
            for role, estimate in _estimates(each.estimates)
        ]
        schema: dict[str, Any] = dict.fromkeys(
            ("id", "claim", "verdict", *(f"subject_{key}" for key in subjects), "facts"), pl.String
        )
        return pl.DataFrame(
            rows, schema={**schema, "warnings": pl.List(pl.String), "estimate": pl.String, **_ESTIMATE}
        )


def open_result(path: str | os.PathLike[str]) -> Result:
    """Open a result folder, or a package of one.

    A package must contain the files that were packed; whether findings follow from the raw data is what
    ``steelyard verify`` tells.

    Parameters
    ----------
    path : str or path
        Folder that ``steelyard run``, ``compare --out`` or ``import`` wrote, archive that ``steelyard pack``
        wrote, or folder that such an archive was unpacked into.

    Returns
    -------
    Result
        Runs, measurements and findings as data frames, with plan and provenance.

    Raises
    ------
    DataError
        If it does not exist, is not a result, is damaged, or was written by a later version.

    Examples
    --------
    >>> import polars as pl
    >>> import steelyard
    >>> result = steelyard.open("tests/fixtures/packages/steelyard-0.1.0-run-compare.zip")
    >>> result.study, result.terms["margin_percent"]
    ('compare', 2.0)
    >>> measured = result.runs.filter(pl.col("phase") == "measure")
    >>> measured.group_by("command").len().sort("command").rows()
    [('sleep 0.002', 8), ('true', 8)]
    >>> result.findings.filter(pl.col("estimate") == "ratio").select("verdict", "unit").rows()
    [('slower', 'ratio')]
    """
    place = Path(path)
    with opened_result(place) as folder:
        plan = read_plan(folder / PLAN_NAME)
        is_analysed = (folder / FINDINGS_NAME).exists()
        return Result(
            place,
            plan,
            read_provenance(folder),
            _frame(read_runs(folder)),
            _frame(read_measurements(folder)),
            read_findings(folder / FINDINGS_NAME) if is_analysed else None,
        )


def _estimates(found: dict[str, Estimate]) -> list[tuple[str | None, Estimate | None]]:
    return list(found.items()) or [(None, None)]


def _frame(table: pa.Table) -> pl.DataFrame:
    return pl.DataFrame(pl.from_arrow(table))
