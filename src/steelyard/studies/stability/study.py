"""The stability study as the registry sees it. Its parts load when they are used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
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

    def known_names(self) -> Mapping[str, Collection[str]]:
        """Give the names there are of each kind of thing that a study file may name."""
        registry = import_module("steelyard.run.isolation.registry")
        workloads = import_module("steelyard.studies.stability.workloads")
        preparation = import_module("steelyard.run.preparation")
        native = import_module("steelyard._native")
        return {
            "isolation": tuple(registry.technologies()),
            "workload": tuple(workloads.WORKLOADS),
            "tuning": tuple(preparation.TUNING_NAMES),
            "counter": tuple(native.counter_names()),
        }

    def request(self, options: BaseModel) -> str:
        """Write what was asked for, defaults filled in."""
        design = import_module("steelyard.studies.stability.design")
        settle = import_module("steelyard.studies.stability.options").settle
        asked: str = design.request_of(settle(options))
        return asked

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
