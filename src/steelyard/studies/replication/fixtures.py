"""What the runs need around them: their ``experiment.json``, and a container engine that is started once."""

from __future__ import annotations

import json
import os
import platform
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from steelyard.design.seeds import Purpose, generator
from steelyard.errors import CapabilityError
from steelyard.studies.placed.part import NODE_VARIABLE
from steelyard.studies.replication.budget import placed_on
from steelyard.studies.replication.configurations import configurations_of
from steelyard.studies.replication.devices.engines import container_engines
from steelyard.studies.replication.experiment_record import EXPERIMENT_FILE, FORMAT
from steelyard.studies.replication.options import options_of
from steelyard.studies.replication.programs import absence, find_programs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from steelyard.model import Batch, Plan

LARGEST_SEED: Final = 1 << 32


@contextmanager
def run_inputs(plan: Plan) -> Iterator[Callable[[Batch, Path], None]]:
    """Start the engine of the containers, and give what lays into the folder of a batch what is asked for.

    Raises
    ------
    CapabilityError
        If this host lacks a program of a run that was planned for it from elsewhere, or the engine does not
        start any more.
    """
    if placed_on(plan):
        _require_programs(plan)
    documents = _Documents(plan)
    used = plan.options["container"]
    with container_engines([str(used)] if used and _uses_containers(plan) else []) as engines:

        def write_inputs(batch: Batch, folder: Path) -> None:
            document = {**documents.of(batch), "engines": engines}
            text = json.dumps(document, indent=1, ensure_ascii=False)
            (folder / EXPERIMENT_FILE).write_text(f"{text}\n", encoding="utf-8")

        yield write_inputs


def _require_programs(plan: Plan) -> None:
    """Refuse a host on which runs would fail one after another."""
    for cell in plan.cells:
        if cell.execution is None:
            continue
        experiment, configuration = cell.levels["experiment"], cell.levels["configuration"]
        lacking = absence(experiment, configuration, find_programs(cell.execution.environment))
        if lacking is not None:
            host = os.environ.get(NODE_VARIABLE) or platform.node()
            message = f"cannot run {experiment} {configuration} on host `{host}`: {lacking}"
            hint = "install it there, or leave the host out"
            raise CapabilityError(message, hint=hint, code="capability.replication")


def _uses_containers(plan: Plan) -> bool:
    """Whether a run of the plan has a role in a container on this host."""
    placement = json.loads(str(plan.options["placement"]))
    executed = {tuple(plan.cell_of(batch).levels.values()) for batch in plan.batches}
    return any(
        role["container"]
        for experiment, _, setting in executed
        for role in placement[experiment][setting].values()
    )


class _Documents:
    """Writes what a run is asked for."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        # Of hosts that a study is placed on, each binds to a CPU of its own.
        first_cpu = min(os.sched_getaffinity(0)) if placed_on(plan) else int(plan.options["first_cpu"] or 0)
        self._parameters = configurations_of(options_of(plan), first_cpu)
        self._devices = json.loads(str(plan.options["devices"]))
        self._placement = json.loads(str(plan.options["placement"]))

    def of(self, batch: Batch) -> dict[str, Any]:
        """Give the content of ``experiment.json``."""
        levels = self._plan.cell_of(batch).levels
        experiment, configuration, setting = (
            levels[name] for name in ("experiment", "configuration", "setting")
        )
        return {
            "format": FORMAT,
            "experiment": experiment,
            "configuration": {
                "name": configuration,
                "parameters": self._parameters[experiment][configuration],
            },
            "setting": {"name": setting, "roles": self._placement[experiment][setting]},
            "devices": self._devices,
            "block": batch.block + 1,
            "seed": seed_of(self._plan.seed, batch.block),
        }


def seed_of(seed: int, block: int) -> int:
    """Give the seed of the arrivals of a block: all launches of a block are sent the same requests."""
    return int(generator(seed, Purpose.ARRIVALS, block).integers(LARGEST_SEED))
