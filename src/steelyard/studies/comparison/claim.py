"""What is claimed about one pair of commands or samples, and the sentence a colleague can quote."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from steelyard.analyse.comparison.equivalence import Margin, Verdict
from steelyard.analyse.comparison.sequential import Location
from steelyard.analyse.intervals.guarantee import FEWEST_UNITS

if TYPE_CHECKING:
    from steelyard.analyse.comparison.equivalence import RatioTest
    from steelyard.analyse.comparison.sequential import Design, Look

METHODS: Final = {"typical": "signed-rank", "mean": "t"}
ORDER_UNKNOWN: Final = (
    "order: nothing says in which order `a` and `b` were measured; if one after the other, what changed in "
    "between looks like a difference of them: measure in turns, and give `paired=True`"
)
METRIC_WORDS: Final = {
    "wall": "wall time",
    "cpu": "CPU time",
    "memory": "peak memory",
    "reported": "reported time",
}
"""What people call a metric."""
WITHIN_WORDS: Final = {"median": "median", "min": "minimum", "slope": "slope"}
"""What people call a statistic of what a process measures."""
_OF_SPEED: Final = ("wall", "reported")
TWICE: Final = 2.0
"""From this ratio on people read factors more easily than percentages."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A verdict with its effect, interval and margin.

    Parameters
    ----------
    baseline, contender : str
        Names.
    metric : str
        ``wall``, ``cpu``, ``memory`` or ``reported``.
    verdict : Verdict
        About the contender.
    ratio, low, high : float
        Contender over baseline with its interval; infinite limits where there is none.
    level : float
        Coverage of the interval, of all comparisons of its family together.
    margin : float
        Largest ratio still called equivalent, less 1.
    runs : tuple of int
        Runs of baseline and contender the claim rests on.
    mean_ratio : float
        Ratio of geometric means, outliers included.
    further_runs : int or None
        Further runs of each side that would settle it; ``None`` if settled or out of reach.
    is_settled : bool
        Whether more runs cannot be expected to say more that matters.
    family : int
        Comparisons that hold together.
    method : str
        Procedure by its name in ``docs/concepts/comparing.md``.
    narrow : tuple of float
        Interval of the two one-sided tests of equivalence, of coverage ``2 * level - 1``.
    objections : tuple of str
        Why the level may be missed, by `analyse.intervals.guarantee`; empty where it is kept.
    cautions : tuple of str
        What the claim takes for granted.
    failed : tuple of int
        Failed runs of baseline and contender among `runs`; each counts as slower than every other run.
    statistic : str
        What the ratio is of: ``typical``, ``mean``, ``median`` or a quantile such as ``p99``.
    origin : str
        How many results of how many hosts it was merged from; empty for a single result.
    within : str
        Of what a process of a harness measures its reported time is; empty for the mean.
    """

    baseline: str
    contender: str
    metric: str
    verdict: Verdict
    ratio: float
    low: float
    high: float
    level: float
    margin: float
    runs: tuple[int, int]
    mean_ratio: float
    further_runs: int | None
    is_settled: bool
    family: int = 1
    method: str = "sequential-signed-rank"
    narrow: tuple[float, float] = (0.0, math.inf)
    objections: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()
    failed: tuple[int, int] = (0, 0)
    statistic: str = Location.TYPICAL
    origin: str = ""
    within: str = ""

    @property
    def guaranteed(self) -> bool:
        """Whether simulations support that interval and verdict keep their level here."""
        return not self.objections

    @property
    def reason(self) -> str:
        """Why the level may be missed; empty where it is kept."""
        return "; ".join(self.objections)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What must be known beside the sentence."""
        found = [f"not guaranteed: {reason}" for reason in self.objections]
        found += self.cautions
        if (
            not self.suffix
            and math.isfinite(self.mean_ratio)
            and not any(self.failed)
            and not self.low <= self.mean_ratio <= self.high
        ):
            found.append(
                f"mean: by the ratio of geometric means `{self.contender}` differs by "
                f"{100 * (self.mean_ratio - 1):+.1f} % from `{self.baseline}`: outliers, or another shape "
                'of the distribution; `--statistic mean` judges by it (in Python `statistic="mean"`)'
            )
        return tuple(found)

    def __str__(self) -> str:
        return "\n".join([self.sentence, *(f"warning: {remark}" for remark in self.remarks)])

    @property
    def is_regression(self) -> bool:
        """Whether the contender is slower (or larger) for sure, and its estimate is beyond the margin."""
        return self.verdict is Verdict.SLOWER and self.ratio > 1 + self.margin

    @property
    def is_improvement(self) -> bool:
        """Whether the contender is faster (or smaller) for sure, and its estimate is beyond the margin."""
        return self.verdict is Verdict.FASTER and self.ratio < 1 / (1 + self.margin)

    @property
    def suffix(self) -> str:
        """What names of a verdict about a quantile end with; empty for other statistics."""
        return "" if self.statistic in set(Location) else f" ({self.statistic})"

    @property
    def baseline_text(self) -> str:
        """The baseline in a sentence, with the quantile at which it is compared."""
        place = {"median": " at the median"}.get(self.statistic, f" at {self.statistic}")
        return f"`{self.baseline}`{place if self.suffix else ''}"

    @property
    def sentence(self) -> str:
        """The verdict in one sentence, without a full stop."""
        if self.verdict is Verdict.NA:
            return f"nothing is known about `{self.contender}` against `{self.baseline}`: no block has both"
        return f"{self._statement()} ({', '.join(self._conditions())})"

    @property
    def times_faster(self) -> str:
        """How many times as much the slower side takes, as other tools say it; empty where neither is."""
        if self.verdict not in {Verdict.SLOWER, Verdict.FASTER}:
            return ""
        names = [f"`{self.contender}`", f"`{self.baseline}`"]
        at = self.baseline_text.removeprefix(names[1])
        ratio, low, high = self.ratio, self.low, self.high
        if self.verdict is Verdict.SLOWER:
            names.reverse()
        else:
            ratio, low, high = (1 / value if value > 0 else math.inf for value in (ratio, high, low))
        how = {
            "wall": "ran {} times faster than",
            "reported": "was {} times faster than",
            "cpu": "used {} times less CPU time than",
            "memory": "used {} times less memory than",
        }[self.metric]
        limits = f" ({low:.3g} to {high:.3g})" if math.isfinite(high) else ""
        origin = f", {self.origin}" if self.origin else ""
        return f"{names[0]} {how.format(f'{ratio:.3g}')} {names[1]}{at}{limits}{origin}"

    def as_dict(self) -> dict[str, Any]:
        """Give JSON values; what does not exist is null."""
        numbers = {name: _finite(getattr(self, name)) for name in ("ratio", "low", "high", "mean_ratio")}
        return {
            "baseline": self.baseline,
            "contender": self.contender,
            "metric": self.metric,
            "statistic": self.statistic,
            "verdict": str(self.verdict),
            "sentence": self.sentence,
            "times_faster": self.times_faster or None,
            **numbers,
            "level": self.level,
            "equivalence_low": _finite(self.narrow[0]),
            "equivalence_high": _finite(self.narrow[1]),
            "margin": self.margin,
            "runs_baseline": self.runs[0],
            "runs_contender": self.runs[1],
            "further_runs": self.further_runs,
            "is_settled": self.is_settled,
            "is_regression": self.is_regression,
            "comparisons": self.family,
            "method": self.method,
            "guaranteed": self.guaranteed,
            "reason": self.reason,
            "remarks": list(self.remarks),
            "failed_baseline": self.failed[0],
            "failed_contender": self.failed[1],
            "origin": self.origin or None,
            "within": self.within or None,
        }

    def _statement(self) -> str:
        names = f"`{self.contender}`", self.baseline_text
        if self.verdict is Verdict.EQUIVALENT:
            same = {
                "wall": "is as fast as",
                "cpu": "uses as much CPU time as",
                "memory": "uses as much memory as",
                "reported": "is as fast as",
            }
            return f"{names[0]} {same[self.metric]} {names[1]} within {percent(self.margin)}"
        if self.verdict in {Verdict.SLOWER, Verdict.FASTER}:
            return f"{names[0]} {self._difference()} {names[1]}"
        more, less = _WORDS[self.metric]
        if self.verdict is Verdict.DESCRIPTIVE:
            return f"too few runs to say whether {names[0]} {more} or {less} than {names[1]}"
        return f"it is undecided whether {names[0]} {more} or {less} than {names[1]}"

    def _difference(self) -> str:
        if math.isinf(self.ratio) or self.ratio == 0:
            return ("is slower" if self.ratio else "is faster") + ", by its failed runs, than"
        if not 1 / TWICE < self.ratio < TWICE:
            times = f"{self.ratio:.3g} times"
            of = {"cpu": "as much CPU time as", "memory": "as much memory as"}.get(self.metric, "as long as")
            verb = "takes" if self.metric in _OF_SPEED else "uses"
            return f"{verb} {times} {of}"
        size = signed_percent(self.ratio).lstrip("+-")
        is_more = self.ratio > 1
        if self.metric in _OF_SPEED:
            return f"is {size} {'slower' if is_more else 'faster'} than"
        return f"uses {size} {'more' if is_more else 'less'} {_THINGS[self.metric]} than"

    def _conditions(self) -> list[str]:
        is_far = self.verdict in {Verdict.SLOWER, Verdict.FASTER} and not 1 / TWICE < self.ratio < TWICE
        is_far = is_far and 0 < self.ratio < math.inf
        write = _times if is_far else signed_percent
        found = []
        if self.verdict not in {Verdict.SLOWER, Verdict.FASTER} and 0 < self.ratio < math.inf:
            found.append(f"estimate {signed_percent(self.ratio)}")
        level, low, high = self.level, self.low, self.high
        if self.verdict is Verdict.EQUIVALENT:
            level, (low, high) = 2 * self.level - 1, self.narrow
        if math.isfinite(high) and low > 0:
            together = f" of {self.family} comparisons together" if self.family > 1 else ""
            first = f"{low:.3g}" if is_far else write(low)
            found.append(f"{100 * level:.12g} % interval{together} {first} to {write(high)}")
        elif 0 < low < math.inf:
            found.append(f"{100 * level:.12g} % interval above {write(low)}")
        elif 0 < high < math.inf:
            found.append(f"{100 * level:.12g} % interval below {write(high)}")
        found.append(f"margin {percent(self.margin)}")
        if self.runs[0] == self.runs[1]:
            found.append(f"{self.runs[0]} run{'s' * (self.runs[0] != 1)} each")
        else:
            found.append(f"{self.runs[0]} and {self.runs[1]} runs")
        if any(self.failed):
            found.append(f"{self.failed[0]} and {self.failed[1]} of them failed")
        if self.origin:
            found.append(self.origin)
        mean = "geometric mean of " if self.statistic == Location.MEAN else ""
        within = f", the {WITHIN_WORDS[self.within]} of a process" if self.within else ""
        return [*found, f"{mean}{METRIC_WORDS[self.metric]}{within}"]


