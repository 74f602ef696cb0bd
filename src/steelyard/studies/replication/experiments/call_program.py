"""The programs whose calls are timed: which command, with which probe, for a configuration of E2 or `causes`.

What a probe is, for every framework alike: ``inactive``, the probe is in the method and the framework is
turned off; ``collecting``, it makes its records and drops them; ``writing``, it writes them to the storage.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from steelyard.errors import DataError
from steelyard.studies.replication.experiments.gc_log import LOG_OPTION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from steelyard.studies.replication.devices.interface import Place

CALLS_FILE: Final = "calls.bin"
ABOUT_FILE: Final = "about.json"
PAUSES_FILE: Final = "pauses.log"
THREAD: Final = "steelyard-calls"
"""Kernel's name of the thread that makes the calls."""

HANDLED_BYTES: Final = 128
"""Size of the object that each call of `causes` handles: what `object-pools` can take away."""
PLANTED_BYTES: Final = 8192
"""Size of it where allocation is the planted cause."""
HEAP_OPTIONS: Final = ("-Xms256m", "-Xmx256m")
"""Heap of `causes`, so that a collection comes as often on every host; `jvm_options` may say otherwise."""
MOST_WRITTEN_BYTES: Final = {
    "kieker": 1 << 30,
    "opentelemetry-java": 4 << 30,
    "opentelemetry-python": 4 << 30,
}
"""What a writing probe may leave on the storage: Kieker deletes its oldest files beyond, OpenTelemetry's
exporters can write no more."""

_BLOCK_BYTES: Final = 512
"""SOURCE: POSIX.1-2024, `ulimit`: the unit of `-f`."""
_METHOD: Final = "steelyard.monitored.Monitored[call]"
_UNRECORDED: Final = "unrecorded"
_PROBES: Final = ("inactive", "collecting", "writing")
CONFIGURATIONS: Final = (
    *("none-unrecorded", "none-baseline"),
    *(f"kieker-{probe}" for probe in _PROBES),
    *(f"opentelemetry-java-{probe}" for probe in _PROBES),
    *("python-none-unrecorded", "python-none-baseline"),
    *(f"opentelemetry-python-{probe}" for probe in _PROBES),
)
"""What E2 measures."""
OF_CAUSES: Final = "none-baseline"
"""What `causes` changes, one intervention at a time."""


@dataclass(frozen=True, slots=True)
class CallProgram:
    """A program to be started.

    Parameters
    ----------
    command : sequence of str
        As the place sees it.
    framework : str
        ``none``, ``kieker``, ``opentelemetry-java``, ``opentelemetry-python``.
    probe : str
        ``unrecorded``, ``baseline``, ``inactive``, ``collecting``, ``writing``.
    is_java : bool
        Whether it leaves `PAUSES_FILE`.
    record_mark : str
        Text that stands once in each record that the framework writes; empty where it writes none.
    """

    command: tuple[str, ...]
    framework: str
    probe: str
    is_java: bool
    record_mark: str = ""

    @property
    def is_recorded(self) -> bool:
        """Whether every call is timed."""
        return self.probe != _UNRECORDED


def call_program(
    configuration: str, parameters: Mapping[str, Any], place: Place, agents: Sequence[str], *, of_causes: bool
) -> CallProgram:
    """Give the program of a configuration at a place.

    Parameters
    ----------
    configuration : str
        One of `CONFIGURATIONS`.
    parameters : Mapping
        What the run asks for: `calls` in all, `warm_up_calls` of them, `depth`, `method_ns`, `jvm_options`,
        `app_options`, `cpus`, `nice`.
    place : Place
        Where it is run.
    agents : sequence of str
        Names of the files of the Java agents that were fetched.
    of_causes : bool
        Whether it is the program of `causes`, whose calls handle an object each.

    Raises
    ------
    DataError
        If there is no such configuration.
    """
    if configuration not in CONFIGURATIONS:
        message = f"unknown configuration `{configuration}`; known: {', '.join(CONFIGURATIONS)}"
        raise DataError(message, code="experiment.configuration")
    framework, _, probe = configuration.removeprefix("python-").rpartition("-")
    is_java = "python" not in configuration
    words = _words(parameters, place, is_recorded=probe != _UNRECORDED)
    if is_java:
        options = [*_probe_options(framework, probe, place, agents)]
        if of_causes:
            options += HEAP_OPTIONS
            handled = PLANTED_BYTES if parameters.get("planted") == "allocation" else HANDLED_BYTES
            words += ["--allocate", str(handled)]
        command = [*_java(options, parameters, place), *words]
    else:
        command = [*_python(probe, place), *words]
    command += parameters.get("app_options", ())
    mark = _MARKS.get(framework, "") if probe == "writing" else ""
    if mark and framework != "kieker":
        # OpenTelemetry's exporters write to the standard output, without an end.
        blocks = MOST_WRITTEN_BYTES[framework] // _BLOCK_BYTES
        script = f'ulimit -f {blocks} && exec "$@" > "$0"'
        command = ["sh", "-c", script, place.stored_path("spans.json"), *command]
    return CallProgram((*_bound(parameters), *command), framework, probe, is_java, mark)


