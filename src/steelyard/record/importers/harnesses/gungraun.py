"""gungraun's summaries (``--save-summary=json``): a process under Valgrind is a run, counts its values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.record.importers.foreign import WORKLOAD, ForeignFile, ForeignRun
from steelyard.record.importers.foreign_importer import ForeignImporter
from steelyard.record.importers.harnesses.harness_values import (
    PUBLISHED,
    facts_of,
    published,
    remark,
    section,
)
from steelyard.record.importers.json_node import Node, read_json

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.record.importers.foreign import Published, Section, Source
    from steelyard.record.importers.reading import ReadOptions

EXPECTED: Final = (
    "a summary of gungraun 0.20 (`cargo bench -- --save-summary=json`), or the folder `target/gungraun` with "
    "`summary.json` files: an object with `version`, `module_path` and `profiles`"
)
_VERSION: Final = "7"
_FIRST: Final = "Callgrind"
_PERF: Final = "Perf"
_ORDER: Final = ("Ir", "EstimatedCycles")
"""What a benchmark is about stands first; the file has the alphabet's order."""
_FACTS: Final = {"started_at": "date", "version": "summary_version", "kind": "kind"}


def summary_files(folder: Path) -> list[Path]:
    """Give the summaries below a folder, in order of their paths."""
    return sorted(folder.glob("**/summary.json"))


def read(source: Source, options: ReadOptions) -> ForeignFile:
    """Read a file.

    Raises
    ------
    DataError
        Naming the JSON path of what is wrong.
    """
    del options
    document = read_json(source)
    profiles = document.member("profiles").elements()
    path = document.member("module_path").text()
    if (version := document.member("version")).value != _VERSION:
        version.refuse(f"version `{_VERSION}` of gungraun's summaries")
    identifier = document.optional("id")
    levels = {WORKLOAD: path if identifier is None else f"{path}/{identifier.text()}"}
    found = ForeignFile("json", facts={"tool": "gungraun", **facts_of(document, _FACTS)})
    found.facts["tools"] = ", ".join(profile.member("tool").text() for profile in profiles)
    sections: list[Section] = []
    for profile in profiles:
        for name, metric in profile.member("data").member("total").member("metrics").members():
            values, published_values = _metric(profile.member("tool").text(), name, metric, levels)
            sections += values
            found.published += published_values
    sections.sort(key=lambda each: _ORDER.index(each.metric) if each.metric in _ORDER else len(_ORDER))
    found.runs.append(ForeignRun(levels, sections))
    remark(found, PUBLISHED, len(found.published))
    return found


def _metric(
    tool: str, name: str, metric: Node, levels: dict[str, str]
) -> tuple[list[Section], list[Published]]:
    """Give a count of this process; rates follow from counts, and an earlier process is not in this file."""
    label = name if tool == _FIRST else f"{tool}.{name}"
    unit = "bytes" if name.endswith("Bytes") else "as counted" if tool == _PERF else "count"
    values, kept = metric.member("values"), []
    new, old = values.optional("new"), values.optional("old")
    if name.endswith("Rate"):
        return [], [] if new is None else [published(levels, label, "rate", "%", new.duration())]
    if old is not None:
        kept.append(published(levels, label, "earlier process", unit, old.number()))
    return [] if new is None else [section(label, unit, new.number())], kept


IMPORTER: Final = ForeignImporter(
    "gungraun",
    "gungraun's summaries: a process under Valgrind is a run, counts are its values",
    EXPECTED,
    read,
    files_of=summary_files,
)
