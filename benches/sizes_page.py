"""The page that says how large results may be, rendered from what `benches/sizes.py` recorded."""

from __future__ import annotations

import json
import statistics
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

Recorded = dict[str, Any]

TITLES: Final = {
    "rows": "A table of {rows} rows, {rows_runs} runs in {rows_cells} cells",
    "cell": "A cell of {cell} values",
    "list": "A catalogue of {list} results",
    "cells": "{cells_runs} runs in {cells} cells",
    "runs": "{runs_runs} runs in {runs} cells",
}
_COMPARED: Final = (
    ("rows", "import", "groups of the CSV"),
    ("rows", "analysis", "groups of the Parquet"),
    ("rows", "quantiles of a cell", "quantiles of a cell"),
    ("cell", "quantiles and histogram", "quantiles and histogram"),
    ("cells", "import", "groups of the CSV"),
    ("cells", "analysis", "groups of the Parquet"),
    ("runs", "import", "groups of the CSV"),
    ("runs", "analysis", "groups of the Parquet"),
)
"""Work of ours beside what others do with the same file."""
_OURS: Final = "steelyard"
_LIMIT_MIB: Final = 1e9 / 2**20
_OPENING: Final = """# Large results

How long large files and results take, and how much memory, beside polars and DuckDB with the same files.
Each piece of work is a process of its own, start of Python included; the programs take turns, and a row
has the medians of its rounds. `make sizes-page` records the numbers and writes this page; `make bench`
prints the first table for a file of a tenth of the size.
"""
_MEANING: Final = """
## What compares with what

- An **import** reads the CSV, hashes it, and writes every value with the digits that the file has, the
  runs, and where they come from. polars and DuckDB read the same file, compute the number, mean, standard
  deviation and quartiles of each group, and keep nothing: **groups of the CSV**. No peer does what an
  import does; the ratio is the price of a result over a look at the file.
- An **analysis** reads the tables of the result, and gives for each cell, beside these statistics, the
  interval of the mean, the class of each series, dependence, modes and outliers. Others join the same two
  files and compute the statistics alone: **groups of the Parquet**.
- **Quantiles** are the same quantiles of the same values for all. Ours, as the page of a cell shows them,
  come with its drawings.
- A **page** is asked for twice in a process that has just begun: the times of both requests are in the
  last column.
"""


def read_recorded(path: Path) -> Recorded:
    """Read what was recorded."""
    found: Recorded = json.loads(path.read_text(encoding="utf-8"))
    return found


def counted(number: float) -> str:
    """Write a number of things.

    Examples
    --------
    >>> counted(20_000_000.0)
    '20 000 000'
    """
    return f"{int(number):,}".replace(",", " ")


def tables(recorded: Recorded) -> Iterator[str]:
    """Give a table for each size that was measured, with its heading."""
    sizes = {name: counted(number) for name, number in recorded["sizes"].items()}
    for size, title in TITLES.items():
        found = _medians(recorded, size)
        if found:
            yield f"\n## {title.format(**sizes)}\n\n{_table(found)}"


def page(recorded: Recorded) -> str:
    """Give the whole page."""
    return "".join([_OPENING, *tables(recorded), _MEANING, _ratios(recorded), _state(recorded)])


def _medians(recorded: Recorded, size: str) -> dict[tuple[str, str], dict[str, Any]]:
    """Give the medians of the rounds of each piece of work at one size, in the order of recording."""
    by_work: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for each in recorded["measured"]:
        if each["size"] == size:
            by_work.setdefault((each["work"], each["who"]), []).append(each)
    return {key: _median(rounds) for key, rounds in by_work.items()}


def _median(rounds: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {
        name: statistics.median(each[name] for each in rounds) for name in ("wall_s", "cpu_s", "peak_mib")
    }
    requests = zip(*(each["requests_s"] for each in rounds), strict=True)
    return found | {"rounds": len(rounds), "requests_s": [statistics.median(times) for times in requests]}


def _table(found: Mapping[tuple[str, str], Mapping[str, Any]]) -> str:
    has_requests = any(each["requests_s"] for each in found.values())
    last = " requests [s] |" if has_requests else ""
    lines = [
        f"| work | by | wall [s] | CPU [s] | peak memory [MiB] | rounds |{last}",
        "|---|---|---:|---:|---:|---:|" + ("---:|" if has_requests else ""),
    ]
    for (work, who), each in found.items():
        row = f"| {work} | {who} | {each['wall_s']:.1f} | {each['cpu_s']:.1f} | {each['peak_mib']:.0f} "
        row += f"| {each['rounds']} |"
        if has_requests:
            row += f" {', '.join(f'{time:.3f}' for time in each['requests_s'])} |"
        lines.append(row)
    return "\n".join(lines) + "\n"


def _ratios(recorded: Recorded) -> str:
    """Say how much of the others' time ours takes, and what needs more memory than 1 GB."""
    lines, large = [], []
    for size, own, others in _COMPARED:
        found = _medians(recorded, size)
        ours = found.get((own, _OURS))
        for who in ("polars", "duckdb"):
            peer = found.get((others, who))
            if ours is not None and peer is not None:
                wall, cpu = (ours[name] / peer[name] for name in ("wall_s", "cpu_s"))
                lines.append(
                    f"| {_named(recorded, size)}: {own} | {others}, {who} | {wall:.2f} | {cpu:.2f} |"
                )
    for size in TITLES:
        for (work, who), each in _medians(recorded, size).items():
            if each["peak_mib"] > _LIMIT_MIB:
                large.append(f"{work} of {_named(recorded, size)} ({who}, {each['peak_mib']:.0f} MiB)")
    heading = "\n| ours | beside | wall, ours over theirs | CPU, ours over theirs |\n|---|---|---:|---:|\n"
    table = heading + "\n".join(lines) + "\n" if lines else ""
    said = "; ".join(large) if large else "none"
    return f"{table}\nMore than 1 GB of memory: {said}.\n"


def _named(recorded: Recorded, size: str) -> str:
    names = {"rows": "rows", "cell": "values", "list": "results", "cells": "cells", "runs": "runs"}
    number = recorded["sizes"]["runs_runs" if size == "runs" else size]
    return f"{counted(number)} {names[size]}"


def _state(recorded: Recorded) -> str:
    """Say on what machine, and what else it did."""
    host = recorded["host"]
    loads = [each["load"] for each in recorded["measured"]]
    steal = max((each["steal_percent"] for each in recorded["measured"]), default=0.0)
    versions = ", ".join(f"{name} {number}" for name, number in host["versions"].items())
    busy = f"{min(loads):.1f} to {max(loads):.1f}" if loads else "unknown"
    missing = "".join(f" {name} was not installed." for name in host["absent"])
    return f"""
## The machine

{host["cpus"]} CPUs ({host["model"]}), {host["memory_gib"]:.0f} GiB of memory,
Linux {host["kernel"]}; {versions}.{missing}
The load average before a process was {busy}, and the hypervisor took at most {steal:.1f} % of the time
of one. Recorded on {recorded["begun"]}.
"""
