"""What a study is, and which studies are installed: Steelyard's own, and those of other packages.

A study is a Python package with one object of `Study` in it and an entry point that names it::

    [project.entry-points."steelyard.studies"]
    mine = "my_package:STUDY"

    STUDY = Study("mine", "Does it hold?", __name__)

Its parts are modules of the package, loaded when they are used:

============  =============================================================================
``options``   what a study file may say: ``OPTIONS``, a pydantic model whose fields all have
              a default; optional ``settle(options)``, which fills in what depends on others, and
              ``known_names()``: the names there are, by kind of thing that a study file names
``design``    ``plan_here(options, technologies)`` designs the study for this machine; optional
              ``sketch(options, technologies)``, where designing it takes a measurement
``analysis``  ``analyse(result, options=None)`` computes the findings of a result folder, and
              writes them and its tables
``report``    ``build(result)`` gives the page
============  =============================================================================

A study without ``design`` is analysed and reported, never run. What else a study does stands in
fields of `Study`.
"""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Protocol

from steelyard.errors import DataError, InternalError, UsageError
from steelyard.plug_in import OWN, STUDY_GROUP, UNLOADED, Registry, fault_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from pydantic import BaseModel

    from steelyard.analyse.comparison.agreement import CellValues
    from steelyard.design.technology import Technology
    from steelyard.model import Batch, Cell, Finding, FindingSet, Plan, RunOutcome
    from steelyard.record.provenance import Provenance
    from steelyard.report.page import Page
    from steelyard.run.cleanup import Removal
    from steelyard.run.executor.run_options import Selection


QUANTITIES_SO_FAR: Final = ("wall_ns", "cpu_ns", "peak_memory_bytes")
"""What is read of each run while a study is run, by the fields of `RunSoFar`."""


@dataclass(frozen=True, slots=True)
class RunSoFar:
    """A completed run of a study that is being run.

    Parameters
    ----------
    cell, block : int
        Of its batch.
    wall_ns, cpu_ns, peak_memory_bytes : float or None
        What it took; ``None`` where it was not measured.
    """

    cell: int
    block: int
    wall_ns: float | None
    cpu_ns: float | None
    peak_memory_bytes: float | None


class ResultComparison(Protocol):
    """What a study says of two of its results."""

    @property
    def is_slower(self) -> bool:
        """Whether anything is slower in the second."""

    @property
    def differs(self) -> bool:
        """Whether anything is different, either way."""

    @property
    def is_undecided(self) -> bool:
        """Whether anything is undecided, or was not compared."""

    def document(self) -> dict[str, Any]:
        """Give it as JSON values."""

    def lines(self) -> Iterable[str]:
        """Give it as text."""


