"""A virtual machine per worker: QEMU with a minimal guest whose first process is the launcher."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from steelyard.errors import CapabilityError
from steelyard.run.guest.kernel import find_image, release
from steelyard.run.guest.machine import EMULATOR, REPAIR, Machine, choose_accelerator, guest_files
from steelyard.run.guest.qmp import MachineControl
from steelyard.run.isolation.attempt import first_line, installed
from steelyard.run.isolation.interface import Availability, Isolation
from steelyard.run.isolation.probe import try_worker
from steelyard.run.isolation.root_view import PROGRAMS, SHARED, WORKLOADS

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.model import RunSpec
    from steelyard.run.session import Site

CONTROL_SOCKET: Final = "control"


class VirtualMachine(Isolation):
    """A machine with one virtual CPU and its own kernel; it is stopped while it is not its turn."""

    name: str = "vm"
    shares_kernel: bool = False
    shows_host: bool = False
    start_timeout_s: float = 180.0

    def describe(self) -> str:
        """Say what it is."""
        return "a qemu virtual machine with one CPU, its own kernel and Steelyard's static programs"

    def examine(self) -> Availability:
        """Boot a machine and run one program in it."""
        if installed(EMULATOR) is None:
            return Availability.no(f"`{EMULATOR}` is not installed", REPAIR)
        try:
            image = find_image()
            _, how = choose_accelerator()
        except CapabilityError as error:
            return Availability.no(error.message, error.hint)
        guest = release(image.read_bytes()[: 1 << 16])
        version = f"{first_line([EMULATOR, '--version'])}, guest {guest}, {how}"
        return try_worker(self, version, REPAIR)

    def wrap(self, site: Site) -> list[str]:
        """Give the emulator's command."""
        kernel, initramfs = guest_files(site.session.programs, site.session.workloads)
        accelerator, _ = choose_accelerator()
        console = site.session.logs / f"{site.log.stem}-console.log"
        machine = Machine(kernel, initramfs, console, accelerator, site.name, site.folder / CONTROL_SOCKET)
        return machine.command(site.cpus)

    def programs(self, site: Site) -> Path:
        """Give the folder in the initial file system."""
        return PROGRAMS

    def workloads(self, site: Site) -> Path:
        """Give the folder in the initial file system."""
        return WORKLOADS

    def shared(self, site: Site) -> Path:
        """Give the folder in the initial file system."""
        return SHARED

    def inside(self, spec: RunSpec, site: Site) -> RunSpec:
        """Give the largest weight; CPUs and folders of the host mean nothing inside."""
        return replace(spec, working_directory=None, placement=replace(spec.placement, maximal_weight=True))

    def pause(self, site: Site) -> None:
        """Stop the machine; its clocks stand still."""
        self._control(site, "stop")

    def resume(self, site: Site) -> None:
        """Let the machine continue."""
        self._control(site, "cont")

    def _control(self, site: Site, command: str) -> None:
        with MachineControl(site.folder / CONTROL_SOCKET) as control:
            control.execute(command)
