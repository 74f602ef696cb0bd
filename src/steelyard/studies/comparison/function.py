"""``steelyard.compare``: two commands or two samples, one claim."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.analyse.equivalence import Margin, ratio_test, verdict_of
from steelyard.analyse.looks import Extent
from steelyard.analyse.sequential import Design, Location, fixed_look
from steelyard.errors import AnalysisError, UsageError
from steelyard.studies.comparison.claim import Claim, claim_of_look, claim_of_test
from steelyard.studies.comparison.contender import Commands
from steelyard.studies.comparison.execution import compare_commands
from steelyard.studies.comparison.terms import Metric, Terms

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
    budget_s: float = 60.0,
    out: Path | None = None,
) -> Claim:
    """Say whether `b` is slower than `a`, faster, or equivalent, and how surely.

    Two commands are measured as `steelyard compare` does it: interleaved, until it is settled. Two samples
    are judged as they are: each value is one independent unit (a process, not an iteration inside one).

    Parameters
    ----------
    a, b : str, sequence of str, or array of numbers
        Both commands (a text is split into words as a shell does, without a shell), or both samples: shape
        (n,), same unit, positive; anything NumPy takes, so Arrow and Polars columns too.
    margin : float
        Largest relative difference that counts as none, in (0, 1).
    level : float
        Coverage of the interval, in (0.5, 1).
    metric : str
        ``wall``, ``cpu`` or ``memory``: what is measured, or what the samples hold.
    paired : bool
        Samples only: whether values at the same place belong together (measured in the same block).
    budget_s : float
        Commands only: time it may take [s].
    out : Path or None
        Commands only: result folder; ``None`` keeps nothing on disk.

    Returns
    -------
    Claim
        ``verdict``, ``ratio`` (b over a), ``low``, ``high``, ``further_runs``, ``sentence`` and more.

    Raises
    ------
    UsageError
        If one side is a command and the other a sample, or a number is outside its range.
    AnalysisError
        If a sample has another shape, or paired samples differ in length.
    RunError, CapabilityError
        If a command cannot be measured.

    References
    ----------
    .. [1] Samples: Welch (1947), Biometrika 34, and Schuirmann (1987) on logarithms; paired ones by signed
       ranks, Hollander, Wolfe & Chicken (2014), ch. 3. Commands: see `SequentialComparison`.

    Examples
    --------
    >>> found = compare([10.1, 10.0, 10.2, 9.9, 10.1, 10.0], [10.4, 10.6, 10.5, 10.4, 10.7, 10.5])
    >>> print(found.sentence)
    `b` is 4.6 % slower than `a` (95 % interval +3.2 % to +6.1 %, margin 2 %, 6 runs each, wall time)
    """
    if metric not in list(Metric):
        allowed = ", ".join(f"`{each}`" for each in Metric)
        message = f"`metric={metric!r}`: allowed: {allowed}"
        raise UsageError(message)
    limits = Margin(margin, level)
    Terms(margin=limits).check()
    sides = [_command(a), _command(b)]
    if sides[0] is not None and sides[1] is not None:
        texts = tuple(shlex.join(side) for side in sides if side is not None)
        terms = Terms(metric=Metric(metric), margin=limits, extent=Extent(budget_s=budget_s))
        return compare_commands(Commands(texts), terms, out).claims[0]
    if sides != [None, None]:
        message = "one side is a command and the other a sample"
        raise UsageError(message, hint="give two commands, or two samples of numbers")
    first, second = _sample(a, "a"), _sample(b, "b")
    if paired:
        return _paired_claim(first, second, limits, metric)
    test = ratio_test(first, second, limits)
    # Two one-sided tests at 5 % each are the interval at 90 %: Schuirmann (1987).
    narrow = ratio_test(first, second, Margin(margin, 2 * level - 1))
    verdict = verdict_of(test, test.p_different, test.p_equivalent, level)
    return claim_of_test(test, verdict, limits, metric, (narrow.low, narrow.high))


def _paired_claim(
    first: NDArray[np.float64], second: NDArray[np.float64], margin: Margin, metric: str
) -> Claim:
    if first.size != second.size:
        message = f"paired samples have {first.size} and {second.size} values; they must be as many"
        raise AnalysisError(message)
    is_usable = np.isfinite(first) & np.isfinite(second) & (first > 0) & (second > 0)
    design = Design(margin, location=Location.TYPICAL)
    look = fixed_look(design, np.log(second[is_usable] / first[is_usable]))
    return claim_of_look(look, design, ("a", "b"), metric)


def _command(side: Any) -> tuple[str, ...] | None:
    """Give the words of a command; ``None`` for a sample."""
    if isinstance(side, str):
        return tuple(shlex.split(side))
    if isinstance(side, (list, tuple)) and side and all(isinstance(word, str) for word in side):
        return tuple(side)
    return None


def _sample(side: Any, name: str) -> NDArray[np.float64]:
    try:
        values = np.asarray(side, dtype=np.float64)
    except (TypeError, ValueError) as error:
        message = f"`{name}` is no sample of numbers: {error}"
        raise AnalysisError(message, hint="give one number per run") from error
    if values.ndim != 1:
        message = f"`{name}` has shape {values.shape}; allowed: one dimension"
        raise AnalysisError(message, hint="give one number per run")
    return values
