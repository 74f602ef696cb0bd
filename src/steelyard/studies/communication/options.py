"""What a study file and the command line may say about the communication study."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, get_args

from pydantic import BaseModel, Field

from steelyard.errors import UsageError
from steelyard.studies.communication.sizes import LARGEST_BYTES, SizeLaw, SizePlan
from steelyard.studies.communication.transport.link_options import is_nominal
from steelyard.studies.option_types import Flag, StudyOptions, given

TransportName = Literal["pipe", "unix", "tcp", "shm", "openmpi", "openmpi-tcp", "mpich"]
StarterName = Literal["pmix", "pmi2", "mpirun"]
OperationName = Literal["pingpong", "stream", "send", "recv", "isend", "test", "iprobe", "wtime"]
SizeLawName = Literal["doubling", "uniform", "log-uniform"]
Size = Annotated[int, Field(ge=0, le=LARGEST_BYTES)]

EVERY_TRANSPORT: Final = get_args(TransportName)
NO_LINK: Final = "none"
HELD_OUT: Final = 1
"""Replications that no model is fitted to: what the models predict is compared with them."""

MIX: Final[dict[OperationName, int]] = {
    "pingpong": 10,
    "send": 3,
    "recv": 3,
    "isend": 2,
    "stream": 2,
    "test": 1,
    "iprobe": 1,
    "wtime": 1,
}
"""Half of the messages go both ways: half a round trip is what the curve of delays is fitted to."""


class CommunicationOptions(StudyOptions):
    """Everything a study file may say; what it does not say depends on `quick`.

    The meaning, range and default of each key stand in ``docs/reference/study-file.md``.
    """

    study: Literal["communication"] = "communication"
    transport: tuple[TransportName, ...] | None = Field(
        default=None,
        min_length=1,
        description=(
            "Transport: pipe, unix, tcp, shm, openmpi, openmpi-tcp or mpich; several separated by commas. "
            "By default all that work here."
        ),
    )
    link: Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Flag(has_commas=True)] = Field(
        default=(),
        description=(
            "Link to create between two network namespaces, such as `rate=1gbit,delay=50us`; repeatable. "
            "Needs root. Without `rate=`, as in `10Gbps,50us`, the nominal values of the existing network, "
            "by which simple models and SimGrid's defaults are judged."
        ),
    )
    hostfile: str | None = Field(
        default=None,
        min_length=1,
        description="File with two hosts to reach by ssh, one per line.",
    )
    pairs: tuple[str, ...] = Field(
        default=(),
        description=(
            "Pairs of nodes to measure with --on slurm:PARTITION, as in `n1:n2,n1:n1`; the second one is n1 "
            "alone. `all` for every pair and every node."
        ),
    )
    starter: StarterName | None = Field(
        default=None,
        description=(
            "How MPI ranks are started on two nodes: pmix or pmi2 for `srun --mpi`, or mpirun. By default "
            "what the MPI takes, else mpirun."
        ),
    )
    operations: int | None = Field(
        default=None,
        ge=200,
        le=10_000_000,
        description="Number of operations of a replication.",
    )
    warm_up: int | None = Field(
        default=None,
        ge=0,
        le=1_000_000,
        description="Operations at the beginning of each launch that are recorded but used by no model.",
    )
    sizes: SizeLawName = Field(
        default="log-uniform",
        description="Distribution of sizes: doubling, uniform or log-uniform.",
    )
    smallest: Size = Field(
        default=1,
        description="Smallest message [bytes].",
    )
    largest: int | None = Field(
        default=None,
        ge=1,
        le=LARGEST_BYTES,
        description="Largest message [bytes].",
    )
    mix: dict[OperationName, Annotated[int, Field(ge=0, le=1000)]] | None = None
    replications: int | None = Field(
        default=None,
        ge=2,
        le=1000,
        description="Launches per transport; the last one is held out to judge the model.",
    )
    budget: float | None = Field(
        default=None,
        gt=0,
        le=86_400,
        description="Time a launch may take [s]; it ends at the next block.",
    )
    validation: Annotated[bool, Flag(names=("validate",))] = Field(
        default=False,
        description="Let SimGrid simulate the held-out operations with the model, and compare.",
    )
    margin_percent: float = Field(default=5.0, gt=0, lt=100)


_FULL: Final[dict[str, Any]] = {
    "operations": 10_000,
    "warm_up": 500,
    "largest": 10_000_000,
    "replications": 5,
    "budget": 60.0,
    "gate_retries": 0,
}
"""No launch is repeated because of other load: the analysis finds the blocks that were disturbed."""

_QUICK: Final[dict[str, Any]] = {
    "operations": 3000,
    "warm_up": 200,
    "largest": 1_000_000,
    "replications": 3,
    "budget": 10.0,
    "gate_retries": 0,
}


def settle(options: BaseModel) -> CommunicationOptions:
    """Fill in what was left open; ``transport`` stays open for the design.

    Raises
    ------
    UsageError
        If options contradict each other.
    """
    asked = CommunicationOptions.model_validate(options.model_dump())
    defaults = {**(_QUICK if asked.quick else _FULL), "mix": dict(MIX)}
    settled = asked.model_copy(
        update={name: value for name, value in defaults.items() if getattr(asked, name) is None}
    )
    _check(settled)
    return settled


def _check(settled: CommunicationOptions) -> None:
    largest, mix = given(settled.largest), given(settled.mix)
    if settled.smallest > largest:
        msg = f"`--smallest {settled.smallest}` is above `--largest {largest}`"
        raise UsageError(msg, hint="give a range of sizes in bytes, e.g. --smallest 1 --largest 1000000")
    if mix.get("pingpong", 0) == 0:
        msg = "`mix` has no `pingpong`, but the curve of delays is fitted to half of its round trips"
        raise UsageError(msg, hint="give `pingpong` a weight of 1 or more")
    if settled.hostfile is not None and any(not is_nominal(text) for text in settled.link):
        msg = (
            "`--hostfile` names two hosts with a network between them, but `--link` creates one on this host"
        )
        raise UsageError(msg, hint="give only one of them")

    if settled.pairs and (settled.hostfile is not None or any(not is_nominal(text) for text in settled.link)):
        msg = "`--pairs` names nodes with a network between them, but `--hostfile` or `--link` another one"
        raise UsageError(msg, hint="give only one of them")


def size_plan(settled: CommunicationOptions) -> SizePlan:
    """Give what the list of operations of a replication is drawn from."""
    return SizePlan(
        SizeLaw(settled.sizes),
        settled.smallest,
        given(settled.largest),
        given(settled.operations),
        {str(name): weight for name, weight in given(settled.mix).items()},
    )


OPTIONS = CommunicationOptions
