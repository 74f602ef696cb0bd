"""The folders that the runs of a study left in a result, with what the table of runs says of each."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from steelyard.record.tables import read_runs
from steelyard.record.trace_folder import TRACES_NAME
from steelyard.run.executor.run_files import files_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from steelyard.model import Plan


@dataclass(frozen=True, slots=True, eq=False)
class RunFolder:
    """One run with its folder.

    Parameters
    ----------
    run_id : str
        Id in ``runs.parquet``.
    cell, block : int
        Cell of the plan, from 0, and repetition, from 1.
    levels : Mapping
        Level of each factor of the cell.
    is_twin : bool
        Whether the cell is the second one of the A/A control.
    status, message : str
        How the run ended, and what it said of that.
    folder : Path
        What it left.
    """

    run_id: str
    cell: int
    block: int
    levels: Mapping[str, str]
    is_twin: bool
    status: str
    message: str
    folder: Path

    @property
    def place(self) -> str:
        """Folder of the run relative to the result."""
        return f"{TRACES_NAME}/{self.folder.name}"

    def facts(self) -> dict[str, Any]:
        """Give its values by name, for a study that adds what it read from the folder."""
        return {field.name: getattr(self, field.name) for field in fields(RunFolder)}


def run_folders(result: Path, plan: Plan) -> Iterator[RunFolder]:
    """Give every run of a result with its folder, by cell and block.

    Raises
    ------
    DataError
        If the table of runs cannot be read.
    """
    columns = ["run_id", "cell", "block", "batch", "attempt", "status", "message"]
    rows = read_runs(result).select(columns).to_pylist()
    for row in sorted(rows, key=lambda row: (row["cell"], row["block"])):
        yield RunFolder(
            run_id=row["run_id"],
            cell=row["cell"],
            block=row["block"],
            levels=plan.cells[row["cell"]].levels,
            is_twin=plan.is_twin(row["cell"]),
            status=row["status"],
            message=row["message"] or "",
            folder=result / TRACES_NAME / files_name(row["batch"], row["attempt"]),
        )


def describe_missing(entry: object) -> str:
    """Say an entry of what could not be set or had, whatever form a program gave it.

    Examples
    --------
    >>> describe_missing({"what": "steal", "reason": "not offered"}), describe_missing("no JVM")
    ('steal: not offered', 'no JVM')
    """
    if isinstance(entry, dict):
        return ": ".join(str(value) for value in entry.values())
    return str(entry)
