"""Millions of response times: this library beside pandas and R, interleaved, each in a process of its own.

Ten loops of two million calls (`--values` in all). Every contender gives number, mean, sd, extremes,
quartiles, median absolute deviation and the number of peaks above median + 10 MAD; all agree. Steelyard
and pandas read the Parquet files of runs, R the text that MooBench writes, and pandas that, too. What is
not installed is left out by name. Figures are wall time and CPU time over ours in the same round, and
peak memory.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from steelyard.studies.replication.experiments.files import write_table

LOOPS = 10
NAMES = ("count", "mean", "sd", "min", "max", "q1", "median", "q3", "mad", "peaks")

OURS = """
import json, sys
from pathlib import Path
import pyarrow.parquet as pq
from steelyard.analyse.peaks.call_times import summarise
from steelyard.analyse.peaks.peak_search import Threshold
files = sorted(Path(sys.argv[1]).glob("*/calls.parquet"))
def batches():
    for path in files:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(1 << 18, columns=["duration_ns"]):
                yield batch["duration_ns"].to_numpy()
times = summarise(batches)
above = Threshold().above_ns(times)
peaks = sum(int((part > above).sum()) for part in batches())
q = times.quantiles_ns
print(json.dumps([times.count, times.mean_ns, times.sd_ns, times.min_ns, times.max_ns, q[.25], q[.5], q[.75],
                  times.mad_ns, peaks]))
"""
PANDAS = """
import json, sys
from pathlib import Path
import pandas as pd
place = Path(sys.argv[1])
if sys.argv[2] == "parquet":
    parts = [pd.read_parquet(path, columns=["duration_ns"]) for path in sorted(place.glob("*/calls.parquet"))]
    x = pd.concat(parts)["duration_ns"]
else:
    x = pd.read_csv(place / "raw.csv", sep=";", header=None)[1]
m = x.median()
mad = (x - m).abs().median()
q = x.quantile([.25, .75])
print(json.dumps([len(x), x.mean(), x.std(), int(x.min()), int(x.max()), q[.25], m, q[.75], mad,
                  int((x > m + 10 * mad).sum())]))
"""
R_PROGRAM = """
path <- file.path(commandArgs(TRUE)[1], "raw.csv")
if (requireNamespace("data.table", quietly = TRUE)) {
  x <- as.numeric(data.table::fread(path, sep = ";", header = FALSE)[[2]])
} else {
  x <- read.csv(path, sep = ";", header = FALSE, colClasses = c("integer", "numeric"))[[2]]
}
m <- median(x); d <- mad(x, constant = 1); q <- quantile(x, c(.25, .75), names = FALSE)
cat(sprintf("[%s]\\n", paste(format(c(length(x), mean(x), sd(x), min(x), max(x), q[1], m, q[2], d,
  sum(x > m + 10 * d)), digits = 15, scientific = FALSE, trim = TRUE), collapse = ",")))
"""


@dataclass(frozen=True)
class Answer:
    """What one process gave and took."""

    values: list[float]
    wall_s: float
    cpu_s: float
    peak_mib: float


def ask(command: list[str]) -> Answer:
    with tempfile.TemporaryFile() as output:
        begin = time.monotonic()
        process = subprocess.Popen(command, stdout=output)
        _, status, used = os.wait4(process.pid, 0)
        wall = time.monotonic() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            message = f"{command[0]} ended with {process.returncode}"
            raise SystemExit(message)
        output.seek(0)
        values = json.loads(output.read())
    return Answer(values, wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def contenders(folder: Path) -> dict[str, list[str]]:
    found = {"steelyard": [sys.executable, "-c", OURS, str(folder)]}
    if importlib.util.find_spec("pandas") is None:
        print("pandas is not installed: left out (`uv pip install pandas`)")
    else:
        for form in ("parquet", "text"):
            found[f"pandas, {form}"] = [sys.executable, "-c", PANDAS, str(folder), form]
    if shutil.which("Rscript") is None:
        print("Rscript is not installed: left out (`apt-get install r-base-core r-cran-data.table`)")
    else:
        program = folder / "summary.R"
        program.write_text(R_PROGRAM)
        probe = ["Rscript", "-e", 'quit(status = !requireNamespace("data.table", quietly = TRUE))']
        has_table = subprocess.run(probe, check=False, capture_output=True).returncode == 0
        found["R, data.table" if has_table else "R, read.csv"] = ["Rscript", str(program), str(folder)]
    return found


def lay_down(folder: Path, values: int) -> None:
    """Skewed calls around 12 us with rare pauses; the same text for those who read text."""
    rng = np.random.default_rng(1)
    with (folder / "raw.csv").open("w") as text:
        for loop in range(LOOPS):
            size = values // LOOPS
            durations = (11_900 + rng.lognormal(6, 0.8, size)).astype(np.int64)
            paused = rng.integers(0, size, max(size // 1000, 1))
            durations[paused] += rng.exponential(2e6, paused.size).astype(np.int64)
            place = folder / f"{loop}"
            place.mkdir()
            starts = np.cumsum(durations) - durations
            write_table(place, "calls", {"start_ns": starts, "duration_ns": durations})
            for part in np.array_split(durations, max(size // 100_000, 1)):
                text.write("".join(f"0;{value}\n" for value in part.tolist()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--values", type=int, default=20_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lay_down(folder, given.values)
        commands = contenders(folder)
        answers: dict[str, list[Answer]] = {name: [] for name in commands}
        for _ in range(given.rounds):
            for who, command in commands.items():
                answers[who].append(ask(command))
        ours = answers["steelyard"]
        for who, theirs in answers.items():
            for name_, mine, other in zip(NAMES, ours[0].values, theirs[0].values, strict=True):
                if abs(mine - other) > 1e-9 * abs(mine):
                    message = f"{who}: {name_} is {other}, ours {mine}"
                    raise SystemExit(message)
        print(f"{given.values} values, {given.rounds} rounds; all agree on {', '.join(NAMES)}")
        for who, theirs in answers.items():
            wall = statistics.median(a.wall_s / b.wall_s for a, b in zip(theirs, ours, strict=True))
            cpu = statistics.median(a.cpu_s / b.cpu_s for a, b in zip(theirs, ours, strict=True))
            best = min(answer.wall_s for answer in theirs)
            peak = max(answer.peak_mib for answer in theirs)
            print(f"{who:16}  {best:7.2f} s  wall x {wall:5.2f}  CPU x {cpu:5.2f}  peak {peak:6.0f} MiB")


main()
