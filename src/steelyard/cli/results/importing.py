"""``steelyard import``: foreign result files in."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path  # noqa: TC003 - cyclopts reads annotations at run time
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from steelyard.cli.catalogue.registering import OWN_CATALOGUE, CatalogueOption
from steelyard.cli.results.messages_facts import MESSAGES, NO_MESSAGES_FACTS, MessagesFacts
from steelyard.cli.results.packets_facts import NO_PACKETS_FACTS, PacketsFacts
from steelyard.cli.streams import write_lines
from steelyard.errors import UsageError
from steelyard.record.importers.foreign_importer import ForeignImporter
from steelyard.record.importers.interface import importer
from steelyard.record.importers.reading import ReadOptions
from steelyard.record.importers.table import ROWS
from steelyard.units import TIME_UNITS, format_count

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from steelyard.record.importers.interface import ImportSummary

_TABLE: Final = "csv"
_WITHOUT_UNIT: Final = (_TABLE, MESSAGES, "plogp", "hdr-histogram", "cyclictest")
_DECIMALS: Final = (".", ",")
_Text = Annotated[str, Parameter(show_default=False)]
_Repeated = Annotated[tuple[str, ...], Parameter(negative="", consume_multiple=False, show_default=False)]
BINS: Final = "latency-bins"
TOLERANCE_PERCENT: Final = 10.0
"""How much slower a service may become that still counts as isolated, as in a colocation study."""


@Parameter(name="*")
@dataclass(frozen=True)
class TableOptions:
    """How a table is read: for csv; columns and the sign of decimals also for messages.

    Parameters
    ----------
    column
        `ROLE=COLUMN`, repeated; roles: value, run, iteration, workload, phase, metric, block, exit_code; any
        other role is a factor. For messages: size, time, op, seq, repetitions, start, end, start0, end0,
        start1, end1. Columns by name, or by number from 1.
    workload
        Name of the program where no column says so, `unnamed` by default; `{file}` stands for the name of the
        file, which makes each file a program of its own.
    wide
        All columns without a role contain values, and their headings are levels of this role: workload,
        metric, run, iteration, or a factor. Empty cells are left out.
    rows
        What a row is where no column says so: `iteration` of one run (the default), `run` (a launch) or
        `block` (a result of a history).
    no_header
        The first row contains values; columns are given by number.
    decimal
        Decimal separator, `.` or `,`.
    comment
        Text at the beginning of comment lines, such as `#`; these lines are left out.
    missing
        Word that marks a missing value, such as `NA`; may be given several times. Such values
        are left out and counted.
    """

    column: _Repeated = ()
    workload: _Text = ""
    wide: _Text = ""
    rows: _Text = ""
    no_header: Annotated[bool, Parameter(negative="", show_default=False)] = False
    decimal: str = "."
    comment: _Text = ""
    missing: _Repeated = ()


_NO_TABLE: Final = TableOptions()


def import_results(  # noqa: PLR0913 - the options of a command line
    form: str,
    /,
    *files: Path,
    out: Path,
    table: TableOptions = _NO_TABLE,
    unit: _Text = "",
    jobs_start: float | None = None,
    jobs_stop: float | None = None,
    packets: PacketsFacts = NO_PACKETS_FACTS,
    recorded: MessagesFacts = NO_MESSAGES_FACTS,
    listed: CatalogueOption = OWN_CATALOGUE,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """Turn result files of other tools into a result folder.

    The folder can be analysed and reported like one that was measured here. Values are kept as
    printed, to the digit. A damaged file is refused; the error names the place of the damage.

    Parameters
    ----------
    form
        Format of the files: `jmh`, `hyperfine`, `google-benchmark`, `criterion`, `pyperf`,
        `go-bench`, `libtest`, `gungraun`, `catch2`, `nanobench`, `tinybench`, `vitest`,
        `benchmark-js`, `asv`, `benchmark-dotnet`, `julia`,
        `pytest-benchmark`, `moobench`, `messages`, `skampi`, `mpi`, `zoo`, `plogp`,
        `perf-stat`, `hdr-histogram`, `k6`, `wrk`, `autocannon`, `vegeta`, `fio`, `iperf3`, `schbench`,
        `cyclictest`, `rtla`, `osu`, `imb`, `netpipe`, `benchexec`, `stress-ng`, `sysbench`,
        `packets`, `latency-bins`, `csv` or `recodex`;
        `docs/guides/import.md` says what becomes a run and an iteration in each.
    files
        The files, each a block (for `steelyard history`: oldest first); for criterion and gungraun also a
        folder. `-` is standard input.
    out
        Result folder to write; it must not contain another result.
    table
        How a table is read.
    unit
        For csv, messages, plogp, hdr-histogram and cyclictest, the unit of the values: ns, us, ms, s; for csv
        also any other word. For messages the columns may state it.
    jobs_start
        For latency-bins, when the best-effort jobs start [s]; found in the file unless given.
    jobs_stop
        For latency-bins, when they stop [s].
    packets
        Facts that tables of the parallel packets experiments do not state.
    recorded
        Facts that recordings of messages do not state.
    listed
        Catalogue of results.
    as_json
        Print the summary as JSON.

    Examples
    --------
    steelyard import jmh jmh-result.json --out results/jmh
    steelyard import csv t.csv --column value=time --column run=pid --unit ms --out results/t
    steelyard import messages trace.csv --out results/m
    steelyard import packets speedup.csv --cores 14 --out results/p
    steelyard import csv nightly/*.csv --unit s --rows run --workload sort --out results/sort
    steelyard import csv wide.csv --wide workload --rows run --unit s --decimal , --out results/w
    """
    if not files:
        message = "no file is given"
        raise UsageError(message, hint=f"steelyard import {form} FILE... --out DIR")
    facts = FileFacts(table, unit, jobs_start, jobs_stop, packets, recorded)
    summary = import_files(form, files, out, facts)
    if as_json:
        sys.stdout.write(json.dumps(asdict(summary), default=str) + "\n")
    else:
        write_lines(_lines(summary))
    sys.stdout.flush()
    listed.refresh(summary.result)


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What files do not say and their reader does; the fields are options of `steelyard import`."""

    table: TableOptions = _NO_TABLE
    unit: str = ""
    jobs_start: float | None = None
    jobs_stop: float | None = None
    packets: PacketsFacts = NO_PACKETS_FACTS
    recorded: MessagesFacts = NO_MESSAGES_FACTS


def import_files(form: str, files: Sequence[Path], out: Path, facts: FileFacts) -> ImportSummary:
    """Turn files of a format into a result folder.

    Parameters
    ----------
    form : str
        Name of the format.
    files : sequence of Path
        At least one.
    out : Path
        Folder to write.
    facts : FileFacts
        What the files do not say.

    Raises
    ------
    DataError
        If a file is damaged; nothing is written then.
    UsageError
        If there is no such format, or a fact is not one of it.
    """
    table, unit = facts.table, facts.unit
    found = importer(form)
    if isinstance(found, ForeignImporter):
        stated = _stated(form, facts.jobs_start, facts.jobs_stop)
        options = replace(_options(form, table, unit), stated=stated)
        options = facts.recorded.added_to(form, files, facts.packets.added_to(form, options))
        return found.import_files(files, out, options)
    facts.recorded.added_to(form, files, facts.packets.added_to(form, ReadOptions()))
    several: Callable[[Sequence[Path], Path], ImportSummary] | None = getattr(found, "import_files", None)
    if (several is None and len(files) > 1) or table != _NO_TABLE or unit:
        count = "one file" if several is None else "files"
        message = f"the format `{form}` takes {count}, and no option of tables"
        raise UsageError(message, hint=f"steelyard import {form} FILE --out DIR")
    return found.import_file(files[0], out) if several is None else several(files, out)


def _options(form: str, table: TableOptions, unit: str) -> ReadOptions:
    of_table = replace(table, column=(), decimal=".") if form == MESSAGES else table
    if (of_table != _NO_TABLE and form != _TABLE) or (unit and form not in _WITHOUT_UNIT):
        message = (
            "options of tables are for the format `csv`, `--column` and `--decimal` also for `messages`, "
            "`--unit` for `csv`, `messages`, `plogp`, `hdr-histogram` and `cyclictest`; "
            f"`{form}` files state these themselves"
        )
        raise UsageError(message, hint=f"steelyard import {form} FILE... --out DIR")
    mapping: dict[str, str] = {}
    for each in table.column:
        role, sign, name = each.partition("=")
        if not (role and sign and name) or role in mapping:
            message = f"`--column {each}` is not of the form ROLE=COLUMN, each role once"
            raise UsageError(message, hint="e.g. --column value=time --column run=pid")
        mapping[role] = name
    for option, given, allowed in (("rows", table.rows, ROWS), ("decimal", table.decimal, _DECIMALS)):
        if given and given not in allowed:
            message = f"`--{option} {given}`: allowed: {', '.join(f'`{each}`' for each in allowed)}"
            raise UsageError(message)
    return ReadOptions(
        columns=mapping,
        unit=TIME_UNITS.get(unit, unit),
        workload=table.workload,
        wide=table.wide,
        rows=table.rows,
        has_header=not table.no_header,
        decimal=table.decimal,
        comment=table.comment,
        missing=table.missing,
    )


def _stated(form: str, jobs_start_s: float | None, jobs_stop_s: float | None) -> dict[str, float | str]:
    if form != BINS:
        if jobs_start_s is not None or jobs_stop_s is not None:
            message = f"`--jobs-start` and `--jobs-stop` are for the format `{BINS}`, not for `{form}`"
            raise UsageError(message, hint=f"steelyard import {form} FILE... --out DIR")
        return {}
    given = {"jobs_start_s": jobs_start_s, "jobs_stop_s": jobs_stop_s}
    stated = {name: moment for name, moment in given.items() if moment is not None}
    if not all(0 < moment < math.inf for moment in stated.values()) or (
        jobs_start_s is not None and jobs_stop_s is not None and jobs_start_s >= jobs_stop_s
    ):
        said = " and ".join(
            f"`--{name[:-2].replace('_', '-')} {moment:g}`" for name, moment in stated.items()
        )
        message = f"{said}: allowed: 0 < start < stop"
        raise UsageError(message, hint="e.g. --jobs-start 11 --jobs-stop 30")
    return {**stated, "tolerance_percent": TOLERANCE_PERCENT}


def _lines(summary: ImportSummary) -> list[str]:
    missing = f", {summary.missing_cells} missing" if summary.missing_cells else ""
    runs, cells = format_count(summary.runs, "run"), format_count(summary.cells, "cell")
    measurements = format_count(summary.measurements, "measurement")
    return [
        f"{summary.result}: {runs} with {measurements} in {cells}{missing}",
        *(f"note: {note}" for note in summary.notes),
        f"next: steelyard analyse {summary.result}",
    ]
