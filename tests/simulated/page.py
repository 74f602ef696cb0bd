"""Simulated numbers beside the source's, written into a page of the documentation.

``python -m simulated.page --write ../docs/guides/simulate-colocation.md`` (from ``tests/``; ``make
simulated-page`` does it). Simulations are the same on every machine, so a test holds the page to them.
"""

from __future__ import annotations

import argparse
import csv
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from steelyard.studies.colocation.simulation.simulated import SimulationOptions, simulate, with_policy
from steelyard.studies.colocation.simulation.simulated_table import Outcome, outcome_of
from steelyard.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterable

SOURCE: Final = Path(__file__).resolve().parent.parent / "golden" / "colocation-source" / "table.csv"
PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "guides" / "simulate-colocation.md"
SEEDS: Final = (1, 2, 3, 4, 5)
ABLATIONS: Final = ("be", "be-no-local", "be-no-entry", "be-no-exit", "be-no-local-no-entry-no-exit")
OVERLOAD: Final = ("none", "be", "idle", "weights", "fifo")
SIZES: Final = (4, 16, 64, 256, 1024)
WHAT_IF: Final = ("be", "idle", "weights", "fifo")
WORK_MS: Final = 6
GUEST: Final = {("idle", "be", "mean"): "1.89, 1.80", ("be", "fifo", "p99"): "1.07, 1.13"}
"""SOURCE: ``steelyard run colocation --in-vm --policies none,idle,be,fifo --loads 70 --repetitions 2``:
the first policy over the second, while the jobs execute, per repetition. The class had slices of
20 ms in order of arrival."""


class SourceRow(NamedTuple):
    """A number of the source."""

    policy: str
    load: float
    metric: str
    before_ms: float
    after_ms: float


def source_rows() -> list[SourceRow]:
    with SOURCE.open(encoding="utf-8", newline="") as file:
        return [
            SourceRow(
                row["policy"],
                float(row["load"]),
                row["metric"],
                float(row["before_ms"]),
                float(row["after_ms"]),
            )
            for row in csv.DictReader(file)
        ]


def source_facts() -> dict[str, int]:
    with SOURCE.with_name("facts.csv").open(encoding="utf-8", newline="") as file:
        return {row["name"]: int(row["value"]) for row in csv.DictReader(file)}


@cache
def simulated(name: str, options: SimulationOptions) -> Outcome:
    return outcome_of(simulate(with_policy(options, name)), options.load)


def latencies(outcome: Outcome, metric: str) -> tuple[float, float]:
    field = f"{metric}_ms"
    return getattr(outcome.before, field), getattr(outcome.after, field)


