"""The colocation study as the registry sees it. Its parts load when they are used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from pydantic import BaseModel

    from steelyard.model import Batch, FindingSet, Plan
    from steelyard.studies.colocation.options import ColocationOptions
    from steelyard.studies.stability.missing import Technology


class ColocationStudy:
    """The study; its parts load when they are used."""

    name: Final = "colocation"
    question: Final = "Does a scheduling policy protect a latency-critical service from best-effort jobs?"

    @property
    def options(self) -> type[ColocationOptions]:
        """What a study file may say."""
        from steelyard.studies.colocation.options import ColocationOptions  # noqa: PLC0415 - loads pydantic

        return ColocationOptions

    def known_names(self) -> Mapping[str, Collection[str]]:
        """Give the names there are of each kind of thing that a study file may name."""
        preparation = import_module("steelyard.run.preparation")
        return {"tuning": tuple(preparation.TUNING_NAMES)}

    def request(self, options: BaseModel) -> str:
        """Write what was asked for, defaults filled in."""
        asked: str = import_module("steelyard.studies.colocation.options").request_of(options)
        return asked

    def plan(self, options: BaseModel, technologies: Mapping[str, Technology]) -> Plan:
        """Design the study for this machine."""
        module = import_module("steelyard.studies.colocation.design")
        planned: Plan = module.plan_here(options, technologies)
        return planned

    def furnished(self, plan: Plan) -> AbstractContextManager[Callable[[Batch, Path], None]]:
        """Make the control groups of the trials, and give what lays their plans into their folders."""
        module = import_module("steelyard.studies.colocation.surroundings")
        made: AbstractContextManager[Callable[[Batch, Path], None]] = module.furnished(plan)
        return made

    def analyse(self, result: Path) -> FindingSet:
        """Compute the findings of a result folder and write its tables as CSV."""
        found: FindingSet = import_module("steelyard.studies.colocation.analysis").analyse(result)
        return found


STUDY: Final = ColocationStudy()
