"""Report of the scaling study."""

from __future__ import annotations

from steelyard.studies.scaling.report.page import build

__all__ = ["build"]
