"""The device file: TOML in, devices by name out, every problem at once with its line."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from steelyard.run.hosts.device import KINDS, MEMORY, Device
from steelyard.run.hosts.named_tables import (
    NAME,
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

    from steelyard.design.positions import KeyPath

PAGE: Final = "docs/reference/devices.md"
LARGEST_PERCENT: Final = 100_000
LARGEST_MEMORY_MIB: Final = 1 << 24
SMALLEST_MEMORY_MIB: Final = 64
"""Less is less than a Java virtual machine or a database starts with."""
LIMITS: Final = ("cpus", "cpu_percent", "memory_mib")
PLAYED_SHARE_PERCENT: Final = 70
"""CPU time of the second of the devices that are played where no file names any."""


def read_devices(path: Path) -> dict[str, Device]:
    """Read a device file.

    Parameters
    ----------
    path : Path
        TOML, one table ``[devices.NAME]`` per device; see ``docs/reference/devices.md``.

    Returns
    -------
    dict
        Devices by name, in the order of the file.

    Raises
    ------
    StudyFileError
        If it cannot be read, is no TOML, names no device, or anything in it is unknown or out of its range.
        All problems are listed, each with its line.
    """
    return read_tables(path, kind="device", page=PAGE, read=_devices)


def default_devices() -> tuple[dict[str, Device], str]:
    """Give the devices that are used where no file names any, and why they are what they are.

    Two are needed to see what swapping roles does. With two CPUs or more each is played by half of this
    host's, the second with a stated share of their time; with one CPU, the first is this host.

    Returns
    -------
    tuple
        Devices by name, and one sentence for the report.
    """
    usable = sorted(os.sched_getaffinity(0))
    half = len(usable) // 2
    if half == 0:
        weak = Device("D2", "played", cpus=tuple(usable), cpu_percent=PLAYED_SHARE_PERCENT)
        why = (
            f"this host has one usable CPU: D1 is the host itself, D2 is played by {PLAYED_SHARE_PERCENT} % "
            "of the CPU; a device file (`--devices FILE`) names real ones"
        )
        return {"D1": Device("D1"), "D2": weak}, why
    first, second = tuple(usable[:half]), tuple(usable[half:])
    share = PLAYED_SHARE_PERCENT * len(second)
    devices = {
        "D1": Device("D1", "played", cpus=first),
        "D2": Device("D2", "played", cpus=second, cpu_percent=share),
    }
    why = (
        f"no device file was given: both are played by this host, D1 by {_cpus(first)}, D2 by "
        f"{_cpus(second)} with {PLAYED_SHARE_PERCENT} % of their time; "
        "a device file (`--devices FILE`) names real ones"
    )
    return devices, why


def _cpus(numbers: tuple[int, ...]) -> str:
    return f"CPU {numbers[0]}" if len(numbers) == 1 else f"CPUs {','.join(map(str, numbers))}"


def _devices(document: Mapping[str, Any], problems: Problems) -> dict[str, Device]:
    for key in document:
        if key != "devices":
            problems.add((key,), "is unknown; known: `devices`")
    tables = tables_of(document, "devices", problems)
    return {name: _device(name, table, problems) for name, table in tables.items() if isinstance(table, dict)}


def _device(name: str, table: Mapping[str, Any], problems: Problems) -> Device:
    where: KeyPath = ("devices", name)
    kind = table.get("kind")
    if kind not in KINDS:
        at, found = ((*where, "kind"), f"is `{kind}`") if "kind" in table else (where, "lacks `kind`")
        problems.add(at, f"{found}; allowed: {', '.join(f'`{one}`' for one in KINDS)}")
        return Device(name)
    allowed = {"kind", "storages", *_KEYS[kind]}
    for key in table:
        if key not in allowed:
            problems.add((*where, key), _unknown(key, kind, allowed))
    readers = {key: read for key, read in _READERS.items() if key in allowed}
    good = problems.read(table, readers, where)
    for lacks in _lacking(kind, table):
        problems.add(where, f"lacks {lacks}")
    return Device(name, kind, **good)


_KEYS: Final[dict[str, tuple[str, ...]]] = {
    "local": (),
    "played": LIMITS,
    "ssh": ("host", "ssh_options", "address", "cpus"),
}


def _lacking(kind: str, table: Mapping[str, Any]) -> list[str]:
    if kind == "ssh" and "host" not in table:
        return ["`host`"]
    if kind == "played" and not any(key in table for key in LIMITS):
        return [f"a limit, one of {', '.join(f'`{key}`' for key in LIMITS)}"]
    return []


def _unknown(key: str, kind: str, allowed: set[str]) -> str:
    known = f"known for kind `{kind}`: {quoted(allowed)}"
    if key in LIMITS:
        return f"is a limit, which kind `{kind}` does not take; {known}"
    return say_unknown(key, allowed, known)


def _read_storages(value: object) -> dict[str, str]:
    if not isinstance(value, dict) or not value:
        message = f"is {value!r}; expected a table of folders by name, e.g. {{ H1 = '/mnt/card' }}"
        raise ValueError(message)
    for name, folder in value.items():
        if NAME.fullmatch(name) is None:
            message = f"has a storage `{name}`: a letter, then letters, digits, `_` or `.`, at most 32"
            raise ValueError(message)
        if not isinstance(folder, str) or not (folder == MEMORY or folder.startswith(("/", "~/"))):
            message = f"has for `{name}` {folder!r}; expected `{MEMORY}` or a folder that begins with / or ~/"
            raise ValueError(message)
    return value


_READERS: Final[dict[str, Callable[[object], Any]]] = {
    "cpus": read_cpus,
    "cpu_percent": whole(1, LARGEST_PERCENT, "percent of one CPU"),
    "memory_mib": whole(SMALLEST_MEMORY_MIB, LARGEST_MEMORY_MIB, "MiB"),
    "host": read_target,
    "address": read_target,
    "ssh_options": read_words,
    "storages": _read_storages,
}
