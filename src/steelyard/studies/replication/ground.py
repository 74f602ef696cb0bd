"""Where the experiments are executed: devices of a file, or this host, and a container technology."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Final

from steelyard.run.devices.device import Device
from steelyard.studies.replication.cells import Host
from steelyard.studies.replication.programs import find_programs
from steelyard.studies.replication.settings import Ground

if TYPE_CHECKING:
    from collections.abc import Mapping

    from steelyard.studies.replication.options import ReplicationOptions
    from steelyard.studies.stability.missing import Technology

HERE: Final = "here"
"""Name of the device of a study without a file of devices: this host."""

CONTAINERS: Final = ("docker", "podman", "crun")
"""In the order in which they are tried."""

NO_CONTAINER: Final = "`containers` is none"


def host_here(
    options: ReplicationOptions,
    devices: Mapping[str, Mapping[str, Any]],
    technologies: Mapping[str, Technology],
) -> Host:
    """Look at what this host offers to a study on these devices."""
    container, reason = container_here(options.containers, technologies)
    storages = {name: tuple(device["storages"]) for name, device in devices.items()}
    driver = next((name for name, device in devices.items() if device["kind"] == "local"), "")
    return Host(
        Ground(storages, container, reason, options.placement, driver),
        find_programs(),
        tuple(sorted(os.sched_getaffinity(0))),
        may_raise_priority=os.geteuid() == 0,
    )


def devices_of(options: ReplicationOptions) -> dict[str, dict[str, Any]]:
    """Give the devices of the file that the options name; this host alone where they name none."""
    return {HERE: Device(HERE).document()}


def container_here(choice: str, technologies: Mapping[str, Technology]) -> tuple[str | None, str | None]:
    """Give the container technology to use, or ``None`` and why there is none.

    Parameters
    ----------
    choice : str
        ``auto`` takes the first that works, ``none`` takes none.
    technologies : mapping
        Availability by name; each is tried when it is asked for.
    """
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


def devices_text(devices: Mapping[str, Mapping[str, Any]]) -> str:
    """Write devices as the text that a plan keeps."""
    return json.dumps(devices, sort_keys=False)
