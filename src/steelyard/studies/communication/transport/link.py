"""Two "machines" on one host: network namespaces joined by a cable whose rate is known.

::

    with Link(parse_link("rate=1gbit,delay=50us")) as link:
        subprocess.run(link.command(0, ["iperf3", "--server"]))
        link.truth.payload_bytes_per_s

Both sides share the kernel and its clock, so the true offset of their clocks is 0 and the bandwidth is
what the shaper lets through: what a study finds can be compared with the truth. Needs root.

What the kernel cannot do of what was asked, such as a delay without netem, is left out of the link and
of `Link.truth`, and stands in `Link.missing` with the reason: the bandwidth stays known all the same.

Nothing stays behind: the namespaces go when the block is left, also by an exception or SIGTERM; those of
a study killed by SIGKILL go when the next link is made, or by ``steelyard restore``.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
import shlex
import shutil
import signal
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from steelyard.errors import CapabilityError
from steelyard.run.isolation.attempt import attempt, installed
from steelyard.studies.communication.transport import link_agent
from steelyard.studies.communication.transport.interface import Place
from steelyard.studies.communication.transport.link_cleanup import (
    NAMESPACES,
    PATIENCE_S,
    SIDES,
    folder_of,
    new_key,
    remove_abandoned_links,
    remove_namespace,
)
from steelyard.studies.communication.transport.link_truth import MTU_BYTES, LinkTruth
from steelyard.studies.communication.transport.shaping import Absence, Shaped, shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import FrameType, TracebackType

    from steelyard.studies.communication.transport.link_options import LinkOptions

INTERFACE: Final = "veth0"
HOST_NAMES: Final = ("steelyard-a", "steelyard-b")
PRIVATE: Final = tuple(
    ipaddress.IPv4Network(text) for text in ("10.77.0.0/16", "172.31.0.0/16", "192.168.0.0/16", "10.0.0.0/8")
)
"""Where addresses are taken from, first free first. SOURCE: RFC 1918, section 3."""
PREFIX_BITS: Final = 30
REPAIR: Final = "apt-get install iproute2"


@dataclass(frozen=True, slots=True)
class LinkEnd:
    """One end of a link.

    Parameters
    ----------
    letter : str
        ``a`` or ``b``; the ranks 0 and 1.
    namespace : str
        Name of its network namespace.
    address : str
        Its IPv4 address on the link.
    host : str
        Its host name, known to both sides.
    """

    letter: str
    namespace: str
    address: str
    host: str

    @property
    def network(self) -> Path:
        """File of its network namespace."""
        return NAMESPACES / self.namespace


def free_network(taken: Iterable[ipaddress.IPv4Network]) -> ipaddress.IPv4Network:
    """Give a private network of two hosts that overlaps none of the host's.

    Raises
    ------
    CapabilityError
        If there is none.

    Examples
    --------
    >>> free_network([ipaddress.IPv4Network("10.0.0.0/8")])
    IPv4Network('172.31.0.0/30')
    """
    known = list(taken)
    for range_ in PRIVATE:
        for place in range_.subnets(new_prefix=24):
            if not any(place.overlaps(other) for other in known):
                return next(place.subnets(new_prefix=PREFIX_BITS))
    message = "every private network is routed on this host already"
    raise CapabilityError(message, hint="ip route: remove one", code="capability.link-network")


class Link:
    """A link between two namespaces, made on entry and removed on leaving; a context manager.

    Parameters
    ----------
    options : LinkOptions
        What it shall be.

    Raises
    ------
    CapabilityError
        On entry, if this host cannot make it: no root, no `ip` or `tc`, no namespaces, no shaper.
    """

    def __init__(self, options: LinkOptions) -> None:
        self._options = options
        self._key = new_key()
        self._folder = folder_of(self._key)
        self._sides = tuple(
            LinkEnd(letter, f"{self._key}-{letter}", "", host)
            for letter, host in zip(SIDES, HOST_NAMES, strict=True)
        )
        self._shaped: Shaped | None = None
        self._truth: LinkTruth | None = None

    @property
    def options(self) -> LinkOptions:
        """What was asked for."""
        return self._options

    @property
    def sides(self) -> tuple[LinkEnd, LinkEnd]:
        """Both ends; index is the rank."""
        first, second = self._sides
        return first, second

    @property
    def truth(self) -> LinkTruth:
        """What holds on the link.

        Raises
        ------
        RuntimeError
            Outside the block.
        """
        if self._truth is None:
            message = "the link is known once it is made: use it inside `with`"
            raise RuntimeError(message)
        return self._truth

    @property
    def missing(self) -> tuple[Absence, ...]:
        """What was asked for and this kernel cannot do."""
        return () if self._shaped is None else self._shaped.missing

    @property
    def agent(self) -> Path:
        """Program that starts a command on a side as ``ssh`` does on a host.

        For ``mpirun --mca plm_rsh_agent`` of Open MPI and ``mpirun -launcher-exec`` of MPICH.
        """
        return self._folder / "agent"

    @property
    def hostfile(self) -> Path:
        """Both sides, one process each, as a file for ``mpirun --hostfile`` of Open MPI.

        MPICH refuses ``slots=`` and takes the addresses: ``-hosts ADDRESS,ADDRESS``.
        """
        return self._folder / "hosts"

    @property
    def network(self) -> str:
        """The network both addresses are in, e.g. ``10.77.0.0/30``."""
        return str(ipaddress.IPv4Interface(f"{self._sides[0].address}/{PREFIX_BITS}").network)

    def command(self, rank: int, words: Sequence[str]) -> tuple[str, ...]:
        """Give the command that runs words on a side, without a shell."""
        return (*self._enter(rank), *words)

    def place(self) -> Place:
        """Give the link as a transport takes it."""
        return Place(
            addresses=(self._sides[0].address, self._sides[1].address),
            enter=(self._enter(0), self._enter(1)),
            agent=self.agent,
            hostfile=self.hostfile,
        )

    def facts(self) -> dict[str, object]:
        """Give everything that is known of the link, for the provenance."""
        return {
            "asked": str(self._options),
            "network": self.network,
            "shaped": None if self._shaped is None else asdict(self._shaped),
            "truth": {**asdict(self.truth), "payload_bytes_per_s": self.truth.payload_bytes_per_s},
        }

    def __enter__(self) -> Self:
        """Make the link."""
        _require_tools()
        remove_abandoned_links()
        _MADE.append(self)
        _watch_sigterm()
        try:
            self._make()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the link."""
        self.remove()

    def _enter(self, rank: int) -> tuple[str, ...]:
        agent = str(Path(link_agent.__file__).resolve())
        return (sys.executable, "-I", agent, str(self._folder / "sides.json"), "enter", SIDES[rank])

    def _make(self) -> None:
        first, second = free_network(_routed()).hosts()
        self._sides = tuple(
            LinkEnd(side.letter, side.namespace, str(address), side.host)
            for side, address in zip(self._sides, (first, second), strict=True)
        )
        one, other = self._sides
        for side in self._sides:
            _execute(["ip", "netns", "add", side.namespace])
        cable = ["ip", "link", "add", INTERFACE, "mtu", str(MTU_BYTES), "netns", one.namespace]
        _execute(
            [
                *cable,
                "type",
                "veth",
                "peer",
                "name",
                INTERFACE,
                "mtu",
                str(MTU_BYTES),
                "netns",
                other.namespace,
            ]
        )
        for side in self._sides:
            within = ["ip", "-n", side.namespace]
            _execute([*within, "address", "add", f"{side.address}/{PREFIX_BITS}", "dev", INTERFACE])
            _execute([*within, "link", "set", "lo", "up"])
            # Without an address of IPv6 the kernel sends nothing of its own accord on the cable.
            _execute([*within, "link", "set", INTERFACE, "addrgenmode", "none"])
            _execute([*within, "link", "set", INTERFACE, "up"])
        for side in self._sides:
            _await_carrier(side)
        self._write_files()
        shaped = [
            shape(["ip", "netns", "exec", side.namespace], INTERFACE, self._options) for side in self._sides
        ]
        self._shaped = shaped[0]
        self._truth = LinkTruth(
            rate_bits_per_s=shaped[0].rate_bits_per_s,
            credit_bytes=shaped[0].credit_bytes,
            delay_ns=shaped[0].delay_ns,
            loss_percent=shaped[0].loss_percent,
            has_timestamps=self._has_timestamps(),
        )

    def _has_timestamps(self) -> bool:
        """Whether TCP sends timestamps on both sides: it does when both want them."""
        answers = [
            attempt(["ip", "netns", "exec", side.namespace, "cat", "/proc/sys/net/ipv4/tcp_timestamps"])
            for side in self._sides
        ]
        return all(answer.output != "0" for answer in answers)

    def _write_files(self) -> None:
        self._folder.mkdir(mode=0o700)
        names = "".join(f"{side.address} {side.host}\n" for side in self._sides)
        (self._folder / "etc-hosts").write_text(f"127.0.0.1 localhost\n{names}", encoding="utf-8")
        hosts = "".join(f"{side.address} slots=1\n" for side in self._sides)
        self.hostfile.write_text(hosts, encoding="utf-8")
        sides = {
            side.letter: {
                "network": str(side.network),
                "host": side.host,
                "address": side.address,
                "hosts_file": str(self._folder / "etc-hosts"),
            }
            for side in self._sides
        }
        described = self._folder / "sides.json"
        described.write_text(json.dumps(sides, indent=1) + "\n", encoding="utf-8")
        words = [sys.executable, "-I", str(Path(link_agent.__file__).resolve()), str(described), "ssh"]
        self.agent.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
        self.agent.chmod(0o755)

    def remove(self) -> None:
        """Remove the link now; done on leaving the block, and harmless when it is gone."""
        for side in self._sides:
            if side.network.exists():
                remove_namespace(side.namespace)
        shutil.rmtree(self._folder, ignore_errors=True)
        with contextlib.suppress(ValueError):
            _MADE.remove(self)
        if not _MADE and signal.getsignal(signal.SIGTERM) is _leave:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


