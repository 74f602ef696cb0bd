"""One verdict from several results of one comparison, of the same host or of several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.comparison.equivalence import Margin
from steelyard.analyse.comparison.sequential import Design
from steelyard.errors import UsageError
from steelyard.record.provenance import PROVENANCE_NAME, read_provenance
from steelyard.studies.comparison.contender import short
from steelyard.studies.comparison.hosts.merged import Question, Sample, of_results
from steelyard.studies.comparison.replay import pairs_by_host, replay
from steelyard.studies.comparison.terms import STUDY
from steelyard.studies.study_plan import plan_of_study

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from steelyard.studies.comparison.hosts.merged import Merged
    from steelyard.studies.comparison.outcome import Comparison

MERGED_SCHEMA: Final = "steelyard/merged-comparison/1"
_UNKNOWN_HOST: Final = "unknown"


@dataclass(frozen=True, slots=True)
class _Result:
    """A recorded comparison, and what decides whether it asked the same."""

    name: str
    found: Comparison
    question: dict[str, str]
    samples: tuple[tuple[Sample, ...], ...]
    """For each comparison, one of each host."""


def merge(folders: Sequence[Path], names: Sequence[str], margin: float | None = None) -> list[Merged]:
    """Give one verdict for each comparison that all results contain.

    A result counts with the inverse of the variance of its log-ratio. Those of one host are taken to have one
    true ratio. From three hosts on the answer is about the mean over hosts like these, by Hartung and Knapp;
    two hosts are taken to have one ratio too, and where they disagree nothing is claimed.

    Parameters
    ----------
    folders : sequence of Path
        Result folders.
    names : sequence of str
        What they are called.
    margin : float or None
        Largest relative difference that counts as none; that of the first result unless given.

    Raises
    ------
    UsageError
        If they do not ask the same question.
    AnalysisError
        If one has too few runs.
    """
    results = [_read(folder, name) for folder, name in zip(folders, names, strict=True)]
    for other in results[1:]:
        _require_same_question(results[0], other)
    terms = results[0].found.terms
    allowed = Margin(terms.margin.relative if margin is None else margin, terms.margin.level)
    merged = []
    for at, claim in enumerate(results[0].found.claims):
        own = allowed if margin is not None else Margin(claim.margin, allowed.level)
        design = Design(own, claim.family, terms.statistics[at % len(terms.statistics)])
        question = Question(design, (claim.baseline, claim.contender), claim.metric)
        merged.append(of_results(question, [sample for each in results for sample in each.samples[at]]))
    return merged


def _read(folder: Path, name: str) -> _Result:
    plan = plan_of_study(folder, STUDY, "no comparison")
    found = replay(folder, plan)
    has_provenance = (folder / PROVENANCE_NAME).exists()
    provenance = read_provenance(folder) if has_provenance else None
    question: dict[str, str] = {
        "metric": str(found.terms.metric),
        "statistic": ",".join(map(str, found.terms.statistics)),
        "isolation": found.terms.isolation,
        "mode": str(found.terms.mode),
        "layout": found.terms.layout,
        "comparisons": "; ".join(f"{claim.contender} against {claim.baseline}" for claim in found.claims),
        "commands": "; ".join(f"{each.name}: {each.text}" for each in found.contenders),
    }
    if provenance is not None:
        question |= {f"program of {name}": digest for name, digest in provenance.programs.items()}
        question |= {
            f"build of {build['name']}": f"{build['tree']} by {build['command']}"
            for build in provenance.builds
        }
    host = (provenance.host_id if provenance is not None else "") or _UNKNOWN_HOST
    samples = []
    for claim, by_host in zip(found.claims, pairs_by_host(folder, plan), strict=True):
        if found.terms.hosts:
            samples.append(tuple(Sample(name, each, blocks) for each, blocks in by_host.items()))
        else:
            (blocks,) = by_host.values() or (np.empty(0),)
            samples.append((Sample(name, host, blocks, claim.verdict),))
    return _Result(name, found, question, tuple(samples))


def _require_same_question(first: _Result, other: _Result) -> None:
    for name in first.question | other.question:
        one, two = (result.question.get(name, "not recorded") for result in (first, other))
        if one != two:
            message = (
                f"cannot merge `{first.name}` and `{other.name}`: they differ in {name}: `{short(one)}`, "
                f"`{short(two)}`"
            )
            hint = (
                "give results of the same commands and builds; `steelyard compare-results A B` lists changes"
            )
            raise UsageError(message, hint=hint, code="usage.other-question")
