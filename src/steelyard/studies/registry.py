"""The table of studies: built-in ones, and those of installed packages."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from steelyard.errors import InternalError, UsageError
from steelyard.studies.colocation import STUDY as COLOCATION
from steelyard.studies.communication import STUDY as COMMUNICATION
from steelyard.studies.replication import STUDY as REPLICATION
from steelyard.studies.scaling import STUDY as SCALING
from steelyard.studies.stability import STUDY as STABILITY

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path
    from types import ModuleType

    from pydantic import BaseModel

    from steelyard.model import Batch, FindingSet, Plan
    from steelyard.run.execution_options import Selection
    from steelyard.studies.stability.missing import Technology

ENTRY_POINTS: Final = "steelyard.studies"
_BUILT_IN: Final[dict[str, Study]] = {
    "stability": STABILITY,
    "scaling": SCALING,
    "communication": COMMUNICATION,
    "colocation": COLOCATION,
    "replication": REPLICATION,
}


@runtime_checkable
class Study(Protocol):
    """A question with its factors, responses and analysis."""

    @property
    def name(self) -> str:
        """Name on the command line and in study files."""

    @property
    def question(self) -> str:
        """What it answers, as one sentence."""

    @property
    def options(self) -> type[BaseModel]:
        """What a study file may say about it; every field has a default."""

    def known_names(self) -> Mapping[str, Collection[str]]:
        """Give the names there are of each kind of thing that a study file may name."""

    def request(self, options: BaseModel) -> str:
        """Write what was asked for as a JSON object; a plan keeps it as its option ``request``.

        A stopped study is resumed by the same request only. What was found on the machine is no
        part of it, nor is the place of the result.
        """

    def plan(self, options: BaseModel, technologies: Mapping[str, Technology]) -> Plan:
        """Design the study for this machine."""

    def analyse(self, result: Path) -> FindingSet:
        """Compute the findings of a result folder and write its tables as CSV."""


@runtime_checkable
class FurnishingStudy(Protocol):
    """A study whose runs read files of their own, or need something around them that is made and removed."""

    def furnished(self, plan: Plan) -> AbstractContextManager[Callable[[Batch, Path], None]]:
        """Make what the runs need around them, and give what lays files into the folder of a batch."""


@runtime_checkable
class DecidingStudy(Protocol):
    """A study that decides while it is executed which runs of its plan are still wanted."""

    def selection(self, plan: Plan, result: Path) -> AbstractContextManager[Selection]:
        """Give what is asked before each batch; it looks at the runs kept in the result folder."""


@runtime_checkable
class ForeseenStudy(Protocol):
    """A study that knows how long it takes before anything is executed."""

    def seconds(self, plan: Plan) -> float:
        """Give the expected time of executing a plan [s]."""


@runtime_checkable
class FollowedStudy(Protocol):
    """A study whose findings lead to something more that is recorded, as a simulation with its models."""

    def follow(self, result: Path) -> bool:
        """Record what follows from the findings, if it was asked for; say whether to analyse again."""


def studies() -> dict[str, Study]:
    """Give the studies by name.

    Raises
    ------
    InternalError
        If an installed package offers something that is no study.
    """
    found: dict[str, Study] = dict(_BUILT_IN)
    for entry in entry_points(group=ENTRY_POINTS):
        offered = entry.load()
        if not isinstance(offered, Study):
            message = f"entry point `{entry.name}` of group `{ENTRY_POINTS}` is no study"
            raise InternalError(message, code="internal.study")
        found[entry.name] = offered
    return found


def study(name: str) -> Study:
    """Give one study.

    Raises
    ------
    UsageError
        Listing the known names.

    Examples
    --------
    >>> study("stability").name
    'stability'
    """
    known = studies()
    if name not in known:
        allowed = ", ".join(f"`{each}`" for each in sorted(known))
        message = f"`{name}` is not a study; allowed: {allowed}"
        raise UsageError(message, hint="steelyard run stability --quick", code="usage.study")
    return known[name]


ANALYSES: Final = {
    "stability": "steelyard.studies.stability",
    "imported": "steelyard.studies.imported",
    "compare": "steelyard.studies.comparison",
    "scaling": "steelyard.studies.scaling",
    "communication": "steelyard.studies.communication",
    "colocation": "steelyard.studies.colocation",
    "replication": "steelyard.studies.replication",
}
"""Packages of the studies whose results can be analysed and reported: modules ``analysis`` and ``report``."""


def part_of(study_name: str, part: str, place: Path) -> ModuleType:
    """Give the ``analysis`` or the ``report`` of a study that a result folder belongs to.

    Parameters
    ----------
    study_name : str
        As in the plan or the findings.
    part : str
        ``analysis`` or ``report``.
    place : Path
        The folder, for the error.

    Raises
    ------
    UsageError
        Listing the studies there are.
    """
    if study_name not in ANALYSES:
        known = ", ".join(f"`{name}`" for name in ANALYSES)
        message = f"`{place}` is of study `{study_name}`; studies with a report: {known}"
        hint = "give a folder that `steelyard run`, `steelyard compare` or `steelyard import` wrote"
        raise UsageError(message, hint=hint)
    return import_module(f"{ANALYSES[study_name]}.{part}")
