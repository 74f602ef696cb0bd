"""Whether tables and figures are what they were made from: the ledger, and the page."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steelyard.model.document import read_document
from steelyard.record.ledger import LEDGER_NAME
from steelyard.record.provenance import PROVENANCE_NAME
from steelyard.record.schema import (
    ATTEMPTS_SCHEMA,
    MEASUREMENTS_SCHEMA,
    RUNS_SCHEMA,
    SOURCE_KEY,
)
from steelyard.record.seal import hash_file
from steelyard.record.table_file import read_metadata, read_table
from steelyard.record.tables import ATTEMPTS_NAME, MEASUREMENTS_NAME, RUNS_NAME, write_tables
from steelyard.report.drawn import DRAWN_NAME, DRAWN_SCHEMA, Drawn, hash_of_figure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.report.page import Page

_TABLES: Final = {
    RUNS_NAME: RUNS_SCHEMA,
    ATTEMPTS_NAME: ATTEMPTS_SCHEMA,
    MEASUREMENTS_NAME: MEASUREMENTS_SCHEMA,
}


def compare_ledger(result: Path) -> Iterator[str]:
    """Make the tables again from the ledger and list those that are others.

    Parameters
    ----------
    result : Path
        Result folder; an imported one has no ledger, and nothing is said of it.

    Raises
    ------
    DataError
        If the ledger is damaged: an outcome does not match its checksum, or it is of another plan.
    """
    ledger = result / LEDGER_NAME
    if not ledger.exists():
        if read_metadata(result / RUNS_NAME, RUNS_SCHEMA).get(SOURCE_KEY) == LEDGER_NAME.encode():
            yield f"`{LEDGER_NAME}` is absent: nobody can say whether the tables are what was recorded"
        return
    with tempfile.TemporaryDirectory(prefix="steelyard-verify-") as folder:
        copy = Path(folder)
        for name in ("plan.json", PROVENANCE_NAME, LEDGER_NAME, f"{LEDGER_NAME}-wal"):
            if (result / name).exists():
                shutil.copy2(result / name, copy / name)
        write_tables(copy)
        for name, schema in _TABLES.items():
            if not (result / name).exists():
                yield f"`{name}` is absent; the ledger has it"
            elif hash_file(result / name) != hash_file(copy / name):
                yield from _changed_table(result, copy, name, schema)


def _changed_table(result: Path, copy: Path, name: str, schema: str) -> Iterator[str]:
    """Another version of the Parquet library may write the same rows as other bytes."""
    recorded, given = (read_table(folder / name, schema) for folder in (result, copy))
    if recorded.equals(given, check_metadata=True):
        return
    if recorded.num_rows != given.num_rows:
        yield f"`{name}` has {recorded.num_rows} rows, `{LEDGER_NAME}` gives {given.num_rows}"
        return
    differing = [
        column
        for column in given.column_names
        if column not in recorded.column_names or not recorded[column].equals(given[column])
    ]
    shown = ", ".join(f"`{column}`" for column in differing) or "its metadata"
    yield f"`{name}` is not what `{LEDGER_NAME}` gives: {shown} differs"


def compare_figures(result: Path, page: Page) -> Iterator[str]:
    """List the figures that do not show what the findings give, and files that are not those drawn.

    What a figure shows (its specification with all its data) is computed again; the files are compared by
    the hash that was kept when they were drawn, since other fonts would draw other bytes.

    Parameters
    ----------
    result : Path
        Result folder; one without ``figures/`` has nothing to compare.
    page : Page
        Built from the findings just now.

    Raises
    ------
    DataError
        If the list of what was drawn is damaged.
    """
    folder = result / "figures"
    if not folder.is_dir():
        return
    again = f"`steelyard report {result}` draws it again"
    path = folder / DRAWN_NAME
    drawn = read_document(path, Drawn, DRAWN_SCHEMA, absent=again, damaged=again)
    wanted = {figure.id: hash_of_figure(figure) for figure in page.figures()}
    for name in sorted({*wanted, *drawn.shows}):
        if name not in drawn.shows:
            yield f"`figures/{name}` is absent; {again}"
        elif name not in wanted:
            yield f"`figures/{name}` is not a figure of the report"
        elif wanted[name] != drawn.shows[name]:
            yield f"`figures/{name}` does not show what the findings give; {again}"
    found = {each.name for each in folder.iterdir()} - {DRAWN_NAME}
    for name in sorted({*found, *drawn.files}):
        if name not in found:
            yield f"`figures/{name}` is absent; {again}"
        elif name not in drawn.files:
            yield f"`figures/{name}` was not drawn by the report"
        elif hash_file(folder / name) != drawn.files[name]:
            yield f"`figures/{name}` was changed after it was drawn; {again}"
