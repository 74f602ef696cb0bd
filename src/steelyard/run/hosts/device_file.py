"""The device file: TOML in, devices by name out, every problem at once with its line."""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from typing import TYPE_CHECKING, Any, Final

from steelyard.design.positions import KeyPath, locate_keys
from steelyard.errors import StudyFileError
from steelyard.model.plain_file import read_plain_file
from steelyard.run.hosts.device import KINDS, MEMORY, Device

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

PAGE: Final = "docs/reference/devices.md"
NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.]{0,31}")
"""No hyphen: ``DEVICE-native`` is the name of a setting."""
TARGET: Final = re.compile(r"(?:[A-Za-z_][\w.-]*@)?[A-Za-z0-9](?:[\w.:-]*\w)?", re.ASCII)
LARGEST_PERCENT: Final = 100_000
LARGEST_MEMORY_MIB: Final = 1 << 24
SMALLEST_MEMORY_MIB: Final = 64
"""Less is less than a Java virtual machine or a database starts with."""
MOST_CPUS: Final = 4096
LIMITS: Final = ("cpus", "cpu_percent", "memory_mib")
PLAYED_SHARE_PERCENT: Final = 70
"""CPU time of the second of the devices that are played where no file names any."""

_Problem = tuple[KeyPath, str]


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
    try:
        text = read_plain_file(path).decode()
        document = tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        message = f"cannot read the device file `{path}`: {reason}"
        raise StudyFileError(message, hint=f"the format is in {PAGE}", code="study-file.devices") from error
    problems: list[_Problem] = []
    devices = _devices(document, problems)
    if problems:
        lines = locate_keys(text)
        listed = sorted((lines.get(where, 0), ".".join(map(str, where)), what) for where, what in problems)
        count = "1 problem" if len(listed) == 1 else f"{len(listed)} problems"
        said = "\n".join(f"  line {line}: `{where}` {what}" for line, where, what in listed)
        message = f"the device file `{path}` has {count}:\n{said}"
        raise StudyFileError(message, hint=f"the format is in {PAGE}", code="study-file.devices")
    return devices


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


def _devices(document: Mapping[str, Any], problems: list[_Problem]) -> dict[str, Device]:
    problems += [((key,), "is unknown; known: `devices`") for key in document if key != "devices"]
    tables = document.get("devices", {})
    if not isinstance(tables, dict) or not tables:
        problems.append((("devices",), "must contain at least one table `[devices.NAME]`"))
        return {}
    return {name: _device(name, table, problems) for name, table in tables.items()}


def _device(name: str, table: object, problems: list[_Problem]) -> Device:
    where: KeyPath = ("devices", name)
    if NAME.fullmatch(name) is None:
        problems.append((where, "is not a name: a letter, then letters, digits, `_` or `.`, at most 32"))
    if not isinstance(table, dict):
        problems.append((where, "must be a table"))
        return Device(name)
    kind = table.get("kind")
    if kind not in KINDS:
        at, found = ((*where, "kind"), f"is `{kind}`") if "kind" in table else (where, "lacks `kind`")
        problems.append((at, f"{found}; allowed: {', '.join(f'`{one}`' for one in KINDS)}"))
        return Device(name)
    allowed = {"kind", "storages", *_KEYS[kind]}
    good: dict[str, Any] = {}
    for key, value in table.items():
        if key not in allowed:
            problems.append(((*where, key), _unknown(key, kind, allowed)))
        elif key != "kind":
            try:
                good[key] = _READERS[key](value)
            except ValueError as error:
                problems.append(((*where, key), str(error)))
    problems += [(where, f"lacks {lacks}") for lacks in _lacking(kind, table)]
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
    known = f"known for kind `{kind}`: {', '.join(f'`{one}`' for one in sorted(allowed))}"
    if key in LIMITS:
        return f"is a limit, which kind `{kind}` does not take; {known}"
    near = difflib.get_close_matches(key, allowed, n=1)
    return f"is unknown; did you mean `{near[0]}`? {known}" if near else f"is unknown; {known}"


def _read_cpus(value: object) -> tuple[int, ...]:
    numbers = value if isinstance(value, list) else []
    good = [one for one in numbers if isinstance(one, int) and not isinstance(one, bool)]
    if not good or len(good) != len(numbers) or not all(0 <= one < MOST_CPUS for one in good):
        message = f"is {value!r}; expected a list of CPU numbers, e.g. [0, 1]"
        raise ValueError(message)
    return tuple(sorted(set(good)))


def _whole(lowest: int, highest: int, unit: str) -> Callable[[object], int]:
    def read(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= highest:
            message = f"is {value!r}; expected a whole number from {lowest} to {highest} [{unit}]"
            raise ValueError(message)
        return value

    return read


def _read_target(value: object) -> str:
    if not isinstance(value, str) or TARGET.fullmatch(value) is None:
        message = f"is {value!r}; expected `[USER@]HOST`"
        raise ValueError(message)
    return value


def _read_words(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        message = f'is {value!r}; expected a list of words, e.g. ["-p", "2222"]'
        raise ValueError(message)
    return tuple(value)


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
    "cpus": _read_cpus,
    "cpu_percent": _whole(1, LARGEST_PERCENT, "percent of one CPU"),
    "memory_mib": _whole(SMALLEST_MEMORY_MIB, LARGEST_MEMORY_MIB, "MiB"),
    "host": _read_target,
    "address": _read_target,
    "ssh_options": _read_words,
    "storages": _read_storages,
}
