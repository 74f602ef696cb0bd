"""Design of the stability study: factors, missing cells, A/A control, order of execution.

The plan is the union of up to three crossings, so that what belongs to one question does not
multiply the cells of another:

1. isolation x setup x affinity x workload, first input, counters off: the study;
2. isolation x ``single,1`` x workload, first input, counters on: in runs of their own, since counting
   disturbs the times;
3. isolation x ``single,1`` x workload, further inputs: input dependence.

**A/A control.** One cell stands in the plan twice, with identical levels and execution; the twin is always
the last cell of the plan. An analysis uses the twin for the A/A claim and leaves it out of everything else.
Both are run in every block at independent random positions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from steelyard.design.blocks import draw_batches
from steelyard.design.factorial import Combination, cross, levels_by_column
from steelyard.design.factors import Factor
from steelyard.design.worker_counts import HostFacts, worker_counts
from steelyard.errors import DesignError
from steelyard.model import Affinity, Cell, Execution, NeighbourKind, Neighbours, Plan
from steelyard.studies.option_types import given
from steelyard.studies.stability.missing import is_machine, measured_workers, missing_rules
from steelyard.studies.stability.options import StabilityOptions, settle
from steelyard.study import written_request

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from steelyard.design.technology import Technology
    from steelyard.studies.stability.workload_choice import WorkloadInput

ISOLATIONS: Final = (
    "bare",
    "sandbox",
    "isolate",
    "docker",
    "podman",
    "crun",
    "runc",
    "bubblewrap",
    "nspawn",
    "vm",
    "docker-sandbox",
    "vm-sandbox",
)
"""All isolations of a full study, in the order of every table."""

CONTAINERS: Final = ("podman", "docker", "runc", "crun", "nspawn", "bubblewrap")
"""Engines first, since graders use them, and those without a daemon beside the measured programs
before those with one; a quick study takes the first that is available."""

OFFERED_PROGRAMS: Final[dict[str, frozenset[str]]] = {
    "vm": frozenset(),
    "vm-sandbox": frozenset(),
}
"""Isolations that hold Steelyard's static programs alone; all others show the host's programs."""

ENVIRONMENT: Final = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C", "HOME": "/"}
T = TypeVar("T")
_SYNTHETIC: Final = {
    "parallel-synth-cpu": NeighbourKind.CPU,
    "parallel-synth-memcpy": NeighbourKind.MEMCPY,
}


def plan(
    options: StabilityOptions,
    host: HostFacts,
    technologies: Mapping[str, Technology],
    workloads: Sequence[WorkloadInput],
) -> Plan:
    """Design a stability study.

    Only technologies in the design are asked whether they work; the first input of a workload is the one that
    all setups run.

    Raises
    ------
    DesignError
        If an isolation or workload is unknown, or no cell can be run.
    """
    settled = settle(options)
    isolations = _isolations(settled, technologies)
    inputs = _chosen(settled, workloads)
    probed = {name: technologies[name] for name in isolations}
    rules = missing_rules(host, probed, inputs, OFFERED_PROGRAMS)
    by_key = {(each.workload, each.input): each for each in inputs}
    combinations = [
        found for factors in _crossings(settled, host, isolations, inputs) for found in cross(factors, rules)
    ]
    cells = [
        Cell(number, found.levels, _execution(settled, host, found, by_key), found.missing)
        for number, found in enumerate(combinations)
    ]
    twin = _twin(cells)
    cells.append(twin[1])
    runnable = [cell.number for cell in cells if cell.missing is None]
    return Plan(
        study="stability",
        seed=settled.seed,
        factors=levels_by_column(combinations),
        cells=tuple(cells),
        batches=draw_batches(runnable, blocks=given(settled.blocks), seed=settled.seed),
        blocks=given(settled.blocks),
        options=_plan_options(settled, host),
        twin=(twin[0].number, twin[1].number),
    ).freeze()


def _isolations(options: StabilityOptions, technologies: Mapping[str, Technology]) -> tuple[str, ...]:
    if options.isolation is not None:
        unknown = [name for name in options.isolation if name not in technologies]
        if unknown:
            allowed = ", ".join(f"`{name}`" for name in technologies)
            message = f"`{unknown[0]}` is not an isolation technology; allowed: {allowed}"
            raise DesignError(
                message, hint="`steelyard doctor` says which work here", code="design.isolation"
            )
        return tuple(dict.fromkeys(options.isolation))
    if not options.quick:
        return tuple(name for name in ISOLATIONS if name in technologies)
    known = [name for name in CONTAINERS if name in technologies]
    container = next((name for name in known if technologies[name].available), known[0] if known else None)
    wanted = ("bare", "sandbox", container, "vm")
    return tuple(name for name in wanted if name is not None and name in technologies)


def _chosen(options: StabilityOptions, workloads: Sequence[WorkloadInput]) -> tuple[WorkloadInput, ...]:
    known = tuple(dict.fromkeys(each.workload for each in workloads))
    names = options.workloads if options.workloads is not None else known
    unknown = [name for name in names if name not in known]
    if unknown or not known:
        allowed = ", ".join(f"`{name}`" for name in known) or "none is installed"
        message = f"`{unknown[0] if unknown else 'workloads'}` is not a workload; allowed: {allowed}"
        raise DesignError(
            message, hint="docs/reference/study-file.md lists the workloads", code="design.workload"
        )
    return tuple(
        each
        for name in dict.fromkeys(names)
        for each in [found for found in workloads if found.workload == name][: options.inputs]
    )


def _crossings(
    options: StabilityOptions, host: HostFacts, isolations: Sequence[str], inputs: Sequence[WorkloadInput]
) -> Iterator[list[Factor]]:
    isolation = Factor.of("isolation", isolations)
    first = {each.workload: each for each in reversed(inputs)}
    main = [(each.workload, each.input) for each in inputs if first[each.workload] is each]
    further = [(each.workload, each.input) for each in inputs if first[each.workload] is not each]

    def factors(
        setups: Sequence[tuple[str, str]], pinned: Sequence[str], work: Sequence[tuple[str, str]]
    ) -> list[Factor]:
        return [
            isolation,
            Factor.compound(("setup_type", "setup_size"), setups),
            Factor.of("affinity", pinned),
            Factor.compound(("workload", "input"), work),
        ]

    off, on = Factor.of("counters", ["off"]), Factor.of("counters", ["on"])
    affinities = tuple(dict.fromkeys(given(options.affinity)))
    yield [*factors(_setups(options, host), affinities, main), off]
    single = [("single", "1")]
    if options.counters:
        yield [*factors(single, ["none"], main), on]
    if further:
        yield [*factors(single, ["none"], further), off]


def _setups(options: StabilityOptions, host: HostFacts) -> list[tuple[str, str]]:
    """Give kinds of load with their sizes; one worker alone is ``single,1`` whatever the kind."""
    workers = options.workers
    sizes = tuple(sorted(set(workers))) if isinstance(workers, tuple) else worker_counts(host)
    found: list[tuple[str, str]] = []
    for kind in dict.fromkeys(given(options.setups)):
        if kind == "single":
            found.append((kind, "1"))
        else:
            found.extend((kind, str(size)) for size in sizes if size > 1)
    if not found:
        message = "`setups` names only parallel ones, but `workers` has no number above 1"
        raise DesignError(message, hint='add "single" to `setups`, or 2 to `workers`', code="design.setups")
    return found


def _iterations(options: StabilityOptions, host: HostFacts, levels: Mapping[str, str]) -> int:
    """Give the launches per worker and block; an emulated machine has a number of its own."""
    is_emulated = is_machine(levels) and not host.hardware_virtualisation
    return given(options.emulated_iterations if is_emulated else options.iterations)


def _execution(
    options: StabilityOptions,
    host: HostFacts,
    found: Combination,
    inputs: Mapping[tuple[str, str], WorkloadInput],
) -> Execution | None:
    if found.missing is not None:
        return None
    levels = found.levels
    work = inputs[levels["workload"], levels["input"]]
    kind = _SYNTHETIC.get(levels["setup_type"])
    return Execution(
        isolation=levels["isolation"],
        command=work.command,
        workers=measured_workers(levels),
        iterations=_iterations(options, host, levels),
        affinity=Affinity(levels["affinity"]),
        neighbours=None if kind is None else Neighbours(kind, int(levels["setup_size"]) - 1),
        environment={**ENVIRONMENT, **work.environment},
        expected_output=work.expected_output,
        counters=given(options.counters) if levels["counters"] == "on" else (),
        limits=options.limits.limits(),
    )


def _twin(cells: Sequence[Cell]) -> tuple[Cell, Cell]:
    """Give a cell that can be run anywhere, and its twin."""
    runnable = [cell for cell in cells if cell.missing is None]
    if not runnable:
        reasons = "; ".join(dict.fromkeys(cell.missing for cell in cells if cell.missing is not None))
        message = f"the design has no cell that can run here: {reasons}"
        raise DesignError(message, hint="`steelyard doctor` names the repairs", code="design.empty")
    original = runnable[0]
    return original, Cell(len(cells), dict(original.levels), original.execution)


def _plan_options(options: StabilityOptions, host: HostFacts) -> dict[str, str | int | float | bool | None]:
    return {
        "mode": "quick" if options.quick else "full",
        "origin": "executed",
        "tolerance_percent": options.tolerance_percent,
        "margin_percent": options.margin_percent,
        "target_iteration_ms": options.target_iteration_ms,
        "gate": options.gate,
        "gate_retries": options.gate_retries,
        "request": written_request(options),
        "tuning": ",".join(options.tuning),
        "cpu_count": host.cpu_count,
        "core_count": host.core_count,
        "memory_node_count": host.memory_node_count,
        "hardware_virtualisation": host.hardware_virtualisation,
    }
