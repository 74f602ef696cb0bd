"""Large tables: import, analysis, report and quantiles beside polars and DuckDB, interleaved.

A CSV of two million rows (`--rows`) of 100 runs in 4 cells. Ours imports it (plan, tables, provenance),
analyses it (intervals, shapes of series, comparisons), writes the report, and summarises a cell as
`steelyard serve` shows it. The others compute number, mean, standard deviation and quartiles of each group
from the CSV and from our Parquet, and quantiles of one cell. Each is a process of its own in each of three
rounds; figures are medians of wall time, CPU time and peak memory. What is not installed is left out by name.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

ROUNDS = 3
CELLS = 4
QUANTILES = "[0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 0.999]"
PAGE = """
import sys
from pathlib import Path
from steelyard.serve.cell_values import cell_values
cell_values(Path("result"), 0, "")
"""
POLARS = """
import polars as pl
value = pl.col("value")
found = pl.{scan}.group_by("{cell}").agg(
    value.len(), value.mean().alias("m"), value.std().alias("s"),
    *(value.quantile(p, "linear").alias(str(p)) for p in (0.25, 0.5, 0.75)))
found.collect(engine="streaming")
"""
POLARS_QUANTILES = """
import polars as pl
cell = pl.scan_parquet("result/runs.parquet").filter(pl.col("cell") == 0).select("run_id")
own = pl.scan_parquet("result/measurements/values.parquet").join(cell, on="run_id", how="semi")
found = own.select(pl.col("value").quantile(p, "linear").alias(str(p)) for p in {quantiles})
found.collect(engine="streaming")
"""
DUCKDB = """
import duckdb
duckdb.sql('''select {cell}, count(*), avg(value), stddev_samp(value), quantile_cont(value, [0.25, 0.5, 0.75])
    from {scan} group by 1''').fetchall()
"""
DUCKDB_QUANTILES = """
import duckdb
duckdb.sql('''select quantile_cont(value, {quantiles}) from 'result/measurements/values.parquet'
    where run_id in (select run_id from 'result/runs.parquet' where cell = 0)''').fetchall()
"""


def contenders() -> dict[str, list[str]]:
    """Give the arguments of Python for each, by what it does."""
    ours = ["-m", "steelyard"]
    found = {
        "import: steelyard": [*ours, "import", "csv", "t.csv", "--unit", "ms", "--out", "result"],
        "analysis: steelyard": [*ours, "analyse", "result"],
        "report: steelyard": [*ours, "report", "result"],
        "quantiles of a cell: steelyard": ["-c", PAGE],
    }
    csv, runs = "workload", "run_id"
    peers = {
        "polars": (
            POLARS.format(scan='scan_csv("t.csv")', cell=csv),
            POLARS.format(scan='scan_parquet("result/measurements/values.parquet")', cell=runs),
            POLARS_QUANTILES.format(quantiles=QUANTILES),
        ),
        "duckdb": (
            DUCKDB.format(scan="'t.csv'", cell=csv),
            DUCKDB.format(scan="'result/measurements/values.parquet'", cell=runs),
            DUCKDB_QUANTILES.format(quantiles=QUANTILES),
        ),
    }
    for name, programs in peers.items():
        if importlib.util.find_spec(name) is None:
            print(f"{name} is not installed: `pip install {name}`")
            continue
        for work, program in zip(
            ("groups of the CSV", "groups of the Parquet", "quantiles of a cell"), programs, strict=True
        ):
            found[f"{work}: {name}"] = ["-c", program]
    return found


def measure(arguments: list[str], folder: Path) -> tuple[float, float, float]:
    """Give wall time [s], CPU time [s] and peak memory [MiB] of a process."""
    begin, before = time.monotonic(), os.times()
    process = subprocess.Popen(
        [sys.executable, *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    peak = 0
    while process.poll() is None:
        # Not ru_maxrss, which begins with the peak of this process.
        found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())
        peak = max(peak, int(found[1]) if found else 0)
        time.sleep(0.01)
    wall, after = time.monotonic() - begin, os.times()
    if process.returncode:
        raise SystemExit(process.stdout.read().decode() if process.stdout else "failed")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, cpu, peak / 1024


def write_csv(path: Path, rows: int, runs: int) -> None:
    run = np.arange(rows) * runs // rows
    value = np.random.default_rng(1).gamma(20, 0.5, rows).round(6)
    table = pl.DataFrame({"workload": run % CELLS, "run": run, "value": value})
    table.with_columns(pl.format("w{}", "workload").alias("workload")).write_csv(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=2e6)
    parser.add_argument("--runs", type=float, default=100)
    chosen = parser.parse_args()
    rows, runs = int(chosen.rows), int(chosen.runs)
    found: dict[str, list[tuple[float, float, float]]] = {}
    loads = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_csv(folder / "t.csv", rows, runs)
        size = (folder / "t.csv").stat().st_size / 1e6
        asked = contenders()
        for _ in range(ROUNDS):
            shutil.rmtree(folder / "result", ignore_errors=True)
            for name, arguments in asked.items():
                loads.append(os.getloadavg()[0])
                found.setdefault(name, []).append(measure(arguments, folder))
    print(
        f"{rows} rows of {runs} runs, {size:.0f} MB of CSV; {os.cpu_count()} CPUs, "
        f"load {min(loads):.1f} to {max(loads):.1f}; medians of {ROUNDS} rounds\n"
    )
    print("| | wall [s] | CPU [s] | peak memory [MiB] |\n|---|---|---|---|")
    for name in sorted(found):
        wall, cpu, peak = (statistics.median(each) for each in zip(*found[name], strict=True))
        print(f"| {name} | {wall:.1f} | {cpu:.1f} | {peak:.0f} |")


if __name__ == "__main__":
    main()
