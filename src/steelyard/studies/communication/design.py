"""Design of the communication study: transports and links, replications in random order, one launch each.

A cell is one transport over one link. A block is one replication: each cell once, in an order drawn from the
seed. Each replication works through a list of operations of its own, drawn from the seed, so that a model
fitted to some replications is judged by sizes it has not seen. The last replication is held out.

A run is one launch of both endpoints by Steelyard's launcher, so that all their processes are accounted and
ended with it. What it leaves, the trace, is kept in the result folder. Links between network namespaces are
made when the study is run; the command of such a run is a script beside its list.
"""

from __future__ import annotations

import shlex
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steelyard.design.blocks import draw_batches
from steelyard.errors import CapabilityError, UsageError
from steelyard.model import Cell, Execution, Plan
from steelyard.run.executor.resident import program_environment
from steelyard.run.executor.run_files import PLACE
from steelyard.run.machine.host import read_topology
from steelyard.studies.communication.findings.transport_facts import THRESHOLDS_FILE
from steelyard.studies.communication.options import (
    HELD_OUT,
    NO_LINK,
    settle,
    size_plan,
)
from steelyard.studies.communication.pairs import crosses
from steelyard.studies.communication.places import links_of
from steelyard.studies.communication.sizes import mean_size
from steelyard.studies.communication.transport.interface import HERE, TraceOptions
from steelyard.studies.communication.transport.mpi import Mpi
from steelyard.studies.communication.transport.registry import transports
from steelyard.studies.option_types import given
from steelyard.study import written_request

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic import BaseModel

    from steelyard.design.technology import Technology
    from steelyard.run.machine.host import Topology
    from steelyard.studies.communication.options import CommunicationOptions
    from steelyard.studies.communication.transport.interface import Invocation, Place, Transport

ISOLATION: Final = "bare"
PLAN_FILE: Final = "plan.csv"
SCRIPT: Final = "endpoints.sh"
"""Command of a run over a link: its addresses are known when the link is made."""

CANARY: Final = Path(f"{PLACE}.canary")
"""Beside the folder of a run, so that it is no part of the trace."""

KEPT_ERROR_BYTES: Final = 4096
MS_PER_S: Final = 1000
TWO_ENDPOINTS: Final = 2
BLOCK_BYTES: Final = 1 << 27
"""Bytes of a block's messages: a second on a link of 1 Gbit/s."""

_TOGETHER: Final = """{0} & zero=$!
{1} & one=$!
wait $zero; zero=$?
wait $one; one=$?
case $zero in 0|3) test $one -eq 0 || zero=$one;; esac
exit $zero"""
"""Starts both endpoints and waits for both; that the other side was lost says less than why it was."""

_THEN_LOOK: Final = """{0}
status=$?
if test $status -eq 0 && test {{block}} -eq 1; then {1} > {2}; fi
exit $status"""
"""Looks for thresholds once per study; that this fails is no reason to doubt the trace."""


def plan_here(options: BaseModel, technologies: Mapping[str, Technology]) -> Plan:
    """Plan a communication study for this machine.

    Raises
    ------
    UsageError
        If the options contradict each other, or a transport does not cross a link.
    CapabilityError
        If a transport that was asked for by name, or every one, does not work here.
    """
    technologies.get(ISOLATION)  # is tried, and stands in the provenance
    settled = settle(options)
    return plan(settled, transports(), links_of(settled), two_cores(read_topology()))


def plan(
    options: CommunicationOptions,
    known: Mapping[str, Transport],
    links: tuple[str, ...],
    cpus: tuple[int, int] | None,
) -> Plan:
    """Design a communication study."""
    names = _considered(options, known, links)
    absent = _absent(names, known)
    if options.transport is not None or len(absent) == len(names):
        _require_present(absent)
    crossed = product(links, names)
    connected = [(link, name) for link, name in crossed if link == NO_LINK or crosses(link, known[name])]
    cells = tuple(
        _cell(number, (known[name], link), options, cpus, absent.get(name))
        for number, (link, name) in enumerate(connected)
    )
    blocks = given(options.replications)
    runnable = [cell.number for cell in cells if cell.missing is None]
    return Plan(
        study="communication",
        seed=options.seed,
        factors={"transport": tuple(names), "link": links},
        cells=cells,
        batches=draw_batches(runnable, blocks=blocks, seed=options.seed),
        blocks=blocks,
        options={
            "mode": "quick" if options.quick else "full",
            "origin": "executed",
            "held_out": HELD_OUT,
            "warm_up": given(options.warm_up),
            "margin_percent": options.margin_percent,
            "gate": options.gate,
            "gate_retries": options.gate_retries,
            "tuning": ",".join(options.tuning),
            "validation": options.validation,
            "request": written_request(options),
        },
    ).freeze()


