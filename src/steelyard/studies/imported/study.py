"""The study of imported results as `verify` sees it; it is analysed, never executed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.model import FindingSet


class ImportedStudy:
    """Analysis of imported results; its parts load when they are used."""

    name: Final = "imported"
    question: Final = "What do the results of another tool say, and how sure is it?"

    def analyse(self, result: Path) -> FindingSet:
        """Compute the findings of a result folder and write its tables as CSV."""
        found: FindingSet = import_module("steelyard.studies.imported.analysis").analyse(result)
        return found


STUDY: Final = ImportedStudy()
