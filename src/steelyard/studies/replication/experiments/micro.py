"""E1: microbenchmarks, each by one fork of JMH."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from steelyard.errors import DataError, RunError
from steelyard.studies.replication.experiments.files import JMH_FILE
from steelyard.studies.replication.experiments.program import execute

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from steelyard.studies.replication.devices.interface import Place
    from steelyard.studies.replication.experiments.conduct import Conducted

ROLE: Final = "app"
_INVOKE: Final = "steelyard.micro.MethodInvocation.invoke"
_NOTHING: Final = "steelyard.micro.MethodInvocation.nothing"
_FILE: Final = "steelyard.micro.FileAccess.writeAndRead"
_ONE_COMPILER: Final = "-XX:-TieredCompilation"
_BOTH_COMPILERS: Final = "-XX:+TieredCompilation"
"""Java's default, stated: without any option the fork would have those of JMH's own machine."""

BLOCK_BYTES: Final = 4096
"""A multiple of the blocks of every usual storage, as access past the cache needs."""

FLOOR: Final = "harness-floor"
"""A benchmark that does nothing: what JMH itself takes for an operation, translated as `invocation-c2` is."""

BENCHMARKS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    FLOOR: (_NOTHING, (_ONE_COMPILER,)),
    "invocation-interpreted": (_INVOKE, ("-Xint",)),
    "invocation-c1": (_INVOKE, ("-XX:TieredStopAtLevel=1",)),
    "invocation-c2": (_INVOKE, (_ONE_COMPILER,)),
    "invocation-no-inlining": (
        _INVOKE,
        (_ONE_COMPILER, "-XX:CompileCommand=dontinline,steelyard.micro.MethodInvocation::next"),
    ),
    "file-io": (_FILE, (_BOTH_COMPILERS,)),
    "file-synced": (_FILE, (_BOTH_COMPILERS,)),
    "file-direct": (_FILE, (_BOTH_COMPILERS,)),
    "network-io": ("steelyard.micro.NetworkRequest.requestAndReply", (_BOTH_COMPILERS,)),
}
"""Benchmark and options of the forked virtual machine, by configuration."""

STORED: Final[dict[str, tuple[str, ...]]] = {
    "file-io": (),
    "file-synced": ("access=synced", f"blockBytes={BLOCK_BYTES}"),
    "file-direct": ("access=direct", f"blockBytes={BLOCK_BYTES}"),
}
"""Parameters of the benchmarks that use the storage of their role."""


def conduct(run: Conducted) -> None:
    """Run one fork of JMH, and keep its result file as it is."""
    configuration = str(run.asked["configuration"]["name"])
    run.artefact("benchmarks/benchmarks.jar")
    with run.place(ROLE) as place:
        command = jmh_command(configuration, run.parameters, place)
        run.says("command", command)
        run.measure_starts()
        execute(run, ROLE, place, command)
        result = run.folder / JMH_FILE
        place.get(JMH_FILE, result)
    said = _result(result)
    run.says("software", {"java": said["jdkVersion"], "jmh": said["jmhVersion"]})
    run.says("jvm_options", said["jvmArgs"])


def jmh_command(configuration: str, parameters: Mapping[str, Any], place: Place) -> list[str]:
    """Give the command of one fork.

    JMH's own virtual machine starts the one that measures, with the options of the configuration.

    Parameters
    ----------
    configuration : str
        One of `BENCHMARKS`.
    parameters : Mapping
        `warm_up_iterations`, `iterations`, `iteration_ms`; perhaps `jvm_options`, for the measuring machine.
    place : Place
        Where it is run.

    Raises
    ------
    DataError
        If there is no such configuration.
    """
    if configuration not in BENCHMARKS:
        message = f"unknown configuration `{configuration}`; known: {', '.join(BENCHMARKS)}"
        raise DataError(message, code="experiment.configuration")
    benchmark, options = BENCHMARKS[configuration]
    options = (*options, *parameters.get("jvm_options", ()))
    folder = f"{place.artefacts}/benchmarks"
    length = f"{parameters['iteration_ms']}ms"
    # JMH locks a file there against others of its kind, which are none of this run's.
    words = ["java", f"-Djava.io.tmpdir={place.path('.')}"]
    words += ["-cp", f"{folder}/benchmarks.jar:{folder}/jmh/*", "org.openjdk.jmh.Main"]
    words += [f"^{benchmark.replace('.', '[.]')}$", "-f", "1", "-foe", "true"]
    words += ["-wi", str(parameters["warm_up_iterations"]), "-w", length]
    words += ["-i", str(parameters["iterations"]), "-r", length]
    words += ["-rf", "json", "-rff", place.path(JMH_FILE)]
    words += ["-jvmArgs", " ".join(options)]
    if configuration in STORED:
        for word in (f"folder={place.stored_path('.')}", *STORED[configuration]):
            words += ["-p", word]
    return words


def _result(path: Path) -> dict[str, Any]:
    """Read the one result of a file of JMH."""
    results = json.loads(path.read_text(encoding="utf-8"))
    if len(results) != 1:
        message = f"JMH gave {len(results)} results where one benchmark was asked for"
        raise RunError(message, hint="make deps-replication", code="run.jmh")
    result: dict[str, Any] = results[0]
    return result