def two_cores(topology: Topology) -> tuple[int, int] | None:
    """Choose the CPUs of the two endpoints: the first threads of two cores that share a cache if they can.

    Returns
    -------
    (int, int) or None
        ``None`` where this process may use one core only: then the scheduler decides.
    """
    cores: dict[int, tuple[int, int]] = {}
    for cpu in topology.cpus:
        if cpu.id in topology.allowed:
            cores.setdefault(cpu.core, (cpu.last_level_cache, cpu.id))
    if len(cores) < TWO_ENDPOINTS:
        return None
    found = sorted(cores.values())
    caches = [cache for cache, _ in found]
    shared = next((cache for cache in caches if caches.count(cache) >= TWO_ENDPOINTS), None)
    first, second, *_ = (cpu for cache, cpu in found if shared is None or cache == shared)
    return first, second


def together(invocations: Sequence[Invocation]) -> tuple[str, ...]:
    """Give one command that starts all endpoints and ends with the status that says most.

    Examples
    --------
    >>> from steelyard.studies.communication.transport.interface import Invocation
    >>> together([Invocation(("prog", "--rank", "0"), {"A": "1"})])
    ('env', 'A=1', 'prog', '--rank', '0')
    """
    commands = [_with_environment(each) for each in invocations]
    if len(commands) == 1:
        return commands[0]
    return ("sh", "-c", _TOGETHER.format(*map(shlex.join, commands)))


def endpoints_command(
    transport: Transport, folder: Path, options: TraceOptions, place: Place
) -> tuple[str, ...]:
    """Give the one command of a run: it reads the list of its folder, and leaves its trace there.

    In the first replication MPI transports then also look up to which size their sends return early.
    """
    command = together(transport.invocations(folder / PLAN_FILE, folder, options, place))
    if not isinstance(transport, Mpi):
        return command
    cpus = ("--cpus", f"{options.cpus[0]},{options.cpus[1]}") if options.cpus else ()
    looks = together([transport.start("thresholds", cpus, place)])
    script = _THEN_LOOK.format(shlex.join(command), shlex.join(looks), folder / THRESHOLDS_FILE)
    return ("sh", "-c", script)


def trace_options(options: CommunicationOptions, cpus: tuple[int, int] | None) -> TraceOptions:
    """Give how the endpoints work through their list.

    A budget of time ends a run between two blocks, so blocks of large messages are short.
    """
    size = mean_size(size_plan(options))
    return TraceOptions(
        block=round(min(max(BLOCK_BYTES / max(size, 1.0), 1), TraceOptions().block)),
        budget_ms=round(given(options.budget) * MS_PER_S),
        canary=CANARY,
        cpus=cpus,
    )


def _with_environment(invocation: Invocation) -> tuple[str, ...]:
    variables = tuple(f"{name}={value}" for name, value in invocation.environment.items())
    return ("env", *variables, *invocation.command) if variables else invocation.command


def _considered(
    options: CommunicationOptions, known: Mapping[str, Transport], links: tuple[str, ...]
) -> list[str]:
    asked: tuple[str, ...] = options.transport or tuple(known)
    names = list(dict.fromkeys(asked))
    if all(link == NO_LINK for link in links):
        return names
    inside = [name for name in names if not any(crosses(link, known[name]) for link in links)]
    if options.pairs and options.transport is None:
        inside = [name for name in names if not known[name].crosses_hosts]
    elif options.transport is not None and inside:
        crossing = ", ".join(f"`{name}`" for name in known if known[name].crosses_hosts)
        msg = f"`--transport {inside[0]}` works within one host only, but a link was requested"
        raise UsageError(msg, hint=f"transports for a link: {crossing}")
    return [name for name in names if name not in inside]


def _absent(names: Sequence[str], known: Mapping[str, Transport]) -> dict[str, str]:
    """Give why a transport does not work here, for those that do not."""
    answers = {name: known[name].probe() for name in names}
    return {
        name: f"{found.reason}{f' (repair: {found.repair})' if found.repair else ''}"
        for name, found in answers.items()
        if not found.available
    }


def _require_present(absent: Mapping[str, str]) -> None:
    for name, reason in absent.items():
        msg = f"transport `{name}` does not work on this machine: {reason}"
        raise CapabilityError(
            msg, hint="leave out `--transport` to measure those that do", code="capability.transport"
        )


def _cell(
    number: int,
    who: tuple[Transport, str],
    options: CommunicationOptions,
    cpus: tuple[int, int] | None,
    missing: str | None,
) -> Cell:
    transport, link = who
    levels = {"transport": transport.name, "link": link}
    if missing is not None:
        return Cell(number, levels, None, missing)
    command: tuple[str, ...] = ("sh", f"{PLACE}/{SCRIPT}")
    if link == NO_LINK:
        command = endpoints_command(transport, Path(PLACE), trace_options(options, cpus), HERE)
    execution = Execution(
        isolation=ISOLATION,
        command=command,
        environment=program_environment(()),
        limits=options.limits.limits(),
        kept_error_bytes=KEPT_ERROR_BYTES,
    )
    return Cell(number, levels, execution)
