"""Two results of the communication study side by side, regime by regime."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from steelyard.errors import AnalysisError, UsageError
from steelyard.studies.communication.canary_groups import GAP_RATIO, canary_ns
from steelyard.studies.communication.cells import cell_records
from steelyard.studies.communication.findings.compare import MARGIN, compare
from steelyard.studies.communication.labels import label_of
from steelyard.studies.communication.recorded import read_recorded
from steelyard.studies.communication.size_text import size_range
from steelyard.studies.study_plan import plan_of_study

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from steelyard.studies.communication.findings.compare import Comparison
    from steelyard.studies.communication.trace import Trace

DIFFERENT: Final = "different"

Way = tuple[str, str]
"""Transport and link."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One transport in one state, in both results.

    Parameters
    ----------
    label : str
        Transport, link, state.
    comparison : Comparison
        Regime by regime.
    """

    label: str
    comparison: Comparison


@dataclass(frozen=True, slots=True)
class ResultComparison:
    """Two results.

    Parameters
    ----------
    compared : tuple of Compared
        What both have.
    alone : tuple of str
        What one has, or what is too short to compare, with the reason.
    """

    compared: tuple[Compared, ...]
    alone: tuple[str, ...]

    @property
    def differs(self) -> bool:
        """Whether anything is different."""
        return any(each.comparison.differs for each in self.compared)

    @property
    def is_slower(self) -> bool:
        """Whether messages of any regime cost more in the second result."""
        return any(
            level.verdict == DIFFERENT and level.difference.value > 0
            for each in self.compared
            for level in each.comparison.levels
        )

    @property
    def is_undecided(self) -> bool:
        """Whether anything is undecided, or was not compared."""
        return bool(self.alone) or any(each.comparison.is_undecided for each in self.compared)

    def document(self) -> dict[str, Any]:
        """Give it as JSON values."""
        content: dict[str, Any] = {
            "schema": "steelyard/communication-differences/1",
            "differs": self.differs,
            "compared": [{"what": each.label, **asdict(each.comparison)} for each in self.compared],
            "alone": list(self.alone),
        }
        return {key: _finite(value) for key, value in content.items()}

    def lines(self) -> Iterator[str]:
        """Give it as text."""
        for each in self.compared:
            yield f"{each.label}: {_summary(each.comparison)}"
            yield from _lines(each.comparison)
        for name in self.alone:
            yield f"not compared: {name}"


def compare_folders(first: Path, second: Path, margin: float | None = None) -> ResultComparison:
    """Compare two results of the communication study.

    `margin` is the largest relative difference of a cost that counts as none; ``None`` takes `MARGIN`.

    Raises
    ------
    DataError
        If a folder is of another study, or damaged.
    UsageError
        If they have no transport in a common state of the host.
    """
    sides = [_states(folder) for folder in (first, second)]
    compared, alone = [], []
    for one, other in pairs_of(list(sides[0]), list(sides[1])):
        if one is None or other is None:
            alone.append(f"{_label(one or other)} is in only one result")
            continue
        label = _label(one) if one == other else f"{_label(one)} -> {_label(other)}"
        pair = alike(sides[0][one], sides[1][other])
        if pair is None:
            alone.append(
                f"{label}: the CPUs were near to each other in one result and far apart in the other"
            )
            continue
        try:
            compared.append(Compared(label, compare(*pair, margin=MARGIN if margin is None else margin)))
        except AnalysisError as error:
            alone.append(f"{label}: {error.message}")
    if not compared:
        message = f"`{first}` and `{second}` have nothing in common to compare: {'; '.join(alone)}"
        raise UsageError(message, hint="measure the same transports, with the host in the same state")
    return ResultComparison(tuple(compared), tuple(alone))


def pairs_of(first: Sequence[Way], second: Sequence[Way]) -> list[tuple[Way | None, Way | None]]:
    """Lay what two results measured beside each other.

    The same transport over the same link belongs together; and, where nothing is the same, a transport that
    each result measured over one link: what the link is worth is then the question.

    Parameters
    ----------
    first, second : sequence of (str, str)
        Transport and link, each once.

    Examples
    --------
    >>> pairs_of([("tcp", "a"), ("unix", "none")], [("tcp", "b")])
    [(('tcp', 'a'), ('tcp', 'b')), (('unix', 'none'), None)]
    """
    found: list[tuple[Way | None, Way | None]] = [(each, each) for each in first if each in second]
    left, right = ([each for each in side if (each, each) not in found] for side in (first, second))
    for one in left:
        links = [each for each in left if each[0] == one[0]]
        others = [each for each in right if each[0] == one[0]]
        found.append((one, others[0] if len(links) == len(others) == 1 else None))
    taken = [other for _, other in found]
    return found + [(None, each) for each in right if each not in taken]


def _label(way: Way | None) -> str:
    transport, link = way or ("", "")
    return label_of({"transport": transport, "link": link})


def alike(
    first: Sequence[Sequence[Trace]], second: Sequence[Sequence[Trace]]
) -> tuple[Sequence[Trace], Sequence[Trace]] | None:
    """Choose the state of each result in which they are compared.

    Parameters
    ----------
    first, second : sequence of sequence of Trace
        The replications of each state of the two results.

    Returns
    -------
    tuple or None
        The two states alike by the canary with the most replications: the fewer of the two count first,
        then both together. ``None`` where no state of one is alike to one of the other.
    """
    pairs = [(one, other) for one in first for other in second if not is_apart(one, other)]
    return max(
        pairs,
        key=lambda pair: (min(map(len, pair)), sum(map(len, pair))),
        default=None,
    )


def is_apart(first: Sequence[Trace], second: Sequence[Trace]) -> bool:
    """Tell whether the canary says that the host was in two states."""
    medians = [
        float(np.median(known))
        for traces in (first, second)
        if (known := [value for value in map(canary_ns, traces) if value is not None])
    ]
    return len(medians) == 2 and max(medians) > GAP_RATIO * min(medians)  # noqa: PLR2004 - two results


def _states(folder: Path) -> dict[Way, list[list[Trace]]]:
    """Give the traces of each transport and link, by the state that they were measured in.

    Names of states hold within one result: of two results the canary says whether states are alike.
    """
    plan = plan_of_study(folder, "communication")
    found: dict[Way, list[list[Trace]]] = {}
    for record in cell_records(read_recorded(folder, plan)):
        levels = record.runs[0].levels
        for state in record.states:
            traces = [run.trace for run in record.runs if run.state == state and run.trace is not None]
            if traces:
                found.setdefault((levels["transport"], levels["link"]), []).append(traces)
    return found


def _finite(value: Any) -> Any:
    """Replace numbers that JSON cannot say by nothing."""
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _summary(comparison: Comparison) -> str:
    if comparison.is_single:
        return (
            "one run each: how much launches differ is not known, so nothing is claimed "
            "(measure both with `--replications 3`)"
        )
    return "different" if comparison.differs else "nothing is certainly different"


def _lines(comparison: Comparison) -> Iterator[str]:
    for pair in comparison.boundaries:
        places = [f"{side.at:.0f} B" if side is not None else "none" for side in (pair.first, pair.second)]
        yield f"  switch {places[0]} -> {places[1]}: {pair.verdict}"
    for level in comparison.levels:
        change = level.difference
        yield (
            f"  {size_range(level.low, level.high)}: cost {100 * change.value:+.2f} % "
            f"({100 * change.low:+.2f} to {100 * change.high:+.2f} %): {level.verdict}"
        )
        for each in comparison.coefficients:
            if each.low == level.low and each.verdict == DIFFERENT:
                share = f"{100 * each.difference.value:+.2f} % of the cost"
                yield f"    {each.coefficient} {each.first:.5g} -> {each.second:.5g} ({share})"
