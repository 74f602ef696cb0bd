"""Pairs of nodes of a Slurm cluster: which ones are measured, and how a job of one starts both endpoints.

A pair is a level of the factor ``link``: ``n1:n2`` are two nodes, ``n1:n1`` is one with both endpoints. A
part of the study is a job that has the nodes of its pair for itself; it runs on one of them, with endpoint 0.
Endpoint 1 is a step of the job on the other one.
"""

from __future__ import annotations

import os
import re
import shlex
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Final

from steelyard.errors import CapabilityError, UsageError
from steelyard.run.isolation.attempt import attempt
from steelyard.studies.communication.transport.interface import HERE, Nodes, Place
from steelyard.studies.communication.transport.mpi import MPIRUN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from steelyard.model import Cell
    from steelyard.studies.communication.options import CommunicationOptions
    from steelyard.studies.communication.transport.interface import Transport

ALL: Final = "all"
NODE_VARIABLE: Final = "SLURMD_NODENAME"
_PAIR: Final = re.compile(r"(?P<first>[\w.-]+):(?P<second>[\w.-]+)", re.ASCII)
_ANSWER_S: Final = 30.0
_END_STEPS: Final = r"""left=$(squeue --noheader --steps --jobs="$SLURM_JOB_ID" --format=%i |
grep -E '\.[0-9]+$')
[ -z "$left" ] || scancel $left
"""


def is_pair(level: str) -> bool:
    """Tell whether a level of the factor ``link`` is a pair of nodes.

    Examples
    --------
    >>> is_pair("n1:n2"), is_pair("rate=1gbit,delay=50us"), is_pair("none")
    (True, False, False)
    """
    return _PAIR.fullmatch(level) is not None


def nodes_of(level: str) -> tuple[str, ...]:
    """Give the nodes of a pair, each once.

    Examples
    --------
    >>> nodes_of("n1:n2"), nodes_of("n1:n1")
    (('n1', 'n2'), ('n1',))
    """
    return tuple(dict.fromkeys(level.split(":")))


def hosts_of(cell: Cell) -> tuple[str, ...]:
    """Give the hosts that a run of a cell needs: the nodes of its pair."""
    link = cell.levels["link"]
    return nodes_of(link) if is_pair(link) else ()


def pairs_of(options: CommunicationOptions, names: Sequence[str]) -> tuple[str, ...]:
    """Give the pairs that are asked for, each once, whichever of its nodes was named first.

    Parameters
    ----------
    options : CommunicationOptions
        What is asked for.
    names : sequence of str
        Nodes that there are.

    Raises
    ------
    UsageError
        If hosts have no names where the study is placed, a pair cannot be read, or a node is not there.
    """
    if not names:
        message = "`--pairs` asks for nodes, but runs are not placed on nodes that have names"
        hint = "add `--on slurm:PARTITION`; two hosts that ssh reaches are measured with `--hostfile`"
        raise UsageError(message, hint=hint, code="usage.pairs")
    if options.pairs == (ALL,):
        return tuple(f"{first}:{second}" for first, second in combinations_with_replacement(names, 2))
    found: dict[frozenset[str], str] = {}
    for text in options.pairs:
        if not is_pair(text):
            message = f"`--pairs {text}` is not a pair of nodes"
            hint = f"write `NODE:NODE`, twice the same for one node alone, or `{ALL}` alone"
            raise UsageError(message, hint=hint, code="usage.pairs")
        if absent := [name for name in nodes_of(text) if name not in names]:
            message = f"`--pairs {text}` names the node `{absent[0]}`, which is not there"
            raise UsageError(message, hint=f"nodes: {', '.join(names)}", code="usage.pairs")
        found.setdefault(frozenset(nodes_of(text)), text)
    return tuple(found.values())


def crosses(level: str, transport: Transport) -> bool:
    """Tell whether a transport connects what a level of the factor ``link`` names."""
    return transport.crosses_hosts or (is_pair(level) and len(nodes_of(level)) == 1)


def place_of(level: str, starter: str | None) -> Place:
    """Give where the endpoints of a pair run, seen from the job of the pair; endpoint 0 is on this node.

    Raises
    ------
    CapabilityError
        If this job does not have the nodes, Slurm does not answer, or `srun` cannot start ranks as asked for.
    """
    here = os.environ.get(NODE_VARIABLE, "")
    nodes = nodes_of(level)
    if here not in nodes:
        message = f"cannot measure the pair `{level}` here: this is not a job of Slurm that has its nodes"
        raise CapabilityError(message, hint="run the study with --on slurm:PARTITION", code="capability.pair")
    if len(nodes) == 1:
        return HERE
    (other,) = set(nodes) - {here}
    return Place(
        addresses=(_address(here), _address(other)),
        enter=((), step_words(other)),
        nodes=Nodes((here, other), _ways(starter)),
    )


def step_words(node: str) -> tuple[str, ...]:
    """Give the words that run a command as a step on a node of this job, beside all others of it."""
    return (
        *("srun", "--quiet", "--overlap", "--nodes=1", "--ntasks=1", f"--nodelist={node}"),
        *("--mpi=none", "--cpu-bind=none"),
    )


def in_job(environment: Mapping[str, str]) -> str:
    """Give the begin of a script that starts steps of a job.

    It says to `srun` and `mpirun` which job that is, and ends what an earlier launch left there: a step goes
    on when its `srun` was killed at the limit of a run.
    """
    known = sorted(name for name in environment if name.startswith("SLURM"))
    exports = "".join(f"export {name}={shlex.quote(environment[name])}\n" for name in known)
    return f"{exports}{_END_STEPS}"


def _ways(starter: str | None) -> tuple[str, ...]:
    """Give the ways to start ranks in this job."""
    listed = attempt(["srun", "--mpi=list"], timeout_s=_ANSWER_S)
    known = (*_plug_ins(f"{listed.output}\n{listed.error}"), MPIRUN)
    if starter is None:
        return known
    if starter not in known:
        message = f"`srun` has no `--mpi={starter}` here, by which ranks were to be started"
        hint = f"leave out `--starter`, or give one of {', '.join(known)}"
        raise CapabilityError(message, hint=hint, code="capability.starter")
    return (starter,)


def _plug_ins(said: str) -> Iterable[str]:
    r"""Read the answer of ``srun --mpi=list``, one plug-in a line.

    Examples
    --------
    >>> list(_plug_ins("MPI plugin types are...\n\tpmix\n\tnone\nspecific pmix plugin versions: pmix_v4\n"))
    ['pmix', 'none']
    """
    return (word[0] for line in said.splitlines() if len(word := line.removeprefix("srun: ").split()) == 1)


def _address(node: str) -> str:
    said = attempt(["scontrol", "show", "node", "--oneliner", node], timeout_s=_ANSWER_S)
    found = re.search(r"\bNodeAddr=(\S+)", said.output)
    if found is None:
        message = f"cannot ask Slurm for the address of `{node}`: {said.last_words}"
        raise CapabilityError(
            message, hint="does `scontrol show node` answer there?", code="capability.slurm"
        )
    return found[1]
