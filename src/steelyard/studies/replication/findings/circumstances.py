"""What else belongs to a result: devices with their limits, what is missing, what failed, the A/A control."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from steelyard.model import Evidence
from steelyard.studies.analysis_parts import RUNS, finding
from steelyard.studies.replication.findings.cells import evidence_of
from steelyard.studies.replication.findings.comparisons import ratio_estimate
from steelyard.studies.replication.findings.verdicts import design_of, differences, judge
from steelyard.studies.replication.run_parts import MEAN, THROUGHPUT
from steelyard.studies.replication.values.summaries import CellRuns
from steelyard.studies.run_folders import describe_missing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from steelyard.analyse.comparison.equivalence import Margin
    from steelyard.model import Finding, Plan
    from steelyard.studies.analysis_parts import Fact
    from steelyard.studies.replication.findings.comparisons import Looks
    from steelyard.studies.replication.findings.verdicts import Judged
    from steelyard.studies.replication.recorded import RecordedRun
    from steelyard.studies.replication.values.summaries import Key, Summary

DEVICE_FACTS: Final = (
    "kind",
    "is_played",
    "shares_machine_with",
    "host",
    "kernel",
    "machine",
    "processor",
    "cpus",
    "cpu_percent",
    "memory_kib",
    "memory_mib",
)
"""What is shown of a device, where it is known."""


def failure_findings(runs: Sequence[RecordedRun]) -> Iterator[Finding]:
    """Give the benchmarks that failed, with their reasons: results, unlike runs that broke."""
    for key, members in _by_cell(runs).items():
        failed = [each for each in members if each.is_failed_benchmark]
        if not failed:
            continue
        reasons = dict.fromkeys(str(each.header.get("reason") or "no reason given") for each in failed)
        yield finding(
            "failed_benchmark",
            dict(zip(("experiment", "configuration", "setting"), key, strict=True)),
            "always fails" if len(failed) == len(members) else "sometimes fails",
            facts={"failed": len(failed), "runs": len(members), "reason": "; ".join(reasons)},
            evidence=Evidence(
                "traces/*/header.json",
                {"folder": " ".join(each.place for each in failed)},
                ("outcome", "reason"),
                "runs whose benchmark failed",
            ),
        )


def _by_cell(runs: Sequence[RecordedRun]) -> dict[tuple[str, str, str], list[RecordedRun]]:
    found: dict[tuple[str, str, str], list[RecordedRun]] = {}
    for each in runs:
        if not each.is_twin:
            found.setdefault((each.experiment, each.configuration, each.setting), []).append(each)
    return found


def broken_findings(
    runs: Sequence[RecordedRun], refused: Sequence[tuple[RecordedRun, str]]
) -> Iterator[Finding]:
    """Give the runs that broke or whose files cannot be used: no results, and counted."""
    reasons = {each.run_id: reason for each, reason in refused}
    for each in runs:
        broke = each.run is None or (bool(each.problem) and not each.is_failed_benchmark)
        if not broke and each.run_id not in reasons:
            continue
        said = (each.message, each.problem, reasons.get(each.run_id, ""))
        repetition = str(each.block + 1) + (" (twin)" if each.is_twin else "")
        yield finding(
            "ended_early",
            {
                "experiment": each.experiment,
                "configuration": each.configuration,
                "setting": each.setting,
                "repetition": repetition,
            },
            each.status,
            facts={"reason": "; ".join(dict.fromkeys(text for text in said if text)), "run": each.place},
            evidence=Evidence(RUNS, {"run_id": each.run_id}, ("status",), "status"),
        )


def availability_findings(plan: Plan) -> Iterator[Finding]:
    """Say of every cell that cannot be run here why; what does not work has no numbers."""
    for cell in plan.cells:
        if not plan.is_twin(cell.number) and cell.missing is not None:
            yield finding("availability", dict(cell.levels), "unavailable", facts={"reason": cell.missing})


def device_facts(runs: Sequence[RecordedRun]) -> Iterator[Finding]:
    """Give every device with what is known of it and the limits that were applied."""
    known: dict[str, dict[str, Any]] = {}
    applied: dict[str, dict[str, None]] = {}
    missing: dict[str, None] = {}
    used: dict[str, int] = {}
    storages: dict[str, dict[str, None]] = {}
    for each in runs:
        for name, facts in (each.header.get("devices") or {}).items():
            known.setdefault(name, {}).update(facts if isinstance(facts, dict) else {})
            used[name] = used.get(name, 0) + 1
            applied.setdefault(name, {}).update(dict.fromkeys(_limits(each, name)))
        for name, storage in _storages(each):
            storages.setdefault(name, {})[storage] = None
        missing.update(dict.fromkeys(describe_missing(entry) for entry in each.header.get("missing") or ()))
    for name, facts in known.items():
        shown: dict[str, Fact] = {key: _scalar(facts[key]) for key in DEVICE_FACTS if key in facts}
        yield finding(
            "device",
            {"device": name},
            _kind_of(facts),
            facts={
                **shown,
                "storage": ", ".join(storages.get(name, ())),
                "limits": ", ".join(applied[name]),
                "runs": used[name],
            },
        )
    for reason in missing:
        yield finding("not_had", {"what": reason}, "missing", facts={})


def _kind_of(facts: Mapping[str, Any]) -> str:
    if facts.get("is_played") is True:
        return "played"
    return "shares its machine" if facts.get("shares_machine_with") else "real"


def software_findings(cells: Mapping[Key, CellRuns]) -> Iterator[Finding]:
    """Give every program whose version the runs say, with the settings that used each version."""
    used: dict[str, dict[str, dict[str, None]]] = {}
    for (_, _, setting), cell in cells.items():
        for name, version in cell.software.items():
            used.setdefault(name, {}).setdefault(version, {})[setting] = None
    for name, versions in used.items():
        told_apart = "; ".join(f"{version} ({', '.join(settings)})" for version, settings in versions.items())
        yield finding(
            "software",
            {"program": name},
            "one version" if len(versions) == 1 else "several versions",
            facts={"versions": next(iter(versions)) if len(versions) == 1 else told_apart},
            evidence=Evidence("traces/*/header.json", {}, ("software",), "versions that runs say"),
        )


def _storages(run: RecordedRun) -> Iterator[tuple[str, str]]:
    """Give the device of each role, and the storage that it used there with its file system."""
    placed = {} if run.run is None else (run.run.asked.get("setting") or {}).get("roles") or {}
    for role, facts in (run.header.get("roles") or {}).items():
        place = placed.get(role)
        if isinstance(facts, dict) and isinstance(place, dict) and facts.get("storage_kind"):
            yield str(place.get("device")), f"{place.get('storage')} ({facts['storage_kind']})"


def _limits(run: RecordedRun, name: str) -> Iterator[str]:
    """Give the limits that the device file states of a device."""
    devices = {} if run.run is None else run.run.asked.get("devices") or {}
    described = devices.get(name)
    if not isinstance(described, dict):
        return
    for key, value in described.items():
        if key not in {"name", "kind", "storages", "is_played"} and value not in (None, "", [], {}):
            yield f"{key.replace('_', ' ')} {_scalar(value)}"


def _scalar(value: Any) -> Fact:
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, list | tuple):
        return ", ".join(str(each) for each in value)
    if isinstance(value, dict):
        return ", ".join(f"{key} {each}" for key, each in value.items())
    return str(value)


@dataclass(frozen=True, slots=True)
class Twins:
    """The two cells of the A/A control, compared by one number of their runs."""

    sides: tuple[CellRuns, CellRuns]
    part: str
    metric: str
    judged: Judged


def judge_twins(summaries: Sequence[Summary], margins: Mapping[str, Margin], looks: Looks) -> Iterator[Twins]:
    """Compare the two cells of the A/A control, where there are both; on each host that it was placed on."""
    for key in dict.fromkeys(each.key for each in summaries if each.recorded.is_twin):
        twins = [each for each in summaries if each.recorded.is_twin and each.key == key]
        found = _judge_twins(key, twins, summaries, margins, looks)
        if found is not None:
            yield found


def _judge_twins(
    key: Key,
    twins: Sequence[Summary],
    summaries: Sequence[Summary],
    margins: Mapping[str, Margin],
    looks: Looks,
) -> Twins | None:
    firsts = [each for each in summaries if not each.recorded.is_twin and each.key == key]
    sides = (CellRuns(key, tuple(firsts)), CellRuns(key, tuple(twins)))
    metric = THROUGHPUT if key[0] == "e1" else MEAN
    part = next((name for name in sides[1].part_names if sides[1].values(name, metric)), None)
    if part is None or not sides[0].values(part, metric):
        return None
    found = differences(*(side.by_block(part, metric) for side in sides))
    return Twins(sides, part, metric, judge(found, design_of(margins[key[0]], 1), looks))


def twin_finding(
    summaries: Sequence[Summary], margins: Mapping[str, Margin], looks: Looks = None
) -> Iterator[Finding]:
    """Say what the study finds where there is nothing to find, if both cells of the control were measured."""
    for twins in judge_twins(summaries, margins, looks):
        yield _twin_finding(twins, margins[twins.sides[0].key[0]])


def _twin_finding(twins: Twins, margin: Margin) -> Finding:
    key, judged = twins.sides[0].key, twins.judged
    return finding(
        "a_a",
        {"experiment": key[0], "configuration": key[1], "setting": key[2], "operation": twins.part},
        judged.verdict.value,
        estimates={"ratio": ratio_estimate(judged.look, margin.level, 1)},
        facts={"metric": twins.metric, "margin_percent": 100 * margin.relative, "reason": judged.reason},
        evidence=evidence_of(twins.sides, "second cell over first in each block, geometric mean"),
    )


def remark_findings(plan_texts: Mapping[str, Sequence[str]]) -> Iterator[Finding]:
    """Give the texts of the study file, as they stand there."""
    for kind, texts in plan_texts.items():
        for number, text in enumerate(texts, start=1):
            yield finding("remark", {"kind": kind, "number": str(number)}, "stated", facts={"text": text})
