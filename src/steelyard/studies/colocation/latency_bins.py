"""Latency of a service over time, in bins or request by request, with the work of best-effort jobs beside it.

One file per policy and load.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Final

from steelyard.errors import DataError
from steelyard.record.importers.delimited import delimiter_of, require_number, split_heading, table_rows
from steelyard.record.importers.foreign import WORKLOAD, ForeignFile, ForeignRun, Section, to_nanoseconds
from steelyard.record.importers.foreign_importer import Alternatives, ForeignImporter
from steelyard.record.importers.problem_list import ProblemList
from steelyard.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from steelyard.record.importers.foreign import Source
    from steelyard.record.importers.reading import ReadOptions

STUDY: Final = "colocation"
HEADING: Final = ("time_s", "mean_ms", "p99_ms", "resize_count")
"""Columns of the source's figures."""
EXPECTED: Final = (
    f"a CSV file with the heading `{','.join(HEADING)}` and one row per bin of time, or a part of it, in any "
    "order, with `p50_ms` and the CPU time of the jobs in each bin, `jobs_cpu_ms`; or `time_s,latency_ms` "
    "and one row per request; times in s, ms, us or ns"
)

BIN_START: Final = "bin_start"
"""Metric: begin of a bin [ns]; its iterations number the bins from 1."""
MEAN: Final = "mean_latency"
P50: Final = "p50_latency"
P99: Final = "p99_latency"
WORK: Final = "best_effort_iterations"
JOBS_CPU: Final = "best_effort_cpu"
REQUEST_START: Final = "request_start"
"""Metric: when a request was due [ns]; its iterations number the requests from 1."""
LATENCY: Final = "latency"
JOBS_START: Final = "jobs_start"
JOBS_STOP: Final = "jobs_stop"
"""Metrics: when the jobs of a file start and stop [ns], one value each."""

COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    BIN_START: ("time", "t", "timestamp", "start", "elapsed", "bin"),
    MEAN: ("mean", "meanlatency", "latencymean", "avg", "average", "avglatency"),
    P50: ("p50", "median", "p50latency", "latencyp50", "medianlatency"),
    P99: ("p99", "p99latency", "latencyp99"),
    LATENCY: ("latency", "responsetime"),
    WORK: ("resizecount", "iterations", "jobiterations", "jobsiterations", "work", "jobsdone"),
    JOBS_CPU: ("jobscpu", "jobcpu", "becpu", "besteffortcpu"),
}
"""Plain names of the column of each metric; the first is that of the texts."""
EPOCH_NS: Final = 1e14
"""Times from here on are those of a calendar: they count from the first row."""

UNSTATED: Final = "data.unstated"
NOT_STATED: Final = "unknown load"
ALONE: Final = "none"
SOURCE_POLICIES: Final = {
    "unedited": "weights",
    "idle": "idle",
    "schedidle": "idle",
    "schedbe": "be",
    "rt": "fifo",
    "weights": "weights",
    "be": "be",
    "fifo": "fifo",
    "alone": ALONE,
}
"""Policy by the word that the files of the source's figures have in their names, or its own name."""
NO_JOBS: Final = frozenset((ALONE, "alone", "baseline", "no-jobs"))
"""Names of a service without jobs."""

SOURCE_LOADS: Final = {"low": "85", "high": "95", "overload": "100"}
"""Load [percent] by the same."""

SOURCE_NAME: Final = re.compile(
    rf"(?P<figure>srv-bg|overload|kubernetes)-(?P<policy>{'|'.join(SOURCE_POLICIES)})"
    rf"(-(?P<load>{'|'.join(SOURCE_LOADS)}))?"
)
PARKED_NAME: Final = "parked-kubernetes"
"""Figure of a job of the class beside an antagonist, without latencies."""

SOURCE_JOBS_S: Final = dict.fromkeys(("srv-bg", "overload"), (11.0, 30.0))
"""SOURCE: when the background tasks of the microbenchmark start, and when its client stops; of the
experiments with Kubernetes the text does not say it."""

NO_REQUESTS: Final = (
    "the files hold bins of time but no requests: all bins count equally; the p50 of a phase is the median "
    "of its bins' p50, or of their means without one, and its p99 the mean of its bins' p99"
)


