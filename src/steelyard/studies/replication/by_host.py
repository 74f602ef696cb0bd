"""Runs of a study that was placed on several hosts: each host is a device, with settings of its own.

A run of ``native`` on the host ``n1`` becomes one of ``n1-native``, as if a device file had named the host.
What is counted are the blocks of each host: its first one is the first repetition there.

The launches of two hosts are paired by their number. They are independent, so that the pairs are, too: this
is the interval of Scheffe for two means, which asks nothing of how much each host scatters.

References
----------
.. [1] Scheffe (1943), "On solutions of the Behrens-Fisher problem, based on the t-distribution", Ann. Math.
   Statist. 14, 35: pairs of two samples of equal size.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from steelyard.record.placed.hosts import machine_of, machines_of
from steelyard.record.tables import read_runs
from steelyard.studies.placed.host_findings import names_of
from steelyard.studies.replication.settings import HERE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from steelyard.studies.replication.experiment_record import ExperimentRun
    from steelyard.studies.replication.recorded import RecordedRun


def on_devices(result: Path, runs: Sequence[RecordedRun]) -> tuple[RecordedRun, ...]:
    """Give the runs of a placed study under the names of their hosts, by host, cell and block."""
    rows = read_runs(result).select(["run_id", "host_id"]).to_pylist()
    host_of = {row["run_id"]: row["host_id"] for row in rows}
    names = names_of(result, host_of.values())
    sharing = {
        host: ", ".join(names[each] for each in hosts if each != host)
        for hosts in machines_of(names).values()
        for host in hosts
    }
    blocks: defaultdict[str, set[int]] = defaultdict(set)
    for each in runs:
        blocks[host_of[each.run_id]].add(each.block)
    nth = {
        (host, block): number for host, those in blocks.items() for number, block in enumerate(sorted(those))
    }
    found = []
    for each in runs:
        host = host_of[each.run_id]
        facts = {"machine": machine_of(host), "shares_machine_with": sharing[host]}
        found.append(
            replace(
                each,
                levels={**each.levels, "setting": f"{names[host]}-{each.setting}"},
                block=nth[host, each.block],
                run=None if each.run is None else _named(each.run, names[host], facts),
            )
        )
    order = {name: number for number, name in enumerate(sorted(names.values()))}
    return tuple(sorted(found, key=lambda each: (each.cell, order[names[host_of[each.run_id]]], each.block)))


def _named(run: ExperimentRun, host: str, facts: Mapping[str, str]) -> ExperimentRun:
    """Name the device of a run after its host, wherever the run says it."""
    devices = {**run.header.get("devices", {})}
    if isinstance(devices.get(HERE), dict):
        devices[host] = {**devices.pop(HERE), **facts}
    asked: dict[str, Any] = {**run.asked}
    if HERE in (asked.get("devices") or {}):
        asked["devices"] = {host: asked["devices"][HERE]}
    setting = asked.get("setting") or {}
    roles = {role: {**place, "device": host} for role, place in (setting.get("roles") or {}).items()}
    asked["setting"] = {**setting, "roles": roles}
    return replace(run, asked=asked, header={**run.header, "devices": devices})
