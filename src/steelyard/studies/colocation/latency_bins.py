"""Latency of a service in bins of time, with the best-effort work beside it: one file per policy and load."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from steelyard.record.importers.delimited import headed_rows, require_number
from steelyard.record.importers.foreign import WORKLOAD, ForeignFile, ForeignRun, Section, to_nanoseconds
from steelyard.record.importers.foreign_importer import Alternatives, ForeignImporter
from steelyard.record.importers.problem_list import ProblemList

if TYPE_CHECKING:
    from decimal import Decimal

    from steelyard.record.importers.foreign import Source
    from steelyard.record.importers.reading import ReadOptions

STUDY: Final = "colocation"
HEADING: Final = ("time_s", "mean_ms", "p99_ms", "resize_count")
EXPECTED: Final = f"a CSV file with the heading `{','.join(HEADING)}`, one row per bin of time"

BIN_START: Final = "bin_start"
"""Metric: begin of a bin [ns]; its iterations number the bins from 1."""
MEAN: Final = "mean_latency"
P99: Final = "p99_latency"
WORK: Final = "best_effort_iterations"

NOT_STATED: Final = "not stated"
SOURCE_POLICIES: Final = {"unedited": "weights", "idle": "idle", "schedbe": "be", "rt": "fifo"}
"""Policy by the word that the files of the source's figures have in their names."""

SOURCE_LOADS: Final = {"low": "85", "high": "95", "overload": "100"}
"""Load [percent] by the same."""

SOURCE_NAME: Final = re.compile(
    rf"(?P<figure>srv-bg|overload|kubernetes)-(?P<policy>{'|'.join(SOURCE_POLICIES)})(-(?P<load>low|high))?"
)
PARKED_NAME: Final = "parked-kubernetes"
"""Figure of a job of the class beside an antagonist, without latencies."""

NO_REQUESTS: Final = (
    "the files hold a mean and a 99th percentile per bin but no requests: all bins count equally, and the "
    "percentiles of a phase are those of its bins"
)


def read(source: Source, options: ReadOptions) -> ForeignFile:
    """Read a file.

    Raises
    ------
    DataError
        Listing the first 20 lines that are wrong.
    """
    del options
    _, lines = headed_rows(source, ",", (HEADING,))
    problems = ProblemList(source.path, EXPECTED)
    sections: list[Section] = []
    before: Decimal | None = None
    for number, (line, row) in enumerate(lines, start=1):
        if len(row) != len(HEADING):
            problems.add(line, f"{len(row)} fields; expected {len(HEADING)}")
            continue
        start = require_number(problems, line, HEADING[0], row[0])
        if start is not None and before is not None and start <= before:
            problems.add(line, f"{HEADING[0]} is `{row[0]}` after `{before}`; expected ascending times")
        before = start if start is not None else before
        sections += _sections(problems, line, row, number)
    problems.raise_if_any()
    run = ForeignRun(_levels(source.path.stem), sections)
    return ForeignFile("latency bins", [run], facts={"tool": "latency bins"}, notes=[NO_REQUESTS])


def _sections(problems: ProblemList, line: int, row: list[str], number: int) -> list[Section]:
    """Give what a row holds; a bin without a request has no latency, one without a count no work."""
    kinds = ((BIN_START, "s"), (MEAN, "ms"), (P99, "ms"), (WORK, ""))
    made = []
    for name, text, (metric, unit) in zip(HEADING, row, kinds, strict=True):
        if not text:
            continue
        value = require_number(problems, line, name, text)
        if value is None:
            continue
        amount, of = (to_nanoseconds(value, unit), "ns") if unit else (float(value), "count")
        made.append(Section(metric, of, amount, number, printed=text))
    return made


def _levels(name: str) -> dict[str, str]:
    """Give policy and load: those that a name of the source's files tells, else the name itself.

    A load that is not stated is the name of the experiment, so that only policies of one are compared.

    Examples
    --------
    >>> [_levels(name)["policy"] for name in ("srv-bg-unedited-low", "overload-rt", "my-service")]
    ['weights', 'fifo', 'my-service']
    >>> [_levels(name)["load"] for name in ("srv-bg-unedited-low", "overload-rt", "kubernetes-rt")]
    ['85', '100', 'kubernetes']
    """
    if name == PARKED_NAME:
        return {WORKLOAD: "service", "policy": SOURCE_POLICIES["schedbe"], "load": name}
    known = SOURCE_NAME.fullmatch(name)
    if known is None:
        return {WORKLOAD: "service", "policy": name, "load": NOT_STATED}
    figure, load = known["figure"], known["load"]
    stated = SOURCE_LOADS.get(load or figure, NOT_STATED if figure == "srv-bg" else figure)
    return {WORKLOAD: "service", "policy": SOURCE_POLICIES[known["policy"]], "load": stated}


IMPORTER: Final = ForeignImporter(
    "latency-bins",
    "latency of a service in bins of time, with the best-effort work beside it",
    EXPECTED,
    read,
    Alternatives.NONE,
    study=STUDY,
)
