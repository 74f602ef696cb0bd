"""Report of an imported result."""

from __future__ import annotations

from steelyard.studies.imported.report.page import build

__all__ = ["build"]
