"""The stability study planned for this machine: host, technologies and workloads looked up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Final

from steelyard.run.isolation.registry import technologies
from steelyard.studies.host_facts import host_facts
from steelyard.studies.stability.design import plan
from steelyard.studies.stability.options import StabilityOptions, settle
from steelyard.studies.stability.workload import Language, Scale, Workload
from steelyard.studies.stability.workload_choice import WorkloadInput
from steelyard.studies.stability.workloads import SOURCE_NAMES, calibrate, expected_output, inputs, workload

if TYPE_CHECKING:
    from steelyard.model import Plan
    from steelyard.run.isolation.interface import Availability
    from steelyard.studies.stability.missing import Technology


QUICK_TOLERANCE_RATIO: Final = 0.5
"""How far from its target an iteration of the fixed size may be before it is calibrated."""


class Depth(Enum):
    """How much a plan is worked out."""

    SKETCH = "sketch"
    """Cells, order and reasons; stored sizes, answers not computed. Takes no measurement."""
    EXECUTABLE = "executable"
    """Sizes calibrated on this host, workloads built, expected answers computed."""


class ProbedTechnologies(Mapping[str, "Availability"]):
    """Whether each isolation technology works here; tried when first asked, since a try takes time."""

    def __getitem__(self, name: str) -> Availability:
        return technologies()[name].probe()

    def __iter__(self) -> Iterator[str]:
        return iter(technologies())

    def __len__(self) -> int:
        return len(technologies())

    def __contains__(self, name: object) -> bool:
        return name in technologies()


def plan_here(
    options: StabilityOptions, depth: Depth, technologies_here: Mapping[str, Technology] | None = None
) -> Plan:
    """Plan a stability study for this machine.

    Parameters
    ----------
    options : StabilityOptions
        What was asked for.
    depth : Depth
        Whether the plan will be executed.
    technologies_here : mapping or None
        Whether each technology works here; by default each is tried when first asked for.

    Returns
    -------
    Plan
        Frozen. That of a sketch has another id than the one that is executed.

    Raises
    ------
    DesignError
        If an isolation or workload is unknown, or no cell can be executed.
    CapabilityError
        If a workload cannot be built.
    """
    asked = settle(options)
    names = tuple(dict.fromkeys(asked.workloads or SOURCE_NAMES))
    chosen = [each for name in names for each in workload_inputs(workload(name), asked, depth)]
    tried = ProbedTechnologies() if technologies_here is None else technologies_here
    return plan(options, host_facts(), tried, chosen)


def workload_inputs(of: Workload, options: StabilityOptions, depth: Depth) -> tuple[WorkloadInput, ...]:
    """Give a workload's inputs at the scale of the study."""
    readiness = of.probe()
    is_executed = depth is Depth.EXECUTABLE and readiness.available
    if is_executed:
        of.prepare()
    scale = _scale(of, options, is_calibrated=is_executed)
    unavailable = None if readiness.available else f"{of.name} cannot be executed here: {readiness.reason}"
    return tuple(
        WorkloadInput(
            workload=of.name,
            input=each.label,
            command=of.command(scale, each.seed),
            expected_output=expected_output(of.kernel, scale, each.seed) if is_executed else None,
            needs=_needs(of),
            unavailable=unavailable,
        )
        for each in inputs(options.seed, of, scale, options.inputs)
    )


def _scale(of: Workload, options: StabilityOptions, *, is_calibrated: bool) -> Scale:
    """Give the scale of a workload; that of a quick study stays, where it can, as it is everywhere.

    Two quick results can then be laid over each other cell by cell; only where an iteration would be
    far from the target is it calibrated.
    """
    first = of.quick if options.quick else of.published
    if not is_calibrated or options.target_iteration_ms is None:
        return first
    if options.quick:
        return calibrate(of, options.target_iteration_ms, start=first, tolerance_ratio=QUICK_TOLERANCE_RATIO)
    return calibrate(of, options.target_iteration_ms, start=first)


def _needs(of: Workload) -> frozenset[str]:
    if of.interpreter is not None:
        return frozenset({of.interpreter.name})
    return frozenset({"C kernels"}) if of.language is Language.C else frozenset()
