"""Where the roles of an experiment live: native or in a container, on which device and storage, swapped.

An experiment has one role (`app`) or three (`service`, `database`, `driver`). With one device the settings
are ``native`` and ``container``; where there are several, experiments of one role have ``DEVICE-native`` and
``DEVICE-container`` of each, and service and database are placed on the first two of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from steelyard.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

HERE: Final = "here"
"""Name of this host as a device of its own, where no device file names it."""

APP: Final = "app"
SERVICE: Final = "service"
DATABASE: Final = "database"
DRIVER: Final = "driver"
TIERS: Final = (SERVICE, DATABASE)
"""Roles that are swapped, and that live in containers; the load driver stands apart."""

OTHER_STORAGE: Final = "storage-swapped"
"""Setting of what uses a storage: the device's second one instead of its first."""

SEVERAL_HINT: Final = "(repair: describe a second one in a device file, --devices FILE)"
NOT_PLACED: Final = "that the study is placed on (repair: leave out --on, and name two in a device file)"


@dataclass(frozen=True, slots=True)
class RolePlace:
    """Where a role lives.

    Parameters
    ----------
    device : str
        Name of a device.
    storage : str
        Name of one of its storages.
    container : str or None
        Name of a container technology.
    """

    device: str
    storage: str
    container: str | None = None

    def document(self) -> dict[str, Any]:
        """Give it as it stands in ``experiment.json``."""
        return {"device": self.device, "storage": self.storage, "container": self.container}


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of an experiment.

    Parameters
    ----------
    name : str
        Level of the factor.
    roles : mapping
        Place of each role; empty where the setting is missing.
    missing : str or None
        Why it cannot be had here, with what repairs it.
    """

    name: str
    roles: Mapping[str, RolePlace] = field(default_factory=dict)
    missing: str | None = None


@dataclass(frozen=True, slots=True)
class StudyDevices:
    """The devices of a study.

    Parameters
    ----------
    storages : mapping
        Names of the storages of each device, in the order of the file.
    programs : tuple of str
        Devices of experiments of one role.
    tiers : tuple of str
        Devices on which service and database are placed, the first two of them.
    container : str or None
        Name of the container technology.
    no_container : str or None
        Why there is none.
    placement : mapping
        ``DEVICE`` or ``DEVICE/STORAGE`` of roles that the user has placed.
    driver : str
        Device of the load driver, unless it is placed.
    several : str
        What would give a second device where there is one.
    """

    storages: Mapping[str, tuple[str, ...]]
    programs: tuple[str, ...]
    tiers: tuple[str, ...]
    container: str | None
    no_container: str | None = None
    placement: Mapping[str, str] = field(default_factory=dict)
    driver: str = ""
    several: str = SEVERAL_HINT


def settings_of_program(ground: StudyDevices) -> tuple[Setting, ...]:
    """Give the settings of an experiment of one role; the other storage for what uses one."""
    found = []
    for device in ground.programs:
        prefix = "" if device == HERE or len(ground.programs) == 1 else f"{device}-"
        native = {APP: RolePlace(device, ground.storages[device][0])}
        found.append(Setting(f"{prefix}native", native))
        found.append(_contained(ground, f"{prefix}container", native, (APP,)))
        if ground.storages[device][1:]:
            other = {APP: RolePlace(device, ground.storages[device][1])}
            found.append(Setting(f"{prefix}{OTHER_STORAGE}", other))
    return tuple(found)


def settings_of_service(ground: StudyDevices) -> tuple[Setting, ...]:
    """Give the settings of an experiment of a service, its database and a load driver.

    Raises
    ------
    UsageError
        If a role is placed on a device or storage that there is not.
    """
    native = _placed(ground)
    return (
        Setting("native", native),
        _contained(ground, "container", native, TIERS),
        _swapped(ground, native),
        _storage_swapped(ground, native),
    )


def _contained(
    ground: StudyDevices, name: str, native: Mapping[str, RolePlace], roles: tuple[str, ...]
) -> Setting:
    if ground.container is None:
        return Setting(name, missing=ground.no_container or "no container technology works here")
    inside = {role: replace(native[role], container=ground.container) for role in roles}
    return Setting(name, {**native, **inside})


def _swapped(ground: StudyDevices, native: Mapping[str, RolePlace]) -> Setting:
    """Let service and database change devices, each with the storage that it has: one thing differs."""
    service, database = (native[role] for role in TIERS)
    if service.device == database.device:
        return Setting("swapped", missing=f"service and database share the one device {ground.several}")
    moved = {
        SERVICE: replace(service, device=database.device),
        DATABASE: replace(database, device=service.device),
    }
    return _moved(ground, "swapped", native, moved)


def _storage_swapped(ground: StudyDevices, native: Mapping[str, RolePlace]) -> Setting:
    name = OTHER_STORAGE
    service, database = (native[role] for role in TIERS)
    if service.storage == database.storage:
        reason = f"service and database both use the storage `{service.storage}`"
        return Setting(name, missing=f"{reason} (repair: describe a second storage in a device file)")
    moved = {
        SERVICE: replace(service, storage=database.storage),
        DATABASE: replace(database, storage=service.storage),
    }
    return _moved(ground, name, native, moved)


def _moved(
    ground: StudyDevices, name: str, native: Mapping[str, RolePlace], moved: Mapping[str, RolePlace]
) -> Setting:
    """Give the setting in which roles have other places, if there are such places."""
    for place in moved.values():
        if place.storage not in ground.storages[place.device]:
            reason = f"the device `{place.device}` has no storage `{place.storage}`"
            return Setting(name, missing=f"{reason} (repair: describe it in the device file)")
    return Setting(name, {**native, **moved})


def _placed(ground: StudyDevices) -> dict[str, RolePlace]:
    """Place the roles: on two devices if there are, and on two storages if there are."""
    first, second = (ground.tiers * 2)[:2]
    storages = ground.storages
    used = storages[first][0]
    free = [name for name in storages[second] if name != used]
    driver = ground.driver or first
    places = {
        SERVICE: RolePlace(first, used),
        DATABASE: RolePlace(second, (free or storages[second])[0]),
        DRIVER: RolePlace(driver, storages[driver][0]),
    }
    for role, text in ground.placement.items():
        if role not in places:
            message = f"`placement` names the role `{role}`; allowed: {', '.join(places)}"
            raise UsageError(message, hint='placement = { service = "D1", database = "D2/disk" }')
        places[role] = _asked(ground, role, text)
    return places


def _asked(ground: StudyDevices, role: str, text: str) -> RolePlace:
    device, _, storage = text.partition("/")
    hint = "the device file names devices with their storages"
    if device not in ground.storages:
        message = f"`placement.{role}` names the device `{device}`; allowed: {', '.join(ground.storages)}"
        raise UsageError(message, hint=hint)
    known = ground.storages[device]
    if storage and storage not in known:
        message = f"`placement.{role}` names the storage `{storage}`; allowed: {', '.join(known)}"
        raise UsageError(message, hint=hint)
    return RolePlace(device, storage or known[0])
