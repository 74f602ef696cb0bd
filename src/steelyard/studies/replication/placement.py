"""Where the experiments run: devices of a file, or this host, and a container technology."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steelyard.errors import UsageError
from steelyard.run.hosts.device import Device
from steelyard.run.hosts.device_file import default_devices, read_devices
from steelyard.studies.host_facts import host_facts, planned_hosts
from steelyard.studies.replication.cells import Host
from steelyard.studies.replication.findings.effects import SWAPPED
from steelyard.studies.replication.programs import find_programs
from steelyard.studies.replication.settings import HERE, NOT_PLACED, StudyDevices

if TYPE_CHECKING:
    from collections.abc import Mapping

    from steelyard.design.technology import Technology
    from steelyard.studies.replication.options import ReplicationOptions

CONTAINERS: Final = ("docker", "podman", "crun")
"""In the order in which they are tried."""

NO_CONTAINER: Final = "`containers` is none"


def host_here(options: ReplicationOptions, technologies: Mapping[str, Technology]) -> Host:
    """Look at the devices, and at what this host offers.

    Without a device file, programs of one role are run on this host as it is and on the two devices
    that it plays; service and database are placed on those, so that they can be swapped.

    Raises
    ------
    StudyFileError
        If the device file is wrong.
    """
    if planned_hosts():
        return _each_host(options, technologies)
    devices, note = _devices(options)
    container, reason = container_here(options.containers, technologies)
    named = tuple(devices)
    programs = named
    local = [name for name, device in devices.items() if device.kind == "local"]
    if options.devices is None:
        programs = (HERE, *named)
    if options.devices is None or not local:
        devices = {HERE: Device(HERE), **devices}
        local = [HERE]
    storages = {name: tuple(device.storages) for name, device in devices.items()}
    return Host(
        devices={name: device.document() for name, device in devices.items()},
        note=note,
        ground=StudyDevices(storages, programs, named, container, reason, options.placement, local[0]),
        programs=find_programs(),
        cpus=tuple(sorted(os.sched_getaffinity(0))),
        may_raise_priority=os.geteuid() == 0,
    )


def _each_host(options: ReplicationOptions, technologies: Mapping[str, Technology]) -> Host:
    """Look at what the hosts offer that a study is placed on: each is a device, and has all roles."""
    _require_placeable(options)
    alone = Device(HERE)
    container, reason = container_here(options.containers, technologies)
    storages = {HERE: tuple(alone.storages)}
    ground = StudyDevices(storages, (HERE,), (HERE,), container, reason, driver=HERE, several=NOT_PLACED)
    return Host(
        devices={HERE: alone.document()},
        note="each host that the study was placed on is a device",
        ground=ground,
        programs=find_programs(),
        cpus=tuple(range(host_facts().cpu_count)),
        may_raise_priority=os.geteuid() == 0,
    )


def _require_placeable(options: ReplicationOptions) -> None:
    refused = {
        "--devices": options.devices is not None,
        "placement": bool(options.placement),
        "settings = swapped": SWAPPED in (options.settings or ()),
        "budget_minutes": options.budget_minutes is not None,
    }
    asked = [name for name, is_asked in refused.items() if is_asked]
    if asked:
        why = "each host measures a number of blocks that is fixed before, and has all roles of an experiment"
        message = f"cannot place `{asked[0]}` on other hosts: with `--on` {why}"
        hint = (
            "leave it out, or leave out --on: a device file names devices that take roles of one experiment"
        )
        raise UsageError(message, hint=hint, code="usage.not-placeable")


def _devices(options: ReplicationOptions) -> tuple[dict[str, Device], str]:
    if options.devices is None:
        return default_devices()
    return read_devices(Path(options.devices).expanduser()), ""


def container_here(choice: str, technologies: Mapping[str, Technology]) -> tuple[str | None, str | None]:
    """Give the container technology chosen (``auto``: the first that works), or ``None`` and the reason."""
    if choice == "none":
        return None, NO_CONTAINER
    reasons = []
    for name in CONTAINERS if choice == "auto" else (choice,):
        found = technologies.get(name)
        if found is not None and found.available:
            return name, None
        reason = "is not known" if found is None else found.reason or "does not work"
        reasons.append((name, reason, getattr(found, "repair", None) or ""))
    name, reason, repair = reasons[0]
    others = f"; nor is there {' or '.join(each for each, _, _ in reasons[1:])}" if reasons[1:] else ""
    return None, f"{name}: {reason}{others}{f' (repair: {repair})' if repair else ''}"