def change(before: float, after: float) -> str:
    return f"{before:.2f} -> {after:.2f}"


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    names = list(head)
    lines = [names, ["---", *("---:" for _ in names[1:])], *(list(row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def beside_source() -> str:
    """Every number of the source beside the simulated one, with both kinds of arrivals."""
    rows = []
    for row in source_rows():
        regular = latencies(simulated(row.policy, SimulationOptions(load=row.load)), row.metric)
        random = mean_over_seeds(row.policy, row.load, row.metric)
        rows.append(
            [
                f"{row.policy}, {100 * row.load:.0f} %, {row.metric}",
                change(row.before_ms, row.after_ms),
                f"{row.after_ms / row.before_ms:.2f}",
                change(*regular),
                f"{regular[1] / regular[0]:.2f}",
                change(*random),
                f"{random[1] / random[0]:.2f}",
            ]
        )
    head = (
        "ms",
        "source",
        "factor",
        "simulated, equal distances",
        "factor",
        "simulated, Poisson, without -> with jobs",
        "factor",
    )
    return table(head, rows)


def without_and_with_jobs(name: str, options: SimulationOptions, metric: str) -> tuple[float, float]:
    """The same requests under the same policy, without jobs and with them."""
    alone = replace(options, jobs=0)
    return latencies(simulated(name, alone), metric)[1], latencies(simulated(name, options), metric)[1]


def mean_over_seeds(name: str, load: float, metric: str) -> tuple[float, float]:
    """The same requests without jobs and with them, mean over seeds."""
    options = [SimulationOptions(load=load, arrivals="poisson", seed=seed) for seed in SEEDS]
    pairs = [without_and_with_jobs(name, option, metric) for option in options]
    without, with_jobs = (sum(column) / len(SEEDS) for column in zip(*pairs, strict=True))
    return without, with_jobs


def ablations() -> str:
    """What each check buys, with random arrivals."""
    rows = []
    for name in ABLATIONS:
        cells = [name]
        for load in (0.85, 0.95):
            options = [SimulationOptions(load=load, arrivals="poisson", seed=seed) for seed in SEEDS]
            outcomes = [simulated(name, each) for each in options]
            without, with_jobs = mean_over_seeds(name, load, "mean")
            broken = sum(each.violation_share for each in outcomes) / len(outcomes)
            cells += [change(without, with_jobs), f"{100 * broken:.2f} %"]
        rows.append(cells)
    return table(("policy", "mean at 85 %, ms", "rule broken", "mean at 95 %, ms", "rule broken"), rows)


def overload() -> str:
    """What happens when as much work arrives as the CPUs can do."""
    rows = []
    for name in OVERLOAD:
        outcome = simulated(name, SimulationOptions(load=1.0))
        rows.append(
            [
                name,
                change(*latencies(outcome, "mean")),
                change(*latencies(outcome, "p99")),
                f"{outcome.iterations_per_s:.1f}",
                str(outcome.counters["throttled"]),
            ]
        )
    return table(("policy", "mean, ms", "p99, ms", "iterations of the jobs per s", "times throttled"), rows)


def what_if() -> str:
    """Larger machines, half as many jobs as CPUs."""
    rows = []
    for cores in SIZES:
        cells = [str(cores)]
        for name in WHAT_IF:
            options = SimulationOptions(
                cores=cores, jobs=cores // 2, arrivals="poisson", duration_ns=4 * NS_PER_S
            )
            cells.append(change(*without_and_with_jobs(name, options, "mean")))
        rows.append(cells)
    return table(("CPUs", *(f"{name}, mean ms" for name in WHAT_IF)), rows)


def guest() -> str:
    """What was measured in a guest beside what is simulated, by who reads requests."""
    base = SimulationOptions(load=0.7, cores=2, machine_cores=2, threads=8, arrivals="poisson")
    rows = []
    for (policy, other, metric), measured in GUEST.items():
        cells = [f"{metric} under {policy} over {other}", measured]
        for intake in ("reader", "workers"):
            options = [replace(base, intake=intake, seed=seed) for seed in SEEDS]
            sums = [
                sum(latencies(simulated(name, each), metric)[1] for each in options)
                for name in (policy, other)
            ]
            cells.append(f"{sums[0] / sums[1]:.2f}")
        rows.append(cells)
    return table(("ratio", "measured", "simulated, `reader`", "simulated, `workers`"), rows)


def explanations() -> str:
    """What differs, with every number from a simulation or from the source."""
    items = (_about_arrivals(), _about_weights(), _about_idle(), _about_price(), _about_events())
    return "".join(f"- {item}\n" for item in items)


def _about_arrivals() -> str:
    low, high = (mean_over_seeds("none", load, "mean")[0] for load in (0.85, 0.95))
    return (
        f"**Arrivals.** Under random arrivals the service alone takes {low:.1f} and {high:.1f} ms on "
        f"average at 85 and 95 %, for {WORK_MS} ms of work. The source's stays at its work, so its "
        "clients send at nearly equal distances: that column is the one to compare."
    )


def _about_weights() -> str:
    factors = {
        load: simulated("weights", SimulationOptions(load=load)).mean_ratio for load in (0.95, 0.98, 0.99)
    }
    steps = ", ".join(f"{factor:.2f} at {100 * load:.0f} %" for load, factor in factors.items())
    return (
        "**Weights at 95 %.** The source's factor is larger than the simulated one. Simulated factors "
        f"rise towards a full machine ({steps}); the network, and whatever else the source's system does "
        "on these CPUs, is not modelled, so its CPUs may be fuller than the load says. Whether that is "
        "all of it is not known."
    )


def _about_idle() -> str:
    small, large = (simulated("idle", SimulationOptions(machine_cores=cores)).mean_ratio for cores in (4, 8))
    return (
        "**SCHED_IDLE.** The factors depend on how "
        "many CPUs a wake-up may look at, which Linux derives from how full the machine is, jobs "
        f"included: {large:.2f} at 85 % with 8 CPUs, of which 4 are used, {small:.2f} with 4 CPUs. The "
        "source does not say how large its machine is."
    )


def _about_price() -> str:
    weights, be = (simulated(name, SimulationOptions()).iterations_per_s for name in ("weights", "be"))
    return (
        f"**The price.** In the source, the jobs get {source_facts()['jobs_lost_low_percent']} % less "
        "done at 85 % under the class than under weights. Simulated, it is "
        f"{100 * (1 - be / weights):.1f} % ({be:.1f} instead of {weights:.1f} iterations per s): every "
        "policy leaves them the time that the service leaves over. What caches and moved memory cost "
        "them beyond that has no price here."
    )


def _about_events() -> str:
    facts = source_facts()
    counters = simulated("be", SimulationOptions(arrivals="poisson")).counters
    pairs = ", ".join(
        f"{text} {counters[name]} ({facts[name]})"
        for name, text in (
            ("scheduling_events", "decisions"),
            ("entry_runs", "entry checks"),
            ("entry_successes", "of them successful"),
            ("exit_runs", "exit checks"),
            ("exit_successes", "of them successful"),
        )
    )
    return (
        f"**Counts** at 85 % with random arrivals, in brackets the source's: {pairs}. Here only threads "
        "of the service and of the jobs exist, and an entry check is counted only where no CPU is idle."
    )


SECTIONS: Final = {
    "source": beside_source,
    "ablations": ablations,
    "overload": overload,
    "what-if": what_if,
    "guest": guest,
    "explanations": explanations,
}


def rendered(text: str) -> str:
    """Give a page with every simulated section computed anew.

    A section stands between ``<!-- NAME: computed -->`` and ``<!-- NAME: end -->``.
    """
    for name, section in SECTIONS.items():
        begin, end = f"<!-- {name}: computed -->\n", f"<!-- {name}: end -->"
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        text = f"{before}{begin}{section()}{end}{after}"
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, default=PAGE)
    page = parser.parse_args().write
    page.write_text(rendered(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
