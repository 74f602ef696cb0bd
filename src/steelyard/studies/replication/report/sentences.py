"""Sentences of the replication report."""

from __future__ import annotations

from typing import Final

from steelyard.report.sentence import ANY_VERDICT, Phrasing
from steelyard.studies.placed.host_report import HOST_SENTENCES

_CHANGE: Final = "{estimates.ratio:signed} ({estimates.ratio:change_interval})"
_PAIR: Final = "{subject.experiment} {subject.configuration}[ {subject.operation}], {subject.metric}: "
_ON: Final = "{subject.second} against {subject.first} "
_LARGEST: Final = (
    "[; most {estimates.largest:signed}, {estimates.largest:change_interval} ({facts.largest_of})]"
    "[; {facts.played}]"
)
_AT_WORST: Final = (
    "[; the widest, {facts.largest_of}, {estimates.largest:signed} ({estimates.largest:change_interval})]"
    "[; {facts.played}]"
)
_LEFT: Final = "{estimates.left:ratio_percent} of them are left ({estimates.left:ratio_interval})"
_LEAST: Final = (
    "[; with {facts.nearest} {estimates.left:ratio_percent} are left ({estimates.left:ratio_interval})]"
)
_COUNTS: Final = (
    "{facts.equivalent} of {facts.comparisons} comparisons equivalent"
    "[, {facts.confounded:count} decide nothing since versions of programs differ too]"
)
_BESIDE: Final = (
    "[; the spikes coincide with {facts.cause}, which explains {facts.cause_percent:percent} of their time]"
    "[, besides {facts.other_causes}]"
)
_KEPT: Final = "keeping every call ({subject.language}, {subject.setting})"
_COST: Final = "{estimates.cost} per call ({estimates.cost:interval})"
_LOSING: Final = "[; {facts.losing} loses records and is compared with nothing]"
_FLOOR: Final = "{subject.configuration} ({subject.setting}) against an empty benchmark"
_MARK: Final = "[; {facts.played}]"
_MARKS: Final = _MARK + "[; versions differ too: {facts.software}]"

