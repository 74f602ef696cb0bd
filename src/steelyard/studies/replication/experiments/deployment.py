"""The service of orders with its database, deployed for one run."""

from __future__ import annotations

import json
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from steelyard.errors import RunError
from steelyard.studies.replication.experiments.database import (
    USER,
    last_line,
    listen_address,
    private_database,
    stop,
)
from steelyard.studies.replication.experiments.files import write_table
from steelyard.studies.replication.experiments.gc_log import LOG_OPTION, read_pauses

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from steelyard.studies.replication.devices.interface import Place, Process
    from steelyard.studies.replication.experiments.conduct import Conducted
    from steelyard.studies.replication.experiments.database import Database

ARTEFACT: Final = "service"
DATABASE: Final = "database"
DRIVER: Final = "driver"
WEB: Final = ("web", "service")
"""Names of the role that runs the service."""
READY: Final = "steelyard ready "
GC_LOG: Final = "gc.log"
START_LIMIT_S: Final = 300.0
"""Within it the service is to be ready, with its rows; a slow device needs minutes."""
STOP_LIMIT_S: Final = 30.0
LOOK_S: Final = 0.02


@dataclass(frozen=True, slots=True)
class Deployment:
    """A service that is ready.

    Parameters
    ----------
    address : str
        ``HOST:PORT``.
    """

    address: str


@contextmanager
def deployed(run: Conducted, parameters: Mapping[str, Any]) -> Iterator[Deployment]:
    """Start database and service at their places, wait until both are ready, and end them in order.

    The run gets versions, start-up times, the number of rows, and the pauses of the service's run time
    system.

    Raises
    ------
    CapabilityError
        If PostgreSQL or the built service is missing.
    RunError
        If one of them does not become ready.
    """
    run.artefact(ARTEFACT)
    with (
        run.place(DATABASE) as below,
        private_database(run, below) as database,
        run.place(web_role(run)) as place,
    ):
        process = _start(run, place, database, parameters)
        try:
            yield Deployment(_join(place.address, _await_ready(run, process)))
        finally:
            stop(run, process, web_role(run), STOP_LIMIT_S)
        _keep_pauses(run, place)


def web_role(run: Conducted) -> str:
    """Give the name that the setting has for the role of the service."""
    roles = run.asked["setting"]["roles"]
    return next((name for name in WEB if name in roles), WEB[0])


def _start(run: Conducted, place: Place, database: Database, parameters: Mapping[str, Any]) -> Process:
    run.says("rows", parameters["rows"])
    words = (
        "java",
        "-XX:-UsePerfData",
        # Where it is missing or made by another virtual machine, classes are loaded one by one.
        "-Xshare:auto",
        f"-XX:SharedArchiveFile={place.artefacts}/{ARTEFACT}/service.jsa",
        f"-Djava.io.tmpdir={place.path('')}",
        LOG_OPTION.format(path=place.path(GC_LOG)),
        *parameters.get("jvm_options", ()),
        "-jar",
        f"{place.artefacts}/{ARTEFACT}/service.jar",
        f"--server.address={listen_address(place.address)}",
        f"--steelyard.rows={parameters['rows']}",
        f"--steelyard.seed={run.asked['seed']}",
    )
    environment = {
        "SPRING_DATASOURCE_URL": database.jdbc,
        "SPRING_DATASOURCE_USERNAME": USER,
        "SPRING_DATASOURCE_PASSWORD": database.password,
    }
    run.says("command", {web_role(run): list(words)})
    return place.start(words, log=run.log(web_role(run)), environment=environment)


def _keep_pauses(run: Conducted, place: Place) -> None:
    """Keep the pauses of the service, by its own log."""
    with tempfile.TemporaryDirectory(dir=run.folder) as folder:
        path = Path(folder) / GC_LOG
        place.get(GC_LOG, path)
        with path.open(encoding="utf-8", errors="replace") as lines:
            pauses = read_pauses(lines)
    names = ("start_ns", "duration_ns", "kind", "cause")
    write_table(run.folder, "pauses", {name: [getattr(each, name) for each in pauses] for name in names})


def _await_ready(run: Conducted, process: Process) -> int:
    """Wait until the service says where it listens; versions go to the header."""
    log = run.log(web_role(run))
    begin_ns = time.monotonic_ns()
    while time.monotonic_ns() - begin_ns < START_LIMIT_S * 1e9:
        facts = _facts(log)
        if facts is not None:
            run.says("start_up_ns", {"web": time.monotonic_ns() - begin_ns})
            port = int(facts.pop("port"))
            facts.pop("rows")
            run.says("software", facts)
            return port
        if process.poll() is not None:
            message = f"the service ended before it was ready: {last_line(log)}"
            raise RunError(message, hint=f"read `{log.name}`", code="run.service")
        time.sleep(LOOK_S)
    message = f"the service was not ready after {START_LIMIT_S:g} s"
    raise RunError(message, hint=f"read `{log.name}`", code="run.service")


def _facts(log: Path) -> dict[str, Any] | None:
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    # A line counts once it is whole.
    for line in text.split("\n")[:-1]:
        if line.startswith(READY):
            facts: dict[str, Any] = json.loads(line.removeprefix(READY))
            return facts
    return None


def _join(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