@dataclass(frozen=True, slots=True)
class Study:
    """A question with its design, its analysis and its report.

    Parameters
    ----------
    name : str
        On the command line, in study files and in plans.
    question : str
        What it answers, as one sentence.
    package : str
        Package of its parts, see the text of this module.
    duration : str or None
        ``module:function`` in the package, for a study that knows how long it takes before anything is
        run. It takes the plan, and gives seconds, or ``None``.
    run_inputs : str or None
        ``module:function``, for runs that read files of their own or need something around
        them. It takes the plan, and gives a context manager that makes and removes what is needed and gives a
        function that writes files into the folder of a batch.
    selection : str or None
        ``module:function``, for a study that decides while it is run which runs are still wanted. It
        takes the plan and the result folder, and gives a context manager of a `Selection`.
    so_far : str or None
        ``module:function``, for a study that looks at its data while it is run, whose looks say what may be
        believed before its end. It takes the result folder, the plan and the completed runs, each a
        `RunSoFar`, and gives findings with the estimate ``ratio``.
    follow_up : str or None
        ``module:function``, for a study whose findings lead to something more that is recorded. It takes the
        result folder, and tells whether to analyse again.
    cell_values : str or None
        ``module:function``, for a study whose results are compared by other values than the measurements of
        its runs. It takes the result folder and the plan, and gives a `CellValues` for each cell and metric.
    result_comparison : str or None
        ``module:function``, for a study whose results are compared by something else than cells and verdicts.
        It takes two result folders and the margin that was asked for, or ``None``, and gives a
        `ResultComparison`.
    part : str or None
        ``module:function``, for a study whose parts on other hosts are not run by the executor. It takes the
        plan, the numbers of the batches, the folder of this start, and what is known of the host as a
        `Provenance`; it writes a journal and the provenance into the folder.
    run_hosts : str or None
        ``module:function``, for a study whose runs need certain hosts, by the names in `host_facts`. It takes
        a cell, and gives those that a run of it has for itself; nothing where any host will do.
    lost_host : str or None
        ``module:function``, for a study whose runs fail where one of their hosts is lost. It takes a cell and
        its failed runs, waits until its hosts are back, and gives why the runs failed; nothing where they
        failed by themselves.
    cleanup : str or None
        ``module:function``, for a study that makes things on the host which a killed run leaves. It removes
        those that nobody uses any more, and gives a `Removal` for each.
    examples : tuple of (str, str)
        What its help shows: captions, each with a command.
    debian_packages : tuple of str
        Packages of Debian with the programs that it can use beyond Steelyard itself: the recipe of a package
        installs them.
    build_commands : tuple of str
        Commands that build its programs from the sources in a package, which lies in ``/package``.
    workloads : tuple of str
        Folders of workloads that its runs start without naming them in their commands.
    is_input_calibrated : bool
        Whether its factor ``input`` is ``SIZE_OPERATIONS``, as many operations as take a requested time on
        the machine: cells of two machines are the same if their sizes are, and what is compared is the time
        of an operation.
    has_programs_as_cells : bool
        Whether each cell is a program of the user's, so that two results are compared by how fast each is,
        within the margin of the first, where nothing else is asked for. The same applies to results that were
        imported, and to those of a study without a mode.
    compares_hosts : bool
        Whether hosts that runs are placed on are compared with each other: each gets as much as the others.
    maps_cells : bool
        Whether its ``analyse`` takes a third argument, an `OverCells` that computes tasks of its cells, in
        processes or on a cluster.

    Examples
    --------
    >>> Study("mine", "Does it hold?", "steelyard.studies.imported").can_be_run
    False
    """

    name: str
    question: str
    package: str
    duration: str | None = None
    run_inputs: str | None = None
    selection: str | None = None
    so_far: str | None = None
    follow_up: str | None = None
    cell_values: str | None = None
    result_comparison: str | None = None
    part: str | None = None
    run_hosts: str | None = None
    lost_host: str | None = None
    cleanup: str | None = None
    examples: tuple[tuple[str, str], ...] = ()
    debian_packages: tuple[str, ...] = ()
    build_commands: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    is_input_calibrated: bool = False
    has_programs_as_cells: bool = False
    compares_hosts: bool = False
    maps_cells: bool = False

    @property
    def can_be_run(self) -> bool:
        """Whether there is something to run, and not only results to analyse."""
        return find_spec(f"{self.package}.design") is not None

    @property
    def options(self) -> type[BaseModel]:
        """What a study file may say about it."""
        model: type[BaseModel] = self._part("options").OPTIONS
        return model

    def known_names(self) -> Mapping[str, Collection[str]]:
        """Give the names there are of each kind of thing that a study file may name."""
        from steelyard.run.machine.preparation import TUNING_NAMES  # noqa: PLC0415 - start-up time

        own = getattr(self._part("options"), "known_names", dict)
        return {"tuning": tuple(TUNING_NAMES), **own()}

    def settle(self, options: BaseModel) -> BaseModel:
        """Fill in what depends on other options.

        Raises
        ------
        StudyFileError
            If options contradict each other.
        """
        own: Callable[[BaseModel], BaseModel] = getattr(self._part("options"), "settle", lambda asked: asked)
        return own(options)

    def request(self, options: BaseModel) -> str:
        """Write what was asked for as a JSON object; a plan keeps it as its option ``request``.

        A stopped study is resumed by the same request only. It contains neither what was found on the machine
        nor the place of the result.
        """
        return written_request(self.settle(options))

    def plan(self, options: BaseModel, technologies: Mapping[str, Technology]) -> Plan:
        """Design the study for this machine."""
        planned: Plan = self._part("design").plan_here(options, technologies)
        return planned

    def sketch(self, options: BaseModel, technologies: Mapping[str, Technology]) -> Plan:
        """Design it as far as that takes no measurement."""
        design = self._part("design")
        planned: Plan = getattr(design, "sketch", design.plan_here)(options, technologies)
        return planned

    def seconds(self, plan: Plan) -> float | None:
        """Give the expected time of running a plan [s]; ``None`` if it is unknown."""
        expected: float | None = None if self.duration is None else self._named(self.duration)(plan)
        return expected

    def inputs_of_runs(self, plan: Plan) -> AbstractContextManager[Callable[[Batch, Path], None]]:
        """Make what the runs need around them, and give what writes files into the folder of a batch."""
        from steelyard.run.executor.run_files import write_no_inputs  # noqa: PLC0415 - start-up time

        if self.run_inputs is None:
            return nullcontext(write_no_inputs)
        made: AbstractContextManager[Callable[[Batch, Path], None]] = self._named(self.run_inputs)(plan)
        return made

    def selecting(self, plan: Plan, result: Path) -> AbstractContextManager[Selection]:
        """Give what is asked before each batch whether it is still wanted."""
        from steelyard.run.executor.run_options import EveryBatch  # noqa: PLC0415 - start-up time

        if self.selection is None:
            return nullcontext(EveryBatch())
        found: AbstractContextManager[Selection] = self._named(self.selection)(plan, result)
        return found

    def look_so_far(self, result: Path, plan: Plan, runs: Sequence[RunSoFar]) -> Sequence[Finding]:
        """Give what is known of a study that is being run; nothing where only its end says something."""
        found: Sequence[Finding] = () if self.so_far is None else self._named(self.so_far)(result, plan, runs)
        return found

    def follow(self, result: Path) -> bool:
        """Record what follows from the findings, if it was asked for; say whether to analyse again."""
        return self.follow_up is not None and bool(self._named(self.follow_up)(result))

    def analyse(self, result: Path, options: object = None, *, on: str | None = None) -> FindingSet:
        """Compute the findings of a result folder and write its tables as CSV.

        Parameters
        ----------
        result : Path
            Result folder.
        options : object
            Settings of the analysis; those beside the result, or the plan's, by default.
        on : str or None
            Where its cells are computed, see `steelyard.analyse.mapping.places.opened`.

        Raises
        ------
        UsageError
            If the analysis is not mapped over cells, or `on` names no place.
        """
        if on is None:
            found: FindingSet = self._part("analysis").analyse(result, options)
            return found
        if not self.maps_cells:
            message = (
                f"cannot place the analysis of `{self.name}` on `{on}`: it has no costly part cell by cell"
            )
            raise UsageError(message, hint="leave out `--on`: it is analysed in this process")
        from steelyard.analyse.mapping.places import opened  # noqa: PLC0415 - start-up time

        with opened(on, result) as over:
            mapped: FindingSet = self._part("analysis").analyse(result, options, over)
        return mapped

    def page(self, result: Path) -> Page:
        """Build the report of a result folder."""
        page: Page = self._part("report").build(result)
        return page

    def own_cell_values(self, result: Path, plan: Plan) -> Iterable[CellValues] | None:
        """Give what each cell measured, where that is not simply what its runs measured."""
        if self.cell_values is None:
            return None
        found: Iterable[CellValues] = self._named(self.cell_values)(result, plan)
        return found

    def compare_results(self, first: Path, second: Path, margin: float | None) -> ResultComparison | None:
        """Compare two results by what this study compares them by, beyond cells and verdicts."""
        if self.result_comparison is None:
            return None
        found: ResultComparison = self._named(self.result_comparison)(first, second, margin)
        return found

    def execute_part(self, plan: Plan, wanted: Collection[int], start: Path, provenance: Provenance) -> None:
        """Run a part where this study does so itself."""
        self._named(str(self.part))(plan, wanted, start, provenance)

    def hosts_of(self, cell: Cell) -> tuple[str, ...]:
        """Give the hosts that a run of a cell needs, by name; nothing where any one will do."""
        found: tuple[str, ...] = () if self.run_hosts is None else self._named(self.run_hosts)(cell)
        return found

    def lost_host_of(self, cell: Cell, failed: Sequence[RunOutcome]) -> str:
        """Give why runs failed, where one of their hosts was lost; wait until it is back."""
        found: str = "" if self.lost_host is None else self._named(self.lost_host)(cell, failed)
        return found

    def remove_abandoned(self) -> Sequence[Removal]:
        """Remove what killed runs of this study left on the host; what running ones use stays."""
        removed: Sequence[Removal] = () if self.cleanup is None else self._named(self.cleanup)()
        return removed

    def _part(self, module: str) -> Any:
        """Load a module of the package; one that is missing is a fault of the package, not of the user."""
        name = f"{self.package}.{module}"
        if find_spec(name) is None:
            message = f"study `{self.name}` has no module `{name}`"
            raise InternalError(message, hint="it belongs to every study of this kind", code="internal.study")
        try:
            return import_module(name)
        except UNLOADED as error:
            if name.startswith(f"{OWN}."):
                raise
            reason = f"its module `{name}` fails: {type(error).__name__}: {error}"
            raise STUDIES.unusable(self.name, reason) from error

    def _named(self, place: str) -> Any:
        module, _, function = place.partition(":")
        return getattr(self._part(module), function)


