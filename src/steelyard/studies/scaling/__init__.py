"""The scaling study: speed-up over workers, its loss, and what explains it."""

from __future__ import annotations

from steelyard.studies.scaling.study import STUDY

__all__ = ["STUDY"]
