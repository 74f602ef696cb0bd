"""Catch2's XML reporter: the process is the run, with the mean of each benchmark, which is all it prints."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Final, NoReturn
from xml.parsers import expat

from steelyard.record.importers.foreign import WORKLOAD, ForeignFile, ForeignRun, is_plausible
from steelyard.record.importers.foreign_importer import ForeignImporter
from steelyard.record.importers.harnesses.harness_values import (
    FAILED,
    MEANS,
    PUBLISHED,
    published,
    remark,
    section,
)

if TYPE_CHECKING:
    from steelyard.record.importers.foreign import Section, Source
    from steelyard.record.importers.reading import ReadOptions

EXPECTED: Final = (
    "Catch2's XML (`./tests -r xml`): `Catch2TestRun` or `Catch` with `BenchmarkResults`, each with `mean`; "
    "its JSON reporter writes no benchmarks"
)
MEAN: Final = "mean_time"
_ROOTS: Final = ("Catch2TestRun", "Catch")
_STATISTICS: Final = {"mean": "mean", "standardDeviation": "standard deviation"}
_FACTS: Final = {"catch2-version": "tool_version", "rng-seed": "seed", "name": "program"}


@dataclass(slots=True)
class _Reader:
    """What has been read so far, and the names of the elements that are open."""

    source: Source
    found: ForeignFile
    parser: expat.XMLParserType = field(default_factory=expat.ParserCreate)
    names: list[str] = field(default_factory=list)
    depth: int = 0
    values: dict[str, list[Section]] = field(default_factory=dict)
    means: int = 0
    failed: int = 0

    def read(self) -> None:
        """Read the whole file."""
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.StartDoctypeDeclHandler = self.doctype
        try:
            self.parser.Parse(self.source.content, True)  # noqa: FBT003 - takes no keyword
        except expat.ExpatError as error:
            place = f"line {error.lineno}, column {error.offset + 1}"
            self.source.refuse(place, f"not XML: {expat.ErrorString(error.code)}")
        except (ValueError, LookupError) as error:
            self.refuse(f"not XML that can be read: {error}")

    def refuse(self, text: str) -> NoReturn:
        """Raise the error for what is wrong where the parser is."""
        self.source.refuse(f"line {self.parser.CurrentLineNumber}", text)

    def doctype(self, *_: object) -> None:
        """Refuse a declaration: the reporter writes none, and entities could grow without limit."""
        self.refuse("a document type is declared")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Begin an element."""
        if self.depth == 0:
            if tag not in _ROOTS:
                self.refuse(f"`{tag}` is not `{'` or `'.join(_ROOTS)}`")
            facts = {name: attributes[key] for key, name in _FACTS.items() if attributes.get(key)}
            self.found.facts |= facts
        self.depth += 1
        if tag in ("TestCase", "Section", "BenchmarkResults"):
            name = attributes.get("name", "").strip()
            if not name:
                self.refuse(f"`{tag}` has no `name`")
            self.names.append(name)
        elif self.names and tag == "failed":
            self.failed += 1
        elif self.names and tag in _STATISTICS and "lowerBound" in attributes:
            self.statistic(tag, attributes)

    def end(self, tag: str) -> None:
        """End an element."""
        self.depth -= 1
        if tag in ("TestCase", "Section", "BenchmarkResults"):
            self.names.pop()

    def statistic(self, tag: str, attributes: dict[str, str]) -> None:
        """Take a mean as the value of the process, and all else as published."""
        levels = {WORKLOAD: "/".join(self.names)}
        name = _STATISTICS[tag]
        value, low, high = (self.number(attributes, each) for each in ("value", "lowerBound", "upperBound"))
        if tag == "mean":
            if levels[WORKLOAD] not in self.values:
                sections = self.values[levels[WORKLOAD]] = []
                self.found.runs.append(ForeignRun(levels, sections))
            sections = self.values[levels[WORKLOAD]]
            sections.append(section(MEAN, "ns", value, len(sections) + 1))
            self.means += 1
        else:
            self.found.published.append(published(levels, "time", name, "ns", value))
        share = attributes.get("ci", "")
        for bound, number in (("lower", low), ("upper", high)):
            label = f"{name}, {bound} bound{f' ({share})' if share else ''}"
            self.found.published.append(published(levels, "time", label, "ns", number))

    def number(self, attributes: dict[str, str], name: str) -> Decimal:
        """Give the number of an attribute."""
        text = attributes.get(name, "")
        try:
            number = Decimal(text)
        except InvalidOperation:
            self.refuse(f"`{name}` is `{text}`; expected a number")
        if not is_plausible(number) or number < 0:
            self.refuse(f"`{name}` is `{text}`; expected a time from 0")
        return number


def read(source: Source, options: ReadOptions) -> ForeignFile:
    """Read a file.

    Raises
    ------
    DataError
        Naming the line of what is wrong.
    """
    del options
    reader = _Reader(source, ForeignFile("xml", facts={"tool": "Catch2"}))
    reader.read()
    remark(reader.found, MEANS, reader.means)
    again = sum(len(sections) > 1 for sections in reader.values.values())
    remark(reader.found, "benchmarks that ran for several sections or generated values, kept together", again)
    remark(reader.found, FAILED, reader.failed)
    remark(reader.found, PUBLISHED, len(reader.found.published))
    return reader.found


IMPORTER: Final = ForeignImporter(
    "catch2",
    "Catch2's XML: the process is the run, with a mean of each benchmark",
    EXPECTED,
    read,
    sign=re.compile(r"<Catch|^benchmark name +samples", re.MULTILINE | re.ASCII),
)
