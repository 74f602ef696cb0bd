"""Commands on another host by ssh: the same options always, never a question, and words kept as they are."""

from __future__ import annotations

import shlex
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from steelyard.errors import CapabilityError
from steelyard.run.isolation.attempt import attempt, installed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.run.hosts.hostfile import Host

CONNECT_S: Final = 10
PINNED: Final = (
    *("-o", "BatchMode=yes"),
    *("-o", f"ConnectTimeout={CONNECT_S}"),
    *("-o", "ConnectionAttempts=1"),
    *("-o", "ServerAliveInterval=10"),
    *("-o", "ServerAliveCountMax=3"),
    *("-o", "RequestTTY=no"),
    *("-o", "ForwardX11=no"),
    *("-o", "ForwardAgent=no"),
    *("-o", "LogLevel=ERROR"),
)
"""A study asks nobody for a password, notices a dead connection after 30 s, and forwards nothing."""
_NEXT_STEPS: Final = (
    ("Host key verification failed", "accept the key of the host once: ssh {target} true"),
    ("Permission denied", "allow your key there: ssh-copy-id {target}"),
    ("Connection refused", "start the ssh server there: sudo systemctl start ssh"),
    ("timed out", "is the host up, and does a firewall let port {port} through? ping {name}"),
    ("No route to host", "is the host up? ping {name}"),
    ("Network is unreachable", "this host has no route to it: ip route"),
)


@dataclass(frozen=True, slots=True)
class Reached:
    """How a host is reached.

    Parameters
    ----------
    host : Host
        As the hostfile names it.
    address : str
        Its IPv4 address.
    is_local : bool
        Whether it is this host: then its commands need no ssh.
    """

    host: Host
    address: str
    is_local: bool


def ssh_words(target: str, options: Sequence[str] = ()) -> tuple[str, ...]:
    """Give ssh with its options and the host; a command follows as one word.

    Examples
    --------
    >>> ssh_words("me@node")[:3], ssh_words("me@node")[-2:]
    (('ssh', '-o', 'BatchMode=yes'), ('--', 'me@node'))
    """
    return ("ssh", *options, *PINNED, "--", target)


def remote_command(target: str, words: Sequence[str], options: Sequence[str] = ()) -> tuple[str, ...]:
    """Give the command that runs words on a host: ssh hands one line to a shell, so it is quoted.

    Examples
    --------
    >>> remote_command("node", ["echo", "a b"])[-1]
    "echo 'a b'"
    """
    return (*ssh_words(target, options), shlex.join(words))


def reach(host: Host, options: Sequence[str] = ()) -> Reached:
    """Find a host, and log in to it without a password unless it is this one.

    Parameters
    ----------
    host : Host
        Which.
    options : sequence of str
        Further words for ssh, e.g. ``-F FILE``.

    Raises
    ------
    CapabilityError
        If ssh is missing, the host is unknown, or it lets nobody in; with the next step.
    """
    address, port = address_and_port(host, options)
    if _is_local(address):
        return Reached(host, address, is_local=True)
    said = attempt(remote_command(host.target, ["true"], options), timeout_s=CONNECT_S + 10)
    if not said.succeeded:
        raise login_refused(host, said.error or said.last_words, port)
    return Reached(host, address, is_local=False)


def login_refused(host: Host, said: str, port: str) -> CapabilityError:
    """Give the error for a host that lets nobody in, with the next step.

    Parameters
    ----------
    host : Host
        Which.
    said : str
        What ssh wrote.
    port : str
        Where it tried.
    """
    step = next((step for words, step in _NEXT_STEPS if words in said), "ssh -v {target} true")
    hint = step.format(target=host.target, name=host.name, port=port)
    words = (said.strip().splitlines() or ["no answer in time"])[-1]
    message = f"cannot reach host `{host.name}` by ssh without a password: {words}"
    return CapabilityError(message, hint=hint, code="capability.ssh")


def address_and_port(host: Host, options: Sequence[str] = ()) -> tuple[str, str]:
    """Give the IPv4 address and the port at which ssh looks for a host.

    Raises
    ------
    CapabilityError
        If ssh is missing or the host is unknown.
    """
    if installed("ssh") is None:
        message = f"cannot reach host `{host.name}`: `ssh` is not installed"
        raise CapabilityError(message, hint="apt-get install openssh-client", code="capability.ssh")
    settings = _settings(host, options)
    return _address(host, settings.get("hostname", host.name)), settings.get("port", "22")


def require_program(reached: Reached, program: str, options: Sequence[str] = ()) -> None:
    """Refuse a host that lacks a program.

    Raises
    ------
    CapabilityError
        If it is not there or cannot be run.
    """
    words = ["sh", "-c", 'command -v -- "$1" >/dev/null', "sh", program]
    command = words if reached.is_local else remote_command(reached.host.target, words, options)
    if not attempt(command, timeout_s=CONNECT_S + 10).succeeded:
        message = f"host `{reached.host.name}` has no program `{program}`"
        hint = "install the same version of Steelyard there, at the same place"
        raise CapabilityError(message, hint=hint, code="capability.remote-program")


def _settings(host: Host, options: Sequence[str]) -> dict[str, str]:
    """Give what ssh's own configuration says of a host: an alias has its name and port there."""
    said = attempt(["ssh", *options, "-G", "--", host.target])
    pairs = (line.partition(" ") for line in said.output.splitlines())
    return {key: value for key, _, value in pairs}


def _address(host: Host, name: str) -> str:
    try:
        found = socket.getaddrinfo(name, None, socket.AF_INET, socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        message = f"host `{host.name}` is unknown: `{name}` has no IPv4 address ({error})"
        hint = f"check the name: getent ahostsv4 {name}"
        raise CapabilityError(message, hint=hint, code="capability.host") from error
    return str(found[0][4][0])


def _is_local(address: str) -> bool:
    """Whether an address is one of this host's: then a socket can be bound to it."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True
