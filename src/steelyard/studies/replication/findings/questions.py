"""The three research questions, answered from verdicts alone.

RQ1: which kinds of experiment replicate on another device? RQ2: does a container help, or does it change
what is measured? RQ3: what makes response times fluctuate?
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from steelyard.studies.analysis_parts import finding
from steelyard.studies.replication.findings.effects import BY_CONTAINER, BY_DEVICE, BY_ROLES, BY_STORAGE
from steelyard.studies.replication.findings.verdicts import Holding

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from steelyard.model import Finding

KINDS: Final = {
    "e1": "micro benchmarks",
    "e2": "monitoring overhead",
    "e3": "web service with a database",
    "e4": "macro benchmark",
}
"""What each experiment is an example of."""

ELSEWHERE: Final = (BY_DEVICE, BY_ROLES, BY_STORAGE)
"""Comparisons that say whether a result holds elsewhere: other devices, roles on other devices, storages."""


BUSY: Final = "measured beside other load"
"""Warning of answers from a machine that was not quiet."""


def question_findings(findings: Sequence[Finding]) -> Iterator[Finding]:
    """Give the answers from verdicts alone: per kind of experiment for RQ1 and RQ2, per setting for RQ3."""
    is_busy = any(each.claim == "quiet_machine" and each.verdict == "not quiet" for each in findings)
    for each in _answers(findings):
        yield replace(each, warnings=(BUSY,)) if is_busy else each


def _answers(findings: Sequence[Finding]) -> Iterator[Finding]:
    compared = [each for each in findings if each.claim == "comparison"]
    failed = [each for each in findings if each.claim == "failed_benchmark"]
    measured = {each.subject["experiment"] for each in findings if each.claim == "cell"}
    for experiment, kind in KINDS.items():
        own = [each for each in compared if each.subject["experiment"] == experiment]
        fails = [each for each in failed if each.subject["experiment"] == experiment]
        if experiment in measured or fails:
            yield _elsewhere(experiment, kind, own, fails)
            yield _contained(experiment, kind, own, fails)
    for tree in findings:
        if tree.claim == "cause_tree":
            yield _fluctuation(tree)


def _elsewhere(experiment: str, kind: str, own: Sequence[Finding], failed: Sequence[Finding]) -> Finding:
    """Answer RQ1 for one kind: replicates only where every comparison is equivalent."""
    chosen = [each for each in own if each.subject["effect"] in ELSEWHERE]
    effects = list(dict.fromkeys(each.subject["effect"] for each in chosen))
    verdict = _overall(chosen, ("replicates", "does not replicate", "undecided"), "no other place")
    if failed and not chosen:
        verdict = "fails"
    return _answer("RQ1", experiment, kind, verdict, (chosen, failed), {"held_against": ", ".join(effects)})


def _contained(experiment: str, kind: str, own: Sequence[Finding], failed: Sequence[Finding]) -> Finding:
    """Answer RQ2 for one kind: unchanged only where every comparison is equivalent."""
    chosen = [each for each in own if each.subject["effect"] == BY_CONTAINER]
    verdict = _overall(chosen, ("unchanged", "changed", "undecided"), "no container")
    steadier = [each for each in chosen if _is_less(each, "second", "first")]
    wilder = [each for each in chosen if _is_less(each, "first", "second")]
    facts = {"steadier": len(steadier), "less_steady": len(wilder)}
    inside = [each for each in failed if each.subject["setting"].endswith("container")]
    return _answer("RQ2", experiment, kind, verdict, (chosen, inside), facts)


def _is_less(each: Finding, one: str, other: str) -> bool:
    """Tell whether runs of one side scatter less than half as much as those of the other."""
    first, second = (each.facts.get(f"{side}_cv_percent") for side in (one, other))
    return isinstance(first, float) and isinstance(second, float) and 2 * first < second


def _overall(chosen: Sequence[Finding], words: tuple[str, str, str], otherwise: str) -> str:
    """Judge all by one word: alike only if all are, apart if any is, else undecided.

    Where the sides ran different versions of a program, the difference may be that of the versions: such a
    comparison decides nothing.
    """
    if not chosen:
        return otherwise
    verdicts = {Holding.UNDECIDED.value if each.facts["software"] else each.verdict for each in chosen}
    if Holding.DIFFERENT.value in verdicts:
        return words[1]
    return words[0] if verdicts == {Holding.EQUIVALENT.value} else words[2]


def _answer(
    question: str,
    experiment: str,
    kind: str,
    verdict: str,
    grounds: tuple[Sequence[Finding], Sequence[Finding]],
    facts: Mapping[str, str | int],
) -> Finding:
    chosen, failed = grounds
    confounded = [each for each in chosen if each.facts["software"]]
    counts = Counter(each.verdict for each in chosen)
    telling = [each for each in chosen if not each.facts["software"]]
    different = [each for each in telling if each.verdict == Holding.DIFFERENT.value]
    largest = max(different, key=_distance, default=None) or max(telling, key=_reach, default=None)
    estimates = {} if largest is None else {"largest": largest.estimates["ratio"]}
    played = any(each.facts.get("played") for each in chosen)
    return finding(
        "answer",
        {"question": question, "experiment": experiment},
        verdict,
        estimates=estimates,
        facts={
            "kind": kind,
            "comparisons": len(chosen),
            **{name: counts[name] for name in ("equivalent", "different", "undecided")},
            "confounded": len(confounded) or None,
            "largest_of": "" if largest is None else _named(largest),
            "failed": "; ".join(dict.fromkeys(str(each.facts["reason"]) for each in failed)),
            "played": "between parts of one machine" if played else "",
            **facts,
            "rests_on": " ".join(each.id for each in (*chosen, *failed)),
        },
    )


def _named(each: Finding) -> str:
    parts = ("configuration", "operation", "metric", "effect")
    return ", ".join(each.subject[part] for part in parts if each.subject[part])


def _distance(each: Finding) -> float:
    value = each.estimates["ratio"].value
    return 0.0 if not value else max(value, 1 / value)


def _reach(each: Finding) -> float:
    """How far from no difference the interval reaches: what the ratio may be at worst."""
    ratio = each.estimates["ratio"]
    if ratio.low is None or ratio.high is None:
        return 0.0
    return max(ratio.high, 1 / ratio.low)


_FLUCTUATION: Final = {
    "removed": "found",
    "reduced": "found in part",
    "not removed": "not found",
    "hardly any spikes": "hardly any fluctuation",
}


def _fluctuation(tree: Finding) -> Finding:
    """Answer RQ3 for one setting."""
    names = ("spikes", "removed_by", "nearest", "cause", "cause_percent", "other_causes", "all_removing")
    is_named_only = tree.verdict == "not removed" and tree.facts["cause"]
    return finding(
        "answer",
        {"question": "RQ3", "experiment": "causes", "setting": tree.subject["setting"]},
        "named" if is_named_only else _FLUCTUATION[tree.verdict],
        estimates=tree.estimates,
        facts={"kind": "fluctuation", **{name: tree.facts[name] for name in names}, "rests_on": tree.id},
    )
