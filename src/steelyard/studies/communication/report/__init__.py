"""Report of the communication study."""

from __future__ import annotations

from steelyard.studies.communication.report.page import build

__all__ = ["build"]
