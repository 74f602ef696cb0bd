"""What was measured: the machine, the technologies, the cells, and those that are missing."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from steelyard.report.fills import NOTHING
from steelyard.report.page import Notice, Pairs, Value
from steelyard.report.table_spec import TableSpec, number, prose, text
from steelyard.studies.stability.report.data import setup_label
from steelyard.units import format_bytes, format_significant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pydantic import JsonValue

    from steelyard.report.page import Block
    from steelyard.report.table_spec import ColumnSpec
    from steelyard.studies.stability.report.data import RecordedTables
    from steelyard.studies.stability.report.subjects import Subjects

IDENTIFIERS: Final = frozenset({"host_id", "machine_id_hash"})
"""Facts of a host that tell a reader nothing."""

RECORDED_DIGITS: Final = 3
"""Digits of recorded fractions: what the gate saw is no measurement of the study."""


def machine(recorded: RecordedTables) -> Block | None:
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


def notes(recorded: RecordedTables) -> Block | None:
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


def technologies(recorded: RecordedTables, subjects: Subjects) -> Block | None:
    """Give each technology: measured or not, which version, why not."""
    described = recorded.provenance.technologies if recorded.provenance else {}

    def facts(name: str) -> Mapping[str, JsonValue]:
        found = described.get(name)
        return found if isinstance(found, dict) else {}

    def is_measured(name: str) -> Value:
        return Value("yes", tone="good") if name in subjects.isolations else Value("no", tone="na")

    def remark(name: str) -> Value:
        said = [str(facts(name)[key]) for key in ("reason", "repair", "remark") if facts(name).get(key)]
        if name not in subjects.isolations and facts(name).get("available"):
            said.append("works here, but is not part of this study's plan")
        return Value("; ".join(said))

    return TableSpec(
        "technologies",
        "Isolation technologies",
        (
            text("isolation", Value),
            text("measured", is_measured),
            prose("version", lambda name: Value(str(facts(name).get("version") or ""))),
            prose("reason or remark", remark),
        ),
        file=None,
    ).build(list(dict.fromkeys([*subjects.isolations, *described])))


def cells(recorded: RecordedTables, subjects: Subjects) -> Block | None:
    """Give the number of runs per setup and isolation."""
    keys = ["isolation", "setup_type", "setup_size", "affinity"]
    counts = Counter((row["isolation"], setup_label(row)) for row in recorded.runs.select(keys).to_pylist())

    def runs(isolation: str) -> ColumnSpec[str]:
        def fill(setup: str) -> Value:
            count = counts.get((isolation, setup))
            return NOTHING if count is None else Value(f"{count}", float(count))

        return number(isolation, fill, unit="runs")

    columns = (text("setup", Value), *map(runs, subjects.isolations))
    note = f"Workloads: {', '.join(subjects.workloads)}."
    return TableSpec("cells", "Runs per setup and isolation", columns, note, file=None).build(subjects.setups)


def missing_table(recorded: RecordedTables) -> Block | None:
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
    most = Counter(cell.missing for cell in missing).most_common(1)

    def part(place: int) -> Callable[[tuple[str, str, str]], Value]:
        return lambda row: Value(row[place])

    def cell_count(row: tuple[str, str, str]) -> Value:
        return Value(f"{groups[row]}", float(groups[row]))

    return TableSpec(
        "missing_cells",
        "Missing cells (NA everywhere)",
        (
            text("isolation", part(0)),
            text("setup", part(1)),
            number("cells", cell_count),
            prose("why", part(2)),
        ),
        file=None,
        summary=lambda _: f"{len(missing)} cells, most often ({most[0][1]}): {most[0][0]}",
    ).build(list(groups))
