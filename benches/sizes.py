"""Large tables and results: import, analysis, report and pages beside polars and DuckDB, interleaved.

A CSV of 2 x 10^7 rows (`--scale`) of 200 runs in 4 cells; a cell of 10^8 values; a catalogue of 10 000
results; 10^6 and 10^7 runs in 10^5 cells. Ours imports it (plan, tables,
provenance), analyses it (intervals, shapes of series, comparisons), writes the report, and summarises a cell
as `steelyard serve` shows it. The others compute number, mean, standard deviation and quartiles of each group
from the CSV and from our Parquet, and quantiles of one cell. Each is a process of its own in each round;
figures are medians of wall time, CPU time and peak memory. What is not installed is left out by name.

`--record FILE` keeps each measurement as soon as it is made and goes on after what the file has; `--minutes`
ends the last process at that time. `--page FILE` renders what is recorded.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import sizes_page

from steelyard.catalogue import Catalogue
from steelyard.catalogue.folder import read_folder
from steelyard.record.table_file import ROWS_PER_GROUP, TableWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FULL = {
    "rows": 2e7,
    "rows_runs": 200,
    "rows_cells": 4,
    "cell": 1e8,
    "list": 1e4,
    "cells": 1e5,
    "cells_runs": 1e6,
    "runs": 1e5,
    "runs_runs": 1e7,
}
ROUNDS = {"rows": 3, "cell": 3, "list": 3, "cells": 1, "runs": 1}
QUANTILES = "[0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 0.999]"
VALUES = "result/measurements/values.parquet"
CELL_PAGE = """
from pathlib import Path
from steelyard.serve.cell_values import cell_values
cell_values(Path("result"), 0, "")
"""
PAGES = """
import asyncio, re, time
from pathlib import Path
from steelyard.serve.pages import Pages
app = Pages({place}).application()
async def get(path):
    said = []
    async def receive():
        return {{"type": "http.request", "body": b"", "more_body": False}}
    async def send(message):
        said.append(message)
    begin = time.perf_counter()
    await app({{"type": "http", "asgi": {{"version": "3.0"}}, "http_version": "1.1", "method": "GET",
        "scheme": "http", "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "",
        "headers": [(b"host", b"127.0.0.1")], "server": ("127.0.0.1", 80), "client": ("127.0.0.1", 1)}},
        receive, send)
    assert said[0]["status"] == 200, (path, said)
    return b"".join(each.get("body", b"") for each in said).decode(), time.perf_counter() - begin
async def main():
    path = "{path}"
    if "ID" in path:
        path = path.replace("ID", re.search(r"/results/(\\w+)", (await get("/"))[0])[1])
    print("requests_s", *[(await get(path))[1] for _ in range(2)])
asyncio.run(main())
"""
POLARS_GROUPS = """
import polars as pl
value = pl.col("value")
found = pl.{scan}.group_by("{cell}").agg(
    value.len(), value.mean().alias("m"), value.std().alias("s"),
    *(value.quantile(p, "linear").alias(str(p)) for p in (0.25, 0.5, 0.75)))
found.collect(engine="streaming")
"""
DUCKDB_GROUPS = """
import duckdb
duckdb.sql('''select {cell}, count(*), avg(value), stddev_samp(value), quantile_cont(value, [0.25, 0.5, 0.75])
    from {scan} group by 1''').fetchall()
"""
CSV = {"polars": 'scan_csv("t.csv")', "duckdb": "'t.csv'"}
PARQUET = {
    "polars": f'scan_parquet("{VALUES}").join('
    'pl.scan_parquet("result/runs.parquet").select("run_id", "cell"), on="run_id")',
    "duckdb": f"'{VALUES}' join 'result/runs.parquet' using (run_id)",
}
OF_A_CELL = {
    "polars": """
import polars as pl
cell = pl.scan_parquet("result/runs.parquet").filter(pl.col("cell") == 0).select("run_id")
own = pl.scan_parquet("result/measurements/values.parquet").join(cell, on="run_id", how="semi")
found = own.select(pl.col("value").quantile(p, "linear").alias(str(p)) for p in {quantiles})
found.collect(engine="streaming")
""",
    "duckdb": """
