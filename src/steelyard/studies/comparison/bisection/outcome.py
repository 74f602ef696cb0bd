"""What a bisection found, as a sentence, as text and as a document."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import scipy  # `scipy.special` is loaded when it is first used: start-up time

from steelyard.analyse.comparison.signed_rank import pseudomedian
from steelyard.analyse.culprit.evidence import PER_PAIR
from steelyard.analyse.culprit.search import Answer, Step
from steelyard.run.progress import format_left
from steelyard.studies.comparison.claim import percent, signed_percent
from steelyard.units import format_count

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.analyse.culprit.search import Level
    from steelyard.studies.comparison.bisection.replay import Bisection
    from steelyard.studies.comparison.bisection.terms import Asked

BISECTION_SCHEMA: Final = "steelyard/bisection/1"
SHORT_DIGITS: Final = 9
SHOWN_COMMITS: Final = 8
"""Commits that the text names, the most probable first."""
MOST_NAMED: Final = 3
VERDICTS: Final = {
    Answer.FOUND: "found",
    Answer.SEVERAL: "several",
    Answer.SAME: "equivalent",
    Answer.UNSEEN: "unseen",
    Answer.OPEN: "undecided",
}


@dataclass(frozen=True, slots=True)
class Effect:
    """A ratio with its interval.

    Parameters
    ----------
    ratio, low, high : float
        Over the good end.
    """

    ratio: float
    low: float
    high: float


def effect_of(place: float, sd: float, level: float) -> Effect:
    """Give a ratio from its logarithm with the standard error of that."""
    half = float(scipy.special.ndtri((1 + level) / 2)) * sd
    return Effect(math.exp(place), math.exp(place - half), math.exp(place + half))


def whole_effect(found: Bisection) -> Effect | None:
    """Give bad over good; ``None`` where too little was measured."""
    known, level = found.known, found.asked.margin.level
    if known.evidence is not None:
        last = next(each for each in reversed(found.search.levels(known.evidence)) if is_last(found, each))
        return effect_of(last.place, last.sd, level)
    look = known.look
    if look is None or not (look.low > 0 and math.isfinite(look.high)):
        return None
    return Effect(look.ratio, look.low, look.high)


def is_last(found: Bisection, level: Level) -> bool:
    """Whether a level is that of the bad end."""
    return level.commit == len(found.log.commits) - 1


def suspects_of(found: Bisection) -> list[int]:
    """Give the commits that are called the culprit: the most probable class."""
    return [int(at) for at in np.flatnonzero(found.known.suspects)]


def short_id(found: Bisection, commit: int) -> str:
    """Give the name of a commit for people."""
    return found.log.commits[commit].id[:SHORT_DIGITS] if commit >= 0 else found.asked.good


def changed(asked: Asked, ratio: float) -> str:
    """Say by how much and in which direction.

    Examples
    --------
    >>> from steelyard.analyse.comparison.equivalence import Margin
    >>> from steelyard.studies.comparison.bisection.terms import Asked
    >>> from steelyard.studies.comparison.terms import Metric
    >>> changed(Asked(Metric.WALL, Margin(), "a", "b", "./prog"), 1.05)
    '5 % slower'
    """
    more, less = (
        ("larger in memory", "smaller in memory") if asked.metric == "memory" else ("slower", "faster")
    )
    return f"{percent(abs(ratio - 1))} {more if ratio >= 1 else less}"


def sentence_of(found: Bisection) -> str:
    """Give the answer in one sentence, without a full stop."""
    asked, known = found.asked, found.known
    program, effect = f"`{asked.command}`", whole_effect(found)
    ends = f"between {asked.good} and {asked.bad}"
    if known.answer is Answer.SAME:
        return f"{program} takes the same {ends} within {percent(asked.margin.relative)}: no commit to find"
    if known.evidence is None or effect is None:
        seen = f"no difference of {program} {ends} was seen in {format_count(_blocks(found), 'block')}"
        if known.answer is Answer.UNSEEN:
            return seen + (f" (interval {_interval(effect)})" if effect else "")
        return f"not decided: {seen} so far" + (f" (interval {_interval(effect)})" if effect else "")
    conditions = f"{100 * asked.margin.level:.12g} % interval {_interval(effect)}, {asked.metric.words}"
    if known.answer is Answer.SEVERAL or known.several > known.probability:
        doubt = "" if known.answer is Answer.SEVERAL else "not decided: probably "
        total = f"in all it is {changed(asked, effect.ratio)}, {conditions}"
        return f"{doubt}more than one commit changed {program} ({total}): {_listed(found, steps_of(found))}"
    suspects = suspects_of(found)
    made = f"made {program} {changed(asked, effect.ratio)}"
    chance = f"probability {100 * known.probability:.1f} %"
    who = f"`{short_id(found, suspects[0])}`"
    if len(suspects) > 1:
        who = f"one of {len(suspects)} commits, {_named(found, suspects)},"
        lacking = sum(at in found.search.failed for at in suspects)
        chance += f", {lacking} of them cannot be measured" if lacking else ""
    doubt = "" if known.answer is Answer.FOUND else "not decided: perhaps "
    return f"{doubt}{who} {made} ({chance}, {conditions}){_beside_parent(found)}"


def own_step(found: Bisection) -> tuple[Step, int] | None:
    """Give the step at the suspects, from the blocks of them beside their parent, and how many there are."""
    known, search = found.known, found.search
    if known.evidence is None:
        return None
    for pair in search.history.sides(known.suspects, frozenset(search.failed)):
        if values := search.blocks.steps.get(pair):
            size, sd = (
                pseudomedian(np.array(values)),
                known.evidence.scale / math.sqrt(len(values) * PER_PAIR),
            )
            return Step(*pair, size, sd), len(values)
    return None


def other_steps(found: Bisection) -> list[Step]:
    """Give the steps beside that at the suspects, where one commit is called the culprit."""
    known = found.known
    if known.evidence is None or known.answer is not Answer.FOUND:
        return []
    suspects = suspects_of(found)
    steps = found.search.steps(known.evidence)
    return [step for step in steps if step.before >= suspects[-1] or step.after < suspects[0]]


def _beside_parent(found: Bisection) -> str:
    """Say what the suspects are beside their parent, and what else changes between both ends."""
    said = ""
    level = found.asked.margin.level
    if (own := own_step(found)) is not None:
        effect = effect_of(own[0].size, own[0].sd, level)
        where = "beside its parent"
        if len(suspects_of(found)) > 1:
            where = f"{short_id(found, own[0].after)} beside {short_id(found, own[0].before)}"
        said = f"; {where} {signed_percent(effect.ratio)} ({_interval(effect)})"
    if others := other_steps(found):
        said += f"; other commits change it too: {_listed(found, others)}"
    return said


def _blocks(found: Bisection) -> int:
    return found.search.blocks.count


def _interval(effect: Effect) -> str:
    return f"{signed_percent(effect.low)} to {signed_percent(effect.high)}"


def _named(found: Bisection, commits: list[int]) -> str:
    if len(commits) <= MOST_NAMED:
        return " ".join(f"`{short_id(found, at)}`" for at in commits)
    return f"`{short_id(found, commits[0])}` to `{short_id(found, commits[-1])}`"


def steps_of(found: Bisection) -> list[Step]:
    """Give the steps, the largest first, where there probably is more than one."""
    known = found.known
    is_several = known.evidence is not None and known.several > known.probability
    return found.search.steps(known.evidence) if is_several and known.evidence is not None else []


def _listed(found: Bisection, steps: list[Step]) -> str:
    said = []
    for step in steps[:MOST_NAMED]:
        size = _interval(effect_of(step.size, step.sd, found.asked.margin.level))
        if step.after - step.before == 1:
            # Neighbours were measured beside each other; others are only what the step lies between.
            said.append(f"`{short_id(found, step.after)}` {size}")
        else:
            said.append(f"between {short_id(found, step.before)} and {short_id(found, step.after)} {size}")
    return ", ".join(said) or "no step is known for sure"


def further_s(found: Bisection) -> float | None:
    """Give the time after which the question may be answered [s]; ``None`` where it is or that is unknown."""
    from steelyard.analyse.culprit.choice import Costs  # noqa: PLC0415 - start-up time

    if found.known.answer is not Answer.OPEN:
        return None
    log = found.log
    costs = Costs(log.build_s, max(log.block_s, 1e-4), frozenset(found.search.blocks.candidates))
    seconds = found.search.seconds_left(found.known, costs)
    return seconds if math.isfinite(seconds) and seconds > 0 else None


def measured_text(found: Bisection) -> str:
    """Say how much was measured."""
    commits = len(found.search.blocks.candidates)
    parts = [
        f"{format_count(commits, 'commit')} of {len(found.log.commits)} measured beside both ends",
        f"{format_count(_blocks(found), 'block')} ({format_count(found.runs, 'run')})",
    ]
    if found.search.failed:
        parts.append(f"{len(found.search.failed)} cannot be measured")
    return f"{', '.join(parts)}; {format_left(found.log.elapsed_s)}"


def advice_of(found: Bisection) -> str | None:
    """Say what it would take where it is not decided."""
    if found.known.answer is not Answer.OPEN:
        return None
    seconds = further_s(found)
    if found.log.end == "exhausted":
        return "no measurement is expected to tell them apart: builds differ by as much on their own"
    return None if seconds is None else f"it would take about {format_left(max(seconds, 1))} more"


@dataclass(frozen=True, slots=True)
class Row:
    """A commit for people.

    Parameters
    ----------
    commit : int
        Place in the history.
    probability : float
        That it made the change.
    level : Level or None
        What it takes, where it was measured.
    failure : str or None
        Why it cannot be measured.
    """

    commit: int
    probability: float
    level: Level | None
    failure: str | None


def rows_of(found: Bisection) -> list[Row]:
    """Give the commits that were measured, cannot be measured, or are suspected, in their order."""
    known = found.known
    levels = {} if known.evidence is None else {at.commit: at for at in found.search.levels(known.evidence)}
    failed = found.log.failed or {}
    wanted = {*np.flatnonzero(known.weights >= LEAST_SHOWN).tolist()} if known.evidence is not None else set()
    chosen = sorted({*wanted, *failed, *(at for at in levels if at >= 0)})
    return [Row(at, float(known.weights[at]), levels.get(at), failed.get(at)) for at in chosen]


LEAST_SHOWN: Final = 0.001
"""Probability from which on a commit that was not measured is listed."""


def render(found: Bisection, result: Path) -> str:
    """Give the answer with the most probable commits as text."""
    lines = [sentence_of(found)]
    if (advice := advice_of(found)) is not None:
        lines.append(advice)
    shown = sorted(rows_of(found), key=lambda row: (-row.probability, row.commit))[:SHOWN_COMMITS]
    if found.known.evidence is not None and shown:
        lines += ["", *_table(found, shown)]
    lines += ["", measured_text(found)]
    lines += [f"warning: {note}" for note in found.notes]
    return "\n".join([*lines, f"result {result}", ""])


def _table(found: Bisection, shown: list[Row]) -> list[str]:
    level = found.asked.margin.level
    head = ("commit", "probability", f"against {found.asked.good}", "blocks", "subject")
    rows = [head]
    for row in shown:
        effect, blocks = "not measured", ""
        if row.level is not None:
            seen = effect_of(row.level.place, row.level.sd, level)
            effect, blocks = f"{signed_percent(seen.ratio)} ({_interval(seen)})", str(row.level.blocks)
        elif row.failure is not None:
            effect = "cannot be measured"
        subject = found.log.commits[row.commit].subject
        rows.append((short_id(found, row.commit), f"{100 * row.probability:.1f} %", effect, blocks, subject))
    widths = [max(len(each[at]) for each in rows) for at in range(len(head) - 1)]
    return [
        "  ".join([*(text.ljust(width) for text, width in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in rows
    ]


def as_dict(found: Bisection, result: Path) -> dict[str, Any]:
    """Give it as JSON values."""
    known, effect = found.known, whole_effect(found)
    level = found.asked.margin.level
    commits = []
    for row in rows_of(found):
        seen = None if row.level is None else effect_of(row.level.place, row.level.sd, level)
        commit = found.log.commits[row.commit]
        commits.append(
            {
                "commit": commit.id,
                "subject": commit.subject,
                "place": row.commit,
                "probability": row.probability,
                "effect": None if seen is None else asdict(seen),
                "blocks": 0 if row.level is None else row.level.blocks,
                "failure": row.failure,
            }
        )
    has_suspects, own = known.evidence is not None, own_step(found)
    return {
        "schema": BISECTION_SCHEMA,
        "verdict": VERDICTS[known.answer],
        "sentence": sentence_of(found),
        "culprits": [found.log.commits[at].id for at in suspects_of(found)] if has_suspects else [],
        "probability": known.probability if has_suspects else None,
        "several": known.several,
        "own_step": None if own is None else asdict(effect_of(own[0].size, own[0].sd, level)),
        "confidence": level,
        "effect": None if effect is None else asdict(effect),
        "steps": [
            {
                "before": found.log.commits[step.before].id if step.before >= 0 else None,
                "after": found.log.commits[step.after].id,
                "is_one_commit": step.after - step.before == 1,
                **asdict(effect_of(step.size, step.sd, level)),
            }
            for step in (*steps_of(found), *other_steps(found))
        ],
        "good": found.asked.good,
        "bad": found.asked.bad,
        "metric": str(found.asked.metric),
        "further_s": further_s(found),
        "end": found.log.end,
        "elapsed_s": found.log.elapsed_s,
        "blocks": _blocks(found),
        "runs": found.runs,
        "commits": commits,
        "warnings": list(found.notes),
        "result": str(result),
    }
