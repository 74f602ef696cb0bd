"""The traces of a result folder as the analysis sees them: one per complete run, by cell and replication."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.errors import DataError
from steelyard.record.tables import read_runs
from steelyard.record.trace_folder import TRACES_NAME
from steelyard.run.executor.run_files import files_name
from steelyard.studies.communication.trace import read_trace

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.model import Plan
    from steelyard.studies.communication.trace import Trace


@dataclass(frozen=True, slots=True, eq=False)
class RecordedRun:
    """One run: how it ended, and what its endpoints stamped.

    Parameters
    ----------
    cell, block : int
        As in the plan; a block is a replication.
    levels : dict
        Levels of the cell.
    status, message : str
        How it ended; why it failed, in words.
    folder : Path
        Its trace.
    trace : Trace or None
        Without the operations that warmed the launch up. ``None`` where the endpoints came to write none,
        or it cannot be read.
    problem : str
        Why there is no trace; empty where there is one.
    finished : int
        Operations that endpoint 0 came to the end of, those of the warm-up among them.
    state : str
        State of the host it was run in; empty where that changed, or was not looked at yet.
    is_held_out : bool
        Whether no model is fitted to it.
    """

    cell: int
    block: int
    levels: dict[str, str]
    status: str
    message: str
    folder: Path
    trace: Trace | None
    problem: str
    finished: int = 0
    state: str = ""
    is_held_out: bool = False

    @property
    def place(self) -> str:
        """Folder of the trace relative to the result."""
        return f"{TRACES_NAME}/{self.folder.name}"


def read_recorded(result: Path, plan: Plan) -> tuple[RecordedRun, ...]:
    """Read every run of a result, by cell and block.

    Raises
    ------
    DataError
        If the table of runs cannot be read.
    """
    columns = ["cell", "block", "batch", "attempt", "status", "message"]
    rows = read_runs(result).select(columns).to_pylist()
    found = []
    warm_up = int(plan.options.get("warm_up") or 0)
    for row in sorted(rows, key=lambda row: (row["cell"], row["block"])):
        folder = result / TRACES_NAME / files_name(row["batch"], row["attempt"])
        trace, problem, finished = read_trace_after(folder, warm_up)
        found.append(
            RecordedRun(
                row["cell"],
                row["block"],
                dict(plan.cells[row["cell"]].levels),
                row["status"],
                row["message"] or "",
                folder,
                trace,
                problem,
                finished,
            )
        )
    return tuple(found)


def read_trace_after(folder: Path, warm_up: int) -> tuple[Trace | None, str, int]:
    """Give a trace without its warm-up, why there is none, and how many operations endpoint 0 finished."""
    try:
        whole = read_trace(folder)
    except DataError as error:
        return None, error.message, 0
    finished = len(whole.endpoints[0].operations)
    trace = whole.after(warm_up)
    ends = trace.endpoints[:1] if trace.is_recording else trace.endpoints
    if not all(len(endpoint.operations) for endpoint in ends):
        return None, "no operation was finished" + (" after the warm-up" if warm_up else ""), finished
    return trace, "", finished
