"""The isolate program of the International Olympiad in Informatics, around each run.

Its box is made once per worker, outside every measured window. Its own figures, from its meta file,
take the place of the launcher's: they are the outside clock that a grader using isolate has.
"""

from __future__ import annotations

import fcntl
from dataclasses import replace
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Final

from steelyard.errors import CapabilityError
from steelyard.model.run_spec import OutputStream
from steelyard.run.isolation.attempt import attempt, demand, installed
from steelyard.run.isolation.interface import Availability, Isolation, place
from steelyard.run.isolation.isolate_meta import merge_meta, parse_meta
from steelyard.run.isolation.own_lines import take_own_lines
from steelyard.run.isolation.probe import try_worker
from steelyard.run.session import state_root

if TYPE_CHECKING:
    from io import TextIOWrapper

    from steelyard.model import RunOutcome, RunSpec
    from steelyard.run.session import Site

REPAIR: Final = "install isolate from https://github.com/ioi/isolate"
BOXES: Final = range(60, 100)
"""Boxes Steelyard may use: numbers every configuration has, away from the first, which graders use."""
# Directly below the root: isolate makes the folders above a mount for root alone.
PROGRAMS: Final = Path("/steelyard-bin")
WORKLOADS: Final = Path("/steelyard-workloads")
CAPTURE_BYTES: Final = 65536
_OWN_TEMPORARY: Final = Path("/tmp")  # noqa: S108 - the box's own, not a file of ours


class Isolate(Isolation):
    """A run inside isolate, started by the launcher."""

    name: str = "isolate"
    one_launch_per_request: bool = True

    def __init__(self) -> None:
        super().__init__()
        self._boxes: dict[str, tuple[int, TextIOWrapper]] = {}
        self._control_group: bool | None = None

    def describe(self) -> str:
        """Say what it is."""
        return "the isolate program: namespaces, system call rules and limits, its own clock of 1 ms"

    def examine(self) -> Availability:
        """Run one program in a box."""
        if installed("isolate") is None:
            return Availability.no("`isolate` is not installed", REPAIR)
        version = attempt(["isolate", "--version"]).output.split("\n", 1)[0]
        mode = "with control groups" if self._uses_control_group() else "without control groups"
        return try_worker(self, f"{version}, {mode}", REPAIR)

    def prepare(self, site: Site) -> None:
        """Take a free box and make it."""
        box, lock = _take_box(site)
        self._boxes[site.name] = (box, lock)
        demand([*self._isolate(box), "--init"])

    def wrap(self, site: Site) -> list[str]:
        """Give the launcher itself: isolate is around the program, not around the launcher."""
        return [str(site.session.launcher), "serve"]

    def inside(self, spec: RunSpec, site: Site) -> RunSpec:
        """Put isolate in front of the command, and let own measurements come by standard output."""
        box, _ = self._boxes[site.name]
        environment = {**spec.environment, "STEELYARD_METRICS_FD": "1"}
        command = [*self._isolate(box), "--silent", f"--meta={_meta(site)}", "--processes", "--run"]
        folders = _folders(site)
        if any(inside.is_relative_to(_OWN_TEMPORARY) for inside, _ in folders):
            command += [f"--dir={_OWN_TEMPORARY}="]  # its own would lie over what is shown below it
        command += [f"--dir={inside}={outside.resolve()}" for inside, outside in folders]
        command += [f"--env={name}={value}" for name, value in environment.items()]
        return replace(
            place(spec, site),
            command=(str(installed("isolate")), *command[1:], "--", _located(spec), *spec.command[1:]),
            standard_output=OutputStream.captured(CAPTURE_BYTES),
            own_metrics=False,
        )

    def collect(self, outcome: RunOutcome, site: Site) -> RunOutcome:
        """Replace the launcher's figures by isolate's, and take the own measurements from the output."""
        path = _meta(site)
        values = parse_meta(path.read_text(encoding="utf-8")) if path.exists() else {}
        path.unlink(missing_ok=True)
        return merge_meta(take_own_lines(outcome), values)

    def programs(self, site: Site) -> Path:
        """Give the mounted folder."""
        return PROGRAMS

    def workloads(self, site: Site) -> Path:
        """Give the mounted folder."""
        return WORKLOADS

    def tear_down(self, site: Site) -> None:
        """Clean the box and give it back."""
        taken = self._boxes.pop(site.name, None)
        if taken is not None:
            box, lock = taken
            attempt([*self._isolate(box), "--cleanup"])
            (state_root() / f"box-{box}").unlink(missing_ok=True)
            lock.close()

    def sweep(self, folder: Path) -> None:
        """Clean the boxes a dead session took."""
        for note in sorted(folder.parent.glob("box-*")):
            if note.read_text(encoding="utf-8").strip() == folder.name and installed("isolate") is not None:
                attempt([*self._isolate(int(note.name.removeprefix("box-"))), "--cleanup"])
                note.unlink(missing_ok=True)

    def _isolate(self, box: int) -> list[str]:
        command = ["isolate", f"--box-id={box}"]
        return [*command, "--cg"] if self._uses_control_group() else command

    def _uses_control_group(self) -> bool:
        """Whether ``--cg`` works here, tried with a box of its own."""
        if self._control_group is None:
            box = f"--box-id={BOXES[-1]}"
            self._control_group = attempt(["isolate", "--cg", box, "--init"]).succeeded
            if self._control_group:
                self._control_group = attempt(["isolate", "--cg", box, "--run", "--", "/bin/true"]).succeeded
                attempt(["isolate", "--cg", box, "--cleanup"])
        return self._control_group


def _located(spec: RunSpec) -> str:
    """Give the program with its folder: isolate looks nothing up, and a box shows the host's programs."""
    name = spec.command[0]
    found = None if "/" in name else which(name, path=spec.environment.get("PATH", ""))
    return found or name


def _folders(site: Site) -> list[tuple[Path, Path]]:
    """Give what a box shows beside the host's ``/usr``: path inside, path on the host."""
    session = site.session
    own = [(PROGRAMS, session.programs), (WORKLOADS, session.workloads)]
    return [*own, *((path, path) for path in session.shown)]


def _meta(site: Site) -> Path:
    return site.folder / "meta"


def _take_box(site: Site) -> tuple[int, TextIOWrapper]:
    """Take a box no other session of this host uses; its note names the session."""
    root = site.session.folder.parent
    for box in BOXES[:-1]:
        note = (root / f"box-{box}").open("a", encoding="utf-8")
        try:
            fcntl.flock(note, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            note.close()
            continue
        note.truncate(0)
        note.write(site.session.key)
        note.flush()
        return box, note
    message = f"all isolate boxes from {BOXES[0]} to {BOXES[-2]} are taken"
    raise CapabilityError(message, hint="wait for the other studies to end", code="capability.isolate")
