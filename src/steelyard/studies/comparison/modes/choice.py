"""Which mode needs less time on this machine: the baseline beside itself, in turns and as a duet."""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from steelyard.analyse.comparison.duel import difference_of
from steelyard.analyse.comparison.scale_ratio import scale_ratio
from steelyard.analyse.intervals.describe import mean
from steelyard.design.seeds import Purpose, generator
from steelyard.studies.comparison.modes.layout import layout_of
from steelyard.studies.comparison.run.launch import execute_line
from steelyard.studies.comparison.terms import Mode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from steelyard.studies.comparison.contender import Contender
    from steelyard.studies.comparison.run.launch import Launches
    from steelyard.studies.comparison.terms import Terms

BUDGET_SHARE: Final = 0.2
"""Part of the budget that a trial may take."""
MOST_PAIRS: Final = 60
"""Pairs in each mode: then a ratio of minutes is known to about a factor of two."""
LEVEL: Final = 0.95
_MINUTE_S: Final = 60.0
_MODES: Final = (Mode.TURNS, Mode.DUET)

Pair = tuple[float, float, float]
"""Values of both runs, and the time that the pair took [s]."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What a trial says.

    Parameters
    ----------
    baseline : str
        The command that was beside itself.
    verdict : str
        ``turns``, ``duet`` or ``undecided``, which means turns.
    pairs : tuple of int
        In turns, and as a duet.
    turns_sd, duet_sd : float
        Standard deviation of the log ratio that a minute of pairs leaves in their mean.
    minutes, low, high : float
        Minutes that a duet needs over those that turns need for the same precision, with the interval at
        95 %; NaN where too little is known.
    """

    baseline: str
    verdict: str
    pairs: tuple[int, int]
    turns_sd: float
    duet_sd: float
    minutes: float
    low: float
    high: float

    @property
    def mode(self) -> Mode:
        """What is measured by."""
        return Mode.DUET if self.verdict == Mode.DUET else Mode.TURNS

    @property
    def sentence(self) -> str:
        """What is known and what follows, without a full stop."""
        chosen = {"duet": "a duet is chosen", "turns": "turns are chosen"}.get(
            self.verdict, "undecided, so the sides take turns"
        )
        count = f"{self.pairs[0]} pairs in turns, {self.pairs[1]} as duets"
        if math.isnan(self.minutes):
            return f"mode: too few runs of `{self.baseline}` beside itself to choose by ({count}): {chosen}"
        sds = f"{100 * self.turns_sd:.2g} % in turns and {100 * self.duet_sd:.2g} % as a duet"
        interval = f"95 % interval {self.low:.2g} to {self.high:.2g}"
        return (
            f"mode: the log ratio of `{self.baseline}` beside itself has a standard deviation, for a minute "
            f"of runs, of {sds}; a duet needs {self.minutes:.2g} times the minutes ({interval}, {count}): "
            f"{chosen}"
        )


def trial_of(terms: Terms, baseline: Contender, turns: Launches, duets: Launches) -> str:
    """Measure the baseline beside itself, in turns and as a duet, one pair after the other.

    Parameters
    ----------
    terms : Terms
        How it is measured; a trial takes a part of the budget.
    baseline : Contender
        Command.
    turns, duets : Launches
        What launches runs in each mode.

    Returns
    -------
    str
        JSON: for each mode its pairs, as values of both runs and the time they took [s].

    Raises
    ------
    RunError
        If the command, or a line around it, fails.
    CapabilityError
        If the metric cannot be measured here.
    """
    ends_s = time.monotonic() + BUDGET_SHARE * terms.extent.budget_s
    found: dict[Mode, list[Pair]] = {mode: [] for mode in _MODES}
    _execute_line(terms, baseline, "setup")
    try:
        for number in range(-1, MOST_PAIRS):
            for mode in _MODES if number % 2 else reversed(_MODES):
                began_s = time.monotonic()
                values = _pair(terms, baseline, duets if mode is Mode.DUET else turns, (mode, number))
                if number >= 0 and all(values):
                    found[mode].append((*values, time.monotonic() - began_s))
            if time.monotonic() > ends_s:
                break
    finally:
        _execute_line(terms, baseline, "cleanup")
    return json.dumps({"baseline": baseline.name, **{str(mode): pairs for mode, pairs in found.items()}})


def _execute_line(terms: Terms, baseline: Contender, name: str) -> None:
    """Execute a line around the runs, for no longer than a run may take."""
    execute_line(getattr(baseline.hooks, name), f"--{name}", baseline.folder, terms.longest_run_s)


def _pair(
    terms: Terms, baseline: Contender, launches: Launches, place: tuple[Mode, int]
) -> tuple[float, float]:
    mode, number = place
    entries = [
        (baseline, 2 * (number + 1) + side, layout_of(terms, (side, 0, 2 * (number + 1) + side)))
        for side in (0, 1)
    ]
    if mode is Mode.DUET:
        for _ in entries:
            _execute_line(terms, baseline, "prepare")
        outcomes = launches.execute_together(entries)
        for _ in entries:
            _execute_line(terms, baseline, "conclude")
    else:
        outcomes = []
        for entry in entries:
            _execute_line(terms, baseline, "prepare")
            outcomes.append(launches.execute(*entry))
            _execute_line(terms, baseline, "conclude")
    for outcome in outcomes:
        launches.judge(baseline, outcome)
    first, second = (float(outcome.value(terms.metric.quantity) or 0) for outcome in outcomes)
    return first, second


def choice_of(trial: str, seed: int) -> Choice:
    """Judge a trial.

    Of two identical commands the log ratio is 0, so each pair says how far off it is. A mode needs minutes in
    proportion to the variance of a pair and to the time it takes.

    Parameters
    ----------
    trial : str
        As `trial_of` gives it.
    seed : int
        Of the comparison.

    Raises
    ------
    ValueError
        If it is no trial.
    """
    document: Mapping[str, Any] = json.loads(trial)
    errors, times_s = {}, {}
    for mode in _MODES:
        pairs = [(float(first), float(second), float(took)) for first, second, took in document[str(mode)]]
        errors[mode] = np.array([difference_of(first, second) for first, second, _ in pairs])
        times_s[mode] = mean(np.array([took for *_, took in pairs])) if pairs else math.nan
    of = scale_ratio(
        errors[Mode.DUET], errors[Mode.TURNS], LEVEL, generator(seed, Purpose.RESAMPLING, len(_MODES))
    )
    slower = times_s[Mode.DUET] / times_s[Mode.TURNS]
    sds = [
        math.sqrt(float((errors[mode] ** 2).mean()) * times_s[mode] / _MINUTE_S)
        if errors[mode].size
        else math.nan
        for mode in _MODES
    ]
    minutes, low, high = (slower * each**2 for each in (of.ratio, of.low, of.high))
    verdict = "undecided"
    if of.is_known and high < 1:
        verdict = str(Mode.DUET)
    elif of.is_known and low > 1:
        verdict = str(Mode.TURNS)
    counts = (errors[Mode.TURNS].size, errors[Mode.DUET].size)
    return Choice(str(document["baseline"]), verdict, counts, sds[0], sds[1], minutes, low, high)
