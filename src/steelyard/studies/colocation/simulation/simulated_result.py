"""Simulated trials as a result folder, which is analysed, reported and compared as an executed one is."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from steelyard.errors import UsageError, unwritable
from steelyard.model import Batch, Cell, Execution, Plan
from steelyard.record.importers.imported_result import require_free
from steelyard.record.outcome_rows import run_id_of
from steelyard.record.provenance import begin_provenance, end_session, write_provenance
from steelyard.record.seal import seal_tables
from steelyard.record.tables import ResultTables
from steelyard.record.trace_folder import TRACES_NAME
from steelyard.run.executor.run_files import files_name
from steelyard.studies.colocation.trial import write_trial

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from steelyard.record.table_file import Value
    from steelyard.studies.colocation.simulation.simulated import SimulationOptions
    from steelyard.studies.colocation.trial import Trial

SIMULATED: Final = "simulated"
"""Origin of the plan."""

_HINT: Final = "give another folder with `--out`"
_TOLERANCE_PERCENT: Final = 10.0
"""As in the options of the study."""


def plan_of(simulations: Sequence[SimulationOptions], command: Sequence[str]) -> Plan:
    """Give the plan of simulations: a cell and a batch for each.

    Raises
    ------
    UsageError
        If a load is no whole percentage, as levels of the study are.
    """
    levels = [{"policy": each.name, "load": str(_percent(each.load))} for each in simulations]
    first = simulations[0]
    return Plan(
        study="colocation",
        seed=first.seed,
        factors={name: tuple(dict.fromkeys(each[name] for each in levels)) for name in ("policy", "load")},
        cells=tuple(
            Cell(number, each, Execution("bare", tuple(command))) for number, each in enumerate(levels)
        ),
        batches=tuple(Batch(number, 0, number) for number in range(len(levels))),
        blocks=1,
        options={
            "mode": "full",
            "origin": SIMULATED,
            "tolerance_percent": _TOLERANCE_PERCENT,
            "cpus": ",".join(map(str, range(first.cores))),
            "work_us": first.work_ns / 1000,
        },
    ).freeze()


def _percent(load: float) -> int:
    percent = round(100 * load)
    if abs(100 * load - percent) > 1e-6 * percent:
        message = f"`--load {load:g}` is not a whole percentage, as loads of a result must be"
        raise UsageError(message, hint="give e.g. `--load 0.85`, or leave `--out` out")
    return percent


class SimulatedResult:
    """Writes simulated trials into a result folder.

    Parameters
    ----------
    folder : Path
        Where it is to stand: absent, empty, or of the same simulations.
    simulations : sequence of SimulationOptions
        What is to be simulated, in order.
    command : sequence of str
        Command line.

    Raises
    ------
    DataError
        If the folder holds another result.
    """

    def __init__(
        self, folder: Path, simulations: Sequence[SimulationOptions], command: Sequence[str]
    ) -> None:
        self._folder, self._simulations, self._command = folder, simulations, command
        self._lengths_ns: list[int] = []
        require_free(folder, plan_of(simulations, command))

    def add(self, trial: Trial) -> None:
        """Write the trial of the next simulation.

        Raises
        ------
        DataError
            If the folder cannot be written.
        """
        name = files_name(len(self._lengths_ns), 1)
        try:
            write_trial(self._folder / TRACES_NAME / name, trial)
        except OSError as error:
            raise unwritable(self._folder, error, _HINT) from error
        self._lengths_ns.append(trial.header["end_ns"] - trial.header["start_ns"])

    def close(self) -> None:
        """Write plan, tables and provenance of the simulations that were added."""
        if not self._lengths_ns:
            return
        plan = plan_of(self._simulations[: len(self._lengths_ns)], self._command)
        plan.write(self._folder / "plan.json")
        with ResultTables(self._folder, plan, hashlib.sha256(plan.id.encode()).hexdigest()) as tables:
            for batch, length_ns in zip(plan.batches, self._lengths_ns, strict=True):
                tables.add(_row(plan, batch, length_ns), [])
        write_provenance(self._folder, end_session(begin_provenance(plan, self._command)))
        seal_tables(self._folder)


def _row(plan: Plan, batch: Batch, length_ns: int) -> dict[str, Value]:
    return {
        "run_id": run_id_of(batch.number, 1, 0, 0),
        "study": plan.study,
        "cell": batch.cell,
        "block": batch.block,
        "batch": batch.number,
        "attempt": 1,
        "position": batch.number,
        "worker": 0,
        "iteration": 0,
        "host_id": SIMULATED,
        **plan.cells[batch.cell].levels,
        "status": "completed",
        "start_ns": 0,
        "end_ns": length_ns,
        "flags": [],
    }
