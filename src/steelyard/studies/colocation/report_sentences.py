"""Sentences of the colocation report."""

from __future__ import annotations

from typing import Final

from steelyard.report.sentence import Phrasing

_FROM_TO: Final = "mean latency {estimates.before} before and {estimates.beside} beside the jobs"
_CHANGE: Final = "{estimates.ratio:change} ({estimates.ratio:change_interval})"

PHRASING: Final = Phrasing(
    {
        "isolation": {
            "isolated": f"{_FROM_TO}, {_CHANGE}: isolated within {{facts.tolerance_percent:percent}}",
            "not isolated": f"{_FROM_TO}, {_CHANGE}: not isolated"
            "[; a queue grows {facts.growth}, so the mean depends on how long one looks]",
            "inconclusive": f"{_FROM_TO}, {_CHANGE}: not decided within {{facts.tolerance_percent:percent}}"
            "[; a queue grows {facts.growth}]",
            "growing queue": "more is asked for than the CPUs can do: the queue grows {facts.growth}; "
            "latency rises by {facts.rise_before_ms:number} ms each second before the jobs start and by "
            "{facts.rise_beside_ms:number} ms beside them",
        },
        "tail": {
            "*": "{subject.policy} at {subject.load} %: {subject.quantile} {estimates.before} before, "
            "{estimates.beside} beside the jobs, {estimates.ratio.value:number} times "
            "({estimates.ratio:interval}): {verdict}",
        },
        "best_effort": {
            "*": "{subject.policy} at {subject.load} %: the jobs do {estimates.rate}",
        },
        "price": {
            "less work": "the jobs get {facts.lost_percent:percent} less done than under {subject.reference} "
            "({estimates.ratio:change_interval})",
            "more work": "the jobs get more done than under {subject.reference}: {estimates.ratio:change} "
            "({estimates.ratio:change_interval})",
            "as much work": "the jobs get as much done as under {subject.reference} within "
            "{facts.margin_percent:percent} ({estimates.ratio:change_interval})",
            "inconclusive": "the work of the jobs against {subject.reference} is not decided: "
            "{estimates.ratio:change} ({estimates.ratio:change_interval})",
        },
        "availability": {
            "unavailable": "{subject.policy} at {subject.load} %: {facts.reason}",
            "*": "{subject.policy} at {subject.load} % works here",
        },
        "ended_early": {
            "*": "{subject.policy} at {subject.load} %, repetition {subject.repetition}: {verdict}"
            "[ ({facts.reason})]; what it left is in {facts.trial}",
        },
        "quiet_machine": {
            "quiet": "the machine was quiet: none of {facts.batches:count} trials began beside other load"
            "[, the hypervisor took {facts.stolen_percent:percent} of the run time]",
            "*": "the machine was {verdict}: {facts.noisy_batches:count} of {facts.batches:count} trials "
            "began beside other load[ ({facts.culprits})][, the hypervisor took "
            "{facts.stolen_percent:percent} of the run time]",
        },
        "settings": {
            "*": "isolated means: the mean latency from {facts.beside_from_s:number} s to "
            "{facts.beside_to_s:number} s, beside the jobs, is at most {facts.tolerance_percent:percent} "
            "above that from {facts.before_from_s:number} s to {facts.before_to_s:number} s, before them; "
            "the jobs start at {facts.jobs_start_s:number} s and stop at {facts.jobs_stop_s:number} s",
        },
    }
)
