"""Sentences of the scaling report."""

from __future__ import annotations

from typing import Final

from steelyard.report.sentence import Phrasing

PHRASING: Final = Phrasing(
    {
        "recommendation": {
            "undecided": "under {subject.load} load, {subject.crowd} (depth {subject.depth}), no strategy is "
            "certainly worse than another in these trials; {facts.best} has the highest score, "
            "{estimates.score} of the "
            "best rate on average over {facts.places} combinations, and {facts.worst} the lowest, "
            "{estimates.worst_score} of that ({estimates.worst_score:interval})",
            "*": "under {subject.load} load, {subject.crowd} (depth {subject.depth}), use {verdict}"
            "[ (not certainly slower: {facts.as_good_text})]; it has {estimates.score} of the best "
            "rate on "
            "average over {facts.places} combinations[, {estimates.over_lock_free:signed} against LockFree]; "
            "{facts.worst} is last with {estimates.worst_score} of that",
        },
        "speedup": {
            "descriptive": "with {facts.workers:workers} the speed-up is {estimates.speedup}, "
            "{estimates.shy} "
            "shy of ideal; there are no trials to judge it by",
            "*": "with {facts.workers:workers} the speed-up is {estimates.speedup} "
            "({estimates.speedup:interval}), {estimates.shy} shy of {facts.workers}: {verdict}",
        },
        "peak": {
            "*": "the largest speed-up, {estimates.speedup}, comes with {estimates.workers} "
            "of up to {facts.of_workers}",
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
            "determined by as many points as parameters": "workers {facts.point_set} determine Amdahl's law, "
            "with nothing left to judge it by: {estimates.contention:ratio_percent} of the work is serial "
            "({estimates.contention:interval})[, which caps the speed-up at {estimates.ceiling}]",
            "*": "by Amdahl's law (workers {facts.point_set}) {estimates.contention:ratio_percent} of the "
            "work is "
            "serial ({estimates.contention:interval})[, which caps the speed-up at {estimates.ceiling}]",
        },
        "usl": {
            "*": "by the universal law (workers {facts.point_set}) contention is {estimates.contention} and "
            "coherence {estimates.coherence}[, with the peak at {estimates.peak_workers}]",
        },
        "imbalance": {
            "as predicted": "{subject.strategy}, exponential load, W = {subject.mean_work}, "
            "{facts.workers:workers}: the heaviest source allows a speed-up of {estimates.bound}; measured "
            "{estimates.speedup}, as predicted",
            "*": "{subject.strategy}, exponential load, W = {subject.mean_work}, {facts.workers:workers}: "
            "the "
            "heaviest source would allow {estimates.bound} without balancing; measured {estimates.speedup}: "
            "{verdict}",
        },
        "gain": {
            "descriptive": "{subject.contender} against LockFree, {subject.load} load, W = "
            "{subject.mean_work}, "
            "{subject.workers} workers: {estimates.gain:signed}",
            "*": "{subject.contender} against LockFree, {subject.load} load, W = {subject.mean_work}, "
            "{subject.workers} workers: {estimates.gain:signed}, {estimates.gain:change_interval}: {verdict}",
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
            "depth {facts.deep} instead of {facts.shallow} gives {estimates.gain:signed}, "
            "{estimates.gain:change_interval}: {verdict}",
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
            "*": "one cell executed twice, interleaved, as if it were two: {estimates.ratio:signed}, "
            "{estimates.ratio:change_interval}: {verdict}",
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
            "*": "{facts.runs} of {facts.of_runs} runs ended with {subject.status} ({facts.where})"
            "[: {subject.message}]",
        },
        "settings": {
            "*": "differences up to {facts.margin_percent:percent} count as none; intervals are from "
            "{facts.resamples:count} resamples of whole blocks[; a rate is {facts.response}]",
        },
    }
)
