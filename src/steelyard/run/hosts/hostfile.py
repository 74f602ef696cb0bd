"""The file of hosts that Open MPI and MPICH read: one host per line, with its processes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from steelyard.errors import UsageError
from steelyard.model.plain_file import read_plain_file

if TYPE_CHECKING:
    from pathlib import Path

EXPECTED: Final = "`[USER@]HOST [slots=N]` or `[USER@]HOST[:N]` per line, comments after `#`"
_HOST: Final = re.compile(
    r"(?:(?P<user>[A-Za-z_][\w.-]*)@)?(?P<name>[A-Za-z0-9](?:[\w.-]*\w)?)(?::(?P<slots>\d{1,6}))?", re.ASCII
)
_OPTION: Final = re.compile(r"(?P<key>slots|max[_-]slots)\s*=\s*(?P<value>\d{1,6})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Host:
    """One host of a file.

    Parameters
    ----------
    name : str
        Name or IPv4 address.
    user : str or None
        Account there; ``None``: what ssh decides.
    slots : int
        Processes it takes, at least 1.
    """

    name: str
    user: str | None = None
    slots: int = 1

    @property
    def target(self) -> str:
        """The host as ssh takes it."""
        return self.name if self.user is None else f"{self.user}@{self.name}"


def read_hostfile(path: Path) -> tuple[Host, ...]:
    """Read a file of hosts.

    Parameters
    ----------
    path : Path
        Text in the format of Open MPI (``slots=N``) or MPICH (``:N``).

    Raises
    ------
    UsageError
        If it cannot be read, names no host, or has a line that is no host; with the line.
    """
    try:
        text = read_plain_file(path).decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "no text"
        message = f"cannot read the hostfile `{path}`: {reason}"
        raise UsageError(message, hint=f"a file with {EXPECTED}", code="usage.hostfile") from error
    return parse_hostfile(text, str(path))


def parse_hostfile(text: str, name: str) -> tuple[Host, ...]:
    r"""Read the text of a hostfile; a host that stands there twice keeps both lines.

    Raises
    ------
    UsageError
        As `read_hostfile`.

    Examples
    --------
    >>> parse_hostfile("node1 slots=2  # fast\nme@node2:4", "hosts")
    (Host(name='node1', user=None, slots=2), Host(name='node2', user='me', slots=4))
    """
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.partition("#")[0].strip()
        if content:
            found.append(_host(content, f"{name}:{number}"))
    if not found:
        message = f"the hostfile `{name}` names no host"
        raise UsageError(message, hint=f"expected {EXPECTED}", code="usage.hostfile")
    return tuple(found)


def _host(content: str, place: str) -> Host:
    head, _, rest = content.partition(" ")
    matched = _HOST.fullmatch(head)
    left = _OPTION.sub("", rest).strip()
    options = {one["key"]: int(one["value"]) for one in _OPTION.finditer(rest)}
    if matched is None or left:
        message = f"`{place}`: unexpected `{left if matched else head}`"
        raise UsageError(message, hint=f"expected {EXPECTED}", code="usage.hostfile")
    slots = options.get("slots", int(matched["slots"] or 1))
    if slots < 1:
        message = f"`{place}`: the host takes {slots} processes; expected at least 1"
        raise UsageError(message, hint=f"expected {EXPECTED}", code="usage.hostfile")
    return Host(matched["name"], matched["user"], slots)


def first_pair(hosts: tuple[Host, ...], name: str) -> tuple[Host, Host]:
    """Give the two hosts the ranks run on: the first, and the first that is another one.

    Raises
    ------
    UsageError
        If there is but one.
    """
    others = [host for host in hosts if host.name != hosts[0].name]
    if not others:
        message = f"the hostfile `{name}` names one host only, `{hosts[0].name}`; a link has two ends"
        hint = "add a second host; on one host leave the hostfile out, or use `--link rate=1gbit`"
        raise UsageError(message, hint=hint, code="usage.hostfile")
    return hosts[0], others[0]
