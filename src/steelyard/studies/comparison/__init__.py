"""Comparing commands: contenders, terms, measuring, verdicts."""

from __future__ import annotations

from steelyard.studies.comparison.study import STUDY

__all__ = ["STUDY"]
