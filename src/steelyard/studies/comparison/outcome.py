"""What a comparison found: claims, samples, warnings; and the document that holds all of it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from steelyard.studies.comparison.claim import Claim, claim_of_look
from steelyard.studies.comparison.sample import OUTLIER_MADS, Run, Summary, summarise
from steelyard.studies.comparison.terms import MEASURE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from steelyard.studies.comparison.contender import Contender
    from steelyard.studies.comparison.measuring import Measuring
    from steelyard.studies.comparison.terms import Terms

COMPARISON_SCHEMA: Final = "steelyard/comparison/1"
SHORT_NS: Final = 1_000_000
"""Below, what the kernel does to launch a program is a good part of its time."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything a comparison found.

    Parameters
    ----------
    terms : Terms
        How it was measured and what was promised.
    contenders : tuple of Contender
        Commands.
    summaries : tuple of Summary
        Sample of each command, described.
    claims : tuple of Claim
        One per contender against its baseline.
    looks : tuple of tuple
        Blocks and fraction at each look, per claim: with the runs, everything the bounds depend on.
    runs : tuple of Run
        All of them, warm-up included, in order of execution.
    warnings : tuple of str
        Code and text, for people.
    elapsed_s : float
        Time it took [s].
    end : str
        Why it ended: ``settled``, ``spent`` or ``interrupted``.
    result : Path or None
        Result folder.
    """

    terms: Terms
    contenders: tuple[Contender, ...]
    summaries: tuple[Summary, ...]
    claims: tuple[Claim, ...]
    looks: tuple[tuple[tuple[int, float], ...], ...]
    runs: tuple[Run, ...]
    warnings: tuple[str, ...]
    elapsed_s: float
    end: str
    result: Path | None = None

    @property
    def has_regression(self) -> bool:
        """Whether any contender is slower by more than the margin."""
        return any(claim.is_regression for claim in self.claims)

    def as_dict(self) -> dict[str, Any]:
        """Give JSON values."""
        terms = self.terms
        return {
            "schema": COMPARISON_SCHEMA,
            "verdict": str(self.claims[0].verdict) if len(self.claims) == 1 else None,
            "has_regression": self.has_regression,
            "end": self.end,
            "elapsed_s": self.elapsed_s,
            "claims": [
                claim.as_dict() | {"looks": [list(look) for look in looks]}
                for claim, looks in zip(self.claims, self.looks, strict=True)
            ],
            "commands": [
                {
                    "name": contender.name,
                    "command": contender.text,
                    "words": list(contender.words),
                    "parameters": contender.values,
                    **_numbers(asdict(summary)),
                }
                for contender, summary in zip(self.contenders, self.summaries, strict=True)
            ],
            "terms": {
                "metric": str(terms.metric),
                "unit": "bytes" if terms.metric == "memory" else "ns",
                "margin": terms.margin.relative,
                "level": terms.margin.level,
                "location": str(terms.location),
                "warmup": terms.warmup,
                "runs_min": terms.extent.blocks_min,
                "runs_max": terms.extent.blocks_max,
                "budget_s": terms.extent.budget_s,
                "seed": terms.seed,
                "isolation": terms.isolation,
            },
            "warnings": list(self.warnings),
            "runs": [asdict(run) for run in self.runs],
            "result": None if self.result is None else str(self.result),
        }


def _numbers(values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in values.items()
    }


def conclude(measuring: Measuring, notes: Sequence[str], result: Path | None) -> Comparison:
    """Give what was found by a measuring loop that has ended.

    Parameters
    ----------
    measuring : Measuring
        The loop.
    notes : sequence of str
        Remarks on the machine.
    result : Path or None
        Result folder.
    """
    contenders, terms = measuring.entrants.contenders, measuring.terms
    summaries = tuple(summarise(*measuring.values(contender.number)) for contender in contenders)
    claims = tuple(
        claim_of_look(
            duel.known,
            duel.sequence.design,
            (contenders[duel.baseline].name, contenders[duel.contender].name),
            str(terms.metric),
        )
        for duel in measuring.duels
    )
    end = "interrupted" if measuring.is_interrupted else "spent" if measuring.is_spent else "settled"
    if end == "spent" and all(claim.is_settled for claim in claims):
        end = "settled"
    found = Comparison(
        terms=terms,
        contenders=contenders,
        summaries=summaries,
        claims=claims,
        looks=tuple(
            tuple((look.blocks, look.fraction) for look in duel.sequence.looks) for duel in measuring.duels
        ),
        runs=tuple(measuring.runs),
        warnings=(),
        elapsed_s=measuring.elapsed_s,
        end=end,
        result=result,
    )
    return replace(found, warnings=tuple(_warnings(found, notes)))


def _warnings(found: Comparison, notes: Sequence[str]) -> Iterable[str]:
    yield from (f"machine: {note}" for note in notes)
    if found.contenders[0].words[:2] == ("sh", "-c"):
        yield "shell: every run includes the start of `sh`; nothing is subtracted"
    for contender, summary in zip(found.contenders, found.summaries, strict=True):
        if summary.outliers:
            yield (
                f"outliers: {summary.outliers} of {summary.count} runs of `{contender.name}` lie more than "
                f"{OUTLIER_MADS} median absolute deviations above its median; they are labelled and count"
            )
        missing = sum(
            run.phase == MEASURE and not getattr(run, found.terms.metric.quantity)
            for run in found.runs
            if run.contender == contender.number
        )
        if missing:
            yield (
                f"missing: {missing} runs of `{contender.name}` have no {found.terms.metric.words} or 0; no "
                "comparison uses their blocks"
            )
        failed = sum(run.contender == contender.number and run.status != "completed" for run in found.runs)
        if failed:
            yield f"failures: {failed} runs of `{contender.name}` failed and count, as asked"
        if found.terms.metric == "wall" and summary.median < SHORT_NS:
            yield (
                f"short: runs of `{contender.name}` take less than 1 ms; much of it is the kernel's work to "
                "start a program"
            )
    for claim in found.claims:
        if not claim.low <= claim.mean_ratio <= claim.high and math.isfinite(claim.mean_ratio):
            yield (
                f"mean: by the ratio of geometric means `{claim.contender}` differs by "
                f"{100 * (claim.mean_ratio - 1):+.1f} % from `{claim.baseline}`: outliers, or another shape "
                "of the distribution; `--location mean` judges by it"
            )