PHRASING: Final = Phrasing(
    {
        "comparison": {
            "equivalent": f"{_PAIR}{_ON}{_CHANGE}: equivalent within {{facts.margin_percent:percent}}"
            + _MARKS,
            "different": f"{_PAIR}{_ON}{_CHANGE}: different{_MARKS}",
            "undecided": f"{_PAIR}{_ON}{_CHANGE}: undecided[, {{facts.reason}}]{_MARKS}",
        },
        "answer": {
            "replicates": f"{{facts.kind}}: replicates, {_COUNTS} ({{facts.held_against}}){_AT_WORST}",
            "does not replicate": f"{{facts.kind}}: does not replicate, {_COUNTS} ({{facts.held_against}})"
            + _LARGEST,
            "undecided": f"{{facts.kind}}: undecided, {_COUNTS}{_AT_WORST}",
            "no other place": "{facts.kind}: measured in one place only, so there is no verdict",
            "fails": "{facts.kind}: fails, {facts.failed}",
            "unchanged": "{facts.kind}: a container changes nothing beyond the margin, "
            f"{_COUNTS}{_AT_WORST}",
            "changed": f"{{facts.kind}}: a container changes it, {_COUNTS}{_LARGEST}",
            "no container": "{facts.kind}: not measured in a container, so there is no verdict",
            "found": f"{{facts.removed_by}} removes the spikes, {_LEFT}{_BESIDE}",
            "found in part": f"{{facts.removed_by}} reduces the spikes, {_LEFT}; no intervention "
            f"removes them{_BESIDE}",
            "named": f"no intervention certainly reduces the spikes{_LEAST}{_BESIDE}",
            "not found": f"no intervention certainly reduces the spikes{_LEAST}, and no event "
            "coincides with them",
            "hardly any fluctuation": "hardly any fluctuation: {facts.spikes:count} spikes in all calls of "
            "the program as it is, {estimates.peaks} ({estimates.peaks:interval})",
        },
        "recording_cost": {
            "below every framework": f"{_KEPT} costs {_COST}: less than every framework measured"
            "[, of which the cheapest at work costs {estimates.cheapest}]"
            f"[; not certainly less than {{facts.not_below}}]{_LOSING}",
            "not below every framework": f"{_KEPT} costs {_COST}: not certainly less than {{facts.not_below}}"
            f"{_LOSING}",
            "not decided": f"{_KEPT} costs {_COST}; no framework that keeps its records was measured beside "
            f"it{_LOSING}",
        },
        "overhead": {
            "loses records": "{subject.framework} {subject.probe} ({subject.setting}): {estimates.overhead} "
            "per call ({estimates.overhead:interval}), but only {estimates.kept} of the records are there "
            "afterwards: this is not the cost of keeping them, and is compared with nothing",
            ANY_VERDICT: "{subject.framework} {subject.probe} ({subject.setting}): {estimates.overhead} per "
            "call ({estimates.overhead:interval})[; {estimates.kept} of the records are there afterwards]",
        },
        "hosts": {
            "one machine": "the {facts.hosts} hosts ({facts.names}) are nodes of one machine: their "
            "differences say nothing of other hardware, and nothing is predicted of one more device",
            "some share a machine": "the study was placed on {facts.hosts} hosts ({facts.names}), of which "
            "some are one machine ({facts.sharing}): {facts.machines} machines are left as devices",
            ANY_VERDICT: "the study was placed on {facts.hosts} hosts ({facts.names}): each is a device, and "
            "ran as many repetitions as the others unless one was lost",
        },
        **HOST_SENTENCES,
        "devices": {
            "undecided": "{subject.experiment} {subject.configuration}, {subject.technology}: where one more "
            "device would lie is undecided, {facts.reason}[; devices differ by {estimates.between} "
            "({estimates.between:interval})]",
            ANY_VERDICT: "{subject.experiment} {subject.configuration}, {subject.technology}: "
            "{facts.devices} devices differ by {facts.between_percent:percent} (sd)"
            "[, runs on one by {facts.within_percent:percent}]; one more device is expected within "
            "{estimates.new_device:change_interval}, {facts.width_percent:percent} wide: {verdict}"
            "[; {facts.played}]",
        },
        "cause_tree": {
            ANY_VERDICT: "{subject.setting}: {facts.spikes:count} spikes in the program as it is, "
            "{facts.interventions} interventions: {verdict}[ by {facts.removed_by}: {facts.sentence}]"
            f"[ All that remove them: {{facts.all_removing}}]{_BESIDE}",
        },
        "beside_spikes": {
            ANY_VERDICT: "{subject.cause}: explains {estimates.explained} of the time of the spikes "
            "({estimates.explained:interval}): {verdict}",
        },
        "spike_period": {
            "periodic": "the spikes come every {estimates.period}[ ({estimates.period:interval})], or a "
            "whole part of it, in {facts.agreeing_runs} of {facts.looked_at} runs; {estimates.locked} of "
            "them keep to it",
            "no period": "the spikes have no common period[ of {estimates.shortest} or longer]: "
            "{facts.agreeing_runs} of {facts.looked_at} runs agree[ on {estimates.period}]",
            "too few spikes": "whether the spikes have a period is unknown: {facts.reason}",
        },
        "failed_benchmark": {
            "always fails": "{subject.experiment} {subject.configuration} ({subject.setting}) fails in all "
            "{facts.runs} runs: {facts.reason}",
            "sometimes fails": "{subject.experiment} {subject.configuration} ({subject.setting}) fails in "
            "{facts.failed} of {facts.runs} runs: {facts.reason}",
        },
        "harness_floor": {
            "above the floor": f"{_FLOOR}, {_CHANGE}: {{estimates.cost}} of an operation are its own "
            "({estimates.cost:interval})",
            "at the floor": f"{_FLOOR}, {_CHANGE}: its throughput is that of the harness, and says "
            "nothing about what it calls",
            "undecided": f"{_FLOOR}, {_CHANGE}: undecided[, {{facts.reason}}]",
        },
        "driver_lateness": {
            ANY_VERDICT: "{subject.experiment} {subject.configuration} ({subject.setting}): the driver was "
            "{verdict}; late by itself by {estimates.mean} on average, {estimates.mean_share} of the "
            "latency ({estimates.mean_share:interval}), and by {estimates.p99} in the 99th percentile, "
            "{estimates.p99_share} of it ({estimates.p99_share:interval})",
        },
        "availability": {
            ANY_VERDICT: "{subject.experiment} {subject.configuration} {subject.setting}: {facts.reason}",
        },
        "ended_early": {
            ANY_VERDICT: "{subject.experiment} {subject.configuration} {subject.setting}, repetition "
            "{subject.repetition}: {verdict}[: {facts.reason}]",
        },
        "not_had": {ANY_VERDICT: "unavailable in some runs: {subject.what}"},
        "a_a": {
            "equivalent": "the same cell, run twice ({subject.experiment} {subject.configuration} "
            f"{{subject.setting}}): {_CHANGE}, equal, as they should be",
            "different": "the same cell, run twice ({subject.experiment} {subject.configuration} "
            f"{{subject.setting}}): {_CHANGE}. Differences of this size mean nothing here",
            "undecided": "the same cell, run twice ({subject.experiment} {subject.configuration} "
            f"{{subject.setting}}): {_CHANGE}, undecided[: {{facts.reason}}]",
        },
        "source_statement": {
            ANY_VERDICT: "{subject.statement}: {verdict}; the nearest row, {facts.nearest_row}, has "
            "{estimates.nearest}, the rows go from {estimates.smallest} to {estimates.largest}",
        },
        "remark": {ANY_VERDICT: "{facts.text}"},
        "quiet_machine": {
            "quiet": "the machine was quiet: none of {facts.batches:count} runs began beside other load"
            "[, the hypervisor took {facts.stolen_percent:percent} of the run time]",
            ANY_VERDICT: "the machine was {verdict}: {facts.noisy_batches:count} of {facts.batches:count} "
            "runs began beside other load[ ({facts.culprits})][, the hypervisor took "
            "{facts.stolen_percent:percent} of the run time]",
        },
        "settings": {
            ANY_VERDICT: "Margin of equivalence {facts.margins}, fixed in the plan; "
            "{facts.repetitions} repetitions, {facts.runs} runs, seed {facts.seed}"
            "[; planted beside the program: {facts.planted}]",
        },
    }
)
