"""The root file system of containers: an empty skeleton with the host's programs mounted read-only.

No registry and no image is needed, the programs are the very files that run without isolation, and
nothing of the host's data is visible.
"""

from __future__ import annotations

import io
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from steelyard.run.session import Session, Site

PROGRAMS: Final = Path("/steelyard/bin")
WORKLOADS: Final = Path("/steelyard/workloads")
SHARED: Final = Path("/steelyard/shared")
LAUNCHER: Final = PROGRAMS / "steelyard-launch"

HOST_FOLDERS: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
HOST_FILES: Final = (
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
    "/etc/localtime",
)
HOST_PATTERNS: Final = ("java-*-openjdk",)
EMPTY_FOLDERS: Final = ("proc", "sys", "dev", "tmp", "run", "var/tmp", "root", "etc", "box", "old")
ACCOUNTS: Final = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n"
GROUPS: Final = "root:x:0:\nnogroup:x:65534:\n"


@dataclass(frozen=True, slots=True)
class Mount:
    """A host path and where a container sees it."""

    source: Path
    target: Path
    writable: bool = False


def host_mounts() -> list[Mount]:
    """Give the read-only mounts of the host's programs, libraries and their configuration."""
    paths = [Path(name) for name in (*HOST_FOLDERS, *HOST_FILES)]
    paths += [path for pattern in HOST_PATTERNS for path in sorted(Path("/etc").glob(pattern))]
    return [Mount(path.resolve(), path) for path in paths if path.exists() and not _is_merged(path)]


def site_mounts(site: Site) -> list[Mount]:
    """Give all mounts of a container: host programs, ours, workloads, the barrier folder."""
    session = site.session
    mounts = [*host_mounts(), Mount(session.programs, PROGRAMS)]
    if session.workloads.exists():
        mounts.append(Mount(session.workloads.resolve(), WORKLOADS))
    mounts += [Mount(path.resolve(), path) for path in session.shown]
    mounts.append(Mount(session.shared, SHARED, writable=True))
    return mounts


def skeleton(session: Session) -> Path:
    """Give the session's skeleton root, made when it is first asked for."""
    root = session.folder / "root"
    if not root.exists():
        temporary = session.folder / "root.new"
        make_skeleton(temporary, session.shown)
        temporary.rename(root)
    return root


def make_skeleton(root: Path, shown: Iterable[Path] = ()) -> None:
    """Make every mount point, the links of a merged ``/usr``, and two accounts."""
    for name in (*EMPTY_FOLDERS, *(str(path)[1:] for path in (PROGRAMS, WORKLOADS, SHARED))):
        (root / name).mkdir(parents=True, exist_ok=True)
    for name in ("tmp", "var/tmp", "box"):
        (root / name).chmod(0o1777)
    for name in HOST_FOLDERS:
        if _is_merged(Path(name)):
            (root / name[1:]).symlink_to(Path(name).readlink())
    for mount in [*host_mounts(), *(Mount(path.resolve(), path) for path in shown)]:
        point = root / str(mount.target)[1:]
        if mount.source.is_dir():
            point.mkdir(parents=True, exist_ok=True)
        else:
            point.parent.mkdir(parents=True, exist_ok=True)
            point.touch()
    (root / "etc/passwd").write_text(ACCOUNTS, encoding="utf-8")
    (root / "etc/group").write_text(GROUPS, encoding="utf-8")


def skeleton_archive(root: Path) -> bytes:
    """Give a skeleton root as tar archive, owned by root."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.add(root, arcname=".", filter=_owned_by_root)
    return buffer.getvalue()


def _owned_by_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member


def _is_merged(path: Path) -> bool:
    """Whether a folder of the host is only a link into ``/usr``."""
    return str(path) in HOST_FOLDERS and path.is_symlink()


def folders_needed(programs: Iterable[str]) -> tuple[Path, ...]:
    """Give the installation folders of programs that lie outside the folders every container sees.

    Parameters
    ----------
    programs : iterable of str
        First words of commands; those without an absolute path are looked up inside.
    """
    needed = set()
    for name in programs:
        path = Path(name)
        if not path.is_absolute() or any(path.is_relative_to(folder) for folder in HOST_FOLDERS):
            continue
        real = path.resolve()
        if not any(real.is_relative_to(folder) for folder in HOST_FOLDERS):
            needed |= {_installation(path), _installation(real)}
    return tuple(sorted(needed))


def _installation(program: Path) -> Path:
    """Give the folder above ``bin``, where a program has its libraries, else its own folder."""
    return program.parent.parent if program.parent.name == "bin" else program.parent
