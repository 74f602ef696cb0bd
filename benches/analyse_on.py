"""Analysis of a large result: in this process beside workers of Dask on this machine, interleaved.

Writes a result of `--values` values in `--cells` cells of 25 runs into `--folder`, unless it is there, as the record
writes it: `runs.parquet` and `measurements/values.parquet`. Then `steelyard analyse` computes it in turn and
by `--workers` processes of Dask with `--memory` GB each, `--rounds` times, in an order that changes with each
round. Printed are wall and CPU time, peak memory, and the ratio of both with its 95 % interval (Student's t
of the logarithms of the ratios of the rounds); findings must have the same bytes.

`--rounds 0` computes it by Dask alone, once: what does not fit into the memory of one process.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from distributed import Client, LocalCluster
from scipy import stats

from steelyard.model import Batch, Cell, Execution, Plan
from steelyard.record.outcome_rows import run_id_of
from steelyard.record.schema import measurements_schema
from steelyard.record.tables import ResultTables

VARIANTS, RUNS = ("old", "new"), 25
PART = 1 << 18


def plan(size: int) -> Plan:
    names = [f"w{number:03d}" for number in range(size // len(VARIANTS))]
    levels = [{"workload": name, "variant": variant} for name in names for variant in VARIANTS]
    cells = [Cell(at, each, Execution("", (each["workload"],))) for at, each in enumerate(levels)]
    batches = [Batch(cell * RUNS + run, run, cell) for cell in range(len(cells)) for run in range(RUNS)]
    return Plan(
        "imported",
        1,
        {"workload": tuple(names), "variant": VARIANTS},
        tuple(cells),
        tuple(batches),
        RUNS,
        {"mode": "import", "margin_percent": 2.0, "origin": "csv", "alternatives": "factors"},
    ).freeze()


def write(folder: Path, values: int, size: int) -> None:
    planned = plan(size)
    folder.mkdir(parents=True)
    planned.write(folder / "plan.json")
    count = values // len(planned.batches)
    schema = measurements_schema({})
    rng = np.random.default_rng(1)
    with ResultTables(folder, planned, "bench") as tables:
        for batch in planned.batches:
            name = run_id_of(batch.number, 1, 0, 1)
            level = 1e6 * math.exp(0.02 * rng.standard_normal())
            tables.add_columns(_run(planned, batch, name), _measured(name, level, count, rng, schema))


def _run(planned: Plan, batch: Batch, name: str) -> dict[str, pa.Array]:
    numbers = {"cell": batch.cell, "block": batch.block, "batch": batch.number, "attempt": 1, "position": 0}
    texts = {"run_id": name, "study": planned.study, "host_id": "", "status": "completed"}
    return {
        key: pa.array([value])
        for key, value in {
            **numbers,
            "worker": 0,
            "iteration": 1,
            **texts,
            **planned.cell_of(batch).levels,
        }.items()
    }


def _measured(name: str, level: float, size: int, rng: np.random.Generator, schema: pa.Schema):
    for begin in range(0, size, PART):
        count = min(PART, size - begin)
        value = level * np.exp(0.05 * rng.standard_normal(count))
        texts = {"run_id": name, "phase": "measure", "metric": "wall", "unit": "ns"}
        columns = {key: pa.repeat(text, count) for key, text in texts.items()}
        columns["iteration"] = pa.array(np.arange(begin + 1, begin + count + 1, dtype=np.int32))
        columns["value"] = pa.array(value)
        columns["printed"] = pa.nulls(count, pa.string())
        yield pa.table([columns[field.name] for field in schema], schema=schema)


def analyse(folder: Path, *words: str) -> tuple[float, float, bytes]:
    """Give wall time [s], peak memory of the process that is asked [MiB], and the findings."""
    (folder / "findings.json").unlink(missing_ok=True)
    begin = time.monotonic()
    call = [sys.executable, "-m", "steelyard", "analyse", str(folder), *words]
    quiet = {**os.environ, "STEELYARD_CATALOGUE": str(folder.parent / "catalogue.sqlite")}
    process = subprocess.Popen(call, env=quiet, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    peak = 0.0
    while process.poll() is None:
        peak = max(peak, peak_mib(process.pid))
        time.sleep(0.02)
    if process.returncode:
        raise SystemExit(process.stderr.read().decode() if process.stderr else "failed")
    return time.monotonic() - begin, peak, (folder / "findings.json").read_bytes()


def peak_mib(pid: int) -> float:
    # Not ru_maxrss, which begins with the peak of the process that started it.
    found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--values", type=float, default=1e7)
    parser.add_argument("--cells", type=int, default=40)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory", type=float, default=4.0, help="of each worker, in GB")
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    folder = chosen.folder / f"{chosen.values:.0e}-{chosen.cells}"
    begin = time.monotonic()
    if not (folder / "runs.parquet").exists():
        write(folder, int(chosen.values), chosen.cells)
        size = (folder / "measurements/values.parquet").stat().st_size
        print(f"written in {time.monotonic() - begin:.0f} s: {size / 1e9:.2f} GB", flush=True)
    with (
        LocalCluster(
            n_workers=chosen.workers,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            memory_limit=int(chosen.memory * 1e9),
            env={"RAYON_NUM_THREADS": "1"},
        ) as cluster,
        Client(cluster) as client,
    ):
        places = {"dask": ("--on", f"dask:{cluster.scheduler_address}")}
        if chosen.rounds:
            places = {"in turn": (), **places}
        wall: dict[str, list[float]] = {name: [] for name in places}
        peaks: dict[str, float] = dict.fromkeys(places, 0.0)
        findings = set()
        for round_ in range(max(chosen.rounds, 1)):
            for name in list(places)[:: -1 if round_ % 2 else 1]:
                taken, peak, found = analyse(folder, *places[name])
                wall[name].append(taken)
                peaks[name] = max(peaks[name], peak)
                findings.add(found)
                print(f"{name}: {taken:.1f} s", flush=True)
        workers = {pid: peak_mib(pid) for pid in client.run(os.getpid).values()}
        cpu = sum(client.run(time.process_time).values()) / max(chosen.rounds, 1)
    print(
        f"\n{chosen.values:.0e} values, {os.cpu_count()} CPUs, {chosen.workers} workers, same bytes: "
        f"{len(findings) == 1}"
    )
    for name in places:
        print(
            f"{name}: median {np.median(wall[name]):.1f} s, peak of the asking process {peaks[name]:.0f} MiB"
        )
    each = ", ".join(f"{peak:.0f}" for peak in workers.values())
    limit = chosen.memory * 1e9 / 2**20
    print(f"workers: {cpu:.0f} s of CPU time a round, peaks {each} MiB of {limit:.0f} MiB each")
    if chosen.rounds > 1:
        logs = np.log(np.array(wall["in turn"]) / np.array(wall["dask"]))
        half = stats.t.ppf(0.975, logs.size - 1) * logs.std(ddof=1) / math.sqrt(logs.size)
        low, middle, high = np.exp([logs.mean() - half, logs.mean(), logs.mean() + half])
        print(f"in turn over dask: {middle:.2f} [{low:.2f}, {high:.2f}], {logs.size} rounds")


if __name__ == "__main__":
    main()
