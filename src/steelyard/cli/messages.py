"""Options of the command line that say which messages the communication study sends, and over what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from steelyard.cli.amounts import WholeOrNone  # noqa: TC001 - cyclopts reads it
from steelyard.cli.verb_app import options_of

if TYPE_CHECKING:
    from collections.abc import Mapping

Flag = Annotated[bool, Parameter(negative="")]
Words = Annotated[tuple[str, ...] | None, Parameter(negative="")]


@Parameter(name="*", group=options_of("communication"))
@dataclass(frozen=True, slots=True)
class Messages:
    """Messages of the communication study.

    Parameters
    ----------
    transport
        Transport: pipe, unix, tcp, shm, openmpi, openmpi-tcp or mpich; several times for several.
        By default all that work here.
    link
        A link between two network namespaces, such as `rate=1gbit,delay=50us`; several
        times for several. Needs root. Without `rate=`, as in `10Gbps,50us`, what the network that is
        there is called: simple models and SimGrid's defaults are judged with these numbers.
    hostfile
        A file with two hosts that are reached by ssh, one per line.
    operations
        Operations of a replication.
    warm_up
        Operations at the begin of each launch that are kept, and that no model sees.
    sizes
        How sizes are drawn: doubling, uniform or log-uniform.
    smallest
        Smallest message [bytes].
    largest
        Largest message [bytes].
    replications
        Launches per transport; the last one is held out, to judge the model by.
    budget
        Time a launch may take [s]; it ends at the next block.
    validate
        Let SimGrid simulate the held-out operations with the model, and compare.
    """

    transport: Words = None
    link: Words = None
    hostfile: str | None = None
    operations: WholeOrNone = None
    warm_up: WholeOrNone = None
    sizes: str | None = None
    smallest: WholeOrNone = None
    largest: WholeOrNone = None
    replications: WholeOrNone = None
    budget: float | None = None
    validate: Flag = False

    def given(self) -> Mapping[str, object]:
        """Give what was said, by key of the study file."""
        return {
            "transport": self.transport or None,
            "link": self.link or None,
            "hostfile": self.hostfile,
            "operations": self.operations,
            "warm_up": self.warm_up,
            "sizes": self.sizes,
            "smallest": self.smallest,
            "largest": self.largest,
            "replications": self.replications,
            "budget": self.budget,
            "validation": self.validate or None,
        }


FLAGS = {"validation": "validate"}
"""Options whose name on the command line is not that of the study file."""

NO_MESSAGES = Messages()
