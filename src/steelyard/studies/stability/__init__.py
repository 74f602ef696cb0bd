"""The stability study: whether timings can be trusted under load and isolation."""

from __future__ import annotations

from steelyard.studies.stability.study import STUDY

__all__ = ["STUDY"]