import duckdb
duckdb.sql('''select quantile_cont(value, {quantiles}) from 'result/measurements/values.parquet'
    where run_id in (select run_id from 'result/runs.parquet' where cell = 0)''').fetchall()
""",
}
WITH_BINS = {
    "polars": """
value = pl.col("value")
low, high = own.select(value.min().alias("low"), value.max().alias("high")).collect(engine="streaming").row(0)
bins = ((value - low) * (59.999 / (high - low))).cast(pl.Int32).alias("bin")
own.select(bins).group_by("bin").len().collect(engine="streaming")
""",
    "duckdb": """
duckdb.sql('''with ends as (select min(value) as low, max(value) as high
    from 'result/measurements/values.parquet')
    select cast(floor((value - low) * (59.999 / (high - low))) as int),
    count(*) from 'result/measurements/values.parquet', ends group by 1''').fetchall()
""",
}


@dataclass(frozen=True)
class Work:
    """One process that is measured: arguments of Python, and the folder that it writes anew."""

    work: str
    who: str
    arguments: list[str]
    writes: str = ""


def ours(work: str, *arguments: str, writes: str = "") -> Work:
    return Work(work, "steelyard", ["-m", "steelyard", *arguments], writes)


def pages(work: str, place: str, path: str) -> Work:
    return Work(work, "steelyard", ["-c", PAGES.format(place=place, path=path)])


def groups(work: str, scans: dict[str, str], cell: str) -> Iterator[Work]:
    for who, program in (("polars", POLARS_GROUPS), ("duckdb", DUCKDB_GROUPS)):
        yield Work(work, who, ["-c", program.format(scan=scans[who], cell=cell)])


def whole_result() -> Iterator[Work]:
    """Give the work of a CSV: import, analysis and report beside what others do with the same files."""
    imported = ("import", "csv", "t.csv", "--unit", "ms", "--out", "result", "--catalogue", "c.sqlite")
    yield ours("import", *imported, writes="result")
    yield from groups("groups of the CSV", CSV, "workload")
    yield ours("analysis", "analyse", "result", "--catalogue", "c.sqlite")
    yield from groups("groups of the Parquet", PARQUET, "cell")
    yield ours("report", "report", "result", "--catalogue", "c.sqlite")


def of_a_cell(work: str, also: dict[str, str]) -> Iterator[Work]:
    yield Work(work, "steelyard", ["-c", CELL_PAGE])
    for who, program in OF_A_CELL.items():
        yield Work(work, who, ["-c", program.format(quantiles=QUANTILES) + also.get(who, "")])


def works(size: str) -> Iterator[Work]:
    """Give what is done at a size, in turn."""
    if size == "rows":
        yield from whole_result()
        yield from of_a_cell("quantiles of a cell", {})
    elif size == "cell":
        yield from of_a_cell("quantiles and histogram", WITH_BINS)
    elif size == "list":
        yield ours("list on the command line", "results", "list", "--catalogue", "c.sqlite")
        yield pages("page of the list", 'None, "c.sqlite"', "/")
    else:
        yield from whole_result()
        yield pages("page of the result", 'Path("."), None', "/results/ID")
        yield pages("page of its cells", 'Path("."), None', "/results/ID/cells")


def write_rows(folder: Path, rows: int, runs: int, cells: int) -> None:
    """Write a CSV whose runs follow each other; cells take turns."""
    run = np.arange(rows) * runs // rows
    value = np.random.default_rng(1).gamma(20, 0.5, rows).round(6)
    table = pl.DataFrame({"workload": run % cells, "run": run, "value": value})
    table.with_columns(pl.format("w{}", "workload").alias("workload")).write_csv(folder / "t.csv")


def write_cell(folder: Path, values: int) -> None:
    """Write a result of one run with so many values: an import of a few whose table is replaced."""
    write_rows(folder, 1000, 1, 1)
    words = ["import", "csv", "t.csv", "--unit", "ns", "--out", "result", "--catalogue", "c.sqlite"]
    subprocess.run([sys.executable, "-m", "steelyard", *words], cwd=folder, check=True, capture_output=True)
    few = pq.ParquetFile(folder / VALUES).read(use_threads=False)
    random = np.random.default_rng(1)
    with TableWriter(folder / VALUES, few.schema) as writer:
        for begin in range(0, values, ROWS_PER_GROUP):
            size = min(ROWS_PER_GROUP, values - begin)
            own = {name: pa.repeat(few[name][0], size) for name in ("run_id", "phase", "metric", "unit")}
            iteration = pa.array(np.arange(begin + 1, begin + size + 1, dtype=np.int32))
            writer.add_columns(
                {**own, "iteration": iteration, "value": pa.array(random.gamma(20, 0.5, size))}
            )


def write_list(folder: Path, results: int, final: Path) -> None:
    """Write result folders, copies of one that was imported, and a catalogue of them as they will stand."""
    write_rows(folder, 200, 20, 4)
    for words in (("import", "csv", "t.csv", "--unit", "ms", "--out", "one"), ("analyse", "one")):
        arguments = [sys.executable, "-m", "steelyard", *words, "--catalogue", "other.sqlite"]
        subprocess.run(arguments, cwd=folder, check=True, capture_output=True)
    one = read_folder(folder / "one")
    readings = []
    for place in range(results):
        copy = folder / "results" / f"{place:05d}"
        copy.mkdir(parents=True)
        for name in ("plan.json", "provenance.json", "findings.json", "runs.parquet"):
            shutil.copy2(folder / "one" / name, copy / name)
        entry = replace(one.entry, id=f"{place:010x}", folder=final / "results" / copy.name)
        readings.append(replace(one, entry=entry))
    with Catalogue.at(folder / "c.sqlite") as catalogue:
        catalogue.put(readings)


def prepare(folder: Path, size: str, sizes: dict[str, int]) -> None:
    """Make the files of a size, whole or not at all."""
    if folder.exists():
        return
    print(f"{size}: its files are written", file=sys.stderr)
    begun = folder.with_name(f"{folder.name}.begun")
    shutil.rmtree(begun, ignore_errors=True)
    begun.mkdir(parents=True)
    if size == "cell":
        write_cell(begun, sizes["cell"])
    elif size == "list":
        write_list(begun, sizes["list"], folder)
    else:
        cells = sizes["rows_cells"] if size == "rows" else sizes[size]
        rows = sizes["rows"] if size == "rows" else sizes[f"{size}_runs"]
        write_rows(begun, rows, sizes[f"{size}_runs"], cells)
    begun.rename(folder)


def steal_ticks() -> tuple[int, int]:
    """Give the ticks that the hypervisor took, and all."""
    ticks = [int(each) for each in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return ticks[7], sum(ticks)


def measure(arguments: list[str], folder: Path, limit_s: float) -> dict[str, Any] | None:
    """Give wall time, CPU time and peak memory of a process; nothing where it takes longer than the limit."""
    load, steal = os.getloadavg()[0], steal_ticks()
    begin, before = time.monotonic(), os.times()
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            [sys.executable, *arguments], cwd=folder, stdout=said, stderr=subprocess.STDOUT
        )
        peak = 0
        while process.poll() is None:
            # Not ru_maxrss, which begins with the peak of this process.
            found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())
            peak = max(peak, int(found[1]) if found else 0)
            time.sleep(0.01)
            if time.monotonic() - begin > limit_s:
                process.kill()
                process.wait()
                return None
        wall, after = time.monotonic() - begin, os.times()
        said.seek(0)
        text = said.read().decode()
    if process.returncode:
        raise SystemExit(text or "failed")
    requests = re.search(r"^requests_s (.*)$", text, re.MULTILINE)
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    stolen, ticks = (after - before for before, after in zip(steal, steal_ticks(), strict=True))
    return {
        "wall_s": round(wall, 3),
        "cpu_s": round(cpu, 2),
        "peak_mib": round(peak / 1024, 1),
        "requests_s": [round(float(each), 4) for each in requests[1].split()] if requests else [],
        "load": round(load, 2),
        "steal_percent": round(100 * stolen / max(ticks, 1), 2),
    }


def host() -> dict[str, Any]:
    """Give what the numbers depend on."""
    versions, absent = {"Python": platform.python_version()}, []
    for name in ("steelyard", "polars", "pyarrow", "duckdb"):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            absent.append(name)
    model = re.search(r"^model name\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return {
        "cpus": len(os.sched_getaffinity(0)),
        "model": model[1] if model else platform.machine(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "kernel": platform.release(),
        "versions": versions,
        "absent": absent,
    }


class Recording:
    """Measurements that are kept as they are made; a file that has some is continued."""

    def __init__(self, path: Path | None, sizes: dict[str, int], state: dict[str, Any]) -> None:
        self._path = path
        begun = datetime.now(UTC).date().isoformat()
        self.content: sizes_page.Recorded = {"begun": begun, "host": state, "sizes": sizes, "measured": []}
        if path is not None and path.exists():
            found = sizes_page.read_recorded(path)
            if (found["sizes"], found["host"]) == (sizes, state):
                self.content = found
            else:
                print(f"{path}: of other sizes, versions or another machine; begun anew", file=sys.stderr)

    def has(self, size: str, work: Work, number: int) -> bool:
        """Whether a round of a piece of work is recorded."""
        wanted = {"size": size, "work": work.work, "who": work.who, "round": number}
        return any(wanted.items() <= each.items() for each in self.content["measured"])

    def add(self, size: str, work: Work, number: int, found: dict[str, Any]) -> None:
        """Keep a measurement."""
        own = {"size": size, "work": work.work, "who": work.who, "round": number}
        self.content["measured"].append(own | found)
        if self._path is not None:
            temporary = self._path.with_name(f".{self._path.name}.tmp")
            temporary.write_text(json.dumps(self.content, indent=1) + "\n", encoding="utf-8")
            temporary.replace(self._path)


def record(recording: Recording, chosen: list[str], place: Path, left_s: Callable[[], float]) -> bool:
    """Measure what is not recorded yet; say whether all of it is."""
    state = recording.content["host"]
    for size in chosen:
        for number in range(ROUNDS[size]):
            for work in works(size):
                if work.who in state["absent"] or recording.has(size, work, number):
                    continue
                if left_s() <= 0:
                    return False
                prepare(place / size, size, recording.content["sizes"])
                if work.writes:
                    shutil.rmtree(place / size / work.writes, ignore_errors=True)
                found = measure(work.arguments, place / size, left_s())
                if found is None:
                    return False
                print(f"{size}, {work.work}, {work.who}: {found['wall_s']:.1f} s", file=sys.stderr)
                recording.add(size, work, number, found)
        shutil.rmtree(place / size, ignore_errors=True)
    return True


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=float, default=1.0, help="part of the full sizes")
    parser.add_argument("--only", nargs="+", choices=list(ROUNDS), default=list(ROUNDS))
    parser.add_argument(
        "--place", type=Path, help="folder for the files, about 10 GB; kept until all is done"
    )
    parser.add_argument("--record", type=Path, help="JSON file of the measurements, continued if it exists")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="time for this call")
    parser.add_argument("--page", type=Path, help="page to write")
    chosen = parser.parse_args()
    end = time.monotonic() + 60 * chosen.minutes
    least = {"rows_runs": 200, "rows_cells": 4}
    sizes = {name: least.get(name) or max(int(full * chosen.scale), 100) for name, full in FULL.items()}
    recording = Recording(chosen.record, sizes, host())
    for name in recording.content["host"]["absent"]:
        print(f"{name} is not installed: `pip install {name}`", file=sys.stderr)
    with tempfile.TemporaryDirectory() as temporary:
        place = (chosen.place or Path(temporary)).absolute()
        is_whole = record(recording, chosen.only, place, lambda: end - time.monotonic())
    if chosen.page:
        chosen.page.write_text(sizes_page.page(recording.content), encoding="utf-8")
    else:
        print("".join(sizes_page.tables(recording.content)))
    if not is_whole:
        print("not all is recorded: the time is over; the same command goes on", file=sys.stderr)


if __name__ == "__main__":
    main()
