"""The replication study: whether a result holds elsewhere, in a container, and what makes it fluctuate."""

from __future__ import annotations

from steelyard.studies.replication.study import STUDY

__all__ = ["STUDY"]
