"""``steelyard.compare``: two commands or two samples, one claim."""

from __future__ import annotations

import math
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from steelyard.analyse.comparison.column import labels_of
from steelyard.analyse.comparison.equivalence import Margin, ratio_test, verdict_of
from steelyard.analyse.comparison.interim_schedule import Extent
from steelyard.analyse.comparison.quantile_ratio import Quantile
from steelyard.analyse.comparison.sequential import Design, fixed_look, parse_statistic
from steelyard.analyse.intervals.bootstrap import require_level
from steelyard.analyse.intervals.clustering import group_units
from steelyard.analyse.intervals.dependence import depends_on_order
from steelyard.analyse.intervals.run_length import means_of_one_kind, ratio_test_of_runs
from steelyard.errors import AnalysisError, UsageError
from steelyard.studies.comparison.claim import Claim, claim_of_look, claim_of_test
from steelyard.studies.comparison.contender import Commands
from steelyard.studies.comparison.failures import FAILED_LOG, claim_of_ranks, finite_claim
from steelyard.studies.comparison.run.execution import compare_commands
from steelyard.studies.comparison.terms import OF_COMMANDS, Metric, Terms

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import ArrayLike, NDArray


def compare(  # noqa: PLR0913 - keyword only
    a: str | Sequence[str] | ArrayLike,
    b: str | Sequence[str] | ArrayLike,
    *,
    margin: float = 0.02,
    level: float = 0.95,
    metric: str = "wall",
    paired: bool = False,
    clusters: tuple[object, object] | None = None,
    failures: Literal["refuse", "slowest"] = "refuse",
    statistic: str = "typical",
    budget_s: float = 60.0,
    out: Path | None = None,
) -> Claim:
    """Say whether `b` is slower than `a`, faster, or equivalent, and how certain that is.

    Two commands are measured as `steelyard compare` does it: interleaved, until it is settled. Two samples
    are judged as they are: each value, or the mean of each cluster, is one unit (a process, not an iteration
    inside one). Without labels the values are not known to be independent: fewer than 30 a side, or values
    whose neighbours resemble each other, are judged but not guaranteed.

    Parameters
    ----------
    a, b : str, sequence of str, or array of numbers
        Both commands (a text is split into words as a shell does, without a shell), or both samples: shape
        (n,), same unit, positive, in the order of measurement; anything NumPy takes, so Arrow and Polars
        columns too.
    margin : float
        Largest relative difference that counts as none, in (0, 1).
    level : float
        Coverage of the interval, in (0.5, 1).
    metric : str
        ``wall``, ``cpu`` or ``memory``: what is measured, or what the samples contain.
    paired : bool
        Samples only: whether values at the same place belong together (measured in the same block).
    clusters : tuple of array-like, or None
        Samples only: the run of each value of `a` and of `b`; with one value per run, its number. The units
        are the means of the runs; where unequal numbers of values would make them differ, of as many values
        of each (a remark says so).
    failures : {"refuse", "slowest"}
        Samples only: what a value that is infinite or not a number means. ``"refuse"`` raises an error;
        ``"slowest"`` takes it for a failed run, slower than every other, and judges by ranks; a cluster
        with such a value has failed.
    statistic : str
        Commands and paired samples: what the ratio is of. ``typical`` (which outliers hardly move), ``mean``,
        ``median``, or a quantile such as ``p99``.
    budget_s : float
        Commands only: time it may take [s].
    out : Path or None
        Commands only: result folder; ``None`` keeps nothing on disk.

    Returns
    -------
    Claim
        ``verdict``, ``ratio`` (b over a), ``low``, ``high``, ``guaranteed`` with its ``reason``, ``remarks``,
        ``further_runs``, ``sentence`` and more.

    Raises
    ------
    UsageError
        If one side is a command and the other a sample, or a number is outside its range.
    AnalysisError
        If a sample has another shape, a value that is not positive, or one that is infinite or not a number
        without `failures`; or if paired samples differ in length.
    RunError, CapabilityError
        If a command cannot be measured.

    References
    ----------
    .. [1] Samples: Welch (1947), Biometrika 34, and Schuirmann (1987) on logarithms, see `ratio_test`; paired
       ones by signed ranks, Hollander, Wolfe & Chicken (2014), ch. 3, those with failures by the rank sum,
       ch. 4. Commands: see `SequentialComparison`.

    Examples
    --------
    >>> found = compare([10.1, 10.0, 10.2, 9.9, 10.1, 10.0], [10.4, 10.6, 10.5, 10.4, 10.7, 10.5])
    >>> print(found.sentence)
    `b` is 4.6 % slower than `a` (95 % interval +3.2 % to +6.1 %, margin 2 %, 6 runs each, wall time)
    """
    if metric not in OF_COMMANDS:
        allowed = ", ".join(f"`{each}`" for each in OF_COMMANDS)
        message = f"`metric={metric!r}`: allowed: {allowed}"
        raise UsageError(message)
    if failures not in {"refuse", "slowest"}:
        message = f"`failures={failures!r}`: allowed: `refuse`, `slowest`"
        raise UsageError(message)
    wanted = parse_statistic(statistic)
    require_level(level, least=0.5)
    limits = Margin(margin, level)
    Terms(margin=limits).check()
    sides = [_command(a), _command(b)]
    if sides[0] is not None and sides[1] is not None:
        texts = tuple(shlex.join(side) for side in sides if side is not None)
        terms = Terms(
            metric=Metric(metric),
            margin=limits,
            statistics=(wanted,),
            extent=Extent(budget_s=budget_s),
        )
        return compare_commands(Commands(texts), terms, out).claims[0]
    if sides != [None, None]:
        message = "one side is a command and the other a sample"
        raise UsageError(message, hint="give two commands, or two samples of numbers")
    return _claim(
        [_sample(side, name, failures) for side, name in ((a, "a"), (b, "b"))],
        Design(limits, statistic=wanted),
        metric,
        clusters=clusters,
        paired=paired,
        by_rank=failures == "slowest",
    )


