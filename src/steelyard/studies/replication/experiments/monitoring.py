"""E2 and `causes`: calls of a monitored method, each timed by the program itself.

Its header says, beside what every header says: `calls` in all; `warm_up_calls`, how many of them came before
those that are measured (they are recorded too, and come first); `depth`; `method_ns`; `loop_ns` and
`measured_ns`, how long all calls and the measured ones took; `probe`, the framework and what its probe does;
`program`, what the program says of itself and of its virtual machine, with the collections it knows of; and,
where a framework writes, `written`: `records` and `bytes` found on the storage, and `expected_records`, one
for each call of the method. OpenTelemetry drops what its queue has no room for; Kieker waits, and deletes its
oldest files beyond `most_bytes`, more than which OpenTelemetry cannot write.
"""

from __future__ import annotations

import json
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from steelyard.errors import CapabilityError, RunError
from steelyard.studies.replication.experiments.call_program import (
    ABOUT_FILE,
    CALLS_FILE,
    MOST_WRITTEN_BYTES,
    OF_CAUSES,
    PAUSES_FILE,
    THREAD,
    call_program,
)
from steelyard.studies.replication.experiments.files import write_table
from steelyard.studies.replication.experiments.gc_log import read_pauses
from steelyard.studies.replication.experiments.planted import planting
from steelyard.studies.replication.experiments.program import execute
from steelyard.studies.replication.experiments.watched import watching

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.studies.replication.devices.interface import Place
    from steelyard.studies.replication.experiments.call_program import CallProgram
    from steelyard.studies.replication.experiments.conduct import Conducted

ROLE: Final = "app"
CALL: Final = np.dtype([("start_ns", "<i8"), ("duration_ns", "<i8")])
"""A call as the programs record it."""
_PLANTED_INSIDE: Final = frozenset({"none", "allocation"})
_SAID: Final = ("calls", "warm_up_calls", "depth", "method_ns", "loop_ns", "measured_ns")
"""Of what a program says of itself, what goes to the header by its name."""
_COUNT: Final = """find "$1" -type f -exec cat {} + | grep -oF -e "$2" | wc -l
find "$1" -type f -exec cat {} + | wc -c"""


def conduct(run: Conducted) -> None:
    """Run one loop of calls, and keep the calls, the pauses of the run time system and what was said."""
    with run.place(ROLE) as place:
        program = _program(run, place)
        run.says("command", list(program.command))
        run.says("probe", {"framework": program.framework, "kind": program.probe})
        run.measure_starts()
        with _beside(run):
            execute(run, ROLE, place, program.command)
        with tempfile.TemporaryDirectory(prefix="steelyard-calls-") as name:
            _keep(run, place, program, Path(name))
        if program.record_mark:
            run.says("written", _written(run, place, program))


def _program(run: Conducted, place: Place) -> CallProgram:
    is_causes = run.asked["experiment"] == "causes"
    configuration = OF_CAUSES if is_causes else str(run.asked["configuration"]["name"])
    agents: list[str] = []
    if configuration.startswith(("kieker", "opentelemetry-java")):
        agents = sorted(each.name for each in run.artefact("benchmarks/agents").iterdir())
    run.artefact("python/monitored.py" if "python" in configuration else "benchmarks/benchmarks.jar")
    return call_program(configuration, run.parameters, place, agents, of_causes=is_causes)


@contextmanager
def _beside(run: Conducted) -> Iterator[None]:
    """Record who takes the CPU from the calls, and plant what is to disturb them.

    Both live on this host; on another device nothing is watched, and nothing can be planted but allocation.
    """
    planted = str(run.parameters.get("planted", "none"))
    device = run.asked["setting"]["roles"][ROLE]["device"]
    if run.asked["devices"][device]["kind"] != "ssh":
        with watching(run, names=(THREAD,)), planting(run, planted, name=THREAD):
            yield
        return
    if planted not in _PLANTED_INSIDE:
        message = f"`{planted}` cannot be planted on `{device}`, which is another host"
        raise CapabilityError(message, hint="plant it on this host", code="capability.planted")
    run.missing(f"threads on `{device}` are not watched: it is another host")
    run.says("planted", {"cause": planted})
    yield


def _keep(run: Conducted, place: Place, program: CallProgram, folder: Path) -> None:
    """Turn what the program left into the files of the run."""
    about = _about(place, folder)
    run.says("program", about)
    run.says("software", _software(run, program, about))
    for key in _SAID:
        run.says(key, about[key])
    run.says("measure_start_ns", about["measured_start_ns"])
    if program.is_recorded:
        _keep_calls(run.folder, place, folder / CALLS_FILE, int(about["calls"]))
    if not program.is_java:
        run.missing("pauses: CPython keeps no log of its collections")
    else:
        place.get(PAUSES_FILE, folder / PAUSES_FILE)
        with (folder / PAUSES_FILE).open(encoding="utf-8", errors="replace") as log:
            pauses = read_pauses(log)
        write_table(
            run.folder,
            "pauses",
            {
                "start_ns": [each.start_ns for each in pauses],
                "duration_ns": [each.duration_ns for each in pauses],
                "kind": [each.kind for each in pauses],
                "cause": [each.cause for each in pauses],
            },
        )


def _about(place: Place, folder: Path) -> dict[str, Any]:
    place.get(ABOUT_FILE, folder / ABOUT_FILE)
    about: dict[str, Any] = json.loads((folder / ABOUT_FILE).read_text(encoding="utf-8"))
    return about


def _keep_calls(target: Path, place: Place, raw: Path, calls: int) -> None:
    """Write the table of calls."""
    place.get(CALLS_FILE, raw)
    records = np.fromfile(raw, CALL)
    if len(records) != calls or not records["start_ns"].all():
        message = f"the program made {calls} calls and recorded {np.count_nonzero(records['start_ns'])}"
        raise RunError(message, hint="read the end of its log", code="run.calls")
    columns = {name: np.ascontiguousarray(records[name], np.int64) for name in ("start_ns", "duration_ns")}
    write_table(target, "calls", columns)


def _software(run: Conducted, program: CallProgram, about: dict[str, Any]) -> dict[str, str]:
    """Give the versions of what was run."""
    software = {str(about["language"]): str(about["runtime"])}
    if program.framework == "opentelemetry-python":
        software["opentelemetry-sdk"] = str(about["opentelemetry"])
    elif program.framework != "none":
        marker = "kieker" if program.framework == "kieker" else "opentelemetry-javaagent"
        for each in run.artefact("benchmarks/agents").glob(f"{marker}-*.jar"):
            software[marker] = each.stem.removeprefix(f"{marker}-")
    return software


def _written(run: Conducted, place: Place, program: CallProgram) -> dict[str, int]:
    """Count what the framework wrote to the storage."""
    log = run.log("written")
    words = (place.stored_path("."), program.record_mark)
    with _removed(log):
        execute(run, "written", place, ("sh", "-c", _COUNT, "sh", *words))
        records, size = log.read_text(encoding="utf-8").split()[-2:]
    return {
        "records": int(records),
        "bytes": int(size),
        "expected_records": int(run.parameters["calls"]) * int(run.parameters["depth"]),
        "most_bytes": MOST_WRITTEN_BYTES[program.framework],
    }


@contextmanager
def _removed(path: Path) -> Iterator[None]:
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
