"""The communication study: what moving n bytes costs, as a model that a simulator can use."""

from __future__ import annotations

from steelyard.studies.communication.study import STUDY

__all__ = ["STUDY"]
