"""MPI as transport: the rank program, built with the host's compiler, started by the host's `mpirun`.

============  ===============================================================================
openmpi       Open MPI through shared memory; both ranks on one host
openmpi-tcp   Open MPI through TCP: the loopback interface, or the network between two places
mpich         MPICH as it chooses: shared memory on one host, the network between two
============  ===============================================================================

An implementation is found as ``mpicc.openmpi`` and ``mpicc.mpich`` (Debian), else as an ``mpicc`` that
says it is that implementation; ``STEELYARD_MPICC_OPENMPI`` and ``STEELYARD_MPICC_MPICH`` name another
compiler. `mpirun` is the one beside the compiler.
"""

from __future__ import annotations

import functools
import ipaddress
import os
import re
import shutil
import sys
import tempfile
from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steelyard.errors import CapabilityError, DesignError, SteelyardError
from steelyard.run import programs
from steelyard.run.isolation.attempt import attempt
from steelyard.run.isolation.interface import Availability
from steelyard.studies.communication.transport import mpi_start
from steelyard.studies.communication.transport.interface import (
    HERE,
    Invocation,
    Place,
    TraceOptions,
    Transport,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from steelyard.studies.communication.transport.interface import Nodes

REPAIR: Final = "make deps-communication"
TRIAL_PLAN: Final = "op,size\npingpong,0\npingpong,100000\nstream,1\n"
TRIAL_LIMIT_S: Final = 60.0
MPIRUN: Final = "mpirun"
"""Way to start ranks in a job of Slurm that needs no plug-in of it."""
RENAMED: Final = 5
"""Major version of Open MPI from which its shared-memory layer is called ``sm``, and its starter is PRRTE,
which has other parameters."""


@dataclass(frozen=True, slots=True)
class Installation:
    """An MPI implementation on this host.

    Parameters
    ----------
    compiler, starter : Path
        Its `mpicc` and `mpirun`.
    version : str
        As ``4.1.4``.
    """

    compiler: Path
    starter: Path
    version: str


class Mpi(Transport):
    """One MPI implementation; subclasses know its names and options.

    The command of a run starts `mpi_start`, which starts `mpirun` and says in one line why it failed.
    """

    implementation: str = ""
    """As people call it."""
    suffix: str = ""
    """Ending of its programs where several implementations are installed."""
    identity: str = ""
    """Pattern with one group, the version, in what its `mpicc` says of itself."""
    identity_option: str = ""
    """Option of `mpicc` that makes it say so."""
    starter_identity: str = ""
    """Pattern in what its `mpirun --version` says."""
    plug_in: str = ""
    """Plug-in of ``srun --mpi`` that it is started by."""

    @functools.cached_property
    def installation(self) -> Installation:
        """Its compiler and starter.

        Raises
        ------
        CapabilityError
            If it is not on this host, or they are of two implementations.
        """
        variable = f"STEELYARD_MPICC_{self.suffix.upper()}"
        chosen = os.environ.get(variable)
        names = [chosen] if chosen else [f"mpicc.{self.suffix}", "mpicc"]
        for name in names:
            found = shutil.which(name)
            if found is None:
                continue
            answer = attempt([found, self.identity_option])
            said = re.search(self.identity, f"{answer.output}\n{answer.error}")
            if said:
                return Installation(Path(found), self._starter_beside(Path(found)), said[1])
            if chosen:
                msg = f"`{found}` ({variable}) is not the compiler of {self.implementation}"
                raise CapabilityError(msg, hint=f"name its `mpicc` in {variable}", code="capability.mpi")
        msg = f"{self.implementation} is not installed: no `{'` or `'.join(names)}` of it on the PATH"
        raise CapabilityError(msg, hint=REPAIR, code="capability.mpi")

    def _starter_beside(self, compiler: Path) -> Path:
        found = shutil.which(compiler.name.replace("mpicc", "mpirun"), path=str(compiler.parent))
        if found is None:
            msg = f"`{compiler}` has no `mpirun` beside it"
            raise CapabilityError(msg, hint=REPAIR, code="capability.mpi")
        answer = attempt([found, "--version"])
        if not re.search(self.starter_identity, answer.output):
            msg = f"`{found}` is not of {self.implementation}, but `{compiler}` is"
            raise CapabilityError(msg, hint=REPAIR, code="capability.mpi")
        return Path(found)

    @property
    def folder(self) -> Path:
        """Folder of the built programs; built when first asked for."""
        found = self.installation
        return programs.build_mpi(found.compiler, f"{self.implementation} {found.version}")

    @functools.cached_property
    def _availability(self) -> Availability:
        try:
            version = f"{self.implementation} {self.installation.version}"
            with tempfile.TemporaryDirectory(prefix="steelyard-") as scratch:
                plan = Path(scratch) / "plan.csv"
                plan.write_text(TRIAL_PLAN, encoding="ascii")
                (invocation,) = self.invocations(plan, Path(scratch), TraceOptions())
                words = ["env", *(f"{name}={value}" for name, value in invocation.environment.items())]
                done = attempt([*words, *invocation.command], timeout_s=TRIAL_LIMIT_S)
        except SteelyardError as error:
            return Availability.no(error.message, error.hint)
        if done.succeeded:
            return Availability.yes(version)
        what = next((line for line in done.error.splitlines() if line.startswith("error: ")), done.last_words)
        return Availability.no(f"two ranks do not work: {what.removeprefix('error: ')}", REPAIR, version)

    def probe(self) -> Availability:
        """Run a plan of three messages; the answer is kept."""
        return self._availability

    def facts(self) -> Mapping[str, str]:
        """Give the version, the compiler, and what the library declares of its protocols."""
        found = self.installation
        return {
            "mpi": f"{self.implementation} {found.version}",
            "mpicc": str(found.compiler),
            "mpirun": str(found.starter),
            "flags": " ".join(programs.MPI_FLAGS),
            **self.declared(),
        }

    @abstractmethod
    def declared(self) -> Mapping[str, str]:
        """Give the library's own parameters of its protocols, by its names for them."""

    @abstractmethod
    def _options(self, place: Place) -> tuple[str, ...]:
        """Give the options of `mpirun` for two ranks at a place."""

    def _environment(self, place: Place) -> dict[str, str]:
        return {}

    def invocations(
        self, plan: Path, out: Path, options: TraceOptions, place: Place = HERE
    ) -> tuple[Invocation, ...]:
        """Give the one command that starts both ranks."""
        words = ("--transport", self.name, "--plan", str(plan), "--out", str(out), *options.arguments())
        return (self.start("rank", words, place, started=out / "header.0.json"),)

    def start(
        self, program: str, words: Sequence[str], place: Place = HERE, *, started: Path | None = None
    ) -> Invocation:
        """Give the command that starts two ranks of a built program (``rank`` or ``thresholds``).

        The file `started` appears when both work.
        """
        if place != HERE and not self.crosses_hosts:
            msg = f"transport `{self.name}` works within one host only"
            raise DesignError(msg, hint="use `openmpi-tcp` or `mpich` over a link", code="design.transport")
        watch = () if started is None else ("--started", str(started))
        script = str(Path(mpi_start.__file__).resolve())
        command = (sys.executable, "-I", "-S", script, *watch, "--")
        ranks = (*self._starter(place), str(self.folder / program))
        return Invocation((*command, *place.enter[0], *ranks, *words), self._environment(place))

    def way(self, nodes: Nodes) -> str:
        """Give how ranks are started on two nodes of a job of Slurm.

        Raises
        ------
        CapabilityError
            If only a way may be taken that this library does not know.
        """
        known = (self.plug_in, MPIRUN)
        found = next((each for each in known if each in nodes.ways), None)
        if found is None:
            msg = f"ranks of {self.implementation} are not started by `srun --mpi={nodes.ways[0]}`"
            raise CapabilityError(msg, hint=f"`--starter` {' or '.join(known)}", code="capability.starter")
        return found

    def _starter(self, place: Place) -> tuple[str, ...]:
        """Give the words that start two ranks at a place."""
        if place.nodes is None or (way := self.way(place.nodes)) == MPIRUN:
            return (str(self.installation.starter), *self._options(place), "-np", "2")
        return (
            *("srun", "--overlap", f"--mpi={way}", "--nodes=2", "--ntasks=2", "--ntasks-per-node=1"),
            *("--cpu-bind=none", "--kill-on-bad-exit=1", f"--nodelist={','.join(place.nodes.names)}"),
        )


class OpenMpi(Mpi):
    """Open MPI; see the text of this module.

    Parameters
    ----------
    name : str
        Level of the factor ``transport``.
    crosses_hosts : bool
        Whether it goes through TCP instead of shared memory.
    """

    implementation = "Open MPI"
    suffix = "openmpi"
    identity = r"Open MPI v?(\d[\w.]*)"
    identity_option = "--showme:version"
    starter_identity = r"OpenRTE|Open MPI"
    plug_in = "pmix"

    def __init__(self, name: str, *, crosses_hosts: bool) -> None:
        self.name = name
        self.crosses_hosts = crosses_hosts

    @property
    def layer(self) -> str:
        """Name of the layer that moves bytes: ``tcp``, ``vader``, or since version 5 ``sm``."""
        if self.crosses_hosts:
            return "tcp"
        return "sm" if self._is_renamed else "vader"

    @property
    def _is_renamed(self) -> bool:
        return int(self.installation.version.split(".")[0]) >= RENAMED

    def declared(self) -> Mapping[str, str]:
        """Give the limits of the layer in bytes, header included, as ``btl_tcp_eager_limit``."""
        layer = self.layer
        teller = shutil.which("ompi_info", path=f"{self.installation.compiler.parent}:{os.environ['PATH']}")
        if teller is None:
            return {}
        answer = attempt([teller, "--param", "btl", layer, "--level", "9", "--parsable"])
        wanted = rf"^mca:btl:{layer}:param:(btl_{layer}_(?:\w*eager_limit|max_\w*send\w*)):value:(\S+)$"
        return dict(re.findall(wanted, answer.output, re.MULTILINE))

    def _environment(self, place: Place) -> dict[str, str]:
        # Refused otherwise; harmless for others than root.
        variables = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        if self._is_renamed and place.agent is not None:
            variables["PRTE_MCA_plm_ssh_agent"] = str(place.agent)
        if place.nodes is not None and self.way(place.nodes) != MPIRUN:
            variables |= {f"OMPI_MCA_{name}": value for name, value in self._settings(place).items()}
        return variables

    def _settings(self, place: Place) -> dict[str, str]:
        """Give the parameters of the library, however it is started."""
        settings = {"pml": "ob1", "btl": f"{self.layer},self"}
        network = network_of(place) if place != HERE else "lo"
        if network is not None and self.crosses_hosts:
            settings["btl_tcp_if_include"] = network
        return settings

    def _options(self, place: Place) -> tuple[str, ...]:
        settings = self._settings(place)
        hosts: tuple[str, ...] = ("--host", "localhost:2")
        if not self.crosses_hosts:
            settings[f"btl_{self.layer}_backing_directory"] = "{scratch}"
        if place != HERE:
            hosts = _open_mpi_hosts(place)
        if not self._is_renamed:
            settings |= _starter_settings(place)
        chosen = (word for name, value in settings.items() for word in ("--mca", name, value))
        return ("--bind-to", "none", *hosts, *chosen)


def _starter_settings(place: Place) -> dict[str, str]:
    """Give the parameters of the starter of Open MPI before version 5."""
    settings = {"orte_tmpdir_base": "{scratch}"}
    if place == HERE:
        return settings | {"plm": "isolated"}
    network = network_of(place)
    if network is not None:
        settings["oob_tcp_if_include"] = network
    if place.agent is not None:
        settings |= {"plm": "rsh", "plm_rsh_agent": str(place.agent)}
    return settings


def _open_mpi_hosts(place: Place) -> tuple[str, ...]:
    if place.nodes is not None:
        return ("--host", ",".join(f"{name}:1" for name in place.nodes.names), "--map-by", "node")
    if place.addresses is not None:
        return ("--host", ",".join(f"{address}:1" for address in place.addresses))
    # One rank per host, in the order of the file, whatever slots it gives them.
    return () if place.hostfile is None else ("--hostfile", str(place.hostfile), "--map-by", "node")


class Mpich(Mpi):
    """MPICH; see the text of this module."""

    name = "mpich"
    crosses_hosts = True
    implementation = "MPICH"
    suffix = "mpich"
    identity = r"MPICH version (\d[\w.]*)"
    identity_option = "-v"
    starter_identity = "HYDRA"
    plug_in = "pmi2"

    def declared(self) -> Mapping[str, str]:
        """Give the device, and the sizes of segments [bytes] of UCX where `ucx_info` tells them."""
        beside = f"{self.installation.compiler.parent}:{os.environ['PATH']}"
        teller = shutil.which("mpichversion", path=beside)
        answer = attempt([teller]) if teller else None
        device = re.search(r"^MPICH Device:\s*(\S+)", answer.output, re.MULTILINE) if answer else None
        found = {} if device is None else {"mpich_device": device[1]}
        if device is not None and "ucx" in device[1] and shutil.which("ucx_info"):
            settings = attempt(["ucx_info", "-c"]).output
            found |= dict(re.findall(r"^(UCX_(?:POSIX|TCP)_\w*SEG_SIZE)=(\S+)$", settings, re.MULTILINE))
        return found

    def _options(self, place: Place) -> tuple[str, ...]:
        options: tuple[str, ...] = ("-bind-to", "none")
        if place.nodes is not None:
            options = (*options, "-hosts", ",".join(place.nodes.names), "-ppn", "1")
        elif place.addresses is not None:
            options = (*options, "-hosts", ",".join(place.addresses), "-ppn", "1")
        elif place.hostfile is not None:
            options = (*options, "-f", str(place.hostfile), "-ppn", "1")
        if place.agent is not None:
            options = (*options, "-launcher", "ssh", "-launcher-exec", str(place.agent))
        return options


def network_of(place: Place) -> str | None:
    """Give the smallest network that holds both addresses, for the choice of an interface.

    Returns
    -------
    str or None
        As ``10.77.0.0/30``; ``None`` where they are names, too far apart to be in one network, or nodes that
        are one machine: over its loopback interface Open MPI hangs with large messages of two nodes.

    Examples
    --------
    >>> network_of(Place(addresses=("10.77.0.1", "10.77.0.2")))
    '10.77.0.0/30'
    >>> network_of(Place(addresses=("node1", "node2"))) is None
    True
    """
    try:
        first, second = (ipaddress.IPv4Address(address) for address in place.addresses or ())
    except ValueError:
        return None
    if place.nodes is not None and first.is_loopback:
        return None
    prefix = 32 - (int(first) ^ int(second)).bit_length()
    return str(ipaddress.IPv4Network((first, prefix), strict=False)) if prefix > 0 else None


TRANSPORTS: Final = (
    OpenMpi("openmpi", crosses_hosts=False),
    OpenMpi("openmpi-tcp", crosses_hosts=True),
    Mpich(),
)
"""In the order of reports."""
