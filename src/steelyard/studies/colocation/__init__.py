"""The colocation study: whether a policy protects a service from best-effort jobs."""

from __future__ import annotations

from steelyard.studies.colocation.study import STUDY

__all__ = ["STUDY"]