_MADE: Final[list[Link]] = []
"""Links of this process."""


def _watch_sigterm() -> None:
    """Remove the links on SIGTERM where nobody else minds it."""
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _leave)


def _leave(number: int, _frame: FrameType | None) -> None:
    """Remove every link, then let the signal end the process."""
    for link in tuple(_MADE):
        link.remove()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _require_tools() -> None:
    for program in ("ip", "tc"):
        if installed(program) is None:
            message = f"a link between two namespaces needs `{program}`, which is not installed"
            raise CapabilityError(message, hint=REPAIR, code="capability.tc")
    if os.geteuid() != 0:
        message = "a link between two namespaces needs the rights of root"
        hint = "sudo, or leave out `--link`: the transports work on this host as it is"
        raise CapabilityError(message, hint=hint, code="capability.root")


def _routed() -> list[ipaddress.IPv4Network]:
    """Give the networks this host knows a way to, without the default route."""
    shown = attempt(["ip", "-j", "-4", "route", "show", "table", "all"])
    known = [route["dst"] for route in json.loads(shown.output or "[]")]
    return [ipaddress.IPv4Network(place, strict=False) for place in known if place != "default"]


def _await_carrier(side: LinkEnd) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        shown = attempt(["ip", "-n", side.namespace, "-j", "link", "show", INTERFACE])
        if '"operstate":"UP"' in shown.output:
            return
        time.sleep(0.01)
    message = f"the interface of side `{side.letter}` did not come up within {PATIENCE_S:g} s"
    raise CapabilityError(message, hint="ip -n NAMESPACE link", code="capability.link")


def _execute(command: list[str]) -> None:
    said = attempt(command)
    if not said.succeeded:
        message = (
            f"cannot create a link between two network namespaces: `{' '.join(command)}`: {said.last_words}"
        )
        hint = "root with CAP_SYS_ADMIN and CAP_NET_ADMIN, and a kernel with CONFIG_NET_NS and CONFIG_VETH"
        raise CapabilityError(message, hint=hint, code="capability.link")
