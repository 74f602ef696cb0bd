"""One call for every interval: `steelyard.interval`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from steelyard.analyse.comparison.input_sample import InputSample, input_sample_of
from steelyard.analyse.intervals.automatic import Choice, choose
from steelyard.analyse.intervals.bootstrap import Resampling, require_level
from steelyard.analyse.intervals.guarantee import unseen_share
from steelyard.analyse.intervals.objections import objections
from steelyard.analyse.intervals.procedure import (
    Contrast,
    Found,
    Method,
    Question,
    by_bootstrap,
    by_rank,
    by_t,
)
from steelyard.analyse.intervals.quantity import Kind, StatisticName, quantity_of
from steelyard.analyse.intervals.run_length import Scale, remark_of, values_that_count
from steelyard.analyse.intervals.wider import by_wider, is_drawn
from steelyard.errors import AnalysisError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_DRAWS: Final = 20_000_000_000
"""Values times resamples; more would take minutes to hours."""


MOST_RESAMPLES: Final = 10_000_000
"""All replicates are kept: about 1 GB at this number."""

_SMALL_SHARE: Final = 0.01
"""What comes more rarely goes without saying."""

SEEDS: Final = 2**64
"""Seeds are whole numbers of 64 bits."""


@dataclass(frozen=True, slots=True)
class IntervalEstimate:
    """An estimate with its interval, and what both are worth.

    Parameters
    ----------
    estimate, low, high : float
        In the unit of the values (a ratio has none); a limit is infinite where none exists at the level.
    level : float
        Nominal coverage.
    statistic : str
        What was estimated, e.g. ``quantile(0.99)``.
    contrast : str or None
        ``"ratio"`` (other over sample) or ``"difference"`` (other less sample); ``None`` for one sample.
    method : str
        The procedure that was used, never ``auto``.
    why : str
        The reason for it.
    n : tuple of int
        Values of the sample, and of the other one if there is one.
    effective_n : tuple of float
        How many independent values carry as much information.
    guaranteed : bool
        Whether simulations support that the interval keeps its level here.
    reason : str
        Why not; empty if guaranteed.
    unseen_share : float
        Values of a kind that comes in a smaller share than this may not have come at all (95 %): no interval
        accounts for them.
    seed, resamples : int
        Of the resampling; 0 resamples if nothing was drawn.
    """

    estimate: float
    low: float
    high: float
    level: float
    statistic: str
    contrast: str | None
    method: str
    why: str
    n: tuple[int, ...]
    effective_n: tuple[float, ...]
    guaranteed: bool
    reason: str
    unseen_share: float
    seed: int
    resamples: int

    @property
    def text(self) -> str:
        """The estimate as a sentence to quote."""
        subject = f"{self.contrast} of {self.statistic}" if self.contrast else self.statistic
        sizes = " and ".join(f"{size}" for size in self.n)
        sentence = (
            f"{subject} {self.estimate:.6g}, {100 * self.level:.12g} % interval {self.low:.6g} to"
            f" {self.high:.6g} ({self.method}, n = {sizes})"
        )
        if not self.guaranteed:
            return f"{sentence}; not guaranteed: {self.reason}"
        if self.statistic == "mean" and self.unseen_share > _SMALL_SHARE:
            return f"{sentence}; nothing is said of what comes in fewer than {self.unseen_share:.1%} of cases"
        return sentence

    def __str__(self) -> str:
        return self.text


def interval(  # noqa: PLR0913 - one call for every interval, all but the sample by name
    sample: object,
    *,
    statistic: StatisticName = "mean",
    method: str = "auto",
    level: float = 0.95,
    clusters: object = None,
    strata: object = None,
    block: int | Literal["auto"] | None = None,
    other: object = None,
    contrast: Literal["ratio", "difference"] = "ratio",
    resamples: int = 9999,
    seed: int = 0,
) -> IntervalEstimate:
    """Estimate a statistic of one sample, or the contrast of two, with an interval.

    Parameters
    ----------
    sample : array-like
        Shape (n,), n >= 1, finite, in recorded order: NumPy, Arrow, Polars, pandas or a sequence.
    statistic : str or tuple
        ``"mean"``, ``"sd"``, ``"cv"``, ``"median"``, ``"iqr"``, ``"mad"`` (scaled to the sd of normal data),
        ``"trimmed_mean"``, ``("trimmed_mean", share)``, ``("quantile", p)``, ``("harrell_davis", p)``,
        ``("quantile_ratio", p_over, p_under)``, ``"shift"`` (Hodges-Lehmann, of two samples).
    method : str
        ``"auto"``; or ``"percentile"``, ``"basic"``, ``"bca"``, ``"studentised"`` (bootstrap), ``"t"``,
        ``"effective_t"`` (effective sample size), ``"batch_t"`` (batches of a series), ``"exact"`` (ranks),
        ``"wider"`` (of means: the wider of t and the bootstrap, of two samples t and relabelling).
    level : float
        Nominal coverage in (0, 1).
    clusters, strata : array-like or None
        Shape (n,): the run (or worker, or block) and the stratum of each value. With `other` a pair, one for
        each sample.
    block : int, "auto" or None
        Draw blocks of so many neighbours of a series; ``"auto"`` finds the length (Politis & White).
    other : array-like or None
        Shape (m,): a second, independent sample in the same unit.
    contrast : {"ratio", "difference"}
        `other` over `sample`, or `other` less `sample`.
    resamples : int
        1 to 10 million.
    seed : int
        0 to 2^64 - 1; the same call gives the same bits on every machine, with any number of threads.

    Returns
    -------
    IntervalEstimate
        In the unit of the sample.

    Raises
    ------
    UsageError
        If an argument is not allowed, or arguments contradict each other.
    AnalysisError
        If the values do not allow the analysis.

    References
    ----------
    .. [1] Davison & Hinkley (1997), "Bootstrap Methods and their Application".
    .. [2] docs/concepts/intervals.md: which procedure is used when, and what it guarantees.

    Examples
    --------
    >>> import numpy as np
    >>> times_ns = np.random.default_rng(1).lognormal(7, 0.2, 200)
    >>> found = interval(times_ns, statistic="median")
    >>> found.method, found.guaranteed, found.low < found.estimate < found.high
    ('exact', True, True)
    >>> round(interval(times_ns, other=times_ns * 1.1).estimate, 9)
    1.1
    """
    question = _question(statistic, level, None if other is None else contrast)
    resampling = _resampling(resamples, seed, level)
    sides = _sides(sample, other, clusters, strata, block)
    choice = _choice(method, question, sides)
    used = [side.in_blocks() for side in sides] if choice.in_blocks else sides
    used, remark = _of_one_kind(question, used, choice.method)
    _check_labels(used, choice.method)
    _check_ratio(question, used)
    found = _execute(question, used, choice.method, resampling)
    if not math.isfinite(found.estimate):
        message = f"the {question.quantity.name} of these values is not a finite number"
        hint = "a cv needs a mean that is not 0; very large values need a larger unit"
        raise AnalysisError(message, hint=hint, code="analysis.undefined")
    reasons = objections(question, used, choice.method, found)
    return IntervalEstimate(
        estimate=found.estimate,
        low=found.low,
        high=found.high,
        level=level,
        statistic=question.quantity.name,
        contrast=None if question.contrast is None else question.contrast.value,
        method=_described(choice, used),
        why="; ".join(filter(None, (choice.why, remark))),
        n=tuple(side.size for side in sides),
        effective_n=tuple(side.effective for side in sides),
        guaranteed=not reasons,
        reason="; ".join(reasons),
        unseen_share=unseen_share(min(side.units_count for side in used)),
        seed=seed,
        resamples=resamples if choice.method.is_bootstrap or is_drawn(question, used, choice.method) else 0,
    )


def _of_one_kind(
    question: Question, sides: list[InputSample], method: Method
) -> tuple[list[InputSample], str]:
    """Leave of every cluster as many values as are compared, and say so."""
    is_of_units = (
        method in {Method.WIDER, Method.T, Method.EFFECTIVE_T} or question.quantity.kind is Kind.SHIFT
    )
    if question.contrast is None or not is_of_units or all(side.clusters is None for side in sides):
        return sides, ""
    first, second = (side.units for side in sides)
    scale = Scale(question.quantity.of, is_log=question.contrast is Contrast.RATIO)
    count = values_that_count(first, second, scale)
    kept = sides if count is None else [side.first_of_units(count) for side in sides]
    return kept, remark_of(count, first, second)


def _question(statistic: object, level: float, contrast: str | None) -> Question:
    quantity = quantity_of(statistic)
    require_level(level)
    if quantity.kind is Kind.SHIFT and contrast is None:
        message = "a shift is asked of one sample; it lies between two"
        raise UsageError(message, hint="give the second sample as `other`")
    if contrast is not None and contrast not in set(Contrast):
        allowed = ", ".join(f'"{each}"' for each in Contrast)
        message = f"`contrast` is {contrast!r}; allowed: {allowed}"
        raise UsageError(message, hint="a ratio is `other` over `sample`")
    return Question(quantity, None if contrast is None else Contrast(contrast), level)


def _resampling(resamples: int, seed: int, level: float) -> Resampling:
    if not (1 <= resamples <= MOST_RESAMPLES and 0 <= seed < SEEDS):
        message = (
            f"`resamples` is {resamples}, `seed` is {seed};"
            f" allowed: 1 to {MOST_RESAMPLES}, and 0 to {SEEDS - 1}"
        )
        raise UsageError(message, hint="the defaults are 9999 and 0")
    return Resampling(seed=seed, cell=0, resamples=resamples, level=level)


def _sides(
    sample: object, other: object, clusters: object, strata: object, block: int | str | None
) -> list[InputSample]:
    if other is None:
        return [input_sample_of(sample, "sample", clusters=clusters, strata=strata, block=block)]
    pairs = [_pair(labels, name) for labels, name in ((clusters, "clusters"), (strata, "strata"))]
    names = (("sample", sample), ("other", other))
    return [
        input_sample_of(values, name, clusters=pairs[0][place], strata=pairs[1][place], block=block)
        for place, (name, values) in enumerate(names)
    ]


def _pair(labels: object, name: str) -> tuple[object, object]:
    if labels is None:
        return None, None
    if isinstance(labels, tuple | list) and len(labels) == 2:  # noqa: PLR2004 - two samples
        return labels[0], labels[1]
    message = f"`{name}` is one column, but there are two samples"
    raise UsageError(message, hint=f"give a pair: `{name}=(labels_of_sample, labels_of_other)`")


def _choice(method: str, question: Question, sides: Sequence[InputSample]) -> Choice:
    if method not in set(Method):
        allowed = ", ".join(f'"{each}"' for each in Method)
        message = f"there is no method {method!r}; allowed: {allowed}"
        raise UsageError(message, hint='`method="auto"` chooses by the data')
    if method not in {Method.AUTO, Method.EXACT} and question.quantity.kind is Kind.SHIFT:
        message = f'the method {method!r} is not for a shift; allowed: "exact", "auto"'
        raise UsageError(message, hint="a shift is found from ranks; clusters are allowed")
    if method != Method.AUTO:
        return Choice(Method(method), "asked for")
    return choose(question, sides)


def _check_labels(sides: Sequence[InputSample], method: Method) -> None:
    """Refuse blocks and strata where a method would ignore them."""
    if method.is_bootstrap:
        return
    for name, given in (
        ("block", [side.block for side in sides]),
        ("strata", [side.strata for side in sides]),
    ):
        if any(each is not None for each in given):
            message = f'`{name}` is given, but the method "{method}" does not draw anything'
            raise UsageError(message, hint='choose the method "percentile", "basic" or "bca", or "auto"')


def _check_ratio(question: Question, sides: Sequence[InputSample]) -> None:
    """Refuse a ratio of statistics that are not positive: it says nothing."""
    if question.contrast is not Contrast.RATIO or question.quantity.kind is Kind.SHIFT:
        return
    for side, name in zip(sides, ("sample", "other"), strict=True):
        value = question.quantity.of(side.values)
        if not value > 0:
            message = f"the {question.quantity.name} of `{name}` is {value:g}; a ratio needs positive ones"
            raise AnalysisError(message, hint='ask for contrast="difference"', code="analysis.not-positive")


def _execute(
    question: Question, sides: Sequence[InputSample], method: Method, resampling: Resampling
) -> Found:
    for side in sides:
        _check_size(question, side, method)
    if method.is_bootstrap:
        for side in sides:
            _check_work(question, side, resampling.resamples)
        return by_bootstrap(question, sides, method, resampling)
    if method is Method.EXACT:
        return by_rank(question, sides)
    if method is Method.WIDER:
        return by_wider(question, sides, resampling)
    found = by_t(question, sides, method)
    return found if not math.isnan(found.low) else Found(found.estimate, -math.inf, math.inf)


def _check_size(question: Question, side: InputSample, method: Method) -> None:
    quantity = question.quantity
    needs_spread = quantity.is_moment or not (method.is_bootstrap or method is Method.EXACT)
    is_clustered = side.clusters is not None
    count, fewest = (
        (side.clusters_count if is_clustered else side.size),
        (2 if needs_spread or is_clustered else 1),
    )
    if count < fewest:
        what = "clusters" if is_clustered else "values"
        message = f"{count} {what} given, at least {fewest} needed for an interval of {quantity.name}"
        raise AnalysisError(message, hint="measure more", code="analysis.too-few")


def _check_work(question: Question, side: InputSample, resamples: int) -> None:
    is_plain = side.clusters is None and side.strata is None and side.block is None
    if is_plain and question.quantity.kernel in {"quantile", "range", "quantile_ratio"}:
        return  # nothing is drawn but ranks
    if side.size * resamples > MOST_DRAWS:
        message = f"{resamples} resamples of {side.size} values are more than {MOST_DRAWS:.0e} draws"
        raise AnalysisError(message, hint="give fewer `resamples`, or choose another method")


def _described(choice: Choice, sides: Sequence[InputSample]) -> str:
    lengths = [side.block for side in sides]
    if choice.method.is_bootstrap and any(lengths):
        return f"{choice.method} of blocks of {' and '.join(str(length) for length in lengths)}"
    is_clustered = any(side.clusters is not None for side in sides)
    return f"{choice.method} of clusters" if is_clustered else choice.method.value
