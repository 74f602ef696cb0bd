"""The comparison of commands as `verify` sees it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.model import FindingSet


class ComparisonStudy:
    """Analysis of recorded comparisons; its parts load when they are used."""

    name: Final = "compare"
    question: Final = "Which command takes more?"

    def analyse(self, result: Path) -> FindingSet:
        """Compute the findings of a result folder and write its tables as CSV."""
        found: FindingSet = import_module("steelyard.studies.comparison.analysis").analyse(result)
        return found


STUDY: Final = ComparisonStudy()
