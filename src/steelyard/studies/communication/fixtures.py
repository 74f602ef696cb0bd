"""What the runs of a communication study need around them: links, and lists of operations."""

from __future__ import annotations

import json
import os
import shlex
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steelyard.run.executor.run_files import PLACE
from steelyard.run.machine.host import read_topology
from steelyard.studies.communication.design import (
    PLAN_FILE,
    SCRIPT,
    endpoints_command,
    trace_options,
    two_cores,
)
from steelyard.studies.communication.fetching import fetched
from steelyard.studies.communication.findings.transport_facts import write_facts
from steelyard.studies.communication.options import NO_LINK, CommunicationOptions, settle, size_plan
from steelyard.studies.communication.pairs import in_job, is_pair
from steelyard.studies.communication.places import site_of_pair, sites_of
from steelyard.studies.communication.sizes import draw_operations
from steelyard.studies.communication.transport.mpi import Mpi
from steelyard.studies.communication.transport.registry import transports
from steelyard.studies.option_types import given

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from steelyard.model import Batch, Plan
    from steelyard.studies.communication.places import Site
    from steelyard.studies.communication.transport.interface import Transport

LINK_FACTS: Final = "link.json"


@contextmanager
def run_inputs(plan: Plan) -> Iterator[Callable[[Batch, Path], None]]:
    """Make the links of a study, and give what lays lists and scripts into the folder of a batch.

    Raises
    ------
    CapabilityError
        If this host cannot make a link.
    """
    options = options_of(plan)
    known = transports()
    facts: dict[str, Mapping[str, str]] = {}
    with sites_of(options) as sites:

        def write_inputs(batch: Batch, folder: Path) -> None:
            drawn = draw_operations(
                size_plan(options), plan.seed, batch.block, warm_up=given(options.warm_up)
            )
            (folder / PLAN_FILE).write_text(drawn.csv(), encoding="ascii")
            levels = plan.cell_of(batch).levels
            name = levels["transport"]
            if name not in facts:
                facts[name] = known[name].facts()
            write_facts(folder, facts[name])
            if levels["link"] != NO_LINK:
                link = levels["link"]
                site = site_of_pair(link, options) if is_pair(link) else sites[link]
                script = _script(folder, known[name], options, site)
                # Whoever runs a batch fills this in, but in the plan's command alone.
                (folder / SCRIPT).write_text(
                    script.replace("{block}", str(batch.block + 1)), encoding="utf-8"
                )

        yield write_inputs


def _script(folder: Path, transport: Transport, options: CommunicationOptions, site: Site) -> str:
    asked = trace_options(options, two_cores(read_topology()))
    canary = Path(str(asked.canary).replace(PLACE, str(folder)))
    # CPUs and memory of another host are not this host's.
    asked = replace(asked, canary=canary) if site.is_here else replace(asked, canary=None, cpus=None)
    command = endpoints_command(transport, folder, asked, site.place)
    nodes = site.place.nodes
    started = {} if nodes is None or not isinstance(transport, Mpi) else {"starter": transport.way(nodes)}
    facts = json.dumps({**site.facts, **started}, indent=1, sort_keys=True)
    (folder / LINK_FACTS).write_text(facts + "\n", encoding="utf-8")
    if site.is_here:
        return f"exec {shlex.join(command)}\n"
    enters = fetched(command, folder, site.place.enter)
    if nodes is None:
        return enters
    # Beside the folder of the run, as the canary: what Slurm says of user and site is not kept.
    job = folder.with_name(f"{folder.name}.job")
    job.write_text(in_job(os.environ), encoding="utf-8")
    return f". {shlex.quote(str(job))}\n{enters}"


def options_of(plan: Plan) -> CommunicationOptions:
    """Give the options a plan was designed from; of a recording, what is stated of its network."""
    request = plan.options.get("request")
    if request is None:
        stated = plan.options.get("nominal_link")
        return settle(CommunicationOptions(link=(str(stated),) if stated else ()))
    asked = json.loads(str(request))
    return settle(CommunicationOptions.model_validate(asked, strict=False))
