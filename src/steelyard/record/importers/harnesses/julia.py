"""Julia's BenchmarkTools (``BenchmarkTools.save``): a trial is a run, each sample an iteration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.record.importers.foreign import WORKLOAD, ForeignFile, ForeignRun
from steelyard.record.importers.foreign_importer import ForeignImporter
from steelyard.record.importers.harnesses.harness_values import remark, section
from steelyard.record.importers.json_node import Node, read_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.record.importers.foreign import Source
    from steelyard.record.importers.reading import ReadOptions

EXPECTED: Final = (
    "JSON of Julia's BenchmarkTools (`BenchmarkTools.save(FILE, results)`): a list of versions and values, "
    "which are a `Trial` or a `BenchmarkGroup` of trials"
)
_OTHERS: Final = ("TrialEstimate", "TrialRatio", "TrialJudgement", "Parameters", "TagFilter")
_LEFT_OUT: Final = "estimates, ratios and parameters, left out because only trials contain samples"


def read(source: Source, options: ReadOptions) -> ForeignFile:
    """Read a file.

    Raises
    ------
    DataError
        Naming the JSON path of what is wrong.
    """
    del options
    document = read_json(source)
    versions, values = _pair(document, "a pair of versions and values")
    found = ForeignFile("json", facts={"tool": "BenchmarkTools"})
    julia, package = versions.member("Julia"), versions.member("BenchmarkTools")
    found.facts |= {"tool_version": _version(package), "julia": _version(julia)}
    left_out = 0
    several = len(saved := values.elements()) > 1
    for place, value in enumerate(saved, start=1):
        start = f"{source.path.stem}-{place}" if several else source.path.stem
        for name, trial in _trials(value, ()):
            if trial is None:
                left_out += 1
            else:
                keys = (start, *name) if several or not name else name
                found.runs.append(_run("/".join(keys), trial))
    remark(found, _LEFT_OUT, left_out)
    return found


def _pair(node: Node, expected: str) -> tuple[Node, Node]:
    parts = node.elements()
    if len(parts) != 2:  # noqa: PLR2004 - a pair
        node.refuse(expected)
    return parts[0], parts[1]


def _version(node: Node) -> str:
    """Give a version, which old packages write as an object of its numbers."""
    if not isinstance(node.value, dict):
        return node.shown()
    return ".".join(node.member(part).shown() for part in ("major", "minor", "patch"))


def _trials(node: Node, keys: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Node | None]]:
    """Give the trials below a value with their keys, and nothing in place of what is no trial."""
    kind, content = _pair(node, "a pair of a type and its fields")
    name = kind.text().removeprefix("BenchmarkTools.")
    if name == "BenchmarkGroup":
        for key, member in content.member("data").members():
            yield from _trials(member, (*keys, key))
    elif name == "Trial":
        yield keys, content
    elif name in _OTHERS:
        yield keys, None
    else:
        kind.refuse("`Trial` or `BenchmarkGroup`")


def _run(name: str, trial: Node) -> ForeignRun:
    times, collections = trial.member("times").elements(), trial.member("gctimes")
    collecting = collections.elements()
    if len(collecting) != len(times):
        collections.refuse(f"a list of {len(times)} entries, one per entry of `times`")
    sections = []
    for iteration, (time, collection) in enumerate(zip(times, collecting, strict=True), start=1):
        sections.append(section("time", "ns", time.duration(), iteration))
        sections.append(section("gc_time", "ns", collection.duration(), iteration))
    if sections:
        sections.append(section("allocated", "bytes", trial.member("memory").duration()))
        sections.append(section("allocations", "count", trial.member("allocs").duration()))
    return ForeignRun({WORKLOAD: name}, sections)


IMPORTER: Final = ForeignImporter(
    "julia", "Julia's BenchmarkTools: a trial is a run, each sample an iteration", EXPECTED, read
)