def _claim(
    samples: list[NDArray[np.float64]],
    design: Design,
    metric: str,
    *,
    clusters: tuple[object, object] | None,
    paired: bool,
    by_rank: bool,
) -> Claim:
    """Choose the procedure for two samples."""
    first, second = samples
    if isinstance(design.statistic, Quantile) and not paired:
        message = f"`statistic={str(design.statistic)!r}` needs two commands, or samples measured in pairs"
        raise UsageError(message, hint="give `paired=True` where values at one place are of the same block")
    if clusters is not None and paired:
        message = "`clusters` is given together with `paired`; allowed: one of the two"
        raise UsageError(message, hint="give one value per run, e.g. its mean, in pairs")
    if paired:
        return _paired_claim(first, second, design, metric)
    remark, runs = "", []
    if clusters is not None:
        runs = [
            _runs(values, labels, name)
            for values, labels, name in zip(samples, _pair(clusters), "ab", strict=True)
        ]
        first, second, remark = means_of_one_kind(*runs)
    margin, is_series = design.margin, clusters is None
    if by_rank:
        return _with(remark, claim_of_ranks(first, second, margin, metric, is_series=is_series))
    # Two one-sided tests at 5 % each are the interval at 90 %: Schuirmann (1987).
    limits = (margin, Margin(margin.relative, 2 * margin.level - 1))
    if clusters is None:
        test, narrow = (ratio_test(first, second, each, is_series=is_series) for each in limits)
    else:
        (test, remark), (narrow, _) = (ratio_test_of_runs(runs[0], runs[1], each) for each in limits)
    verdict = verdict_of(test, test.p_different, test.p_equivalent, margin.level)
    return _with(remark, claim_of_test(test, verdict, margin, metric, (narrow.low, narrow.high)))


def _with(remark: str, claim: Claim) -> Claim:
    return replace(claim, cautions=(*claim.cautions, f"runs: {remark}")) if remark else claim


def _pair(clusters: object) -> tuple[object, object]:
    if isinstance(clusters, tuple | list) and len(clusters) == 2:  # noqa: PLR2004 - two samples
        return clusters[0], clusters[1]
    message = "`clusters` is one column, but there are two samples"
    raise UsageError(message, hint="give a pair: `clusters=(runs_of_a, runs_of_b)`")


def _runs(values: NDArray[np.float64], labels: object, name: str) -> tuple[NDArray[np.float64], ...]:
    codes = labels_of(labels, f"clusters of {name}", values.size)
    return group_units("run", codes, values).values


def _paired_claim(
    first: NDArray[np.float64], second: NDArray[np.float64], design: Design, metric: str
) -> Claim:
    if first.size != second.size:
        message = f"paired samples have {first.size} and {second.size} values; their numbers must be equal"
        raise AnalysisError(message)
    failed = np.isinf(first), np.isinf(second)
    differences = np.zeros(first.size)
    is_measured = ~(failed[0] | failed[1])
    differences[is_measured] = np.log(second[is_measured] / first[is_measured])
    differences += FAILED_LOG * (failed[1].astype(float) - failed[0].astype(float))
    blocks = differences
    if isinstance(design.statistic, Quantile):
        blocks = np.minimum(np.column_stack((first, second)), math.exp(FAILED_LOG))
    claim = claim_of_look(fixed_look(design, blocks), design, ("a", "b"), metric)
    if depends_on_order(differences):
        drift = "the differences of the pairs change in the order in which they were measured"
        claim = replace(claim, objections=(*claim.objections, drift))
    counts = int(failed[0].sum()), int(failed[1].sum())
    if any(counts):
        claim = replace(claim, mean_ratio=math.nan)
    return finite_claim(claim, counts)


def _command(side: Any) -> tuple[str, ...] | None:
    """Give the words of a command; ``None`` for a sample."""
    if isinstance(side, str):
        return tuple(shlex.split(side))
    if isinstance(side, (list, tuple)) and side and all(isinstance(word, str) for word in side):
        return tuple(side)
    return None


def _sample(side: Any, name: str, failures: str) -> NDArray[np.float64]:
    """Read a sample; a failed run is infinite."""
    try:
        values = np.asarray(side, dtype=np.float64)
    except (TypeError, ValueError) as error:
        message = f"`{name}` is not a sample of numbers: {error}"
        raise AnalysisError(message, hint="give one number per run") from error
    if values.ndim != 1:
        message = f"`{name}` has shape {values.shape}; allowed: one dimension"
        raise AnalysisError(message, hint="give one number per run")
    if failures == "slowest":
        values = np.where(np.isnan(values), math.inf, values)
    _refuse(
        values,
        name,
        (values <= 0),
        "not positive",
        hint="times, CPU times and sizes are larger than 0: find out what these values are",
    )
    if failures == "refuse":
        _refuse(
            values,
            name,
            ~np.isfinite(values),
            "not finite",
            hint='for failed runs give `failures="slowest"`: each is then slower than every other; otherwise '
            "remove them and say how many were removed",
        )
    return values


def _refuse(
    values: NDArray[np.float64], name: str, is_bad: NDArray[np.bool_], what: str, *, hint: str
) -> None:
    bad = np.flatnonzero(is_bad)
    if bad.size:
        message = (
            f"`{name}` has {bad.size} values of {values.size} that are {what}, the first"
            f" ({values[bad[0]]:g}) at position {bad[0]} (from 0)"
        )
        raise AnalysisError(message, hint=hint, code=f"analysis.{what.replace(' ', '-')}")
