"""Sentences of the scaling report."""

from __future__ import annotations

from typing import Final

from steelyard.report.sentence import Phrasing

PHRASING: Final = Phrasing(
    {
        "recommendation": {
            "descriptive": "under {subject.load} load, {subject.crowd} (depth {subject.depth}), by medians "
            "alone, {facts.best} has the highest score, {estimates.score} of the best rate on average over "
            "{facts.places} combinations, and {facts.worst} the lowest, {estimates.worst_score} of that",
            "undecided": "under {subject.load} load, {subject.crowd} (depth {subject.depth}), no strategy is "
            "certainly worse than another in these trials; {facts.best} has the highest score, "
            "{estimates.score} of the "
            "best rate on average over {facts.places} combinations, and {facts.worst} the lowest, "
            "{estimates.worst_score} of that ({estimates.worst_score:interval})",
            "*": "under {subject.load} load, {subject.crowd} (depth {subject.depth}), use {verdict}"
            "[, which {facts.needs}]"
            "[ (not certainly slower: {facts.as_good_text})]; it has {estimates.score} of the best "
            "rate on average over {facts.places} combinations[, "
            "{estimates.over_lock_free:rounded_change} against LockFree "
            "({estimates.over_lock_free:rounded_change_interval})]; {facts.worst} is last with "
            "{estimates.worst_score:rounded} of that ({estimates.worst_score:rounded_interval})",
        },
        "speedup": {
            "descriptive": "with {facts.workers:workers} the speed-up is {estimates.speedup}, "
            "{estimates.shy} below ideal; without trials there is no interval",
            "*": "with {facts.workers:workers} the speed-up is {estimates.speedup:rounded} "
            "({estimates.speedup:rounded_interval}): {verdict}"
            "[; threads that share nothing reach {estimates.machine:rounded} here]",
        },
        "thread_count": {
            "more workers use no more cores": "with {facts.most_workers:workers} the program uses no more "
            "cores than with {facts.fewest_workers} ({estimates.most:rounded} against "
            "{estimates.fewest:rounded}): either it ignores the number of workers, or its workers wait "
            "nearly all the time; no law is fitted",
            "*": "the program uses {estimates.most:rounded} with {facts.most_workers:workers} "
            "and {estimates.fewest:rounded} with {facts.fewest_workers}: {verdict}",
        },
        "short_runs": {
            "*": "runs with workers {facts.workers} are too short to judge: the shortest take "
            "{estimates.shortest}, and starting a process takes at least {estimates.start}, more than "
            "{facts.start_percent:percent}; give the program more to do",
        },
        "peak": {
            "*": "the largest speed-up, {estimates.speedup:rounded} ({estimates.speedup:rounded_interval}), "
            "comes with {estimates.workers} of up to {facts.of_workers}",
        },
        "oversubscription": {
            "descriptive": "[{facts.who}]with {facts.workers:workers} on {facts.cores} cores "
            "{estimates.kept} of "
            "the rate with {facts.full_workers:workers} are kept",
            "*": "[{facts.who}]with {facts.workers:workers} on {facts.cores} cores {estimates.kept} of "
            "the rate with "
            "{facts.full_workers:workers} are kept ({estimates.kept:interval}): {verdict}",
        },
        "amdahl": {
            "the limit is in reach of the points": "by Amdahl's law (workers {facts.point_set}) the serial "
            "share is {estimates.contention:rounded} ({estimates.contention:rounded_interval}), which caps "
            "the speed-up at {estimates.ceiling:rounded} ({estimates.ceiling:rounded_interval})",
            "the law does not describe the points": "Amdahl's law does not describe workers "
            "{facts.point_set} (off by up to {facts.largest_error_percent:percent}): no serial share and no "
            "ceiling follow",
            "*": "by Amdahl's law (workers {facts.point_set}) the serial share is "
            "{estimates.contention:rounded} ({estimates.contention:rounded_interval}); these points "
            "do not show where the speed-up ends",
        },
        "usl": {
            "the limit is in reach of the points": "by the universal law (workers {facts.point_set}) "
            "contention is {estimates.contention:rounded} and coherence {estimates.coherence:rounded}, with "
            "the peak at {estimates.peak_workers:rounded} ({estimates.peak_workers:rounded_interval})",
            "the law does not describe the points": "the universal law does not describe workers "
            "{facts.point_set} (off by up to {facts.largest_error_percent:percent})",
            "*": "by the universal law (workers {facts.point_set}) contention is "
            "{estimates.contention:rounded} and coherence {estimates.coherence:rounded}; these points "
            "do not show where the speed-up peaks",
        },
        "no_law": {
            "*": "workers {facts.point_set} up to the cores are too few to tell a law: from "
            "{facts.needed} numbers on one is fitted, and no ceiling follows before",
        },
        "imbalance": {
            "as predicted": "{subject.strategy}, exponential load, W = {subject.mean_work}, depth "
            "{subject.depth}, {facts.workers:workers}: the heaviest source allows a speed-up of "
            "{estimates.bound}; measured {estimates.speedup:rounded} "
            "({estimates.speedup:rounded_interval}), as predicted",
            "*": "{subject.strategy}, exponential load, W = {subject.mean_work}, depth {subject.depth}, "
            "{facts.workers:workers}: the heaviest source would allow {estimates.bound} without balancing; "
            "measured {estimates.speedup:rounded} ({estimates.speedup:rounded_interval}): {verdict}",
        },
        "gain": {
            "descriptive": "{subject.contender} against LockFree, {subject.load} load, W = "
            "{subject.mean_work}, depth {subject.depth}, "
            "{subject.workers} workers: {estimates.gain:rounded_change}",
            "*": "{subject.contender} against LockFree, {subject.load} load, W = {subject.mean_work}, depth "
            "{subject.depth}, {subject.workers} workers: {estimates.gain:rounded_change}, "
            "{estimates.gain:rounded_change_interval}: {verdict}",
        },
        "overhead": {
            "descriptive": "an idle {subject.lock} makes LockFree {estimates.overhead} times as fast as "
            "HomeQueue "
            "at W = {subject.mean_work}, depth {subject.depth}",
            "*": "an idle {subject.lock} makes LockFree {estimates.overhead} times as fast as HomeQueue "
            "at W = "
            "{subject.mean_work}, depth {subject.depth} ({estimates.overhead:interval}): {verdict}",
        },
        "dispatcher": {
            "*": "W = {subject.mean_work}, depth {subject.depth}: one dispatcher dealt "
            "{estimates.ceiling_rate} "
            "of smaller packets, about a speed-up of {estimates.bound} here; the largest measured with up to "
            "{facts.workers:workers} is "
            "{estimates.speedup}: {verdict}",
        },
        "depth": {
            "*": "{subject.contender}, {subject.load} load, W = {subject.mean_work}, {subject.workers} "
            "workers: "
            "depth {facts.deep} instead of {facts.shallow} gives {estimates.gain:rounded_change}, "
            "{estimates.gain:rounded_change_interval}: {verdict}",
        },
        "regression": {
            "*": "through workers {facts.point_set} the slope is {estimates.slope.value:number} "
            "(R2 {estimates.r_squared.value:number})",
        },
        "source_claim": {
            "contradicts": "{subject.section}: {subject.text} is printed as {facts.printed}; its data give "
            "{facts.recomputed_digits}[; {facts.note}]",
            "*": "{subject.section}: {subject.text} is {facts.printed}, as printed",
        },
        "identical_cells": {
            "*": "one cell run twice, interleaved, as if it were two: {estimates.ratio:rounded_change}, "
            "{estimates.ratio:rounded_change_interval}: {verdict}",
        },
        "quiet_machine": {
            "quiet": "the machine was quiet: none of {facts.batches:count} launches began beside other load"
            "[, the hypervisor took {facts.stolen_percent:percent} of the run time]",
            "*": "the machine was {verdict}: {facts.noisy_batches:count} of {facts.batches:count} "
            "launches began "
            "beside other load[ ({facts.culprits})][, the hypervisor took {facts.stolen_percent:percent} "
            "of the "
            "run time]; trials are in random order within blocks, so comparisons stay fair, but less sharp",
        },
        "failed_runs": {
            "*": "{facts.runs} of {facts.of_runs} runs {subject.ending} ({facts.where})[: {subject.message}]",
        },
        "settings": {
            "*": "differences up to {facts.margin_percent:percent} count as none; intervals are from "
            "{facts.resamples:count} resamples of whole blocks[; a rate is {facts.response}]",
        },
    }
)
