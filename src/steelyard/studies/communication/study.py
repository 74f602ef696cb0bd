"""The communication study as the registry sees it. Its parts load when they are used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from pydantic import BaseModel

    from steelyard.model import Batch, FindingSet, Plan
    from steelyard.studies.communication.options import CommunicationOptions
    from steelyard.studies.stability.missing import Technology


class CommunicationStudy:
    """The study; its parts load when they are used."""

    name: Final = "communication"
    question: Final = "What does moving n bytes cost, where does that change, and with which noise?"

    @property
    def options(self) -> type[CommunicationOptions]:
        """What a study file may say."""
        from steelyard.studies.communication.options import (  # noqa: PLC0415 - loads pydantic
            CommunicationOptions,
        )

        return CommunicationOptions

    def known_names(self) -> Mapping[str, Collection[str]]:
        """Give the names there are of each kind of thing that a study file may name."""
        preparation = import_module("steelyard.run.preparation")
        return {"tuning": tuple(preparation.TUNING_NAMES)}

    def request(self, options: BaseModel) -> str:
        """Write what was asked for, defaults filled in."""
        asked: str = import_module("steelyard.studies.communication.options").request_of(options)
        return asked

    def plan(self, options: BaseModel, technologies: Mapping[str, Technology]) -> Plan:
        """Design the study for this machine."""
        module = import_module("steelyard.studies.communication.design")
        planned: Plan = module.plan_here(options, technologies)
        return planned

    def furnished(self, plan: Plan) -> AbstractContextManager[Callable[[Batch, Path], None]]:
        """Make what the runs need around them, and give what lays files into their folders."""
        module = import_module("steelyard.studies.communication.surroundings")
        made: AbstractContextManager[Callable[[Batch, Path], None]] = module.furnished(plan)
        return made

    def follow(self, result: Path) -> bool:
        """Let SimGrid simulate the held-out replications, where the plan asks for it."""
        from steelyard.model.plan import read_plan  # noqa: PLC0415 - start-up time

        if read_plan(result / "plan.json").options.get("validation") is not True:
            return False
        import_module("steelyard.studies.communication.simulated").simulate_result(result)
        return True

    def analyse(self, result: Path) -> FindingSet:
        """Compute the findings of a result folder and write its tables as CSV."""
        found: FindingSet = import_module("steelyard.studies.communication.analysis").analyse(result)
        return found


STUDY: Final = CommunicationStudy()
