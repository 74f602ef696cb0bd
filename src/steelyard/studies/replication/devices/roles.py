"""From what was asked to the place of a role."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any, Final

from steelyard.errors import CapabilityError, DataError
from steelyard.run.hosts.device import Device
from steelyard.run.hosts.ssh import address_and_port
from steelyard.studies.replication.devices.contained import ContainedGround
from steelyard.studies.replication.devices.native import NativeGround
from steelyard.studies.replication.devices.remote import RemoteGround, host_of
from steelyard.studies.replication.devices.remote_container import RemoteContainer
from steelyard.studies.replication.devices.role_place import RolePlace
from steelyard.studies.replication.devices.runtimes import HOST_NETWORK, OWN_NETWORK, runtime_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from steelyard.studies.replication.devices.interface import Place
    from steelyard.studies.replication.devices.placement import Ground

LOOPBACK: Final = "127.0.0.1"


def place_of(asked: Mapping[str, Any], role: str) -> Place:
    """Give the place of a role; entering it makes it.

    Raises
    ------
    DataError
        If the setting has no such role, or names a device or a storage that is not described.
    CapabilityError
        If the device cannot be reached, or the container technology is not available.
    """
    roles = asked["setting"]["roles"]
    if role not in roles:
        message = f"setting `{asked['setting']['name']}` has no role `{role}`; it has {', '.join(roles)}"
        raise DataError(message, code="experiment.role")
    chosen = roles[role]
    device = _device(asked, chosen["device"])
    storage = _storage(device, chosen.get("storage"))
    container = chosen.get("container")
    network = OWN_NETWORK if len(roles) == 1 else HOST_NETWORK

    def ground_in(folder: Path) -> Ground:
        if device.kind == "ssh":
            if container is not None:
                return RemoteContainer(device, storage, folder, container, network)
            return RemoteGround(device, storage, folder)
        if container is None:
            return NativeGround(device, storage, folder)
        runtime = runtime_of(container, asked.get("engines", {}))
        return ContainedGround(device, storage, folder, runtime, network)

    return RolePlace(role, device, ground_in, lambda: _address(asked, device))


def _address(asked: Mapping[str, Any], device: Device) -> str:
    """Give the address of a device for the roles of a setting: loopback where all are on one host."""
    used = {one["device"] for one in asked["setting"]["roles"].values()}
    devices = [_device(asked, name) for name in sorted(used)]
    remote = [one for one in devices if one.kind == "ssh"]
    if not remote or (len(devices) == 1):
        return LOOPBACK
    if device.kind == "ssh":
        return device.address or address_and_port(host_of(device), device.ssh_options)[0]
    there = remote[0].address or address_and_port(host_of(remote[0]), remote[0].ssh_options)[0]
    return _own_address(there)


def _own_address(there: str) -> str:
    """Give the address of this host from which packets to another one start."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((there, 9))
        except OSError as error:
            message = f"this host has no route to `{there}`: {error.strerror}"
            raise CapabilityError(message, hint="ip route", code="capability.host") from error
        return str(probe.getsockname()[0])


def _device(asked: Mapping[str, Any], name: str) -> Device:
    if name not in asked["devices"]:
        message = f"device `{name}` is not described; described: {', '.join(asked['devices'])}"
        raise DataError(message, code="experiment.device")
    return Device.from_document(name, asked["devices"][name])


def _storage(device: Device, name: str | None) -> str:
    if name is None:
        return next(iter(device.storages.values()))
    if name not in device.storages:
        message = f"device `{device.name}` has no storage `{name}`; it has {', '.join(device.storages)}"
        raise DataError(message, hint="state it in the device file", code="experiment.storage")
    return device.storages[name]
