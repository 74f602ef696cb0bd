"""What the figures of the communication report show beyond findings: single round trips from the traces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.cost_curve.median_line import predict
from steelyard.model.cost_model import read_cost_model
from steelyard.studies.communication.cells import cell_records
from steelyard.studies.communication.labels import label_of
from steelyard.studies.communication.recorded import read_recorded

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from steelyard.model import FindingSet, Plan
    from steelyard.model.cost_model import CostModel
    from steelyard.studies.communication.operations import Operations

    Vector = NDArray[np.float64]

HELD_OUT_PART: Final = "held out"


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """Round trips of one transport in one state, with their model.

    Parameters
    ----------
    label : str
        As the menus show it.
    model : CostModel
        As the analysis kept it.
    trips : Operations
        Round trips of all its replications, in the order of measuring.
    is_held_out : ndarray of bool
        Shape (n,): whether no model was fitted to it.
    names : tuple of str
        Of the replications, by `trips.run`.
    """

    label: str
    model: CostModel
    trips: Operations
    is_held_out: NDArray[np.bool_]
    names: tuple[str, ...]

    @property
    def ratio(self) -> Vector:
        """Measured over model, shape (n,)."""
        return np.asarray(self.trips.half_s / predict(self.model.curves["delay"], self.trips.size))

    def part(self, at: int) -> str:
        """Name the replication of a round trip."""
        return HELD_OUT_PART if self.is_held_out[at] else self.names[int(self.trips.run[at])]


def shown_of(result: Path, plan: Plan, findings: FindingSet) -> tuple[Shown, ...]:
    """Read the round trips behind each model.

    Raises
    ------
    DataError
        If the tables of runs, or a model, cannot be read.
    """
    records = cell_records(read_recorded(result, plan))
    found = []
    for card in findings.of("model"):
        record = next(
            each
            for each in records
            if each.runs[0].levels.items() <= card.subject.items() and card.subject["state"] in each.states
        )
        model = read_cost_model(result / str(card.facts["model_file"]))
        members = [number for number, run in enumerate(record.runs) if run.state == card.subject["state"]]
        table = record.operations
        trips = table.where(np.isin(table.run, members) & (table.half_s > 0))
        held_out = [number for number in members if record.runs[number].is_held_out]
        names = tuple(f"replication {run.block + 1}" for run in record.runs)
        found.append(Shown(label_of(card.subject), model, trips, np.isin(trips.run, held_out), names))
    return tuple(found)
