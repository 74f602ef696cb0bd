"""A model together with what it was fitted to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from steelyard.model import Evidence

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from steelyard.analyse.cost_curve.boundaries import BoundaryEvidence
    from steelyard.model.cost_model import Boundary, CostModel
    from steelyard.studies.communication.model.fit import FitDetails
    from steelyard.studies.communication.recorded import RecordedRun


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """One model.

    Parameters
    ----------
    model : CostModel
        What was fitted.
    details : FitDetails
        What it rests on.
    runs : tuple of RecordedRun
        Replications it was fitted to.
    file : str
        Where it is kept, relative to the result folder.
    """

    model: CostModel
    details: FitDetails
    runs: tuple[RecordedRun, ...]
    file: str

    @property
    def subject(self) -> dict[str, str]:
        """What its findings are about."""
        return {**self.runs[0].levels, "state": self.model.state}

    @property
    def replications(self) -> int:
        """Number of launches behind it."""
        return len(self.runs)

    @property
    def operations(self) -> int:
        """Operations the model rests on."""
        return int(self.details.is_used.sum())

    @property
    def round_trips(self) -> int:
        """Round trips the curve of delays rests on."""
        return int((self.details.is_used & (self.details.operations.half_s > 0)).sum())

    @property
    def smallest(self) -> int:
        """Smallest message there and back, bytes."""
        return int(self._round_trip_sizes().min())

    @property
    def largest(self) -> int:
        """Largest message there and back, bytes."""
        return int(self._round_trip_sizes().max())

    def _round_trip_sizes(self) -> NDArray[np.int64]:
        operations = self.details.operations
        is_round_trip = self.details.is_used & (operations.half_s > 0)
        return np.asarray(operations.size[is_round_trip])

    def boundary_evidence(self, boundary: Boundary) -> BoundaryEvidence | None:
        """Give what is known about a boundary of the model."""
        return next((each for each in self.details.boundaries if each.boundary == boundary), None)

    def evidence(self, statistic: str) -> Evidence:
        """Give the query for the traces behind a finding."""
        table = ", ".join(run.place for run in self.runs)
        return Evidence(
            table, {"complete": "true"}, ("op", "size", "start_ns", "mid_ns", "end_ns"), statistic
        )
