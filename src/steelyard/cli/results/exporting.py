"""``steelyard export``: measurements out as CSV."""

from __future__ import annotations

import json
import sys
from pathlib import Path  # noqa: TC003 - cyclopts reads annotations at run time
from typing import Annotated

from cyclopts import Parameter

from steelyard.errors import UsageError, unwritable
from steelyard.studies.stability.export_csv import CsvFormat, export_csv


def export_results(
    result: Path,
    *,
    form: Annotated[CsvFormat, Parameter(name="--format")] = CsvFormat.CSV,
    out: Path | None = None,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """Write the measurements of a result folder as CSV.

    Parameters
    ----------
    result
        Result folder.
    form
        `csv`: one row per measurement, with header and every factor. `recodex`: the nine columns
        of the ReCodEx evaluation, without header, in seconds.
    out
        File to write; standard output by default.
    as_json
        Print number of rows and file as JSON; needs `--out`.

    Examples
    --------
    steelyard export results/quick --format recodex --out timings.csv
    """
    if out is None and as_json:
        message = "`--json` needs `--out`: standard output is taken by the CSV"
        raise UsageError(message, hint="steelyard export RESULT --out FILE --json", code="usage.export")
    if out is None:
        export_csv(result, form, sys.stdout)
        return
    temporary = out.with_name(f".{out.name}.tmp")
    try:
        with temporary.open("w", encoding="utf-8", newline="") as file:
            rows = export_csv(result, form, file)
        temporary.replace(out)
    except OSError as error:
        raise unwritable(out, error, "give a file in a folder you may write to with --out") from error
    finally:
        if temporary.exists():
            temporary.unlink()
    if as_json:
        sys.stdout.write(json.dumps({"file": str(out), "rows": rows, "format": form.value}) + "\n")
    else:
        sys.stderr.write(f"{out}: {rows} rows\n")
