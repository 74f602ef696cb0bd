"""Report of the stability study."""

from __future__ import annotations

from steelyard.studies.stability.report.page import build

__all__ = ["build"]
