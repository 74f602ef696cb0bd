"""Design of the replication study: experiments, what they measure, and where; launches in random order.

A cell is one configuration of one experiment in one setting. A block is one repetition: each cell once, in an
order drawn from the seed. With a budget of time the plan holds more blocks than are needed, and which of
their cells are run is decided while they are (`until_decided`). A run is one launch (a fork of JMH, a
loop of calls, a deployment under load): the conductor
(``python -m steelyard.studies.replication.experiments``) reads ``experiment.json`` in the folder of the run
and leaves the files of `experiment_record`.

**A/A control.** One cell stands in the plan twice. The twin is last.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from steelyard.design.blocks import draw_batches
from steelyard.errors import CapabilityError, UsageError
from steelyard.model import Cell, Plan
from steelyard.studies.host_facts import planned_hosts
from steelyard.studies.option_types import given
from steelyard.studies.replication.cells import ISOLATION, cells_of, settings_of
from steelyard.studies.replication.configurations import configurations_of
from steelyard.studies.replication.interventions import interventions_of
from steelyard.studies.replication.options import FEWEST_BLOCKS, ReplicationOptions, settle
from steelyard.studies.replication.placement import host_here
from steelyard.study import written_request

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic import BaseModel

    from steelyard.design.technology import Technology
    from steelyard.studies.replication.cells import Host

TWINS: Final = (("e2", "none-baseline"), ("causes", "as-it-is"), ("e1", "invocation-c2"))
"""Cells that are run twice, by preference: short, and what others are compared with."""


def plan_here(options: BaseModel, technologies: Mapping[str, Technology]) -> Plan:
    """Plan a replication study for this machine and its devices.

    Raises
    ------
    UsageError
        If the options contradict each other, or name what there is not.
    CapabilityError
        If nothing that was asked for can be run here.
    """
    technologies.get(ISOLATION)  # is tried, and stands in the provenance
    settled = settle(options)
    hosts = planned_hosts()
    if not hosts:
        return plan(settled, host_here(settled, technologies))
    asked = ReplicationOptions.model_validate(options.model_dump())
    here = host_here(settled.model_copy(update={"budget_minutes": asked.budget_minutes}), technologies)
    is_decided_later = asked.blocks is None and settled.budget_minutes is not None
    return plan(settled, here, Placed(hosts, FEWEST_BLOCKS if is_decided_later else given(settled.blocks)))


@dataclass(frozen=True, slots=True)
class Placed:
    """The hosts that a study is placed on, by name, and the number of blocks that each of them runs."""

    hosts: tuple[str, ...]
    blocks: int


def plan(options: ReplicationOptions, host: Host, placed: Placed | None = None) -> Plan:
    """Design a replication study.

    Parameters
    ----------
    options : ReplicationOptions
        Settled.
    host : Host
        What decides which cells there are.
    placed : Placed or None
        The hosts that it is placed on; nobody looks at their data before the end.

    Raises
    ------
    UsageError
        If a name in the options is not known.
    CapabilityError
        If nothing that was asked for can be run here.
    """
    configurations = configurations_of(options, host.cpus[0])
    _require_known_settings(options, configurations, host)
    cells = cells_of(options, configurations, host)
    runnable = [cell for cell in cells if cell.missing is None]
    if not runnable:
        first = cells[0]
        told = f"{' '.join(first.levels.values())}: {first.missing}"
        message = f"nothing that was requested can run here: {told}"
        raise CapabilityError(message, hint="make deps-replication", code="capability.replication")
    first = _compared_with_itself(runnable)
    twin = Cell(len(cells), dict(first.levels), first.execution)
    blocks = given(options.blocks) if placed is None else placed.blocks * len(placed.hosts)
    names = ("experiment", "configuration", "setting")
    return Plan(
        study="replication",
        seed=options.seed,
        factors={name: tuple(dict.fromkeys(cell.levels[name] for cell in cells)) for name in names},
        cells=(*cells, twin),
        batches=draw_batches([cell.number for cell in (*runnable, twin)], blocks=blocks, seed=options.seed),
        blocks=blocks,
        twin=(first.number, twin.number),
        options={
            "mode": "quick" if options.quick else "full",
            "origin": "executed",
            "margin_percent": options.margin_percent,
            "margins": json.dumps(options.margins or {}),
            "budget_minutes": options.budget_minutes if placed is None else None,
            "container": host.ground.container,
            "first_cpu": host.cpus[0],
            "devices": json.dumps(host.devices),
            "devices_note": host.note,
            "placement": json.dumps(_placement(configurations, host)),
            "interventions": json.dumps(_interventions(options, host.cpus[0])),
            "planted": options.planted,
            "gate": options.gate,
            "gate_retries": options.gate_retries,
            "tuning": ",".join(options.tuning),
            "request": written_request(options),
            **({} if placed is None else {"placed_on": json.dumps(placed.hosts)}),
        },
    ).freeze()


def _compared_with_itself(runnable: Sequence[Cell]) -> Cell:
    """Choose the cell of the A/A control."""
    for experiment, configuration in TWINS:
        for cell in runnable:
            if (cell.levels["experiment"], cell.levels["configuration"]) == (experiment, configuration):
                return cell
    return runnable[0]


def _require_known_settings(
    options: ReplicationOptions, configurations: Mapping[str, object], host: Host
) -> None:
    known = dict.fromkeys(
        setting.name for experiment in configurations for setting in settings_of(experiment, host.ground)
    )
    strange = [name for name in options.settings or () if name not in known]
    if strange:
        message = f"`settings` names `{strange[0]}`, which these devices do not have"
        raise UsageError(message, hint=f"allowed: {', '.join(known)}")


def _placement(configurations: Mapping[str, object], host: Host) -> dict[str, object]:
    """Give the places of the roles by experiment and setting: what the runs are given, kept in the plan."""
    return {
        experiment: {
            setting.name: {role: place.document() for role, place in setting.roles.items()}
            for setting in settings_of(experiment, host.ground)
            if setting.missing is None
        }
        for experiment in configurations
    }


def _interventions(options: ReplicationOptions, first_cpu: int) -> list[dict[str, object]]:
    """Give the interventions as the plan keeps them for the report."""
    if "causes" not in given(options.experiments):
        return []
    return [
        {"name": each.name, "sentence": each.sentence, "change": dict(each.change)}
        for each in interventions_of(options, first_cpu)
    ]
