"""What was measured: the machine, the technologies, the cells, and those that are missing."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from steelyard.report.page import Column, Notice, Pairs, Table, Value
from steelyard.studies.stability.report_data import setup_label
from steelyard.units import format_bytes, format_significant

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic import JsonValue

    from steelyard.report.page import Block
    from steelyard.studies.stability.report_data import Recorded
    from steelyard.studies.stability.report_subjects import Subjects

IDENTIFIERS: Final = frozenset({"host_id", "machine_id_hash"})
"""Facts of a host that tell a reader nothing."""

RECORDED_DIGITS: Final = 3
"""Digits of recorded fractions: what the gate saw is no measurement of the study."""


def machine(recorded: Recorded) -> Block | None:
    """Give what is known of the machine, or the file that was imported."""
    provenance = recorded.provenance
    if provenance is None or not (provenance.host or provenance.origin):
        return Notice("Host", ("The machine was not recorded with these data.",))
    if provenance.origin is not None:
        origin = provenance.origin
        return Pairs(
            "Imported data",
            (
                ("file", origin.file_name),
                ("format", f"{origin.importer} {origin.form}".strip()),
                ("SHA-256", origin.sha256),
                ("machine", "not recorded in the file"),
            ),
        )
    host = {key: value for key, value in provenance.host.items() if key not in IDENTIFIERS}
    return Pairs("Host", tuple(flattened(host, "")))


def notes(recorded: Recorded) -> Block | None:
    """Give the remarks kept with the result."""
    found = recorded.provenance.notes if recorded.provenance else ()
    return Notice("Remarks", found, tone="warn") if found else None


def flattened(value: JsonValue, name: str) -> Iterable[tuple[str, str]]:
    """Give the leaves of nested JSON with readable names; long lists are counted.

    Examples
    --------
    >>> list(flattened({"cpu": {"model": "X", "cores": 4}, "flags": []}, ""))
    [('cpu model', 'X'), ('cpu cores', '4')]
    """
    if isinstance(value, dict):
        for key, item in value.items():
            yield from flattened(item, f"{name} {key}".strip().replace("_", " "))
    elif isinstance(value, list):
        texts = [str(item) for item in value if not isinstance(item, (dict, list))]
        if texts:
            yield name, ", ".join(texts)
    elif value is not None and value != "":
        yield name.removesuffix(" bytes"), _leaf(name, value)


def _leaf(name: str, value: str | float) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)) and name.endswith(" bytes"):
        return format_bytes(value)
    return format_significant(value, RECORDED_DIGITS) if isinstance(value, float) else str(value)


def technologies(recorded: Recorded, subjects: Subjects) -> Block | None:
    """Give each technology: measured or not, which version, why not."""
    described = recorded.provenance.technologies if recorded.provenance else {}
    names = list(dict.fromkeys([*subjects.isolations, *described]))
    rows = tuple(_technology(name, described.get(name), name in subjects.isolations) for name in names)
    columns = (
        *(Column(key) for key in ("isolation", "measured")),
        *(Column(key, is_prose=True) for key in ("version", "reason or remark")),
    )
    return Table("technologies", "Isolation technologies", columns, rows) if rows else None


def _technology(name: str, described: JsonValue, is_measured: bool) -> tuple[Value, ...]:  # noqa: FBT001 - private
    facts = described if isinstance(described, dict) else {}
    version = str(facts.get("version") or "")
    remarks = [str(facts[key]) for key in ("reason", "repair", "remark") if facts.get(key)]
    if not is_measured and facts.get("available"):
        remarks.append("works here, but is not part of this study's plan")
    remark = "; ".join(remarks)
    measured = Value("yes", tone="good") if is_measured else Value("no", tone="na")
    return Value(name), measured, Value(version), Value(remark)


def cells(recorded: Recorded, subjects: Subjects) -> Block:
    """Give the number of runs per setup and isolation."""
    keys = ["isolation", "setup_type", "setup_size", "affinity"]
    counts = Counter((row["isolation"], setup_label(row)) for row in recorded.runs.select(keys).to_pylist())
    rows = tuple(
        (Value(setup), *(_runs(counts.get((isolation, setup))) for isolation in subjects.isolations))
        for setup in subjects.setups
    )
    columns = (Column("setup"), *(Column(name, "runs", is_number=True) for name in subjects.isolations))
    workloads = ", ".join(subjects.workloads)
    return Table("cells", "Runs per setup and isolation", columns, rows, note=f"Workloads: {workloads}.")


def _runs(count: int | None) -> Value:
    return Value("NA") if count is None else Value(f"{count}", float(count))


def missing_table(recorded: Recorded) -> Block | None:
    """Give the missing cells, counted by what is missing and why."""
    missing = [cell for cell in (recorded.plan.cells if recorded.plan else ()) if cell.missing]
    groups = Counter(
        (
            cell.levels.get("isolation", ""),
            setup_label({"setup_type": "", "setup_size": "", **cell.levels}),
            cell.missing or "",
        )
        for cell in missing
    )
    rows = tuple(
        (Value(isolation), Value(setup), Value(f"{count}", float(count)), Value(reason))
        for (isolation, setup, reason), count in groups.items()
    )
    columns = (
        Column("isolation"),
        Column("setup"),
        Column("cells", is_number=True),
        Column("why", is_prose=True),
    )
    reasons = Counter(cell.missing for cell in missing)
    most = reasons.most_common(1)
    said = f"{len(missing)} cells, most often ({most[0][1]}): {most[0][0]}" if most else ""
    title = "Missing cells (NA everywhere)"
    return Table("missing_cells", title, columns, rows, summary=said) if rows else None
