"""How many instructions does each path of the best-effort class take, and do they grow with the CPUs?

Deterministic guests of 2 to 64 virtual CPUs: a job on each keeps all of them busy, and services wake and
sleep. The kernel measures how long each program of the class and of the meter takes; the virtual CPUs take
turns at one instruction a nanosecond, so that a time over their number is a number of instructions. It is
the same on every machine, and has in it what the kernel adds around each program to measure it.

Options: ``--cpus LIST`` (default 2,4,8,16,32,64), ``--sockets N`` with a cache of its own each (default 1),
``--threads N`` of each core (default 1), ``--siblings POLICY`` (default allow), ``--beside PROGRAM``: another
build of ``steelyard-scheduler``, whose numbers stand beside. 16 CPUs take two minutes, 32 seven, 64 more than
half an hour of one CPU of the machine.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from steelyard.run.programs import PACKAGE
from steelyard.studies.colocation.guest.tasks import Guest, GuestTask, execute_tasks
from steelyard.studies.colocation.guest.trials import SCHEDULER

SERVICES_PER_CPU, SECONDS = 1, 2
SCRIPT = f"""
echo 1 > /proc/sys/kernel/bpf_stats_enabled
mkdir -p $GROUPS_FOLDER/be; echo 1 > $GROUPS_FOLDER/be/cpu.idle
measured start --foreground $SIBLINGS > loader.txt 2>&1 & L=$!
until grep -qx ready loader.txt; do kill -0 $L || {{ cat loader.txt; exit 9; }}; sleep 0.2; done
N=$(nproc)
for i in $(seq $N); do ( echo 0 > $GROUPS_FOLDER/be/cgroup.procs; while :; do :; done ) & done
for i in $(seq $((N * {SERVICES_PER_CPU}))); do while :; do sleep 0.02; done & done
sleep 1
{SCHEDULER} costs --json > before.json
sleep {SECONDS}
{SCHEDULER} costs --json > after.json
kill -TERM $L; wait $L
"""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cpus", default="2,4,8,16,32,64")
    parser.add_argument("--sockets", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--siblings", choices=("allow", "avoid", "forbid"), default="allow")
    parser.add_argument("--beside", type=Path)
    return parser.parse_args()


def instructions(program: Path, cpus: int, options: argparse.Namespace) -> dict[str, float]:
    """Boot a guest; give the instructions of a call of each program of the class, and those of a waking."""
    programs = {SCHEDULER: PACKAGE / "_bin" / SCHEDULER, "measured": program}
    guest = Guest(
        programs,
        cpus=cpus,
        sockets=options.sockets,
        threads=options.threads,
        memory_mib=2048,
        instruction_ns=1,
        timeout_s=3600,
    )
    # Builds before this choice are measured, too.
    policy = "" if options.siblings == "allow" else f"--siblings {options.siblings}"
    script = f"SIBLINGS='{policy}'\n{SCRIPT}"
    with tempfile.TemporaryDirectory() as scratch:
        (outcome,) = execute_tasks([GuestTask("paths", script, limit_s=3600)], Path(scratch), guest)
        if outcome.exit_code != 0:
            message = f"{cpus} CPUs: {outcome.log().strip()[-500:]}"
            raise SystemExit(message)
        before, after = (
            json.loads((outcome.folder / f"{name}.json").read_text(encoding="utf-8"))
            for name in ("before", "after")
        )
    none = {"calls": 0, "run_ns": 0}
    spent = {
        name: [found[key] - before.get(name, none)[key] for key in ("calls", "run_ns")]
        for name, found in after.items()
    }
    found = {name: run_ns / calls / cpus for name, (calls, run_ns) in spent.items() if calls}
    wakings = spent["note_wakeup"][0]
    found["all, each waking"] = sum(run_ns for _, run_ns in spent.values()) / wakings / cpus
    return found


def main() -> None:
    """Print a table: programs in lines, numbers of CPUs in columns."""
    options = arguments()
    counts = [int(word) for word in options.cpus.split(",")]
    builds = {"": PACKAGE / "_bin" / SCHEDULER}
    if options.beside:
        builds["beside: "] = options.beside
    print(f"{'instructions of a call':32}{''.join(f'{count:>8}' for count in counts)}  CPUs")
    for title, program in builds.items():
        columns = []
        for count in counts:
            columns.append(instructions(program, count, options))
            waking = columns[-1]["all, each waking"]
            print(f"{title}{count} CPUs: {waking:.0f} instructions each waking", file=sys.stderr)
        for name in dict.fromkeys(name for column in columns for name in column):
            cells = (f"{column[name]:8.0f}" if name in column else f"{'-':>8}" for column in columns)
            print(f"{title + name:32}{''.join(cells)}")


if __name__ == "__main__":
    main()