_MARKS: Final = {
    "kieker": "Monitored.call(",
    "opentelemetry-java": '"spanId"',
    "opentelemetry-python": '"span_id"',
}


def _words(parameters: Mapping[str, Any], place: Place, *, is_recorded: bool) -> list[str]:
    words = ["--about", place.path(ABOUT_FILE)]
    if is_recorded:
        words += ["--record", place.path(CALLS_FILE)]
    for name in ("calls", "warm_up_calls", "depth", "method_ns"):
        words += [f"--{name.replace('_', '-')}", str(parameters[name])]
    return words


def _bound(parameters: Mapping[str, Any]) -> list[str]:
    """Give the words that bind to CPUs and set the priority."""
    words = []
    if parameters.get("cpus") is not None:
        words += ["taskset", "--cpu-list", ",".join(map(str, parameters["cpus"]))]
    if parameters.get("nice", 0) != 0:
        words += ["nice", "-n", str(parameters["nice"])]
    return words


def _java(options: Sequence[str], parameters: Mapping[str, Any], place: Place) -> list[str]:
    return [
        "java",
        LOG_OPTION.format(path=place.path(PAUSES_FILE)),
        *options,
        *parameters.get("jvm_options", ()),
        "-cp",
        f"{place.artefacts}/benchmarks/benchmarks.jar",
        "steelyard.monitored.Main",
    ]


def _python(probe: str, place: Place) -> list[str]:
    folder = PurePosixPath(place.artefacts) / "python"
    words = [str(folder / "bin" / "python"), str(folder / "monitored.py")]
    if probe in _PROBES:
        words += ["--probe", probe]
    return words


def _probe_options(framework: str, probe: str, place: Place, agents: Sequence[str]) -> list[str]:
    if framework == "none":
        return []
    name = "kieker" if framework == "kieker" else "opentelemetry"
    agent = next((each for each in agents if each.startswith(name)), None)
    if agent is None:
        message = f"no agent of {name} was fetched"
        raise DataError(message, hint="make deps-replication", code="experiment.agent")
    properties = _kieker(probe, place) if framework == "kieker" else _opentelemetry(probe)
    attached = f"-javaagent:{place.artefacts}/benchmarks/agents/{agent}"
    return [attached, *(f"-D{key}={value}" for key, value in properties.items())]


def _kieker(probe: str, place: Place) -> dict[str, str]:
    """Give Kieker's properties; a full queue lets the call wait, so that no record is lost."""
    root = "kieker.monitoring"
    properties = {
        f"{root}.enabled": "false" if probe == "inactive" else "true",
        f"{root}.core.controller.WriterController.RecordQueueInsertBehavior": "1",
        f"{root}.writer": f"{root}.writer.dump.DumpWriter",
    }
    if probe == "writing":
        writer = f"{root}.writer.filesystem.FileWriter"
        properties |= {
            f"{root}.writer": writer,
            f"{writer}.customStoragePath": place.stored_path("."),
            f"{writer}.maxLogSize": str(MOST_WRITTEN_BYTES["kieker"] >> 20),
        }
    return properties


def _opentelemetry(probe: str) -> dict[str, str]:
    """Give the agent's properties: the one method, no other instrumentation, traces only."""
    exporter = "experimental-otlp/stdout" if probe == "writing" else "none"
    properties = {
        "otel.instrumentation.common.default-enabled": "false",
        "otel.instrumentation.methods.enabled": "true",
        "otel.instrumentation.methods.include": _METHOD,
        "otel.traces.exporter": exporter,
        "otel.metrics.exporter": "none",
        "otel.logs.exporter": "none",
    }
    if probe == "inactive":
        properties["otel.sdk.disabled"] = "true"
    return properties
