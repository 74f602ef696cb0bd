"""pyperf's JSON: worker processes are runs, with their warm-ups and values."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from steelyard.record.importers.foreign import (
    MEASURE,
    WARM_UP,
    WORKLOAD,
    ForeignFile,
    ForeignRun,
    Section,
    to_nanoseconds,
)
from steelyard.record.importers.foreign_importer import ForeignImporter
from steelyard.record.importers.json_node import Node, read_json
from steelyard.units import format_count

if TYPE_CHECKING:
    from decimal import Decimal

    from steelyard.record.importers.foreign import Source
    from steelyard.record.importers.reading import ReadOptions

EXPECTED: Final = (
    "pyperf's JSON (`-o FILE`, also gzipped): an object with `version` and `benchmarks`, each with `runs` of "
    "`values` and `warmups`"
)
_UNITS: Final = {"second": "ns", "byte": "bytes", "integer": "as counted"}
_METRICS: Final = {"second": "time", "byte": "memory", "integer": "value"}
_FACTS: Final = ("perf_version", "hostname", "platform", "python_version", "cpu_model_name", "timer", "date")


def read(source: Source, options: ReadOptions) -> ForeignFile:
    """Read a file.

    Raises
    ------
    DataError
        Naming the JSON path of what is wrong.
    """
    del options
    document = read_json(source)
    found = ForeignFile("json", facts={"tool": "pyperf"})
    shared = document.optional("metadata")
    for name in _FACTS:
        if shared is not None and (fact := shared.optional(name)) is not None:
            found.facts[name] = fact.shown()
    calibrations = 0
    for place, benchmark in enumerate(document.member("benchmarks").elements(), start=1):
        own = benchmark.optional("metadata")
        name = _text((own, shared), "name") or f"benchmark {place}"
        unit = _text((own, shared), "unit") or "second"
        if unit not in _UNITS:
            benchmark.refuse(f"a benchmark in one of the units {', '.join(_UNITS)}")
        for run in benchmark.member("runs").elements():
            sections = _sections(run, unit)
            calibrations += not any(section.phase == MEASURE for section in sections)
            found.runs.append(ForeignRun({WORKLOAD: name}, sections))
            date = _text((run.optional("metadata"),), "date")
            if date and date < found.facts.get("date", "~"):
                found.facts["date"] = date
    if calibrations:
        count = format_count(calibrations, "run")
        found.notes.append(f"{count} without a value: calibrations, which have warm-ups alone")
    return found


def _text(places: tuple[Node | None, ...], name: str) -> str:
    for place in places:
        if place is not None and (node := place.optional(name)) is not None:
            return node.text()
    return ""


def _sections(run: Node, unit: str) -> list[Section]:
    found = []
    if (warm_ups := run.optional("warmups")) is not None:
        for iteration, pair in enumerate(warm_ups.elements(), start=1):
            parts = pair.elements()
            if len(parts) != 2:  # noqa: PLR2004 - a pair
                pair.refuse("a pair of loops and value")
            found.append(_section(_value(parts[1], unit), unit, iteration, WARM_UP))
    if (values := run.optional("values")) is not None:
        found += [
            _section(_value(value, unit), unit, iteration, MEASURE)
            for iteration, value in enumerate(values.elements(), start=len(found) + 1)
        ]
    if not found:
        run.refuse("a run with `values` or `warmups`")
    return found


def _value(node: Node, unit: str) -> Decimal:
    return node.number() if unit == "integer" else node.duration()


def _section(number: Decimal, unit: str, iteration: int, phase: str) -> Section:
    value = to_nanoseconds(number, "s") if unit == "second" else float(number)
    return Section(_METRICS[unit], _UNITS[unit], value, iteration, phase, str(number))


IMPORTER: Final = ForeignImporter(
    "pyperf",
    "pyperf's JSON: worker processes are runs",
    EXPECTED,
    read,
    sign=re.compile(r"Mean \+- std dev: ", re.MULTILINE | re.ASCII),
)
