"""Report of the replication study."""

from __future__ import annotations

from steelyard.studies.replication.report.page import build

__all__ = ["build"]
