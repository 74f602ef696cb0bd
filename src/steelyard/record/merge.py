"""Which results may be laid over each other: fields that must agree, and those worth a word."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

from steelyard.errors import DataError
from steelyard.model.plan import read_plan
from steelyard.record.provenance import read_provenance

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


class Purpose(Enum):
    """What two results are put together for."""

    COMPARE = "compare"
    """Cell by cell, each result keeping its own tables."""
    MERGE = "merge"
    """Runs of both in one table, as if one study had made them."""


class Severity(Enum):
    """What a difference means."""

    REFUSED = "refused"
    """The numbers would not mean the same."""
    NOTED = "noted"
    """A possible cause of a difference; the report says it."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A field two results differ in."""

    field: str
    first: str
    second: str
    severity: Severity

    def __str__(self) -> str:
        return f"{self.field}: `{self.first}` against `{self.second}`"


_MUST_AGREE: Final = {
    Purpose.COMPARE: frozenset({"study", "factors", "units"}),
    Purpose.MERGE: frozenset({"study", "factors", "units", "plan", "host", "kernel", "steelyard", "stamps"}),
}
"""Fields that must agree. The others are noted.

Comparing is for results of different hosts and dates; merging makes one sample of both, so
everything that shifts a time must be the same."""


def disagreements(first: Path, second: Path, purpose: Purpose) -> tuple[Disagreement, ...]:
    """Give every field in which two result folders differ.

    Raises
    ------
    DataError
        If a folder is damaged.
    """
    left, right = _fields(first), _fields(second)
    units_left, units_right = _units(first), _units(second)
    shared = sorted(units_left.keys() & units_right.keys())
    left["units"] = ", ".join(f"{metric} [{units_left[metric]}]" for metric in shared)
    right["units"] = ", ".join(f"{metric} [{units_right[metric]}]" for metric in shared)
    found = []
    for name in left:
        if left[name] != right[name]:
            severity = Severity.REFUSED if name in _MUST_AGREE[purpose] else Severity.NOTED
            found.append(Disagreement(name, left[name], right[name], severity))
    return tuple(found)


def require_agreement(first: Path, second: Path, purpose: Purpose) -> tuple[Disagreement, ...]:
    """Refuse results that must not be put together.

    Returns
    -------
    tuple of Disagreement
        Differences worth a word.

    Raises
    ------
    DataError
        Listing every field that must agree and does not.
    """
    found = disagreements(first, second, purpose)
    refused = [each for each in found if each.severity is Severity.REFUSED]
    if refused:
        listed = "; ".join(map(str, refused))
        message = f"cannot {purpose.value} `{first}` and `{second}`: {listed}"
        hint = "compare results of the same study; merge only results of the same plan on the same host"
        raise DataError(message, hint=hint, code="data.disagree")
    return found


def _fields(result: Path) -> dict[str, str]:
    # Here, so that asking about provenance alone does not load Arrow.
    from steelyard.record.schema import factor_columns  # noqa: PLC0415
    from steelyard.record.tables import read_runs  # noqa: PLC0415

    plan, provenance = read_plan(result / "plan.json"), read_provenance(result)
    runs = read_runs(result)
    return {
        "study": plan.study,
        "factors": ", ".join(factor_columns(runs.schema)),
        "plan": plan.id,
        "host": provenance.host_id,
        "kernel": _listed(session.kernel for session in provenance.sessions),
        "steelyard": provenance.versions.get("steelyard", ""),
        "stamps": _listed(each for each in runs["stamp_source"].unique().to_pylist() if each is not None),
        "origin": "executed" if provenance.origin is None else provenance.origin.importer,
        "seed": str(plan.seed),
    }


def _units(result: Path) -> dict[str, str]:
    """Give what each metric measures; units of time can be converted and count as one."""
    from steelyard.record.tables import read_measurements  # noqa: PLC0415

    measurements = read_measurements(result).select(["metric", "unit"])
    pairs = measurements.group_by(["metric", "unit"]).aggregate([]).to_pylist()
    found: dict[str, set[str]] = {}
    for row in pairs:
        found.setdefault(row["metric"], set()).add(_dimension(row["unit"]))
    return {metric: _listed(dimensions) for metric, dimensions in found.items()}


def _dimension(unit: str) -> str:
    return "time" if unit in {"ns", "us", "ms", "s"} else unit


def _listed(values: Iterable[str]) -> str:
    return ", ".join(sorted(set(values)))
