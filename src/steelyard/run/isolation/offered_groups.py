"""Control groups of the host that a worker in a container measures and limits its runs by.

The engine's own group is the container's, and read-only inside. These lie beside it, one in each
hierarchy, and are shown to the launcher, which makes its groups in them as it does on the host: a row of
a container is comparable with one of `bare` or `sandbox`.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steelyard.run.cleanup import remove_control_group
from steelyard.run.isolation.root_view import Mount

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.run.session import Site

OFFERED: Final = Path("/steelyard/cgroup")
"""Where the launcher looks for them."""

UNIFIED: Final = "unified"
WANTED: Final = frozenset({"cpu", "cpuacct", "memory", "pids", "freezer", "cpuset", "blkio"})


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """A mounted hierarchy of control groups.

    Parameters
    ----------
    mount : Path
        Its root.
    name : str
        Its controllers joined by `+`, or `unified`.
    ends_at_namespaces : bool
        Whether the kernel lets no process into a group from outside of its namespace.
    """

    mount: Path
    name: str
    ends_at_namespaces: bool = False


def hierarchies(mounts: str) -> Iterator[Hierarchy]:
    """Give the hierarchies with controllers of interest, and that of version 2.

    Parameters
    ----------
    mounts : str
        Text of ``/proc/self/mounts``.

    Examples
    --------
    >>> [each.name for each in hierarchies("cgroup /sys/fs/cgroup/cpu cgroup rw,cpu,cpuacct 0 0")]
    ['cpu+cpuacct']
    """
    known: set[str] = set()
    for line in mounts.splitlines():
        _, point, kind, options = line.split(" ")[:4]
        controllers = [word for word in options.split(",") if word in WANTED]
        name = UNIFIED if kind == "cgroup2" else "+".join(controllers)
        if kind in {"cgroup", "cgroup2"} and name and name not in known:
            known.add(name)
            yield Hierarchy(Path(point), name, "nsdelegate" in options.split(","))


def offer_groups(site: Site) -> None:
    """Make the groups of a worker; where that is not allowed there are none, and the launcher says so."""
    for hierarchy in hierarchies(Path("/proc/self/mounts").read_text(encoding="utf-8")):
        group = hierarchy.mount
        for name in _names(site):
            if hierarchy.name == UNIFIED:
                _hand_down(group)
            group /= name
            try:
                group.mkdir(exist_ok=True)
            except OSError:
                break
            _bind(group, site)


def offered_mounts(site: Site, *, has_namespace: bool = False) -> list[Mount]:
    """Give the mounts of the groups that `offer_groups` made.

    Parameters
    ----------
    site : Site
        Of the worker.
    has_namespace : bool
        Whether the container has a namespace of control groups, and no option to go without.
    """
    return [
        Mount(group, OFFERED / hierarchy.name, writable=True)
        for hierarchy in hierarchies(Path("/proc/self/mounts").read_text(encoding="utf-8"))
        if not (has_namespace and hierarchy.ends_at_namespaces)
        and (group := hierarchy.mount.joinpath(*_names(site))).is_dir()
    ]


def withdraw_groups(site: Site) -> None:
    """Remove the groups of a worker, and what they stand in once that is empty."""
    for mount in offered_mounts(site):
        remove_control_group(mount.source)
        with suppress(OSError):
            mount.source.parent.rmdir()


def _names(site: Site) -> tuple[str, str]:
    return f"{site.session.key}-runs", site.name


def _hand_down(group: Path) -> None:
    """Hand the controllers of a version 2 group down, one by one: a refused one takes no other with it."""
    with suppress(OSError):
        for controller in (group / "cgroup.controllers").read_text(encoding="ascii").split():
            with suppress(OSError):
                (group / "cgroup.subtree_control").write_text(f"+{controller}", encoding="ascii")


def _bind(group: Path, site: Site) -> None:
    """Bind a group to the CPUs of its worker.

    Its share of the CPU stays the usual one: the launcher lives in the engine's group, and must not
    be kept from ending a run by the run's.
    """
    # A new version 1 cpuset is empty and takes no process; the engine binds the container itself.
    bound = {"cpuset.cpus": site.cpus, "cpuset.mems": site.memory_nodes}
    for name, numbers in bound.items():
        if (group / name).exists():
            inherited = (group.parent / name).read_text(encoding="ascii").strip()
            with suppress(OSError):
                text = inherited if numbers is None else ",".join(map(str, numbers))
                (group / name).write_text(text, encoding="ascii")
