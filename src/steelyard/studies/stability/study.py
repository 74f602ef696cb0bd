"""The stability study as the registry sees it. Its parts load when they are used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pydantic import BaseModel

    from steelyard.model import FindingSet, Plan
    from steelyard.studies.stability.missing import Technology
    from steelyard.studies.stability.options import StabilityOptions


class StabilityStudy:
    """The study; its parts load when they are used."""

    name: Final = "stability"
    question: Final = (
        "Which isolation technology, and how many parallel workers, before my timings stop being trustworthy?"
    )

    @property
    def options(self) -> type[StabilityOptions]:
        """What a study file may say."""
        from steelyard.studies.stability.options import StabilityOptions  # noqa: PLC0415 - loads pydantic

        return StabilityOptions

    def plan(self, options: BaseModel, technologies: Mapping[str, Technology]) -> Plan:
        """Design the study for this machine."""
        preparation = import_module("steelyard.studies.stability.preparation")
        planned: Plan = preparation.plan_here(options, preparation.Depth.EXECUTABLE, technologies)
        return planned

    def analyse(self, result: Path) -> FindingSet:
        """Compute the findings of a result folder and write its tables as CSV."""
        found: FindingSet = import_module("steelyard.studies.stability.analysis").analyse(result)
        return found


STUDY: Final = StabilityStudy()
