"""``steelyard plan``: what a study would run."""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path  # noqa: TC003 - cyclopts reads annotations at run time
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from steelyard.cli.amounts import WholeOrNone  # noqa: TC001 - cyclopts reads it
from steelyard.cli.study_flags import given
from steelyard.run.progress import Silent
from steelyard.studies.execution import ProbedTechnologies
from steelyard.studies.request import requested_options
from steelyard.study import study

if TYPE_CHECKING:
    from steelyard.model import Plan


def plan(
    name: str,
    *,
    quick: Annotated[bool, Parameter(negative="")] = False,
    study_file: Path | None = None,
    seed: WholeOrNone = None,
    own: object = None,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """Show what a study would run.

    Isolation technologies are tried, nothing is measured. Cells that cannot run here are
    listed with the reason.

    Parameters
    ----------
    name
        The study.
    quick
        A few minutes instead of hours: fewer workloads, loads and iterations.
    study_file
        TOML file that says what differs from the defaults.
    seed
        Seed of the order and of the inputs.
    own
        Options of the study alone.
    as_json
        Print the whole plan as JSON.

    Examples
    --------
    steelyard plan stability --quick
    steelyard plan stability --study-file study.toml --json
    """
    chosen = study(name)
    said = {"quick": quick or None, "seed": seed, **given(chosen, own)}
    asked = requested_options(chosen, study_file, said)
    sketch = chosen.sketch(asked, ProbedTechnologies(Silent()))
    seconds = chosen.seconds(sketch)
    if as_json:
        document = {**asdict(sketch), "estimated_s": None if seconds is None else round(seconds, 1)}
        sys.stdout.write(json.dumps(document, ensure_ascii=False) + "\n")
    else:
        sys.stdout.write("\n".join(describe(sketch, seconds)) + "\n")


def describe(sketch: Plan, seconds: float | None) -> list[str]:
    """Give the lines that say what a plan runs; nothing about its time where that is unknown."""
    missing = Counter(cell.missing for cell in sketch.cells if cell.missing is not None)
    runnable = len(sketch.cells) - missing.total()
    runs = sum(
        cell.execution.workers * cell.execution.iterations
        for cell in map(sketch.cell_of, sketch.batches)
        if cell.execution is not None
    )
    lines = [
        f"study {sketch.study}, {sketch.options['mode']}, seed {sketch.seed}",
        f"{runnable} cells in {sketch.blocks} blocks: {len(sketch.batches)} batches, {runs} runs",
        *([] if seconds is None else [f"expected to take about {_duration(seconds)}"]),
        "",
        "factors",
        *(f"  {factor:<11} {', '.join(levels)}" for factor, levels in sketch.factors.items()),
    ]
    if missing:
        lines += ["", f"{missing.total()} missing cells, NA in every table"]
        lines += [f"  {count:>5}  {reason}" for reason, count in missing.most_common()]
    if sketch.twin is not None:
        first, second = sketch.twin
        lines += ["", f"A/A control: cell {second} repeats cell {first} ({_levels(sketch, first)})"]
    return lines


def _levels(sketch: Plan, cell: int) -> str:
    levels = sketch.cells[cell].levels
    if "setup_type" not in levels:
        return ", ".join(f"{name} {level}" for name, level in levels.items())
    setup = f"{levels['setup_type']},{levels['setup_size']}"
    return f"{levels['isolation']}, {setup}, {levels['workload']}"


def _duration(seconds: float) -> str:
    """Write a duration as coarsely as it is known.

    Examples
    --------
    >>> [_duration(each) for each in (40, 95, 5400, 400_000)]
    ['1 min', '2 min', '1.5 h', '4.6 days']
    """
    minute, hour, day = 60, 3600, 86_400
    if seconds < hour:
        return f"{max(round(seconds / minute), 1)} min"
    return f"{seconds / hour:.1f} h" if seconds < 2 * day else f"{seconds / day:.1f} days"
