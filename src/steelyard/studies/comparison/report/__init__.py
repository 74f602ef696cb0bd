"""Report of a comparison."""

from __future__ import annotations

from steelyard.studies.comparison.report.page import build

__all__ = ["build"]
