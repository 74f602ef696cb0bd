"""The colocation study: does a scheduling policy protect a service from best-effort jobs beside it?"""

from __future__ import annotations

from steelyard.studies.colocation.study import STUDY

__all__ = ["STUDY"]
