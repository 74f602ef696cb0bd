"""Report of the colocation study."""

from __future__ import annotations

from steelyard.studies.colocation.report.page import build

__all__ = ["build"]
