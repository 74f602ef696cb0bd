"""Comparisons of settings, each with the published relation, the relative difference and a verdict."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.intervals.describe import standard_deviation
from steelyard.analyse.intervals.device_variance import FEWEST_DEVICES, device_scatter, variance_between
from steelyard.analyse.intervals.guarantee import FEWEST_UNITS
from steelyard.model import Estimate
from steelyard.studies.analysis_parts import finding, finite
from steelyard.studies.replication.findings.cells import evidence_of
from steelyard.studies.replication.findings.effects import (
    BY_CONTAINER,
    BY_DEVICE,
    CONTAINER,
    NATIVE,
    devices_of,
    machine_of_host,
    pairs_of,
    sharing_of,
)
from steelyard.studies.replication.findings.estimates import LEVEL, over_runs, published
from steelyard.studies.replication.findings.verdicts import design_of, differences, judge, relation
from steelyard.studies.replication.run_parts import MEAN, P90, P99, THROUGHPUT, UNITS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from steelyard.analyse.comparison.equivalence import Margin
    from steelyard.analyse.comparison.sequential import Look
    from steelyard.model import Finding
    from steelyard.studies.analysis_parts import Fact
    from steelyard.studies.replication.findings.effects import Pair
    from steelyard.studies.replication.findings.verdicts import Judged
    from steelyard.studies.replication.values.summaries import CellRuns, Key

    Looks = Sequence[tuple[int, float]] | None

METRICS: Final = {
    "e1": (THROUGHPUT,),
    "e2": (MEAN,),
    "e3": (MEAN, P99),
    "e4": (MEAN, P99, P90, THROUGHPUT),
}
"""What is compared in each experiment; of a benchmark that leaves a summary, what stands in it."""

BEYOND: Final = {P90: 0.1, P99: 0.01}
"""Share of the requests of a launch that lie beyond a quantile."""

FEWEST_BEYOND: Final = 10
"""Requests beyond a quantile, in the middle one of the launches, below which it is not compared: the few
longest requests of a launch decide it then, and every comparison more makes all others less sure."""

CONFOUNDED: Final = "versions differ too"
"""Warning of a comparison whose sides ran different versions of a program."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Two settings of a configuration that are compared by one number of their runs.

    Parameters
    ----------
    pair : Pair
        The settings, and what they differ in.
    first, second : CellRuns
        Their runs.
    part, metric : str
        Operation, and what is compared of it.
    """

    pair: Pair
    first: CellRuns
    second: CellRuns
    part: str
    metric: str

    @property
    def family(self) -> tuple[str, bool]:
        """The answer that rests on it: an experiment, in a container or elsewhere."""
        return self.first.key[0], self.pair.effect == BY_CONTAINER

    @property
    def differences(self) -> dict[int, float]:
        """Logarithm of second over first by block."""
        return differences(*(side.by_block(self.part, self.metric) for side in (self.first, self.second)))


def compared(cells: Mapping[Key, CellRuns]) -> Iterator[tuple[Compared, int]]:
    """Give every comparison with the size of its family: those that one answer rests on."""
    every = [each for experiment in METRICS for each in _of_experiment(cells, experiment)]
    sizes = Counter(each.family for each in every)
    for each in every:
        yield each, sizes[each.family]


def judge_all(
    cells: Mapping[Key, CellRuns], margins: Mapping[str, Margin], looks: Looks
) -> Iterator[tuple[Compared, Judged, int]]:
    """Judge every comparison."""
    for each, family in compared(cells):
        design = design_of(margins[each.first.key[0]], family)
        yield each, judge(each.differences, design, looks), family


def comparison_findings(
    cells: Mapping[Key, CellRuns], margins: Mapping[str, Margin], looks: Looks = None
) -> Iterator[Finding]:
    """Give one finding per comparison; those that one answer rests on are one family."""
    for each, found, family in judge_all(cells, margins, looks):
        yield _finding(each, found, margins[each.first.key[0]], family)


def _of_experiment(cells: Mapping[Key, CellRuns], experiment: str) -> Iterator[Compared]:
    for configuration in dict.fromkeys(key[1] for key in cells if key[0] == experiment):
        settings = [key[2] for key in cells if key[:2] == (experiment, configuration)]
        for pair in pairs_of(settings):
            first, second = (cells[experiment, configuration, name] for name in (pair.first, pair.second))
            for part in first.part_names:
                for metric in METRICS[experiment]:
                    if all(_has(side, part, metric) for side in (first, second)):
                        yield Compared(pair, first, second, part, metric)


def _has(cell: CellRuns, part: str, metric: str) -> bool:
    """Whether a number can be compared: it is there, and enough requests of a launch lie beyond it."""
    if not cell.values(part, metric):
        return False
    requests = [each.facts["requests"] for each in cell.parts(part) if "requests" in each.facts]
    if metric not in BEYOND or not requests:
        return True
    return float(np.median(requests)) * BEYOND[metric] >= FEWEST_BEYOND


def _finding(asked: Compared, judged: Judged, margin: Margin, family: int) -> Finding:
    experiment, configuration, _ = asked.first.key
    first, second = (
        asked.first.values(asked.part, asked.metric),
        asked.second.values(asked.part, asked.metric),
    )
    unit = UNITS[asked.metric]
    software = _differing_software(asked.first, asked.second)
    return finding(
        "comparison",
        {
            "experiment": experiment,
            "configuration": configuration,
            "operation": asked.part,
            "metric": asked.metric,
            "effect": asked.pair.effect,
            "first": asked.pair.first,
            "second": asked.pair.second,
        },
        judged.verdict.value,
        estimates={
            "ratio": ratio_estimate(judged.look, margin.level, family),
            "equivalence": equivalence_estimate(judged.look, margin.level, family),
            "first": over_runs(first, unit),
            "second": over_runs(second, unit),
        },
        facts={
            "relation": _relation(asked),
            "margin_percent": 100 * margin.relative,
            "family": family,
            "reason": judged.reason,
            "first_cv_percent": _cv_percent(first),
            "second_cv_percent": _cv_percent(second),
            "played": sharing_of((asked.first, asked.second)) if asked.pair.effect == BY_DEVICE else "",
            "software": software,
        },
        evidence=evidence_of((asked.first, asked.second), "second over first in each block, geometric mean"),
        warnings=[f"{CONFOUNDED}: {software}"] if software else [],
    )


def _differing_software(first: CellRuns, second: CellRuns) -> str:
    """Name the programs of which two cells used different versions."""
    sides = first.software, second.software
    return ", ".join(
        f"{name} {sides[0][name]} against {sides[1][name]}"
        for name in sorted(sides[0].keys() & sides[1].keys())
        if sides[0][name] != sides[1][name]
    )


def ratio_estimate(look: Look, level: float, family: int) -> Estimate:
    """Give the ratio of a look with the interval that a difference is judged by."""
    return _estimate(look, (look.low, look.high), level, f"Student's t over blocks{_together(family)}")


def equivalence_estimate(look: Look, level: float, family: int) -> Estimate:
    """Give the same with the interval of the two one-sided tests, which equivalence is judged by."""
    method = f"two one-sided tests over blocks{_together(family)}"
    return _estimate(look, look.narrow, 2 * level - 1, method)


def _together(family: int) -> str:
    return f", {family} of them together" if family > 1 else ""


def _estimate(look: Look, limits: tuple[float, float], level: float, method: str) -> Estimate:
    low, high = (finite(each) for each in limits)
    is_known = low is not None and high is not None and low > 0
    return Estimate(
        finite(look.ratio),
        "ratio",
        method,
        low if is_known else None,
        high if is_known else None,
        level if is_known else None,
        units=look.blocks,
        measurements=2 * look.blocks,
        guaranteed=look.blocks >= FEWEST_UNITS,
    )


def _relation(asked: Compared) -> str:
    """Give the relation of the published intervals; empty where the source's rules have no interval."""
    sides = [side.pooled(asked.part) for side in (asked.first, asked.second)]
    if asked.metric == P99 or not all(pooled.size for pooled in sides):
        return ""
    return relation(*(published(pooled, asked.metric) for pooled in sides)).value


