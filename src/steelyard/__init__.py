"""Steelyard: a laboratory for performance experiments."""

from __future__ import annotations

__version__ = "0.1.0"
