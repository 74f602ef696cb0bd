"""A service beside best-effort jobs on this host: alone, disturbed, with each means of `background`.

The service answers requests of a fixed length, sent when they are due; the jobs run loops on each CPU.
The ways take turns, so that what else happens on the host meets all of them. Needs root, and control groups
of version 2 for the service's pressure. Quote ratios to `alone`; on a busy host the figures are its own.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.run.programs import govern_program, load_program

if TYPE_CHECKING:
    from collections.abc import Iterator

LOAD, GOVERN = str(load_program()), str(govern_program())
BACKGROUND = [GOVERN, "background", "--quiet", "--"]
WAYS = ("alone", "as any command", "background", "background, governed")
NS_PER_MS = 1e6
ITERATION_BYTES = 16
ROOTS = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"))


@contextlib.contextmanager
def service(group: Path, threads: int, iterations: int) -> Iterator[str]:
    """Start the service in its group."""
    address = f"unix:@steelyard-bench-{os.getpid()}"
    words = [LOAD, "serve", "--listen", address, "--threads", str(threads)]
    words += ["--work-iterations", str(iterations)]
    entering = f"echo $$ > {group}/cgroup.procs && exec {' '.join(words)}"
    process = subprocess.Popen(["sh", "-c", entering], stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        process.stdout.readline()
        yield address
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def governed(group: Path, state: Path) -> Iterator[dict[str, int]]:
    """Let the governor protect the group; gives what it has counted, once it has ended."""
    counted: dict[str, int] = {}
    subprocess.run([GOVERN, "start", "--state", state, "--service", group], check=True, capture_output=True)
    try:
        yield counted
    finally:
        status = subprocess.run(
            [GOVERN, "status", "--state", state, "--json"], check=True, capture_output=True
        )
        counted.update(json.loads(status.stdout)["governor"]["counters"])
        subprocess.run([GOVERN, "stop", "--state", state], check=True, capture_output=True)


def measure(way: str, group: Path, scratch: Path, options: argparse.Namespace) -> dict[str, float]:
    """Send requests for a while; give latencies [ms], pressure [share] and iterations of the jobs [1/s]."""
    with contextlib.ExitStack() as stack:
        address = stack.enter_context(service(group, options.cpus, options.iterations))
        if way.endswith("governed"):
            stack.enter_context(governed(group, scratch / "state"))
        out = scratch / "iterations"
        spin = [LOAD, "spin", "--out", str(out), "--threads", str(options.cpus)]
        jobs = None
        if way != "alone":
            jobs = subprocess.Popen(
                [*(BACKGROUND if way != WAYS[1] else []), *spin], stdout=subprocess.DEVNULL
            )
        rate = options.load * options.cpus * 1e6 / options.work_us
        begin_us, begin_s = pressure_us(group), time.monotonic()
        length = ["--rate", f"{rate:g}", "--duration-ms", str(options.seconds * 1000)]
        answer = subprocess.run(
            [LOAD, "request", "--connect", address, *length, "--json"], check=True, capture_output=True
        )
        waited_us, elapsed_s = pressure_us(group) - begin_us, time.monotonic() - begin_s
        if jobs is not None:
            jobs.terminate()
            jobs.wait()
        done = out.stat().st_size / ITERATION_BYTES if out.exists() else 0.0
        out.unlink(missing_ok=True)
    latency = json.loads(answer.stdout)["latency"]
    figures = {name: latency[f"{name}_ns"] / NS_PER_MS for name in ("mean", "p50", "p99")}
    return {**figures, "pressure": waited_us / (elapsed_s * 1e6), "jobs": done / elapsed_s}


def pressure_us(group: Path) -> int:
    line = (group / "cpu.pressure").read_text(encoding="ascii").splitlines()[0]
    return int(line.rpartition("total=")[2])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=5, help="of each way in each round")
    parser.add_argument("--load", type=float, default=0.5, help="of the service, share of the CPUs")
    parser.add_argument("--work-us", type=int, default=2000, help="CPU time of a request")
    parser.add_argument("--cpus", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    # Once, and the same for all: while jobs run it would take longer.
    calibration = [LOAD, "calibrate", "--work-us", str(options.work_us)]
    answer = subprocess.run(calibration, check=True, capture_output=True).stdout
    options.iterations = json.loads(answer)["iterations"]
    root = next(path for path in ROOTS if (path / "cgroup.controllers").exists())
    group = root / f"steelyard-bench-{os.getpid()}"
    group.mkdir()
    found: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    try:
        with tempfile.TemporaryDirectory() as scratch:
            for _ in range(options.rounds):
                for way in WAYS:
                    found[way].append(measure(way, group, Path(scratch), options))
    finally:
        group.rmdir()
    print(f"{'':22}{'mean':>9}{'p50':>9}{'p99':>9}  ms {'waiting':>10}{'jobs':>10} /s")
    for way, rounds in found.items():
        middle = {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}
        times = "".join(f"{middle[name]:9.2f}" for name in ("mean", "p50", "p99"))
        print(f"{way:22}{times}     {middle['pressure']:10.1%}{middle['jobs']:10.1f}")


if __name__ == "__main__":
    main()
