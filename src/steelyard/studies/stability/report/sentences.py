"""Sentences of the stability study: one template per claim and verdict."""

from __future__ import annotations

from typing import Final

from steelyard.report.sentence import ANY_VERDICT, Phrasing
from steelyard.studies.placed.host_report import HOST_SENTENCES

_CELL: Final = "{subject.workload} in {subject.isolation} with {subject.setup}"
_PAIR: Final = "{subject.second} against {subject.first} ({subject.workload}, {subject.setup})"
_CLASSES: Final = (
    "; the published rule says {facts.class_percentile} for {subject.first} vs {subject.second}"
    "[, {facts.disagreement}]"
)
_FROM_TO: Final = (
    "[: {facts.least_load_percent:percent} with {facts.least_load:workers}, "
    "{facts.largest_load_percent:percent} with {facts.largest_load:workers}]"
)
_STEADINESS: Final = "the standard deviation is {estimates.ratio:change} ({estimates.ratio:change_interval})"
_PLACED: Final = (
    "With each worker {facts.placement} ({subject.affinity}) the times of {subject.isolation} are"
)
_BETWEEN: Final = (
    "as far as {facts.looks:count} looks between batches can tell: load that came and went in between "
    "was not seen"
)
_SHARED: Final = (
    "share CPUs, caches, memory and kernel, and take turns. They count as one host: blocks are the units, "
    "and nothing here speaks of another machine"
)
_CELL_ON: Final = f"the mean {{subject.metric}} time of {_CELL}"
_HOW_FAR: Final = (
    "by a standard deviation of {estimates.between} ({estimates.between:interval})[; one more host like "
    "these is expected {estimates.new_host:change_interval} from their middle]"
)
_HERE: Final = (
    "[; on these hosts alone {estimates.these_hosts:change} ({estimates.these_hosts:change_interval}), which "
    "need not hold on others]"
)
_AGAINST_OTHERS: Final = (
    "{facts.noisy_batches:count} of {facts.batches:count} batches were measured beside other load"
    "[, which took up to {facts.largest_foreign_percent:percent} of the CPU time][ (most often "
    "{facts.culprits})][; the hypervisor took {facts.stolen_percent:percent} of the run time]"
)


def _comparison(name: str) -> dict[str, str]:
    """Give the sentences of a comparison of one statistic, second side over first."""
    ratio = "{estimates.ratio:change} ({estimates.ratio:change_interval})"
    subject = f"{name} of {_PAIR}"
    return {
        "slower": f"The {subject} is higher by a relevant amount: {ratio}{_CLASSES}.",
        "faster": f"The {subject} is lower by a relevant amount: {ratio}{_CLASSES}.",
        "equivalent": f"The {subject} is the same within the margin: {ratio}{_CLASSES}.",
        "inconclusive": f"The {subject} cannot be decided: {ratio}{_CLASSES}.",
        "descriptive": f"The {subject} differs in these data, too few for a verdict: {ratio}{_HERE}"
        f"{_CLASSES}.",
        "NA": f"The {subject} cannot be compared: a side was not measured.",
        ANY_VERDICT: f"The {subject} is {{verdict}}: {ratio}{_CLASSES}.",
    }


