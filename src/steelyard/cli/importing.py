"""``steelyard import``: foreign result files in."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path  # noqa: TC003 - cyclopts reads annotations at run time
from typing import Annotated

from cyclopts import Parameter

from steelyard.record.importers.interface import ImportSummary, importer


def import_results(
    form: str,
    file: Path,
    *,
    out: Path,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """Turn a foreign result file into a result folder.

    The folder can be analysed and reported like one that was executed here. Values are kept as
    printed, to the digit. A damaged file is refused with the lines that are wrong.

    Parameters
    ----------
    form
        Format of the file. `recodex`: nine columns without header (isolation, setup type, setup size,
        worker, workload, input size, iteration, metric, value in seconds), or the header
        `metric,workload,program_seconds,isolate_seconds`.
    file
        The file.
    out
        Result folder to write; must not hold another result.
    as_json
        Print the summary as JSON.

    Examples
    --------
    steelyard import recodex timings.csv --out results/recodex
    """
    summary = importer(form).import_file(file, out)
    if as_json:
        sys.stdout.write(json.dumps(asdict(summary), default=str) + "\n")
    else:
        sys.stdout.write(_text(summary))


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
