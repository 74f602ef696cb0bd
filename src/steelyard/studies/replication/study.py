"""The replication study as the registry sees it. Its parts load when they are used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from pydantic import BaseModel

    from steelyard.model import Batch, FindingSet, Plan
    from steelyard.run.execution_options import Selection
    from steelyard.studies.replication.options import ReplicationOptions
    from steelyard.studies.stability.missing import Technology


class ReplicationStudy:
    """The study; its parts load when they are used."""

    name: Final = "replication"
    question: Final = "Does a result hold on other devices and in containers, and what makes it fluctuate?"

    @property
    def options(self) -> type[ReplicationOptions]:
        """What a study file may say."""
        from steelyard.studies.replication.options import ReplicationOptions  # noqa: PLC0415 - loads pydantic

        return ReplicationOptions

    def known_names(self) -> Mapping[str, Collection[str]]:
        """Give the names there are of each kind of thing that a study file may name."""
        preparation = import_module("steelyard.run.preparation")
        return {"tuning": tuple(preparation.TUNING_NAMES)}

    def request(self, options: BaseModel) -> str:
        """Write what was asked for, defaults filled in."""
        asked: str = import_module("steelyard.studies.replication.options").request_of(options)
        return asked

    def plan(self, options: BaseModel, technologies: Mapping[str, Technology]) -> Plan:
        """Design the study for this machine."""
        module = import_module("steelyard.studies.replication.design")
        planned: Plan = module.plan_here(options, technologies)
        return planned

    def furnished(self, plan: Plan) -> AbstractContextManager[Callable[[Batch, Path], None]]:
        """Start the engine of containers, and give what lays into the folder of a run what is asked for."""
        module = import_module("steelyard.studies.replication.surroundings")
        made: AbstractContextManager[Callable[[Batch, Path], None]] = module.furnished(plan)
        return made

    def selection(self, plan: Plan, result: Path) -> AbstractContextManager[Selection]:
        """Give what is asked before each run: whether a comparison that needs it is still open."""
        selections = import_module("steelyard.studies.replication.until_decided")
        found: AbstractContextManager[Selection] = selections.selection_of(plan, result)
        return found

    def seconds(self, plan: Plan) -> float:
        """Give the expected time of executing a plan [s]."""
        expected: float = import_module("steelyard.studies.replication.estimate").plan_seconds(plan)
        return expected

    def analyse(self, result: Path) -> FindingSet:
        """Compute the findings of a result folder and write its tables as CSV."""
        found: FindingSet = import_module("steelyard.studies.replication.analysis").analyse(result)
        return found


STUDY: Final = ReplicationStudy()
