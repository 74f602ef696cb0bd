"""A comparison that goes on: what it knows already, and which part of the error is left to it."""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from steelyard.errors import UsageError
from steelyard.model.plan import PLAN_NAME, read_plan
from steelyard.record.interim_log import SPENT
from steelyard.record.ledger import LEDGER_NAME, Ledger
from steelyard.record.tables import read_runs, write_tables
from steelyard.run.redact import HIDDEN
from steelyard.studies.comparison.replay import replayed
from steelyard.studies.comparison.terms import LEVELS, MEASURE, command_count

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from steelyard.analyse.comparison.duel import Duel
    from steelyard.analyse.comparison.interim_schedule import Extent
    from steelyard.model import Plan
    from steelyard.record.provenance import Provenance
    from steelyard.studies.comparison.sample import Run
    from steelyard.studies.comparison.terms import Terms

_LOWEST_LEVEL: Final = 0.5


@dataclass(frozen=True, slots=True)
class Resumed:
    """Where a comparison stands.

    The rest of it is an experiment whose looks spend the error between two fractions. Until the budget was
    used up, error is left, and the level stays. After that the error is spent anew, up to the next whole
    number, and the level is lower by as much again.

    Parameters
    ----------
    runs : tuple of Run
        Those that count, in order of execution.
    duels : tuple of Duel
        Comparisons with all their looks.
    extent : Extent
        Of what is still to come.
    elapsed_s : float
        Time it took so far [s].
    blocks_used : dict
        Blocks of the plan behind the last in which a command was run, by its number.
    """

    runs: tuple[Run, ...]
    duels: tuple[Duel, ...]
    extent: Extent
    elapsed_s: float
    blocks_used: dict[int, int]


def resumed(result: Path, plan: Plan, terms: Terms, budget_s: float | None) -> Resumed:
    """Give where a recorded comparison stands, for one that goes on.

    Parameters
    ----------
    result : Path
        Its folder.
    plan : Plan
        As it would be drawn now.
    terms : Terms
        Of it.
    budget_s : float or None
        Time the rest may take [s]; as long as the first time unless given.

    Raises
    ------
    UsageError
        If it is settled, asks something else, or has no runs or no level left.
    DataError
        If a file is absent or damaged.
    """
    if (planned := read_plan(result / PLAN_NAME)).id != plan.id:
        reason, hint = _what_changed(planned, plan)
        message = f"cannot go on with `{result}`: {reason}"
        raise UsageError(message, hint=hint, code="usage.other-question")
    with Ledger(result / LEDGER_NAME, plan.id) as ledger:
        # A batch is one run, recorded when it has ended. Who was killed had not said yet that it is durable.
        ledger.complete_together(
            [(row.batch, row.attempt) for row in ledger.outcomes() if row.state == "open"]
        )
    write_tables(result)
    measured = replayed(result, plan)
    if not any(duel.is_open for duel in measured.duels):
        message = f"`{result}` is settled: more runs would not change what it says"
        raise UsageError(message, hint="a smaller margin needs a new comparison", code="usage.settled")
    for duel in measured.duels:
        spent = duel.sequence.looks[-1].fraction if duel.sequence.looks else 0.0
        # A budget that was used up leaves nothing, also where its last look was made a little earlier.
        duel.begun = math.ceil(spent) if measured.end == SPENT else spent
    count = command_count(plan)
    used: dict[int, int] = {}
    for row in read_runs(result).select(["cell", "block"]).to_pylist():
        used[row["cell"] % count] = max(used.get(row["cell"] % count, 0), row["block"] + 1)
    # Of a suite, a benchmark that has made all its runs does not keep the others from going on.
    begin = min(
        max(used.get(number, terms.warmup) for number in (duel.baseline, duel.contender))
        for duel in measured.duels
        if duel.is_open
    )
    left = sum(terms.phase_of(block) == MEASURE for block in range(begin, plan.blocks))
    if left < 1:
        message = f"cannot go on with `{result}`: all runs of its plan are made (`--runs-max`)"
        hint = "compare anew with another --seed, then `steelyard compare-results --merge` both"
        raise UsageError(message, hint=hint, code="usage.plan-used-up")
    stages = max(duel.end for duel in measured.duels if duel.is_open)
    level = 1 - (1 - terms.margin.level) * stages
    if level <= _LOWEST_LEVEL:
        message = f"cannot go on with `{result}`: its level would be {100 * level:.3g} %; allowed: {LEVELS}"
        raise UsageError(message, hint="compare anew with a longer --budget", code="usage.level-used-up")
    extent = replace(
        terms.extent,
        blocks_min=min(terms.extent.blocks_min, left),
        blocks_max=left,
        budget_s=terms.extent.budget_s if budget_s is None else budget_s,
        is_strict=budget_s is not None,
    )
    return Resumed(measured.runs, measured.duels, extent, measured.elapsed_s, used)


def _what_changed(planned: Plan, now: Plan) -> tuple[str, str]:
    """Say why two plans are not the same, and what to do."""
    anew = "compare anew with another --out"
    names = [[cell.levels["command"] for cell in plan.cells] for plan in (planned, now)]
    others = sorted(set(names[0]) ^ set(names[1]))
    if others:
        is_gone = others[0] in names[0]
        word = "is not compared any more" if is_gone else "was not compared when it began"
        return f"`{others[0]}` {word}", anew
    changed = [
        key for key in planned.options | now.options if planned.options.get(key) != now.options.get(key)
    ]
    if changed:
        was, is_now = (plan.options.get(changed[0]) for plan in (planned, now))
        return f"`{changed[0]}` was `{was}` when it began and is `{is_now}` now", anew
    elsewhere = "was run in another checkout, which belongs to other variables, tools or a build line"
    for before_cell, after_cell in zip(planned.cells, now.cells, strict=False):
        name, before, after = before_cell.levels["command"], before_cell.execution, after_cell.execution
        if before and after and before.command != after.command:
            return f"`{name}` is run by other words than when it began", anew
        if before != after:
            return f"`{name}` {elsewhere}", f"go on in the environment in which it began, or {anew}"
    return "its order of runs is another one by now", anew


def require_no_secret(result: Path, command_line: Sequence[str]) -> None:
    """Refuse to go on by a command line of which a secret was not recorded.

    Raises
    ------
    UsageError
        Naming the word, if there is one.
    """
    word = next((each for each in command_line if HIDDEN in each), None)
    if word is not None:
        message = (
            f"cannot go on with `{result}`: its command line had a secret, which is not recorded: `{word}`"
        )
        hint = (
            "let the program read the secret from a variable or a file, and compare anew with another --out; "
            f"`steelyard report {shlex.quote(str(result))}` says what the runs so far tell"
        )
        raise UsageError(message, hint=hint, code="usage.secret")


def require_same_programs(result: Path, earlier: Provenance, now: Provenance) -> None:
    """Refuse to go on with programs that have changed.

    Raises
    ------
    UsageError
        If one is not what it was.
    """
    builds = [{str(build["name"]): str(build["tree"]) for build in each.builds} for each in (earlier, now)]
    known = [each.programs | trees for each, trees in zip((earlier, now), builds, strict=True)]
    changed = [name for name in known[0] | known[1] if known[0].get(name) != known[1].get(name)]
    if changed:
        message = f"cannot go on with `{result}`: the program of `{changed[0]}` has changed since"
        raise UsageError(message, hint="compare anew with another --out", code="usage.other-question")
