"""The isolation technologies of Steelyard itself; entry points name them, as they name those of plug-ins."""

from __future__ import annotations

from typing import Final

from steelyard.run.isolation.bare import Bare
from steelyard.run.isolation.bubblewrap import Bubblewrap
from steelyard.run.isolation.composition import Composition
from steelyard.run.isolation.docker import Docker, DockerEngine
from steelyard.run.isolation.isolate import Isolate
from steelyard.run.isolation.nspawn import Nspawn
from steelyard.run.isolation.oci import Crun, Runc
from steelyard.run.isolation.podman import Podman
from steelyard.run.isolation.sandbox import Sandbox
from steelyard.run.isolation.vm import VirtualMachine

_ENGINE: Final = DockerEngine()  # one engine for both, because starting it takes seconds

BARE: Final = Bare()
SANDBOX: Final = Sandbox()
ISOLATE: Final = Isolate()
DOCKER: Final = Docker(_ENGINE)
PODMAN: Final = Podman()
CRUN: Final = Crun()
RUNC: Final = Runc()
BUBBLEWRAP: Final = Bubblewrap()
NSPAWN: Final = Nspawn()
VM: Final = VirtualMachine()
DOCKER_SANDBOX: Final = Composition(Docker(_ENGINE, privileged=True), "docker-sandbox")
VM_SANDBOX: Final = Composition(VM, "vm-sandbox")
