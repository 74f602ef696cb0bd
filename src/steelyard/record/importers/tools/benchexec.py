"""BenchExec: its results (XML, also packed by bzip2) and the CSV of `table-generator`; a run is a run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET
from xml.parsers import expat

from steelyard.record.importers.delimited import number_of, rows
from steelyard.record.importers.foreign import ForeignFile
from steelyard.record.importers.foreign_importer import ForeignImporter
from steelyard.record.importers.tools.summary import Summary, levels

if TYPE_CHECKING:
    from steelyard.record.importers.foreign import Source
    from steelyard.record.importers.reading import ReadOptions

EXPECTED: Final = (
    "a result of BenchExec (`*.results.NAME.xml`, also `.xml.bz2`), or the CSV that `table-generator` "
    "writes: lines `tool`, `run set`, and a heading with `status` and `walltime (s)`"
)
_FACTS: Final = ("date", "generator", "version", "timelimit", "memlimit", "cpuCores")
_QUANTITY: Final = re.compile(r"(-?\d[\d.]*(?:[eE][-+]?\d+)?)([A-Za-z%]*)", re.ASCII)
_HEADING: Final = re.compile(r"(.+?) \((.+)\)")
_UNITS: Final = {"s": "s", "B": "bytes", "J": "J", "Hz": "Hz", "": "count"}
_PREFIXES: Final = {"kB": 10**3, "MB": 10**6, "GB": 10**9, "KB": 10**3}
_NO_METRIC: Final = frozenset({"returnvalue", "exitcode", "exitsignal", "score"})
_ENDED: Final = re.compile(r"(TIMEOUT|OUT OF|KILLED|SEGMENTATION FAULT|ABORTED|CORE DUMPED)")
_ERROR: Final = re.compile(r"ERROR(?:.*\((\d+)\))?", re.ASCII)
_OTHER_ERROR: Final = 1
"""Exit code of a run of which is known only that it failed."""


def read(source: Source, options: ReadOptions) -> ForeignFile:
    """Read a file.

    Raises
    ------
    DataError
        Naming the line, or the run that is wrong.
    """
    del options
    content = source.content
    return _xml(source, content) if content.lstrip().startswith(b"<") else _csv(source)


def _xml(source: Source, content: bytes) -> ForeignFile:
    if b"<!ENTITY" in content:
        source.refuse("", "the XML defines entities, which no result of BenchExec does")
    try:
        document = ET.fromstring(content)  # noqa: S314 - no entities, see above
    except ET.ParseError as error:
        line, column = error.position
        source.refuse(f"line {line}, column {column}", f"not XML: {expat.ErrorString(error.code)}")
    except LookupError as error:
        source.refuse("line 1", f"not XML that can be read: {error}")
    if document.tag != "result" or "tool" not in document.attrib:
        source.refuse("line 1", f"the XML is about `{document.tag[:40]}`, not a `result` of a `tool`")
    facts = {name: document.attrib[name] for name in _FACTS if document.attrib.get(name)}
    found = ForeignFile("xml", facts={"tool": "BenchExec", **facts})
    shared = {"tool": document.attrib["tool"], "run_set": document.get("name", "").partition(".")[0]}
    shared["options"] = document.get("options", "")
    for number, run in enumerate(document.iter("run"), start=1):
        name = run.get("name") or source.refuse(f"run {number}", "the run has no name")
        summary = Summary(found, levels(name, **shared))
        columns = {each.get("title", ""): each.get("value", "") for each in run.iter("column")}
        for title, text in columns.items():
            _add(summary, title, text)
        signal = columns.get("exitsignal") or columns.get("terminationreason")
        code = columns.get("returnvalue") or columns.get("exitcode") or ""
        failed, is_ended = _failure(columns.get("status", ""))
        if failed is None and code.isdecimal() and len(code) <= 9:  # noqa: PLR2004 - 32 bits
            failed = int(code)
        summary.end(failed, is_signalled=bool(signal) or is_ended)
    return found


def _csv(source: Source) -> ForeignFile:
    found = ForeignFile("csv", facts={"tool": "BenchExec"})
    table = rows(source, "\t")
    head: list[tuple[int, list[str]]] = [row for _, row in zip(range(3), table, strict=False)]
    if len(head) < 3 or head[0][1][0] != "tool" or head[1][1][0] != "run set":  # noqa: PLR2004 - lines of a heading
        source.refuse("line 1", "the lines `tool`, `run set` and the names of columns are missing")
    (_, tools), (_, run_sets), (line, titles) = head
    width = len(titles)
    if not len(tools) == len(run_sets) == width:
        source.refuse(f"line {line}", f"{width} fields; expected as many as in the lines above it")
    first = next((place for place, title in enumerate(titles) if title == "status"), 0)
    if not first:
        source.refuse(f"line {line}", "no column `status` behind the name of the task")
    for number, row in table:
        if len(row) != width:
            source.refuse(f"line {number}", f"{len(row)} fields; expected {width}")
        starts = [place for place in range(first, width) if titles[place] == "status"]
        for start, end in zip(starts, [*starts[1:], width], strict=True):
            cell = levels(" ".join(filter(None, row[:first])), tool=tools[start], run_set=run_sets[start])
            run = Summary(found, cell)
            for place in range(start + 1, end):
                title = _HEADING.fullmatch(titles[place])
                _add(run, title[1] if title else titles[place], row[place] + (title[2] if title else ""))
            code, is_signalled = _failure(row[start])
            run.end(code, is_signalled=is_signalled)
    return found


def _add(run: Summary, title: str, text: str) -> None:
    """Add a column that is a number with its unit; others are words about the outcome."""
    matched = _QUANTITY.fullmatch(text)
    number = number_of(matched[1]) if matched else None
    if matched is None or number is None or not title or title in _NO_METRIC:
        return
    unit = matched[2]
    if unit in _PREFIXES:
        number, unit = number * _PREFIXES[unit], "B"
    run.value(title, number, _UNITS.get(unit, unit))


def _failure(status: str) -> tuple[int | None, bool]:
    """Give exit code, and whether a signal or limit ended the run, as far as a status tells."""
    if _ENDED.match(status):
        return None, True
    error = _ERROR.fullmatch(status)
    if error is None:
        return None, False
    return int(error[1] or _OTHER_ERROR), False


IMPORTER: Final = ForeignImporter(
    "benchexec",
    "results of BenchExec, XML or CSV",
    EXPECTED,
    read,
    sign=re.compile(r"<!DOCTYPE result |^tool\t", re.MULTILINE | re.ASCII),
)
