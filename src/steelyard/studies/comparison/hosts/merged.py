"""One verdict about one comparison from what was measured in several places, of one host or of several."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from steelyard.analyse.comparison.equivalence import Margin, Verdict
from steelyard.analyse.comparison.pooling import FEWEST_HOSTS, mean_of_these, pooled
from steelyard.analyse.comparison.quantile_ratio import Quantile
from steelyard.analyse.comparison.sequential import Design, fixed_look, is_settled_by, verdict_of_limits
from steelyard.analyse.intervals.device_variance import device_scatter
from steelyard.errors import AnalysisError
from steelyard.studies.comparison.claim import Claim, claim_of_look, signed_percent
from steelyard.studies.comparison.contender import short

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from steelyard.analyse.comparison.pooling import Pooled
    from steelyard.analyse.comparison.sequential import Look

    Pooling = Callable[[Sequence[float], Sequence[float]], tuple[Pooled, str]]

_LEVEL: Final = 0.95
"""Of the interval of each sample, from which its standard error follows."""
_Z: Final = 1.959963984540054
"""SOURCE: quantile of the normal distribution at 0.975."""
_DISAGREEING: Final = 0.05
HEADS: Final = ("result", "host", "runs each", "change", "95 % interval", "weight", "verdict alone")
RANDOM_HOSTS: Final = "hartung-knapp"
ONE_RATIO: Final = "inverse-variance"
THESE_HOSTS: Final = "mean-of-these-hosts"


@dataclass(frozen=True, slots=True)
class Sample:
    """What was measured in one place.

    Parameters
    ----------
    name : str
        What it is called.
    host : str
        Id of the machine.
    blocks : ndarray
        As `SequentialComparison.look` reads them.
    verdict : Verdict or None
        Of it alone; ``None``: that of its blocks, as if nobody had looked before.
    """

    name: str
    host: str
    blocks: np.ndarray
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """What one sample says of one comparison.

    Parameters
    ----------
    result, host : str
        Where it is, and where it was measured.
    runs : int
        Runs of each side.
    ratio, low, high : float
        Estimate and 95 % interval of all its runs, as if nobody had looked before.
    verdict : str
        Of the result alone.
    weight : float
        In the common answer, in [0, 1].
    """

    result: str
    host: str
    runs: int
    ratio: float
    low: float
    high: float
    verdict: str
    weight: float

    @property
    def cells(self) -> tuple[str, ...]:
        """Its row, under `HEADS`."""
        return (
            short(self.result),
            self.host[:12],
            str(self.runs),
            signed_percent(self.ratio),
            f"{signed_percent(self.low)} to {signed_percent(self.high)}",
            f"{100 * self.weight:.0f} %",
            self.verdict,
        )


@dataclass(frozen=True, slots=True)
class Merged:
    """The common answer to one comparison.

    Parameters
    ----------
    claim : Claim
        What is claimed.
    parts : tuple of Part
        What it was made of.
    between_sd : float
        Standard deviation of the logarithm of the ratio between hosts; 0 where it is not estimated.
    p_disagreement : float
        How often hosts with one ratio would differ as widely.
    new_host : tuple of float or None
        Limits of the ratio that one more host is expected to have, 95 %; ``None`` for fewer than three.
    """

    claim: Claim
    parts: tuple[Part, ...]
    between_sd: float = 0.0
    p_disagreement: float = 1.0
    new_host: tuple[float, float] | None = None

    def lines(self) -> Iterator[str]:
        """Give it for a terminal."""
        yield self.claim.sentence
        yield ""
        yield from self.table_lines()
        yield from (f"warning: {remark}" for remark in self.claim.remarks)

    def table_lines(self) -> Iterator[str]:
        """Give what each sample says, and how far hosts differ."""
        rows = [HEADS, *(part.cells for part in self.parts)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        if self.new_host is not None:
            low, high = map(signed_percent, self.new_host)
            yield f"between hosts: standard deviation {100 * self.between_sd:.2g} %"
            yield f"one more host like these: expected {low} to {high} (95 %)"

    def as_dict(self) -> dict[str, Any]:
        """Give JSON values."""
        return self.claim.as_dict() | self.parts_as_dict()

    def parts_as_dict(self) -> dict[str, Any]:
        """Give JSON values of what the claim was made of."""
        return {
            "parts": [asdict(part) for part in self.parts],
            "between_hosts_sd": self.between_sd,
            "p_disagreement": self.p_disagreement,
            "new_host": None if self.new_host is None else list(self.new_host),
        }


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of all samples.

    Parameters
    ----------
    design : Design
        What is promised.
    names : tuple of str
        Baseline and contender.
    metric : str
        What is compared.
    """

    design: Design
    names: tuple[str, str]
    metric: str


