"""Results of other tools: described, compared and laid beside what the tools published."""

from __future__ import annotations

from steelyard.studies.imported.study import STUDY

__all__ = ["STUDY"]
