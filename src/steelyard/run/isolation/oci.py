"""OCI runtimes: runc and crun on the skeleton root, without any engine or registry."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from steelyard.run.cleanup import CGROUP_ROOT
from steelyard.run.isolation.attempt import attempt, first_line, installed
from steelyard.run.isolation.contained import Contained, comma_list
from steelyard.run.isolation.interface import Availability
from steelyard.run.isolation.probe import try_worker
from steelyard.run.isolation.root_view import site_mounts, skeleton
from steelyard.run.isolation.serving import serve_command

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from steelyard.run.isolation.root_view import Mount
    from steelyard.run.session import Session, Site

# SOURCE: the default capabilities of container engines (moby, oci/caps/defaults.go) and those that
# measuring and binding from inside need.
ENGINE_CAPABILITIES: Final = [
    f"CAP_{name}"
    for name in (
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE"),
        *("NET_RAW", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    )
]
MEASURING_CAPABILITIES: Final = ["CAP_PERFMON", "CAP_SYS_NICE", "CAP_SYS_PTRACE"]
MASKED_PATHS: Final = ["/proc/kcore", "/proc/keys", "/proc/timer_list", "/sys/firmware"]
READONLY_PATHS: Final = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]
MAXIMAL_SHARES: Final = 262144  # SOURCE: kernel, MAX_SHARES of the CPU controller, version 1


class OciRuntime(Contained):
    """One OCI runtime by its program's name."""

    def describe(self) -> str:
        """Say what it is."""
        return (
            f"a container by `{self.name}` with the host's programs mounted read-only, no network, no engine"
        )

    def examine(self) -> Availability:
        """Run one program in a container."""
        repair = f"sudo apt-get install {self.name}"
        if installed(self.name) is None:
            return Availability.no(f"`{self.name}` is not installed", repair)
        return try_worker(self, first_line([self.name, "--version"]), repair)

    def prepare(self, site: Site) -> None:
        """Write the bundle."""
        bundle = json.dumps(configuration(site), indent=1)
        (site.folder / "config.json").write_text(bundle, encoding="utf-8")

    def wrap(self, site: Site) -> list[str]:
        """Give the ``run`` command."""
        return [*self.runtime(site.session.folder), "run", "--bundle", str(site.folder), site.name]

    def tear_down(self, site: Site) -> None:
        """Remove the container, should it still be there."""
        if (self._state(site.session.folder) / site.name).exists():
            attempt([*self.runtime(site.session.folder), "delete", "--force", site.name])

    def sweep(self, folder: Path) -> None:
        """Remove the containers that the private state knows."""
        state = self._state(folder)
        for container in state.iterdir() if state.exists() else ():
            attempt([*self.runtime(folder), "delete", "--force", container.name])

    def close(self, session: Session) -> None:
        """Remove what `sweep` would."""
        self.sweep(session.folder)

    def _state(self, folder: Path) -> Path:
        return folder / self.name

    def runtime(self, folder: Path) -> list[str]:
        """Give the runtime with its private state below a folder."""
        return [str(installed(self.name)), "--root", str(self._state(folder))]


class Runc(OciRuntime):
    """The reference runtime."""

    name: str = "runc"


class Crun(OciRuntime):
    """The runtime in C; it refuses hosts that mount both versions of control groups, unless one is hidden."""

    name: str = "crun"

    def runtime(self, folder: Path) -> list[str]:
        """Give the runtime, where needed without the version it refuses."""
        runtime = super().runtime(folder)
        unified = CGROUP_ROOT / "unified"
        if not unified.is_mount():
            return runtime
        script = f'mount --make-rprivate / && umount {unified} && exec "$@"'
        return ["unshare", "--mount", "sh", "-c", script, "sh", *runtime]


def configuration(site: Site) -> dict[str, Any]:
    """Give the OCI configuration of one worker's container."""
    cpu: dict[str, Any] = {"shares": MAXIMAL_SHARES}
    if site.cpus is not None:
        cpu["cpus"] = comma_list(site.cpus)
    if site.memory_nodes is not None:
        cpu["mems"] = comma_list(site.memory_nodes)
    command = serve_command(site.session.launcher)
    found = container_configuration(skeleton(site.session), site_mounts(site), command)
    found["linux"]["cgroupsPath"] = f"/{site.session.key}/{site.name}"
    found["linux"]["resources"]["cpu"] = cpu
    return found


def container_configuration(root: Path, mounts: Sequence[Mount], command: Sequence[str]) -> dict[str, Any]:
    """Give the OCI configuration of a container without limits and without network.

    Parameters
    ----------
    root : Path
        Its root, shown read-only.
    mounts : sequence of Mount
        What of the host is shown in it.
    command : sequence of str
        What it runs.
    """
    capabilities = [*ENGINE_CAPABILITIES, *MEASURING_CAPABILITIES]
    return {
        "ociVersion": "1.0.2",
        "process": {
            "terminal": False,
            "user": {"uid": 0, "gid": 0},
            "args": list(command),
            "env": ["PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"],
            "cwd": "/",
            "capabilities": dict.fromkeys(("bounding", "effective", "permitted"), capabilities),
            "noNewPrivileges": True,
        },
        "root": {"path": str(root), "readonly": True},
        "hostname": "steelyard",
        "mounts": [*_system_mounts(), *map(_bind_mount, mounts)],
        "linux": {
            "namespaces": [{"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount", "cgroup")],
            "resources": {"devices": [{"allow": False, "access": "rwm"}]},
            "maskedPaths": MASKED_PATHS,
            "readonlyPaths": READONLY_PATHS,
        },
    }


def _bind_mount(mount: Mount) -> dict[str, Any]:
    options = ["rbind", "rprivate", "nosuid", "nodev", "rw" if mount.writable else "ro"]
    return {"destination": str(mount.target), "type": "bind", "source": str(mount.source), "options": options}


def _system_mounts() -> list[dict[str, Any]]:
    quiet = ["nosuid", "noexec", "nodev"]
    return [
        {"destination": "/proc", "type": "proc", "source": "proc"},
        _memory_mount("/dev", ["nosuid", "strictatime", "mode=755", "size=65536k"]),
        {
            "destination": "/dev/pts",
            "type": "devpts",
            "source": "devpts",
            "options": ["nosuid", "noexec", "newinstance"],
        },
        _memory_mount("/dev/shm", [*quiet, "mode=1777", "size=65536k"]),  # noqa: S108 - inside the container
        {"destination": "/dev/mqueue", "type": "mqueue", "source": "mqueue", "options": quiet},
        {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": [*quiet, "ro"]},
        {
            "destination": "/sys/fs/cgroup",
            "type": "cgroup",
            "source": "cgroup",
            "options": [*quiet, "relatime", "rw"],
        },
        _memory_mount("/tmp", ["nosuid", "nodev", "mode=1777"]),  # noqa: S108 - inside the container
        _memory_mount("/run", ["nosuid", "nodev", "mode=755"]),
    ]


def _memory_mount(target: str, options: list[str]) -> dict[str, Any]:
    return {"destination": target, "type": "tmpfs", "source": "tmpfs", "options": options}
