"""What each experiment measures: its configurations, and what their programs are given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from steelyard.errors import UsageError
from steelyard.studies.option_types import given
from steelyard.studies.replication.interventions import AS_IT_IS, interventions_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from steelyard.studies.replication.options import (
        CauseTreeOptions,
        LoadOptions,
        MonitoringOptions,
        ReplicationOptions,
    )

FLOOR: Final = "harness-floor"
MICRO: Final = (
    FLOOR,
    "invocation-interpreted",
    "invocation-c1",
    "invocation-c2",
    "invocation-no-inlining",
    "file-io",
    "file-synced",
    "file-direct",
    "network-io",
)
PROBES: Final = ("inactive", "collecting", "writing")
MONITORING: Final = (
    "none-unrecorded",
    "none-baseline",
    *(f"kieker-{probe}" for probe in PROBES),
    *(f"opentelemetry-java-{probe}" for probe in PROBES),
    "python-none-unrecorded",
    "python-none-baseline",
    *(f"opentelemetry-python-{probe}" for probe in PROBES),
)
QUICK: Final = {
    "e1": (FLOOR, "invocation-c2", "file-synced", "network-io"),
    "e2": ("none-unrecorded", "none-baseline", "kieker-writing"),
}
"""Of each experiment that has more than a quick study has time for."""
MIXED: Final = "mixed"
STAND_IN: Final = "stand-in"
OWN: Final = "own"

Configurations = dict[str, dict[str, Any]]
"""Parameters of each configuration, by name and in order."""


def configurations_of(options: ReplicationOptions, first_cpu: int) -> dict[str, Configurations]:
    """Give the configurations of each experiment that was asked for.

    Raises
    ------
    UsageError
        If a configuration or an intervention that was asked for is not known.
    """
    every = {
        "e1": dict.fromkeys(MICRO, _micro(options)),
        "e2": {name: _monitoring(options.e2, name) for name in MONITORING},
        "e3": {MIXED: _load(options.e3)},
        "e4": _macro(options),
        "causes": _causes(options, first_cpu),
    }
    asked = [name for name in every if name in given(options.experiments)]
    known = [name for experiment in asked for name in every[experiment]]
    strange = [name for name in options.configurations or () if name not in known]
    if strange:
        experiments = ", ".join(asked)
        message = f"`configurations` names `{strange[0]}`, which is not a configuration of {experiments}"
        raise UsageError(message, hint=f"allowed: {', '.join(dict.fromkeys(known))}")
    return {name: _chosen(every[name], name, options) for name in asked}


def _chosen(every: Configurations, experiment: str, options: ReplicationOptions) -> Configurations:
    """Take those that were asked for; all where none of the experiment is named."""
    named = [name for name in every if name in (options.configurations or ())]
    if not named and options.quick:
        named = [name for name in every if name in QUICK.get(experiment, ())]
    if experiment == "causes" and named:
        named = [name for name in every if name in named or name == AS_IT_IS]
    return {name: every[name] for name in named or every}


def uses_storage(experiment: str, configuration: str) -> bool:
    """Whether a program of one role works on the storage of its role.

    Examples
    --------
    >>> uses_storage("e1", "file-synced"), uses_storage("e1", "network-io"), uses_storage("causes", "file-x")
    (True, False, False)
    """
    return experiment == "e1" and configuration.startswith("file-")


def has_probe(name: str) -> bool:
    """Whether a framework covers the calls of a configuration.

    Examples
    --------
    >>> [has_probe(name) for name in ("kieker-inactive", "python-none-baseline")]
    [True, False]
    """
    return name.startswith(("kieker", "opentelemetry"))


def _micro(options: ReplicationOptions) -> dict[str, Any]:
    return options.e1.model_dump(mode="json")


def _monitoring(options: MonitoringOptions, name: str) -> dict[str, Any]:
    is_python = "python" in name
    if has_probe(name):
        calls = given(options.python_calls if is_python else options.calls)
    else:
        calls = given(options.unprobed_python_calls if is_python else options.unprobed_calls)
    parameters = _calls(options, calls)
    return {**parameters, "jvm_options": []} if is_python else parameters


def _calls(options: CauseTreeOptions, calls: int) -> dict[str, Any]:
    return {
        "calls": calls,
        "warm_up_calls": calls // 2,
        "depth": options.depth,
        "method_ns": options.method_ns,
        "jvm_options": list(options.jvm_options),
        "app_options": [],
        "cpus": None,
        "nice": 0,
        "planted": "none",
    }


def _causes(options: ReplicationOptions, first_cpu: int) -> Configurations:
    unchanged = {**_calls(options.cause_tree, given(options.cause_tree.calls)), "planted": options.planted}
    return {each.name: each.applied_to(unchanged) for each in interventions_of(options, first_cpu)}


def _load(options: LoadOptions) -> dict[str, Any]:
    return options.model_dump(mode="json")


def _macro(options: ReplicationOptions) -> Configurations:
    own: Mapping[str, Any] = options.own_benchmark.model_dump(mode="json")
    return {STAND_IN: _load(options.e4), OWN: {**_load(options.e4), **own}}
