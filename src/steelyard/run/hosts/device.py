"""A device: a host, a stated part of one, or a host elsewhere, with its storages by name."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

KINDS: Final = ("local", "played", "ssh")
"""This host; a part of this host with stated limits; another host, or a virtual machine of the user's."""
MEMORY: Final = "memory"
"""The storage that is a memory file system."""


def default_storages() -> dict[str, str]:
    """Give the storages of a device for which none are stated: a folder of the disk, and memory."""
    return {"H1": "~/.cache/steelyard/storage", "H2": MEMORY}


@dataclass(frozen=True, slots=True)
class Device:
    """One device of an experiment.

    Parameters
    ----------
    name : str
        As settings name it, e.g. ``D1``.
    kind : str
        One of `KINDS`.
    cpus : tuple of int or None
        CPUs its programs are bound to; ``None``: all.
    cpu_percent : int or None
        CPU time the programs of a role get together, in percent of one CPU; ``None``: no limit.
    memory_mib : int or None
        Memory the programs of a role get together [MiB]; ``None``: no limit.
    host : str
        ``[USER@]HOST`` as ssh takes it; empty unless `kind` is ``ssh``.
    ssh_options : tuple of str
        Further words for ssh, e.g. ``-p 2222`` as two words.
    address : str
        Address under which other devices reach it; empty: that of `host`.
    storages : Mapping
        Folder by name of the storage, or `MEMORY`. The first is meant where none is named.
    """

    name: str
    kind: str = "local"
    cpus: tuple[int, ...] | None = None
    cpu_percent: int | None = None
    memory_mib: int | None = None
    host: str = ""
    ssh_options: tuple[str, ...] = ()
    address: str = ""
    storages: Mapping[str, str] = field(default_factory=default_storages)

    @property
    def is_played(self) -> bool:
        """Whether it is only a part of a device."""
        return self.kind == "played"

    def document(self) -> dict[str, Any]:
        """Give it as an object of ``experiment.json``.

        Examples
        --------
        >>> device = Device("D2", "played", cpus=(1,), storages={"H1": "memory"})
        >>> Device.from_document("D2", device.document()) == device
        True
        """
        found = asdict(self)
        del found["name"]
        return {**found, "is_played": self.is_played}

    @classmethod
    def from_document(cls, name: str, document: Mapping[str, Any]) -> Device:
        """Read what `document` gave, also after it was JSON."""
        known = {key: value for key, value in document.items() if key != "is_played"}
        for key in ("cpus", "ssh_options"):
            if known.get(key) is not None:
                known[key] = tuple(known[key])
        return cls(name, **known)