SENTENCES: Final[dict[str, dict[str, str]]] = {
    "outside_error": {
        ANY_VERDICT: "For {subject.workload} in {subject.isolation} with {subject.setup}, the outside "
        "{subject.metric} clock differs from the program's own by "
        "{estimates.mean} on average, with a standard deviation of {estimates.sd} "
        "({estimates.cv} of the run time).",
    },
    "outside_error_groups": {
        ANY_VERDICT: "In {subject.isolation} with {subject.setup}, {facts.over_5} of {facts.cells} "
        "cells have an outside "
        "{subject.metric} error above 5 %, {facts.over_10} above 10 % and {facts.over_20} above 20 %.",
    },
    "clock_granularity": {
        "coarse": "The {subject.clock} clock of {subject.isolation} moves in steps of {estimates.step}, "
        "{facts.share_of_iteration_percent:percent} of a median iteration: coarse against iterations "
        "this short.",
        ANY_VERDICT: "The {subject.clock} clock of {subject.isolation} moves in steps of {estimates.step}"
        "[, {facts.share_of_iteration_percent:percent} of a median iteration].",
    },
    "mean_comparison": _comparison("mean"),
    "sd_comparison": _comparison("standard deviation"),
    "median_comparison": _comparison("median"),
    "mad_comparison": _comparison("median absolute deviation"),
    "cv_comparison": _comparison("coefficient of variation"),
    "class_counts": {
        ANY_VERDICT: "By the published rule ({subject.published}), the {subject.statistic} of "
        "{subject.first} against "
        "{subject.second} with {subject.setup} is higher for {facts.higher} workloads, lesser for "
        "{facts.lesser}, "
        "same for {facts.same}, overlapping for {facts.overlap} and not available for {facts.NA}.",
    },
    "parallel_ratio": {
        ANY_VERDICT: f"The workers of {_CELL} ran in parallel for {{estimates.ratio:ratio_percent}} of "
        f"the batch.",
    },
    "warm_up": {
        "flat": f"There is no warm-up for {_CELL}: the first value is {{facts.first_value_s:seconds}}, "
        f"the median "
        "{facts.median_s:seconds}[; outliers at {facts.outlier_iterations}].",
        "warm-up": f"The runs of {_CELL} warm up[ until iteration {{facts.change_point}}]: the first "
        f"value is "
        "{facts.first_value_s:seconds}, the median {facts.median_s:seconds}.",
        "slow-down": f"The runs of {_CELL} slow down[ from iteration {{facts.change_point}}]: the first "
        f"value is "
        "{facts.first_value_s:seconds}, the median {facts.median_s:seconds}.",
        ANY_VERDICT: f"The runs of {_CELL} show {{verdict}}: the first value is "
        f"{{facts.first_value_s:seconds}}, the "
        "median {facts.median_s:seconds}.",
    },
    "worker_difference": {
        ANY_VERDICT: f"Among the workers of {_CELL}, {{facts.different}} of {{facts.pairs}} pairs differ"
        "[, the medians by up to {facts.largest_difference_percent:percent}].",
    },
    "input_dependence": {
        ANY_VERDICT: "Between {facts.inputs} inputs, the mean time of {subject.workload} differs by up to "
        "{estimates.widest}: {verdict}.",
    },
    "dispersion_by_load": {
        "not measured": "Whether the dispersion of {subject.workload} in {subject.isolation} grows with "
        "load was not "
        "measured.",
        "no growth seen": "No growth of the dispersion of {subject.workload} in {subject.isolation} can be "
        f"distinguished from chance up to the largest load{_FROM_TO}.",
        ANY_VERDICT: "The dispersion of {subject.workload} in {subject.isolation} starts to grow at "
        f"{{facts.starts_at:workers}}{_FROM_TO}.",
    },
    "location_shift": {
        "slower": "{subject.isolation} needs {estimates.ratio:change} CPU time than {subject.baseline} "
        "({estimates.ratio:change_interval}).",
        "faster": "{subject.isolation} needs {estimates.ratio:change} CPU time than {subject.baseline} "
        "({estimates.ratio:change_interval}).",
        "equivalent": "{subject.isolation} does not shift the mean against {subject.baseline}: "
        "{estimates.ratio:change} ({estimates.ratio:change_interval}).",
        "descriptive": "In these data, too few for a verdict, {subject.isolation} needs "
        "{estimates.ratio:change} CPU time "
        f"than {{subject.baseline}}{_HERE}.",
        "NA": "{subject.isolation} cannot be compared with {subject.baseline}: a side was not measured.",
        ANY_VERDICT: "Whether {subject.isolation} shifts the mean against {subject.baseline} is {verdict}: "
        "{estimates.ratio:change} ({estimates.ratio:change_interval}).",
    },
    "pinning_effect": {
        "helps": f"{_PLACED} steadier than without: {_STEADINESS}.",
        "harms": f"{_PLACED} less steady than without: {_STEADINESS}.",
        "no difference": f"{_PLACED} as steady as without: {_STEADINESS}.",
        "not measured": "Pinning was not measured for {subject.isolation}.",
        ANY_VERDICT: "Whether the times of {subject.isolation} are steadier with each worker "
        f"{{facts.placement}} ({{subject.affinity}}) is {{verdict}}: {_STEADINESS}.",
    },
    "overlap": {
        ANY_VERDICT: f"Of {{facts.iterations:count}} iterations of {_CELL}, {{facts.overlapping:count}} "
        f"ran while every "
        "worker was running and {facts.not_overlapping:count} did not.",
    },
    "clock_trust": {
        ANY_VERDICT: "The {subject.clock} clock of {subject.isolation} can be trusted up to "
        "{facts.trusted_up_to_workers:workers}[: its error scatters most for {facts.shown_workload} with "
        "{facts.shown_setup}, by {estimates.worst} of the run time ({estimates.worst:interval}), against a "
        "tolerance of {facts.tolerance_percent:percent}].",
        "not trusted": "The {subject.clock} clock of {subject.isolation} cannot be trusted at any load "
        "measured here[: for {facts.shown_workload} with {facts.shown_setup} its error scatters by "
        "{estimates.worst} of the run time ({estimates.worst:interval}), against a tolerance of "
        "{facts.tolerance_percent:percent}].",
    },
    "least_steady_cell": {
        ANY_VERDICT: "In {subject.isolation} with {facts.workers:workers}, {facts.workload} is least steady: "
        "{estimates.cv} ({estimates.cv:interval}), {verdict} of {facts.tolerance_percent:percent}.",
    },
    "recommended_workers": {
        "recommended": "{subject.isolation} supports at most {estimates.workers} for a dispersion of at most "
        "{facts.tolerance_percent:percent}[: there {facts.worst_workload} is least steady, {estimates.worst} "
        "({estimates.worst:interval})][; with {facts.limiting_workers:workers} {facts.limiting_workload} "
        "scatters by {estimates.limiting} ({estimates.limiting:interval})]"
        "[; {facts.possible_workers:workers} are not excluded].",
        "undecided": "How many workers {subject.isolation} supports at {facts.tolerance_percent:percent} is "
        "undecided[: with {facts.limiting_workers:workers} {facts.limiting_workload} scatters by "
        "{estimates.limiting} ({estimates.limiting:interval})][, and up to {facts.possible_workers:workers} "
        "no interval lies beyond].",
        "none": "No number of workers keeps {subject.isolation} within {facts.tolerance_percent:percent}"
        "[: already with {facts.limiting_workers:workers} {facts.limiting_workload} scatters by "
        "{estimates.limiting} ({estimates.limiting:interval})][; what to do: {facts.next_step}].",
        ANY_VERDICT: "The number of workers for {subject.isolation} at "
        "{facts.tolerance_percent:percent} is {verdict}.",
    },
    "quiet_machine": {
        "quiet": "The machine was quiet while measuring: none of {facts.batches:count} batches began beside "
        "other load[, the hypervisor took {facts.stolen_percent:percent} of the run time]. Scatter in "
        "this report comes from the technology and the program, not from a neighbour, "
        f"{_BETWEEN}.",
        "mostly quiet": f"The machine was mostly quiet while measuring: {_AGAINST_OTHERS}. Blocks in random "
        "order spread that over all cells: comparisons stay fair, a single outlier may be a neighbour's. "
        f"This is what was seen, {_BETWEEN}.",
        "not quiet": f"The machine was not quiet while measuring: {_AGAINST_OTHERS}. Dispersions and errors "
        "in this report are therefore upper bounds, and a `none` may be caused by the neighbours; "
        "comparisons stay fair, since blocks are in random order, but less sharp. Measure again on a quiet "
        "machine before acting on a `none`.",
        ANY_VERDICT: "Whether the machine was quiet was {verdict}"
        "[; the hypervisor took {facts.stolen_percent:percent} of the run time].",
    },
    "a_a": {
        "no difference": "Two identical cells ({subject.workload}, {subject.setup}) show no difference, "
        "as they must: "
        "{estimates.ratio:change} ({estimates.ratio:change_interval}).",
        ANY_VERDICT: "Two identical cells ({subject.workload}, {subject.setup}) seem to differ "
        "({estimates.ratio:change}, {estimates.ratio:change_interval}): do not trust differences of "
        "this size in this report.",
    },
    "hosts": {
        "independent": "The runs were placed on {facts.hosts} hosts ({facts.names}). Hosts are the outermost "
        "units: intervals hold for further hosts like these, and a verdict needs {facts.hosts_for_a_verdict} "
        "of them. Dispersions are those within a host.",
        "two independent": "The runs were placed on two hosts ({facts.names}). How hosts scatter cannot be "
        "seen from two: intervals are very wide, no verdict is given, and what holds on both need not hold "
        "on a third. Dispersions are those within a host.",
        "one machine": f"The {{facts.hosts}} hosts ({{facts.names}}) are nodes of one machine: "
        f"they {_SHARED}.",
        ANY_VERDICT: "The runs were placed on {facts.hosts} hosts ({facts.names}), of which some are one "
        f"machine ({{facts.sharing}}): these {_SHARED}. {{facts.machines}} machines are left as units.",
    },
    "host_scatter": {
        "hosts agree": f"On {{facts.hosts}} hosts {_CELL_ON} is the same within "
        f"{{facts.margin_percent:percent}}: hosts differ {_HOW_FAR}.",
        "hosts differ": f"On {{facts.hosts}} hosts {_CELL_ON} differs {_HOW_FAR}.",
        ANY_VERDICT: f"Whether {_CELL_ON} differs between {{facts.hosts}} hosts is undecided: {_HOW_FAR}.",
    },
    "host_outlier": {
        "outlier": "{subject.host} stands apart from most of {facts.hosts} hosts in {subject.metric} time in "
        "{facts.cells_apart} of {facts.cells} cells, most clearly in {facts.workload} in {facts.isolation} "
        "with {facts.setup}: {estimates.ratio:change} than the middle host (by more than "
        "{facts.margin_percent:percent} against more than half of the hosts; the chance of any false outlier "
        "in all {facts.comparisons} comparisons is {facts.error_percent:percent}).",
        ANY_VERDICT: "{subject.host} does not stand apart from most of {facts.hosts} hosts in "
        "{subject.metric} time in any of {facts.cells} cells, as far as these data can tell.",
    },
    **HOST_SENTENCES,
    "contamination": {
        ANY_VERDICT: "{facts.flagged:count} of {facts.runs:count} runs in {subject.isolation} with "
        "{subject.setup} "
        "carry the flag {subject.flag}.",
    },
    "counter_correlation": {
        ANY_VERDICT: "CPU time and {subject.counter} of {subject.workload}: Pearson "
        "{estimates.pearson:number}, "
        "Spearman {estimates.spearman:number}.",
    },
    "failed_runs": {
        ANY_VERDICT: "{facts.count:count} runs of {subject.workload} in {subject.isolation} with "
        "{subject.setup} "
        "ended as {subject.status}.",
    },
    "settings": {
        ANY_VERDICT: "The analysis calls differences of the mean below {facts.margin_percent:percent} "
        "irrelevant, allows a "
        "dispersion of {facts.tolerance_percent:percent}, and resamples {facts.resamples:count} times.",
    },
    "calibration": {
        ANY_VERDICT: "Steelyard's own error on this host: {verdict}.",
    },
}
"""Every number of the report that stands in a sentence passes through one of these slots."""

PHRASING: Final = Phrasing(SENTENCES)
