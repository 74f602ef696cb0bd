"""The cells of a replication study: configurations of experiments in settings."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from steelyard.model import Cell, Execution
from steelyard.run.executor.resident import program_environment
from steelyard.run.executor.run_files import PLACE
from steelyard.studies.replication.configurations import OWN, uses_storage
from steelyard.studies.replication.findings.effects import CONTAINER, NATIVE, STORAGE_SWAPPED, devices_of
from steelyard.studies.replication.programs import absence
from steelyard.studies.replication.settings import OTHER_STORAGE, settings_of_program, settings_of_service

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from steelyard.studies.replication.configurations import Configurations
    from steelyard.studies.replication.options import ReplicationOptions
    from steelyard.studies.replication.programs import Programs
    from steelyard.studies.replication.settings import Setting, StudyDevices

ISOLATION: Final = "bare"
CONDUCTOR: Final = "steelyard.studies.replication.experiments"
KEPT_ERROR_BYTES: Final = 8192
INSIDE_OR_NONE: Final = frozenset({"none", "allocation"})
"""Planted causes that are no job of its own."""
WITH_SERVICE: Final = frozenset({"e3", "e4"})
PASSED_ON: Final = ("XDG_CACHE_HOME", "JAVA_HOME", "DOCKER_HOST", "SSH_AUTH_SOCK")
"""Variables that say where things are; the conductor gets them, measured programs do not."""


@dataclass(frozen=True, slots=True)
class Host:
    """What of this host decides which cells there are.

    Parameters
    ----------
    devices : dict
        The devices by name, as objects of ``experiment.json``.
    note : str
        Why they are what they are, for the report; empty for those of a file.
    ground : StudyDevices
        Devices by what is placed on them, and the container technology.
    programs : Programs
        What is installed and built.
    cpus : tuple of int
        CPUs that this process may use.
    may_raise_priority : bool
        Whether it may lower a nice value.
    """

    devices: dict[str, dict[str, Any]]
    note: str
    ground: StudyDevices
    programs: Programs
    cpus: tuple[int, ...]
    may_raise_priority: bool


def settings_of(experiment: str, ground: StudyDevices) -> tuple[Setting, ...]:
    """Give the settings of an experiment; the cause tree is native only."""
    if experiment in WITH_SERVICE:
        return settings_of_service(ground)
    settings = settings_of_program(ground)
    if experiment == "causes":
        return tuple(each for each in settings if each.name.endswith("native"))
    return settings


def cells_of(
    options: ReplicationOptions, configurations: Mapping[str, Configurations], host: Host
) -> tuple[Cell, ...]:
    """Give all cells in the order of the factors, those that cannot be run here included."""
    levels = [
        (experiment, configuration, setting)
        for experiment, parameters in configurations.items()
        for configuration in parameters
        for setting in _wanted_settings(experiment, options, host.ground)
        if experiment in WITH_SERVICE or uses_storage(experiment, configuration) or not _is_moved(setting)
    ]
    return tuple(
        _cell(number, experiment, (configuration, configurations[experiment]), setting, options, host)
        for number, (experiment, configuration, setting) in enumerate(levels)
    )


def _is_moved(setting: Setting) -> bool:
    return setting.name.endswith(OTHER_STORAGE)


def _wanted_settings(experiment: str, options: ReplicationOptions, ground: StudyDevices) -> Iterator[Setting]:
    """Give the settings that were asked for, or of a quick study those that it has time for."""
    every = settings_of(experiment, ground)
    wanted = options.settings
    if wanted is None and options.quick:
        wanted = quick_settings(experiment, [setting.name for setting in every])
    for setting in every:
        if wanted is None or setting.name in wanted:
            yield setting


def quick_settings(experiment: str, names: Sequence[str]) -> tuple[str, ...]:
    """Choose one container, one other device, one exchange of roles, and one place of the cause tree.

    Examples
    --------
    >>> quick_settings("e1", ["native", "D1-native", "D1-container", "D2-native", "D2-container"])
    ('D1-native', 'D1-container', 'D2-native')
    >>> quick_settings("e3", ["native", "container", "swapped", "storage-swapped"])
    ('native', 'container', 'swapped')
    >>> quick_settings("causes", ["native", "D1-native"])
    ('native',)
    """
    if experiment == "causes":
        return tuple(names[:1])
    devices = devices_of(names)
    if len(devices) > 1:
        return f"{devices[0]}-{NATIVE}", f"{devices[0]}-{CONTAINER}", f"{devices[1]}-{NATIVE}"
    return tuple(name for name in names if name != STORAGE_SWAPPED)


def _cell(
    number: int,
    experiment: str,
    configured: tuple[str, Configurations],
    setting: Setting,
    options: ReplicationOptions,
    host: Host,
) -> Cell:
    name, every = configured
    levels = {"experiment": experiment, "configuration": name, "setting": setting.name}
    reasons = _reasons(experiment, name, every, host)
    missing = setting.missing or next(reasons, None)
    if missing is not None:
        return Cell(number, levels, None, missing)
    passed = [name for name in PASSED_ON if name in os.environ]
    execution = Execution(
        isolation=ISOLATION,
        command=(sys.executable, "-m", CONDUCTOR, PLACE),
        environment=program_environment(passed),
        limits=options.limits.limits(),
        working_directory="/",
        kept_error_bytes=KEPT_ERROR_BYTES,
    )
    return Cell(number, levels, execution)


def _reasons(experiment: str, name: str, every: Configurations, host: Host) -> Iterator[str]:
    """Give why a configuration cannot be run here."""
    absent = absence(experiment, name, host.programs)
    if absent is not None:
        yield absent
    parameters = every[name]
    if name == OWN and experiment == "e4" and not parameters.get("command"):
        yield "no benchmark of your own is described (repair: own_benchmark.command of the study file)"
    if experiment == "causes":
        yield from _cause_reasons(name, parameters, every, host)


def _cause_reasons(
    name: str, parameters: Mapping[str, Any], every: Configurations, host: Host
) -> Iterator[str]:
    strange = sorted(set(parameters["cpus"] or ()) - set(host.cpus))
    if strange:
        yield f"this process may not use CPU {strange[0]} (repair: name one of {_list(host.cpus)})"
    if parameters["nice"] < 0 and not host.may_raise_priority:
        yield "only root may raise a priority (repair: sudo steelyard run ..., or `ulimit -e`)"
    planted = next(iter(every.values()))["planted"]
    if name == "alone" and planted in INSIDE_OR_NONE:
        yield f"no job runs beside the program that the study could end (`planted` is {planted})"


def _list(numbers: tuple[int, ...]) -> str:
    return ", ".join(map(str, numbers))
