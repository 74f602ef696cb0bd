"""Does the best-effort class protect a service better than what the kernel has, and does each check help?

One service under every policy on 2, 4 and 8 virtual CPUs of deterministic guests, with several seeds of
arrivals: the same numbers on every machine. Its client has CPUs of its own, one for four, as if it were
another machine. Printed: latency of the service while best-effort jobs are there, what the jobs did, how
long they ran while a thread of the service waited (where the policy marks them), and the goals beside. Exits
with 1 if one is missed.

Options: ``--cpus LIST`` (default 2,4,8), ``--sockets N`` that they are spread over, each with a cache of its
own (default 1), ``--instruction-ns N`` that an instruction takes on each busy CPU of the service (default: as
many as there are, which is the least; 8 makes all counts of CPUs alike), ``--seeds N`` (default 5),
``--policies LIST``, ``--peer PROGRAM`` (another scheduler of sched_ext, `scripts/peer-scheduler.sh`; may be
repeated), ``--at-once N`` guests (default 2), ``--out DIR`` keeps the trials. A virtual second takes up to
about 4 seconds of one CPU of the machine.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from integration.guest_policies import POLICIES, effect, peer, trial
from steelyard.run.guest.virtual_time import clock_for_some, instruction_ns
from steelyard.run.programs import PACKAGE, load_program
from steelyard.studies.colocation.guest.tasks import Guest
from steelyard.studies.colocation.guest.trials import LOAD, SCHEDULER, execute_trials, guest_places

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from integration.guest_policies import Effect

GOALS = (
    ("mean of the service, be / fifo", "mean_ms", "be", "fifo", 1.10),
    ("mean of the service, be / idle", "mean_ms", "be", "idle", 0.60),
    ("p99 of the service, be / fifo", "p99_ms", "be", "fifo", 1.10),
    ("p99 of the service, be / idle", "p99_ms", "be", "idle", 0.60),
    ("jobs' iterations, idle / be", "iterations", "idle", "be", 1 / 0.95),
)
TICK_MS = 4
SCHEDULER_PROGRAM = PACKAGE / "_bin" / SCHEDULER


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cpus", default="2,4,8")
    parser.add_argument("--sockets", type=int, default=1)
    parser.add_argument("--instruction-ns", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--peer", type=Path, action="append", default=[])
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def execute(options: argparse.Namespace, cpus: int, seed: int, out: Path) -> dict[str, Effect]:
    """Run all policies in one guest; a policy whose trial failed is left out, and said."""
    policies: dict[str, Mapping[str, Any]] = {name: POLICIES[name] for name in options.policies.split(",")}
    policies |= {path.name: peer(path.name) for path in options.peer}
    programs = {LOAD: load_program(), SCHEDULER: SCHEDULER_PROGRAM}
    programs |= {path.name: path for path in options.peer}
    at_most_ns = options.instruction_ns
    sockets, count = options.sockets, guest_places(cpus, options.sockets).cpu_count
    trials = [
        trial(name, policy, cpus, seed, instruction_ns=at_most_ns, sockets=sockets)
        for name, policy in policies.items()
    ]
    effects = {}
    clock = clock_for_some(cpus, count, at_most_ns)
    guest = Guest(programs, cpus=count, sockets=sockets, instruction_ns=clock, timeout_s=7200)
    for outcome in execute_trials(trials, out, guest):
        if outcome.exit_code == 0:
            effects[outcome.name] = effect(outcome.folder)
        else:
            sys.stderr.write(f"{cpus} CPUs, seed {seed}, {outcome.name}: {outcome.log().strip()[-300:]}\n")
    return effects


def print_table(cpus: int, each_ns: int, effects: list[dict[str, Effect]]) -> None:
    """Print means over the seeds; in brackets the smallest and the largest."""
    speed = f"{1000 / each_ns:g} million instructions per second"
    print(f"\n{cpus} CPUs of {speed}, {len(effects)} seeds: means over seeds (smallest - largest)")
    print(f"{'policy':14}{'mean ms':>24}{'p99 ms':>26}{'iterations':>12}{'lost':>6}{'jobs, ms a wait':>17}")
    for name in dict.fromkeys(name for one in effects for name in one):
        rows = [one[name] for one in effects if name in one]
        cells = []
        for field, width in (("mean_ms", 24), ("p99_ms", 26)):
            values = [getattr(row, field) for row in rows]
            text = f"{sum(values) / len(values):.2f} ({min(values):.2f} - {max(values):.2f})"
            cells.append(f"{text:>{width}}")
        iterations = sum(row.iterations for row in rows) / len(rows)
        lost, strict = sum(row.lost for row in rows), violation_ms(rows)
        beside = "not marked" if strict is None else f"{strict:.3f}"
        print(f"{name:14}{''.join(cells)}{iterations:12.1f}{lost:6d}{beside:>17}")


def violation_ms(rows: list[Effect]) -> float | None:
    """Give how long jobs ran beside each wait of the service, on average; None where nobody marks them."""
    counted = [row.scheduler["strictness"] for row in rows if row.scheduler.get("strictness")]
    if not sum(each["violation_ns"] for each in counted):
        return None
    return sum(each["violation_ns"] for each in counted) / sum(each["events"] for each in counted) / 1e6


def check_goals(effects: list[dict[str, Effect]]) -> bool:
    """Print the geometric mean over the seeds of each ratio beside its goal; whether all are met."""
    is_met = True
    for title, field, above, below, goal in GOALS:
        ratios = [
            getattr(one[above], field) / getattr(one[below], field)
            for one in effects
            if above in one and below in one and getattr(one[below], field)
        ]
        if not ratios:
            print(f"  {title:34} not measured")
            is_met = False
            continue
        value = math.exp(sum(map(math.log, ratios)) / len(ratios))
        is_met &= value <= goal
        print(f"  {title:34}{value:6.3f}  goal <= {goal:.3f}  {'met' if value <= goal else 'MISSED'}")
    return is_met & is_strict([one["be"] for one in effects if "be" in one])


def is_strict(rows: list[Effect]) -> bool:
    """Print how long jobs ran under the class beside each wait; whether it is less than a tick."""
    value = violation_ms(rows) or 0.0
    found = "met" if value < TICK_MS else "MISSED"
    print(f"  {'jobs beside a wait under be, ms':34}{value:6.3f}  goal <  {TICK_MS:.3f}  {found}")
    return value < TICK_MS


def main() -> int:
    """Run everything, print tables, give the exit code."""
    options = arguments()
    counts = [int(word) for word in options.cpus.split(",")]
    found: dict[int, list[dict[str, Effect]]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(options.at_once) as pool:
        root = options.out or Path(scratch)
        jobs = [(cpus, seed) for cpus in counts for seed in range(1, options.seeds + 1)]
        waiting = [pool.submit(execute, options, *job, root / f"{job[0]}-{job[1]}") for job in jobs]
        for (cpus, seed), future in zip(jobs, waiting, strict=True):
            found[cpus].append(future.result())
            sys.stderr.write(f"{cpus} CPUs, seed {seed}: done\n")
    is_met = True
    for cpus in counts:
        print_table(cpus, instruction_ns(cpus, options.instruction_ns), found[cpus])
        is_met &= check_goals(found[cpus])
    return 0 if is_met else 1


if __name__ == "__main__":
    raise SystemExit(main())
