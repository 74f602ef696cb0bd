"""The runs of a result folder as the analysis sees them: how each ended, and what it left.

The levels of a cell are ``experiment``, ``configuration`` and ``setting``. A block is one repetition: it
holds each cell once. The plan's option ``a_a`` names two cells of the same levels, ``first,twin``: the twin
is the last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from steelyard.errors import DataError
from steelyard.record.experiment import read_run
from steelyard.record.tables import read_runs
from steelyard.record.trace_folder import TRACES_NAME
from steelyard.run.run_files import files_name

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from steelyard.model import Plan
    from steelyard.record.experiment import ExperimentRun

FAILED: Final = "failed"
"""Outcome of a benchmark that did not reach what it had to: a result, unlike a run that broke."""


@dataclass(frozen=True, slots=True, eq=False)
class RecordedRun:
    """One run: how it ended, and what it left.

    Parameters
    ----------
    run_id : str
        As in the table of runs.
    cell, block : int
        As in the plan; a block is a repetition.
    experiment, configuration, setting : str
        Levels of its cell.
    is_twin : bool
        Whether it belongs to the second cell of the A/A control.
    status, message : str
        How the run ended; why it failed, in words.
    folder : Path
        Its files.
    run : ExperimentRun or None
        ``None`` where the conductor came to write none, or it cannot be read.
    problem : str
        Why there is no run, or why it is not complete; empty for a complete one.
    """

    run_id: str
    cell: int
    block: int
    experiment: str
    configuration: str
    setting: str
    is_twin: bool
    status: str
    message: str
    folder: Path
    run: ExperimentRun | None
    problem: str

    @property
    def place(self) -> str:
        """Folder of the run relative to the result."""
        return f"{TRACES_NAME}/{self.folder.name}"

    @property
    def header(self) -> Mapping[str, Any]:
        """What happened, as the conductor wrote it; empty where it wrote nothing."""
        return {} if self.run is None else self.run.header

    @property
    def parameters(self) -> Mapping[str, Any]:
        """What the experiment's program was given."""
        return {} if self.run is None else (self.run.asked.get("configuration") or {}).get("parameters") or {}

    @property
    def is_failed_benchmark(self) -> bool:
        """Whether the benchmark itself failed, which is a result."""
        return self.header.get("outcome") == FAILED

    @property
    def is_usable(self) -> bool:
        """Whether its numbers count: complete, and the benchmark did not fail."""
        return self.run is not None and not self.problem and not self.is_failed_benchmark


def read_recorded(result: Path, plan: Plan) -> tuple[RecordedRun, ...]:
    """Read what every run of a result says of itself, by cell and block; no values yet.

    Raises
    ------
    DataError
        If the table of runs cannot be read.
    """
    columns = ["run_id", "cell", "block", "batch", "attempt", "status", "message"]
    rows = read_runs(result).select(columns).to_pylist()
    twin = twin_of(plan)
    found = []
    for row in sorted(rows, key=lambda row: (row["cell"], row["block"])):
        folder = result / TRACES_NAME / files_name(row["batch"], row["attempt"])
        run, problem = _run_of(folder)
        levels = plan.cells[row["cell"]].levels
        found.append(
            RecordedRun(
                run_id=row["run_id"],
                cell=row["cell"],
                block=row["block"],
                experiment=levels["experiment"],
                configuration=levels["configuration"],
                setting=levels["setting"],
                is_twin=row["cell"] == twin,
                status=row["status"],
                message=row["message"] or "",
                folder=folder,
                run=run,
                problem=problem,
            )
        )
    return tuple(found)


def twin_of(plan: Plan) -> int | None:
    """Give the number of the second cell of the A/A control; ``None`` where a plan has none."""
    _, separator, twin = str(plan.options.get("a_a") or "").partition(",")
    return int(twin) if separator else None


def told(entry: object) -> str:
    """Say an entry of what could not be had, whatever form the conductor gave it.

    Examples
    --------
    >>> told({"what": "steal", "reason": "not offered"}), told("no JVM")
    ('steal: not offered', 'no JVM')
    """
    if isinstance(entry, dict):
        return ": ".join(str(value) for value in entry.values())
    return str(entry)


def _run_of(folder: Path) -> tuple[ExperimentRun | None, str]:
    try:
        run = read_run(folder)
    except DataError as error:
        return None, error.message
    if run.header.get("outcome") == FAILED or run.header.get("is_complete") is True:
        return run, ""
    missing = "; ".join(told(entry) for entry in run.header.get("missing") or ())
    return run, str(run.header.get("reason") or missing or "the run did not come to its end")
