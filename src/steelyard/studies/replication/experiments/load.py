"""The open-loop driver at its place: ``steelyard-load http``, and its records as a table."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from steelyard.errors import RunError
from steelyard.run.programs import load_program
from steelyard.studies.replication.experiments.conduct import BenchmarkFailed
from steelyard.studies.replication.experiments.database import last_line
from steelyard.studies.replication.experiments.deployment import DRIVER
from steelyard.studies.replication.experiments.files import write_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from steelyard.studies.replication.experiments.conduct import Conducted

FORMAT: Final = "steelyard/http/1"
PROGRAM: Final = "steelyard-load"
RECORD: Final = np.dtype(
    [
        ("intended_ns", "<i8"),
        ("sent_ns", "<i8"),
        ("received_ns", "<i8"),
        ("operation", "<u4"),
        ("status", "<i4"),
        ("flags", "<u4"),
        ("zero", "<u4"),
    ]
)
"""A record of ``requests.bin``; see ``crates/load/src/orders/table.rs``."""
HELD_BACK: Final = 1
ERROR: Final = f"{PROGRAM}: "
DRAIN_LIMIT_S: Final = 10.0
"""How long answers are awaited after the last request was due."""
PATIENCE_S: Final = 60.0
MOST_WRONG_SHARE: Final = 0.001
"""SOURCE: own choice; more wrong or missing answers than one in a thousand are no measurement of answers."""
NS_PER_S: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Loaded:
    """What came of a load.

    Parameters
    ----------
    summary : Mapping
        ``http.json``.
    records : ndarray
        Shape (n,), of `RECORD`: all requests, those of the warm-up too.
    """

    summary: Mapping[str, Any]
    records: NDArray[np.void]

    @property
    def measured(self) -> NDArray[np.void]:
        """Give the requests that were due after the warm-up."""
        measured: NDArray[np.void] = self.records[
            self.records["intended_ns"] >= self.summary["measure_start_ns"]
        ]
        return measured

    @property
    def injected_per_s(self) -> float:
        """Give the rate at which requests were due after the warm-up [1/s]."""
        span_ns = self.summary["measure_end_ns"] - self.summary["measure_start_ns"]
        return float(self.measured.size / span_ns * NS_PER_S)

    @property
    def throughput_per_s(self) -> float:
        """Give right answers per second while the measurement lasted [1/s].

        An answer counts where it came between begin and end of the measurement, whenever it was due: a
        service that falls behind answers less than was injected.
        """
        begin_ns, end_ns = self.summary["measure_start_ns"], self.summary["measure_end_ns"]
        received = self.records["received_ns"]
        count = np.count_nonzero((received > begin_ns) & (received <= end_ns) & self._is_right(self.records))
        return float(count / (end_ns - begin_ns) * NS_PER_S)

    def followed_per_s(self, grace: float) -> float:
        """Give the rate at which requests were answered rightly that were due in the measurement [1/s].

        An answer counts until `grace`, a share of the measurement, has passed after its end: a service that
        keeps up answers the last requests afterwards too.
        """
        begin_ns, end_ns = self.summary["measure_start_ns"], self.summary["measure_end_ns"]
        measured = self.measured
        received = measured["received_ns"]
        is_in_time = (received > 0) & (received <= end_ns + grace * (end_ns - begin_ns))
        count = np.count_nonzero(is_in_time & self._is_right(measured))
        return float(count / (end_ns - begin_ns) * NS_PER_S)

    @staticmethod
    def _is_right(records: NDArray[np.void]) -> NDArray[np.bool_]:
        is_right: NDArray[np.bool_] = (records["flags"] & ~np.uint32(HELD_BACK)) == 0
        return is_right

    @property
    def wrong_share(self) -> float:
        """Give the share of requests after the warm-up that were answered wrongly or not at all."""
        scheduled = max(int(self.summary["scheduled"]), 1)
        wrong = int(self.summary["wrong_status"]) + int(self.summary["wrong_body"])
        return (wrong + scheduled - int(self.summary["answered"])) / scheduled


def load(run: Conducted, address: str, parameters: Mapping[str, Any]) -> Loaded:
    """Put a service under load from the driver's place; all requests go to the table of the run.

    Parameters
    ----------
    run : Conducted
        Gets the table, and what the driver says of itself.
    address : str
        ``HOST:PORT`` of the service.
    parameters : Mapping
        `rate_per_s`, `seconds`, `warm_up_seconds`, `connections`, `rows`, `mix`.

    Raises
    ------
    RunError
        If the driver fails.
    """
    plan = {
        "format": FORMAT,
        "address": address,
        "seed": run.asked["seed"],
        "rate_per_s": parameters["rate_per_s"],
        "warm_up_ms": round(1000 * parameters["warm_up_seconds"]),
        "measure_ms": round(1000 * parameters["seconds"]),
        "drain_limit_ms": round(1000 * DRAIN_LIMIT_S),
        "connections": parameters["connections"],
        "rows": parameters["rows"],
        "mix": dict(parameters["mix"]),
    }
    limit_s = parameters["warm_up_seconds"] + parameters["seconds"] + DRAIN_LIMIT_S + PATIENCE_S
    with tempfile.TemporaryDirectory(dir=run.folder) as name:
        folder = Path(name)
        (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
        with run.place(DRIVER) as place:
            place.put(load_program(), PROGRAM)
            place.put(folder / "plan.json", "plan.json")
            words = (place.path(PROGRAM), "http", "--plan", place.path("plan.json"))
            log = run.log(DRIVER)
            process = place.start((*words, "--out", place.path("records")), log=log)
            try:
                status = process.wait(limit_s)
            except TimeoutError as error:
                message = f"the load driver did not end within {limit_s:g} s"
                raise RunError(message, hint=f"read `{log.name}`", code="run.driver") from error
            if status != 0:
                message = f"the load driver failed with status {status}: {_error(log)}"
                raise RunError(message, hint=f"read `{log.name}`", code="run.driver")
            place.get("records/requests.bin", folder / "requests.bin")
            place.get("records/http.json", folder / "http.json")
        loaded = read_records(folder)
    keep(run, loaded)
    return loaded


def _error(log: Path) -> str:
    """Give what the driver says went wrong; a hint follows it."""
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    found = (line.removeprefix(ERROR) for line in lines if line.startswith(ERROR))
    return next(found, last_line(log))


def read_records(folder: Path) -> Loaded:
    """Read what a driver has left."""
    summary = json.loads((folder / "http.json").read_text(encoding="utf-8"))
    return Loaded(summary, np.fromfile(folder / "requests.bin", RECORD))


def keep(run: Conducted, loaded: Loaded) -> None:
    """Write the table of requests, and what was reached into the header."""
    records, summary = loaded.records, loaded.summary
    names = np.array(summary["operations"], dtype=object)
    write_table(
        run.folder,
        "requests",
        {
            "operation": names[records["operation"]],
            **{name: records[name] for name in ("intended_ns", "sent_ns", "received_ns", "status")},
        },
    )
    run.says("measure_start_ns", summary["measure_start_ns"])
    run.says("driver", {name: value for name, value in summary.items() if name != "format"})
    run.says("injected_per_s", loaded.injected_per_s)
    run.says("throughput_per_s", loaded.throughput_per_s)
    run.says("wrong_share", loaded.wrong_share)
    run.says("software", {PROGRAM: str(summary["program"]).removeprefix(f"{PROGRAM} ")})


def wrong_answers(loaded: Loaded) -> str | None:
    """Say that more answers than `MOST_WRONG_SHARE` are wrong or missing; ``None`` where they are not."""
    if loaded.wrong_share <= MOST_WRONG_SHARE:
        return None
    summary = loaded.summary
    unanswered = summary["scheduled"] - summary["answered"]
    return (
        f"{100 * loaded.wrong_share:.2f} % of {summary['scheduled']} requests were answered wrongly or not "
        f"at all (another status: {summary['wrong_status']}, another body: {summary['wrong_body']}, "
        f"no answer: {unanswered}); allowed: {100 * MOST_WRONG_SHARE:g} %"
    )


def require_right_answers(loaded: Loaded) -> None:
    """Refuse a load whose answers are wrong or missing too often.

    Raises
    ------
    BenchmarkFailed
        If the share is above `MOST_WRONG_SHARE`.
    """
    reason = wrong_answers(loaded)
    if reason is not None:
        raise BenchmarkFailed(reason)
