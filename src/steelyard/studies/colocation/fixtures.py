"""What the trials need around them: control groups below which they make their own, and their plans."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.model import Execution
from steelyard.run.executor.run_files import in_folder
from steelyard.run.machine.cpu_groups import cpu_controller, groups_for_trials
from steelyard.run.programs import load_program
from steelyard.studies.colocation.bounded import BOUND_FILE, bounded_script, divides_real_time
from steelyard.studies.colocation.guest.placement import GROUPS_VERSION, IN_GUEST
from steelyard.studies.colocation.guest.trials import GUEST_GROUPS
from steelyard.studies.colocation.options import options_of
from steelyard.studies.colocation.placement import conducting
from steelyard.studies.colocation.policies import Place, policy_of
from steelyard.studies.colocation.scheduling import read_scheduling
from steelyard.studies.colocation.trial_plan import TRIAL_FILE, Site, seed_of, trial_document

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from steelyard.model import Batch, Plan
    from steelyard.run.machine.cpu_groups import CpuController
    from steelyard.studies.colocation.options import ColocationOptions


@contextmanager
def run_inputs(plan: Plan) -> Iterator[Callable[[Batch, Path], None]]:
    """Make the control groups of a study, and give what lays the plan of a trial into the folder of a batch.

    Raises
    ------
    CapabilityError
        If this host cannot make groups, and a policy uses them.
    """
    options = options_of(plan)
    controller = None if options.in_vm else _controller_needed(plan)
    if controller is None:
        yield _furnish(plan, options, _site(plan))
        return
    with groups_for_trials(controller) as group:
        yield _furnish(plan, options, _site(plan, group, controller.version))


def _controller_needed(plan: Plan) -> CpuController | None:
    """Give the controller that makes the trials' groups, if a policy uses them or can be bounded by them."""
    used = [policy_of(cell.levels["policy"]) for cell in plan.cells if cell.execution is not None]
    if any(policy.uses_groups for policy in used):
        return cpu_controller()
    if not any(policy.is_real_time for policy in used):
        return None
    controller = cpu_controller()
    return None if controller.folder is None else controller


def _furnish(plan: Plan, options: ColocationOptions, site: Site) -> Callable[[Batch, Path], None]:
    def write_inputs(batch: Batch, folder: Path) -> None:
        levels = plan.cell_of(batch).levels
        seed = seed_of(plan.seed, batch.block)
        policy = policy_of(levels["policy"])
        document = trial_document(options, policy, levels["load"], seed, site)
        (folder / TRIAL_FILE).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        if policy.is_real_time and not options.in_vm:
            command = in_folder(Execution("bare", conducting(load_program())), folder).command
            group = site.groups if divides_real_time(site.groups) else None
            (folder / BOUND_FILE).write_text(bounded_script(command, group), encoding="utf-8")

    return write_inputs


def _site(plan: Plan, groups: Path | None = None, version: int = 2) -> Site:
    place = Place(_numbers(plan, "cpus"), _numbers(plan, "client_cpus"), is_whole=False)
    iterations = plan.options["work_iterations"]
    if plan.options["in_vm"]:
        return Site(place, int(iterations or 0), Path(GUEST_GROUPS), GROUPS_VERSION, IN_GUEST)
    return Site(place, int(iterations or 0), groups, version, read_scheduling().programs)


def _numbers(plan: Plan, option: str) -> tuple[int, ...]:
    return tuple(int(word) for word in str(plan.options[option]).split(",") if word)
