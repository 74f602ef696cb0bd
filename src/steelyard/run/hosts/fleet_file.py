"""The file of hosts that a study is placed on by ssh: TOML in, hosts out, every problem at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from steelyard.run.hosts.named_tables import (
    HOST_NAME,
    Problems,
    quoted,
    read_cpus,
    read_tables,
    read_target,
    read_words,
    say_unknown,
    tables_of,
    whole,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

PAGE: Final = "docs/guides/cluster.md"
FOLDER: Final = "~/.cache/steelyard/placed"
LOOK_S: Final = 10
LOST_AFTER_S: Final = 300
LONGEST_S: Final = 7 * 24 * 3600
_WITH_VALUE: Final = frozenset({"-o", "-i", "-F", "-J", "-l", "-c", "-m", "-b", "-B"})
_ALONE: Final = frozenset({"-4", "-6", "-C"})
_FIXED: Final = frozenset(
    {
        *("batchmode", "stricthostkeychecking", "forwardagent", "forwardx11", "requesttty", "loglevel"),
        *("connecttimeout", "connectionattempts", "serveraliveinterval", "serveralivecountmax"),
        *("clearallforwardings", "port"),
    }
)
"""What Steelyard says to ssh itself, in small letters."""


@dataclass(frozen=True, slots=True)
class FleetHost:
    """One host.

    Parameters
    ----------
    name : str
        As the file names it.
    target : str
        ``[USER@]HOST`` as ssh takes it.
    port : int or None
        Its port; ``None``: what ssh decides.
    ssh_options : tuple of str
        Further words for ssh.
    steelyard : tuple of str
        Command there; a word may begin with ``~/``.
    folder : str
        Where parts lie there; may begin with ``~/``.
    labels : tuple of str
        What it may be chosen by.
    cpus : tuple of int or None
        CPUs that runs are bound to; ``None``: all.
    """

    name: str
    target: str
    port: int | None = None
    ssh_options: tuple[str, ...] = ()
    steelyard: tuple[str, ...] = ("steelyard",)
    folder: str = FOLDER
    labels: tuple[str, ...] = ()
    cpus: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Fleet:
    """Hosts, and how they are watched.

    Parameters
    ----------
    hosts : tuple of FleetHost
        In the order of the file.
    look_s : float
        Between two looks at what a host recorded [s].
    lost_after_s : float
        After so long without an answer the parts of a host are placed on others [s].
    """

    hosts: tuple[FleetHost, ...]
    look_s: float = LOOK_S
    lost_after_s: float = LOST_AFTER_S


def read_fleet(path: Path) -> Fleet:
    """Read a file of hosts.

    Parameters
    ----------
    path : Path
        TOML, one table ``[hosts.NAME]`` per host; see ``docs/guides/cluster.md``.

    Raises
    ------
    StudyFileError
        If it cannot be read, is no TOML, names no host, or anything in it is unknown or out of its range.
        All problems are listed, each with its line.
    """
    found = read_tables(path, kind="host", page=PAGE, read=_fleet)
    return Fleet(**found)


def _fleet(document: Mapping[str, Any], problems: Problems) -> dict[str, Any]:
    known = {"hosts", *_OF_FLEET}
    for key in document:
        if key not in known:
            problems.add((key,), say_unknown(key, known, f"known: {quoted(known)}"))
    good = problems.read(document, _OF_FLEET, ())
    look_s, lost_after_s = good.get("look_s", LOOK_S), good.get("lost_after_s", LOST_AFTER_S)
    if lost_after_s < 2 * look_s:
        at = "lost_after_s" if "lost_after_s" in document else "look_s"
        what = f"leaves {lost_after_s} s until a host is given up, which is looked at every {look_s} s; "
        problems.add((at,), what + "expected at least twice as long")
    tables = tables_of(document, "hosts", problems, HOST_NAME)
    hosts = (_host(name, table, problems) for name, table in tables.items() if isinstance(table, dict))
    return {**good, "hosts": tuple(hosts)}


def _host(name: str, table: Mapping[str, Any], problems: Problems) -> FleetHost:
    where = ("hosts", name)
    for key in table:
        if key not in _OF_HOST:
            problems.add((*where, key), say_unknown(key, _OF_HOST, f"known: {quoted(_OF_HOST)}"))
    good = problems.read(table, _OF_HOST, where)
    if "target" not in table:
        problems.add(where, "lacks `target`, `[USER@]HOST`")
    if "python" in table and "steelyard" in table:
        problems.add((*where, "python"), "is one way to say which Steelyard, `steelyard` another: give one")
    python = good.pop("python", None)
    if python is not None:
        good["steelyard"] = (python, "-m", "steelyard")
    return FleetHost(name, good.pop("target", ""), **good)


def _read_path(value: object) -> str:
    is_good = isinstance(value, str) and value.startswith(("/", "~/")) and value.isprintable()
    if not is_good:
        message = f"is {value!r}; expected a path that begins with / or ~/"
        raise ValueError(message)
    return str(value)


def _read_command(value: object) -> tuple[str, ...]:
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list) or not words or not all(isinstance(one, str) and one for one in words):
        message = f'is {value!r}; expected a program or a list of words, e.g. "~/venv/bin/steelyard"'
        raise ValueError(message)
    return tuple(words)


def _read_labels(value: object) -> tuple[str, ...]:
    is_good = isinstance(value, list) and all(isinstance(one, str) and one for one in value)
    if not isinstance(value, list) or not is_good:
        message = f'is {value!r}; expected a list of words, e.g. ["epyc", "rack-3"]'
        raise ValueError(message)
    return tuple(value)


def _read_ssh_options(value: object) -> tuple[str, ...]:
    """Read words for ssh that say how a host is reached, none that forward, ask or check less."""
    words = read_words(value)
    left = list(words)
    while left:
        word = left.pop(0)
        if word in _ALONE:
            continue
        if word not in _WITH_VALUE or not left:
            message = (
                f"has `{word}`; expected {', '.join(f'`{one} VALUE`' for one in sorted(_WITH_VALUE))}, "
                f"{quoted(_ALONE)}, each as a word of its own"
            )
            raise ValueError(message)
        argument = left.pop(0)
        key = argument.replace("=", " ").split(" ")[0].lower()
        if word == "-o" and key in _FIXED:
            message = f"has `-o {argument}`, which Steelyard sets itself" + (
                "; write `port = N`" if key == "port" else ""
            )
            raise ValueError(message)
    return words


_OF_FLEET: Final[dict[str, Callable[[object], Any]]] = {
    "look_s": whole(1, 3600, "s"),
    "lost_after_s": whole(1, LONGEST_S, "s"),
}
_OF_HOST: Final[dict[str, Callable[[object], Any]]] = {
    "target": read_target,
    "port": whole(1, 65535, "TCP port"),
    "ssh_options": _read_ssh_options,
    "steelyard": _read_command,
    "python": _read_path,
    "folder": _read_path,
    "labels": _read_labels,
    "cpus": read_cpus,
}
