"""The two stretches of a trial that are compared with each other: before the jobs start, and beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SETTLE_S: Final = 1.5
"""Time after the start of the jobs that belongs to neither stretch: they start up, and queues form."""

LEAD_S: Final = 0.5
"""Time before the start and before the stop of the jobs that belongs to neither: stamps of bins are no finer,
and a request that is sent shortly before the jobs stop is answered after."""

MOST_SETTLE_SHARE: Final = 0.15
MOST_LEAD_SHARE: Final = 0.05
"""Largest shares of a phase that are cut off: short phases are not used up by their edges."""

_ROUNDING_S: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of time [s], from `low` up to but without `high`."""

    low: float
    high: float

    @property
    def length_s(self) -> float:
        """Its length."""
        return max(self.high - self.low, 0.0)

    def holds(self, times_s: NDArray[np.float64], length_s: float = 0.0) -> NDArray[np.bool_]:
        """Tell which moments, or stretches of a length that begin there, lie inside.

        Examples
        --------
        >>> import numpy as np
        >>> Window(1.0, 2.0).holds(np.array([0.9, 1.0, 1.9, 2.0]), 0.1).tolist()
        [False, True, True, False]
        """
        if length_s == 0:
            return (times_s >= self.low) & (times_s < self.high)
        return (times_s >= self.low - _ROUNDING_S) & (times_s + length_s <= self.high + _ROUNDING_S)


@dataclass(frozen=True, slots=True)
class Phases:
    """When what happened in a trial, from its begin [s].

    Parameters
    ----------
    warm_up_end_s, jobs_start_s, jobs_stop_s, client_end_s, end_s : float
        Ascending; without jobs, when they would have started and stopped.
    """

    warm_up_end_s: float
    jobs_start_s: float
    jobs_stop_s: float
    client_end_s: float
    end_s: float

    @property
    def before(self) -> Window:
        """The service alone.

        Examples
        --------
        >>> phases = Phases(0.0, 11.0, 30.0, 30.0, 30.2)
        >>> phases.before, phases.beside
        (Window(low=0.0, high=10.5), Window(low=12.5, high=29.5))
        """
        length_s = self.jobs_start_s - self.warm_up_end_s
        return Window(self.warm_up_end_s, self.jobs_start_s - min(LEAD_S, MOST_LEAD_SHARE * length_s))

    @property
    def beside(self) -> Window:
        """The service beside the jobs."""
        length_s = self.jobs_stop_s - self.jobs_start_s
        return Window(
            self.jobs_start_s + min(SETTLE_S, MOST_SETTLE_SHARE * length_s),
            self.jobs_stop_s - min(LEAD_S, MOST_LEAD_SHARE * length_s),
        )

    @property
    def jobs(self) -> Window:
        """All the time that the jobs are there."""
        return Window(self.jobs_start_s, self.jobs_stop_s)