def of_results(question: Question, samples: Sequence[Sample]) -> Merged:
    """Give one verdict from several results.

    A result counts with the inverse of the variance of its log-ratio. Those of one host are taken to have one
    true ratio. From three hosts on the answer is about the mean over hosts like these, by Hartung and Knapp;
    two hosts are taken to have one ratio too, and where they disagree nothing is claimed.

    Raises
    ------
    AnalysisError
        If a sample gives no interval.
    """
    looks = [_alone(question, sample) for sample in samples]
    for sample, look in zip(samples, looks, strict=True):
        if not _has_interval(look):
            message = f"cannot merge `{sample.name}`: its {look.blocks} runs of each side give no interval"
            raise AnalysisError(message, hint="leave it out, or measure it for longer")
    hosts = len({sample.host for sample in samples})
    origin = f"{len(samples)} results of {hosts} host{'s' * (hosts > 1)}"
    return _merged(question, samples, looks, _one_or_random, origin)


def of_hosts(question: Question, samples: Sequence[Sample]) -> Merged:
    """Give one verdict from one sample of each host.

    From three hosts on it is about the mean over hosts like these, by Hartung and Knapp, with a prediction of
    one more. Of fewer hosts it is about these alone: the mean of their true ratios, each with the same
    weight, whatever others have; where two disagree nothing is claimed. A host whose blocks give no interval
    does not count.
    """
    every = [(sample, _alone(question, sample)) for sample in samples]
    counting = [(sample, look) for sample, look in every if _has_interval(look)]
    left_out = tuple(
        f"hosts: `{sample.name}` does not count: its {look.blocks} runs of each side give no interval"
        for sample, look in every
        if not _has_interval(look)
    )
    count = len(counting)
    if not count:
        claim = claim_of_look(None, question.design, question.names, question.metric)
        return Merged(replace(claim, cautions=left_out), ())
    few = "on this host alone" if count == 1 else f"on these {count} hosts alone"
    origin = few if count < FEWEST_HOSTS else f"on hosts like these {count}"
    kept, known = [sample for sample, _ in counting], [look for _, look in counting]
    found = _merged(question, kept, known, _these_or_random, origin)
    if found.new_host is not None:
        low, high = map(signed_percent, found.new_host)
        origin = f"{origin}, one more of which is expected at {low} to {high}"
    claim = replace(found.claim, origin=origin, cautions=(*left_out, *found.claim.cautions))
    return replace(found, claim=claim)


def _alone(question: Question, sample: Sample) -> Look:
    return fixed_look(Design(Margin(0.5, _LEVEL), 1, question.design.statistic), sample.blocks)


def _has_interval(look: Look) -> bool:
    return 0 < look.low < look.high < math.inf


def _one_or_random(places: Sequence[float], errors: Sequence[float]) -> tuple[Pooled, str]:
    method = RANDOM_HOSTS if len(places) >= FEWEST_HOSTS else ONE_RATIO
    return pooled(places, errors, is_random=True), method


def _these_or_random(places: Sequence[float], errors: Sequence[float]) -> tuple[Pooled, str]:
    if len(places) >= FEWEST_HOSTS:
        return pooled(places, errors, is_random=True), RANDOM_HOSTS
    return mean_of_these(places, errors), THESE_HOSTS


