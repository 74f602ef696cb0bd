"""Stage 4: procedures that turn recorded tables into estimates and verdicts."""

from __future__ import annotations

from steelyard.analyse.series.flips import FlippedClass, flipped_classes

__all__ = ["FlippedClass", "flipped_classes"]
