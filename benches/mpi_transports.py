"""What the MPI transports take: half round trips, semantic thresholds, and the time of a recording.

    .venv/bin/python benches/mpi_transports.py [--cpus A,B]

Goals: thresholds exact and below 1 s in one launch; 20 000 messages through shared memory recorded in at
most 2 s, launch included; a stamp at most 25 ns.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from steelyard.studies.communication.trace import Trace, read_trace
from steelyard.studies.communication.transport.interface import TraceOptions
from steelyard.studies.communication.transport.mpi import TRANSPORTS, Mpi
from steelyard.studies.communication.transport.mpi_thresholds import find_thresholds

SIZES = (1, 256, 1000, 4000, 10_000, 65_000, 1_000_000)
REPEATS = 200
MESSAGES = 20_000
LARGEST = 1e7


def record(transport: Mpi, operations: list[tuple[str, int]], cpus: tuple[int, int]) -> tuple[Trace, float]:
    """Run a plan; give the trace and the time from the start of the command to its end [s]."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = "".join(f"{op},{size}\n" for op, size in operations)
        (folder / "plan.csv").write_text(f"op,size\n{lines}", encoding="ascii")
        options = TraceOptions(cpus=cpus, canary=folder / "canary")
        (invocation,) = transport.invocations(folder / "plan.csv", folder, options)
        begin = time.monotonic()
        subprocess.run(invocation.command, check=True, env={**os.environ, **invocation.environment})
        return read_trace(folder), time.monotonic() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cpus", default="0,1")
    first, second = (int(word) for word in parser.parse_args().cpus.split(","))
    cpus = (first, second)
    generator = np.random.default_rng(1)
    for transport in TRANSPORTS:
        answer = transport.probe()
        if not answer.available:
            print(f"{transport.name}: {answer.reason}")
            continue
        plan = [("pingpong", int(size)) for size in generator.permutation(np.repeat(SIZES, REPEATS))]
        trace, _ = record(transport, plan, cpus)
        endpoint = trace.endpoints[0]
        took = (endpoint.operations["end_ns"] - endpoint.operations["start_ns"]) / 2000
        medians = ", ".join(
            f"{size}: {np.median(took[endpoint.operations['size'] == size]):.2f}" for size in SIZES
        )
        print(f"{transport.name} ({answer.version})")
        print(f"  half round trip [us], median per size in random order: {medians}")
        canary = np.nanmedian(endpoint.blocks["canary_ns"])
        print(f"  stamp {endpoint.header['stamp_cost_ns']:.1f} ns, canary {canary:.0f} ns")
        found = find_thresholds(transport, cpus=cpus)
        print(
            f"  thresholds: detached {found.detached_bytes}, asynchronous {found.asynchronous_bytes}; "
            f"{found.duration_ns / 1e9:.2f} s, {found.looks} messages, {found.doubted} doubted"
        )
        sizes = LARGEST ** generator.uniform(0, 1, MESSAGES)
        _, took_s = record(transport, [("stream", int(size)) for size in sizes], cpus)
        print(f"  {MESSAGES} messages from 1 B to 10 MB recorded in {took_s:.2f} s")


if __name__ == "__main__":
    main()
