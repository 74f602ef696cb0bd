"""How the rate of a run follows from what it reports, or from its wall time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from steelyard.units import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Metrics = Mapping[str, float]

OUTSIDE_WALL: Final = "outside-wall"
OUTSIDE_CPU: Final = "outside-cpu"


@dataclass(frozen=True, slots=True)
class Response:
    """How the rate of a run follows from its metrics.

    Parameters
    ----------
    needs : tuple of str
        Metrics it is made of.
    unit, words : str
        Unit of the rate, and where it comes from.
    rate : callable
        From metrics to the rate.
    """

    needs: tuple[str, ...]
    unit: str
    words: str
    rate: Callable[[Metrics], float]


RESPONSES: Final = (
    Response(
        ("packets", "wall"),
        "packets/ms",
        "packets finished before the stop flag over the program's own time",
        lambda of: of["packets"] * NS_PER_MS / of["wall"] if of["wall"] > 0 else math.nan,
    ),
    Response(
        ("operations", "wall"),
        "ops/s",
        "operations over the program's own time",
        lambda of: of["operations"] * NS_PER_S / of["wall"] if of["wall"] > 0 else math.nan,
    ),
    Response(("rate",), "", "the rate that the program reports", lambda of: of["rate"]),
    Response(
        (OUTSIDE_WALL,),
        "1/s",
        "one over the wall time of the run, seen from outside",
        lambda of: NS_PER_S / of[OUTSIDE_WALL] if of[OUTSIDE_WALL] > 0 else math.nan,
    ),
)
"""Ways to a rate, the best first; all runs of a result take the first that all of them offer."""
