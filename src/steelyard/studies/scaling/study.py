"""The scaling study as the registry sees it. Its parts load when they are used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from pydantic import BaseModel

    from steelyard.model import FindingSet, Plan
    from steelyard.studies.scaling.options import ScalingOptions
    from steelyard.studies.stability.missing import Technology


class ScalingStudy:
    """The study; its parts load when they are used."""

    name: Final = "scaling"
    question: Final = "How does a program scale with its workers, against the ideal, and what holds it back?"

    @property
    def options(self) -> type[ScalingOptions]:
        """What a study file may say."""
        from steelyard.studies.scaling.options import ScalingOptions  # noqa: PLC0415 - loads pydantic

        return ScalingOptions

    def known_names(self) -> Mapping[str, Collection[str]]:
        """Give the names there are of each kind of thing that a study file may name."""
        preparation = import_module("steelyard.run.preparation")
        return {"tuning": tuple(preparation.TUNING_NAMES)}

    def request(self, options: BaseModel) -> str:
        """Write what was asked for, defaults filled in."""
        asked: str = import_module("steelyard.studies.scaling.options").request_of(options)
        return asked

    def plan(self, options: BaseModel, technologies: Mapping[str, Technology]) -> Plan:
        """Design the study for this machine."""
        planned: Plan = import_module("steelyard.studies.scaling.design").plan_here(options, technologies)
        return planned

    def analyse(self, result: Path) -> FindingSet:
        """Compute the findings of a result folder and write its tables as CSV."""
        found: FindingSet = import_module("steelyard.studies.scaling.analysis").analyse(result)
        return found


STUDY: Final = ScalingStudy()
