"""``steelyard simulate colocation``: what a policy would do on CPUs that nobody needs to have."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path  # noqa: TC003 - cyclopts reads annotations at run time
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from steelyard.cli.amounts import Whole, WholeOrNone, parse_duration_ns
from steelyard.cli.catalogue.registering import OWN_CATALOGUE, CatalogueOption
from steelyard.cli.interruption import interruptible
from steelyard.cli.measuring.simulation_progress import follow
from steelyard.errors import InterruptedByUser, UsageError
from steelyard.studies.colocation.options import read_share
from steelyard.studies.colocation.simulation.simulated import CHECKS, SimulationOptions, simulate, with_policy
from steelyard.studies.colocation.simulation.simulated_result import SimulatedResult
from steelyard.studies.colocation.simulation.simulated_table import (
    WITHOUT_JOBS,
    outcome_of,
    table_of,
    who_suffers,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.studies.colocation.simulation.simulated_table import Outcome

Flag = Annotated[bool, Parameter(negative="")]
ARRIVALS: Final = ("uniform", "poisson")
INTAKES: Final = ("workers", "reader")


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Simulated:
    """What is simulated.

    Parameters
    ----------
    cores
        CPUs that the service and the jobs share.
    load
        Arriving work as a share of what the CPUs can do, several separated by commas, as in `0.85,0.95`.
    policy
        be, idle, cpu-idle, weights, nice, fifo or none (no jobs); several separated by commas.
    no_local
        Switch off the local check of `be`: a CPU on which the service waits never picks a job.
    no_entry
        Switch off the entry check of `be`: a thread that wakes interrupts a job on another CPU.
    no_exit
        Switch off the exit check of `be`: before a job, a waiting thread of the service is taken over.
    duration
        Until the last request; warm-up, baseline, jobs and recovery take 1 : 10 : 19 : 10 of it.
    best_effort_jobs
        Jobs that use all CPU time they get.
    work
        Work of one request that is not long.
    long_share
        Share of requests that are long, as in `2%`.
    long_factor
        Work of a long request over that of another one.
    arrivals
        `uniform` (equal distances, as in `steelyard run colocation`) or `poisson`.
    intake
        Who reads requests: `workers`, or `reader`, a thread that wakes them (as `steelyard run` has).
    threads
        Workers of the service's pool; four per CPU by default.
    machine_cores
        CPUs of the machine, of which `--cores` are used; at least 8 by default.
    seed
        Seed of the arrivals.
    """

    cores: Whole = 4
    load: str = "0.85"
    policy: str = "be"
    no_local: Flag = False
    no_entry: Flag = False
    no_exit: Flag = False
    duration: str = "40s"
    best_effort_jobs: Whole = 2
    work: str = "6ms"
    long_share: str = "0%"
    long_factor: Whole = 50
    arrivals: str = "uniform"
    intake: str = "workers"
    threads: WholeOrNone = None
    machine_cores: WholeOrNone = None
    seed: Whole = 1

    def options(self) -> list[SimulationOptions]:
        """Give one simulation per load and policy, loads first."""
        _require("--arrivals", self.arrivals, ARRIVALS)
        _require("--intake", self.intake, INTAKES)
        off = tuple(check for check in CHECKS if getattr(self, f"no_{check}"))
        names = [name.strip() for name in self.policy.split(",") if name.strip()]
        if not names:
            message = "`--policy` names no policy"
            raise UsageError(message, hint="as in `--policy be,idle,weights,fifo`")
        base = SimulationOptions(
            off=off,
            cores=self.cores,
            seed=self.seed,
            duration_ns=parse_duration_ns(self.duration, "--duration"),
            jobs=self.best_effort_jobs,
            work_ns=parse_duration_ns(self.work, "--work"),
            arrivals=self.arrivals,
            intake=self.intake,
            long_share=_share(self.long_share),
            long_factor=self.long_factor,
            threads=self.threads,
            machine_cores=self.machine_cores,
        )
        loads = [_load(word) for word in self.load.split(",")]
        each = [with_policy(replace(base, load=load), name) for load in loads for name in names]
        if off and not any(options.policy == "be" for options in each):
            message = f"`--no-{off[0]}` switches off a check of `be`, which is not simulated"
            raise UsageError(message, hint="add `be` to `--policy`")
        return list(dict.fromkeys(each))


def _require(option: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        message = f"`{option} {value}`: allowed: {', '.join(f'`{each}`' for each in allowed)}"
        raise UsageError(message)


def _load(word: str) -> float:
    try:
        return float(word)
    except ValueError as error:
        message = f"`--load {word}`: not a number; allowed: above 0, up to 10, as in `0.85`"
        raise UsageError(message) from error


def _share(word: str) -> float:
    try:
        return read_share(word)
    except ValueError as error:
        message = f"`--long-share {word}`: not a share; allowed: 0 to less than 1, as in `2%` or `0.02`"
        raise UsageError(message) from error


DEFAULTS: Final = Simulated()

REGULAR: Final = (
    "requests at equal distances rarely meet, so that one check hides what another is for; "
    "`--arrivals poisson` shows what each of them buys"
)

BY_CHANCE: Final = (
    "random arrivals differ between the time before the jobs and that with them, whatever the jobs do; with "
    "`none` among the policies, they are compared with the same arrivals without jobs"
)


def simulate_colocation(
    *,
    simulated: Simulated = DEFAULTS,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
    out: Path | None = None,
    listed: CatalogueOption = OWN_CATALOGUE,
) -> None:
    """Simulate a service and best-effort jobs under scheduling policies.

    Nothing is measured: the scheduler of Linux 6.14 and the best-effort class are modelled, tick by tick,
    and the same options give the same numbers on every machine.

    Parameters
    ----------
    as_json
        Print JSON.
    out
        Folder to write a result to, which `steelyard analyse`, `report` and `compare-results` read.
    listed
        Catalogue of results.

    Examples
    --------
    steelyard simulate colocation --cores 4 --load 0.85 --policy be,idle,weights,fifo

    steelyard simulate colocation --cores 4 --load 0.95 --policy be --no-exit

    steelyard simulate colocation --long-share 2% --arrivals poisson --policy be,fifo --out simulated

    steelyard simulate colocation --cores 1024 --best-effort-jobs 512 --policy be,idle --duration 10s
    """
    wanted = simulated.options()
    outcomes: list[Outcome] = []
    result = SimulatedResult(out, wanted, ("steelyard", *sys.argv[1:])) if out is not None else None
    try:
        with interruptible(), follow(len(wanted)) as tell:
            for options in wanted:
                tell.begin(f"{options.name} at {options.load:g}")
                trial = simulate(options, tell.advance)
                outcomes.append(outcome_of(trial, options.load))
                if result is not None:
                    result.add(trial)
    except KeyboardInterrupt as error:
        if result is not None:
            result.close()
        _show(simulated, outcomes, as_json=as_json)
        _register(out, listed)
        message = f"interrupted after {len(outcomes)} of {len(wanted)} simulations"
        raise InterruptedByUser(message, hint="simulate less: `--duration 10s`") from error
    _show(simulated, outcomes, as_json=as_json)
    if result is not None:
        result.close()
        sys.stderr.write(f"result: {out}\n")
    _register(out, listed)


def _register(out: Path | None, listed: CatalogueOption) -> None:
    if out is not None:
        sys.stdout.flush()
        listed.refresh(out)


def _work(simulated: Simulated) -> str:
    share = _share(simulated.long_share)
    long = f" ({100 * share:g} % of them {simulated.long_factor} times as long)" if share else ""
    return f"{simulated.work}{long}"


def _show(simulated: Simulated, outcomes: Sequence[Outcome], *, as_json: bool) -> None:
    if as_json:
        rows = [each.content() for each in outcomes]
        content = {"format": "steelyard/simulated-colocation/1", "simulated": True, "outcomes": rows}
        sys.stdout.write(json.dumps(content) + "\n")
        return
    for load in dict.fromkeys(each.load for each in outcomes):
        at_load = [each for each in outcomes if each.load == load]
        sys.stdout.write(
            f"simulated: {simulated.cores} CPUs at load {load:g}, {simulated.arrivals} arrivals of "
            f"{_work(simulated)}, {simulated.best_effort_jobs} best-effort jobs; before -> while they run\n\n"
        )
        sys.stdout.write(table_of(at_load) + "\n")
        sys.stdout.writelines(f"{line}\n" for line in who_suffers(at_load))
        if simulated.arrivals == "poisson" and all(each.policy != WITHOUT_JOBS for each in at_load):
            sys.stdout.write(f"{BY_CHANCE}\n")
        sys.stdout.write("\n")
    if simulated.arrivals == "uniform" and any("-no-" in each.policy for each in outcomes):
        sys.stdout.write(f"{REGULAR}\n")