def _cv_percent(values: list[float]) -> Fact:
    numbers = np.array(values)
    return finite(100 * standard_deviation(numbers) / float(numbers.mean()))


def device_findings(cells: Mapping[Key, CellRuns], margins: Mapping[str, Margin]) -> Iterator[Finding]:
    """Give the scatter over devices, where there are three of them, and what a new one is expected to be."""
    for experiment, metrics in METRICS.items():
        for configuration in dict.fromkeys(key[1] for key in cells if key[0] == experiment):
            settings = [key[2] for key in cells if key[:2] == (experiment, configuration)]
            for technology in (NATIVE, CONTAINER):
                names = [
                    name for each in devices_of(settings) if (name := f"{each}-{technology}") in settings
                ]
                chosen = [cells[experiment, configuration, name] for name in names]
                for metric in metrics:
                    found = _scatter(chosen, technology, metric, margins[experiment])
                    if found is not None:
                        yield found


def _scatter(cells: Sequence[CellRuns], technology: str, metric: str, margin: Margin) -> Finding | None:
    """Say how far devices differ; a new device is compared with the middle of those measured.

    Hosts of one machine are one device.
    """
    of_device: dict[str, list[float]] = {}
    for cell in cells:
        of_device.setdefault(machine_of_host(cell) or cell.key[2], []).extend(cell.values("", metric))
    runs = [np.array(values) for values in of_device.values() if values]
    found = device_scatter(runs, margin.level)
    if found is None:
        return _too_few(cells, technology, metric, runs)
    bound = 1 + margin.relative
    holds = found.low >= 1 / bound and found.high <= bound
    new_device = Estimate(
        1.0,
        "ratio",
        "prediction of one more device, Student's t on logarithms",
        finite(found.low),
        finite(found.high),
        found.level,
        units=found.devices,
        measurements=sum(each.size for each in runs),
        guaranteed=False,
    )
    return finding(
        "devices",
        _subject(cells, technology, metric),
        "a new device holds" if holds else "a new device may differ",
        estimates={"new_device": new_device, **_between(runs)},
        facts={
            "devices": found.devices,
            "between_percent": finite(100 * found.between_sd),
            "within_percent": finite(100 * found.within_sd),
            "width_percent": finite(100 * (found.high - found.low)),
            "margin_percent": 100 * margin.relative,
            "played": sharing_of(cells),
        },
        evidence=evidence_of(tuple(cells), "components of variance of the logarithms of run values"),
    )