_WORDS: Final = {
    "wall": ("is slower", "faster"),
    "cpu": ("uses more CPU time", "less"),
    "memory": ("uses more memory", "less"),
    "reported": ("is slower", "faster"),
}
_THINGS: Final = {"cpu": "CPU time", "memory": "memory"}


def claim_of_look(
    look: Look | None, design: Design, names: tuple[str, str], metric: str, stages: int = 1
) -> Claim:
    """Give the claim of the last look at a comparison; nobody looked where no block was complete.

    A comparison that went on after its whole error was spent has spent it again: `stages` times.
    """
    level = design.margin.level
    kept = 1 - (1 - level) * stages if stages > 1 else level
    return Claim(
        *names,
        metric,
        verdict=look.verdict if look else Verdict.NA,
        ratio=look.ratio if look else math.nan,
        low=look.low if look else 0.0,
        high=look.high if look else math.inf,
        level=kept,
        margin=design.margin.relative,
        runs=(look.blocks, look.blocks) if look else (0, 0),
        mean_ratio=look.mean_ratio if look else math.nan,
        further_runs=look.further_blocks if look else None,
        is_settled=bool(look and look.is_settled),
        family=design.family,
        method=f"sequential-{METHODS.get(str(design.statistic), 'quantile')}",
        narrow=look.narrow if look else (0.0, math.inf),
        objections=_objections(look),
        cautions=(_spent_again(stages, level, kept),) if stages > 1 else (),
        statistic=str(design.statistic),
    )


