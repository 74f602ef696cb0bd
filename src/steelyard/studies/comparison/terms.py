"""How a comparison is measured and what it promises, and the plan that follows from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path  # noqa: TC003 - dataclass field
from typing import TYPE_CHECKING, Final

from steelyard.analyse.comparison.equivalence import Margin
from steelyard.analyse.comparison.interim_schedule import Extent
from steelyard.analyse.comparison.sequential import Design, Location
from steelyard.analyse.intervals.guarantee import FEWEST_UNITS
from steelyard.design.blocks import draw_batches
from steelyard.errors import DataError, UsageError
from steelyard.model import Batch, Cell, Execution, Plan
from steelyard.run.executor.resident import require_input

if TYPE_CHECKING:
    from steelyard.studies.comparison.contender import Contender, Field

STUDY: Final = "compare"
BARE: Final = "bare"
WARMUP, MEASURE = "warmup", "measure"
BENCHMARK, SIDE = "benchmark", "side"
LEVELS: Final = "more than 50 % and less than 100 %"
MOST_PLANNED: Final = 100_000
"""Runs a plan may foresee: more would make the frozen plan larger than what is measured."""


class Metric(StrEnum):
    """What is compared."""

    WALL = "wall"
    """Time from exec to exit."""
    CPU = "cpu"
    """CPU time of the whole process tree."""
    MEMORY = "memory"
    """Peak memory of the whole process tree."""

    @property
    def quantity(self) -> str:
        """Name of the quantity in an outcome."""
        return {"wall": "wall_ns", "cpu": "cpu_ns", "memory": "peak_memory_bytes"}[self.value]

    @property
    def words(self) -> str:
        """What people call it."""
        return {"wall": "wall time", "cpu": "CPU time", "memory": "peak memory"}[self.value]


class Output(StrEnum):
    """Where standard output goes, unless it is a file."""

    NULL = "null"
    """To ``/dev/null``, which some programs notice."""
    PIPE = "pipe"
    """Through a pipe, and thrown away behind it."""
    SHOW = "show"
    """Through a pipe, and shown after each run."""


@dataclass(frozen=True, slots=True)
class Terms:
    """How it is measured and what is promised.

    Parameters
    ----------
    metric : Metric
        What is compared.
    margin : Margin
        What counts as no relevant difference, and the level.
    location : Location
        Which value of the differences the claims are about.
    warmup : int
        Runs of each command before, recorded and not used.
    extent : Extent
        Blocks and time.
    seed : int
        Of the order inside the blocks.
    isolation : str
        Technology around each run.
    cpus : tuple of int
        CPUs it may use; all where empty.
    environment : tuple of str
        ``NAME=VALUE`` or ``NAME``.
    is_clean : bool
        Whether bare commands too get a few variables only, instead of the caller's environment.
    shown : tuple of Path
        Further files an isolated program may read.
    input : Path or None
        Standard input.
    output : Output or Path
        Standard output.
    ignores_failure : bool
        Whether runs that end with another exit code than 0 count.
    margins : tuple of float
        Margin of each comparison; that of `margin` for all where empty.
    longest_run_s : float or None
        Time after which a run is ended and has failed [s]; without end unless given.
    """

    metric: Metric = Metric.WALL
    margin: Margin = field(default_factory=Margin)
    location: Location = Location.TYPICAL
    warmup: int = 1
    extent: Extent = field(default_factory=Extent)
    seed: int = 1
    isolation: str = BARE
    cpus: tuple[int, ...] = ()
    environment: tuple[str, ...] = ()
    is_clean: bool = False
    shown: tuple[Path, ...] = ()
    input: Path | None = None
    output: Output | Path = Output.NULL
    ignores_failure: bool = False
    margins: tuple[float, ...] = ()
    longest_run_s: float | None = None

    def designs(self, count: int) -> list[Design]:
        """Give what each of so many comparisons promises; the error is divided among all of them."""
        margins = [Margin(margin, self.margin.level) for margin in self.margins] or [self.margin] * count
        return [Design(margin, count, self.location) for margin in margins]

    @property
    def inherits(self) -> bool:
        """Whether commands get the environment of the caller."""
        return self.isolation == BARE and not self.is_clean

    def check(self) -> None:
        """Check what the types leave open.

        Raises
        ------
        UsageError
            If a number is outside its range, or the input is no file.
        """
        margin, level = self.margin.relative, self.margin.level
        for given, is_allowed, allowed in (
            (f"--margin {100 * margin:g}%", 0 < margin < 1, "more than 0 % and less than 100 %"),
            (f"--level {100 * level:g}%", 0.5 < level < 1, LEVELS),  # noqa: PLR2004
            (f"--warmup {self.warmup}", self.warmup >= 0, "0 or more"),
            (f"--runs-min {self.extent.blocks_min}", self.extent.blocks_min >= 1, "1 or more"),
            (f"--seed {self.seed}", self.seed >= 0, "0 or more"),
        ):
            if not is_allowed:
                message = f"`{given}`: allowed: {allowed}"
                raise UsageError(message)
        if self.extent.blocks_max < max(self.extent.blocks_min, FEWEST_UNITS):
            message = (
                f"`--runs-max {self.extent.blocks_max}`: allowed: at least {FEWEST_UNITS}, and not less "
                f"than `--runs-min`, {self.extent.blocks_min}"
            )
            raise UsageError(message)
        require_input(self.input)


def draw_plan(entrants: Field, terms: Terms) -> Plan:
    """Freeze what would be run if nothing were settled before the end.

    A block holds every command once, in random order; the first blocks are the warm-up. A comparison that
    is settled earlier runs no more of its batches.

    Raises
    ------
    UsageError
        If so many runs are foreseen that the plan would not be handy.
    """
    count = len(entrants.contenders)
    blocks = terms.warmup + terms.extent.blocks_max
    if blocks * count > MOST_PLANNED:
        most = MOST_PLANNED // count
        message = f"{count} commands, {blocks} runs each: allowed: at most {MOST_PLANNED} runs in total"
        raise UsageError(message, hint=f"--runs-max {max(most - terms.warmup, 1)}")
    names = tuple(contender.name for contender in entrants.contenders)
    cells = tuple(
        Cell(
            number=at * count + contender.number,
            levels={"command": contender.name, "phase": phase, **_sides(contender)},
            execution=Execution(
                terms.isolation,
                contender.words,
                working_directory=None if contender.folder is None else str(contender.folder),
            ),
        )
        for at, phase in enumerate((WARMUP, MEASURE))
        for contender in entrants.contenders
    )
    batches = tuple(
        Batch(batch.number, batch.block, batch.cell + count * (batch.block >= terms.warmup))
        for batch in draw_batches(range(count), blocks=blocks, seed=terms.seed)
    )
    options: dict[str, str | int | float | bool | None] = {
        "isolation": terms.isolation,
        "metric": str(terms.metric),
        "margin": terms.margin.relative,
        "margin_percent": 100 * terms.margin.relative,
        "level": terms.margin.level,
        "location": str(terms.location),
        "warmup": terms.warmup,
        "runs_min": terms.extent.blocks_min,
        "runs_max": terms.extent.blocks_max,
        "budget_s": terms.extent.budget_s,
        "pairs": ",".join(f"{baseline}:{contender}" for baseline, contender in entrants.pairs),
        "input": None if terms.input is None else str(terms.input),
        "output": str(terms.output),
        "cpus": ",".join(map(str, terms.cpus)),
        "ignores_failure": terms.ignores_failure,
        "environment": "caller" if terms.inherits else "clean",
    }
    if terms.margins:
        options["margins"] = ",".join(map(repr, terms.margins))
    factors = {"command": names, "phase": (WARMUP, MEASURE)}
    levels = [_sides(contender) for contender in entrants.contenders]
    factors |= {name: tuple(dict.fromkeys(each[name] for each in levels)) for name in levels[0]}
    return Plan(STUDY, terms.seed, factors, cells, batches, blocks, options).freeze()


def _sides(contender: Contender) -> dict[str, str]:
    """Give the levels of a benchmark that is measured in several sides."""
    return {BENCHMARK: contender.benchmark, SIDE: contender.side} if contender.side else {}


def planned_terms(plan: Plan) -> tuple[Terms, tuple[tuple[int, int], ...]]:
    """Give the terms a plan was drawn for, as far as its claims depend on them, and its pairs.

    Raises
    ------
    DataError
        If it is no plan of a comparison.
    """
    options = plan.options
    try:
        terms = Terms(
            metric=Metric(str(options["metric"])),
            margin=Margin(_number(options["margin"]), _number(options["level"])),
            location=Location(str(options["location"])),
            warmup=int(_number(options["warmup"])),
            extent=Extent(
                int(_number(options["runs_min"])),
                int(_number(options["runs_max"])),
                _number(options["budget_s"]),
            ),
            seed=plan.seed,
            isolation=str(options["isolation"]),
            ignores_failure=bool(options["ignores_failure"]),
            margins=tuple(float(margin) for margin in str(options.get("margins") or "").split(",") if margin),
        )
        pairs = tuple(_pair(pair, len(plan.cells) // 2) for pair in str(options["pairs"]).split(","))
    except (KeyError, ValueError, TypeError) as error:
        message = f"`plan.json` is not a plan of `steelyard compare`: {error}"
        raise DataError(
            message, hint="give a folder that `steelyard compare` wrote", code="data.study"
        ) from error
    return terms, pairs


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        message = f"`{value}` is not a number"
        raise TypeError(message)
    return float(value)


def _pair(text: str, count: int) -> tuple[int, int]:
    baseline, contender = (int(part) for part in text.split(":"))
    if not (0 <= baseline < count and 0 <= contender < count):
        message = f"the pair `{text}` names none of {count} commands"
        raise ValueError(message)
    return baseline, contender
