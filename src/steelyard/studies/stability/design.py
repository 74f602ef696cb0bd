"""The stability study planned for this machine: host, technologies and workloads looked up."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from pydantic import TypeAdapter, ValidationError

from steelyard.run.machine.host import read_fingerprint
from steelyard.run.state import user_state_folder, write_durably
from steelyard.studies.host_facts import host_facts
from steelyard.studies.stability.factorial_plan import plan
from steelyard.studies.stability.options import StabilityOptions, settle
from steelyard.studies.stability.workload import Language, Scale, Workload
from steelyard.studies.stability.workload_choice import WorkloadInput
from steelyard.studies.stability.workloads import SOURCE_NAMES, calibrate, expected_output, inputs, workload

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from steelyard.design.technology import Technology
    from steelyard.model import Plan


KEPT_TOLERANCE_RATIO: Final = 0.5
"""How far from its target an iteration of a known size may be before it is calibrated (again)."""

_SIZES: Final = TypeAdapter(dict[str, Scale])


def plan_here(options: StabilityOptions, technologies: Mapping[str, Technology]) -> Plan:
    """Plan a stability study for this machine: sizes calibrated, workloads built, answers computed.

    Raises
    ------
    DesignError
        If an isolation or workload is unknown, or no cell can be run.
    CapabilityError
        If a workload cannot be built.
    """
    return _plan(options, technologies, is_executed=True)


def sketch(options: StabilityOptions, technologies: Mapping[str, Technology]) -> Plan:
    """Give cells, order and reasons, with stored sizes and no answers; its id is not that of the plan."""
    return _plan(options, technologies, is_executed=False)


def _plan(options: StabilityOptions, technologies: Mapping[str, Technology], *, is_executed: bool) -> Plan:
    asked = settle(options)
    names = tuple(dict.fromkeys(asked.workloads or SOURCE_NAMES))
    chosen = [
        each for name in names for each in workload_inputs(workload(name), asked, is_executed=is_executed)
    ]
    return plan(options, host_facts(), technologies, chosen)


def workload_inputs(
    of: Workload, options: StabilityOptions, *, is_executed: bool
) -> tuple[WorkloadInput, ...]:
    """Give a workload's inputs at the scale of the study."""
    readiness = of.probe()
    is_executed = is_executed and readiness.available
    if is_executed:
        of.prepare()
    scale = _scale(of, options, is_calibrated=is_executed)
    unavailable = None if readiness.available else f"{of.name} cannot run here: {readiness.reason}"
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
    """Give the scale of a workload: the one that was found on this host before, or one found now.

    Two results are laid over each other cell by cell, and cells are told apart by their sizes: what a
    repeated study calibrates anew differs a little each time. The sizes of a quick study are the same on
    every host where their iterations are not far from the target.
    """
    first = of.quick if options.quick else of.published
    target_ms = options.target_iteration_ms
    if not is_calibrated or target_ms is None:
        return first
    key = f"{of.name}, {'quick, ' if options.quick else ''}{target_ms} ms"
    known = _known_sizes().get(key)
    if known is None and not options.quick:
        found = calibrate(of, target_ms, start=first)
    else:
        found = calibrate(of, target_ms, start=known or first, tolerance_ratio=KEPT_TOLERANCE_RATIO)
    if found != known:
        # A host whose state cannot be written calibrates each time.
        with suppress(OSError):
            write_durably(_sizes_path(), _SIZES.dump_json(_known_sizes() | {key: found}, indent=1).decode())
    return found


def _sizes_path() -> Path:
    return user_state_folder() / "sizes" / f"{read_fingerprint().host_id}.json"


def _known_sizes() -> dict[str, Scale]:
    """Give the sizes found before; none where the file is absent or damaged, since they are found again."""
    try:
        return _SIZES.validate_json(_sizes_path().read_bytes())
    except (OSError, ValidationError):
        return {}


def _needs(of: Workload) -> frozenset[str]:
    if of.interpreter is not None:
        return frozenset({of.interpreter.name})
    return frozenset({"C kernels"}) if of.language is Language.C else frozenset()