@dataclass(frozen=True, slots=True)
class _Column:
    """A column that is read: its heading, its place, and the unit of its times, empty for counts."""

    heading: str
    place: int
    unit: str


_Columns = dict[str, _Column]


def read(source: Source, options: ReadOptions) -> ForeignFile:
    """Read a file.

    Raises
    ------
    DataError
        Listing the first 20 lines that are wrong, or if neither file nor options say when the jobs run.
    """
    (_, heading), *rows = table_rows(source, delimiter_of(source.text().partition("\n")[0]))
    columns, notes = _columns(source, heading)
    is_raw = LATENCY in columns
    lines = _lines(source, columns, len(heading), rows)
    levels = _levels(source.path.stem)
    sections = [section for line in lines for section in line]
    if sections and levels["policy"] != ALONE:
        moments, found = _moments(source, lines, options)
        sections += [Section(metric, "ns", moment, 1) for metric, moment in moments.items()]
        notes += found
    form, told = ("latencies", _unanswered(lines)) if is_raw else ("latency bins", [NO_REQUESTS])
    return ForeignFile(form, [ForeignRun(levels, sections)], facts={"tool": form}, notes=[*told, *notes])


def _unanswered(lines: Sequence[Sequence[Section]]) -> list[str]:
    count = sum(all(each.metric != LATENCY for each in line) for line in lines)
    if not count:
        return []
    return [f"{count} of {len(lines)} requests have no latency: they count as never answered"]


def _columns(source: Source, heading: Sequence[str]) -> tuple[_Columns, list[str]]:
    """Give the column of each metric, and what to note of the others."""
    known = {name: metric for metric, names in COLUMNS.items() for name in names}
    found: _Columns = {}
    ignored = []
    for place, text in enumerate(heading):
        name, unit = split_heading(text)
        metric = known.get(name)
        if metric is None:
            ignored.append(f"`{text[:40]}`")
        elif metric in found:
            both = f"`{found[metric].heading[:40]}` and `{text[:40]}`"
            source.refuse("line 1", f"cannot choose between {both}: they are the same quantity")
        elif not unit and metric != WORK:
            source.refuse("line 1", f"`{text[:40]}` states no unit: write it as in `{text[:40]}_ms`")
        else:
            found[metric] = _Column(text, place, unit)
    is_series = BIN_START in found and found.keys() & {MEAN, P99, WORK}
    is_raw = found.keys() == {BIN_START, LATENCY}
    if not (is_series or is_raw) or (is_series and LATENCY in found):
        source.refuse("line 1", f"the heading is `{','.join(heading)[:80]}`")
    begin = {REQUEST_START if is_raw else BIN_START: found.pop(BIN_START)}
    return begin | found, [f"columns that are not read: {', '.join(ignored)}"] if ignored else []


def _lines(
    source: Source, columns: _Columns, width: int, rows: Sequence[tuple[int, list[str]]]
) -> list[list[Section]]:
    """Give what each row holds: a bin without a request has no latency, one without a count no work."""
    problems = ProblemList(source.path, EXPECTED)
    lines: list[list[Section]] = []
    before: Section | None = None
    begin_ns = 0.0
    for number, (line, row) in enumerate(rows, start=1):
        if len(row) != width:
            problems.add(line, f"{len(row)} fields; expected {width}")
            continue
        made = [
            Section(metric, "ns" if column.unit else "count", amount, number, printed=row[column.place])
            for metric, column in columns.items()
            if (amount := _amount(problems, line, row[column.place], column)) is not None
        ]
        start = next((each for each in made if each.metric in {BIN_START, REQUEST_START}), None)
        if start is None:
            problems.add(line, "the time is missing")
            continue
        if before is None and start.value >= EPOCH_NS:
            begin_ns = start.value
        elif before is not None and start.metric == BIN_START and start.value <= before.value:
            text = f"{columns[BIN_START].heading} is `{start.printed}` after `{before.printed}`"
            problems.add(line, f"{text}; expected ascending times")
        before = start
        lines.append(
            [replace(start, value=start.value - begin_ns), *(each for each in made if each is not start)]
        )
    problems.raise_if_any()
    if begin_ns and REQUEST_START in columns:
        # A log may hold requests in the order in which they ended.
        early_ns = min(line[0].value for line in lines)
        lines = [[replace(first, value=first.value - early_ns), *rest] for first, *rest in lines]
    return lines


