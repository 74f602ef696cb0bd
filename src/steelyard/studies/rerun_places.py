"""Where a package is repeated: its own hosts are those of somebody else, and never contacted unasked."""

from __future__ import annotations

import shlex
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.errors import UsageError
from steelyard.run.hosts.device_file import read_devices
from steelyard.run.hosts.hostfile import first_pair, read_hostfile
from steelyard.share.package.texts import DEVICES_NAME, devices_file, request_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from steelyard.model import Plan
    from steelyard.run.hosts.device import Device


@dataclass(frozen=True, slots=True)
class Places:
    """Where the study of a package is run.

    Parameters
    ----------
    files : dict
        Files of devices or hosts, by key of the study file.
    said : tuple of str
        Each device or host, whole: what would be entered, how, and what would be written there.
    recorded : str or None
        The device file of the package, where all of them are parts of this machine.
    """

    files: dict[str, str] = field(default_factory=dict)
    said: tuple[str, ...] = ()
    recorded: str | None = None

    def laid(self, result: Path) -> dict[str, str]:
        """Lay the device file of the package into the new result folder, and name all files."""
        if self.recorded is None:
            return self.files
        result.mkdir(parents=True, exist_ok=True)
        path = result / DEVICES_NAME
        path.write_text(self.recorded, encoding="utf-8")
        return {**self.files, "devices": str(path)}


def places_of(plan: Plan, devices: Path | None, hostfile: Path | None) -> Places:
    """Choose where the study of a package is run; `devices` and `hostfile` are what the user gives instead.

    A path in the package's request is one of another machine, and is not read here.

    Raises
    ------
    UsageError
        If the package was run on other hosts and none are given, or some are given to a study without.
    StudyFileError
        If a file is wrong, that of the package included.
    """
    request = request_of(plan) or {}
    for name, given in (("devices", devices), ("hostfile", hostfile)):
        if given is not None and name not in request:
            message = f"`--{name}` does not apply to the study `{plan.study}`, which has no such places"
            raise UsageError(message, hint=f"leave out `--{name}`", code="usage.places")
    if hostfile is not None:
        pair = first_pair(read_hostfile(hostfile), str(hostfile))
        hosts = tuple(f"host `{host.target}`, by ssh, from `{hostfile}`" for host in pair)
        return Places({"hostfile": str(hostfile.resolve())}, hosts)
    if request.get("hostfile") is not None:
        message = "the package was measured between two hosts, which are not yours"
        hint = "name two of your own with `--hostfile FILE` (docs/guides/links.md)"
        raise UsageError(message, hint=hint, code="usage.places")
    if devices is not None:
        return Places({"devices": str(devices.resolve())}, _said(read_devices(devices)))
    recorded = devices_file(plan)
    return Places() if recorded is None else _recorded(recorded)


def _recorded(text: str) -> Places:
    with tempfile.TemporaryDirectory(prefix="steelyard-devices-") as folder:
        path = Path(folder) / DEVICES_NAME
        path.write_text(text, encoding="utf-8")
        found = read_devices(path)
    elsewhere = [f"`{device.host}` ({name})" for name, device in found.items() if device.kind == "ssh"]
    if elsewhere:
        message = f"the package was measured on hosts that are not yours: {', '.join(elsewhere)}"
        hint = f"name your own by the same names with `--devices FILE`; theirs is `{DEVICES_NAME}`"
        raise UsageError(message, hint=hint, code="usage.places")
    return Places({}, _said(found), text)


def _said(devices: Mapping[str, Device]) -> tuple[str, ...]:
    lines = []
    for name, device in devices.items():
        facts = [f"device {name}: {device.kind}"]
        if device.kind == "ssh":
            words = shlex.join(("ssh", *device.ssh_options, device.host))
            facts = [f"device {name}: another host, by `{words}`, with the rights of that login"]
        limits = {"address": device.address, "CPUs": device.cpus, "CPU %": device.cpu_percent}
        limits |= {"MiB": device.memory_mib}
        facts += [f"{what} {value}" for what, value in limits.items() if value]
        facts += [f"writes to `{folder}`" for folder in device.storages.values()]
        lines.append(", ".join(facts))
    return tuple(lines)
