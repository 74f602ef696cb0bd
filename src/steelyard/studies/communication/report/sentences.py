"""Sentences of the communication report."""

from __future__ import annotations

from typing import Final

from steelyard.report.sentence import Phrasing

PHRASING: Final = Phrasing(
    {
        "model": {
            "*": "a message of {facts.smallest_bytes:count} B takes {estimates.smallest} {facts.way} and one "
            "of {facts.largest_bytes:count} B {estimates.largest}[, with a switch at {facts.switch_text} B]",
        },
        "boundary": {
            "protocol": "at {estimates.at} something switches: found again in "
            "{facts.recurrence_percent:percent} of the resamples ({estimates.at:interval})",
            "*": "at {estimates.at} the model only follows a bend",
        },
        "prediction": {
            "*": "{subject.predictor} predicts the held-out replication with a median error of "
            "{estimates.median} (mean {estimates.mean}); what was measured there is itself uncertain by "
            "{estimates.floor}",
        },
        "carry_over": {
            "*": "{subject.transport}, {subject.sizes}: the size of the message before explains "
            "{estimates.explained} of the scatter; after {facts.costliest} messages cost "
            "{estimates.spread.value:number} times as much as after {facts.cheapest}",
        },
        "outliers": {
            "share something": "{subject.transport}: {facts.count:count} of {facts.of:count} round trips"
            "[ {facts.among}] have {subject.predicate}; they share {facts.shared}",
            "*": "{subject.transport}: {facts.count:count} of {facts.of:count} round trips"
            "[ {facts.among}] have {subject.predicate}; they share nothing that could be shown",
        },
        "host_state": {
            "the only one": "{subject.transport}: the host was in one state ({subject.state})"
            "[; a cache line went back and forth between the two CPUs in {estimates.canary}]",
            "*": "{subject.transport}: {facts.runs} replications in the state {subject.state}"
            "[, in which a cache line goes back and forth between the two CPUs in {estimates.canary}]",
        },
        "mixed_run": {
            "*": "{subject.transport}, replication {subject.replication}: the state of the host changed too "
            "often; no model rests on it",
        },
        "disturbed": {
            "left out": "{subject.transport}: in {estimates.share} of the operations something else ran "
            "(an endpoint waited for a CPU, or too many operations were late); models rest on the others",
            "*": "{subject.transport}: in {estimates.share} of the operations something else ran; this was "
            "the normal state, so nothing is left out",
        },
        "absent": {
            "*": "{subject.transport} was not measured: {facts.reason}",
        },
        "not_simulated": {
            "nothing left": "SimGrid simulated nothing: {facts.reason}",
            "*": "SimGrid was not asked: {facts.reason}; predictions are those of the model's formula, which "
            "is what SimGrid computes",
        },
        "fidelity": {
            "*": "SimGrid {facts.simgrid} with the exported model answers within {estimates.gap} of the "
            "model's formula, beyond the rounding of its stamps ({subject.transport}, "
            "{facts.operations:count} round trips)",
        },
        "link": {
            "*": "{subject.transport} over {subject.link}, {facts.sizes}: fitted {estimates.fitted} "
            "({estimates.fitted:interval}); the link lets through {estimates.truth} of payload "
            "({facts.accounting}): {verdict}",
        },
        "pair": {
            "one machine": "{facts.nodes} are one machine: {subject.transport} was measured within it, not "
            "over a network",
            "other nodes": "{subject.transport} was to be measured on {facts.nodes}, but ranks ran on "
            "{facts.seen}: its model is not that of the pair",
            "*": "{subject.transport} was measured on {facts.nodes}",
        },
        "link_missing": {
            "*": "{subject.transport} over {subject.link}: {subject.wanted} is missing: {facts.reason}",
        },
        "replications": {
            "differ": "{subject.transport}: odd and even replications differ in {facts.different} of "
            "{facts.compared} regimes and coefficients certainly by more than "
            "{facts.margin_percent:percent}; at most by {estimates.largest}",
            "*": "{subject.transport}: odd and even replications {verdict} within "
            "{facts.margin_percent:percent}, regime by regime; the largest difference is {estimates.largest} "
            "({estimates.largest:interval})",
        },
        "ended_early": {
            "out of time": "{subject.transport}, replication {subject.replication}: the budget of time ended "
            "it after {facts.operations:count}[ of {facts.planned:count}] operations",
            "no trace": "{subject.transport}, replication {subject.replication}: {facts.message}",
            "*": "{subject.transport}, replication {subject.replication}: {verdict}"
            "[ ({facts.message})]; {facts.operations:count} operations were recorded and are kept in "
            "{facts.trace}",
        },
        "recording": {
            "of means": "{subject.transport} was recorded by another program ({facts.files}): "
            "{facts.messages:count} means of {facts.sizes:count} sizes[, the median of whose standard errors "
            "is {estimates.error}][; limits: {facts.cannot}]",
            "*": "{subject.transport} was recorded by another program ({facts.files}): "
            "{facts.messages:count} messages of {facts.sizes:count} sizes[; {facts.untimed:count} of them "
            "took no time by their clock, and count as half of the shortest that did]"
            "[; limits: {facts.cannot}]",
        },
        "coverage": {
            "*": "sizes are {subject.law}: {facts.bias} ({facts.text})",
        },
        "quiet_machine": {
            "quiet": "the machine was quiet: none of {facts.batches:count} launches began beside other load"
            "[, the hypervisor took {facts.stolen_percent:percent} of the run time]",
            "*": "the machine was {verdict}: {facts.noisy_batches:count} of {facts.batches:count} launches "
            "began beside other load[ ({facts.culprits})][, the hypervisor took "
            "{facts.stolen_percent:percent} of the run time]",
        },
        "settings": {
            "recorded": "of several recordings of one transport in one state of the host the last is held "
            "out",
            "*": "{facts.replications} replications, the last of each state of the host held out; sizes and "
            "order are drawn from seed {facts.seed}[; the first {facts.warm_up:count} operations of each "
            "launch warm it up: they are kept, and no model sees them]",
        },
    }
)
