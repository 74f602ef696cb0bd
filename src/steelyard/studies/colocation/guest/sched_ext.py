"""The guest that has sched_ext: its kernel, and an emulator that can count its time in instructions.

Both are fetched by ``make deps-colocation`` into a folder of their own, so that they never become the
guest of an isolation technology.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from steelyard.errors import CapabilityError
from steelyard.run.guest.kernel import bootable, guest_folder, unpack

REPAIR: Final = "make deps-colocation"
KERNEL_VARIABLE: Final = "STEELYARD_SCHED_EXT_KERNEL"
EMULATOR_VARIABLE: Final = "STEELYARD_EMULATOR"
EMULATOR: Final = "qemu-system-x86_64"
EMULATOR_MAJOR: Final = 10
"""QEMU 7.2 gives a whole interval between timers to one virtual CPU, 10.0 divides it among them."""
DATA_FOLDERS: Final = ("usr/share/qemu", "usr/share/seabios")
LIBRARIES: Final = ("usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu")


@dataclass(frozen=True, slots=True)
class Emulator:
    """A QEMU that can be started.

    Parameters
    ----------
    program : Path
        Its executable.
    version : str
        As it states it, e.g. ``10.0.2``.
    root : Path or None
        Folder its packages are unpacked in; None: it is installed.
    """

    program: Path
    version: str
    root: Path | None = None

    def words(self) -> list[str]:
        """Give the begin of the command line: the program and where its own data are."""
        if self.root is None:
            return [str(self.program)]
        words = [str(self.program)]
        for name in DATA_FOLDERS:
            if (self.root / name).is_dir():
                words += ["-L", str(self.root / name)]
        return words

    def environment(self) -> dict[str, str]:
        """Give the environment it is started with."""
        return _environment(self.root)


def sched_ext_folder() -> Path:
    """Give the folder that ``make deps-colocation`` fills."""
    return guest_folder() / "sched-ext"


def find_sched_ext_kernel() -> Path:
    """Give a kernel with sched_ext: the one named by the environment, else the first one fetched, unpacked.

    Raises
    ------
    CapabilityError
        If there is none.
    """
    named = os.environ.get(KERNEL_VARIABLE)
    if named and os.access(named, os.R_OK):
        return bootable(Path(named))
    fetched = [] if named else _images()
    if not fetched:
        message = f"there is no guest kernel with sched_ext: `{named or sched_ext_folder() / 'vmlinuz-*'}`"
        raise CapabilityError(message, hint=REPAIR, code="capability.sched-ext-kernel")
    return _unpacked(fetched[0])


def sched_ext_kernels() -> list[Path]:
    """Give all kernels with sched_ext that were fetched, unpacked, oldest first.

    Raises
    ------
    CapabilityError
        If one cannot be unpacked.
    """
    return [_unpacked(path) for path in _images()]


def _images() -> list[Path]:
    """Give the fetched images, the oldest first: it is the one that guests have unless they name another."""
    found = [path for path in sched_ext_folder().glob("vmlinuz-*") if os.access(path, os.R_OK)]
    return sorted(found, key=lambda path: [int(word) for word in re.findall(r"\d+", path.name)])


def kernel_configuration(kernel: Path) -> tuple[str, bytes] | None:
    """Give the release and the configuration of a kernel, where the configuration lies beside it.

    Examples
    --------
    >>> kernel_configuration(Path("/nowhere/vmlinux-6.18.15")) is None
    True
    """
    release = kernel.name.partition("-")[2]
    configuration = kernel.with_name(f"config-{release}")
    return (release, configuration.read_bytes()) if configuration.is_file() else None


def _unpacked(image: Path) -> Path:
    """Give the kernel unpacked beside its image, by the same release."""
    place = image.with_name(image.name.replace("vmlinuz", "vmlinux"))
    if not place.exists() or place.stat().st_mtime_ns < image.stat().st_mtime_ns:
        temporary = place.with_name(f".{place.name}.{os.getpid()}")
        try:
            temporary.write_bytes(unpack(image.read_bytes()))
        except (ValueError, OSError) as error:
            message = f"cannot unpack `{image}`: {error}"
            raise CapabilityError(message, hint=REPAIR, code="capability.sched-ext-kernel") from error
        temporary.replace(place)
    return place


def find_emulator() -> Emulator:
    """Give an emulator new enough: the one named by the environment, the system's, the one fetched.

    Raises
    ------
    CapabilityError
        If there is none; the message says which were found and are too old.
    """
    named = os.environ.get(EMULATOR_VARIABLE)
    installed = shutil.which(EMULATOR)
    fetched = sched_ext_folder() / "qemu"
    if named:
        choices: list[tuple[Path, Path | None]] = [(Path(named), _root_of(Path(named)))]
    else:
        choices = [(Path(installed), None)] if installed else []
        choices.append((fetched / "usr/bin" / EMULATOR, fetched))
    seen = []
    for program, root in choices:
        version = _version(program, root)
        if version is not None and int(version.split(".", 1)[0]) >= EMULATOR_MAJOR:
            return Emulator(program, version, root)
        seen.append(f"`{program}`: {version or 'cannot be started'}")
    message = f"there is no QEMU of version {EMULATOR_MAJOR} or later: {', '.join(seen)}"
    raise CapabilityError(message, hint=REPAIR, code="capability.emulator")


def _root_of(program: Path) -> Path | None:
    """Give the folder the packages of a program were unpacked in, if it has its data beside it."""
    root = program.resolve().parent.parent.parent
    return None if root == Path("/") else root


def _environment(root: Path | None) -> dict[str, str]:
    environment = dict(os.environ)
    if root is not None:
        own = [str(root / name) for name in LIBRARIES if (root / name).is_dir()]
        found = environment.get("LD_LIBRARY_PATH")
        environment["LD_LIBRARY_PATH"] = ":".join([*own, *([found] if found else [])])
    return environment


@cache
def _version(program: Path, root: Path | None) -> str | None:
    try:
        answer = subprocess.run(
            [str(program), "--version"],
            check=False,
            capture_output=True,
            text=True,
            timeout=30,
            env=_environment(root),
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"version (\d+\.\d+\.\d+)", answer.stdout)
    return found[1] if found else None