def _amount(problems: ProblemList, line: int, text: str, column: _Column) -> float | None:
    """Give a number of a column, in ns or as a count; nothing for an empty field."""
    value = require_number(problems, line, column.heading, text) if text else None
    if value is None:
        return None
    return to_nanoseconds(value, column.unit) if column.unit else float(value)


def _moments(
    source: Source, lines: Sequence[Sequence[Section]], options: ReadOptions
) -> tuple[dict[str, float], list[str]]:
    """Give when the jobs start and stop [ns], and what to note of where that is known from.

    What is stated counts first, then what the source's text says of its microbenchmark, then the bins in
    which iterations of the jobs end.
    """
    stated = [options.stated.get(f"jobs_{which}_s") for which in ("start", "stop")]
    figure = SOURCE_NAME.fullmatch(source.path.stem)
    told: tuple[float | None, ...] = SOURCE_JOBS_S.get(figure["figure"] if figure else "", (None, None))
    worked = [line[0].value for line in lines if any(each.metric == WORK and each.value for each in line)]
    steps = [later[0].value - line[0].value for line, later in pairwise(lines)]
    seen = (worked[0], worked[-1] + median(steps)) if worked and steps else (None, None)
    moments, notes = {}, []
    for metric, by_hand, by_text, by_work in zip((JOBS_START, JOBS_STOP), stated, told, seen, strict=True):
        known_s = by_hand if by_hand is not None else by_text
        if known_s is not None:
            moments[metric] = NS_PER_S * float(known_s)
        elif by_work is not None:
            moments[metric] = by_work
        else:
            message = f"`{source.path}` does not say when the jobs start and stop"
            raise DataError(message, hint="state it, as in `--jobs-start 11 --jobs-stop 30`", code=UNSTATED)
    if moments[JOBS_START] >= moments[JOBS_STOP]:
        begin, end = (f"{moment / NS_PER_S:g}" for moment in moments.values())
        source.refuse("", f"the jobs start at {begin} s and stop at {end} s; state both moments")
    if None in {*stated} and told == (None, None):
        begin, end = (f"{moment / NS_PER_S:g}" for moment in moments.values())
        notes.append(
            f"the jobs are taken to run from {begin} s to {end} s, where iterations of theirs end; "
            "`--jobs-start` and `--jobs-stop` state it otherwise"
        )
    return moments, notes


def _levels(name: str) -> dict[str, str]:
    """Give policy and load: those that a name of the source's files tells, else the name itself.

    A load that is not stated is the name of the experiment, so that only policies of one are compared.

    Examples
    --------
    >>> [_levels(name)["policy"] for name in ("srv-bg-unedited-low", "overload-rt", "my-service", "alone")]
    ['weights', 'fifo', 'my-service', 'none']
    >>> [_levels(name)["load"] for name in ("srv-bg-unedited-low", "overload-rt", "kubernetes-rt")]
    ['85', '100', 'kubernetes']
    """
    if name == PARKED_NAME:
        return {WORKLOAD: "service", "policy": SOURCE_POLICIES["schedbe"], "load": name}
    known = SOURCE_NAME.fullmatch(name)
    if known is None:
        policy = ALONE if name in NO_JOBS else name
        return {WORKLOAD: "service", "policy": policy, "load": NOT_STATED}
    figure, load = known["figure"], known["load"]
    stated = SOURCE_LOADS.get(load or figure, figure)
    return {WORKLOAD: "service", "policy": SOURCE_POLICIES[known["policy"]], "load": stated}


IMPORTER: Final = ForeignImporter(
    "latency-bins",
    "latency of a service over time, with the best-effort work beside it",
    EXPECTED,
    read,
    Alternatives.NONE,
    study=STUDY,
    sign=re.compile(r"\Atime\w*[,;\t](.*[,;\t])?(mean|p50|p99|latency)_?[mun]?s\b", re.ASCII),
)
