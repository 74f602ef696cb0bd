"""How large a study may become that is run until its comparisons are decided."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.analyse.comparison.interim_schedule import Extent
from steelyard.studies.replication.options import FEWEST_BLOCKS

if TYPE_CHECKING:
    from steelyard.model import Plan

SECONDS_PER_MINUTE: Final = 60


def extent_of(plan: Plan) -> Extent | None:
    """Give the largest experiment of a plan; ``None`` where the number of blocks is fixed."""
    minutes = plan.options.get("budget_minutes")
    if not isinstance(minutes, int | float):
        return None
    return Extent(FEWEST_BLOCKS, plan.blocks, minutes * SECONDS_PER_MINUTE)
