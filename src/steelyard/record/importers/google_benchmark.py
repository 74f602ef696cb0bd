"""Google Benchmark's JSON: the process is the run, repetitions are iterations, aggregates are no samples."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from steelyard.record.importers.foreign import (
    WORKLOAD,
    ForeignFile,
    ForeignRun,
    Published,
    Section,
    to_nanoseconds,
)
from steelyard.record.importers.foreign_importer import ForeignImporter
from steelyard.record.importers.harnesses.harness_values import ABSENT, NUMBERED, is_number, remark
from steelyard.record.importers.json_node import Node, read_json

if TYPE_CHECKING:
    from steelyard.record.importers.foreign import Source
    from steelyard.record.importers.reading import ReadOptions

EXPECTED: Final = (
    "Google Benchmark's JSON (`--benchmark_out=FILE --benchmark_out_format=json`): an object with `context` "
    "and `benchmarks`, each with `name`, `real_time`, `cpu_time` and `time_unit`"
)
_TIMES: Final = {"real_time": "wall", "cpu_time": "cpu"}
_DESCRIBING: Final = frozenset(
    {
        *_TIMES,
        *("name", "run_name", "run_type", "family_index", "per_family_instance_index", "repetitions"),
        *(
            "repetition_index",
            "threads",
            "iterations",
            "time_unit",
            "label",
            "aggregate_name",
            "aggregate_unit",
        ),
        *("error_occurred", "error_message", "skipped", "skip_message", "big_o", "rms", "big_o_name"),
    }
)
_RATES: Final = {"bytes_per_second": "bytes/s", "items_per_second": "items/s"}
_OLD_AGGREGATES: Final = ("_mean", "_median", "_stddev", "_cv", "_BigO", "_RMS")
_REGISTERED: Final = ("family_index", "per_family_instance_index")
"""Tell benchmarks apart that were registered under one name."""
_FACTS: Final = (
    "date",
    "host_name",
    "executable",
    "num_cpus",
    "mhz_per_cpu",
    "library_version",
    "library_build_type",
)


def read(source: Source, options: ReadOptions) -> ForeignFile:
    """Read a file.

    Raises
    ------
    DataError
        Naming the JSON path of what is wrong, or that the file holds aggregates only.
    """
    del options
    document = read_json(source)
    found = ForeignFile("json", facts={"tool": "Google Benchmark"})
    if (context := document.optional("context")) is not None:
        for name in _FACTS:
            if (fact := context.optional(name)) is not None:
                found.facts[name] = fact.shown()
    failed: Counter[str] = Counter()
    runs: dict[tuple[str, str], ForeignRun] = {}
    sections: dict[tuple[str, str], list[Section]] = {}
    counts: defaultdict[tuple[str, str], int] = defaultdict(int)
    absent = 0
    seen: defaultdict[str, dict[tuple[str, ...], None]] = defaultdict(dict)
    for entry in document.member("benchmarks").elements():
        name, aggregate = _name(entry)
        numbers = [number for each in _REGISTERED if (number := entry.optional(each)) is not None]
        known = seen[name]
        known.setdefault(which := tuple(number.shown() for number in numbers))
        if place := list(known).index(which):
            name = f"{name} ({place + 1})"
        threads = entry.optional("threads")
        key = name, "1" if threads is None else str(threads.count())
        levels = {WORKLOAD: key[0], "threads": key[1]}
        if _has_failed(entry):
            failed[name] += 1
        elif aggregate:
            found.published += _aggregates(entry, levels, aggregate)
        else:
            counts[key] += 1
            sections.setdefault(key, []).extend(_sections(entry, counts[key]))
            absent += sum(_is_absent(node) for _, node in entry.members())
            runs.setdefault(key, ForeignRun(levels, sections[key]))
    found.runs = list(runs.values())
    remark(found, NUMBERED, sum(len(known) - 1 for known in seen.values()))
    remark(found, ABSENT, absent)
    found.notes += [
        f"{count} repetitions of `{name}` failed and have no value" for name, count in failed.items()
    ]
    if not found.runs and found.published:
        text = "contains only aggregates, no repetition; run without `--benchmark_report_aggregates_only`"
        source.refuse("at `benchmarks`", text)
    if found.published:
        found.notes.append(
            f"{len(found.published)} aggregated numbers are kept as published, not taken as samples"
        )
    return found


def _name(entry: Node) -> tuple[str, str]:
    """Give the name of a benchmark, and of the aggregate the entry is; empty for a repetition."""
    name = entry.member("name").text()
    kind = entry.optional("run_type")
    if kind is None:  # before version 1.5
        ending = next((each for each in _OLD_AGGREGATES if name.endswith(each)), "")
        return name.removesuffix(ending), ending.removeprefix("_")
    run_name = entry.optional("run_name")
    label = name if run_name is None else run_name.text()
    if kind.text() == "iteration":
        return label, ""
    if kind.text() != "aggregate":
        kind.refuse("`iteration` or `aggregate`")
    aggregate = entry.optional("aggregate_name")
    return label, "aggregate" if aggregate is None else aggregate.text()


def _has_failed(entry: Node) -> bool:
    return any(
        (node := entry.optional(name)) is not None and node.value not in (False, "")
        for name in ("error_occurred", "skipped")
    )


def _is_absent(node: Node) -> bool:
    """Tell whether there is no value: the tool divides by zero, and so do counters of the user."""
    return isinstance(node.value, Decimal) and not node.value.is_finite()


def _unit(entry: Node) -> str:
    unit = entry.member("time_unit")
    if unit.text() not in ("ns", "us", "ms", "s"):
        unit.refuse("one of `ns`, `us`, `ms`, `s`")
    return unit.text()


def _sections(entry: Node, iteration: int) -> list[Section]:
    unit = _unit(entry)
    found = []
    for name, metric in _TIMES.items():
        if _is_absent(entry.member(name)):
            continue
        number = entry.member(name).duration()
        found.append(Section(metric, "ns", to_nanoseconds(number, unit), iteration, printed=str(number)))
    for name, node in entry.members():
        if name not in _DESCRIBING and is_number(node):
            number = node.number()
            unit_of = _RATES.get(name, "as counted")
            found.append(Section(name, unit_of, float(number), iteration, printed=str(number)))
    return found


def _aggregates(entry: Node, levels: dict[str, str], aggregate: str) -> list[Published]:
    is_time = (kind := entry.optional("aggregate_unit")) is None or kind.shown() == "time"
    found = []
    for name, metric in _TIMES.items():
        node = entry.optional(name)
        if node is None or aggregate in ("BigO", "RMS") or _is_absent(node):
            continue
        number = node.number()
        if is_time and aggregate != "cv":
            unit = _unit(entry)
            value, kept, printed = to_nanoseconds(number, unit), "ns", f"{number} {unit}"
        else:
            value, kept, printed = float(number), "ratio", str(number)
        found.append(Published(dict(levels), metric, aggregate, kept, value, printed))
    return found


IMPORTER: Final = ForeignImporter(
    "google-benchmark",
    "Google Benchmark's JSON: the process is the run",
    EXPECTED,
    read,
    sign=re.compile(r"^Benchmark +Time +CPU|^name,iterations,real_time,", re.MULTILINE | re.ASCII),
)