def _subject(cells: Sequence[CellRuns], technology: str, metric: str) -> dict[str, str]:
    experiment, configuration, _ = cells[0].key
    return {
        "experiment": experiment,
        "configuration": configuration,
        "metric": metric,
        "technology": technology,
    }


def _too_few(
    cells: Sequence[CellRuns], technology: str, metric: str, runs: Sequence[NDArray[np.float64]]
) -> Finding | None:
    """Say of hosts that too few of them are machines of their own; nothing of devices of a device file."""
    if len(cells) < 2 or not runs or machine_of_host(cells[0]) is None:  # noqa: PLR2004 - a host alone
        return None
    said = f"{len(cells)} hosts of one machine" if len(runs) == 1 else f"{len(runs)} machines"
    unknown = Estimate(None, "ratio", "prediction of one more device", units=len(runs))
    return finding(
        "devices",
        _subject(cells, technology, metric),
        "undecided",
        estimates={"new_device": unknown, **_between(runs)},
        facts={
            "devices": len(runs),
            "between_percent": None,
            "within_percent": None,
            "width_percent": None,
            "reason": f"{said}, a prediction needs {FEWEST_DEVICES} machines",
            "played": sharing_of(cells),
        },
        evidence=evidence_of(tuple(cells), "components of variance of the logarithms of run values"),
    )


def _between(runs: Sequence[NDArray[np.float64]]) -> dict[str, Estimate]:
    """Give the component of variance between devices with its limits, from two of them on."""
    found = variance_between(runs)
    if found is None:
        return {}
    low = finite(found.low)
    component = Estimate(
        100 * found.sd,
        "percent",
        "component of variance between devices, logarithms of run values",
        None if low is None else 100 * low,
        None if low is None else finite(100 * found.high),
        None if low is None else LEVEL,
        units=found.hosts,
        measurements=found.units,
        guaranteed=found.hosts >= FEWEST_DEVICES,
    )
    return {"between": component}
