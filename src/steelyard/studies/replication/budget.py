"""How large a study may become: until its comparisons are decided, or on how many hosts."""

from __future__ import annotations

import json
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


def placed_on(plan: Plan) -> tuple[str, ...]:
    """Give the hosts that a plan was made for, by name; none where it is run where it was asked for."""
    return tuple(json.loads(str(plan.options.get("placed_on") or "[]")))


def blocks_of_each(plan: Plan) -> int:
    """Give the number of blocks of a plan that each host is to run."""
    return plan.blocks // max(len(placed_on(plan)), 1)
