"""One trial in a guest of its own: ``python -m steelyard.studies.colocation.guest.trial FOLDER [NS]``.

Reads ``trial.json`` of the folder, boots a guest, and leaves there what the trial left in the guest, the
guest's console, and ``guest.json``: what the guest was. NS is what an instruction takes at most while the
CPUs of the service are busy; without it the time of the guest is real. It is the command of a run, so it says
what went wrong on standard error and by its exit code.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steelyard.errors import SteelyardError
from steelyard.run.guest.virtual_time import INSTRUCTION_NS, clock_for_some, clock_shift
from steelyard.studies.colocation.guest.placement import guest_programs
from steelyard.studies.colocation.guest.sched_ext import find_emulator, find_sched_ext_kernel
from steelyard.studies.colocation.guest.tasks import Guest
from steelyard.studies.colocation.guest.trials import (
    PLACE,
    SCHEDULER,
    WATCH_FILE,
    GuestTrial,
    execute_trials,
    is_counted,
)
from steelyard.studies.colocation.trial_plan import TRIAL_FILE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

NAME: Final = "trial"
GUEST_FILE: Final = "guest.json"
COUNTERS_FILE: Final = "scheduler.json"


def execute_here(folder: Path, at_most_ns: int | None = None) -> None:
    """Run the trial of a folder in a guest.

    Raises
    ------
    SteelyardError
        If the guest cannot be booted, or the trial in it fails; what it left is in the folder.
    """
    asked: Mapping[str, Any] = json.loads((folder / TRIAL_FILE).read_text(encoding="utf-8"))
    cpus = len({*asked["cpus"], *asked["client_cpus"]})
    asked, foreign = moved_in(asked)
    guest = Guest(
        {**guest_programs(), **foreign},
        cpus=cpus,
        is_deterministic=at_most_ns is not None,
        instruction_ns=clock_for_some(len(asked["cpus"]), cpus, at_most_ns or INSTRUCTION_NS),
        seed=int(asked["seed"]),
    )
    facts = facts_of(guest, len(asked["cpus"]))
    (folder / GUEST_FILE).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="steelyard-trial-") as scratch:
        out = Path(scratch)
        try:
            trial = GuestTrial(NAME, asked, is_watched=SCHEDULER in guest.programs and not is_counted(asked))
            (outcome,) = execute_trials([trial], out, guest)
        finally:
            _bring(out / NAME, folder)
            _bring(out, folder)
            if marks_jobs(asked["policy"]):
                _keep_watched(folder)
        outcome.require_success()


def moved_in(asked: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Path]]:
    """Give a trial whose scheduler or load is a program of this host with its place in the guest, and these.

    Examples
    --------
    >>> asked, programs = moved_in(
    ...     {"policy": {"scheduler": ["/usr/bin/scx_lavd", "--performance"]}, "service": {"kind": "pool"}}
    ... )
    >>> asked["policy"]["scheduler"], programs
    (['/steelyard/bin/scx_lavd', '--performance'], {'scx_lavd': PosixPath('/usr/bin/scx_lavd')})
    """
    moved, programs = dict(asked), {}
    for part, key in (("policy", "scheduler"), ("service", "command")):
        words = asked[part].get(key) or ()
        if words and not words[0].startswith(f"{PLACE}/"):
            program = Path(words[0])
            programs[program.name] = program
            moved[part] = {**asked[part], key: [f"{PLACE}/{program.name}", *words[1:]]}
    return moved, programs


def marks_jobs(policy: Mapping[str, Any]) -> bool:
    """Whether who watches can tell the jobs: by their class, or by ``cpu.idle`` of their group."""
    return policy.get("best_effort_class") == "idle" or policy.get("best_effort_cpu_idle") is True


def _keep_watched(folder: Path) -> None:
    """Let what was watched from beside stand for what a scheduler of the trial counts, where it had none."""
    watched, counted = folder / WATCH_FILE, folder / COUNTERS_FILE
    if watched.exists() and not counted.exists():
        shutil.copyfile(watched, counted)


def facts_of(guest: Guest, busy: int) -> dict[str, str | int]:
    """Give what is known of a guest: its kernel, emulator and clock while so many CPUs are busy."""
    facts: dict[str, str | int] = {
        "kernel": find_sched_ext_kernel().name,
        "emulator": f"QEMU {find_emulator().version}",
        "cpus": guest.cpus,
    }
    if not guest.is_deterministic:
        return {**facts, "clock": "real time"}
    return {
        **facts,
        "clock": "counted in instructions",
        "shift": clock_shift(guest.cpus, guest.instruction_ns),
        "instruction_ns": busy << clock_shift(guest.cpus, guest.instruction_ns),
        "seed": guest.seed,
    }


def _bring(source: Path, folder: Path) -> None:
    files = [path for path in source.iterdir() if path.is_file()] if source.is_dir() else []
    for path in files:
        shutil.copyfile(path, folder / path.name)


def main(arguments: list[str]) -> int:
    """Run the trial of the folder that is named, and give the exit code."""
    try:
        execute_here(Path(arguments[0]), *map(int, arguments[1:]))
    except SteelyardError as error:
        hint = f"\nhint: {error.hint}" if error.hint else ""
        sys.stderr.write(f"{error.message}{hint}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
