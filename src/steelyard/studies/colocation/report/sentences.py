"""Sentences of the colocation report."""

from __future__ import annotations

from typing import Final

from steelyard.report.sentence import Phrasing

_FROM_TO: Final = (
    "mean latency {estimates.before} {facts.reference} and {estimates.beside} beside the jobs, "
    "{estimates.ratio:rounded_change} ({estimates.ratio:rounded_change_interval})"
    "[, p50 {estimates.ratio_p50:rounded_change} ({estimates.ratio_p50:rounded_change_interval})]"
    "[, p99 {estimates.ratio_p99:rounded_change} ({estimates.ratio_p99:rounded_change_interval})]"
)

_IN_GUEST: Final = (
    "isolated means: mean, p50 and p99 of the latency from {facts.beside_from_s:number} s to "
    "{facts.beside_to_s:number} s, beside the jobs, are at most {facts.tolerance_percent:percent} above "
    "those under the policy with the lowest mean at the same load and time: virtual CPUs share one budget, "
    "so everything is faster before the jobs start"
)

PHRASING: Final = Phrasing(
    {
        "isolation": {
            "isolated": "isolated within {facts.tolerance_percent:percent}"
            f"[ by {{facts.within}}, with too few values for {{facts.untold}}]: {_FROM_TO}",
            "not isolated": f"not isolated by {{facts.beyond}}: {_FROM_TO}"
            "[; a queue grows {facts.growth}, so the mean depends on how long one looks]",
            "inconclusive": "not decided within {facts.tolerance_percent:percent}"
            f"[ (isolated by {{facts.within}})]: {_FROM_TO}"
            "[; a queue grows {facts.growth}][; {facts.few}]",
            "steady": f"steady without any jobs: {_FROM_TO}",
            "drifted": f"the service drifts without any jobs: {_FROM_TO}",
            "not settled": f"{_FROM_TO}; but the service was slower still before the jobs: it had not "
            "settled, so there is no verdict on the policy",
            "the best": "mean latency {estimates.beside} beside the jobs: the lowest here, with which other "
            "policies are compared",
            "growing queue": "the requests need more than the CPUs can do: the queue grows {facts.growth}; "
            "latency rises by {facts.rise_before_ms:significant} ms each second before the jobs start and by "
            "{facts.rise_beside_ms:significant} ms beside them",
        },
        "tail": {
            "*": "{subject.policy} at {subject.load:percent}: {subject.quantile} {estimates.before} "
            "{facts.reference}, {estimates.beside} beside the jobs, {estimates.ratio.value:number} times "
            "({estimates.ratio:interval}): {verdict}",
        },
        "best_effort": {
            "*": "{subject.policy} at {subject.load:percent}: the jobs do {estimates.rate}",
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
        "utilisation": {
            "*": "{subject.policy} at {subject.load:percent}: beside the jobs the service uses "
            "{estimates.service_beside} of the CPUs and the jobs {estimates.jobs_beside}",
        },
        "drain": {
            "not drained": "{subject.policy} at {subject.load:percent}: {facts.unanswered:count} "
            "requests were never answered; the last one that counts had waited {estimates.time}",
            "*": "{subject.policy} at {subject.load:percent}: after the last request the service needs "
            "{estimates.time} to answer everything",
        },
        "throttled": {
            "seems throttled": "the kernel seems to throttle the real-time service in favour of the jobs: "
            "where their iterations end, latency is {facts.rise_percent:percent} higher than around",
            "no sign of throttling": "latency does not rise where iterations of the jobs end: no sign that "
            "the kernel throttles the real-time service",
            "throttled": "the kernel throttles the real-time service: in {estimates.share} of the time the "
            "jobs ran while it waited",
            "*": "the real-time service was not throttled",
        },
        "check": {
            "off": "{subject.policy} at {subject.load:percent}: the {subject.check} check is off",
            "*": "{subject.policy} at {subject.load:percent}: the {subject.check} check ran "
            "{facts.runs:count} times in {facts.events:count} scheduling events"
            "[, {facts.successes:count} times with success ({estimates.success})]",
        },
        "exit_cost": {
            "*": "{subject.policy} at {subject.load:percent}: while the jobs were there the exit check ran "
            "{estimates.rate.value:significant} times per second on each CPU and took over a thread of the "
            "service in {estimates.steals} of the runs; half of them took less than "
            "{estimates.median.high:seconds}[, {estimates.instructions.high:number} instructions]",
        },
        "strictness": {
            "*": "{subject.policy} at {subject.load:percent}: a thread of the service waited while jobs ran "
            "{facts.violations:count} times, {estimates.mean} on average and {estimates.longest} at most: "
            "{verdict}[; the class was ejected ({facts.last_exit})]",
        },
        "client_error": {
            "on time": "{subject.policy} at {subject.load:percent}: the client sent in time, 99 % of the "
            "requests within {estimates.p99}",
            "*": "{subject.policy} at {subject.load:percent}: the client sent late, 99 % of the "
            "requests within {estimates.p99} (at most {facts.limit_us:number} us count as in time); "
            "latencies count from the time a request was due all the same",
        },
        "waiting_client": {
            "hides": "{subject.policy} at {subject.load:percent}: {facts.clients:count} clients that wait "
            "for each answer would have left out {estimates.hidden} of the requests; of those that they send "
            "in the same trial the 99th percentile is {estimates.p99_seen} instead of {estimates.p99}",
            "*": "{subject.policy} at {subject.load:percent}: {facts.clients:count} clients that wait "
            "for each answer would have left out {estimates.hidden} of the requests",
        },
        "head_of_line": {
            "blocked": "{subject.policy} at {subject.load:percent}: short requests wait behind long ones: "
            "their 99th percentile is {estimates.short_p99}, their work {estimates.work}",
            "*": "{subject.policy} at {subject.load:percent}: short requests do not wait for long "
            "ones: their 99th percentile is {estimates.short_p99}, their work {estimates.work}",
        },
        "a_a": {
            "different": "two cells that are alike differ: {estimates.ratio:change} "
            "({estimates.ratio:change_interval}); differences of this size between policies mean nothing",
            "*": "two cells that are alike ({subject.policy} at {subject.load:percent}) show {verdict}: "
            "{estimates.ratio:change} ({estimates.ratio:change_interval})",
        },
        "contest": {
            "*": "{subject.policy} against {subject.rival} at {subject.load:percent}: latency {verdict} "
            "(mean {estimates.mean:change}[, p50 {estimates.p50:change}][, p99 {estimates.p99:change}]), "
            "work {facts.work_verdict} ({estimates.work:change})",
        },
        "availability": {
            "unavailable": "{subject.policy} at {subject.load:percent}: {facts.reason}",
            "*": "{subject.policy} at {subject.load:percent} works here",
        },
        "ended_early": {
            "*": "{subject.policy} at {subject.load:percent}, repetition {subject.repetition}: {verdict}"
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
            "stated in a virtual machine": _IN_GUEST,
            "stated in a virtual machine of known speed": f"{_IN_GUEST}. Each executes "
            "{facts.million_instructions_per_s:number} million instructions per second while all are busy: "
            "what the kernel does weighs more than on real ones",
            "stated by each series": "isolated means: mean, p50 and p99 of the latency beside the jobs are "
            "at most {facts.tolerance_percent:percent} above those before them; series differ in when their "
            "jobs start and stop",
            "*": "isolated means: mean, p50 and p99 of the latency from {facts.beside_from_s:number} s to "
            "{facts.beside_to_s:number} s, beside the jobs, are at most {facts.tolerance_percent:percent} "
            "above those from {facts.before_from_s:number} s to {facts.before_to_s:number} s, before them; "
            "the jobs start at {facts.jobs_start_s:number} s and stop at {facts.jobs_stop_s:number} s",
        },
    }
)