def written_request(settled: BaseModel) -> str:
    """Write settled options as the request that a plan keeps; where results go is no part of it."""
    return json.dumps(settled.model_dump(mode="json", exclude={"out"}), sort_keys=True)


def _fault(name: str, offered: object) -> str | None:
    fault = fault_of(name, offered, Study)
    if fault is None and isinstance(offered, Study) and find_spec(offered.package) is None:
        return f"names the package `{offered.package}`, which does not exist"
    return fault


STUDIES: Final[Registry[Study]] = Registry(STUDY_GROUP, "study", _fault)


def installed(name: str) -> Study:
    """Give a study by name; of one that is not installed its name alone is known.

    Raises
    ------
    CapabilityError
        If the package that offers it cannot be used.
    """
    return STUDIES.find(name) or Study(name, name, "")


def studies() -> dict[str, Study]:
    """Give the studies that can be run, by name."""
    return {name: each for name, each in STUDIES.usable().items() if each.can_be_run}


def study(name: str) -> Study:
    """Give a study that can be run.

    Raises
    ------
    CapabilityError
        If the package that offers it cannot be used.
    UsageError
        Listing the known names.

    Examples
    --------
    >>> study("stability").name
    'stability'
    """
    found = STUDIES.find(name)
    if found is None or not found.can_be_run:
        allowed = ", ".join(f"`{each}`" for each in sorted(studies()))
        message = f"`{name}` is not a study; allowed: {allowed}"
        raise UsageError(message, hint="steelyard run stability --quick", code="usage.study")
    return found


def study_of(name: str, place: Path) -> Study:
    """Give the study that a result folder belongs to.

    Parameters
    ----------
    name : str
        As in the plan or the findings.
    place : Path
        The folder, for the error.

    Raises
    ------
    CapabilityError
        If the package that offers it cannot be used.
    DataError
        If it is not installed.
    """
    found = STUDIES.find(name)
    if found is None:
        known = ", ".join(f"`{each}`" for each in STUDIES.names())
        message = f"`{place}` is a result of the study `{name}`, which is not installed; installed: {known}"
        raise DataError(message, hint="install the package of the study", code="data.study")
    return found
