"""Estimates and findings: the only source of numbers in a report."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Final

from steelyard.model.document import read_document, read_once
from steelyard.model.indented_json import indented, indented_list

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FINDINGS_SCHEMA: Final = "steelyard/findings/1"
OF_SOURCE: Final = "source_"
"""Begin of the claims about what the source of a study printed: they say nothing of a result of ours."""

LATER_FIELDS: Final[dict[str, int]] = {}
"""Fields of findings and estimates that came after the first schema, with the number of the schema of each.

A set of an older schema is read without them, and says nothing of them.
"""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A point with its interval, method and unit.

    Parameters
    ----------
    value : float or None
        Point estimate in `unit`; ``None`` where it does not exist (NA).
    low, high : float or None
        Interval limits in `unit`; ``None`` where no interval is offered.
    level : float or None
        Nominal coverage of the interval, in (0, 1).
    unit : str
        ``s``, ``bytes``, ``percent``, ``ratio``, ``count``, ``workers`` ...
    method : str
        Procedure by its name in ``docs/concepts``.
    units : int
        Independent units the estimate rests on (batches of a worker, not iterations).
    measurements : int
        Single values behind them.
    guaranteed : bool
        Whether the procedure keeps its nominal level for data of this kind and size.
    """

    value: float | None
    unit: str
    method: str
    low: float | None = None
    high: float | None = None
    level: float | None = None
    units: int = 0
    measurements: int = 0
    guaranteed: bool = True


@dataclass(frozen=True, slots=True)
class Evidence:
    """The query a finding was computed from: rows of a recorded table, and what was done with them."""

    table: str
    filter: dict[str, str]
    columns: tuple[str, ...]
    statistic: str


@dataclass(frozen=True, slots=True)
class Finding:
    """An estimate with a verdict about a claim.

    Parameters
    ----------
    id : str
        Unique in its set and stable over re-computation, e.g. ``mean_comparison/exp-exp_float/...``.
    claim : str
        Kind of claim (``mean_comparison``, ``outside_error``, ``recommended_workers`` ...).
    subject : dict
        What the claim is about: factor levels and sides, all text.
    verdict : str
        ``slower``, ``faster``, ``equivalent``, ``inconclusive``, ``descriptive``, or the words of the claim.
    estimates : dict
        By role (``ratio``, ``first``, ``second`` ...).
    facts : dict
        Further JSON values the sentence needs (classes of the published rule, counts, names).
    evidence : tuple of Evidence
        Queries.
    warnings : tuple of str
        Codes with text, shown beside the sentence.
    """

    id: str
    claim: str
    subject: dict[str, str]
    verdict: str
    estimates: dict[str, Estimate] = field(default_factory=dict)
    facts: dict[str, str | int | float | bool | None] = field(default_factory=dict)
    evidence: tuple[Evidence, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, weakref_slot=True)
class FindingSet:
    """Everything an analysis says about one result folder.

    Parameters
    ----------
    study, plan_id : str
        What was analysed.
    method_version : int
        Raised whenever a change of the analysis alters numbers.
    inputs : dict
        SHA-256 of each recorded table read, by file name.
    findings : tuple of Finding
        In the order of the report.
    """

    study: str
    plan_id: str
    method_version: int
    inputs: dict[str, str]
    findings: tuple[Finding, ...]
    schema: str = FINDINGS_SCHEMA

    def of(self, claim: str) -> tuple[Finding, ...]:
        """Give the findings of one kind of claim, in order."""
        return tuple(finding for finding in self.findings if finding.claim == claim)

    def own(self) -> tuple[Finding, ...]:
        """Give what is said of this result, without what is said of the study's source."""
        return tuple(finding for finding in self.findings if not finding.claim.startswith(OF_SOURCE))

    def written(self) -> Iterator[str]:
        """Give the JSON document piece by piece, its last line ended."""
        before = "{\n"
        for name in (each.name for each in fields(self)):
            yield f'{before} "{name}": '
            before = ",\n"
            if name == "findings":
                yield from indented_list(self.findings, 1)
            else:
                yield indented(getattr(self, name), 1)
        yield "\n}\n"

    def write(self, path: Path) -> None:
        """Write as JSON; the file is whole or absent."""
        temporary = path.with_suffix(".tmp")
        try:
            with temporary.open("w", encoding="utf-8") as file:
                file.writelines(self.written())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


@read_once
def read_findings(path: Path) -> FindingSet:
    """Read findings.

    Raises
    ------
    DataError
        If the file is absent, damaged or of another schema.
    """
    again = f"steelyard analyse {shlex.quote(str(path.parent))}"
    return read_document(path, FindingSet, FINDINGS_SCHEMA, absent=again, damaged=again, is_older_read=True)


def fields_beyond(schema: str) -> frozenset[str]:
    """Give the fields that findings of this version have and those of a schema do not.

    Parameters
    ----------
    schema : str
        Schema that a set of findings carries.
    """
    number = int(schema.rpartition("/")[2])
    return frozenset(name for name, since in LATER_FIELDS.items() if since > number)