def _objections(look: Look | None) -> tuple[str, ...]:
    """Say why the interval of a look may miss its level: random order within blocks leaves two reasons."""
    if look is None or look.blocks < FEWEST_UNITS:
        return (f"{look.blocks if look else 0} blocks, at least {FEWEST_UNITS} needed",)
    if not (look.low > 0 and math.isfinite(look.high)):
        return ("too few blocks for a limit at this level",)
    if look.has_unlike_spells:
        return ("high values come in spells, and more widely on one side than on the other",)
    return ("the differences have no spread",) if look.low == look.high else ()


def _spent_again(stages: int, level: float, kept: float) -> str:
    return (
        f"resumed: the budget was used up and its error spent before it went on, {stages} times in all: the "
        f"level is {100 * kept:.12g} %, not {100 * level:.12g} %"
    )


def subject_of(statistic: str) -> dict[str, str]:
    """Give the part of a finding's subject that names the statistic; nothing for the usual one."""
    return {} if statistic == Location.TYPICAL else {"statistic": statistic}


def claim_of_test(
    test: RatioTest, verdict: Verdict, margin: Margin, metric: str, narrow: tuple[float, float]
) -> Claim:
    """Give the claim of a test of two independent samples, `a` and `b`."""
    return Claim(
        "a",
        "b",
        metric,
        verdict,
        test.ratio,
        test.low,
        test.high,
        level=margin.level,
        margin=margin.relative,
        runs=test.units,
        mean_ratio=test.ratio,
        further_runs=test.further_units,
        is_settled=verdict in {Verdict.SLOWER, Verdict.FASTER, Verdict.EQUIVALENT},
        method=test.method,
        narrow=narrow,
        objections=test.objections,
        cautions=(ORDER_UNKNOWN,),
    )


def percent(share: float) -> str:
    """Write a share without a sign.

    Examples
    --------
    >>> percent(0.031), percent(0.02), percent(0.31), percent(0.0004)
    ('3.1 %', '2 %', '31 %', '0.04 %')
    """
    return f"{100 * share:.2g} %" if share < 1 else f"{100 * share:.3g} %"


def signed_percent(ratio: float) -> str:
    """Write a ratio as the difference to 1, with its sign.

    Examples
    --------
    >>> signed_percent(1.024), signed_percent(0.97), signed_percent(1.0)
    ('+2.4 %', '-3.0 %', '0.0 %')
    """
    difference = 100 * (ratio - 1)
    if abs(difference) < 0.005:  # noqa: PLR2004 - half of the last digit shown
        return "0.0 %"
    decimals = 1 if abs(difference) >= 1 else 2
    return f"{difference:+.{decimals}f} %"


def _times(ratio: float) -> str:
    return f"{ratio:.3g} times"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
