"""From what was asked to the place of a role."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from steelyard.errors import DataError
from steelyard.run.devices.contained import ContainedGround
from steelyard.run.devices.device import Device
from steelyard.run.devices.native import NativeGround
from steelyard.run.devices.role_place import RolePlace
from steelyard.run.devices.runtimes import HOST_NETWORK, OWN_NETWORK, runtime_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from steelyard.run.devices.ground import Ground
    from steelyard.run.devices.interface import Place


def place_of(asked: Mapping[str, Any], role: str) -> Place:
    """Give the place of a role; entering it makes it.

    Parameters
    ----------
    asked : Mapping
        ``experiment.json``; see `steelyard.record.experiment`.
    role : str
        One of the roles of its setting.

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
        if container is None:
            return NativeGround(device, storage, folder.name)
        runtime = runtime_of(container, asked.get("engines", {}))
        return ContainedGround(device, storage, folder, runtime, network)

    return RolePlace(role, device, ground_in, "127.0.0.1")


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
        raise DataError(message, hint="state it in the file of devices", code="experiment.storage")
    return device.storages[name]
