"""How a comparison is measured and what it promises, and the plan that follows from it."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path  # noqa: TC003 - dataclass field
from typing import TYPE_CHECKING, Final

from steelyard.analyse.comparison.equivalence import Margin
from steelyard.analyse.comparison.interim_schedule import Extent
from steelyard.analyse.comparison.sequential import Design, Location, Statistic, parse_statistic
from steelyard.analyse.intervals.guarantee import FEWEST_UNITS
from steelyard.design.blocks import draw_batches, swapped
from steelyard.errors import DataError, UsageError
from steelyard.model import Batch, Cell, Execution, Plan
from steelyard.model.plan import LAYOUT_OPTION, RANDOM_LAYOUT
from steelyard.run.executor.resident import require_input
from steelyard.studies.comparison.claim import METRIC_WORDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from steelyard.studies.comparison.contender import Contender, Field

STUDY: Final = "compare"
BARE: Final = "bare"
WARMUP, MEASURE, REPEAT = "warmup", "measure", "repeat"
"""Phases: runs of `REPEAT` have layouts that come back, and count for no verdict."""
BENCHMARK, SIDE = "benchmark", "side"
HOST_LAYOUT: Final = "host"
REPEAT_EVERY: Final = 4
"""A fifth of the time for knowing what layout does."""
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
    REPORTED = "reported"
    """Time that the harness of a benchmark reports for the process."""

    @property
    def quantity(self) -> str:
        """Name of the quantity in an outcome."""
        return {
            "wall": "wall_ns",
            "cpu": "cpu_ns",
            "memory": "peak_memory_bytes",
            "reported": "reported_ns",
        }[self.value]

    @property
    def words(self) -> str:
        """What people call it."""
        return METRIC_WORDS[self.value]


OF_COMMANDS: Final = (Metric.WALL, Metric.CPU, Metric.MEMORY)
"""What can be measured of any command; a reported time needs the harness of a suite."""


class Mode(StrEnum):
    """How the runs of a block lie in time."""

    TURNS = "turns"
    """One after the other."""
    DUET = "duet"
    """Both sides at the same time, on cores of their own."""
    AUTO = "auto"
    """What needs less time on this machine, as the baseline beside itself shows."""


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
    statistics : tuple of Location or Quantile
        What the claims are about: each pair has one claim for each of them.
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
    is_best : bool
        Whether the fastest is asked for: a command that is slower than another one for sure runs no more.
    longest_run_s : float or None
        Time after which a run is ended and has failed [s]; without end unless given.
    mode : Mode
        How the runs of a block lie in time.
    trial : str
        Values of the trial that chose the mode, as JSON; empty where nobody had it chosen.
    layout : str
        Layout of programs in memory: ``host`` as it is, ``random`` drawn for each run.
    within : mapping
        By benchmark, of what a process of its harness measures the reported time is, where not the mean.
    hosts : int
        Hosts that it is placed on, each for all blocks of `extent`, which is not looked at before; 0: this
        host measures until it is settled.
    """

    metric: Metric = Metric.WALL
    margin: Margin = field(default_factory=Margin)
    statistics: tuple[Statistic, ...] = (Location.TYPICAL,)
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
    is_best: bool = False
    longest_run_s: float | None = None
    mode: Mode = Mode.TURNS
    trial: str = ""
    layout: str = HOST_LAYOUT
    within: Mapping[str, str] = field(default_factory=dict)
    hosts: int = 0

    @property
    def repeat_every(self) -> int:
        """Measured blocks before each block whose layouts come back; 0 where layouts are not drawn."""
        return REPEAT_EVERY if self.layout == RANDOM_LAYOUT else 0

    def phase_of(self, block: int) -> str:
        """Give the phase of a block of the plan."""
        if block < self.warmup:
            return WARMUP
        place = block - self.warmup + 1
        return REPEAT if self.repeat_every and place % (self.repeat_every + 1) == 0 else MEASURE

    @property
    def planned_blocks(self) -> int:
        """Blocks of the plan, warm-up and repeated layouts included."""
        measured = self.extent.blocks_max * max(self.hosts, 1)
        return self.warmup + measured + (measured // self.repeat_every if self.repeat_every else 0)

    def questions(self, pairs: Sequence[tuple[int, int]]) -> list[tuple[tuple[int, int], Design]]:
        """Give each comparison of each pair with what it promises; the error is divided among all of them."""
        margins = [Margin(margin, self.margin.level) for margin in self.margins] or [self.margin] * len(pairs)
        family = len(pairs) * len(self.statistics)
        return [
            (pair, Design(margin, family, statistic))
            for pair, margin in zip(pairs, margins, strict=True)
            for statistic in self.statistics
        ]

    def fewest_runs(self, pairs: Sequence[tuple[int, int]]) -> dict[str, int]:
        """Give the smallest number of runs of each command for a verdict, by statistic."""
        return {
            str(design.statistic): max(design.first_look(self.extent.blocks_max), self.extent.blocks_min)
            for _, design in self.questions(pairs)
        }

    def require_enough(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Check that every statistic can have a verdict.

        Raises
        ------
        UsageError
            If `--runs-max` allows none.
        """
        for statistic, fewest in self.fewest_runs(pairs).items():
            if fewest > self.extent.blocks_max:
                message = (
                    f"`--runs-max {self.extent.blocks_max}`: allowed: at least {fewest} for `{statistic}` at "
                    "this level"
                )
                raise UsageError(message, hint=f"--runs-max {2 * fewest}")

    @property
    def verb(self) -> str:
        """Verb that measures like this: a suite has margins of its benchmarks."""
        return "bench" if self.margins else "compare"

    def of(self, entrants: Field) -> Terms:
        """Give the terms for those who take part: of a suite its margins, and what a plan bears."""
        if entrants.is_best and len(self.statistics) > 1:
            message = "`--best` goes by one statistic; given: " + ", ".join(map(str, self.statistics))
            raise UsageError(message, hint="leave out all but one")
        if not entrants.margins:
            return replace(self, is_best=entrants.is_best)
        most = MOST_PLANNED // len(entrants.contenders) - self.warmup
        blocks_max = max(min(self.extent.blocks_max, most), 1)
        within = {
            each.benchmark: each.reading.statistic
            for each in entrants.contenders
            if each.reading is not None
            and each.reading.statistic != Location.MEAN
            and self.metric is Metric.REPORTED
        }
        extent = replace(self.extent, blocks_max=blocks_max)
        return replace(self, margins=entrants.margins, extent=extent, within=within)

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
    blocks = terms.planned_blocks
    if blocks * count > MOST_PLANNED:
        most = MOST_PLANNED // count
        message = f"{count} commands, {blocks} runs each: allowed: at most {MOST_PLANNED} runs in total"
        raise UsageError(message, hint=f"--runs-max {max(most - terms.warmup, 1)}")
    names = tuple(contender.name for contender in entrants.contenders)
    phases = (WARMUP, MEASURE, REPEAT) if terms.repeat_every else (WARMUP, MEASURE)
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
        for at, phase in enumerate(phases)
        for contender in entrants.contenders
    )
    drawn = draw_batches(range(count), blocks=blocks, seed=terms.seed)
    if terms.mode is Mode.DUET:
        drawn = swapped(drawn, count)
    batches = tuple(
        Batch(batch.number, batch.block, batch.cell + count * phases.index(terms.phase_of(batch.block)))
        for batch in drawn
    )
    options: dict[str, str | int | float | bool | None] = {
        "isolation": terms.isolation,
        "metric": str(terms.metric),
        "margin": terms.margin.relative,
        "margin_percent": 100 * terms.margin.relative,
        "level": terms.margin.level,
        "location": ",".join(map(str, terms.statistics)),
        "warmup": terms.warmup,
        "runs_min": terms.extent.blocks_min,
        "runs_max": terms.extent.blocks_max,
        "budget_s": terms.extent.budget_s if math.isfinite(terms.extent.budget_s) else None,
        "pairs": ",".join(f"{baseline}:{contender}" for baseline, contender in entrants.pairs),
        "input": None if terms.input is None else str(terms.input),
        "output": str(terms.output),
        "cpus": ",".join(map(str, terms.cpus)),
        "ignores_failure": terms.ignores_failure,
        "environment": "caller" if terms.inherits else "clean",
    }
    if terms.hosts:
        options["hosts"] = terms.hosts
    if entrants.is_best:
        options["best"] = True
    if terms.margins:
        options["margins"] = ",".join(map(repr, terms.margins))
    if terms.mode is not Mode.TURNS or terms.trial:
        options["mode"] = str(terms.mode)
    if terms.trial:
        options["trial"] = terms.trial
    if terms.within:
        options["within"] = json.dumps(dict(terms.within))
    if terms.layout != HOST_LAYOUT:
        options |= {LAYOUT_OPTION: terms.layout, "repeat_every": terms.repeat_every}
    factors = {"command": names, "phase": phases}
    levels = [_sides(contender) for contender in entrants.contenders]
    factors |= {name: tuple(dict.fromkeys(each[name] for each in levels)) for name in levels[0]}
    return Plan(STUDY, terms.seed, factors, cells, batches, blocks, options).freeze()


def _sides(contender: Contender) -> dict[str, str]:
    """Give the levels of a benchmark that is measured in several sides."""
    return {BENCHMARK: contender.benchmark, SIDE: contender.side} if contender.side else {}


def command_count(plan: Plan) -> int:
    """Give the number of commands of a plan, each of which has a cell in every phase."""
    return sum(cell.levels.get("phase") == MEASURE for cell in plan.cells)


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
            statistics=tuple(map(parse_statistic, str(options["location"]).split(","))),
            warmup=int(_number(options["warmup"])),
            extent=Extent(
                int(_number(options["runs_min"])),
                int(_number(options["runs_max"])),
                math.inf if options["budget_s"] is None else _number(options["budget_s"]),
            ),
            seed=plan.seed,
            isolation=str(options["isolation"]),
            ignores_failure=bool(options["ignores_failure"]),
            is_best=bool(options.get("best")),
            margins=tuple(float(margin) for margin in str(options.get("margins") or "").split(",") if margin),
            mode=Mode(str(options.get("mode") or Mode.TURNS)),
            trial=str(options.get("trial") or ""),
            layout=str(options.get(LAYOUT_OPTION) or HOST_LAYOUT),
            within=_within(options.get("within")),
            hosts=int(_number(options.get("hosts") or 0)),
        )
        pairs = tuple(_pair(pair, command_count(plan)) for pair in str(options["pairs"]).split(","))
    except (KeyError, ValueError, TypeError, UsageError) as error:
        message = f"`plan.json` is not a plan of `steelyard compare`: {error}"
        raise DataError(
            message, hint="give a folder that `steelyard compare` wrote", code="data.study"
        ) from error
    return terms, pairs


def _within(value: object) -> dict[str, str]:
    found = {} if value is None else json.loads(str(value))
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        message = f"`{value}` names no statistic of benchmarks"
        raise TypeError(message)
    return found


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
