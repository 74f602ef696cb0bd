"""What an isolation technology is: the one page an author of a plug-in needs.

A *worker* is a resident launcher (``steelyard-launch serve``) that runs and measures runs. It
reads requests from its standard input and writes replies to its standard output, one JSON document
per line. **A technology decides where that process lives**: on the host, in a container, in a
virtual machine. The stamps are therefore taken by the same code everywhere, beside the program and
not around the technology, and technologies compose: a sandboxed run in a container is a worker that
lives in a container and is asked for sandboxed runs.

A technology is one class in one file. It is made known by an entry point::

    [project.entry-points."steelyard.isolations"]
    mine = "my_package.mine:MINE"          # an instance of a subclass of Isolation

For each worker the executor calls, in this order:

=====================  ========================================================================
`probe`                once per process: does it work here? Answered by a real, short attempt
                       (subclasses write `examine`; the answer is kept).
`prepare`              make what the worker needs: a root file system, a configuration, a daemon
`wrap`                 the command that starts the worker's launcher; its standard input and
                       output must reach the launcher unchanged, and it must end when its
                       standard input is closed
`inside`               once per batch: adapt the run specification to the place (paths, isolation)
`collect`              once per run: adapt the outcome, add values only the technology knows
`tear_down`            remove everything `prepare` and the worker made. Called also when `prepare`
                       or the start failed, so it must accept half-made things.
=====================  ========================================================================

and at the end of the study `close`, for what its workers shared (a daemon). After a study was
killed, the next one calls `sweep` with the dead study's session folder. Everything a technology
makes outside that folder must be found again by the name of the folder: use `Site.name` or
`Session.key` for containers, machines and control groups.

Rules: no file outside `Site.folder` and `Session.folder`; no state in the class but what `close`
removes; commands bounded in time; raise `CapabilityError` when the machine cannot do it, with the
command that repairs it as hint, and `RunError` when something that worked stops working.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from steelyard.run.redact import without_secrets

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.model import RunOutcome, RunSpec
    from steelyard.run.session import Session, Site


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether a technology works on this host.

    Parameters
    ----------
    available : bool
        Whether it worked when it was tried.
    version : str or None
        What was tried, as the technology names itself.
    reason : str or None
        Why it does not work.
    repair : str or None
        The command that may change that.
    """

    available: bool
    version: str | None = None
    reason: str | None = None
    repair: str | None = None

    @classmethod
    def yes(cls, version: str | None) -> Availability:
        """Say that it works."""
        return cls(available=True, version=_public(version))

    @classmethod
    def no(cls, reason: str, repair: str | None = None, version: str | None = None) -> Availability:
        """Say that it does not work, why, and which command repairs it."""
        return cls(available=False, version=_public(version), reason=_public(reason), repair=_public(repair))


def _public(text: str | None) -> str | None:
    """Give a text that may be recorded: programs quote their environment in what they say."""
    return None if text is None else without_secrets(text)


class Isolation(ABC):
    """One isolation technology; see the text of this module."""

    name: str = ""
    """Level of the factor ``isolation``."""
    shares_kernel: bool = True
    """Whether its workers run on the host's kernel: then they share its clocks and a barrier."""
    shows_host: bool = True
    """Whether programs and folders of the host are visible inside, at their own places."""
    one_launch_per_request: bool = False
    """Whether `collect` must be called before the next launch, because it reads files of its run."""
    start_timeout_s: float = 90.0
    """Time a worker has from its start to its first line."""

    def __init__(self) -> None:
        self._availability: Availability | None = None

    @abstractmethod
    def describe(self) -> str:
        """Give one sentence for people: what it is and what it separates."""

    @abstractmethod
    def examine(self) -> Availability:
        """Try it, within a few seconds, and say whether it works."""

    def probe(self) -> Availability:
        """Say whether it works here; tried once per process."""
        if self._availability is None:
            self._availability = self.examine()
        return self._availability

    def prepare(self, site: Site) -> None:  # noqa: B027 - by default there is nothing to do
        """Make what the worker needs. `Site.folder` exists and is empty."""

    @abstractmethod
    def wrap(self, site: Site) -> list[str]:
        """Give the command on the host that starts the worker's launcher in ``serve`` mode."""

    def programs(self, site: Site) -> Path:
        """Give the folder of the native programs as the worker sees it."""
        return site.session.programs

    def workloads(self, site: Site) -> Path:
        """Give the folder of the workloads as the worker sees it."""
        return site.session.workloads

    def shared(self, site: Site) -> Path:
        """Give the folder of the barrier files as the worker sees it."""
        return site.session.shared

    def inside(self, spec: RunSpec, site: Site) -> RunSpec:
        """Adapt a run specification to the place; by default it binds the run to the site's CPUs."""
        return place(spec, site)

    def collect(self, outcome: RunOutcome, site: Site) -> RunOutcome:
        """Adapt an outcome; by default it is kept as it is."""
        return outcome

    def pause(self, site: Site) -> None:  # noqa: B027 - by default there is nothing to do
        """Let the worker use no time while it is not its turn."""

    def resume(self, site: Site) -> None:  # noqa: B027 - by default there is nothing to do
        """End a pause."""

    def tear_down(self, site: Site) -> None:  # noqa: B027 - by default there is nothing to do
        """Remove everything of this worker. `Site.folder` is removed by the caller."""

    def close(self, session: Session) -> None:  # noqa: B027 - by default there is nothing to do
        """Remove what the workers of the session shared."""

    def sweep(self, folder: Path) -> None:  # noqa: B027 - by default there is nothing to do
        """Remove what a killed session left outside `folder`, its session folder."""


def place(spec: RunSpec, site: Site) -> RunSpec:
    """Bind a run to the CPUs and memory nodes of its site, with the largest CPU weight."""
    placement = replace(spec.placement, maximal_weight=True)
    if site.cpus is not None:
        placement = replace(placement, cpus=tuple(site.cpus))
    if site.memory_nodes is not None:
        placement = replace(placement, memory_nodes=tuple(site.memory_nodes))
    return replace(spec, placement=placement)
