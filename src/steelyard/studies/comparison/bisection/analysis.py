"""Analysis of a recorded bisection: the answer, each commit of interest, and what was known on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.analyse.culprit.search import Answer
from steelyard.errors import UsageError
from steelyard.model import Estimate, Evidence, Finding
from steelyard.model.finding import FindingSet
from steelyard.record.interim_log import CANDIDATES_NAME, NO_CANDIDATE
from steelyard.record.ledger import LEDGER_NAME
from steelyard.record.seal import hash_tables
from steelyard.record.tables import RUNS_NAME, write_tables
from steelyard.studies.analysis_options import chosen_options
from steelyard.studies.analysis_parts import RUNS, finite, with_unique_ids
from steelyard.studies.comparison.bisection.outcome import (
    VERDICTS,
    advice_of,
    effect_of,
    further_s,
    measured_text,
    other_steps,
    own_step,
    rows_of,
    sentence_of,
    short_id,
    steps_of,
    suspects_of,
    whole_effect,
)
from steelyard.studies.comparison.bisection.replay import replay
from steelyard.studies.comparison.bisection.terms import STUDY
from steelyard.studies.finding_tables import write_claim_tables
from steelyard.studies.study_plan import plan_of_study

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from steelyard.studies.analysis_options import AnalysisOptions
    from steelyard.studies.comparison.bisection.outcome import Effect, Row
    from steelyard.studies.comparison.bisection.replay import Bisection

METHOD_VERSION: Final = 2
FINDINGS_NAME: Final = "findings.json"
TABLES: Final = {"culprit": "culprit", "commit": "commits", "change": "changes", "decision": "decisions"}


def analyse(result: Path, options: AnalysisOptions | None = None) -> FindingSet:
    """Compute the findings of a bisection; write ``findings.json`` and ``tables/*.csv``.

    Raises
    ------
    UsageError
        If options ask for what no bisection depends on.
    """
    plan = plan_of_study(result, STUDY, "no bisection")
    if options is not None and options != chosen_options(plan):
        message = "`--margin` and `--tolerance` change nothing in a bisection: its search depended on them"
        raise UsageError(message, hint="leave them out")
    if (result / LEDGER_NAME).exists() and not (result / RUNS_NAME).exists():
        write_tables(result)
    found = replay(result, plan)
    findings = FindingSet(plan.study, plan.id, METHOD_VERSION, hash_tables(result), findings_of(found))
    write_claim_tables(result, findings, TABLES)
    findings.write(result / FINDINGS_NAME)
    return findings


METHOD: Final = "posterior over commits, pairwise t likelihood in blocks, confirmed beside the parent"
LEVEL_METHOD: Final = "pseudomedian of differences in blocks"


def findings_of(found: Bisection) -> tuple[Finding, ...]:
    """Give the answer, one per commit that was measured or is suspected, per step and per decision."""
    return tuple(with_unique_ids([_culprit(found), *_commits(found), *_changes(found), *_decisions(found)]))


def _culprit(found: Bisection) -> Finding:
    asked, known = found.asked, found.known
    suspects = suspects_of(found) if known.evidence is not None else []
    best = max(suspects, key=lambda at: known.weights[at], default=None)
    estimates = {}
    if known.evidence is not None:
        estimates["probability"] = Estimate(
            100 * known.probability,
            "percent",
            METHOD,
            units=found.search.blocks.count,
            measurements=found.runs,
        )
        estimates["several"] = Estimate(
            100 * known.several, "percent", METHOD, units=found.search.blocks.count, measurements=found.runs
        )
    if (own := own_step(found)) is not None:
        step, blocks = own
        beside = effect_of(step.size, step.sd, asked.margin.level)
        estimates["own_step"] = _ratio(beside, asked.margin.level, blocks, 2 * blocks)
    if (effect := whole_effect(found)) is not None:
        blocks = found.search.blocks.count
        estimates["ratio"] = _ratio(effect, asked.margin.level, blocks, 2 * blocks)
    return Finding(
        f"culprit/{asked.good}/{asked.bad}".replace(" ", "-"),
        "culprit",
        {"good": asked.good, "bad": asked.bad, "command": asked.command, "metric": str(asked.metric)},
        VERDICTS[known.answer],
        estimates,
        {
            "sentence": sentence_of(found),
            "advice": advice_of(found),
            "measured": measured_text(found),
            "commit": None if best is None else found.log.commits[best].id,
            "subject": None if best is None else found.log.commits[best].subject,
            "suspects": len(suspects),
            "confidence": asked.margin.level,
            "commits": len(found.log.commits),
            "commits_measured": len(found.search.blocks.candidates),
            "commits_failed": len(found.search.failed),
            "blocks": found.search.blocks.count,
            "runs": found.runs,
            "further_s": finite(further_s(found)),
            "end": found.log.end,
            "elapsed_s": found.log.elapsed_s,
        },
        (
            Evidence(RUNS, {}, ("block", "role", asked.metric.quantity), "logarithms of ratios in blocks"),
            Evidence(CANDIDATES_NAME, {}, ("steps",), "commit of each block"),
        ),
        found.notes,
    )


def _ratio(effect: Effect, level: float, blocks: int, runs: int) -> Estimate:
    return Estimate(
        finite(effect.ratio),
        "ratio",
        LEVEL_METHOD,
        effect.low,
        effect.high,
        level,
        blocks,
        runs,
        guaranteed=False,
    )


def _commits(found: Bisection) -> Iterator[Finding]:
    for row in rows_of(found):
        commit = found.log.commits[row.commit]
        estimates = {
            "probability": Estimate(
                100 * row.probability,
                "percent",
                METHOD,
                units=found.search.blocks.count,
                measurements=found.runs,
            )
        }
        blocks = 0
        if row.level is not None:
            effect, blocks = (
                effect_of(row.level.place, row.level.sd, found.asked.margin.level),
                row.level.blocks,
            )
            estimates["ratio"] = _ratio(effect, found.asked.margin.level, blocks, 3 * blocks)
        yield Finding(
            f"commit/{commit.id}",
            "commit",
            {"commit": short_id(found, row.commit), "subject": commit.subject},
            _verdict(found, row),
            estimates,
            {"id": commit.id, "place": row.commit + 1, "blocks": blocks, "failure": row.failure},
            (Evidence(CANDIDATES_NAME, {"commit": commit.id}, ("steps",), "blocks of this commit"),),
        )


def _verdict(found: Bisection, row: Row) -> str:
    known = found.known
    if known.evidence is not None and known.suspects[row.commit] and known.answer is Answer.FOUND:
        return "culprit"
    if row.failure is not None:
        return "cannot be measured"
    if row.level is None:
        return "not measured"
    if known.answer is Answer.SEVERAL:
        return "measured"
    has_change = float(known.weights[found.search.history.contains(row.commit)].sum()) / max(
        float(known.weights.sum()), 1e-300
    )
    if has_change >= found.asked.margin.level:
        return "with the change"
    return "without the change" if has_change <= 1 - found.asked.margin.level else "open"


def _changes(found: Bisection) -> Iterator[Finding]:
    level = found.asked.margin.level
    for step in (*steps_of(found), *other_steps(found)):
        before, after = short_id(found, step.before), short_id(found, step.after)
        yield Finding(
            f"change/{before}/{after}".replace(" ", "-"),
            "change",
            {"before": before, "after": after, "subject": found.log.commits[step.after].subject},
            "one commit" if step.after - step.before == 1 else "between",
            {
                "ratio": _ratio(
                    effect_of(step.size, step.sd, level), level, found.search.blocks.count, found.runs
                )
            },
            {"commits": step.after - step.before},
            (Evidence(CANDIDATES_NAME, {}, ("steps",), "levels of measured commits"),),
        )


def _decisions(found: Bisection) -> Iterator[Finding]:
    for at, step in enumerate(found.steps, 1):
        name = "both ends" if step.commit == NO_CANDIDATE else short_id(found, step.commit)
        chance = Estimate(
            100 * step.probability, "percent", METHOD, units=step.blocks, measurements=step.blocks
        )
        yield Finding(
            f"decision/{at}",
            "decision",
            {"number": str(at), "commit": name, "favourite": short_id(found, step.favourite)},
            "descriptive",
            {"probability": chance},
            {"blocks": step.blocks},
            (Evidence(CANDIDATES_NAME, {}, ("steps",), "commit of each block"),),
        )
