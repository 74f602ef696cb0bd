"""``steelyard import``: foreign result files in."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path  # noqa: TC003 - cyclopts reads annotations at run time
from typing import Annotated, Final

from cyclopts import Parameter

from steelyard.errors import UsageError
from steelyard.record.importers.foreign_importer import ForeignImporter
from steelyard.record.importers.interface import ImportSummary, importer
from steelyard.record.importers.reading import ReadOptions

_WITHOUT_UNIT: Final = ("csv", "plogp")


def import_results(
    form: str,
    /,
    *files: Path,
    out: Path,
    column: Annotated[tuple[str, ...], Parameter(negative="", consume_multiple=False)] = (),
    unit: str = "",
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """Turn foreign result files into a result folder.

    The folder can be analysed and reported like one that was executed here. Values are kept as
    printed, to the digit. A damaged file is refused with the place that is wrong.

    Parameters
    ----------
    form
        Format of the files: `jmh`, `hyperfine`, `google-benchmark`, `criterion`, `pyperf`,
        `pytest-benchmark`, `moobench`, `skampi`, `mpi`, `zoo`, `plogp`, `packets`,
        `csv` or `recodex`;
        `docs/guides/import.md` says what becomes a run and an iteration in each.
    files
        The files, each a block (for `steelyard history`: oldest first); for criterion also its folder.
    out
        Result folder to write; must not hold another result.
    column
        For csv, `ROLE=COLUMN`, repeated; roles: value, run, iteration, workload, phase, metric, block; any
        other role is a factor. Columns by name, or by number from 1 where there is no header.
    unit
        For csv and plogp, the unit of the values: ns, us, ms, s; for csv also any other word.
    as_json
        Print the summary as JSON.

    Examples
    --------
    steelyard import jmh jmh-result.json --out results/jmh
    steelyard import csv t.csv --column value=time --column run=pid --unit ms --out results/t
    """
    if not files:
        message = "no file is given"
        raise UsageError(message, hint=f"steelyard import {form} FILE... --out DIR")
    found = importer(form)
    if isinstance(found, ForeignImporter):
        summary = found.import_files(files, out, _options(form, column, unit))
    else:
        if len(files) > 1 or column or unit:
            message = f"the format `{form}` takes one file, and neither `--column` nor `--unit`"
            raise UsageError(message, hint=f"steelyard import {form} FILE --out DIR")
        summary = found.import_file(files[0], out)
    if as_json:
        sys.stdout.write(json.dumps(asdict(summary), default=str) + "\n")
    else:
        sys.stdout.write(_text(summary))


def _options(form: str, columns: tuple[str, ...], unit: str) -> ReadOptions:
    if (columns and form != "csv") or (unit and form not in _WITHOUT_UNIT):
        message = (
            f"`--column` is for the format `csv`, `--unit` for `csv` and `plogp`; `{form}` tells them itself"
        )
        raise UsageError(message, hint=f"steelyard import {form} FILE... --out DIR")
    mapping: dict[str, str] = {}
    for each in columns:
        role, sign, name = each.partition("=")
        if not (role and sign and name) or role in mapping:
            message = f"`--column {each}` is not of the form ROLE=COLUMN, each role once"
            raise UsageError(message, hint="e.g. --column value=time --column run=pid")
        mapping[role] = name
    return ReadOptions(mapping, unit)


def _text(summary: ImportSummary) -> str:
    missing = f", {summary.missing_cells} missing" if summary.missing_cells else ""
    content = (
        f"{summary.runs} runs with {summary.measurements} measurements in {summary.cells} cells{missing}"
    )
    lines = [
        f"{summary.result}: {content}",
        *(f"note: {note}" for note in summary.notes),
        f"next: steelyard analyse {summary.result}",
    ]
    return "\n".join(lines) + "\n"
