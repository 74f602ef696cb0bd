"""What a tool says about a run as a whole: totals, statistics that it computed itself, histograms.

The rule of all importers beside this file: what exists once a run or once an interval (a count, a rate, a
time, an amount) is a measurement. A statistic over what happened inside (a mean, a quantile, a largest
latency) is published: it keeps the name of its metric, and is never a sample of that metric. The statistics
that people compare runs by are also a metric of the run, one value each, with a name of its own
(``latency_p99``).

A histogram has counts of values, which the tables of measurements cannot hold, and the values themselves are
lost. It gives bounds of quantiles, published as ``p99 at least`` and ``p99 at most``; the metric of the run
is the upper one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from steelyard.record.importers.delimited import number_of
from steelyard.record.importers.foreign import (
    DECIMAL_EXPONENTS,
    MEASURE,
    WORKLOAD,
    ForeignFile,
    ForeignRun,
    Published,
    Section,
    to_nanoseconds,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from steelyard.record.importers.foreign import Source
    from steelyard.record.importers.json_node import Node

OF_A_RUN: Final = frozenset({"mean", "max", "p50", "p90", "p95", "p99", "p99.9"})
"""Statistics that are also a metric of the run."""
NOTE: Final = (
    "statistics that the tool computed inside a run are published numbers; as a metric (`..._p99`) they are "
    "one value a run, not samples"
)
BOUNDS_NOTE: Final = (
    "histograms have no single values: their quantiles are published as bounds (`at least`, `at most`), and "
    "the metric of the run is the upper one"
)
AS_RECORDED: Final = "as recorded"
"""Unit of values whose file does not tell it."""
_QUANTILES: Final = tuple(Decimal(text) for text in ("50", "90", "95", "99", "99.9", "99.99"))
_TIMES: Final = {
    "usec": "us",
    "msec": "ms",
    "nsec": "ns",
    "sec": "s",
    "\u00b5s": "us",
    "\u03bcs": "us",
    "m": "min",
}
_LONG_TIMES: Final = {"min": 60, "h": 3600}
_BYTES: Final = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_QUANTITY: Final = re.compile(r"([-+]?(?:\d[\d.]*)(?:[eE][-+]?\d+)?)\s?([^\s\d]*)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Bin:
    """Some values of a histogram.

    Parameters
    ----------
    low, high : Decimal
        Every value is at least `low` and at most `high`.
    count : int
        How many there are.
    is_open : bool
        Whether it holds all that lay beyond the last bin: `high` is the largest value then, which bounds a
        quantile and does not stand for it.
    """

    low: Decimal
    high: Decimal
    count: int
    is_open: bool = False


@dataclass(slots=True)
class Summary:
    """One run, or one worker of it, as its tool sums it up.

    Parameters
    ----------
    found : ForeignFile
        Where its numbers go.
    levels : dict
        Cell of the run.
    worker : str
        Name of its worker in the file; empty where there is one.
    sections : list of Section
        Measurements so far.
    """

    found: ForeignFile
    levels: dict[str, str]
    worker: str = ""
    sections: list[Section] = field(default_factory=list)

    def value(
        self,
        metric: str,
        number: Decimal,
        unit: str,
        iteration: int = 1,
        phase: str = MEASURE,
        printed: str | None = None,
    ) -> None:
        """Add a measurement; a time is given in any of the units of `DECIMAL_EXPONENTS`."""
        exact, kept = _kept(number, unit)
        self.sections.append(Section(metric, kept, exact, iteration, phase, printed or str(number)))

    def statistic(
        self,
        metric: str,
        statistic: str,
        number: Decimal,
        unit: str,
        printed: str | None = None,
        compared: Collection[str] = OF_A_RUN,
    ) -> None:
        """Add a number that the tool computed inside the run; one in `compared` is a metric too."""
        exact, kept = _kept(number, unit)
        # The table of published numbers has no worker.
        name = f"{statistic} of {self.worker}" if self.worker else statistic
        text = printed or f"{number} {unit}".strip()
        self.found.published.append(Published(self.levels, metric, name, kept, exact, text))
        if statistic in compared:
            self.value(f"{metric}_{statistic}", number, unit, printed=printed)
            note(self.found, NOTE)

    def statistics(
        self,
        metric: str,
        node: Node,
        names: Mapping[str, str],
        unit: str,
        compared: Collection[str] = OF_A_RUN,
    ) -> None:
        """Add those members of a JSON object that are there, under their statistical names."""
        for member, statistic in names.items():
            if (number := node.optional(member)) is not None:
                self.statistic(metric, statistic, number.number(), unit, compared=compared)

    def histogram(self, metric: str, bins: Iterable[Bin], unit: str) -> None:
        """Publish the bounds of those quantiles that at least one value lies beyond.

        Upper bounds are metrics of the run too, where the tool has not stated the quantile itself.

        Parameters
        ----------
        metric : str
            What was counted.
        bins : iterable of Bin
            In ascending order.
        unit : str
            Of the bounds.
        """
        held = [each for each in bins if each.count]
        total = sum(each.count for each in held)
        wanted = [each for each in _QUANTILES if total * (1 - each / 100) >= 1]
        stated = {each.metric for each in self.sections}
        passed = 0
        for each in held:
            passed += each.count
            while wanted and passed * 100 >= total * wanted[0]:
                name = percentile(wanted.pop(0))
                self.statistic(metric, f"{name} at least", each.low, unit)
                self.statistic(metric, f"{name} at most", each.high, unit)
                if name in OF_A_RUN and f"{metric}_{name}" not in stated and not each.is_open:
                    self.value(f"{metric}_{name}", each.high, unit)
        if held:
            note(self.found, BOUNDS_NOTE)

    def end(self, exit_code: int | None = None, *, is_signalled: bool = False) -> None:
        """Add the run to the file; one without a value is none."""
        self.found.runs.append(
            ForeignRun(self.levels, self.sections, self.worker, exit_code, is_signalled=is_signalled)
        )


def levels(workload: str, /, **factors: str) -> dict[str, str]:
    """Give the cell of a run; a workload or factor without a text has none."""
    return {WORKLOAD: workload or "unnamed", **{name: level for name, level in factors.items() if level}}


def percentile(number: Decimal) -> str:
    """Give the name of a percentile.

    Examples
    --------
    >>> percentile(Decimal("99.000")), percentile(Decimal("99.90")), percentile(Decimal("50"))
    ('p99', 'p99.9', 'p50')
    """
    return f"p{number.normalize():f}"


def quantity(source: Source, line: int, text: str) -> tuple[Decimal, str]:
    """Give number and unit of a text such as ``1.12ms``, ``6.35MB`` or ``12.28k``.

    Minutes and hours become seconds. Bytes and counts with a prefix become bytes and counts: the prefix is a
    power of 1024 before a ``B`` and of 1000 otherwise, as wrk has it.

    Raises
    ------
    DataError
        If the text is another.
    """
    matched = _QUANTITY.fullmatch(text)
    number = number_of(matched[1]) if matched else None
    if matched is None or number is None:
        source.refuse(f"line {line}", f"`{text[:40]}` should be a number with its unit")
    unit = _TIMES.get(matched[2], matched[2])
    if unit in DECIMAL_EXPONENTS:
        return number, unit
    if unit in _LONG_TIMES:
        return number * _LONG_TIMES[unit], "s"
    is_bytes = unit.endswith("B")
    power = _BYTES.get(unit.removesuffix("B").removesuffix("i").lower())
    if power is None:
        return number, unit
    return number * (1024 if is_bytes else 1000) ** power, "bytes" if is_bytes else ""


def number_at(source: Source, line: int, text: str) -> Decimal:
    """Give a finite number.

    Raises
    ------
    DataError
        Naming the line.
    """
    number = number_of(text)
    if number is None:
        source.refuse(f"line {line}", f"`{text[:40]}` should be a number")
    return number


def count_at(source: Source, line: int, text: str) -> int:
    """Give a whole number from 0.

    Raises
    ------
    DataError
        Naming the line.
    """
    if not (text.isascii() and text.isdecimal() and len(text) <= 19):  # noqa: PLR2004 - digits of 64 bits
        source.refuse(f"line {line}", f"`{text[:40]}` should be a whole number from 0")
    return int(text)


def note(found: ForeignFile, text: str) -> None:
    """Add a remark once."""
    if text not in found.notes:
        found.notes.append(text)


def note_counts(found: ForeignFile, counts: Mapping[str, int]) -> None:
    """Add a remark for everything that was left out, with how often."""
    found.notes += [f"{text}, left out: {count}" for text, count in counts.items() if count]


def numbered_lines(source: Source) -> list[tuple[int, str]]:
    """Give the lines that are not blank, without the blanks behind them, with their numbers from 1."""
    lines = source.text().splitlines()
    return [(number, line.rstrip()) for number, line in enumerate(lines, start=1) if line.strip()]


def require_line(source: Source, lines: Sequence[tuple[int, str]], pattern: re.Pattern[str]) -> re.Match[str]:
    """Give the first line of a form, by which a format is recognised.

    Raises
    ------
    DataError
        If there is none.
    """
    matched = next((found for _, line in lines if (found := pattern.match(line)) is not None), None)
    if matched is None:
        source.refuse("line 1", "not of this format: the line by which it is recognised is missing")
    return matched


def _kept(number: Decimal, unit: str) -> tuple[float, str]:
    if unit in DECIMAL_EXPONENTS:
        return to_nanoseconds(number, unit), "ns"
    return float(number), unit or "count"
