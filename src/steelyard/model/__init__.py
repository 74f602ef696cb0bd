"""Vocabulary of the stages: cells, plans, estimates, findings. Values only, no effects."""

from __future__ import annotations

from steelyard.model.cell import Affinity, Cell, Execution, NeighbourKind, Neighbours
from steelyard.model.finding import Estimate, Evidence, Finding, FindingSet
from steelyard.model.plan import Batch, Plan
from steelyard.model.run_outcome import Quantity, RunOutcome, RunStatus
from steelyard.model.run_spec import Limits, RunSpec

__all__ = [
    "Affinity",
    "Batch",
    "Cell",
    "Estimate",
    "Evidence",
    "Execution",
    "Finding",
    "FindingSet",
    "Limits",
    "NeighbourKind",
    "Neighbours",
    "Plan",
    "Quantity",
    "RunOutcome",
    "RunSpec",
    "RunStatus",
]
