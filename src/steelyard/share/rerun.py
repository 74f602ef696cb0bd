"""What repeating a package would run, said before anything is: a package comes from a stranger."""

from __future__ import annotations

import os
import shlex
import shutil
from collections import Counter
from typing import TYPE_CHECKING, Final

from steelyard.share.comparable import comparable_levels
from steelyard.share.package.entry_names import quoted, visible
from steelyard.share.package.texts import study_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from steelyard.model import Cell, Plan

_SHOWN_COMMANDS: Final = 40
_PLACES: Final = ("{work}", "{workloads}")


def said_of(plan: Plan, places: Iterable[str] = ()) -> Iterator[str]:
    """Say what the plan of a package runs, and with which rights it would be here.

    A study is planned anew on this machine from its request; the request is shown whole, because it may name
    commands that the plan does not show. Nothing foreign reaches the terminal but visible characters.

    Parameters
    ----------
    plan : Plan
        Of the package.
    places : iterable of str
        Where it would be run, if not on this machine alone: one device or host each.
    """
    size = f"{len(plan.batches)} batches of {len(plan.cells)} cells"
    yield f"study {quoted(plan.study)}, seed {plan.seed}, {size}"
    request = study_file(plan)
    if request is not None:
        yield "it asks this machine for:"
        yield from (f"  {visible(line)}" for line in request.splitlines())
    commands = executed_commands(plan)
    yield f"its plan ran {len(commands)} different commands there:"
    for command, count in list(commands.items())[:_SHOWN_COMMANDS]:
        yield f"  {count} x {visible(command)}"
    if len(commands) > _SHOWN_COMMANDS:
        yield f"  and {len(commands) - _SHOWN_COMMANDS} more, all in `result/plan.json` of the package"
    yield from (f"on {visible(place)}" for place in places)
    isolations = sorted({cell.execution.isolation for cell in plan.cells if cell.execution is not None})
    yield f"isolation: {', '.join(map(visible, isolations)) or 'none'}"
    yield from _rights(plan, isolations)


def executed_commands(plan: Plan) -> dict[str, int]:
    """Give the commands of a plan with the number of their cells."""
    return dict(
        Counter(shlex.join(cell.execution.command) for cell in plan.cells if cell.execution is not None)
    )


def absent_programs(plan: Plan) -> list[str]:
    """Give the programs that a plan runs by themselves and that this machine does not have."""
    programs = {cell.execution.command[0] for cell in plan.cells if cell.execution is not None}
    return sorted(
        program for program in programs if not program.startswith(_PLACES) and shutil.which(program) is None
    )


def newly_missing(theirs: Plan, ours: Plan) -> list[str]:
    """Name the cells that a package ran and that cannot run here, with the reason.

    Parameters
    ----------
    theirs, ours : Plan
        Plan of the package, and the plan of the same request on this machine.
    """
    here = {_key(ours, cell): cell for cell in ours.cells}
    lines = []
    for cell in theirs.cells:
        if cell.execution is None:
            continue
        own = here.get(_key(theirs, cell))
        name = ", ".join(cell.levels.values())
        if own is None:
            lines.append(f"{name}: the plan for this machine has no such cell")
        elif own.execution is None:
            lines.append(f"{name}: {own.missing}")
    return lines


def _key(plan: Plan, cell: Cell) -> tuple[tuple[str, str], ...]:
    levels, _ = comparable_levels(plan.study, cell.levels)
    return tuple(levels.items())


def _rights(plan: Plan, isolations: list[str]) -> Iterator[str]:
    user = "root: every right on this machine" if os.geteuid() == 0 else f"user {os.geteuid()}"
    yield f"rights: {user}"
    if "bare" in isolations:
        yield "`bare` isolates nothing: these commands can read, change and send whatever this user can"
    tuning = str(plan.options.get("tuning") or "")
    if tuning:
        yield f"machine settings that would be changed meanwhile: {visible(tuning)}"
