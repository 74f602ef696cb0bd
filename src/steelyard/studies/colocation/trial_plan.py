"""What one trial is asked for: the content of its ``trial.json``."""

from __future__ import annotations

import math
import shlex
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from steelyard.design.seeds import Purpose, generator
from steelyard.studies.colocation.policies import settings_of
from steelyard.studies.colocation.trial import FORMAT
from steelyard.studies.option_types import given

if TYPE_CHECKING:
    from collections.abc import Mapping

    from steelyard.studies.colocation.options import ColocationOptions
    from steelyard.studies.colocation.policies import Place, Policy

TRIAL_FILE: Final = "trial.json"
THREADS_PER_CPU: Final = 4
"""Threads of the service: more than CPUs, so that requests that wait are the scheduler's to order."""

US_PER_S: Final = 1_000_000
LARGEST_SEED: Final = 1 << 32


@dataclass(frozen=True, slots=True)
class Site:
    """What a trial needs to know of where it is run.

    Parameters
    ----------
    place : Place
        CPUs.
    work_iterations : int
        Loop length of one usual request; 0: the program finds it out.
    groups : Path or None
        Folder below which control groups are made, for policies that use them.
    groups_version : int
        1 or 2.
    programs : mapping
        Path of the scheduler's program by name.
    """

    place: Place
    work_iterations: int
    groups: Path | None = None
    groups_version: int = 2
    programs: Mapping[str, str] = field(default_factory=dict)


def trial_document(
    options: ColocationOptions, policy: Policy, load: str, seed: int, site: Site
) -> dict[str, Any]:
    """Give the content of ``trial.json``; the load is the share of CPU time that requests alone need [%]."""
    service, client = _requested(options, load, site) if options.client is None else launched(options.client)
    cpus = site.place.cpus
    return {
        "format": FORMAT,
        "seed": seed,
        "cpus": list(cpus),
        "client_cpus": list(site.place.client_cpus),
        "service": service,
        "client": client,
        "best_effort": {
            "kind": given(options.best_effort),
            "jobs": options.jobs if policy.has_jobs else 0,
            "threads": options.job_threads or math.ceil(len(cpus) / options.jobs),
        },
        "phases": {
            name: given(getattr(options, name))
            for name in ("warm_up_ms", "baseline_ms", "best_effort_ms", "recovery_ms", "drain_limit_ms")
        },
        "policy": settings_of(policy, site.programs),
        "groups": str(site.groups) if policy.uses_groups and site.groups is not None else None,
        "groups_version": site.groups_version,
    }


def _requested(options: ColocationOptions, load: str, site: Site) -> tuple[dict[str, Any], dict[str, Any]]:
    """Give Steelyard's own service, and the client that sends it requests."""
    cpus = len(site.place.cpus)
    service = {
        "kind": options.kind,
        "threads": options.threads or THREADS_PER_CPU * cpus,
        "work_iterations": site.work_iterations,
        "work_us": options.work_us,
        "long_share": options.long_share,
        "long_factor": options.long_factor,
    }
    client = {
        "rate_per_s": rate_per_s(options, int(load), cpus),
        "arrivals": given(options.arrivals),
        "connections": options.connections,
        "closed_loop": options.closed_loop,
    }
    return service, client


def launched(command: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Give a command in the place of both: one client, which waits for the end of each launch.

    Examples
    --------
    >>> launched("/opt/ask --twice")
    ({'kind': 'command', 'command': ['/opt/ask', '--twice']}, {'closed_loop': 1})
    """
    program, *words = shlex.split(command)
    path = Path(shutil.which(program) or program).absolute()
    return {"kind": "command", "command": [str(path), *words]}, {"closed_loop": 1}


def rate_per_s(options: ColocationOptions, load_percent: int, cpus: int) -> float:
    """Give the rate of requests at which their work takes a share of the CPUs' time.

    Examples
    --------
    >>> from steelyard.studies.colocation.options import ColocationOptions, settle
    >>> round(rate_per_s(settle(ColocationOptions(work_us=6000)), 90, 2))
    300
    """
    mean_work_us = options.work_us * (1 + options.long_share * (options.long_factor - 1))
    return load_percent / 100 * cpus * US_PER_S / mean_work_us


def seed_of(seed: int, block: int) -> int:
    """Give the seed of the arrivals of a block: the same for all of its trials, so that they are compared
    under the same requests.
    """  # noqa: D205 - one sentence
    return int(generator(seed, Purpose.ARRIVALS, block).integers(LARGEST_SEED))


def trial_seconds(options: ColocationOptions) -> float:
    """Give the time of a trial [s], without draining."""
    parts = ("warm_up_ms", "baseline_ms", "best_effort_ms", "recovery_ms")
    return sum(int(given(getattr(options, part))) for part in parts) / 1000