def _merged(
    question: Question, samples: Sequence[Sample], alone: Sequence[Look], pool: Pooling, origin: str
) -> Merged:
    places = [math.log(look.ratio) for look in alone]
    errors = [look.log_width / 2 / _Z for look in alone]
    hosts = list(dict.fromkeys(sample.host for sample in samples))
    of_each: list[Pooled] = []
    weights = [0.0] * len(samples)
    for host in hosts:
        here = [number for number, sample in enumerate(samples) if sample.host == host]
        of_each.append(pooled([places[n] for n in here], [errors[n] for n in here], is_random=False))
        for number, weight in zip(here, of_each[-1].weights, strict=True):
            weights[number] = weight
    common, method = pool([each.place for each in of_each], [each.standard_error for each in of_each])
    weights = [
        weight * common.weights[hosts.index(sample.host)]
        for weight, sample in zip(weights, samples, strict=True)
    ]
    cautions = tuple(_disagreements(of_each, hosts, common))
    design = question.design
    parts = tuple(
        Part(
            sample.name,
            sample.host,
            look.blocks,
            look.ratio,
            look.low,
            look.high,
            str(sample.verdict or fixed_look(design, sample.blocks).verdict),
            weight,
        )
        for sample, look, weight in zip(samples, alone, weights, strict=True)
    )
    claim = _claim(question, samples, common, len(hosts), (method, origin, cautions))
    return Merged(claim, parts, common.between_sd, common.p_disagreement, _new_host(of_each))


def _new_host(of_each: Sequence[Pooled]) -> tuple[float, float] | None:
    """Give the limits of the ratio of one more host; the scatter of the ratios holds that of the runs too."""
    scatter = device_scatter([np.exp([each.place]) for each in of_each])
    if scatter is None:
        return None
    middle = math.exp(sum(each.place for each in of_each) / len(of_each))
    return middle * scatter.low, middle * scatter.high


def _disagreements(of_each: Sequence[Pooled], hosts: Sequence[str], common: Pooled) -> Iterator[str]:
    for host, found in zip(hosts, of_each, strict=True):
        if found.p_disagreement < _DISAGREEING:
            yield (
                f"disagreement: the results of host {host[:12]} differ by more than chance "
                f"(p = {found.p_disagreement:.2g}): something else changed between them"
            )
    if common.p_disagreement < _DISAGREEING:
        answer = (
            "nothing is claimed of two that disagree; measure on a third"
            if len(hosts) < FEWEST_HOSTS
            else "the answer is about their mean"
        )
        yield f"disagreement: hosts differ by more than chance (p = {common.p_disagreement:.2g}): {answer}"


def _claim(
    question: Question,
    samples: Sequence[Sample],
    common: Pooled,
    hosts: int,
    told: tuple[str, str, tuple[str, ...]],
) -> Claim:
    design, (method, origin, cautions) = question.design, told
    limits, narrow = common.limits(design.error / 2), common.limits(design.error)
    blocks = sum(len(sample.blocks) for sample in samples)
    verdict = verdict_of_limits(design, blocks, limits, narrow)
    if hosts < FEWEST_HOSTS and common.p_disagreement < _DISAGREEING:
        verdict = Verdict.INCONCLUSIVE
    logs = [
        np.log(each.blocks[:, 1] / each.blocks[:, 0])
        if isinstance(design.statistic, Quantile)
        else each.blocks
        for each in samples
    ]
    return Claim(
        *question.names,
        question.metric,
        verdict,
        math.exp(common.place),
        math.exp(limits[0]),
        math.exp(limits[1]),
        level=design.margin.level,
        margin=design.margin.relative,
        runs=(blocks, blocks),
        mean_ratio=math.exp(float(np.concatenate(logs).mean())),
        further_runs=None,
        is_settled=is_settled_by(design, verdict, limits),
        family=design.family,
        method=method,
        narrow=(math.exp(narrow[0]), math.exp(narrow[1])),
        cautions=cautions,
        statistic=str(design.statistic),
        origin=origin,
    )
